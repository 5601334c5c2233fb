package export

import (
	"crypto/sha256"
	"encoding/hex"

	"cotejo/accounts"
	"cotejo/canon"
	"cotejo/ledger"
)

// ManifestName is the file that makes a folder an export.
const ManifestName = "MANIFIESTO.json"

// What a folder holds.
const (
	KindParquet  = "parquet"
	KindEvidence = "evidencia"
)

// format of the manifest and of the files that it names. 2: orders of verifications.
const format = 2

// Manifest is what an export says of itself: canonical JSON and a line feed. It has
// no moment and no name of a machine: it is a function of the content.
type Manifest struct {
	Files  []File `json:"archivos"` // by path
	Heads  []Head `json:"cabezas"`  // of the chains that the content is of, by group
	Kind   string `json:"exportacion"`
	Format int    `json:"formato"`
	Sum    string `json:"manifiesto_sha256,omitempty"` // of the text without this member
	Org    string `json:"org,omitempty"`               // the only one whose rows are in it, and its twin for tests; absent: all
}

// File is one file of an export, the manifest apart.
type File struct {
	Bytes  int64  `json:"bytes"`
	Rows   int64  `json:"filas"` // of a table; lines of a text
	Path   string `json:"ruta"`  // with slashes
	SHA256 string `json:"sha256"`
}

// Head is where the chain of a group ends.
type Head struct {
	Sum   string `json:"cabeza"`
	Group int    `json:"grupo"`
	Seq   uint64 `json:"lote"`
}

func (s *Source) manifest(kind string, heads []ledger.Head) *Manifest {
	m := &Manifest{Kind: kind, Format: format}
	if s.Org != 0 {
		m.Org = accounts.FormatOrg(s.Org)
	}
	for _, h := range heads {
		m.Heads = append(m.Heads, Head{hex.EncodeToString(h.Sum[:]), int(h.Group), h.Seq})
	}
	return m
}

// encode sets the sum and returns the text.
func (m *Manifest) encode() ([]byte, error) {
	m.Sum = ""
	body, err := canon.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	m.Sum = hex.EncodeToString(sum[:])
	text, err := canon.Marshal(m)
	return append(text, '\n'), err
}
