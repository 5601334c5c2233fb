package ingest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxExpansion is how many times its size a .gz may unpack to; official lists
// stay below 20.
const maxExpansion = 200

// ErrTooLarge says that there are more bytes than the source may have.
var ErrTooLarge = errors.New("el archivo rebasa el tamaño máximo")

func tooLarge(max int64, from string) error {
	return fmt.Errorf("%w de %d bytes: %s; si la publicación creció, hace falta una versión nueva de este programa", ErrTooLarge, max, from)
}

// obtained is an official file that is being read.
type obtained struct {
	body      io.ReadCloser // io.ErrUnexpectedEOF when it ends before its stated length
	total     int64         // bytes it will give, 0 when unknown
	max       int64         // bytes after which it is refused
	from      string        // an URL or "archivo:NAME"
	published time.Time     // Last-Modified, zero when unknown
}

// obtain opens the file that a request names.
func obtain(ctx context.Context, s *Source, r *Request) (*obtained, error) {
	switch {
	case r.Content != nil:
		body, err := r.Content()
		if err != nil {
			return nil, err
		}
		return &obtained{body: body, max: s.MaxBytes, from: fromFile(r.Name)}, nil
	case r.File != "":
		return openFile(r.File, s.MaxBytes)
	case r.Mirror != "":
		return overHTTP.open(ctx, strings.TrimRight(r.Mirror, "/")+s.path, s.MaxBytes)
	default:
		return overHTTP.open(ctx, s.URL(), s.MaxBytes)
	}
}

// fromFile names a file without its folder, which is nobody else's business.
func fromFile(name string) string { return "archivo:" + filepath.Base(name) }

// openFile opens a file; one that is packed with gzip is unpacked while it is
// read, whatever its name.
func openFile(path string, max int64) (o *obtained, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s no es un archivo; indique el archivo que descargó", path)
	}
	o = &obtained{body: f, total: info.Size(), max: max, from: fromFile(path)}
	var magic [2]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < len(magic) || magic != [2]byte{0x1f, 0x8b} {
		return o, nil
	}
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s no se puede desempacar (%w); descárguelo de nuevo", path, err)
	}
	o.body = &unpacking{Reader: unpacked, file: f}
	o.total = 0
	o.max = min(o.max, 1<<20+maxExpansion*info.Size())
	return o, nil
}

// unpacking is a gzip stream that closes its file.
type unpacking struct {
	*gzip.Reader
	file *os.File
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		err = fmt.Errorf("%s está dañado (%w); descárguelo de nuevo", u.file.Name(), err)
	}
	return n, err
}

func (u *unpacking) Close() error { return errors.Join(u.Reader.Close(), u.file.Close()) }
