package platform

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	op "cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// known are the sources that this build reads, whether they are loaded or not.
var known = []string{query.Sat69B.Source}

// States of a source in the health answer. The last attempt to renew it decides:
// what serves does not change when an attempt goes wrong.
const (
	loaded      = "cargada" // no claim that nothing newer was published
	quarantined = "en_cuarentena"
	noAnswer    = "no_responde"
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
	Failure    *string     `json:"falla"`
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
	_, damaged, err := h.Catalogue.Versions()
	if err != nil {
		return nil, err
	}
	ed := h.Live.Acquire()
	defer ed.Release()
	a := &healthAnswer{
		Service: "cotejo", Engine: op.EngineVersion, Jobs: []struct{}{}, Alerts: []healthNotice{},
		Procurement: procurement{State: "SOURCE_NOT_LOADED"},
	}
	alert := func(kind, format string, args ...any) {
		a.Alerts = append(a.Alerts, healthNotice{kind, fmt.Sprintf(format, args...)})
	}
	fault := h.Live.Fault()
	switch m := ed.Manifest(); {
	case m.Number > 0:
		a.Edition = &editionState{m.Number, m.SHA256, m.Published}
		if fault != nil {
			alert("EDICION_DANADA", "La edición más nueva no se puede abrir%s; sigue respondiendo la anterior. Revise con: cotejo doctor", damagedFile(fault))
		}
	case fault != nil:
		alert("EDICION_DANADA", "Ninguna edición se puede abrir%s: las verificaciones responden SOURCE_UNAVAILABLE y no se cobran. Revise con: cotejo doctor", damagedFile(fault))
	default:
		alert("SIN_EDICION", "Todavía no hay ninguna fuente cargada: las verificaciones responden SOURCE_UNAVAILABLE y no se cobran.")
	}
	for _, err := range damaged {
		alert("ARCHIVO_DANADO", "Un manifiesto no es el que se publicó%s. Lo que responde ahora no depende de él; restáurelo de una copia de respaldo.", damagedFile(err))
	}
	for _, id := range known {
		serving := ed.Source(id)
		s := h.source(id, serving, alert)
		if serving == nil && fault == nil {
			s.Help = ptr("Cargue la fuente con: cotejo ingest " + id)
		}
		a.Sources = append(a.Sources, s)
	}
	return a, nil
}

// damagedFile names the file that an error is about, when it is about one. The
// path is relative to the catalogue: it says nothing about the machine.
func damagedFile(err error) string {
	var corrupt *snapshots.CorruptError
	if errors.As(err, &corrupt) {
		return " (" + corrupt.Path + ")"
	}
	return ""
}

// source describes one source: what serves, and how the last attempt to renew it
// ended.
func (h *health) source(id string, serving *snapshots.Source, alert func(kind, format string, args ...any)) sourceState {
	s := sourceState{Source: id, State: notLoaded}
	if serving != nil {
		v := serving.Version()
		s.State = loaded
		s.SHA256, s.Rows, s.VersionID = ptr(v.SHA256), ptr(v.Rows), ptr(v.ID)
		s.Published, s.Downloaded = ptr(serving.Entry().PublishedReset), ptr(v.Downloaded)
		if !v.Corte.IsZero() {
			s.Corte = ptr(v.Corte.String())
		}
		s.Checked = s.Downloaded
	}
	last, ok, err := h.Catalogue.LastAttempt(id)
	if err != nil {
		alert("ARCHIVO_DANADO", "%s: no se puede leer cómo terminó el último intento de renovarla%s. Se escribe de nuevo en el próximo.", id, damagedFile(err))
	}
	if !ok || err != nil {
		return s
	}
	if serving != nil && before(last.At, serving.Version().Downloaded) {
		// Whoever published what serves died before it could say so.
		return s
	}
	s.Checked = ptr(last.At)
	switch last.Outcome {
	case snapshots.OutcomeQuarantined:
		s.State, s.Quarantine = quarantined, &quarantine{last.VersionID, last.Faults}
		alert("FUENTE_EN_CUARENTENA", "%s: la última descarga no pasó la revisión; sigue respondiendo la versión anterior, si la hay.", id)
	case snapshots.OutcomeFailed:
		s.State, s.Failure = noAnswer, ptr(last.Error)
		alert("FUENTE_NO_RESPONDE", "%s: el último intento de renovarla no obtuvo un archivo; sigue respondiendo la versión anterior, si la hay.", id)
	}
	return s
}

// before compares two moments of manifests, which are well-formed.
func before(a, b string) bool {
	x, errX := time.Parse(time.RFC3339, a)
	y, errY := time.Parse(time.RFC3339, b)
	return errX == nil && errY == nil && x.Before(y)
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
			op.F("revisada", op.OrNull(op.Moment("Cuándo fue el último intento de renovarla, haya terminado como haya terminado."))),
			op.F("source_version_id", op.OrNull(op.Integer(""))),
			op.F("estado", op.OneOf("Cómo terminó el último intento de renovar nuestra copia; no dice nada de ninguna empresa. "+
				"cargada no afirma que la autoridad no haya publicado algo más nuevo.", loaded, quarantined, noAnswer, notLoaded)),
			op.F("cuarentena", op.OrNull(op.Object(
				op.F("source_version_id", op.Integer("")),
				op.F("motivos", op.List(op.Object(op.F("codigo", op.Text("")), op.F("mensaje", op.Text(""))), "")),
			))),
			op.F("falla", op.OrNull(op.Text("Por qué el último intento no obtuvo un archivo."))),
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
