package catalog_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func on(s string) civil.Date { return must(civil.Parse(s)) }

// prepared is a catalogue whose editions are prepared.
type prepared struct {
	t    *testing.T
	c    *snapshots.Catalogue
	live *snapshots.Live
	now  time.Time
}

func newPrepared(t *testing.T) *prepared {
	p := &prepared{t: t, c: must(snapshots.OpenCatalogue(t.TempDir())), now: time.Date(2026, 10, 1, 12, 0, 0, 0, civil.Zone)}
	p.live = must(snapshots.NewLive(p.c, catalog.Prepare))
	t.Cleanup(func() {
		if err := p.live.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// load puts a file into service, and returns the set that answers then.
func (p *prepared) load(source, corte string, content []byte) *catalog.Set {
	p.t.Helper()
	r, err := ingest.Ingest(p.t.Context(), p.c, ingest.Request{
		Source: source, Name: "x", Corte: on(corte), Now: p.now,
		Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	})
	if err != nil || r.Outcome != ingest.Activated {
		p.t.Fatalf("%s %v %v", r.Outcome, r.Faults, err)
	}
	if swapped, err := p.live.Refresh(); !swapped || err != nil {
		p.t.Fatal(swapped, err)
	}
	return p.set()
}

func (p *prepared) set() *catalog.Set {
	ed := p.live.Acquire()
	defer ed.Release()
	return catalog.Of(ed)
}

func file(t *testing.T, stage int, name string) []byte {
	t.Helper()
	content, ok := mirror.File(stage, name)
	if !ok {
		t.Fatalf("the mirror has no %s", name)
	}
	return content
}

// TestSetOfAnEdition: each source replaces its own part, once, and what an edition
// does not change is the same object.
func TestSetOfAnEdition(t *testing.T) {
	p := newPrepared(t)
	embedded := catalog.Embedded()
	first := p.set()
	if first.FIX != embedded.FIX || first.Banks != embedded.Banks || first.Phones != embedded.Phones || first != p.set() {
		t.Error("an edition without sources has other catalogues than the binary")
	}
	fix := p.load("banxico_fix", "2026-09-17", file(t, 3, mirror.FIX))
	if fix.FIX == embedded.FIX || fix.Banks != embedded.Banks || fix.Regimes != embedded.Regimes || p.set() != fix {
		t.Errorf("%+v", fix)
	}
	v := fix.FIX.Version()
	if v.Loaded == nil || v.Loaded.ID != 1 || v.Date != mirror.LastFIX(3) || v.Loaded.Activated == "" || v.Loaded.Corte != v.Date ||
		v.Basis != "banxico_fix "+v.Date.String()+" sha256 "+v.SHA256[:12] || fix.FIX.Last().Determined != v.Date || len(fix.FIX.Disagreements()) != 0 {
		t.Errorf("%+v", v)
	}
	banks := p.load("banxico_spei", "2026-09-01", file(t, 3, mirror.SPEI))
	if banks.FIX != fix.FIX || banks.Banks == embedded.Banks {
		t.Error("the series was read again, or the list was not")
	}
	phones := p.load("ift_numeracion", "2026-09-02", file(t, 3, mirror.Numbering))
	if phones.FIX != fix.FIX || phones.Banks != banks.Banks || phones.Phones.Plan() == nil || embedded.Phones.Plan() != nil || embedded.Banks.List() != nil {
		t.Error("parts that did not change were read again, or those of the binary changed")
	}
	// Another version of one source replaces that part alone.
	again := p.load("banxico_spei", "2026-09-20", bytes.Replace(file(t, 3, mirror.SPEI), []byte("Pagos Imaginarios"), []byte("Pagos Reales"), 1))
	if again.Banks == banks.Banks || again.FIX != fix.FIX || again.Phones != phones.Phones {
		t.Error("the wrong parts were read")
	}
}

// TestSeriesAgainstTheBinary: a value that the binary has otherwise is the
// official one, and is told.
func TestSeriesAgainstTheBinary(t *testing.T) {
	p := newPrepared(t)
	set := p.load("banxico_fix", "2026-09-17", bytes.Replace(file(t, 3, mirror.FIX), []byte(`"02/01/2020","dato":"18.8817"`), []byte(`"02/01/2020","dato":"18.8818"`), 1))
	x, err := set.FIX.At(catalog.Determination, on("2020-01-02"), on("2026-10-01"))
	was, ok := set.FIX.Disagrees(on("2020-01-02"))
	if err != nil || x.Rate.String() != "18.8818" || !ok || was.String() != "18.8817" || len(set.FIX.Disagreements()) != 1 {
		t.Errorf("%+v %v, %v %v", x, err, was, ok)
	}
	if _, ok := set.FIX.Disagrees(on("2020-01-03")); ok {
		t.Error("a day that agrees does not")
	}
	if a, ok, err := p.c.LastAttempt("banxico_fix"); !ok || err != nil || len(a.Notices) != 1 || a.Notices[0].Code != "SERIE_DIFIERE" ||
		!strings.Contains(a.Notices[0].Message, "2020-01-02 (18.8817, ahora 18.8818)") {
		t.Errorf("%+v %v", a, err)
	}
	// N/E is a day without value, also where the calendar would expect one.
	day := on("2026-05-06")
	text := fmt.Sprintf(`"%02d/%02d/%d","dato":"`, day.Day, day.Month, day.Year)
	value := mirror.InventedFIX(day).String()
	q := newPrepared(t)
	set = q.load("banxico_fix", "2026-09-17", bytes.Replace(file(t, 3, mirror.FIX), []byte(text+value), []byte(text+"N/E"), 1))
	x, err = set.FIX.At(catalog.Determination, day, on("2026-10-01"))
	if err != nil || x.Determined != on("2026-05-04") && x.Determined != on("2026-05-05") || x.Gap != catalog.BankHoliday || x.GapExpected {
		t.Errorf("%+v %v", x, err)
	}
}

// TestBanksBetweenLists: what both lists say holds between them, and nothing else.
func TestBanksBetweenLists(t *testing.T) {
	p := newPrepared(t)
	list := string(file(t, 3, mirror.SPEI))
	list = strings.Replace(list, `["90646","STP"],`, "", 1)
	list = strings.Replace(list, `["40002","Banamex"]`, `["40002","Banco Otro"]`, 1)
	banks := p.load("banxico_spei", "2026-09-01", []byte(list)).Banks
	f := func(code, day, spei, name string, changed bool, want catalog.Standing) {
		t.Helper()
		a, err := banks.On(code, on(day))
		if err != nil || a.Row.SPEI != spei || a.Row.Name() != name || a.Row.Changed != changed || a.Standing != want || a.Row.InSPEI != (spei != "") {
			t.Errorf("%s on %s: %+v %v", code, day, a, err)
		}
	}
	f("012", "2026-09-01", "40012", "BBVA Mexico", false, catalog.InForce)
	f("012", "2026-08-31", "40012", "BBVA Mexico", false, catalog.InForce) // in both lists
	// A participant that is new, and one that left.
	f("990", "2026-09-01", "90990", "Pagos Imaginarios", false, catalog.InForce)
	f("990", "2026-08-31", "90990", "Pagos Imaginarios", false, catalog.Unknown)
	f("646", "2026-09-01", "", "STP", false, catalog.Ended)
	f("646", "2026-08-31", "", "STP", false, catalog.Unknown)
	f("646", "2026-03-24", "", "STP", false, catalog.Unknown)
	// In neither list since the first of them.
	f("037", "2026-08-31", "", "INTERACCIONES", false, catalog.Ended)
	f("037", "2026-03-24", "", "INTERACCIONES", false, catalog.Unknown)
	// Another name: the SAT's legal name is not its own any more.
	f("002", "2026-09-01", "40002", "Banco Otro", true, catalog.InForce)
	// The central bank's tests are no bank.
	if _, err := banks.On("805", on("2026-09-01")); err == nil || !strings.Contains(err.Error(), "banxico_spei, versión 2026-09-01") {
		t.Errorf("805: %v", err)
	}
	if a, err := banks.Participant("90990", on("2026-09-01")); err != nil || a.Row.Code != "990" || a.Row.Class != catalog.NonBank {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := banks.Participant("90646", on("2026-09-01")); err == nil {
		t.Error("who left is a participant")
	}
	if v, l := banks.Version(), banks.List(); v.ID != "bancos" || banks.Listed() != on("2026-09-01") || banks.Basis() != v.Basis+"; "+l.Basis {
		t.Errorf("%+v %+v %q", v, l, banks.Basis())
	}
	// A list that is older than that of the binary changes nothing.
	q := newPrepared(t)
	if old := q.load("banxico_spei", "2026-03-24", []byte(list)).Banks; old != catalog.Embedded().Banks {
		t.Errorf("%+v", old.List())
	}
}

// TestPlan: a number is in a range, in none, or in several.
func TestPlan(t *testing.T) {
	p := newPrepared(t)
	plan := string(file(t, 3, mirror.Numbering)) +
		"X,8180000000,8180009999,10000,FIJO,UNO,01/01/2020,\nX,8180005000,8180005999,1000,CPP,DOS,01/01/2020,\nX,8180020000,8180020999,1000,OTRA,TRES,ayer,\n"
	phones := p.load("ift_numeracion", "2026-09-02", []byte(plan)).Phones
	f := func(number, area, want string) {
		t.Helper()
		a, err := phones.On(number, on("2026-10-01"))
		got := "-"
		if r := a.Row.Assigned; r != nil {
			got = fmt.Sprintf("%s %s %s %s %s %v", r.Line, r.Mode, r.Provider, r.Zone, r.Since, r.Ambiguous)
		}
		if err != nil || got != want || a.Row.Area.Code != area || a.Standing != catalog.InForce {
			t.Errorf("%s: %q %+v %v", number, got, a, err)
		}
	}
	f("33 1234 0000", "33", "fijo FIJO TELEFONÍA IMAGINARIA, S.A. DE C.V. GUADALAJARA, JAL 2003-03-14 false")
	f("33 1234 9999", "33", "fijo FIJO TELEFONÍA IMAGINARIA, S.A. DE C.V. GUADALAJARA, JAL 2003-03-14 false")
	f("33 1235 0000", "33", "movil CPP MÓVILES DE EJEMPLO, S.A. DE C.V. GUADALAJARA, JAL 2011-11-09 false")
	f("55 1235 0001", "55", `movil MPP LÍNEA "SINTÉTICA", S.A.P.I. DE C.V. CIUDAD DE MEXICO, CDMX 2009-05-22 false`)
	f("33 1236 0000", "33", "-")
	f("33 1233 9999", "33", "-")
	f("81 8002 0000", "81", " OTRA TRES X  false")
	// Two ranges hold the second, one the others.
	f("81 8000 4999", "81", "fijo FIJO UNO X 2020-01-01 false")
	f("81 8000 5500", "81", "     true")
	f("81 8000 6000", "81", "fijo FIJO UNO X 2020-01-01 false")
	f("81 8001 0000", "81", "-")
	// An area code that is newer than the list.
	f("210 123 0000", "210", "fijo FIJO REDES DE PAPEL SA DE CV VILLA FICTICIA, JAL 2026-05-05 false")
	if _, err := phones.On("2111230000", on("2026-10-01")); err == nil {
		t.Error("211 is an area code")
	}
	if a, err := catalog.Embedded().Phones.On("3312340000", on("2026-10-01")); err != nil || a.Row.Assigned != nil {
		t.Errorf("%+v %v", a, err)
	}
}

// TestLoadedLookUpsDoNotAllocate: what is loaded costs no more than what is built in.
func TestLoadedLookUpsDoNotAllocate(t *testing.T) {
	p := newPrepared(t)
	p.load("banxico_fix", "2026-09-17", file(t, 3, mirror.FIX))
	p.load("banxico_spei", "2026-09-01", file(t, 3, mirror.SPEI))
	p.load("ift_numeracion", "2026-09-02", file(t, 3, mirror.Numbering))
	ed := p.live.Acquire()
	defer ed.Release()
	now := on("2026-10-01")
	f := func(name string, lookUp func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, lookUp); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	f("bank", func() { _, _ = catalog.Of(ed).Banks.On("990", now) })
	f("FIX", func() { _, _ = catalog.Of(ed).FIX.At(catalog.Payment, on("2026-08-03"), now) })
	// A number has its digits copied, with a plan or without.
	number := func() { _, _ = catalog.Of(ed).Phones.On("5512345678", now) }
	builtIn := func() { _, _ = catalog.Embedded().Phones.On("5512345678", now) }
	if a, b := testing.AllocsPerRun(100, number), testing.AllocsPerRun(100, builtIn); a > b {
		t.Errorf("telephone: %v allocations with a plan, %v without", a, b)
	}
}

// TestRowsThatNobodyUnderstands keep their edition out, as damage does; the one
// before goes on serving.
func TestRowsThatNobodyUnderstands(t *testing.T) {
	p := newPrepared(t)
	good := p.load("banxico_fix", "2026-09-17", file(t, 2, mirror.FIX))
	unlock := must(p.c.Lock())
	defer unlock()
	stage := must(p.c.Stage("banxico_fix"))
	if _, err := stage.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := stage.Seal(); err != nil {
		t.Fatal(err)
	}
	stage.Begin(catalog.FIXSource)
	if err := stage.Add(snapshots.Row{ID: []string{"2026-09-18"}, Raw: []string{"18/09/2026", "x"}, Norm: []string{"2026-09-18", "x"}}); err != nil {
		t.Fatal(err)
	}
	v := must(stage.Accept(snapshots.Origin{URL: "x", Obtained: "x", Corte: on("2026-09-18"), CorteFrom: snapshots.CorteOfFile, Downloaded: p.now}))
	must(p.c.Publish(v, p.now))
	for range 2 {
		if swapped, err := p.live.Refresh(); swapped || err == nil || !strings.Contains(err.Error(), "filas de banxico_fix que este programa entienda") {
			t.Errorf("%v %v", swapped, err)
		}
	}
	if p.set() != good || p.live.Fault() == nil {
		t.Error("the edition before does not serve")
	}
}
