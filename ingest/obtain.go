package ingest

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"cotejo/snapshots"
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
	body       io.ReadCloser // io.ErrUnexpectedEOF when it ends before its stated length
	total      int64         // bytes it will give, 0 when unknown
	max        int64         // bytes after which it is refused
	from       string        // an URL or "archivo:NAME"
	official   string        // the official URL of it
	published  time.Time     // Last-Modified, zero when unknown
	validators validators    // of a download
}

// obtain moves the official bytes into the spool. errUnmodified says that those
// in service are still the published ones. It needs no lock.
func (in *ingestion) obtain(ctx context.Context) error {
	if err := in.context(); err != nil {
		return err
	}
	// A record that cannot be read costs a download, not the source.
	if last, ok, err := in.catalogue.LastAttempt(in.source.Schema.Source); ok && err == nil {
		in.validators = last.Validators
	}
	if !in.loose() {
		return in.download(ctx)
	}
	o, err := in.open()
	if err != nil {
		return err
	}
	o.official = in.source.URL()
	return in.receive(ctx, o)
}

// open opens the file that the request has.
func (in *ingestion) open() (*obtained, error) {
	if in.Content == nil {
		return openFile(in.File, in.source.MaxBytes)
	}
	body, err := in.Content()
	if err != nil {
		return nil, err
	}
	return &obtained{body: body, max: in.source.MaxBytes, from: fromFile(in.Name)}, nil
}

// download gets the file from its server.
func (in *ingestion) download(ctx context.Context) error {
	d, err := in.reach()
	if err != nil {
		return err
	}
	timed, stop := context.WithTimeoutCause(ctx, d.deadline, &failure{what: fmt.Sprintf("no terminó en %v", d.deadline)})
	defer stop()
	places := in.locate(timed, d)
	if places == nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", ErrNotOffered, in.source.Schema.Source)
	}
	for i, p := range places {
		if i > 0 && p.official != places[i-1].official {
			in.notice(LinkMissing, "en el enlace de %s no hay ningún archivo (%s). Se usó la dirección conocida; abra la página y revise a dónde lleva", indexPage, places[i-1].official)
		}
		in.from = p
		err = d.get(timed, ask{p.address, in.source.MaxBytes, in.known(p.address)}, in.report, func(o *obtained, n int) error {
			o.official = p.official
			return in.attempt(ctx, d, o, n < d.attempts)
		})
		if f, ok := errors.AsType[*failure](err); !ok || !f.gone {
			break
		}
	}
	return err
}

// reach is the way to the server. A mirror is given no secret.
func (in *ingestion) reach() (*downloader, error) {
	access := in.Access
	if in.Mirror != "" {
		access.TokenFile, access.URL = "", ""
	} else if lacks := in.source.Lacks(access); lacks != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnconfigured, lacks)
	}
	d, err := overHTTP.reach(in.source.Schema.Source, access)
	if err != nil {
		return nil, err
	}
	return d.patient(in.source.MaxBytes), nil
}

// attempt takes one answer of the server. A body that ends early is worth
// another attempt, if there is one; the last is judged as what arrived.
func (in *ingestion) attempt(ctx context.Context, d *downloader, o *obtained, again bool) error {
	if err := in.receive(ctx, o); err != nil {
		return err
	}
	if told, err := in.bytes.holds(d.token); err != nil {
		return err
	} else if told {
		in.bytes.close()
		return &failure{what: "su respuesta repite el token con el que se le preguntó: no se guarda"}
	}
	if len(in.faults) > 0 {
		if again {
			return early(in.bytes.size, o.total)
		}
		return nil
	}
	if v := o.validators; v != (validators{}) {
		in.validators = &snapshots.Validators{URL: o.from, ETag: v.etag, LastModified: v.modified, SHA256: in.bytes.sha256()}
	}
	return nil
}

// known are the validators by which the server may say that it still has the
// bytes in service, nil when they have to be had: others serve, they came from
// another address, or they are to be read again or dated anew.
func (in *ingestion) known(address string) *validators {
	v := in.validators
	if v == nil || in.active == nil || v.SHA256 != in.active.SHA256 || v.URL != public(address) ||
		in.active.Reader != in.source.Schema.Reader || in.redates(in.active) {
		return nil
	}
	return &validators{v.ETag, v.LastModified}
}

// get asks until receive has taken an answer, or no attempt is left that could
// do better. It fails with ErrUnavailable, errUnmodified, ErrTooLarge, what
// receive fails with, or the cause of ctx. receive closes the body, and fails
// with a *failure for an answer that is worth another attempt.
func (d *downloader) get(ctx context.Context, a ask, report func(Step), receive func(o *obtained, attempt int) error) error {
	for n := 1; ; n++ {
		o, err := d.open(ctx, a)
		if err == nil {
			err = receive(o, n)
		}
		f, ok := errors.AsType[*failure](err)
		if !ok {
			return err
		}
		if !f.again || n >= d.attempts {
			return f.unavailable(public(a.address), n)
		}
		pause := d.pause(n, f)
		if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
			return f.unavailable(public(a.address), n)
		}
		report(Step{Phase: Waiting, Attempt: n + 1, Attempts: d.attempts, Wait: pause, Reason: f.what})
		retries(d.source).Inc()
		if err := d.wait(ctx, pause); err != nil {
			if f, ok := errors.AsType[*failure](err); ok {
				return f.unavailable(public(a.address), n)
			}
			return err
		}
	}
}

// content gets a small file whole, of at most max bytes: as get does, and one
// that ends early is ErrUnavailable.
func (d *downloader) content(ctx context.Context, address string, max int64, report func(Step)) (content []byte, err error) {
	err = d.get(ctx, ask{address: address, max: max}, report, func(o *obtained, _ int) error {
		defer o.body.Close()
		content, err = io.ReadAll(io.LimitReader(o.body, max+1))
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return early(int64(len(content)), o.total)
		case int64(len(content)) > max:
			return tooLarge(max, o.from)
		}
		return err
	})
	return content, err
}

// public is an address as it may be told to everyone: without user and password,
// either of which can be a secret.
func public(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
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
