package platform

import (
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/civil"
	op "cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// known are the sources that this build reads, whether they are loaded or not.
var known = []string{query.Sat69B.Source}

// States of a source in the health answer.
const (
	upToDate    = "al_dia"
	quarantined = "en_cuarentena"
	notLoaded   = "no_cargada"
)

// readAgain bounds how often anonymous callers can make the server read the
// catalogue from disk.
const readAgain = time.Second

// health answers from the catalogue, at most once per readAgain.
type health struct {
	Config
	mu   sync.Mutex // guards the rest
	last op.Response
	at   time.Time
}

type healthAnswer struct {
	Service     string         `json:"servicio"`
	Engine      string         `json:"engine_version"`
	Edition     *editionState  `json:"edicion"`
	Sources     []sourceState  `json:"fuentes"`
	Jobs        []struct{}     `json:"jobs"`
	Procurement procurement    `json:"contratacion_publica"`
	Alerts      []healthNotice `json:"alertas"`
}

type editionState struct {
	Number    int    `json:"numero"`
	SHA256    string `json:"edicion_sha256"`
	Published string `json:"publicada"`
}

type sourceState struct {
	Source     string      `json:"source"`
	SHA256     *string     `json:"sha256"`
	Rows       *int        `json:"registros"`
	Published  *string     `json:"publicada"`
	Corte      *string     `json:"corte"`
	Downloaded *string     `json:"descargada"`
	Checked    *string     `json:"revisada"`
	VersionID  *int        `json:"source_version_id"`
	State      string      `json:"estado"`
	Quarantine *quarantine `json:"cuarentena"`
	Help       *string     `json:"ayuda"`
}

type quarantine struct {
	VersionID int               `json:"source_version_id"`
	Faults    []snapshots.Fault `json:"motivos"`
}

type procurement struct {
	State      string  `json:"estado"`
	Corte      *string `json:"corte"`
	Downloaded *string `json:"descargada"`
}

type healthNotice struct {
	Kind    string `json:"tipo"`
	Message string `json:"mensaje"`
}

func (h *health) read() (op.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Now()
	if h.last.Body != nil && now.Sub(h.at) < readAgain && !now.Before(h.at) {
		return h.last, nil
	}
	a, err := h.compose()
	if err != nil {
		return op.Response{}, err
	}
	resp, err := answerJSON(a)
	if err == nil {
		h.last, h.at = resp, now
	}
	return resp, err
}

func (h *health) compose() (*healthAnswer, error) {
	versions, err := h.Catalogue.Versions()
	if err != nil {
		return nil, err
	}
	ed := h.Live.Acquire()
	defer ed.Release()
	a := &healthAnswer{
		Service: "cotejo", Engine: op.EngineVersion, Jobs: []struct{}{}, Alerts: []healthNotice{},
		Procurement: procurement{State: "SOURCE_NOT_LOADED"},
	}
	if m := ed.Manifest(); m.Number > 0 {
		a.Edition = &editionState{m.Number, m.SHA256, m.Published}
	} else {
		a.Alerts = append(a.Alerts, healthNotice{"SIN_EDICION",
			"Todavía no hay ninguna fuente cargada: las verificaciones responden SOURCE_UNAVAILABLE y no se cobran."})
	}
	if err := h.Live.Fault(); err != nil {
		a.Alerts = append(a.Alerts, healthNotice{"EDICION_DANADA",
			"La edición más nueva no se puede abrir porque un archivo publicado está dañado; sigue respondiendo la anterior. Revise con: cotejo doctor"})
	}
	for _, id := range known {
		s, err := h.source(id, ed.Source(id), newest(versions, id))
		if err != nil {
			return nil, err
		}
		if s.State == quarantined {
			a.Alerts = append(a.Alerts, healthNotice{"FUENTE_EN_CUARENTENA",
				id + ": la última descarga no pasó la revisión; sigue respondiendo la versión anterior, si la hay."})
		}
		a.Sources = append(a.Sources, s)
	}
	return a, nil
}

// newest returns the last downloaded version of a source, nil when there is none.
func newest(versions []snapshots.Version, source string) *snapshots.Version {
	var last *snapshots.Version
	for i := range versions {
		if versions[i].Source == source && (last == nil || versions[i].ID > last.ID) {
			last = &versions[i]
		}
	}
	return last
}

// source describes one source: what serves, and what was downloaded last.
func (h *health) source(id string, serving *snapshots.Source, last *snapshots.Version) (sourceState, error) {
	s := sourceState{Source: id, State: notLoaded}
	checked, err := h.Catalogue.LastChecked(id)
	if err != nil {
		return s, err
	}
	if !checked.IsZero() {
		s.Checked = ptr(civil.Timestamp(checked))
	}
	if serving != nil {
		v := serving.Version()
		s.State = upToDate
		s.SHA256, s.Rows, s.VersionID = ptr(v.SHA256), ptr(v.Rows), ptr(v.ID)
		s.Published, s.Downloaded = ptr(serving.Entry().PublishedReset), ptr(v.Downloaded)
		if !v.Corte.IsZero() {
			s.Corte = ptr(v.Corte.String())
		}
		if s.Checked == nil {
			s.Checked = s.Downloaded
		}
	} else {
		s.Help = ptr("Cargue la fuente con: cotejo ingest " + id)
	}
	if last != nil && len(last.Faults) > 0 && (s.VersionID == nil || last.ID > *s.VersionID) {
		s.State = quarantined
		s.Quarantine = &quarantine{last.ID, last.Faults}
	}
	return s, nil
}

func ptr[T any](v T) *T { return &v }

func healthSchema() *jsonschema.Schema {
	return op.Titled("Salud", op.Object(
		op.F("servicio", op.Text("")),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.F("edicion", op.OrNull(op.Object(
			op.F("numero", op.Integer("")),
			op.F("edicion_sha256", op.SHA256("")),
			op.F("publicada", op.Moment("")),
		))),
		op.F("fuentes", op.List(op.Object(
			op.F("source", op.Text("")),
			op.F("sha256", op.OrNull(op.SHA256("Del archivo oficial que responde."))),
			op.F("registros", op.OrNull(op.Integer(""))),
			op.F("publicada", op.OrNull(op.Moment("Cuándo empezó a responderse desde esta versión (publicada_en_reset)."))),
			op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo."))),
			op.F("descargada", op.OrNull(op.Moment(""))),
			op.F("revisada", op.OrNull(op.Moment("Última vez que se buscó una versión nueva."))),
			op.F("source_version_id", op.OrNull(op.Integer(""))),
			op.F("estado", op.OneOf("De nuestra copia, no de ninguna empresa.", upToDate, quarantined, notLoaded)),
			op.F("cuarentena", op.OrNull(op.Object(
				op.F("source_version_id", op.Integer("")),
				op.F("motivos", op.List(op.Object(op.F("codigo", op.Text("")), op.F("mensaje", op.Text(""))), "")),
			))),
			op.F("ayuda", op.OrNull(op.Text("Qué hacer si la fuente no está cargada."))),
		), "Una por fuente que esta versión del servicio sabe leer.")),
		op.F("jobs", op.Empty("Tareas programadas.")),
		op.F("contratacion_publica", op.Object(
			op.F("estado", op.OneOf("", "SOURCE_NOT_LOADED")),
			op.F("corte", op.OrNull(op.Day(""))),
			op.F("descargada", op.OrNull(op.Moment(""))),
		)),
		op.F("alertas", op.List(op.Object(op.F("tipo", op.Text("")), op.F("mensaje", op.Text(""))), "")),
	))
}
