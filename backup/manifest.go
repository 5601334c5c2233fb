package backup

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cotejo/canon"
	"cotejo/ledger"
)

const (
	manifestName     = "RESPALDO.json"
	manifestFormat   = 1
	maxManifestBytes = 256 << 20
)

// Manifest is what a backup says of itself: canonical JSON and a line feed.
type Manifest struct {
	Files   []File `json:"archivos"` // by path
	Heads   []Head `json:"cabezas"`  // of the chains of the accounts, by group
	Version string `json:"cotejo"`
	Format  int    `json:"formato"`        // of the data directory
	MAC     string `json:"hmac,omitempty"` // HMAC-SHA256 over the text without this member
	Moment  string `json:"momento"`        // when it began (RFC 3339)
	Backup  int    `json:"respaldo"`       // format of this text
}

// File is one file of a backup, the manifest apart.
type File struct {
	Bytes  int64  `json:"bytes"`
	Path   string `json:"ruta"` // with slashes
	SHA256 string `json:"sha256"`
}

// Head is where the chain of a group ends.
type Head struct {
	Sum   string `json:"cabeza"`
	Group int    `json:"grupo"`
	Seq   uint64 `json:"lote"`
}

func byPath(a, b File) int { return strings.Compare(a.Path, b.Path) }

// Bytes is the size of all files together.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

func (m *Manifest) setHeads(heads []ledger.Head) {
	m.Heads = make([]Head, len(heads))
	for i, h := range heads {
		m.Heads[i] = Head{hex.EncodeToString(h.Sum[:]), int(h.Group), h.Seq}
	}
}

// Key makes the key of manifests from the secret of the API keys. Neither it nor
// what it signs tells anything of that secret.
func Key(secret []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("cotejo: clave de los manifiestos de respaldo, 1"))
	return h.Sum(nil)
}

// encode returns the text with its MAC.
func (m Manifest) encode(key []byte) ([]byte, error) {
	m.MAC = ""
	body, err := canon.Marshal(m)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, key)
	h.Write(body)
	m.MAC = hex.EncodeToString(h.Sum(nil))
	text, err := canon.Marshal(m)
	return append(text, '\n'), err
}

// publish writes the manifest under its name at once and durably.
func (m *Manifest) publish(dir string, key []byte) error {
	text, err := m.encode(key)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+manifestName)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, manifestName)); err != nil {
		return err
	}
	return syncDir(dir)
}

// Read reads the manifest of a backup and believes nothing that the key did not
// sign.
func Read(dir string, key []byte) (m Manifest, err error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, ErrNoBackup
	} else if err != nil {
		return m, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return m, err
	}
	if len(text) > maxManifestBytes {
		return m, &TamperedError{manifestName + " es demasiado grande"}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, &TamperedError{manifestName + " es ilegible"}
	}
	if m.Backup > manifestFormat {
		return m, ErrNewer
	}
	again, err := m.encode(key)
	if err != nil {
		return m, err
	}
	if !hmac.Equal(again, text) {
		return m, &TamperedError{"la firma de " + manifestName + " no es la de este secreto"}
	}
	for i, f := range m.Files {
		// Signed by us: this is about mistakes of ours, which must not write outside.
		if !filepath.IsLocal(f.Path) || path.Clean(f.Path) != f.Path || f.Path == manifestName || i > 0 && m.Files[i-1].Path >= f.Path {
			return m, &TamperedError{fmt.Sprintf("%s nombra %q", manifestName, f.Path)}
		}
	}
	return m, nil
}

// measure hashes a file; its Path stays empty.
func measure(ctx context.Context, path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	return copyTo(ctx, io.Discard, f)
}

// copyTo copies until ctx ends and says what it copied.
func copyTo(ctx context.Context, to io.Writer, from io.Reader) (File, error) {
	sum := sha256.New()
	var f File
	for {
		if err := ctx.Err(); err != nil {
			return f, err
		}
		n, err := io.CopyN(io.MultiWriter(to, sum), from, 8<<20)
		f.Bytes += n
		if errors.Is(err, io.EOF) {
			f.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return f, nil
		}
		if err != nil {
			return f, err
		}
	}
}

// headsMatch compares the heads of an opened store with those of the manifest.
func (m *Manifest) headsMatch(heads []ledger.Head) bool {
	var found Manifest
	found.setHeads(heads)
	a, errA := canon.Marshal(found.Heads)
	b, errB := canon.Marshal(m.Heads)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}
