package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"time"
	"unique"
)

// registro is one line of registros.jsonl.
type registro struct {
	Edition  string          `json:"edicion_sha256"`
	Input    json.RawMessage `json:"entrada"`
	Date     string          `json:"fecha"`
	Motor    string          `json:"motor"`
	Observed json.RawMessage `json:"observado"`
	Result   json.RawMessage `json:"resultado"`
}

// acta is one line of actas.jsonl.
type acta struct {
	Known    map[string]*known `json:"conocida,omitempty"`
	Asked    string            `json:"consultado"`
	Engine   string            `json:"engine_version"`
	SHA256   string            `json:"registro_sha256"`
	ID       string            `json:"verification_id"`
	Versions []consulted       `json:"versiones"`
}

type consulted struct {
	Downloaded     string  `json:"descargada"`
	ID             int     `json:"id"`
	Obtained       string  `json:"obtenida_de"`
	PublishedReset *string `json:"publicada_en_reset,omitempty"`
	SHA256         string  `json:"sha256"`
	Source         string  `json:"source"`
	Published      string  `json:"ultima_modificacion_servidor,omitempty"`
	URL            string  `json:"url"`
}

// known is what was served at the end of an earlier day.
type known struct {
	Edition   int             `json:"edicion"`
	SHA256    string          `json:"edicion_sha256"`
	State     string          `json:"estado"`
	Published string          `json:"publicada"`
	Rows      json.RawMessage `json:"situaciones"`
	Omitted   int             `json:"situaciones_omitidas,omitempty"`
	Source    struct {
		Corte          *string `json:"corte"`
		Downloaded     string  `json:"descargada"`
		OrderDate      string  `json:"fecha_de_orden"`
		ID             string  `json:"id"`
		Obtained       string  `json:"obtenida_de"`
		PublishedReset string  `json:"publicada_en_reset"`
		Rows           int     `json:"registros_en_version"`
		SHA256         string  `json:"sha256"`
		Version        int     `json:"source_version_id"`
		Published      *string `json:"ultima_modificacion_servidor"`
		URL            string  `json:"url"`
	} `json:"fuente"`
}

var (
	idForm     = regexp.MustCompile(`^[A-Z]{3}-[0-9]{8}-[0-9a-f]{8}$`)
	engineForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
	motorForm  = regexp.MustCompile(`^[A-Z]+/[1-9][0-9]*$`)
)

// answered is what orders say again of an answer.
type answered struct{ edition, motor string }

// checkAnswers lays each acta beside the registro of the same line and both beside
// the manifests. It returns the answers by verification_id.
func checkAnswers(dir fs.FS, c *catalogue, r *report) (ids map[string]answered, err error) {
	ids = map[string]answered{}
	var files [2]*lines
	for i, name := range []string{"registros.jsonl", "actas.jsonl"} {
		l, err := openLines(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			r.fault("falta %s", name)
			return ids, nil
		} else if err != nil {
			return ids, err
		}
		defer func() { err = errors.Join(err, l.close()) }()
		files[i] = l
	}
	n := 0
	for {
		text, more := files[0].next()
		beside, also := files[1].next()
		if more != also {
			r.fault("registros.jsonl y actas.jsonl no tienen las mismas líneas: una termina en la %d", n)
			break
		}
		if !more {
			break
		}
		n++
		g, a, what := c.answer(text, beside)
		if _, twice := ids[a.ID]; what == "" && twice {
			what = a.ID + " ya está en otra línea"
		}
		ids[a.ID] = answered{unique.Make(g.Edition).Value(), unique.Make(g.Motor).Value()}
		if what != "" {
			r.fault("línea %d (%s): %s", n, a.ID, what)
		}
	}
	r.check("%d respuestas: cada registro con el SHA-256 de su acta; cada acta concuerda con su registro, su edición y sus versiones", n)
	return ids, nil
}

// answer says what is wrong with one answer, "" when nothing is.
func (c *catalogue) answer(text, beside []byte) (g registro, a acta, what string) {
	if err := decodeStrict(beside, &a); err != nil {
		return g, a, "acta: " + err.Error()
	}
	if err := decodeStrict(text, &g); err != nil {
		return g, a, "registro: " + err.Error()
	}
	if sum := hash(text); sum != a.SHA256 {
		return g, a, fmt.Sprintf("el acta dice registro_sha256 %s y el registro da %s", a.SHA256, sum)
	}
	var input struct {
		Past string `json:"en_fecha"`
	}
	if err := json.Unmarshal(g.Input, &input); err != nil {
		return g, a, "entrada: " + err.Error()
	}
	// -06:00 all year is the civil time of Mexico City.
	if asked, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(a.Asked, "-06:00")); err != nil || asked.Format("2006-01-02T15:04:05")+"-06:00" != a.Asked {
		return g, a, fmt.Sprintf("consultado %q no es un momento de la Ciudad de México", a.Asked)
	}
	day := a.Asked[:10]
	switch {
	case !idForm.MatchString(a.ID):
		return g, a, fmt.Sprintf("verification_id %q", a.ID)
	case a.ID[4:12] < strings.ReplaceAll(day, "-", ""):
		return g, a, fmt.Sprintf("consultado %s, después del día de %s", a.Asked, a.ID)
	case !engineForm.MatchString(a.Engine):
		return g, a, fmt.Sprintf("engine_version %q", a.Engine)
	case !motorForm.MatchString(g.Motor):
		return g, a, fmt.Sprintf("motor %q", g.Motor)
	case input.Past == "" && g.Date != day:
		return g, a, fmt.Sprintf("fecha %s y consultado %s", g.Date, a.Asked)
	case input.Past != "" && (g.Date != input.Past || g.Date > day):
		return g, a, fmt.Sprintf("en_fecha %s, fecha %s y consultado %s", input.Past, g.Date, a.Asked)
	case (a.Known != nil) != (input.Past != ""):
		return g, a, "conocida es de las respuestas que preguntan por un día anterior, y de ninguna otra"
	}
	editions, named := c.bySHA[g.Edition]
	if !named {
		return g, a, fmt.Sprintf("falta la edición %s", g.Edition)
	}
	if g.Edition == emptyEdition && len(editions) == 0 {
		editions = []*edition{{}}
	}
	// Editions of one hash differ in dates of publication only: one of them must fit.
	for _, e := range editions {
		if what = c.consulted(&a, e, text, input.Past != ""); what == "" {
			break
		}
	}
	if what != "" {
		return g, a, what
	}
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(g.Result, &lists); err != nil {
		return g, a, "resultado: " + err.Error()
	}
	for source, k := range a.Known {
		if _, asked := lists[source]; !asked {
			return g, a, fmt.Sprintf("conocida habla de %s y el registro no", source)
		}
		if k == nil {
			continue
		}
		if what := c.known(source, k); what != "" {
			return g, a, fmt.Sprintf("conocida, %s: %s", source, what)
		}
	}
	return g, a, ""
}

// consulted compares the versions that an acta names with an edition.
func (c *catalogue) consulted(a *acta, e *edition, text []byte, past bool) string {
	names := map[int]bool{}
	for _, s := range a.Versions {
		v, entry := c.versions[s.ID], e.entryOf(s.ID)
		if v == nil || entry == nil || names[s.ID] {
			return fmt.Sprintf("la versión %d no es de su edición, o está dos veces", s.ID)
		}
		names[s.ID] = true
		if s.Source != v.Source || s.SHA256 != v.SHA256 || s.Downloaded != v.Downloaded || s.Obtained != v.Obtained ||
			s.Published != v.Published || s.URL != v.URL {
			return fmt.Sprintf("de la versión %d dice otra cosa que su manifiesto", s.ID)
		}
		if serving := s.ID == entry.Version; serving != (s.PublishedReset != nil) || serving && *s.PublishedReset != entry.PublishedReset {
			return fmt.Sprintf("publicada_en_reset de la versión %d no es la de la edición", s.ID)
		} else if !serving && !past {
			return fmt.Sprintf("la versión %d no es la que estaba en servicio", s.ID)
		}
		if !bytes.Contains(text, []byte(s.SHA256)) {
			return fmt.Sprintf("nombra la versión %d y el registro no", s.ID)
		}
	}
	for _, entry := range e.Sources {
		if !names[entry.Version] && bytes.Contains(text, []byte(entry.SHA256)) {
			return fmt.Sprintf("el registro nombra la versión %d y el acta no", entry.Version)
		}
	}
	return ""
}

// known compares what was known on an earlier day with the manifests.
func (c *catalogue) known(source string, k *known) string {
	e, v := c.editions[k.Edition], c.versions[k.Source.Version]
	if e == nil || v == nil {
		return fmt.Sprintf("falta la edición %d o la versión %d", k.Edition, k.Source.Version)
	}
	entry := e.entryOf(v.ID)
	if entry == nil || entry.Version != v.ID || entry.Source != source || e.SHA256 != k.SHA256 || e.Published != k.Published ||
		entry.PublishedReset != k.Source.PublishedReset {
		return fmt.Sprintf("no es lo que dice la edición %d", k.Edition)
	}
	s := &k.Source
	if s.ID != v.Source || s.SHA256 != v.SHA256 || s.URL != v.URL || s.Obtained != v.Obtained || s.Downloaded != v.Downloaded ||
		s.OrderDate != v.OrderDate || s.Rows != v.Rows || deref(s.Corte) != v.Corte || deref(s.Published) != v.Published {
		return fmt.Sprintf("no es lo que dice la versión %d", v.ID)
	}
	return ""
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
