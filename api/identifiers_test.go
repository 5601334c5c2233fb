package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/catalog"
	"cotejo/ledger"
	"cotejo/operation"
)

// TestCardLeavesNothing sends a card number in every place where a client may put
// one, and looks for it in what comes back, in the log and on the disk.
func TestCardLeavesNothing(t *testing.T) {
	const number = "4012888888881881"
	f := newFixture(t)
	const path = "/v1/utilidades/tarjeta"
	all := func(body string, status int, target string, headers ...string) {
		t.Helper()
		for _, key := range []string{"live", "poor", "test"} {
			want := status
			if key == "poor" && status == 200 {
				want = 402
			}
			a := f.sendBody("POST", target, []byte(body), append(headers, f.keyHeader(key)...)...)
			if a.status != want {
				t.Errorf("%s %s: %d, want %d: %s", key, body, a.status, want, a.body)
			}
			var head bytes.Buffer
			_ = http.Header.Write(a.header, &head)
			if said := head.String() + string(a.body); strings.Contains(said, number) || strings.Contains(said, number[:12]) {
				t.Errorf("%s %s: echoed: %s", key, body, said)
			}
		}
	}
	all(`{"pan":"`+number+`"}`, 200, path)
	all(`{"pan":"`+number+`"}`, 200, path, "Idempotency-Key: una-tarjeta")
	all(`{"pan":"`+number[:15]+`9"}`, 200, path)
	all(`{"pan":"`+number+`"}`, 200, path+"?"+number+"=1&pan="+number)
	all(`{"pan":"`+number+`","`+number+`":1}`, 200, path)
	all(`{"pan":"`+number+`0000"}`, 422, path)
	all(`{"pan":"`+number+`x"}`, 422, path)
	all(`{"pan":`+number+`}`, 422, path)
	all(`{"pan":["`+number+`"]}`, 422, path)
	all(`{"`+number+`":1}`, 422, path)
	all(`{"pan":"`+number+`"} {}`, 400, path)
	all(`{"pan":"`+number+`","pan":"`+number+`"}`, 400, path)
	all(`{"`+number+`":1,"`+number+`":1}`, 400, path)

	if log := f.log.String(); strings.Contains(log, number) {
		t.Errorf("logged: %s", log)
	}
	for _, file := range filesOf(t, f.disk, "cuentas") {
		content := readAll(t, f.disk, file)
		if bytes.Contains(content, []byte(number)) {
			t.Errorf("%s holds the number", file)
		}
	}
}

// filesOf lists the files of a folder, at any depth.
func filesOf(t *testing.T, fs vfs.FS, folder string) (files []string) {
	t.Helper()
	for _, name := range must(fs.List(folder)) {
		path := fs.PathJoin(folder, name)
		if info := must(fs.Stat(path)); info.IsDir() {
			files = append(files, filesOf(t, fs, path)...)
		} else {
			files = append(files, path)
		}
	}
	if len(files) == 0 {
		t.Fatal("no files in " + folder)
	}
	return files
}

func readAll(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f := must(fs.Open(name))
	defer f.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(f); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return b.Bytes()
}

// TestCLABEIsNotKept: when an account number is paid for, the movement holds no hash
// of it, and the answer is not stored under the caller's key.
func TestCLABEIsNotKept(t *testing.T) {
	const number = "002010077777777771"
	f := newFixture(t)
	op := *f.table.Find("validarClabe")
	op.Service = "LABORAL" // a validator is free while there is money
	paid := must(operation.NewTable([]operation.Operation{withoutQuote(op)}))[0]
	for range 2 {
		r, err := f.pipeline.Do(context.Background(), &operation.Request{
			Operation: paid, Key: []byte(f.keys["live"]), IdempotencyKeys: [][]byte{[]byte("k")},
			Args: []operation.Arg{{In: operation.InPath, Name: "clabe", Value: number}},
		}, nil)
		if err != nil || r.Replayed || !r.Charged {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	list := f.movements("live")
	set := catalog.Embedded()
	basis := func(v *catalog.Version) string { return fmt.Sprintf("%s %s sha256 %s", v.ID, v.Date, v.SHA256[:12]) }
	m := list[len(list)-1]
	if m.Kind != ledger.KindUse || m.Input != [32]byte{} || m.Basis != basis(set.Banks.Version())+"; "+basis(set.Plazas.Version()) {
		t.Errorf("%+v", m)
	}
}

// TestCLABENamesItsBank: of every code the CLABE's answer says what the catalogue
// of banks says, and of every plaza its towns; a code of neither is null.
func TestCLABENamesItsBank(t *testing.T) {
	f := newFixture(t)
	set := catalog.Embedded()
	banks, plazas := map[string]catalog.Bank{}, map[string]catalog.Plaza{}
	for code, bank := range set.Banks.All {
		banks[code] = bank
	}
	for code, plaza := range set.Plazas.All {
		plazas[code] = plaza
	}
	asked := 0
	for i := range 1000 {
		code := fmt.Sprintf("%03d", i)
		_, isBank := banks[code]
		plaza, isPlaza := plazas[code]
		if !isBank && i%10 != 9 {
			continue // all that are listed, and some of the others
		}
		asked++
		answer := f.object("/v1/utilidades/clabe/" + code + code + "000000000000")
		bank, _ := answer["banco"].(map[string]any)
		if (bank != nil) != isBank {
			t.Fatalf("%s: %v", code, bank)
		}
		if isBank {
			listed := f.object("/v1/catalogo/banco/" + code)
			for name, value := range bank {
				if !reflect.DeepEqual(value, listed[name]) {
					t.Errorf("%s: %s is %v, in the catalogue %v", code, name, value, listed[name])
				}
			}
			if len(bank) != 6 || !reflect.DeepEqual(answer["fuentes"].([]any)[0], listed["fuente"]) {
				t.Errorf("%s: %v from %v", code, bank, answer["fuentes"])
			}
		}
		towns := 0
		if place, ok := answer["plaza"].(map[string]any); ok {
			towns = len(place["poblaciones"].([]any))
		}
		if towns != len(plaza.Towns) || (towns > 0) != isPlaza {
			t.Errorf("%s: %d towns of %d", code, towns, len(plaza.Towns))
		}
	}
	if asked < 200 {
		t.Errorf("%d codes", asked)
	}
}

// object asks as a test key.
func (f *fixture) object(target string) map[string]any {
	f.t.Helper()
	a := f.get(target, "test")
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil || a.status != 200 {
		f.t.Fatalf("%s: %d %s, %v", target, a.status, a.body, err)
	}
	return v
}

// withoutQuote takes away what NewTable adds.
func withoutQuote(op operation.Operation) operation.Operation {
	op.Params = slices.DeleteFunc(slices.Clone(op.Params), func(p operation.Param) bool { return p.Name == "simular" })
	op.Examples = nil
	return op
}
