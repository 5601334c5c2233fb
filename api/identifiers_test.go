package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
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
