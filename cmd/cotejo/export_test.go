package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"cotejo/civil"
	"cotejo/export"
	"cotejo/ledger"
	"cotejo/store/storetest"
)

var update = flag.Bool("update", false, "write the evidence that the verificador is tested with anew")

// stranger builds the verifier that shares no code with this program, and returns
// what runs it: what it prints, and its exit code.
func stranger(t *testing.T) func(args ...string) (string, int) {
	t.Helper()
	binary := t.TempDir() + "/verificador"
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "../../verificador"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(binary, args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
}

func runExport(t *testing.T, kind, data string, more ...string) (dir string, r exportReply) {
	t.Helper()
	dir = t.TempDir() + "/" + kind
	args := append([]string{"export", "--" + kind, dir, "--data", data}, more...)
	return dir, cotejoJSON[exportReply](t, args...)
}

func rowsIn(r exportReply, path string) int64 {
	for _, f := range r.Files {
		if f.Path == path {
			return f.Rows
		}
	}
	return -1
}

// TestEvidenceIsVerifiedByAStranger gives real evidence to a program that was written
// from its description: it finds nothing wrong, and what is wrong it finds.
func TestEvidenceIsVerifiedByAStranger(t *testing.T) {
	verificador := stranger(t)
	inNovember(t)
	november := now
	now = func() time.Time { return time.Date(2026, 7, 10, 16, 0, 0, 0, time.UTC) }
	data := loadedData(t, 0)
	now = november
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
	ask(t, data, "ZZZ010101AA1", "PRE010101AA1", "ZZZ010101AA1?en_fecha=2026-01-10", "EFO010101AA1?en_fecha=2026-08-10")
	workOff(t, data)
	if all := cotejoJSON[verifyReply](t, "verify", "all", "--data", data); all.Records != 9 || all.Coincide != 9 {
		t.Errorf("verify all: %+v", all)
	}
	anchor := t.TempDir() + "/ancla.json"
	if err := os.WriteFile(anchor, must(os.ReadFile(data+"/ancla.json"))(t), 0o600); err != nil {
		t.Fatal(err)
	}
	first, r := runExport(t, "evidence", data)
	if r.Kind != export.KindEvidence || rowsIn(r, "actas.jsonl") != 9 || rowsIn(r, "registros.jsonl") != 9 || rowsIn(r, "lotes.jsonl") != 1 || rowsIn(r, "cargos.jsonl") != 5 ||
		rowsIn(r, "versiones/1.json") != 1 || rowsIn(r, "ediciones/1.json") != 1 || rowsIn(r, "ediciones/2.json") != 1 || rowsIn(r, "ancla.json") != 1 || uint64(rowsIn(r, "cadena.jsonl")) != r.Batches {
		t.Errorf("%+v", r)
	}
	f := func(wantCode int, want string, args ...string) {
		t.Helper()
		if out, code := verificador(args...); code != wantCode || !strings.Contains(out, want) {
			t.Errorf("verificador %v: código %d, se esperaba %d y «%s»\n%s", args, code, wantCode, want, out)
		}
	}
	f(0, "revisado: 1 lotes, 5 cargos", first, "-ancla", anchor)
	f(0, "revisado: 9 respuestas", first, "-ancla", anchor)
	f(0, r.Sum, first)

	if *update {
		to := "../../verificador/testdata/evidencia"
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(to, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
	}

	// More is answered: the earlier evidence is a part of the later, not the reverse.
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 2), "--data", data)
	ask(t, data, "EFO010101AA1")
	second, _ := runExport(t, "evidence", data)
	f(0, "exportación anterior: 9 respuestas siguen aquí", second, "-anterior", first, "-ancla", anchor)
	f(exitVerifyNo, "la exportación anterior: en el grupo", first, "-anterior", second)
	later := must(os.ReadFile(data + "/ancla.json"))(t)
	if err := os.WriteFile(anchor, later, 0o600); err != nil {
		t.Fatal(err)
	}
	f(exitVerifyNo, "no está en la cadena", first, "-ancla", anchor)

	// Of one organization; and the other kind, of which it knows the files only.
	all := cotejoJSON[[]accountReply](t, "accounts", "list", "--data", data)
	var counts []int64
	for _, a := range all {
		org := a.Orgs[0]
		one, r := runExport(t, "evidence", data, "--org", org.ID)
		counts = append(counts, rowsIn(r, "actas.jsonl"))
		f(0, "solo de "+org.ID, one)
		if said := failing(t, exitUsage, "export", "--evidence", t.TempDir(), "--org", org.Twin, "--data", data); !strings.Contains(said, "la organización es "+org.ID) {
			t.Error(said)
		}
	}
	if slices.Sort(counts); !slices.Equal(counts, []int64{1, 9}) {
		t.Errorf("%v respuestas", counts)
	}
	tables, _ := runExport(t, "parquet", data)
	f(0, "3 archivos", tables)

	if err := os.Remove(first + "/MANIFIESTO.json"); err != nil {
		t.Fatal(err)
	}
	f(exitUsage, "una exportación que se interrumpió no lo tiene", first)
}

// workOff works off an order of five for the first organization that was answered,
// which got that answer five times more: one paid by a use, one at 12.00, two at 8.00
// and one at 5.00.
func workOff(t *testing.T, data string) {
	t.Helper()
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	var account ledger.AccountID
	var like ledger.Record
	err = n.ledger.Records(func(a ledger.AccountID, r ledger.Record) error {
		if like.Registro == nil && !strings.Contains(string(r.Registro), "en_fecha") {
			account, like = a, r
		}
		return nil
	})
	if err != nil || like.Registro == nil {
		t.Fatal("no hay respuestas: ", err)
	}
	do := func(c ledger.Command) {
		t.Helper()
		if _, err := n.ledger.Do(t.Context(), account, c); err != nil {
			t.Fatal(err)
		}
	}
	do(ledger.CreditUses{Now: now(), Org: like.Org, Service: like.Service, Count: 1, Reason: "uno"})
	id, err := n.ledger.NextID(t.Context(), ledger.OrderPrefix, now())
	if err != nil {
		t.Fatal(err)
	}
	o := ledger.Order{OrderKey: ledger.OrderKey{Org: like.Org, ID: id}, Service: like.Service, Operation: like.Operation, Edition: like.Edition}
	do(ledger.OpenOrder{
		Now: now(), ID: id, Org: like.Org, Service: like.Service, Operation: like.Operation, Edition: like.Edition, Units: 5, Until: now().Add(time.Hour),
		Price: 1200, Steps: []ledger.Step{{From: 3, Centavos: 800}, {From: 5, Centavos: 500}},
	})
	b, err := n.ledger.NewBlockBuilder()
	if err != nil {
		t.Fatal(err)
	}
	for first := 1; first <= 5; first += 3 {
		ids, count, err := n.ledger.NextIDs(t.Context(), "COM", now(), min(3, 6-first))
		if err != nil {
			t.Fatal(err)
		}
		for b.Reset(&o, first, ids, count); b.Room(); {
			acta := strings.Replace(string(like.Acta), like.ID.String(), b.NextID().String(), 1)
			if err := b.Add(like.Code, like.Registro, sha256.Sum256(like.Registro), []byte(acta), nil); err != nil {
				t.Fatal(err)
			}
		}
		do(ledger.FillOrder{Now: now(), Block: b.Block()})
	}
}

// TestEvidenceOfEverySource has an edition of all sources, lists and catalogues: the
// stranger reads the manifests of each.
func TestEvidenceOfEverySource(t *testing.T) {
	verificador := stranger(t)
	data := newData(t)
	config, stage := mirrorConfig(t)
	for i := range 2 {
		stage.Store(int64(i))
		cotejo(t, 0, "ingest", "--data", data, "--config", config)
	}
	ask(t, data, "EFO010101AA1", "BIS010101AA1", "ZZZ010101AA1?en_fecha="+civil.Of(now()).String())
	dir, r := runExport(t, "evidence", data)
	edition := string(must(os.ReadFile(dir + "/ediciones/" + lastEdition(r)))(t))
	for _, source := range []string{"banxico_fix", "banxico_spei", "ift_numeracion", "sat_69b", "sat_69b_bis"} {
		if !strings.Contains(edition, `"source":"`+source+`"`) {
			t.Errorf("the edition lacks %s", source)
		}
	}
	if out, code := verificador(dir); code != 0 || !strings.Contains(out, "revisado: 3 respuestas") {
		t.Errorf("código %d\n%s", code, out)
	}
}

// lastEdition is the file of the newest edition in an export.
func lastEdition(r exportReply) (name string) {
	newest := 0
	for _, f := range r.Files {
		if rest, ok := strings.CutPrefix(f.Path, "ediciones/"); ok {
			if n, err := strconv.Atoi(strings.TrimSuffix(rest, ".json")); err == nil && n > newest {
				newest, name = n, rest
			}
		}
	}
	return name
}

// TestExportsWhileServing exports through a server under load: every answer that was
// given before is in both exports.
func TestExportsWhileServing(t *testing.T) {
	verificador := stranger(t)
	data, org, key := shop(t)
	s := serveChild(t, data)
	seen := &answers{sha: map[string]string{}}
	stop := make(chan struct{})
	wg := load(t, s, key, 4, stop, seen.add)
	waitFor(t, func() bool { return t.Failed() || seen.count() >= 200 }, func() string { return "sin carga: " + s.log.String() })
	before := seen.copy()
	dir, r := runExport(t, "evidence", data)
	tables, q := runExport(t, "parquet", data, "--org", org)
	close(stop)
	wg.Wait()
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}
	if out, code := verificador(dir); code != 0 {
		t.Errorf("código %d\n%s", code, out)
	}
	actas := string(must(os.ReadFile(dir + "/actas.jsonl"))(t))
	ids := strings.Join(textsOf(t, tables+"/registros.parquet"), "\n")
	for id, sha := range before {
		if !strings.Contains(actas, `"registro_sha256":"`+sha+`","verification_id":"`+id+`"`) || !strings.Contains(ids, id) {
			t.Errorf("falta %s", id)
		}
	}
	if rowsIn(r, "actas.jsonl") < int64(len(before)) || rowsIn(q, "registros.parquet") < rowsIn(r, "actas.jsonl") ||
		rowsIn(q, "movimientos.parquet") != rowsIn(q, "registros.parquet")+1 {
		t.Errorf("%d antes; %+v; %+v", len(before), r, q)
	}
	// The same content once nobody writes: the same bytes, with and without a server.
	one, _ := runExport(t, "parquet", data)
	s = serveChild(t, data)
	two, _ := runExport(t, "parquet", data)
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}
	for _, name := range []string{"registros.parquet", "movimientos.parquet", "uso.parquet"} {
		if a, b := must(os.ReadFile(one+"/"+name))(t), must(os.ReadFile(two+"/"+name))(t); !bytes.Equal(a, b) {
			t.Errorf("%s difiere: %d y %d bytes", name, len(a), len(b))
		}
	}
}

// TestExportFromADatabase exports accounts that are in PostgreSQL: by the node that
// has the turn, by one in standby, and when no server runs. All give the same tables.
func TestExportFromADatabase(t *testing.T) {
	verificador := stranger(t)
	c := newCluster(t, storetest.PostgresURL(t), 2)
	a := c.serve(0)
	c.ready(a)
	b := c.serve(1)
	const asked = 3
	for range asked {
		if status, code, _ := c.ask(a); status != 200 {
			t.Fatalf("%d %s\n%s", status, code, a.log)
		}
	}
	if status, code, _ := c.ask(b); code != "NODO_SIN_TURNO" {
		t.Fatalf("the node that waits: %d %s", status, code)
	}
	exported := func(node int, kind string) (string, exportReply) {
		t.Helper()
		to := t.TempDir() + "/exportacion"
		return to, cotejoJSON[exportReply](t, c.args(node, "export", "--"+kind, to)...)
	}
	var tables []string
	look := func(who string, node int) {
		t.Helper()
		dir, r := exported(node, "evidence")
		if out, code := verificador(dir); code != 0 || rowsIn(r, "actas.jsonl") != asked {
			t.Errorf("%s: código %d, %+v\n%s", who, code, r, out)
		}
		dir, r = exported(node, "parquet")
		text := ""
		for _, name := range []string{"registros.parquet", "movimientos.parquet", "uso.parquet"} {
			text += string(must(os.ReadFile(dir + "/" + name))(t))
		}
		if tables = append(tables, text); rowsIn(r, "registros.parquet") != asked || rowsIn(r, "movimientos.parquet") != asked+1 || text != tables[0] {
			t.Errorf("%s: %+v, the same bytes as the first: %v", who, r, text == tables[0])
		}
	}
	look("the node with the turn", 0)
	look("the node in standby", 1)
	for _, s := range []*served{b, a} {
		if code := s.stop(t); code != 0 {
			t.Errorf("ended with %d\n%s", code, s.log)
		}
	}
	look("without a server", 0)
}

// textsOf reads every text in every column of a table.
func textsOf(t *testing.T, path string) (texts []string) {
	t.Helper()
	r := must(file.OpenParquetFile(path, false))(t)
	defer r.Close()
	for g := range r.NumRowGroups() {
		for c := range r.MetaData().Schema.NumColumns() {
			chunk, ok := must(r.RowGroup(g).Column(c))(t).(*file.ByteArrayColumnChunkReader)
			for ok && chunk.HasNext() {
				var values [512]parquet.ByteArray
				var levels [2][512]int16
				_, n, err := chunk.ReadBatch(int64(len(values)), values[:], levels[0][:], levels[1][:])
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range values[:n] {
					texts = append(texts, string(v))
				}
			}
		}
	}
	return texts
}

// TestExportsHoldNoSecret looks for keys, their secret, full numbers of cards and
// accounts, what organizations said of themselves and addresses of clients in every
// file and every value of both exports.
func TestExportsHoldNoSecret(t *testing.T) {
	data, org, key := shop(t)
	test := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "test", "--data", data).Key
	const clabe, card = "002010077777777771", "4111111111111111"
	s := serveChild(t, data)
	s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", key)
	s.mustGet(t, 200, "/v1/empresa/EFO010101AA1", test)
	s.mustGet(t, 200, "/v1/utilidades/clabe/"+clabe, key)
	send := func(method, path, body string) {
		t.Helper()
		req := must(http.NewRequest(method, s.base+path, strings.NewReader(body)))(t)
		req.Header.Set("X-Api-Key", key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", "canario-de-idempotencia")
		resp := must(http.DefaultClient.Do(req))(t)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
	}
	send("POST", "/v1/utilidades/tarjeta", `{"pan":"`+card+`"}`)
	send("PUT", "/v1/organizacion", `{"razon_social":"CANARIO FISCAL","rfc_fiscal":null,"cp":null,"regimen_fiscal":null,"uso_cfdi":null,"email":"canario@fiscal.example"}`)
	if code := s.stop(t); code != 0 {
		t.Fatalf("código %d: %s", code, s.log)
	}
	pepper := must(os.ReadFile(data + "/pepper"))(t)
	var all strings.Builder
	for _, kind := range []string{"parquet", "evidence"} {
		dir, _ := runExport(t, kind, data)
		err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			all.Write(must(os.ReadFile(path))(t))
			if strings.HasSuffix(path, ".parquet") {
				fmt.Fprintln(&all, textsOf(t, path))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := all.String()
	if strings.Count(text, `"rfc":"EFO010101AA1"`) < 2 || !strings.Contains(text, "UTIL") {
		t.Fatal("the test proves nothing")
	}
	for _, secret := range []string{
		key, test, key[len("svc_live_"):], test[len("svc_test_"):], key[len(key)-20:], "svc_live_", "svc_test_",
		string(pepper), hex.EncodeToString(pepper), clabe, clabe[6:17], card, card[:12], "canario-de-idempotencia",
		"CANARIO FISCAL", "canario@fiscal.example", "ALFA", "127.0.0.1",
	} {
		if strings.Contains(text, secret) {
			t.Errorf("an export holds %q", secret)
		}
	}
}

func TestExportCommandLine(t *testing.T) {
	data, ids := answered(t, "EFO010101AA1")
	to := t.TempDir()
	failing(t, exitUsage, "export", "--data", data)
	failing(t, exitUsage, "export", "--parquet", to+"/a", "--evidence", to+"/b", "--data", data)
	failing(t, exitUsage, "export", "--parquet", data+"/a", "--data", data)
	failing(t, exitUsage, "export", "--parquet", to+"/a", "--org", "org_1", "--data", data)
	failing(t, exitNotFound, "export", "--parquet", to+"/a", "--org", "org_0000000000001", "--data", data)
	failing(t, exitNotFound, "export", "--parquet", to+"/a", "--data", t.TempDir()+"/nada")
	if left, _ := os.ReadDir(to); len(left) > 0 {
		t.Errorf("quedó %v", left)
	}
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"export", "--evidence", to, "--data", data}, &out, &errOut); code != 0 ||
		!strings.Contains(out.String(), "actas.jsonl") || !strings.Contains(out.String(), "manifiesto_sha256") {
		t.Errorf("código %d\n%s", code, &out)
	}
	// Not on a terminal: a line for each group, with all rows at the end.
	if lines := strings.Split(strings.TrimSpace(errOut.String()), "\n"); len(lines) != export.Groups || !strings.Contains(lines[16], " evidencia grupo_17/17 ") {
		t.Errorf("avance:\n%s", &errOut)
	}
	failing(t, exitUsage, "export", "--evidence", to, "--data", data)
	if acta := string(must(os.ReadFile(to + "/actas.jsonl"))(t)); !strings.Contains(acta, ids[0]) || !strings.Contains(acta, civil.Of(now()).String()) {
		t.Error(acta)
	}

	// A missing manifest is said, and leaves nothing.
	if err := os.Remove(data + "/fuentes/versions/1.json"); err != nil {
		t.Fatal(err)
	}
	lost := t.TempDir()
	if said := failing(t, exitNotFound, "export", "--evidence", lost, "--data", data); !strings.Contains(said, "versions/1.json") {
		t.Error(said)
	}
	if left, _ := os.ReadDir(lost); len(left) > 0 {
		t.Errorf("quedó %v", left)
	}
}
