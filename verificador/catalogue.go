package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const maxCatalogueFile = 4 << 20

// version is what this program reads of versiones/<id>.json.
type version struct {
	ID         int    `json:"source_version_id"`
	Source     string `json:"source"`
	SHA256     string `json:"sha256"`
	Reader     int    `json:"lector"`
	RowsDigest string `json:"filas_digest"`
	Rows       int    `json:"filas"`
	Corte      string `json:"corte"`
	OrderDate  string `json:"fecha_de_orden"`
	URL        string `json:"url"`
	Obtained   string `json:"obtenida_de"`
	Downloaded string `json:"descargada"`
	Published  string `json:"ultima_modificacion_servidor"`
}

// edition is what this program reads of ediciones/<n>.json.
type edition struct {
	Number    int     `json:"edicion"`
	SHA256    string  `json:"edicion_sha256"`
	Published string  `json:"publicada"`
	Sources   []entry `json:"fuentes"`
}

type entry struct {
	Source         string `json:"source"`
	Version        int    `json:"source_version_id"`
	SHA256         string `json:"sha256"`
	Reader         int    `json:"lector"`
	RowsDigest     string `json:"filas_digest"`
	HistoryDigest  string `json:"historia_digest"`
	Corte          string `json:"corte"`
	OrderDate      string `json:"fecha_de_orden"`
	PublishedReset string `json:"publicada_en_reset"`
	Chain          []int  `json:"historia"`
}

// emptyEdition is the edition before the first source: the hash of an empty list. It
// has no manifest.
var emptyEdition = hash([]byte("[]"))

type catalogue struct {
	editions map[int]*edition
	bySHA    map[string][]*edition
	versions map[int]*version
}

// readCatalogue reads the manifests, each with its own hash, and compares editions
// with the versions that they name.
func readCatalogue(dir fs.FS, m *manifest, r *report) (*catalogue, error) {
	c := &catalogue{map[int]*edition{}, map[string][]*edition{emptyEdition: nil}, map[int]*version{}}
	for _, f := range m.Files {
		folder, name := path.Split(f.Path)
		digits, ok := strings.CutSuffix(name, ".json")
		n, err := strconv.Atoi(digits)
		if folder == "" {
			continue
		}
		if !ok || err != nil || n < 1 || folder != "ediciones/" && folder != "versiones/" {
			r.fault("%s: no es el nombre de un manifiesto", f.Path)
			continue
		}
		text, err := readFile(dir, f.Path, maxCatalogueFile)
		if err != nil {
			return c, err
		}
		if folder == "ediciones/" {
			e := new(edition)
			err = ownSum(text, "manifiesto_sha256", e)
			if err == nil && e.Number != n {
				err = fmt.Errorf("es la edición %d", e.Number)
			}
			if err == nil {
				err = e.check()
			}
			c.editions[n], c.bySHA[e.SHA256] = e, append(c.bySHA[e.SHA256], e)
		} else {
			v := new(version)
			err = ownSum(text, "manifiesto_sha256", v)
			if err == nil && v.ID != n {
				err = fmt.Errorf("es la versión %d", v.ID)
			}
			c.versions[n] = v
		}
		if err != nil {
			r.fault("%s: %v", f.Path, err)
		}
	}
	for n, e := range c.editions {
		for i := range e.Sources {
			if what := c.differs(&e.Sources[i]); what != "" {
				r.fault("ediciones/%d.json: %s: %s", n, e.Sources[i].Source, what)
			}
		}
	}
	r.check("%d ediciones, cada edicion_sha256 calculada de sus fuentes, y %d versiones que concuerdan con ellas", len(c.editions), len(c.versions))
	return c, nil
}

// check computes edicion_sha256 again.
func (e *edition) check() error {
	list := make([]any, 0, len(e.Sources))
	for i, s := range e.Sources {
		if i > 0 && e.Sources[i-1].Source >= s.Source {
			return fmt.Errorf("%s está fuera de lugar", s.Source)
		}
		var corte any
		if s.Corte != "" {
			corte = s.Corte
		}
		list = append(list, map[string]any{
			"corte": corte, "fecha_de_orden": s.OrderDate, "filas_digest": s.RowsDigest, "historia_digest": s.HistoryDigest,
			"lector": json.Number(strconv.Itoa(s.Reader)), "sha256": s.SHA256, "source": s.Source,
		})
	}
	text, err := appendValue(nil, list)
	if err != nil {
		return err
	}
	if got := hash(text); got != e.SHA256 {
		return fmt.Errorf("edicion_sha256 dice %s y sus fuentes dan %s", e.SHA256, got)
	}
	return nil
}

// differs compares an entry of an edition with the versions that it names.
func (c *catalogue) differs(e *entry) string {
	if len(e.Chain) == 0 || e.Chain[len(e.Chain)-1] != e.Version {
		return fmt.Sprintf("su historia %v no termina en la versión %d", e.Chain, e.Version)
	}
	for _, id := range e.Chain {
		if v := c.versions[id]; v == nil || v.Source != e.Source {
			return fmt.Sprintf("falta su versión %d", id)
		}
	}
	v := c.versions[e.Version]
	if v.SHA256 != e.SHA256 || v.Reader != e.Reader || v.RowsDigest != e.RowsDigest || v.Corte != e.Corte || v.OrderDate != e.OrderDate {
		return fmt.Sprintf("la versión %d dice otra cosa", e.Version)
	}
	return ""
}

// entryOf finds what an edition says of the source of a version of its histories.
func (e *edition) entryOf(id int) *entry {
	for i := range e.Sources {
		if slices.Contains(e.Sources[i].Chain, id) {
			return &e.Sources[i]
		}
	}
	return nil
}
