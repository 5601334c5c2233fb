// Package export writes what the accounts hold into folders that need no cotejo to
// be read: tables for SQL (Parquet), and evidence for an auditor with a program of
// their own (Evidence). docs/data-formats.md describes both to the byte.
//
// It promises that the same content gives the same bytes; that each group of
// accounts is read as it was at one moment, while a server may go on writing; and
// that a folder without its manifest is no export: every file gets its name when
// all are complete, the manifest last. It writes no secret: no API key or hash of
// one, no key of ids, nothing that is kept of repeated calls.
//
// Start reading at Parquet and Evidence, then folder.go.
package export

import (
	"context"
	"errors"
	"os"

	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

// ErrTarget refuses a place to write to: an export wants an empty folder outside the
// data directory.
var ErrTarget = errors.New("export: destino no admitido")

// Source is what an export is made of.
type Source struct {
	Dir    string // data directory, in which nothing is written
	Ledger *ledger.Ledger
	Org    ledger.OrgID // a legal entity with its twin for tests, or a twin alone; 0: all
	// Progress is told of every group that begins, and now and then within it.
	Progress func(Progress)

	// Of Evidence only.
	Catalogue *snapshots.Catalogue // of the official sources
	Anchor    string               // file of the ledger's anchor
}

// Progress is how far an export is.
type Progress struct {
	Group int   // 0 to Groups-1
	Rows  int64 // written so far
	Bytes int64
}

// Groups is how many groups an export reads, one after the other.
const Groups = store.Groups + 1

// progressEvery is how many rows pass between two words of progress.
const progressEvery = 4096

// walk reads all groups for an export into f and returns their heads.
func (s *Source) walk(ctx context.Context, f *folder, group func(ledger.GroupView) error) (heads []ledger.Head, err error) {
	err = s.Ledger.Groups(func(v ledger.GroupView) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.Progress(f.progress(v))
		head, err := v.Head()
		if err != nil {
			return err
		}
		heads = append(heads, head)
		return group(v)
	})
	return heads, err
}

// step is called for every row: it ends an export whose ctx ended, and tells how
// far it is.
func (s *Source) step(ctx context.Context, f *folder, v ledger.GroupView) error {
	if f.rows()%progressEvery == 0 {
		s.Progress(f.progress(v))
	}
	return ctx.Err()
}

func (s *Source) wants(org ledger.OrgID) bool {
	return s.Org == 0 || s.Org == org || s.Org == org.Entity()
}

// write makes the folder to with what fill puts into it.
func (s *Source) write(to string, fill func(*folder) (*Manifest, error)) (_ Manifest, err error) {
	f, err := openFolder(to, s.Dir)
	if err != nil {
		return Manifest{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.abandon())
		}
	}()
	m, err := fill(f)
	if err != nil {
		return Manifest{}, err
	}
	err = f.publish(m)
	return *m, err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
