package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

// evidence is a real export of nine answers, two of them about an earlier day and five
// of one order:
// go test ./cmd/cotejo -run TestEvidenceIsVerifiedByAStranger -update writes it anew.
func evidence(t testing.TB) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	dir := os.DirFS("testdata/evidencia")
	err := fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		files[path] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// with returns the files with one changed; nil takes it away.
func with(files fstest.MapFS, path string, text []byte) fstest.MapFS {
	changed := fstest.MapFS{}
	for name, f := range files {
		changed[name] = f
	}
	changed[path] = &fstest.MapFile{Data: text}
	if text == nil {
		delete(changed, path)
	}
	return changed
}

// resealed gives the files a manifest that is true of them, as someone would who
// alters an export and knows this page of the description.
func resealed(t testing.TB, files fstest.MapFS) fstest.MapFS {
	t.Helper()
	var m manifest
	if err := json.Unmarshal(files[manifestName].Data, &m); err != nil {
		t.Fatal(err)
	}
	m.Files, m.Sum = nil, ""
	for path := range files {
		if path == manifestName {
			continue
		}
		f, err := measure(files, path)
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, f)
	}
	slices.SortFunc(m.Files, func(a, b file) int { return strings.Compare(a.Path, b.Path) })
	plain, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(plain, []byte(`,"manifiesto_sha256":""`), nil, 1)
	sealed := bytes.Replace(plain, []byte(`"manifiesto_sha256":""`), []byte(`"manifiesto_sha256":"`+hash(body)+`"`), 1)
	return with(files, manifestName, append(sealed, '\n'))
}

// accepted reports that nothing is found wrong with an export.
func accepted(t testing.TB, files fs.FS, o options) bool {
	t.Helper()
	r, err := verify(files, o)
	if err != nil && !errors.Is(err, errFormat) {
		t.Errorf("error: %v", err)
	}
	return err == nil && len(r.faults) == 0
}

// sampled is how many flips are tried in each file, always the same ones, unless
// COTEJO_FLIPS is all.
const sampled = 200

// eachFlip changes one bit of one byte at a time, the lowest one, and in texts the
// bit of the case too, which a lax reader of JSON overlooks in names; it tells what
// was accepted. Behind a manifest that is made anew, what is covered by one hash as
// a whole is tried at every fifth byte.
func eachFlip(t *testing.T, files fstest.MapFS, seal bool, pass func(path string, at int, bit byte)) (flips int64) {
	type trial struct {
		path string
		at   int
		bit  byte
	}
	var trials []trial
	random := rand.New(rand.NewPCG(1, 2))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if seal && path == manifestName {
			continue
		}
		before := len(trials)
		for at := range files[path].Data {
			own := path == "actas.jsonl" || path == "cadena.jsonl" || path == "ancla.json" || path == "lotes.jsonl" || path == "cargos.jsonl"
			if seal && !own && at%5 != 0 {
				continue
			}
			trials = append(trials, trial{path, at, 1})
			if seal && own {
				trials = append(trials, trial{path, at, 0x20})
			}
		}
		if of := trials[before:]; os.Getenv("COTEJO_FLIPS") != "all" && len(of) > sampled {
			random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
			trials = trials[:before+sampled]
		}
	}
	var next atomic.Int64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(trials); i = next.Add(1) - 1 {
				x := trials[i]
				text := bytes.Clone(files[x.path].Data)
				text[x.at] ^= x.bit
				changed := with(files, x.path, text)
				if seal {
					changed = resealed(t, changed)
				}
				if accepted(t, changed, options{}) {
					mu.Lock()
					pass(x.path, x.at, x.bit)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return int64(len(trials))
}

// TestEveryFlippedByteIsNoticed changes bytes of an export.
func TestEveryFlippedByteIsNoticed(t *testing.T) {
	files := evidence(t)
	if !accepted(t, files, options{}) {
		t.Fatal("the export itself is not accepted")
	}
	passed := 0
	flips := eachFlip(t, files, false, func(path string, at int, bit byte) {
		passed++
		t.Errorf("%s byte %d bit %#x", path, at, bit)
	})
	t.Logf("%d flips in %d files, %d unnoticed", flips, len(files), passed)
}

// unprotected are the places that nothing in an export speaks against, when its
// manifest is made anew: of each file the name that the report has for them.
var unprotected = map[string]map[string]*regexp.Regexp{
	"actas.jsonl": {
		"la hora de consultado":        regexp.MustCompile(`"consultado":"[0-9-]{10}T([0-9:]{8})-06:00"`),
		"engine_version":               regexp.MustCompile(`"engine_version":"([0-9.]+)"`),
		"las letras":                   regexp.MustCompile(`"verification_id":"([A-Z]{3})-`),
		"el día posterior":             regexp.MustCompile(`"verification_id":"[A-Z]{3}-([0-9]{8})-`),
		"el código de verification_id": regexp.MustCompile(`"verification_id":"[A-Z]{3}-[0-9]{8}-([0-9a-f]{8})"`),
		"el día de consultado":         regexp.MustCompile(`"conocida":.*"consultado":"([0-9-]{10})T`),
		"estado":                       regexp.MustCompile(`"conocida":.*"estado":"([^"]*)"`),
		"situaciones de conocida":      regexp.MustCompile(`"conocida":.*"situaciones":(\[.*\])\},"sat_69b_bis"`),
	},
	"cargos.jsonl": {
		"el número de movimiento": regexp.MustCompile(`"movimiento":([0-9]+)`),
	},
}

// TestOfAnAlteredAndResealedExport changes bytes and makes the manifest anew: what
// goes unnoticed lies in a place that the report says it cannot check.
func TestOfAnAlteredAndResealedExport(t *testing.T) {
	files := evidence(t)
	if !accepted(t, resealed(t, files), options{}) || !bytes.Equal(resealed(t, files)[manifestName].Data, files[manifestName].Data) {
		t.Fatal("the manifest that is made anew is another one")
	}
	r, err := verify(files, options{})
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(r.unchecked, "\n")
	places := map[string][]string{}
	for path, forms := range unprotected {
		places[path] = make([]string, len(files[path].Data))
		line := 0
		for _, text := range bytes.SplitAfter(files[path].Data, []byte("\n")) {
			for name, form := range forms {
				if !strings.Contains(said, name) {
					t.Errorf("the report does not name %q", name)
				}
				for _, m := range form.FindAllSubmatchIndex(text, -1) {
					for i := m[2]; i < m[3]; i++ {
						places[path][line+i] = name
					}
				}
			}
			line += len(text)
		}
	}
	unnoticed := map[string]int{}
	total := 0
	flips := eachFlip(t, files, true, func(path string, at int, bit byte) {
		total++
		if places[path] == nil || places[path][at] == "" {
			t.Errorf("%s byte %d bit %#x: …%q…", path, at, bit, files[path].Data[max(0, at-40):min(len(files[path].Data), at+10)])
			return
		}
		unnoticed[places[path][at]]++
	})
	t.Logf("%d flips, %d unnoticed, all in named places: %v", flips, total, unnoticed)
	if total == 0 {
		t.Error("nothing went unnoticed: the list of what cannot be checked is too long")
	}
}
