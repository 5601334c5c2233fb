package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"math"
	"os"

	"cotejo/snapshots"
)

// spool holds official bytes from when they arrive until the catalogue can be
// written to: a download may take longer than anybody should have to wait for
// that. Its zero value holds nothing. It is a file without a name: nothing of it
// is left behind.
type spool struct {
	f    *os.File
	sum  hash.Hash
	size int64
}

// begin forgets what was written before.
func (s *spool) begin(c *snapshots.Catalogue) (err error) {
	s.close()
	s.f, err = c.Scratch()
	s.sum, s.size = sha256.New(), 0
	return err
}

func (s *spool) write(p []byte) error {
	n, err := s.f.Write(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	return err
}

func (s *spool) sha256() string { return hex.EncodeToString(s.sum.Sum(nil)) }

// open reads the bytes from their beginning, as often as wanted until close.
func (s *spool) open() io.Reader { return io.NewSectionReader(s.f, 0, math.MaxInt64) }

// holds reports whether a secret is among the bytes, which are few of a server that
// is told one; "" is none.
func (s *spool) holds(secret string) (bool, error) {
	if secret == "" {
		return false, nil
	}
	content, err := io.ReadAll(s.open())
	return bytes.Contains(content, []byte(secret)), err
}

func (s *spool) close() {
	if s.f != nil {
		_ = s.f.Close()
	}
	s.f = nil
}
