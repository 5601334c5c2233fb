package generate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cotejo/checks"
)

const (
	// maxSample is how many RFCs of a source are sampled.
	maxSample = 20_000
	// stopEvery is how many records are written between two looks at the context.
	stopEvery = 1024
)

// file is a table that is being written, under a temporary name.
type file struct {
	ctx     context.Context
	dir     string
	done    File
	out     *os.File
	buffer  *bufio.Writer
	hash    hash.Hash
	records int

	rows   map[uint64]uint32 // by RFC (checks.PackRFC)
	most   uint32            // rows of done.Heaviest
	sample []sampled
	random *rand.Rand // for the sample
}

// sampled is an RFC and how many other ones came before it.
type sampled struct {
	rfc string
	at  int
}

func pendingName(name string) string { return "." + name + ".parcial" }

func create(ctx context.Context, dir, source string, seed uint64) (*file, error) {
	name := source + ".csv"
	out, err := os.Create(filepath.Join(dir, pendingName(name)))
	if err != nil {
		return nil, err
	}
	return &file{
		ctx: ctx, dir: dir, out: out, buffer: bufio.NewWriterSize(out, 1<<18), hash: sha256.New(),
		done: File{Source: source, Name: name}, rows: map[uint64]uint32{}, random: rand.New(rand.NewPCG(seed, 69)),
	}, nil
}

// text writes bytes that are no row: titles, notes, blank records.
func (f *file) text(b []byte) error {
	f.hash.Write(b)
	f.done.Bytes += int64(len(b))
	_, err := f.buffer.Write(b)
	return err
}

// add writes one row of the taxpayer with an RFC; "" for one that nobody can ask for.
func (f *file) add(r *record, rfc []byte) error {
	if f.records++; f.records%stopEvery == 0 && f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	f.done.Rows++
	if key, ok := checks.PackRFC(rfc); ok {
		n := f.rows[key] + 1
		f.rows[key] = n
		if n == 1 {
			f.keep(rfc)
		}
		if n > f.most {
			f.most, f.done.Heaviest = n, string(rfc)
		}
	}
	return f.text(r.end())
}

// keep takes a new RFC into the sample, or not: each of those so far is in it with
// the same chance.
func (f *file) keep(rfc []byte) {
	at := len(f.rows) - 1
	if at < maxSample {
		f.sample = append(f.sample, sampled{string(rfc), at})
	} else if place := f.random.IntN(at + 1); place < maxSample {
		f.sample[place] = sampled{string(rfc), at}
	}
}

// finish gives the file its name.
func (f *file) finish() (File, error) {
	pending := f.out.Name()
	if err := errors.Join(f.buffer.Flush(), f.out.Close()); err != nil {
		return f.done, errors.Join(err, os.Remove(pending))
	}
	f.done.RFCs, f.done.HeaviestRows = len(f.rows), int(f.most)
	f.done.SHA256 = hex.EncodeToString(f.hash.Sum(nil))
	slices.SortFunc(f.sample, func(a, b sampled) int { return a.at - b.at })
	for _, s := range f.sample {
		f.done.Sample = append(f.done.Sample, s.rfc)
	}
	if err := os.Rename(pending, filepath.Join(f.dir, f.done.Name)); err != nil {
		return f.done, errors.Join(err, os.Remove(pending))
	}
	return f.done, nil
}

func (f *file) discard() error {
	return errors.Join(f.out.Close(), os.Remove(f.out.Name()))
}

// latin is a text in windows-1252, as the authorities write it; only the characters
// that this package uses.
func latin(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '“':
			b.WriteByte(0x93)
		case r == '”':
			b.WriteByte(0x94)
		case r < 0x80, r >= 0xa0 && r <= 0xff:
			b.WriteByte(byte(r))
		default:
			panic("generate: windows-1252 has no " + string(r) + " here")
		}
	}
	return b.String()
}

func latins(texts ...string) []string {
	for i, t := range texts {
		texts[i] = latin(t)
	}
	return texts
}
