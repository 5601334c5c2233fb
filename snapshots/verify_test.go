package snapshots

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sample returns a catalogue with every kind of file.
func sample(t testing.TB) *Catalogue {
	t.Helper()
	c := newTest(t)
	publish(t, c, testSchema, 5, textOne)
	publish(t, c, testSchema, 9, textTwo)
	s, err := stageText(c, testSchema, "1|AAA010101AAA|500-1|Alfa|Presunto\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Quarantine(origin(10), []Fault{{"MENOS_FILAS", "faltan filas"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.RecordAttempt(attempt(10)); err != nil {
		t.Fatal(err)
	}
	return c
}

// One byte changed anywhere in any published file is detected by name.
func TestEveryFlippedByte(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine; 20 s under the race detector")
	}
	c := sample(t)
	latest, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{editionPath(2): true}
	for _, id := range []int{1, 2} {
		served[versionPath(id)] = true
	}
	v, err := c.Version(2)
	if err != nil {
		t.Fatal(err)
	}
	served[v.RowsFile.Path], served[latest.Sources[0].History.Path] = true, true

	rng := rand.New(rand.NewPCG(1, 1))
	all := files(t, c)
	if len(all) != 3+2+3+2+2+1 {
		t.Errorf("%d files: %v", len(all), all)
	}
	for _, path := range all {
		good, err := os.ReadFile(c.path(path))
		if err != nil {
			t.Fatal(err)
		}
		offsets := rng.Perm(len(good))
		if len(good) > 512 {
			offsets = offsets[:128]
		}
		for _, at := range offsets {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << rng.IntN(8)
			overwrite(t, c.path(path), bad)
			wrong, err := c.Verify(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(wrong, func(err error) bool {
				var e *CorruptError
				return errors.As(err, &e) && e.Path == path
			}) {
				t.Fatalf("%s, byte %d: Verify says %v", path, at, wrong)
			}
			if served[path] {
				m, err := c.LatestEdition()
				if err == nil {
					var e *Edition
					if e, err = c.OpenEdition(m); err == nil {
						e.Release()
					}
				}
				wantCorrupt(t, err, path)
			}
		}
		overwrite(t, c.path(path), good)
	}
	checkCatalogue(t, c)
}

func overwrite(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o444); err != nil {
		t.Fatal(err)
	}
}

func TestOfficialIsVerifiedAsItIsRead(t *testing.T) {
	c := newTest(t)
	text := textOne + strings.Repeat("5|AAA010101AAA|500-9|Relleno, para que ocupe|Presunto\n", 2000)
	m := publish(t, c, testSchema, 5, text)
	v, err := c.Version(m.Sources[0].VersionID)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(c.path(v.Official.Path))
	if err != nil {
		t.Fatal(err)
	}
	f := func(what string, data []byte) {
		t.Helper()
		overwrite(t, c.path(v.Official.Path), data)
		in, err := c.Official(v)
		if err == nil {
			_, err = io.Copy(io.Discard, in)
			in.Close()
		}
		var bad *CorruptError
		if !errors.As(err, &bad) || bad.Path != v.Official.Path {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("truncated", good[:len(good)/2])
	f("empty", nil)
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	f("flipped", flipped)
	f("twice", append(bytes.Clone(good), good...))

	// Other bytes, well packed: only the hash can tell.
	other := openTest(t, filepath.Join(t.TempDir(), "otro"))
	lockTest(t, other)
	m2 := publish(t, other, testSchema, 5, strings.Replace(text, "Alfa", "Alfo", 1))
	v2, err := other.Version(m2.Sources[0].VersionID)
	if err != nil {
		t.Fatal(err)
	}
	swapped, err := os.ReadFile(other.path(v2.Official.Path))
	if err != nil {
		t.Fatal(err)
	}
	f("another list", swapped)

	if err := os.Remove(c.path(v.Official.Path)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Official(v)
	wantCorrupt(t, err, v.Official.Path)
	v.Official.Path = "../../etc/passwd"
	if _, err := c.Official(v); err == nil {
		t.Error("a path outside the version's folder was opened")
	}
}

func TestRebuild(t *testing.T) {
	c := sample(t)
	m, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	entry := m.Sources[0]
	v, err := c.Version(entry.VersionID)
	if err != nil {
		t.Fatal(err)
	}
	rebuild := func(lost string) {
		t.Helper()
		rows, err := c.Rebuild(v, testSchema, readLista)
		if err != nil || rows != (lost == v.RowsFile.Path) {
			t.Fatalf("without %q: Rebuild = %v, %v", lost, rows, err)
		}
		history, err := c.RebuildHistory(entry)
		if err != nil || history != (lost == entry.History.Path) {
			t.Fatalf("without %q: RebuildHistory = %v, %v", lost, history, err)
		}
		checkCatalogue(t, c)
	}
	rebuild("")
	for _, path := range []string{v.RowsFile.Path, entry.History.Path} {
		if err := os.Remove(c.path(path)); err != nil {
			t.Fatal(err)
		}
		wrong, err := c.Verify(context.Background(), nil)
		if err != nil || len(wrong) != 1 {
			t.Fatalf("Verify: %v, %v", wrong, err)
		}
		wantCorrupt(t, wrong[0], path)
		_, err = c.OpenEdition(m)
		wantCorrupt(t, err, path)
		rebuild(path)
		overwrite(t, c.path(path), []byte("dañado"))
		rebuild(path)
	}
	openEdition(t, c, m)

	_, err = c.Rebuild(v, testSchema, func(official Opener, add func(Row) error) error {
		if err := readLista(official, add); err != nil {
			return err
		}
		cells := []string{"9", "EEE050505EE5", "1", "Épsilon", "Presunto"}
		return add(Row{ID: cells[1:3], Raw: cells, Norm: cells})
	})
	wantCorrupt(t, err, v.RowsFile.Path)
	other := testSchema
	other.Reader = 2
	if _, err := c.Rebuild(v, other, readLista); err == nil || !strings.Contains(err.Error(), "lector 1") {
		t.Errorf("another reader: %v", err)
	}
	checkCatalogue(t, c)
}

// The same folder published by a library that packs otherwise is the same
// content: the file that stands there stays.
func TestOtherPackingOfTheSameBytes(t *testing.T) {
	c := newTest(t)
	v := accept(t, c, testSchema, 5, textOne)
	path := c.path(v.Official.Path)
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// An empty frame after the first changes the file and not what it holds.
	empty := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x01, 0x00, 0x00}
	overwrite(t, path, append(packed, empty...))
	again := accept(t, c, testSchema, 5, textOne)
	if again.Official.Bytes != int64(len(packed)+len(empty)) || again.ID != 2 {
		t.Errorf("the version records %+v", again.Official)
	}
	overwrite(t, path, []byte("otra cosa"))
	s, err := stageText(c, testSchema, textOne)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(origin(5)); err == nil || !strings.Contains(err.Error(), v.Official.Path) {
		t.Errorf("an immutable file that differs: %v", err)
	}
}

func TestVerifyReportsProgress(t *testing.T) {
	c := sample(t)
	var seen []string
	if _, err := c.Verify(context.Background(), func(f File) { seen = append(seen, f.Path) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	want := files(t, c)
	slices.Sort(want)
	if !slices.Equal(seen, want) {
		t.Errorf("looked at\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func FuzzRow(f *testing.F) {
	f.Add(appendRow(nil, &Row{Raw: []string{"a", "", "ñ"}, Norm: []string{"A", "", "Ñ"}}))
	f.Add(appendRow(nil, &Row{Suppressed: true, Raw: []string{"x"}, Norm: []string{"x"}}))
	f.Add([]byte{1, 0, 1, 1, 0, 0})
	f.Fuzz(func(t *testing.T, value []byte) {
		var c cells[string]
		var b cells[[]byte]
		err := c.decode(string(value))
		if berr := b.decode(value); (err == nil) != (berr == nil) {
			t.Fatalf("string: %v, bytes: %v", err, berr)
		}
		if err != nil {
			return
		}
		if again := appendRow(nil, &Row{Suppressed: c.suppressed, Raw: c.raw, Norm: c.norm}); !bytes.Equal(again, value) {
			t.Errorf("%x decodes to a row whose code is %x", value, again)
		}
		if c.suppressed != suppressedRow(value) {
			t.Error("suppressedRow disagrees")
		}
	})
}

func FuzzPast(f *testing.F) {
	f.Add(appendPast(nil, 0))
	f.Add(appendEvent(appendPast(nil, 3), 3, Added))
	v := appendEvent(appendPast(nil, 0), 1, Changed)
	v = appendCell(append(v, 2), "antes")
	v = appendEvent(v, 2, Removed)
	v = appendCell(append(v, 1), "x")
	v[1] = 0
	f.Add(v)
	key := appendKey(nil, appendID(nil, []string{"A", "B"}), 7)
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := decodePast(key, value)
		if err != nil {
			return
		}
		again := appendPast(nil, p.Since)
		if !p.Present {
			again[1] = 0
		}
		for _, e := range p.Events {
			again = appendEvent(again, e.Version, e.Kind)
			switch e.Kind {
			case Changed:
				again = binary.AppendUvarint(again, e.Mask)
			case Removed:
				again = binary.AppendUvarint(again, uint64(len(e.Before)))
			}
			for _, cell := range e.Before {
				again = appendCell(again, cell)
			}
		}
		if !bytes.Equal(again, value) {
			t.Errorf("%x decodes to a history whose code is %x", value, again)
		}
	})
}

func FuzzManifest(f *testing.F) {
	c := sample(f)
	for _, path := range files(f, c) {
		if strings.HasSuffix(path, ".json") {
			text, err := os.ReadFile(c.path(path))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v Version
		if decodeManifest(text, &v) == nil {
			_ = v.check()
		}
		var m EditionManifest
		if decodeManifest(text, &m) == nil {
			_ = m.check()
		}
		var members map[string]any
		if decodeManifest(text, &members) == nil {
			delete(members, manifestSum)
			if again, err := encodeManifest(members); err != nil || !bytes.Equal(again, text) {
				t.Errorf("%q is not what encodeManifest writes (%v)", text, err)
			}
		}
	})
}

// Nothing hostile in a manifest that carries a good hash of itself leads out of
// the catalogue or into a panic.
func TestForgedManifests(t *testing.T) {
	c := sample(t)
	v, err := c.Version(2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.LatestEdition()
	if err != nil {
		t.Fatal(err)
	}
	forge := func(path string, manifest any) {
		t.Helper()
		text, err := encodeManifest(manifest)
		if err != nil {
			t.Fatal(err)
		}
		overwrite(t, c.path(path), text)
	}
	fv := func(change func(v *Version)) {
		t.Helper()
		bad := v
		change(&bad)
		forge(versionPath(2), &bad)
		_, err := c.Version(2)
		wantCorrupt(t, err, versionPath(2))
	}
	fv(func(v *Version) { v.ID = 3 })
	fv(func(v *Version) { v.ID = 0 })
	fv(func(v *Version) { v.Source = "../../x" })
	fv(func(v *Version) { v.SHA256 = "../../x" })
	fv(func(v *Version) { v.State = "otra" })
	fv(func(v *Version) { v.Official.Path = "../secreto" })
	fv(func(v *Version) { v.RowsFile = nil })
	fv(func(v *Version) { v.RowsFile = &File{"/etc/passwd", 1, v.SHA256} })
	fv(func(v *Version) { v.RowsDigest = "" })
	fv(func(v *Version) { v.Columns = nil })
	fv(func(v *Version) { v.Suppressed = v.Rows + 1 })
	fv(func(v *Version) { v.State = stateQuarantined })

	// Coherent in itself, but not what the edition was made from.
	bad := v
	bad.RowsDigest = strings.Repeat("0", 64)
	forge(versionPath(2), &bad)
	_, err = c.OpenEdition(m)
	wantCorrupt(t, err, versionPath(2))
	forge(versionPath(2), &v)

	fe := func(change func(m *EditionManifest)) {
		t.Helper()
		bad := m
		bad.Sources = slices.Clone(m.Sources)
		change(&bad)
		forge(editionPath(2), &bad)
		_, err := c.LatestEdition()
		wantCorrupt(t, err, editionPath(2))
		if _, err := c.OpenEdition(bad); err == nil {
			t.Error("OpenEdition took it")
		}
	}
	fe(func(m *EditionManifest) { m.SHA256 = strings.Repeat("0", 64) })
	fe(func(m *EditionManifest) { m.Number = 0 })
	fe(func(m *EditionManifest) { m.Sources = append(m.Sources, m.Sources[0]) })
	fe(func(m *EditionManifest) { m.Sources[0].Chain = nil })
	fe(func(m *EditionManifest) { m.Sources[0].Chain = []int{1, -1, 2} })
	fe(func(m *EditionManifest) { m.Sources[0].VersionID = 1 })
	fe(func(m *EditionManifest) { m.Sources[0].History.Path = "../x" })
	fe(func(m *EditionManifest) { m.Sources[0].RowsDigest = strings.Repeat("1", 64) })
	forge(editionPath(2), &m)
	checkCatalogue(t, c)

	// Names that are not ours are nobody's.
	for _, name := range []string{"01.json", "x.json", "-1.json", "9.json.bak", "99999999999999999999.json"} {
		if err := os.WriteFile(c.path(versionsDir+"/"+name), []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, damaged, err := c.Versions(); err != nil || len(all) != 3 || damaged != nil {
		t.Errorf("%d versions, %v, %v", len(all), damaged, err)
	}
}
