package export

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"cotejo/canon"
	"cotejo/ledger"
	"cotejo/snapshots"
)

// The files of an evidence export.
const (
	registrosFile = "registros.jsonl"
	actasFile     = "actas.jsonl"
	chainFile     = "cadena.jsonl"
	ordersFile    = "lotes.jsonl"
	chargesFile   = "cargos.jsonl"
	anchorFile    = "ancla.json"
	editionsDir   = "ediciones"
	versionsDir   = "versiones"
)

// chainLine is one line of the chain.
type chainLine struct {
	Sum    string `json:"cabeza"`
	Digest string `json:"digesto"`
	Group  int    `json:"grupo"`
	Seq    uint64 `json:"lote"`
}

// Evidence writes what a stranger needs to check the answers of live keys into the
// folder to, as Parquet does: registros and actas to the byte, the chains and their
// anchor, and the manifests of the editions and versions that they name. Answers of
// test keys are about invented data and are left out.
func Evidence(ctx context.Context, to string, s Source) (Manifest, error) {
	return s.write(to, func(f *folder) (*Manifest, error) {
		// Read first: whatever it names is durable, so it is in every view.
		if err := s.anchor(f); err != nil {
			return nil, err
		}
		e := evidence{Source: &s, folder: f, editions: map[string]bool{}, numbers: map[int]bool{}, versions: map[int]bool{}}
		for name, o := range map[string]**output{registrosFile: &e.registros, actasFile: &e.actas, chainFile: &e.chain,
			ordersFile: &e.orders, chargesFile: &e.charges} {
			var err error
			if *o, err = f.create(name); err != nil {
				return nil, err
			}
		}
		heads, err := s.walk(ctx, f, func(v ledger.GroupView) error {
			if err := e.links(ctx, v); err != nil {
				return err
			}
			return v.Accounts(func(account ledger.AccountID) error {
				err := v.Records(account, func(r ledger.Record) error {
					if r.Sandbox || r.Org.Sandbox() || !s.wants(r.Org) {
						return nil
					}
					if err := s.step(ctx, f, v); err != nil {
						return err
					}
					return e.record(&r)
				})
				if err != nil {
					return err
				}
				return v.Orders(account, func(o *ledger.Order) error {
					if o.Sandbox || o.Org.Sandbox() || !s.wants(o.Org) {
						return nil
					}
					return e.order(ctx, v, account, o)
				})
			})
		})
		if err != nil {
			return nil, err
		}
		if err := e.manifests(); err != nil {
			return nil, err
		}
		return s.manifest(KindEvidence, heads), nil
	})
}

type evidence struct {
	*Source
	*folder
	registros, actas, chain, orders, charges *output

	// What the answers name.
	editions map[string]bool // by edicion_sha256
	numbers  map[int]bool    // editions by number
	versions map[int]bool
}

// anchor copies the anchor as it is at this moment. There may be none.
func (s *Source) anchor(f *folder) error {
	if _, err := ledger.ReadAnchor(s.Anchor); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	text, err := os.ReadFile(s.Anchor)
	if err != nil {
		return err
	}
	return f.put(anchorFile, text)
}

// put writes a file of one line.
func (f *folder) put(name string, text []byte) error {
	o, err := f.create(name)
	if err != nil {
		return err
	}
	if _, err := o.Write(text); err != nil {
		return err
	}
	o.rows = 1
	return o.close()
}

func (e *evidence) links(ctx context.Context, v ledger.GroupView) error {
	return v.Links(func(l ledger.Link) error {
		if err := e.step(ctx, e.folder, v); err != nil {
			return err
		}
		line, err := canon.Marshal(chainLine{hex.EncodeToString(l.Sum[:]), hex.EncodeToString(l.Digest[:]), int(v.Group), l.Seq})
		if err != nil {
			return err
		}
		return e.chain.line(line)
	})
}

// record writes the two lines of an answer and notes what its acta names.
func (e *evidence) record(r *ledger.Record) error {
	var acta struct {
		Versions []struct {
			ID int `json:"id"`
		} `json:"versiones"`
		Known map[string]*struct {
			Edition int `json:"edicion"`
			Source  struct {
				Version int `json:"source_version_id"`
			} `json:"fuente"`
		} `json:"conocida"`
	}
	if err := json.Unmarshal(r.Acta, &acta); err != nil {
		return fmt.Errorf("%w: el acta de %v no es JSON: corra «cotejo verify %v»", ledger.ErrIntegrity, r.ID, r.ID)
	}
	for _, v := range acta.Versions {
		e.versions[v.ID] = true
	}
	for _, k := range acta.Known {
		if k != nil {
			e.numbers[k.Edition], e.versions[k.Source.Version] = true, true
		}
	}
	e.editions[hex.EncodeToString(r.Edition[:])] = true
	if err := e.registros.line(r.Registro); err != nil {
		return err
	}
	return e.actas.line(r.Acta)
}

// manifests copies those of the editions and versions that the answers name, and of
// the versions that those editions name.
func (e *evidence) manifests() error {
	all, _, err := e.Catalogue.Editions()
	if err != nil {
		return err
	}
	missing := maps.Clone(e.editions)
	for _, m := range all {
		if e.editions[m.SHA256] {
			e.numbers[m.Number] = true
			delete(missing, m.SHA256)
		}
	}
	for _, sha := range slices.Sorted(maps.Keys(missing)) {
		// The edition without sources has no manifest; of any other the error says
		// what is missing or damaged.
		if _, err := e.Catalogue.EditionsBySHA256(sha); err != nil {
			return fmt.Errorf("export: la nombra un registro: %w", err)
		}
	}
	delete(e.numbers, 0)
	for _, n := range slices.Sorted(maps.Keys(e.numbers)) {
		text, err := e.Catalogue.EditionText(n)
		if err != nil {
			return err
		}
		var m snapshots.EditionManifest
		if err := json.Unmarshal(text, &m); err != nil {
			return err
		}
		for _, s := range m.Sources {
			for _, id := range s.Chain {
				e.versions[id] = true
			}
		}
		if err := e.put(fmt.Sprintf("%s/%d.json", editionsDir, n), text); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(e.versions)) {
		text, err := e.Catalogue.VersionText(id)
		if err != nil {
			return err
		}
		if err := e.put(fmt.Sprintf("%s/%d.json", versionsDir, id), text); err != nil {
			return err
		}
	}
	return nil
}
