package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/ledger"
	"cotejo/query"
	"cotejo/sandbox"
	"cotejo/snapshots"
)

// catalogue holds as many editions of one list as asked for, each of other bytes.
func catalogue(t *testing.T, editions int) (c *snapshots.Catalogue, shas []string) {
	t.Helper()
	c, err := snapshots.OpenCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := sandbox.Files()[0]
	for i := range editions {
		content := bytes.ReplaceAll(f.Bytes, []byte("31 de agosto de 2026"), fmt.Appendf(nil, "%02d de agosto de 2026", 10+i))
		r, err := ingest.Ingest(t.Context(), c, ingest.Request{
			Source: f.Source, Name: f.Name, Now: f.Downloaded,
			Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		})
		if err != nil || r.Outcome != ingest.Activated {
			t.Fatalf("edition %d: %+v, %v", i, r, err)
		}
		shas = append(shas, r.Edition.SHA256)
	}
	return c, shas
}

// record answers a question as the pipeline does.
func record(t *testing.T, c *snapshots.Catalogue, rfc string) ledger.Record {
	t.Helper()
	m, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	ed, err := c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	defer ed.Release()
	parsed, err := checks.ParseRFC(rfc)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	registro, outcome, err := query.AppendRegistro(nil, query.Company{RFC: parsed}, civil.Of(at), ed)
	if err != nil {
		t.Fatal(err)
	}
	r := ledger.Record{
		ID:      ledger.VerificationID{Prefix: "COM", Day: 20261120, Counter: 1, Code: 7},
		Service: "COMPANY", Code: outcome.Code, Centavos: 1200, Registro: registro,
	}
	sum := sha256.Sum256(registro)
	edition, _ := hex.DecodeString(m.SHA256)
	copy(r.Edition[:], edition)
	v := ed.Source("sat_69b").Version()
	r.Acta = fmt.Appendf(nil, `{"consultado":%q,"engine_version":"1.0.0","registro_sha256":"%x","verification_id":%q,`+
		`"versiones":[{"descargada":%q,"id":%d,"publicada_en_reset":%q,"sha256":%q,"url":%q}]}`,
		civil.Timestamp(at), sum, r.ID, v.Downloaded, v.ID, m.Sources[0].PublishedReset, v.SHA256, v.URL)
	return r
}

// TestTheVerifierCanSayNo lays altered records beside the edition they name.
func TestTheVerifierCanSayNo(t *testing.T) {
	c, _ := catalogue(t, 2)
	v := &Verifier{Sources: c, Sandbox: c}
	defer v.Close()
	f := func(what, want string, alter func(r *ledger.Record)) {
		t.Helper()
		r := record(t, c, "EFO010101AA1")
		alter(&r)
		if got, err := v.Check(r); err != nil || got.Verdict != want || (got.Detail == "") != (want == Coincide) {
			t.Errorf("%s: %+v, %v; want %s", what, got, err, want)
		}
	}
	// reseal gives an altered registro the acta of its own hash.
	reseal := func(r *ledger.Record, from, to string) {
		before := sha256.Sum256(r.Registro)
		r.Registro = bytes.Replace(r.Registro, []byte(from), []byte(to), 1)
		after := sha256.Sum256(r.Registro)
		r.Acta = bytes.Replace(r.Acta, fmt.Appendf(nil, "%x", before), fmt.Appendf(nil, "%x", after), 1)
	}
	acta := func(from, to string) func(r *ledger.Record) {
		return func(r *ledger.Record) { r.Acta = bytes.Replace(r.Acta, []byte(from), []byte(to), 1) }
	}
	f("nothing", Coincide, func(*ledger.Record) {})
	f("registro", NoCoincide, func(r *ledger.Record) { r.Registro[len(r.Registro)/2] ^= 1 })
	f("registro and its hash", NoCoincide, func(r *ledger.Record) { reseal(r, "Definitivo", "Desvirtuado") })
	f("question and hash", NoCoincide, func(r *ledger.Record) { reseal(r, `"rfc":"EFO010101AA1"`, `"rfc":"EFO010101AA2"`) })
	f("engine", NoRecalculado, func(r *ledger.Record) { reseal(r, "COMPANY/1", "COMPANY/99") })
	f("edition", NoCoincide, func(r *ledger.Record) { r.Edition[0] ^= 1 })
	f("unknown edition", SinEdicion, func(r *ledger.Record) {
		known := hex.EncodeToString(r.Edition[:])
		r.Edition[0] ^= 1
		reseal(r, known, hex.EncodeToString(r.Edition[:]))
	})
	f("id", NoCoincide, func(r *ledger.Record) { r.ID.Code++ })
	f("service", NoCoincide, func(r *ledger.Record) { r.Service = "SCREEN" })
	f("code", NoCoincide, func(r *ledger.Record) { r.Code = "SCREEN_OK" })
	f("charged and not answered", NoCoincide, func(r *ledger.Record) { r.Code = "SOURCE_UNAVAILABLE" })
	f("acta: blank", NoCoincide, acta(`,"id"`, `, "id"`))
	f("acta: day", NoCoincide, acta(`"consultado":"2026-11-20`, `"consultado":"2026-11-21`))
	f("acta: day before", NoCoincide, acta(`"consultado":"2026-11-20`, `"consultado":"2026-11-19`))
	f("acta: no moment", NoCoincide, acta(`-06:00","engine`, `-06:0x","engine`))
	f("acta: version", NoCoincide, acta(`"id":2`, `"id":1`))
	f("acta: sha256", NoCoincide, acta(`"sha256":"`, `"sha256":"0`))
	f("acta: url", NoCoincide, acta(`"url":"https`, `"url":"httpz`))
	f("acta: downloaded", NoCoincide, acta(`"descargada":"2026`, `"descargada":"2025`))
	f("acta: published", NoCoincide, acta(`"publicada_en_reset":"2026`, `"publicada_en_reset":"2025`))
	f("acta: unknown member", NoCoincide, acta(`"url"`, `"urk"`))
	f("acta: server's date that is not in the manifest", NoCoincide, acta(`,"url"`, `,"ultima_modificacion_servidor":"2026-09-18T09:30:02-06:00","url"`))
	f("acta: a member that older ones lack", Coincide, acta(`"engine_version":"1.0.0",`, ``))
	f("acta: no version", NoCoincide, func(r *ledger.Record) {
		at := bytes.Index(r.Acta, []byte(`"versiones":[`)) + len(`"versiones":[`)
		r.Acta = append(slices.Clone(r.Acta[:at]), "]}"...)
	})
}

func TestEditionsOpenAtOnceAreBounded(t *testing.T) {
	c, shas := catalogue(t, maxEditions+2)
	v := &Verifier{Sources: c, Sandbox: c}
	defer v.Close()
	open := func(i int) *openEdition {
		t.Helper()
		e, err := v.open(shas[i], false)
		if err != nil || e.fault != nil || e.Manifest().SHA256 != shas[i] || len(v.editions) > maxEditions {
			t.Fatalf("edition %d: %+v, %v; %d open", i, e, err, len(v.editions))
		}
		return e
	}
	first := open(0)
	for i := range shas {
		open(i)
		if again := open(0); again != first {
			t.Fatalf("the edition in use was opened anew after %d", i)
		}
	}
	if last := open(len(shas) - 1); last == open(1) {
		t.Error("two editions are one")
	}
}

// TestAMachineThatRefusesIsNoVerdict takes the file descriptors away.
func TestAMachineThatRefusesIsNoVerdict(t *testing.T) {
	c, _ := catalogue(t, 1)
	v := &Verifier{Sources: c, Sandbox: c}
	defer v.Close()
	r := record(t, c, "EFO010101AA1")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	f, err := v.Check(r)
	if back := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Check = %+v, %v; want EMFILE and no verdict", f, err)
	}
	if f, err := v.Check(r); err != nil || f.Verdict != Coincide {
		t.Errorf("afterwards: %+v, %v", f, err)
	}
}
