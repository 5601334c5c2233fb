package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// chainLine is one line of cadena.jsonl.
type chainLine struct {
	Sum    string `json:"cabeza"`
	Digest string `json:"digesto"`
	Group  int    `json:"grupo"`
	Seq    uint64 `json:"lote"`
}

var noHead = strings.Repeat("0", 64)

// pinned are heads that the chain must pass through, and who says so.
type pinned struct {
	who   string
	heads []head
}

// anchorText is ancla.json.
type anchorText struct {
	Sum    string `json:"ancla_sha256"`
	Format int    `json:"formato"`
	Groups []head `json:"grupos"`
}

func readAnchor(text []byte) ([]head, error) {
	var t anchorText
	if err := ownSum(text, "ancla_sha256", &t); err != nil {
		return nil, err
	}
	if t.Format != 1 || len(t.Groups) != groups {
		return nil, fmt.Errorf("formato %d con %d grupos", t.Format, len(t.Groups))
	}
	for i, h := range t.Groups {
		if h.Group != i {
			return nil, fmt.Errorf("el grupo %d está fuera de lugar", i)
		}
	}
	return t.Groups, nil
}

// checkChain computes every head again from the digests, from the first link of each
// group on, and compares it with whoever names it.
func checkChain(dir fs.FS, m *manifest, pins []pinned, r *report) (err error) {
	l, err := openLines(dir, "cadena.jsonl")
	if errors.Is(err, fs.ErrNotExist) {
		r.fault("falta cadena.jsonl")
		return nil
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	var first, last [groups]uint64
	var sums [groups]string
	for g := range sums {
		sums[g] = noHead
	}
	found := map[string]bool{} // pins that the chain passed through
	count, group := 0, 0
	for text, more := l.next(); more; text, more = l.next() {
		count++
		var k chainLine
		if err := decodeStrict(text, &k); err != nil {
			r.fault("cadena.jsonl, línea %d: %v", count, err)
			continue
		}
		if k.Group < group || k.Group >= groups || k.Seq == 0 {
			r.fault("cadena.jsonl, línea %d: el lote %d del grupo %d está fuera de lugar", count, k.Seq, k.Group)
			continue
		}
		group = k.Group
		if first[group] == 0 {
			first[group] = k.Seq
		} else if k.Seq != last[group]+1 {
			r.fault("cadena del grupo %d: después del lote %d sigue el %d", group, last[group], k.Seq)
		}
		want, err := follows(sums[group], k.Digest, k.Seq)
		if err != nil || want != k.Sum {
			r.fault("cadena del grupo %d: la cabeza del lote %d no sigue de la anterior y su digesto", group, k.Seq)
		}
		last[group], sums[group] = k.Seq, k.Sum
		for _, p := range pins {
			if h := p.heads[group]; h.Seq == k.Seq && h.Sum == k.Sum {
				found[fmt.Sprint(p.who, group)] = true
			}
		}
	}
	for _, h := range m.Heads {
		if h.Sum != sums[h.Group] || h.Sum != noHead && h.Seq != last[h.Group] {
			r.fault("la cadena del grupo %d termina en el lote %d con %s; el manifiesto dice %d con %s",
				h.Group, last[h.Group], sums[h.Group], h.Seq, h.Sum)
		}
	}
	r.check("cadena: %d eslabones en %d grupos, cada cabeza calculada desde los digestos hasta la del manifiesto", count, groups)
	for _, p := range pins {
		for _, h := range p.heads {
			// A head of zeros is of a group that had no link then.
			if h.Sum != noHead && !found[fmt.Sprint(p.who, h.Group)] {
				r.fault("%s: en el grupo %d el lote %d con cabeza %s no está en la cadena", p.who, h.Group, h.Seq, h.Sum)
			}
			if h.Sum == noHead && first[h.Group] != 0 && first[h.Group] <= h.Seq {
				r.fault("%s: en el grupo %d no había cadena hasta el lote %d, y aquí empieza en el %d", p.who, h.Group, h.Seq, first[h.Group])
			}
		}
		r.check("%s: la cadena pasa por sus %d cabezas", p.who, len(p.heads))
	}
	return nil
}

// follows is SHA-256(head before | digest | number of the batch, 8 bytes).
func follows(before, digest string, seq uint64) (string, error) {
	a, errA := hex.DecodeString(before)
	b, errB := hex.DecodeString(digest)
	if errA != nil || errB != nil || len(a) != sha256.Size || len(b) != sha256.Size || strings.ToLower(digest) != digest {
		return "", errors.New("no es un SHA-256 en minúsculas")
	}
	return hash(binary.BigEndian.AppendUint64(append(a, b...), seq)), nil
}
