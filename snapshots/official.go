package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Official opens the original bytes of a version, decompressed, verified
// against SHA256 as they are read: the last Read returns a *CorruptError
// instead of io.EOF when they differ.
func (c *Catalogue) Official(v Version) (io.ReadCloser, error) {
	if err := v.check(); err != nil {
		return nil, fmt.Errorf("snapshots: versión %d: %w", v.ID, err)
	}
	f, err := os.Open(c.path(v.Official.Path))
	if os.IsNotExist(err) {
		return nil, &CorruptError{Path: v.Official.Path, Want: v.Official.SHA256, Got: "no existe"}
	}
	if err != nil {
		return nil, err
	}
	return newOfficial(f, File{Path: v.Official.Path, Bytes: v.Bytes, SHA256: v.SHA256})
}

// newOfficial owns f, which holds the bytes packed; want is of them unpacked.
func newOfficial(f *os.File, want File) (*verified, error) {
	// One goroutine, the caller's: nothing is left behind when it stops reading.
	dec, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		f.Close()
		return nil, &CorruptError{Path: want.Path, Want: want.SHA256, Got: err.Error()}
	}
	v := newVerified(f, dec, want)
	v.release = dec.Close
	return v, nil
}

// verified reads bytes that are known by length and hash.
type verified struct {
	f       *os.File
	from    io.Reader // of f
	release func()    // may be nil
	want    File
	sum     hash.Hash
	n       int64
	err     error
}

// newVerified owns f.
func newVerified(f *os.File, from io.Reader, want File) *verified {
	return &verified{f: f, from: from, want: want, sum: sha256.New()}
}

func (o *verified) Read(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.from.Read(p)
	o.sum.Write(p[:n])
	o.n += int64(n)
	switch {
	case o.n > o.want.Bytes, errors.Is(err, io.EOF) && o.n < o.want.Bytes:
		err = &CorruptError{Path: o.want.Path, Want: fmt.Sprintf("bytes %d", o.want.Bytes), Got: fmt.Sprintf("bytes %d", o.n)}
	case errors.Is(err, io.EOF):
		if got := hex.EncodeToString(o.sum.Sum(nil)); got != o.want.SHA256 {
			err = &CorruptError{Path: o.want.Path, Want: o.want.SHA256, Got: got}
		}
	case err != nil:
		err = &CorruptError{Path: o.want.Path, Want: o.want.SHA256, Got: err.Error()}
	}
	o.err = err
	return n, err
}

func (o *verified) Close() error {
	if o.release != nil {
		o.release()
	}
	return o.f.Close()
}

// isOfficial reports whether the packed file holds exactly these bytes.
func isOfficial(path string, want File) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	o, err := newOfficial(f, want)
	if err != nil {
		return false
	}
	defer o.Close()
	_, err = io.Copy(io.Discard, o)
	return err == nil
}

// Packed opens the original bytes of a version as they are kept, compressed with
// zstd, verified against Official.SHA256 as they are read: the last Read returns a
// *CorruptError instead of io.EOF when they differ.
func (c *Catalogue) Packed(v Version) (io.ReadCloser, error) {
	if err := v.check(); err != nil {
		return nil, fmt.Errorf("snapshots: versión %d: %w", v.ID, err)
	}
	f, err := os.Open(c.path(v.Official.Path))
	if os.IsNotExist(err) {
		return nil, &CorruptError{Path: v.Official.Path, Want: v.Official.SHA256, Got: "no existe"}
	}
	if err != nil {
		return nil, err
	}
	return newVerified(f, f, v.Official), nil
}
