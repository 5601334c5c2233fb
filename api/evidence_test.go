package api

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"cotejo/accounts"
	"cotejo/ledger"
	"cotejo/operation"
	"cotejo/testdata/mirror"
)

// sister adds a legal entity to the account of a key, with keys of its own: NAME and
// NAME-test.
func (f *fixture) sister(of, name string) {
	o := must(f.accounts.AddOrganization(context.Background(), accounts.OrganizationRequest{Account: f.orgs[of].Account, Name: "Entidad " + name}))
	f.orgs[name] = o
	f.key(name, accounts.KeyRequest{Org: o.ID, Mode: accounts.Live})
	f.key(name+"-test", accounts.KeyRequest{Org: o.ID, Mode: accounts.Test})
}

// expediente is what the tests read of a dossier.
type expediente struct {
	ID      string `json:"expediente_id"`
	Sandbox bool   `json:"sandbox"`
	Chain   struct {
		Batch uint64 `json:"lote"`
		Head  string `json:"cabeza"`
	} `json:"cadena"`
	Account *struct {
		Before string `json:"suma_antes"`
		After  string `json:"suma_despues"`
	} `json:"cuenta"`
	Verifications []struct {
		ID     string          `json:"verification_id"`
		Answer json.RawMessage `json:"respuesta"`
		Charge *struct {
			Number uint64 `json:"movimiento"`
			Amount string `json:"monto"`
		} `json:"cargo"`
	} `json:"verificaciones"`
	Movements []struct {
		Number uint64 `json:"movimiento"`
		Amount string `json:"monto"`
		ID     string `json:"verification_id"`
	} `json:"movimientos"`
	Issued []struct {
		ID  string  `json:"expediente_id"`
		Sum *string `json:"contenido_sha256"`
	} `json:"expedientes_emitidos"`
	Summary struct {
		All struct {
			Answers int    `json:"consultas"`
			Amount  string `json:"monto"`
		} `json:"verificaciones"`
		Movements map[string]struct {
			Count  int    `json:"movimientos"`
			Amount string `json:"monto"`
		} `json:"movimientos"`
	} `json:"resumen"`
	Sum string `json:"contenido_sha256"`
}

// expediente asks for one and recomputes what can be recomputed from it alone.
func (f *fixture) expediente(key string) expediente {
	f.t.Helper()
	a := f.get("/v1/auditoria/expediente", key)
	if a.status != 200 {
		f.t.Fatalf("%d %s", a.status, a.body)
	}
	return readExpediente(f.t, a.body)
}

func readExpediente(t testing.TB, text []byte) (e expediente) {
	t.Helper()
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(text[:len(text)-87])); sum != e.Sum {
		t.Fatalf("contenido_sha256 is %s, of the content %s", e.Sum, sum)
	}
	charged, total := new(big.Rat), new(big.Rat)
	byID := map[string]uint64{}
	for _, m := range e.Movements {
		byID[m.ID] = m.Number
		total.Add(total, pesos(t, m.Amount))
	}
	for _, v := range e.Verifications {
		if v.Charge == nil {
			continue
		}
		charged.Sub(charged, pesos(t, v.Charge.Amount))
		if byID[v.ID] != v.Charge.Number {
			t.Fatalf("%s was paid by movement %d, and the list has %d", v.ID, v.Charge.Number, byID[v.ID])
		}
	}
	if e.Summary.All.Answers != len(e.Verifications) || charged.Cmp(pesos(t, e.Summary.All.Amount)) != 0 {
		t.Fatalf("the summary has %+v, the list %d of %s", e.Summary.All, len(e.Verifications), charged.FloatString(2))
	}
	own := new(big.Rat).Add(pesos(t, e.Summary.Movements["propios"].Amount), pesos(t, e.Summary.Movements["de_la_cuenta"].Amount))
	if own.Cmp(total) != 0 {
		t.Fatalf("the listed movements add up to %s, the summary says %s", total.FloatString(2), own.FloatString(2))
	}
	if e.Account != nil {
		after := new(big.Rat).Add(pesos(t, e.Account.Before), total)
		after.Add(after, pesos(t, e.Summary.Movements["otras_entidades"].Amount))
		if after.Cmp(pesos(t, e.Account.After)) != 0 {
			t.Fatalf("%s + %s + %+v is not %s", e.Account.Before, total.FloatString(2), e.Summary.Movements, e.Account.After)
		}
	}
	return e
}

func pesos(t testing.TB, text string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is no amount", text)
	}
	return r
}

// TestDossierWhileCharging: dossiers that stream while both entities of an account
// are charged agree with themselves, and none goes back behind the one before.
func TestDossierWhileCharging(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	f.sister("live", "hermana")
	must(f.accounts.Credit(t.Context(), f.orgs["live"].ID, 100_000_00, "paquete"))
	const askers, each = 4, 60
	var charging sync.WaitGroup
	for a := range askers {
		key := []string{"live", "hermana"}[a%2]
		charging.Go(func() {
			for range each {
				if a := f.get("/v1/empresa/INM010101AA1", key); a.status != 200 {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { charging.Wait(); close(ended) }()
	var last expediente
	for n, going := 0, true; going; n++ {
		select {
		case <-ended:
			going = false // once more, over all of it
		default:
		}
		e := f.expediente("live")
		if len(e.Verifications) < len(last.Verifications) || e.Chain.Batch <= last.Chain.Batch || len(e.Issued) != n {
			t.Fatalf("after %d verifications and batch %d: %d and %d, %d issued", len(last.Verifications), last.Chain.Batch, len(e.Verifications), e.Chain.Batch, len(e.Issued))
		}
		if n > 0 && (e.Issued[n-1].ID != last.ID || e.Issued[n-1].Sum == nil || *e.Issued[n-1].Sum != last.Sum) {
			t.Fatalf("the one before is %+v", e.Issued[n-1])
		}
		last = e
	}
	if len(last.Verifications) != askers/2*each || last.Summary.Movements["otras_entidades"].Count != askers/2*each {
		t.Errorf("at the end: %d verifications, %+v", len(last.Verifications), last.Summary)
	}
	for _, v := range last.Verifications {
		if again := f.get("/v1/verificaciones/"+v.ID, "live"); !bytes.Equal(again.body, v.Answer) {
			t.Fatalf("%s was answered with other bytes", v.ID)
		}
	}
}

// TestDossierIsApart: what a sister entity, a twin for tests and another account did
// is in their dossiers and usage, and in nobody else's.
func TestDossierIsApart(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	f.sister("live", "hermana")
	ids := map[string]string{}
	everyone := []string{"live", "hermana", "hermana-test", "other", "test"}
	for _, key := range everyone {
		id, _ := walk(f.get("/v1/empresa/EFO010101AA1", key).body, ".verification_id")
		ids[key] = id.(string)
		ids[key+" dossier"] = f.expediente(key).ID
	}
	for _, key := range everyone {
		for _, target := range []string{"/v1/auditoria/expediente", "/v1/uso?detalle=true"} {
			text := string(f.get(target, key).body)
			for of, id := range ids {
				mine := of == key || of == key+" dossier" && target == "/v1/auditoria/expediente"
				if strings.Contains(text, id) != mine {
					t.Errorf("%s, %s: %s of %s: there %v", key, target, id, of, !mine)
				}
			}
		}
	}
	live, sister := f.expediente("live"), f.expediente("hermana")
	if live.Summary.Movements["otras_entidades"].Amount != "-12.00" || sister.Summary.Movements["otras_entidades"].Amount != "88.00" {
		t.Errorf("of the sister %+v, of the first %+v", live.Summary.Movements, sister.Summary.Movements)
	}
	if e := f.expediente("hermana-test"); e.Account != nil || !e.Sandbox || len(e.Verifications) != 1 || len(e.Movements) != 0 {
		t.Errorf("a twin's: %+v", e)
	}
}

// TestDossierArchive: the ZIP holds the same text, and all that it names.
func TestDossierArchive(t *testing.T) {
	f := newFixture(t)
	f.loadStage(2)
	f.loadStage(3)
	for _, target := range []string{"/v1/empresa/EFO010101AA1", "/v1/empresa/SEN010101AA1?en_fecha=2026-11-01"} {
		if a := f.get(target, "live"); a.status != 200 {
			t.Fatalf("%s", a.body)
		}
	}
	a := f.get("/v1/auditoria/expediente?formato=zip", "live")
	if a.status != 200 || a.header.Get("Content-Type") != "application/zip" || !strings.HasSuffix(a.header.Get("Content-Disposition"), `.zip"`) {
		t.Fatalf("%d %v", a.status, a.header)
	}
	z := must(zip.NewReader(bytes.NewReader(a.body), int64(len(a.body))))
	files := map[string][]byte{}
	for _, file := range z.File {
		files[file.Name] = must(io.ReadAll(must(file.Open())))
		if !file.Modified.Equal(f.clock()) {
			t.Errorf("%s is of %v", file.Name, file.Modified)
		}
	}
	e := readExpediente(t, files["expediente.json"])
	if len(e.Verifications) != 2 || bytes.Count(files["registros.ndjson"], []byte("\n")) != 2 || files["FALTANTES.txt"] != nil {
		t.Errorf("%d verifications, files %v", len(e.Verifications), len(files))
	}
	versions := 0
	for name, text := range files {
		if file, ok := strings.CutPrefix(name, "versiones/"); ok {
			versions++
			if kept := must(os.ReadFile(f.sourceFile("versions", file))); !bytes.Equal(kept, text) {
				t.Errorf("%s is not the manifest", name)
			}
		}
	}
	if versions == 0 {
		t.Error("it has no manifest of a version")
	}
	sha, _ := walk(e.Verifications[0].Answer, ".edicion_sha256")
	manifest := files[fmt.Sprintf("ediciones/%s.json", sha)]
	if kept := must(os.ReadFile(f.sourceFile("editions", "2.json"))); !bytes.Equal(kept, manifest) {
		t.Errorf("the edition is %s", manifest)
	}
	if served := f.get(fmt.Sprintf("/v1/auditoria/edicion/%s", sha), "live"); string(served.body)+"\n" != string(manifest) {
		t.Errorf("served is %s", served.body)
	}
}

// sourceFile is the path of a file of the real sources.
func (f *fixture) sourceFile(elem ...string) string {
	return filepath.Join(append([]string{f.sourcesDir}, elem...)...)
}

// TestOfficialFile: the bytes of the authority come back as they were, plain and
// packed; of a file that was damaged since, nothing whole does.
func TestOfficialFile(t *testing.T) {
	f := newFixture(t)
	f.loadStage(3)
	content, _ := mirror.File(3, mirror.Listado69B)
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	plain := f.get("/v1/auditoria/fuente/1", "live")
	if !bytes.Equal(plain.body, content) || plain.header.Get("X-Sha256") != sum {
		t.Fatalf("%d bytes, %v", len(plain.body), plain.header)
	}
	packed := f.get("/v1/auditoria/fuente/1?formato=zst", "live")
	unpacked := must(must(zstd.NewReader(nil)).DecodeAll(packed.body, nil))
	if !bytes.Equal(unpacked, content) || packed.header.Get("X-Sha256") != sum {
		t.Fatalf("%d bytes, %v", len(unpacked), packed.header)
	}
	// Test keys have the synthetic files, under the same numbers.
	if other := f.get("/v1/auditoria/fuente/1", "test"); other.status != 200 || bytes.Equal(other.body, content) {
		t.Errorf("a test key gets %d, %d bytes", other.status, len(other.body))
	}

	var file string
	_ = filepath.WalkDir(f.sourcesDir, func(name string, _ fs.DirEntry, _ error) error {
		if filepath.Base(name) == "oficial.zst" {
			file = name
		}
		return nil
	})
	kept := must(os.ReadFile(file))
	for _, damaged := range [][]byte{kept[:len(kept)-1], flipped(kept, len(kept)/2), flipped(kept, len(kept)-1), {}} {
		if err := os.Chmod(file, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"/v1/auditoria/fuente/1", "/v1/auditoria/fuente/1?formato=zst"} {
			a := f.get(target, "live")
			if code, _ := walk(a.body, ".codigo"); a.status != 503 || code != "FUENTE_DANADA" || a.header.Get("X-Sha256") != "" {
				t.Errorf("%s of %d damaged bytes: %d %.100s", target, len(damaged), a.status, a.body)
			}
		}
	}
}

func flipped(b []byte, at int) []byte {
	c := bytes.Clone(b)
	c[at] ^= 1
	return c
}

// BenchmarkUsageOfAYear asks for the totals of a year in which an organization was
// given ten million answers of ten services: 3,650 rows, the only thing that the
// totals are read from.
func BenchmarkUsageOfAYear(b *testing.B) {
	f := newFixture(b)
	who := must(f.accounts.Authenticate([]byte(f.keys["live"])))
	const days, answers = 365, 10_000_000
	services := make([]string, 10)
	for i := range services {
		services[i] = fmt.Sprintf("SERVICIO%d", i)
	}
	first := time.Date(2025, 12, 1, 12, 0, 0, 0, time.UTC)
	for n := range answers {
		t := first.AddDate(0, 0, n%days)
		day := uint32(t.Year()*10000 + int(t.Month())*100 + t.Day())
		f.pipeline.Ledger.CountUse(who.Account, who.Org, false, services[n/days%len(services)], day)
	}
	f.advance(10 * 24 * time.Hour) // 30 November
	op := f.table.Find("consultarUso")
	ask := func() []byte {
		resp, err := f.pipeline.Do(context.Background(), &operation.Request{Operation: op, Key: []byte(f.keys["live"]), Args: []operation.Arg{
			{In: operation.InQuery, Name: "desde", Value: "2025-12-01"}, {In: operation.InQuery, Name: "hasta", Value: "2026-11-30"},
		}}, nil)
		if err != nil {
			b.Fatal(err)
		}
		return resp.Body
	}
	rows := 0
	for rows < days*len(services) { // they are written behind the answers
		rows = 0
		if err := f.pipeline.Ledger.Usage(who.Account, who.Org, false, 20251201, 20261130, func(ledger.Usage) error { rows++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
	total, _ := walk(ask(), ".total.consultas")
	if total != float64(answers) {
		b.Fatalf("%v answers", total)
	}
	b.Run("pipeline", func(b *testing.B) {
		for b.Loop() {
			ask()
		}
	})
	b.Run("http", func(b *testing.B) {
		for b.Loop() {
			if a := f.get("/v1/uso?desde=2025-12-01&hasta=2026-11-30", "live"); a.status != 200 {
				b.Fatalf("%s", a.body)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "uso_year_ms")
	})
}

// TestDossierCutIsKnown: of a dossier whose client left before its end, later ones
// say that it was begun, and have no hash.
func TestDossierCutIsKnown(t *testing.T) {
	f := newFixture(t)
	for range 100 {
		if a := f.get("/v1/empresa/EFO010101AA1", "test"); a.status != 200 {
			t.Fatalf("%s", a.body)
		}
	}
	resp, conn := ask(t, f.listener, "GET", "/v1/auditoria/expediente", f.keys["test"])
	text := make([]byte, streamBytes)
	if _, err := io.ReadFull(resp.Body, text); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	e := f.expediente("test")
	if len(e.Verifications) != 100 || len(e.Issued) != 1 || e.Issued[0].Sum != nil || !strings.Contains(string(text), e.Issued[0].ID) {
		t.Errorf("%d verifications, issued %+v", len(e.Verifications), e.Issued)
	}
}
