package snapshots

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cotejo/checks"
	"cotejo/civil"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The test source is a text with one row per line: «No|RFC|oficio|nombre|
// situación», redacted rows with the RFC XXXXXXXXXXXX. The normalised name is in
// upper case.
var testSchema = Schema{
	Source: "lista",
	Reader: 1,
	Columns: []Column{
		{Name: "No"},
		{Name: "RFC", Tracked: true},
		{Name: "Oficio", Tracked: true},
		{Name: "Nombre", Tracked: true},
		{Name: "Situación", Tracked: true},
	},
}

const redacted = "XXXXXXXXXXXX"

func readLista(official Opener, add func(Row) error) error {
	in, err := official()
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		raw := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		if len(raw) != 5 {
			return fmt.Errorf("línea %q", line)
		}
		norm := []string{raw[0], raw[1], raw[2], strings.ToUpper(raw[3]), raw[4]}
		if err := add(Row{ID: []string{raw[1], raw[2]}, Suppressed: raw[1] == redacted, Raw: raw, Norm: norm}); err != nil {
			return err
		}
	}
	return nil
}

// fastDisk does not wait for the disk: most tests are not about that.
type fastDisk struct{ osDisk }

type fastFile struct{ diskFile }

func (fastFile) Sync() error          { return nil }
func (fastDisk) SyncDir(string) error { return nil }

func (d fastDisk) Create(path string) (diskFile, error) {
	f, err := d.osDisk.Create(path)
	return fastFile{f}, err
}

func openTest(t testing.TB, dir string) *Catalogue {
	t.Helper()
	c, err := openCatalogue(dir, fastDisk{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func lockTest(t testing.TB, c *Catalogue) {
	t.Helper()
	unlock, err := c.Lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
}

// newTest returns an empty, locked catalogue.
func newTest(t testing.TB) *Catalogue {
	t.Helper()
	c := openTest(t, filepath.Join(t.TempDir(), "catálogo"))
	lockTest(t, c)
	return c
}

func day(n int) civil.Date {
	return civil.Of(time.Date(2026, 1, n, 12, 0, 0, 0, civil.Zone))
}

func moment(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, civil.Zone) }

// stageText stages text of day n and reads it with schema.
func stageText(c *Catalogue, schema Schema, text string) (*Stage, error) {
	s, err := c.Stage(schema.Source)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*Stage, error) { s.Discard(); return nil, err }
	if _, err := io.WriteString(s, text); err != nil {
		return fail(err)
	}
	if err := s.Seal(); err != nil {
		return fail(err)
	}
	s.Begin(schema)
	if err := readLista(s.Open, s.Add); err != nil {
		return fail(err)
	}
	return s, nil
}

func origin(n int) Origin {
	return Origin{URL: "https://ejemplo.mx/lista.csv", Obtained: "archivo:lista.csv", Corte: day(n), CorteFrom: CorteOfFile, Downloaded: moment(n), Encoding: "utf-8"}
}

// attempt is a quiet one of day n.
func attempt(n int) Attempt {
	return Attempt{Source: "lista", At: civil.Timestamp(moment(n)), Outcome: OutcomeUnchanged, VersionID: 1}
}

func accept(t testing.TB, c *Catalogue, schema Schema, n int, text string) Version {
	t.Helper()
	s, err := stageText(c, schema, text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Accept(origin(n))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func quarantine(t testing.TB, c *Catalogue, n int, text string, faults ...Fault) Version {
	t.Helper()
	s, err := stageText(c, testSchema, text)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Quarantine(origin(n), faults)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// publish accepts text as of day n and publishes it.
func publish(t testing.TB, c *Catalogue, schema Schema, n int, text string) EditionManifest {
	t.Helper()
	m, err := c.Publish(accept(t, c, schema, n, text), moment(n))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func openEdition(t testing.TB, c *Catalogue, m EditionManifest) *Edition {
	t.Helper()
	e, err := c.OpenEdition(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Release)
	return e
}

func found(t testing.TB, s *Source, lookup string) []Row {
	t.Helper()
	var out []Row
	if err := s.Find(lookup, func(r Row) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func pasts(t testing.TB, s *Source, lookup string) []Past {
	t.Helper()
	var out []Past
	if err := s.Past(lookup, func(p Past) error { out = append(out, p); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func mentions(t testing.TB, e *Edition, rfc string) []uint {
	t.Helper()
	key, ok := checks.PackRFC(rfc)
	if !ok {
		t.Fatalf("PackRFC refuses %s", rfc)
	}
	var sources []uint
	for source := range e.Classify(key).All() {
		sources = append(sources, source)
	}
	return sources
}

// checkCatalogue is the invariant that holds after anything that happens.
func checkCatalogue(t testing.TB, c *Catalogue) {
	t.Helper()
	wrong, err := c.Verify(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrong {
		t.Errorf("Verify: %v", w)
	}
}

// files lists the published files of a catalogue, relative.
func files(t testing.TB, c *Catalogue) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(c.dir, path)
		if err == nil && d.Type().IsRegular() && rel != lockName && filepath.Dir(rel) != tmpDir {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantCorrupt(t testing.TB, err error, path string) {
	t.Helper()
	var bad *CorruptError
	if !errors.As(err, &bad) || bad.Path != path {
		t.Errorf("error %v does not name %s", err, path)
	}
}

func readAll(t testing.TB, r io.ReadCloser) []byte {
	t.Helper()
	defer r.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
