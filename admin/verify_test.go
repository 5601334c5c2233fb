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
	return recordOf(t, c, rfc, civil.Date{})
}

// recordOf answers a question about an earlier day, when past is one.
func recordOf(t *testing.T, c *snapshots.Catalogue, rfc string, past civil.Date) ledger.Record {
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
	registro, outcome, err := query.AppendRegistro(nil, query.Company{RFC: parsed, Past: past}, civil.Of(at), ed)
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
	source := ed.Source("sat_69b")
	named := func(v *snapshots.Version, published string) string {
		return fmt.Sprintf(`{"descargada":%q,"id":%d,%s"sha256":%q,"url":%q}`, v.Downloaded, v.ID, published, v.SHA256, v.URL)
	}
	versions := named(source.Version(), fmt.Sprintf(`"publicada_en_reset":%q,`, m.Sources[0].PublishedReset))
	conocida := ""
	if !past.IsZero() {
		if i, ok := source.VersionAt(past); ok && source.ChainManifest(i).ID != source.Version().ID {
			versions += "," + named(source.ChainManifest(i), "")
		}
		live, err := snapshots.NewLive(c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := query.AppendConocida(nil, query.Company{RFC: parsed, Past: past}, func(source string) (*query.Served, error) {
			k, err := live.KnownAt(source, past.End())
			if err != nil || k == nil {
				return nil, err
			}
			t.Cleanup(k.Release)
			return &query.Served{Edition: k.Edition, SHA256: k.SHA256, Published: k.Published, Entry: &k.Entry, Version: &k.Version, Find: k.Find}, nil
		})
		if err := errors.Join(err, live.Close()); err != nil {
			t.Fatal(err)
		}
		conocida = `"conocida":` + string(text) + ","
	}
	r.Acta = fmt.Appendf(nil, `{%s"consultado":%q,"engine_version":"1.0.0","registro_sha256":"%x","verification_id":%q,"versiones":[%s]}`,
		conocida, civil.Timestamp(at), sum, r.ID, versions)
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
	f("engine", NoRecalculado, func(r *ledger.Record) { reseal(r, "COMPANY/4", "COMPANY/2") })
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

// TestTheVerifierKnowsThePast lays altered answers about earlier days beside
// their editions: cortes of 10, 11 and 12 August, published on 19 September.
func TestTheVerifierKnowsThePast(t *testing.T) {
	c, _ := catalogue(t, 3)
	v := &Verifier{Sources: c, Sandbox: c}
	defer v.Close()
	f := func(what string, month time.Month, day int, want string, from, to string) {
		t.Helper()
		r := recordOf(t, c, "EFO010101AA1", civil.Date{Year: 2026, Month: month, Day: day})
		altered := bytes.Replace(r.Acta, []byte(from), []byte(to), 1)
		if from != to && bytes.Equal(altered, r.Acta) {
			t.Fatalf("%s: nothing was altered in %s", what, r.Acta)
		}
		r.Acta = altered
		if got, err := v.Check(r); err != nil || got.Verdict != want {
			t.Errorf("%s: %+v, %v; want %s", what, got, err, want)
		}
	}
	f("before the first version", 8, 9, Coincide, "", "")
	f("a version of that day, before the first edition", 8, 10, Coincide, "", "")
	f("the day of the editions", 9, 19, Coincide, "", "")
	f("since then", 11, 1, Coincide, "", "")
	f("today", 11, 20, Coincide, "", "")
	f("a version of no part in it", 8, 9, NoCoincide, `"versiones":[{`, `"versiones":[{"descargada":"2026-09-19T05:00:00-06:00","id":1},{`)
	f("another version is named", 8, 10, NoCoincide, `"id":1,`, `"id":2,`)
	f("a version that is served no more", 8, 10, NoCoincide, `"id":1,`, `"id":1,"publicada_en_reset":"2026-09-19T05:00:00-06:00",`)
	f("nothing was known", 11, 1, NoCoincide, `"sat_69b_bis":null`, `"sat_69b_bis":0`)
	f("another edition", 11, 1, NoCoincide, `"edicion":3`, `"edicion":2`)
	f("another situation", 11, 1, NoCoincide, `"situacion":"Definitivo"`, `"situacion":"Presunto"`)
	f("another download", 11, 1, NoCoincide, `"source_version_id":3`, `"source_version_id":2`)
	f("something was known before the first edition", 8, 10, NoCoincide, `"sat_69b":null`, `"sat_69b":{}`)
	f("conocida left out", 8, 10, NoCoincide, `"conocida":{"sat_69b":null,"sat_69b_bis":null},`, ``)

	r := record(t, c, "EFO010101AA1")
	r.Acta = bytes.Replace(r.Acta, []byte(`{`), []byte(`{"conocida":{"sat_69b":null,"sat_69b_bis":null},`), 1)
	if got, err := v.Check(r); err != nil || got.Verdict != NoCoincide {
		t.Errorf("conocida of an ordinary answer: %+v, %v", got, err)
	}
	// A version of that day that the acta leaves out.
	r = recordOf(t, c, "EFO010101AA1", civil.Date{Year: 2026, Month: 8, Day: 10})
	at := bytes.LastIndex(r.Acta, []byte(`,{"descargada"`))
	r.Acta = append(slices.Clone(r.Acta[:at]), "]}"...)
	if got, err := v.Check(r); err != nil || got.Verdict != NoCoincide {
		t.Errorf("version of that day left out: %+v, %v", got, err)
	}
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
