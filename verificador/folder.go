package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// errFormat says that a folder is no export that this program knows.
var errFormat = errors.New("no es una exportación que este programa conozca")

const (
	manifestName = "MANIFIESTO.json"
	maxManifest  = 256 << 20
	maxLine      = 2 << 20
	groups       = 17
)

// manifest is MANIFIESTO.json.
type manifest struct {
	Files  []file `json:"archivos"`
	Heads  []head `json:"cabezas"`
	Kind   string `json:"exportacion"`
	Format int    `json:"formato"`
	Sum    string `json:"manifiesto_sha256"`
	Org    string `json:"org,omitempty"`
}

type file struct {
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"filas"`
	Path   string `json:"ruta"`
	SHA256 string `json:"sha256"`
}

type head struct {
	Sum   string `json:"cabeza"`
	Group int    `json:"grupo"`
	Seq   uint64 `json:"lote"`
}

// ownSum reads a text that carries its own hash in a member, as canonical JSON and a
// line feed, and compares it.
func ownSum(text []byte, member string, into any) error {
	body, ok := bytes.CutSuffix(text, []byte("\n"))
	if !ok {
		return errors.New("no termina con un fin de línea")
	}
	if err := canonical(body); err != nil {
		return err
	}
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		return err
	}
	want, _ := members[member].(string)
	delete(members, member)
	plain, err := appendValue(nil, members)
	if err != nil {
		return err
	}
	if got := hash(plain); got != want {
		return fmt.Errorf("%s dice %q y el texto da %s", member, want, got)
	}
	return json.Unmarshal(body, into)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readManifest fails only when there is nothing to look at; what is wrong with the
// manifest is a fault.
func readManifest(dir fs.FS, r *report) (m manifest, ok bool, err error) {
	text, err := readFile(dir, manifestName, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, fmt.Errorf("%w: falta %s: una exportación que se interrumpió no lo tiene", errFormat, manifestName)
	} else if err != nil {
		return m, false, err
	}
	if err := ownSum(text, "manifiesto_sha256", &m); err != nil {
		r.fault("%s: %v", manifestName, err)
		return m, false, nil
	}
	if m.Format > 2 {
		return m, false, fmt.Errorf("%w: formato %d", errFormat, m.Format)
	}
	if err := decodeStrict(bytes.TrimSuffix(text, []byte("\n")), new(manifest)); err != nil {
		r.fault("%s: %v", manifestName, err)
	}
	if m.Format < 1 || m.Kind != "parquet" && m.Kind != "evidencia" {
		r.fault("%s: formato %d de «%s»", manifestName, m.Format, m.Kind)
	}
	if len(m.Heads) != groups {
		r.fault("%s: nombra %d grupos y son %d", manifestName, len(m.Heads), groups)
	}
	for i, h := range m.Heads {
		if h.Group != i || len(h.Sum) != 64 {
			r.fault("%s: la cabeza %d es ilegible", manifestName, i)
		}
	}
	return m, len(r.faults) == 0, nil
}

// checkFiles compares every file with the manifest, and finds those that are not in
// it.
func checkFiles(dir fs.FS, m *manifest, r *report) error {
	known := map[string]bool{manifestName: true}
	var total int64
	last := ""
	for _, want := range m.Files {
		if !fs.ValidPath(want.Path) || want.Path <= last {
			r.fault("%s nombra %q", manifestName, want.Path)
			continue
		}
		last = want.Path
		known[want.Path] = true
		got, err := measure(dir, want.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.fault("falta %s", want.Path)
			continue
		case err != nil:
			return err
		}
		if m.Kind == "parquet" {
			got.Rows = want.Rows // inside the file
		}
		if got != want {
			r.fault("%s no es el archivo del manifiesto: tiene %d bytes, %d líneas, SHA-256 %s", want.Path, got.Bytes, got.Rows, got.SHA256)
		}
		total += got.Bytes
	}
	err := fs.WalkDir(dir, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !known[path] {
			r.fault("sobra %s", path)
		}
		return err
	})
	r.check("%d archivos, %d bytes, con el SHA-256 del manifiesto; manifiesto_sha256 %s", len(m.Files), total, m.Sum)
	return err
}

var rooms = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func measure(dir fs.FS, path string) (file, error) {
	f, err := dir.Open(path)
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	sum := sha256.New()
	got := file{Path: path}
	room := rooms.Get().(*[64 << 10]byte)
	defer rooms.Put(room)
	for {
		n, err := f.Read(room[:])
		sum.Write(room[:n])
		got.Bytes += int64(n)
		got.Rows += int64(bytes.Count(room[:n], []byte("\n")))
		if errors.Is(err, io.EOF) {
			got.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return got, nil
		} else if err != nil {
			return got, err
		}
	}
}

func readFile(dir fs.FS, path string, most int64) ([]byte, error) {
	f, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s pasa de %d bytes", path, most)
	}
	return text, err
}

// lines reads a file line by line.
type lines struct {
	from *bufio.Scanner
	f    fs.File
}

func openLines(dir fs.FS, path string) (*lines, error) {
	f, err := dir.Open(path)
	if err != nil {
		return nil, err
	}
	s := bufio.NewScanner(f)
	s.Buffer(make([]byte, 4<<10), maxLine)
	s.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i], nil
		}
		if atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	return &lines{s, f}, nil
}

// next returns false at the end. The line is valid until the next call.
func (l *lines) next() ([]byte, bool) {
	if l.from.Scan() {
		return l.from.Bytes(), true
	}
	return nil, false
}

func (l *lines) close() error { return errors.Join(l.from.Err(), l.f.Close()) }
