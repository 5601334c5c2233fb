package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"cotejo/operation"
	"cotejo/snapshots"
)

const (
	formatOfficial = "oficial"
	formatPacked   = "zst"
)

// official answers with the official file of a version.
func (c Config) official(_ context.Context, call operation.Call) (operation.Response, error) {
	id, _ := operation.Get[int](call.Input, "source_version_id")
	format, _ := operation.Get[string](call.Input, "formato")
	sources := c.sources(&call.Principal)
	v, err := sources.Version(id)
	if errors.Is(err, snapshots.ErrNotFound) {
		return operation.Response{}, operation.ErrNoVersion
	}
	if err != nil {
		return operation.Response{}, err
	}
	s := &operation.Stream{Type: "application/octet-stream", Name: fileName(&v), Size: v.Bytes, SHA256: v.SHA256}
	open := sources.Official
	if format == formatPacked {
		s.Type, s.Name, s.Size = "application/zstd", s.Name+".zst", v.Official.Bytes
		open = sources.Packed
	}
	content, err := open(v)
	if err != nil {
		return operation.Response{}, err
	}
	s.Close = func() { _ = content.Close() }
	s.Write = func(ctx context.Context, w io.Writer) error {
		_, err := io.Copy(w, reading{ctx, content})
		return err
	}
	return operation.Response{Stream: s}, nil
}

// reading ends with its context.
type reading struct {
	context.Context
	from io.Reader
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.Err(); err != nil {
		return 0, context.Cause(r)
	}
	return r.from.Read(p)
}

// fileName is what the file of a version is saved as: what it is, and the name that
// the authority gave it.
func fileName(v *snapshots.Version) string {
	published := path.Base(v.URL)
	if i := strings.IndexAny(published, "?#"); i >= 0 {
		published = published[:i]
	}
	name := fmt.Sprintf("%s-%d-%s", v.Source, v.ID, published)
	if v.Quarantined() {
		name = "cuarentena-" + name
	}
	const longest = 120
	name = strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), longest)]
}

// edition answers with the manifest of an edition.
func (c Config) edition(_ context.Context, call operation.Call) (operation.Response, error) {
	sha, _ := operation.Get[string](call.Input, "sha256")
	m, err := c.sources(&call.Principal).EditionBySHA256(sha)
	if err != nil {
		// A damaged manifest may be the one that is asked for.
		var damaged *snapshots.CorruptError
		if errors.Is(err, snapshots.ErrNotFound) && !errors.As(err, &damaged) {
			err = operation.ErrNoEdition
		}
		return operation.Response{}, err
	}
	text, err := m.Text()
	return operation.Response{Body: text}, err
}

func officialPath(id int) string { return "/v1/auditoria/fuente/" + strconv.Itoa(id) }
