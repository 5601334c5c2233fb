package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cotejo/canon"
	"cotejo/civil"

	"github.com/google/go-cmp/cmp"
)

const (
	textOne = "1|AAA010101AAA|500-1|Alfa, S.A.|Presunto\n" +
		"2|BBB020202BB1|500-1|Beta|Definitivo\n" +
		"3|XXXXXXXXXXXX|500-2|Información suprimida|Presunto\n" +
		"4|CACX7605101P8|500-3|Ñandú & Compañía|Presunto\n"
	textTwo = "1|AAA010101AAA|500-1|Alfa, S.A.|Definitivo\n" +
		"2|CACX7605101P8|500-3|ÑANDÚ & Compañía|Presunto\n" +
		"3|XXXXXXXXXXXX|500-2|Información suprimida|Presunto\n" +
		"4|XXXXXXXXXXXX|500-2|Información suprimida por sentencia|Definitivo\n" +
		"5|DDD040404DD4|500-4|Delta|Presunto\n"
)

func TestPublishAndReopen(t *testing.T) {
	c := newTest(t)
	first := publish(t, c, testSchema, 5, textOne)
	if first.Number != 1 || len(first.Sources) != 1 || first.Published != "2026-01-05T12:00:00-06:00" {
		t.Errorf("first edition: %+v", first)
	}
	second := publish(t, c, testSchema, 9, textTwo)

	again := openTest(t, c.dir)
	latest, err := again.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(second, latest); diff != "" {
		t.Errorf("what was published is not what is read:\n%s", diff)
	}
	bySHA, err := again.EditionBySHA256(first.SHA256)
	if err != nil || bySHA.Number != 1 {
		t.Errorf("EditionBySHA256 = %d, %v", bySHA.Number, err)
	}
	if _, err := again.EditionBySHA256(strings.Repeat("0", 64)); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown edition: %v", err)
	}

	e := openEdition(t, again, latest)
	s := e.Source("lista")
	if s == nil || e.Source("otra") != nil {
		t.Fatal("Source")
	}
	want := []Row{{
		ID:   []string{"CACX7605101P8", "500-3"},
		Raw:  []string{"2", "CACX7605101P8", "500-3", "ÑANDÚ & Compañía", "Presunto"},
		Norm: []string{"2", "CACX7605101P8", "500-3", "ÑANDÚ & COMPAÑÍA", "Presunto"},
	}}
	if diff := cmp.Diff(want, found(t, s, "CACX7605101P8")); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"", "BBB020202BB1", redacted, "CACX7605101P", "CACX7605101P8\x00500-3"} {
		if rows := found(t, s, none); len(rows) != 0 {
			t.Errorf("Find(%q) found %v", none, rows)
		}
	}
	for rfc, want := range map[string][]uint{"AAA010101AAA": {0}, "BBB020202BB1": {0} /* gone, but once there */, "DDD040404DD4": {0}, "ZZZ010101ZZ1": nil} {
		if got := mentions(t, e, rfc); !slices.Equal(got, want) {
			t.Errorf("Mentions(%s) = %v, want %v", rfc, got, want)
		}
	}
	v := s.Version()
	if v.ID != 2 || v.Rows != 5 || v.Suppressed != 2 || v.OrderDate != day(9) || v.Bytes != int64(len(textTwo)) {
		t.Errorf("version: %+v", v)
	}
	if got := s.Chain(); len(got) != 2 || got[0].Rows != 4 || got[1].Corte != day(9) || got[1].Suppressed != 2 {
		t.Errorf("chain: %+v", got)
	}
	in, err := again.Official(*v)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, in); string(got) != textTwo {
		t.Errorf("official bytes: %q", got)
	}
	checkCatalogue(t, again)
	if left, _ := os.ReadDir(c.path(tmpDir)); len(left) != 0 {
		t.Errorf("left in tmp: %v", left)
	}
}

// Two catalogues that are given the same files, in another row order and at
// other moments, agree on every digest and, with the same library, every byte.
func TestDeterminism(t *testing.T) {
	reverse := func(text string) string {
		lines := slices.Collect(strings.Lines(text))
		slices.Reverse(lines)
		return strings.Join(lines, "")
	}
	a, b, r := newTest(t), newTest(t), newTest(t)
	var ma, mb, mr EditionManifest
	for i, text := range []string{textOne, textTwo, textOne} {
		ma = publish(t, a, testSchema, 3+i, text)
		mb = publish(t, b, testSchema, 3+i, text)
		mr = publish(t, r, testSchema, 3+i, reverse(text))
	}
	if ma.SHA256 != mb.SHA256 {
		t.Errorf("edicion_sha256 %s and %s", ma.SHA256, mb.SHA256)
	}
	ea, eb, er := ma.Sources[0], mb.Sources[0], mr.Sources[0]
	if diff := cmp.Diff(ea, eb); diff != "" {
		t.Error(diff)
	}
	if er.RowsDigest != ea.RowsDigest {
		t.Error("filas_digest depends on the order of the file")
	}
	if er.SHA256 == ea.SHA256 || er.HistoryDigest == ea.HistoryDigest || mr.SHA256 == ma.SHA256 {
		t.Error("other official bytes must give another evidence")
	}
	for _, path := range files(t, a) {
		x, err := os.ReadFile(a.path(path))
		if err != nil {
			t.Fatal(err)
		}
		if y, err := os.ReadFile(b.path(path)); err != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs (%v)", path, err)
		}
	}
}

// The digests are recomputed here from the package comment alone.
func TestDigestsAsDocumented(t *testing.T) {
	c := newTest(t)
	m := publish(t, c, testSchema, 5, textOne)
	lines := []string{
		`{"id":["AAA010101AAA","500-1"],"norm":["1","AAA010101AAA","500-1","ALFA, S.A.","Presunto"],"oficial":["1","AAA010101AAA","500-1","Alfa, S.A.","Presunto"],"ordinal":0}`,
		`{"id":["BBB020202BB1","500-1"],"norm":["2","BBB020202BB1","500-1","BETA","Definitivo"],"oficial":["2","BBB020202BB1","500-1","Beta","Definitivo"],"ordinal":0}`,
		`{"id":["CACX7605101P8","500-3"],"norm":["4","CACX7605101P8","500-3","ÑANDÚ & COMPAÑÍA","Presunto"],"oficial":["4","CACX7605101P8","500-3","Ñandú & Compañía","Presunto"],"ordinal":0}`,
		`{"id":["XXXXXXXXXXXX","500-2"],"norm":["3","XXXXXXXXXXXX","500-2","INFORMACIÓN SUPRIMIDA","Presunto"],"oficial":["3","XXXXXXXXXXXX","500-2","Información suprimida","Presunto"],"ordinal":0,"suprimida":true}`,
	}
	sum := func(lines ...string) string {
		h := sha256.Sum256([]byte(strings.Join(lines, "\n") + "\n"))
		return hex.EncodeToString(h[:])
	}
	if want := sum(lines...); m.Sources[0].RowsDigest != want {
		t.Errorf("filas_digest %s, want %s", m.Sources[0].RowsDigest, want)
	}
	sha1 := m.Sources[0].SHA256

	m = publish(t, c, testSchema, 9, textTwo)
	e := m.Sources[0]
	history := []string{
		`[{"fecha_de_orden":"2026-01-05","sha256":"` + sha1 + `"},{"fecha_de_orden":"2026-01-09","sha256":"` + e.SHA256 + `"}]`,
		`{"desde":0,"eventos":[{"antes":["Presunto"],"columnas":[4],"tipo":"C","version":1}],"id":["AAA010101AAA","500-1"],"ordinal":0,"presente":true}`,
		`{"desde":0,"eventos":[{"antes":["2","BBB020202BB1","500-1","BETA","Definitivo"],"tipo":"R","version":1}],"id":["BBB020202BB1","500-1"],"ordinal":0,"presente":false}`,
		`{"desde":0,"eventos":[],"id":["CACX7605101P8","500-3"],"ordinal":0,"presente":true}`,
		`{"desde":1,"eventos":[{"tipo":"A","version":1}],"id":["DDD040404DD4","500-4"],"ordinal":0,"presente":true}`,
	}
	if want := sum(history...); e.HistoryDigest != want {
		t.Errorf("historia_digest %s, want %s", e.HistoryDigest, want)
	}
	for _, line := range append(lines, history...) {
		if text, err := canon.Transform([]byte(line)); err != nil || string(text) != line {
			t.Errorf("not canonical: %s", line)
		}
	}
	entry := fmt.Sprintf(`[{"corte":"2026-01-09","fecha_de_orden":"2026-01-09","filas_digest":"%s","historia_digest":"%s","lector":1,"sha256":"%s","source":"lista"}]`, e.RowsDigest, e.HistoryDigest, e.SHA256)
	if h := sha256.Sum256([]byte(entry)); hex.EncodeToString(h[:]) != m.SHA256 {
		t.Errorf("edicion_sha256 %s is not that of %s", m.SHA256, entry)
	}
	m.Sources[0].Corte = civil.Date{}
	got, err := m.evidence()
	if h := sha256.Sum256([]byte(strings.Replace(entry, `"corte":"2026-01-09"`, `"corte":null`, 1))); err != nil || hex.EncodeToString(h[:]) != got {
		t.Errorf("an unknown corte is not null (%v)", err)
	}
}

func TestPublishedResetAndUnchanged(t *testing.T) {
	c := newTest(t)
	other := testSchema
	other.Source = "otra"
	publish(t, c, testSchema, 3, textOne)
	two := publish(t, c, other, 4, textOne)
	if got := two.Sources[0].PublishedReset; got != civil.Timestamp(moment(3)) {
		t.Errorf("an untouched source got publicada_en_reset %s", got)
	}
	if got := two.Sources[1].PublishedReset; got != civil.Timestamp(moment(4)) {
		t.Errorf("a new source got publicada_en_reset %s", got)
	}
	// The same bytes of the same day again: another version, the same edition.
	v := accept(t, c, other, 4, textOne)
	if v.ID != 3 {
		t.Errorf("version id %d", v.ID)
	}
	same, err := c.Publish(v, moment(6))
	if err != nil || same.Number != 2 {
		t.Errorf("identical version: edition %d, %v", same.Number, err)
	}
	three := publish(t, c, other, 7, textTwo)
	if three.Number != 3 || three.Sources[0].PublishedReset != civil.Timestamp(moment(3)) || three.Sources[1].PublishedReset != civil.Timestamp(moment(7)) {
		t.Errorf("third edition: %+v", three)
	}
	checkCatalogue(t, c)
}

func TestOriginDates(t *testing.T) {
	c := newTest(t)
	f := func(o Origin, order civil.Date, published string) {
		t.Helper()
		s, err := stageText(c, testSchema, textOne)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Accept(o)
		if err != nil {
			t.Fatal(err)
		}
		if v.OrderDate != order || v.Published != published || v.Corte != o.Corte {
			t.Errorf("%+v: fecha_de_orden %v, publicada %q", o, v.OrderDate, v.Published)
		}
	}
	server := time.Date(2026, 1, 9, 3, 0, 0, 0, time.UTC) // still the 8th in Mexico City
	f(Origin{Corte: day(2), Published: server, Downloaded: moment(10)}, day(2), "2026-01-08T21:00:00-06:00")
	f(Origin{Published: server, Downloaded: moment(10)}, day(8), "2026-01-08T21:00:00-06:00")
	f(Origin{Downloaded: moment(10)}, day(10), "")

	s, err := stageText(c, testSchema, textOne)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	if _, err := s.Accept(Origin{}); err == nil {
		t.Error("a version without a download moment was accepted")
	}
}

func TestQuarantine(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 3, textOne)
	s, err := stageText(c, testSchema, textTwo)
	if err != nil {
		t.Fatal(err)
	}
	faults := []Fault{{Code: "MENOS_FILAS", Message: "faltan filas; revise el archivo"}}
	v, err := s.Quarantine(origin(4), faults)
	if err != nil {
		t.Fatal(err)
	}
	if v.ID != 2 || v.State != "cuarentena" || v.RowsFile != nil || v.Rows != 5 || !slices.Equal(v.Faults, faults) {
		t.Errorf("quarantined version: %+v", v)
	}
	if _, err := c.Publish(v, moment(4)); !errors.Is(err, ErrQuarantined) {
		t.Errorf("publishing it: %v", err)
	}
	if m, err := c.LatestEdition(); err != nil || m.Number != 1 {
		t.Errorf("edition %d, %v", m.Number, err)
	}
	in, err := c.Official(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, in); string(got) != textTwo {
		t.Error("the quarantined bytes are not there")
	}
	// The operator accepts the same bytes: a new id, the same folder.
	if m := publish(t, c, testSchema, 4, textTwo); m.Number != 2 || m.Sources[0].VersionID != 3 {
		t.Errorf("accepted: %+v", m)
	}
	all, _, err := c.Versions()
	if err != nil || len(all) != 3 || all[1].Official != all[2].Official {
		t.Errorf("versions: %+v, %v", all, err)
	}
	checkCatalogue(t, c)
}

func TestRowRefusals(t *testing.T) {
	c := newTest(t)
	s, err := c.Stage("lista")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Discard()
	cell := []string{"1", "2", "3", "4", "5"}
	good := Row{ID: []string{"A", "B"}, Raw: cell, Norm: cell}
	if err := s.Add(good); err == nil {
		t.Error("a row before Begin was taken")
	}
	s.Begin(testSchema)
	if err := s.Add(good); err != nil {
		t.Fatal(err)
	}
	f := func(want string, change func(r *Row)) {
		t.Helper()
		r := good
		change(&r)
		if err := s.Add(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	f("no es texto", func(r *Row) { r.ID = []string{"A\x00", "B"} })
	f("no es texto", func(r *Row) { r.ID = []string{"\xff", "B"} })
	f("partes", func(r *Row) { r.ID = []string{"A"} })
	f("partes", func(r *Row) { r.ID = nil })
	f("celdas", func(r *Row) { r.Raw = cell[:4] })
	f("celdas", func(r *Row) { r.Norm = nil })
	f("UTF-8", func(r *Row) { r.Norm = []string{"1", "2", "3", "4", "\xd1"} })
	f("el máximo", func(r *Row) { r.Raw = []string{"1", "2", "3", "4", strings.Repeat("x", maxRowBytes)} })
	f("el máximo", func(r *Row) { r.ID = []string{"A", strings.Repeat("x", maxIDBytes)} })
	if s.Rows() != 1 {
		t.Errorf("%d rows", s.Rows())
	}

	bad := func(want string, change func(s *Schema)) {
		t.Helper()
		schema := testSchema
		change(&schema)
		s.Begin(schema)
		if err := s.Add(good); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
	bad("lista", func(s *Schema) { s.Source = "otra" })
	bad("lector", func(s *Schema) { s.Reader = 0 })
	bad("columnas", func(s *Schema) { s.Columns = nil })
	bad("columnas", func(s *Schema) { s.Columns = make([]Column, 65) })
	bad("título", func(s *Schema) { s.Columns = make([]Column, 5) })
	for _, source := range []string{"", "../x", "A", "1a", "a/b", strings.Repeat("a", 65)} {
		if _, err := c.Stage(source); err == nil {
			t.Errorf("Stage(%q) was taken", source)
		}
	}
}

// Rows that share an ID are numbered by their normalised tracked cells, and
// redacted ones come last: a change elsewhere in the file moves nothing.
func TestOrdinals(t *testing.T) {
	c := newTest(t)
	m := publish(t, c, testSchema, 3, "9|AAA010101AAA|1|b|Presunto\n"+
		"2|AAA010101AAA|1|A|Presunto\n"+
		"8|AAA010101AAA|1|a|Presunto\n"+
		"1|AAA010101AAA|1|a|Definitivo\n"+
		"7|AAA010101AAA|0|z|Presunto\n")
	var got []string
	for _, r := range found(t, openEdition(t, c, m).Source("lista"), "AAA010101AAA") {
		got = append(got, fmt.Sprintf("%s/%d:%s %s", r.ID[1], r.Ordinal, r.Raw[0], r.Raw[3]))
	}
	want := []string{"0/0:7 z", "1/0:1 a", "1/1:2 A", "1/2:8 a", "1/3:9 b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	a, b := openTest(t, dir), openTest(t, dir)
	unlock, err := a.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lock(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	if _, err := a.Lock(); !errors.Is(err, ErrBusy) {
		t.Errorf("the same one again: %v", err)
	}
	for _, err := range []error{
		func() error { _, err := b.Stage("lista"); return err }(),
		func() error { _, err := b.Publish(Version{}, moment(1)); return err }(),
		func() error { _, err := b.Rebuild(Version{}, testSchema, readLista); return err }(),
		func() error { _, err := b.RebuildHistory(EditionEntry{}); return err }(),
	} {
		if !errors.Is(err, ErrNotLocked) {
			t.Errorf("without the lock: %v", err)
		}
	}
	left := filepath.Join(dir, tmpDir, "sobra")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unlock()
	unlock()
	unlock, err = b.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("Lock left an interrupted writer's file")
	}
}

func TestAttempts(t *testing.T) {
	c := newTest(t)
	if a, ok, err := c.LastAttempt("lista"); err != nil || ok {
		t.Errorf("never looked at: %+v, %v", a, err)
	}
	f := func(want Attempt, good bool) {
		t.Helper()
		want.Source, want.At = "lista", civil.Timestamp(moment(5))
		err := c.RecordAttempt(want)
		if (err == nil) != good {
			t.Errorf("%+v: %v", want, err)
		}
		if got, ok, err := c.LastAttempt("lista"); good && (!ok || err != nil || !cmp.Equal(got, want)) {
			t.Errorf("%+v came back as %+v, %v", want, got, err)
		}
	}
	faults := []Fault{{"HTML", "una página"}}
	f(Attempt{Outcome: OutcomeActivated, VersionID: 1}, true)
	f(Attempt{Outcome: OutcomeUnchanged, VersionID: 1}, true)
	f(Attempt{Outcome: OutcomeQuarantined, VersionID: 2, Faults: faults}, true)
	f(Attempt{Outcome: OutcomeFailed, Error: "respondió 403"}, true)
	waiting := Attempt{Source: "lista", At: civil.Timestamp(moment(1)), Outcome: OutcomeQuarantined, VersionID: 2, Faults: faults}
	failed := Attempt{Source: "lista", At: civil.Timestamp(moment(1)), Outcome: OutcomeFailed, Error: "respondió 403"}
	f(Attempt{Outcome: OutcomeFailed, Error: "respondió 403", Before: &waiting}, true)
	f(Attempt{Outcome: OutcomeFailed, Error: "respondió 403", Before: &failed}, false)
	f(Attempt{Outcome: OutcomeUnchanged, VersionID: 1, Before: &waiting}, false)
	f(Attempt{Outcome: OutcomeFailed}, false)
	f(Attempt{Outcome: OutcomeQuarantined, VersionID: 2}, false)
	f(Attempt{Outcome: OutcomeUnchanged, VersionID: 1, Faults: faults}, false)
	f(Attempt{Outcome: OutcomeUnchanged}, false)
	f(Attempt{Outcome: "otra", VersionID: 1}, false)
	if err := c.RecordAttempt(Attempt{Source: "../lista", At: civil.Timestamp(moment(1)), Outcome: OutcomeUnchanged, VersionID: 1}); err == nil {
		t.Error("a path was taken for a source")
	}
	long := Attempt{Source: "lista", At: civil.Timestamp(moment(1)), Outcome: OutcomeFailed, Error: strings.Repeat("ñ", 5000) + "\xff"}
	if err := c.RecordAttempt(long); err != nil {
		t.Fatal(err)
	}
	if a, _, err := c.LastAttempt("lista"); err != nil || len(a.Error) > maxAttemptError+8 || !strings.HasSuffix(a.Error, "ñ…") {
		t.Errorf("an error of %d bytes, %v", len(a.Error), err)
	}
	unchanged := func(a Attempt) Attempt {
		a.Outcome, a.VersionID = OutcomeUnchanged, 1
		return a
	}
	good := Validators{URL: "https://a.mx/x", ETag: `"1"`, SHA256: strings.Repeat("a", 64)}
	f(unchanged(Attempt{Validators: &good, Notices: []Notice{{"ENLACE_CAMBIO", "cambió"}}}), true)
	f(unchanged(Attempt{Validators: &Validators{SHA256: good.SHA256}}), false)
	f(unchanged(Attempt{Validators: &Validators{URL: good.URL, SHA256: "a"}}), false)
	talkative := unchanged(Attempt{Source: "lista", At: civil.Timestamp(moment(1)), Notices: make([]Notice, 100)})
	talkative.Notices[0].Message = long.Error
	if err := c.RecordAttempt(talkative); err != nil {
		t.Fatal(err)
	}
	if a, _, err := c.LastAttempt("lista"); err != nil || len(a.Notices) != maxNotices || len(a.Notices[0].Message) > maxAttemptError+8 {
		t.Errorf("%d notices, %v", len(a.Notices), err)
	}
	if talkative.Notices[0].Message != long.Error {
		t.Error("the caller's notice was shortened")
	}
	overwrite(t, c.path(checkedPath("lista")), []byte("{}\n"))
	_, _, err := c.LastAttempt("lista")
	wantCorrupt(t, err, checkedPath("lista"))
	if err := c.RecordAttempt(attempt(6)); err != nil {
		t.Errorf("the next attempt does not replace a damaged file: %v", err)
	}
}

// The same bytes under other dates correct the version in service, also to an
// earlier day, and stand for it in the history: nothing happened in the list.
func TestCorrectedDate(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 3, textOne)
	publish(t, c, testSchema, 9, textTwo)
	if m := publish(t, c, testSchema, 9, textTwo); m.Number != 2 {
		t.Errorf("nothing to correct, but edition %d", m.Number)
	}
	m := publish(t, c, testSchema, 5, textTwo)
	e := m.Sources[0]
	if m.Number != 3 || !slices.Equal(e.Chain, []int{1, 4}) || e.OrderDate != day(5) || e.PublishedReset != civil.Timestamp(moment(5)) {
		t.Errorf("edition %d: %+v", m.Number, e)
	}
	// It is as if the date had been right from the start.
	other := newTest(t)
	publish(t, other, testSchema, 3, textOne)
	if want := publish(t, other, testSchema, 5, textTwo); m.SHA256 != want.SHA256 {
		t.Errorf("edicion_sha256 %s, want %s", m.SHA256, want.SHA256)
	}
	checkCatalogue(t, c)
}

// A damaged manifest of no importance hides nothing.
func TestVersionsWithADamagedOne(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 3, textOne)
	publish(t, c, testSchema, 4, textTwo)
	publish(t, c, testSchema, 5, textOne)
	overwrite(t, c.path(versionPath(2)), []byte("{}\n"))
	overwrite(t, c.path(editionPath(2)), []byte("{}\n"))
	all, damaged, err := c.Versions()
	if err != nil || len(all) != 2 || all[0].ID != 1 || all[1].ID != 3 || len(damaged) != 1 {
		t.Fatalf("%+v, %v, %v", all, damaged, err)
	}
	wantCorrupt(t, damaged[0], versionPath(2))
	editions, damaged, err := c.Editions()
	if err != nil || len(editions) != 2 || editions[1].Number != 3 || len(damaged) != 1 {
		t.Fatalf("%+v, %v, %v", editions, damaged, err)
	}
	wantCorrupt(t, damaged[0], editionPath(2))
}

// TestEditionOfManySources: more than a word has bits, and each is told from the
// others.
func TestEditionOfManySources(t *testing.T) {
	c := newTest(t)
	const sources = 70
	var m EditionManifest
	schema := testSchema
	for i := range sources {
		schema.Source = fmt.Sprintf("lista_%02d", i)
		text := fmt.Sprintf("1|AAA%02d0101AA1|1|Alfa|Presunto\n2|ZZZ010101ZZ1|1|De todas|Presunto\n", i)
		s, err := stageText(c, schema, text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Accept(origin(1))
		if err != nil {
			t.Fatal(err)
		}
		if m, err = c.Publish(v, moment(1)); err != nil {
			t.Fatal(err)
		}
	}
	e := openEdition(t, c, m)
	for i := range uint(sources) {
		if got := mentions(t, e, fmt.Sprintf("AAA%02d0101AA1", i)); !slices.Equal(got, []uint{i}) {
			t.Errorf("source %d is %v", i, got)
		}
	}
	if got := mentions(t, e, "ZZZ010101ZZ1"); len(got) != sources {
		t.Errorf("%d of %d sources", len(got), sources)
	}
	for len(m.Sources) <= maxSources {
		m.Sources = append(m.Sources, m.Sources[0])
	}
	if err := m.check(); err == nil || err.Error() != "257 fuentes; el máximo de una edición es 256" {
		t.Errorf("257 sources: %v", err)
	}
}
