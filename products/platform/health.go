package platform

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
	"cotejo/civil"
	op "cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// readAgain bounds how often anonymous callers can make the server read the
// catalogue from disk.
const readAgain = time.Second

// health answers from the catalogue, at most once per readAgain.
type health struct {
	Config
	mu      sync.Mutex // guards the rest
	last    op.Response
	sources op.Response // of /v1/fuentes
	at      time.Time
}

type healthAnswer struct {
	Service     string         `json:"servicio"`
	Engine      string         `json:"engine_version"`
	Edition     *editionState  `json:"edicion"`
	Sources     []SourceState  `json:"fuentes"`
	Jobs        []jobState     `json:"jobs"`
	Procurement procurement    `json:"contratacion_publica"`
	Alerts      []healthNotice `json:"alertas"`
}

type editionState struct {
	Number    int    `json:"numero"`
	SHA256    string `json:"edicion_sha256"`
	Published string `json:"publicada"`
}

// Job is a scheduled task as whoever runs it knows it.
type Job struct {
	Name   string    // of a source, when it renews that source
	Status string    // one of JobStatuses, of the last run
	Last   time.Time // when that run began; zero when there never was one
	Detail string    // for everybody
	// Success is when the last run that did its work began; zero: none.
	Success time.Time
	// Next is when it runs next; zero while it runs and when nobody runs it by
	// itself.
	Next time.Time
	// Every is the longest between two of its runs; zero: a day.
	Every time.Duration
}

// JobStatuses are what a run can be.
var JobStatuses = []string{"ok", "sin_cambio", "cuarentena", jobFailed, "interrumpida", "ocupada", jobRunning, "pendiente", jobUnconfigured}

const jobFailed, jobRunning, jobUnconfigured = "fallida", "en_curso", "sin_configurar"

type jobState struct {
	Job    string  `json:"job"`
	Status string  `json:"status"`
	Last   *string `json:"corrida"`
	Next   *string `json:"siguiente"`
	Detail *string `json:"detalle"`
}

// procurement is how fresh the public contracts are: which years answer, and the
// newest of them.
type procurement struct {
	State      string  `json:"estado"`
	Years      []int   `json:"anios_cargados"`
	Year       *int    `json:"anio"`
	Corte      *string `json:"corte"`
	Downloaded *string `json:"descargada"`
	Age        *int    `json:"antiguedad_dias"`
}

// procurementOf sums the yearly files up. A year that is not there, or older than
// its rhythm lets expect, is told by its source.
func procurementOf(sources []SourceState) procurement {
	p := procurement{State: procurementNotLoaded, Years: []int{}}
	for i := range query.Contratos {
		for _, s := range sources {
			if s.Source != query.Contratos[i].Source || s.VersionID == nil {
				continue
			}
			year := query.FirstContractYear + i
			p.Years, p.State = append(p.Years, year), upToDate
			p.Year, p.Corte, p.Downloaded, p.Age = ptr(year), s.Corte, s.Downloaded, s.Age
			if s.MaxAge != nil && *s.Age > *s.MaxAge {
				p.State = overdue
			}
		}
	}
	return p
}

const procurementNotLoaded = "SOURCE_NOT_LOADED"

type healthNotice struct {
	Kind    string `json:"tipo"`
	Message string `json:"mensaje"`
}

// read answers /v1/salud.
func (h *health) read() (op.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.renew()
	return h.last, err
}

// readSources answers /v1/fuentes.
func (h *health) readSources() (op.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.renew()
	return h.sources, err
}

// renew reads the catalogue when the answers are old. mu is held.
func (h *health) renew() error {
	now := h.Now()
	if h.last.Body != nil && now.Sub(h.at) < readAgain && !now.Before(h.at) {
		return nil
	}
	a, lists, err := h.compose()
	if err != nil {
		return err
	}
	salud, err := op.JSON(a)
	if err != nil {
		return err
	}
	fuentes, err := op.JSON(sourcesAnswer{Edition: a.Edition, Sources: a.Sources, Included: lists})
	if err == nil {
		h.last, h.sources, h.at = salud, fuentes, now
	}
	return err
}

func (h *health) compose() (*healthAnswer, []includedList, error) {
	_, damaged, err := h.Catalogue.Versions()
	if err != nil {
		return nil, nil, err
	}
	ed := h.Live.Acquire()
	defer ed.Release()
	a := &healthAnswer{
		Service: "cotejo", Engine: op.EngineVersion, Jobs: []jobState{}, Alerts: []healthNotice{},
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
		alert("SIN_EDICION", "Todavía no hay ninguna fuente cargada: las verificaciones responden SOURCE_UNAVAILABLE y no se cobran. Cárguela con: cotejo ingest")
	}
	if h.Notices != nil {
		for _, n := range h.Notices() {
			alert(n.Kind, "%s", n.Message)
		}
	}
	for _, err := range damaged {
		alert("ARCHIVO_DANADO", "Un manifiesto no es el que se publicó%s. Lo que responde ahora no depende de él; restáurelo de una copia de respaldo.", damagedFile(err))
	}
	now := h.Now()
	for _, schema := range known {
		id := schema.Source
		serving := servedBy(ed, id)
		if serving == nil && absent(h.Catalogue, schema) {
			continue
		}
		s := describe(h.Catalogue, schema, serving, now, alert)
		s.lack(h.Lacks)
		if serving == nil && fault == nil && s.Help == nil {
			s.Help = ptr("Cargue la fuente con: cotejo ingest " + id)
		}
		a.Sources = append(a.Sources, s)
	}
	a.Procurement = procurementOf(a.Sources)
	if h.Jobs != nil {
		a.jobs(h.Jobs(), now, alert)
	}
	return a, included(catalog.Of(ed)), nil
}

// oneDay is how often most sources are looked at: one may go unseen for half as
// long again.
const oneDay = 24 * time.Hour

// jobs adds the scheduled tasks. Their alarms are for what no source says of
// itself already.
func (a *healthAnswer) jobs(list []Job, now time.Time, alert alertFunc) {
	for _, j := range list {
		state := jobState{Job: j.Name, Status: j.Status, Last: timestamp(j.Last), Next: timestamp(j.Next)}
		if j.Detail != "" {
			state.Detail = ptr(j.Detail)
		}
		a.Jobs = append(a.Jobs, state)
		source := ""
		for _, s := range a.Sources {
			if s.Source != j.Name {
				continue
			}
			source = s.State
			seen := s.seen(list, now)
			scheduled := (!j.Next.IsZero() || j.Status == jobRunning) && j.Status != jobUnconfigured
			if every := max(j.Every, oneDay); scheduled && !seen.IsZero() && now.Sub(seen) > every+every/2 {
				often := "todos los días"
				if every > oneDay {
					often = fmt.Sprintf("cada %d días", every/oneDay)
				}
				alert("FUENTE_SIN_REVISAR", "%s: no se ha podido ver qué publica la autoridad desde %s; se intenta %s. "+
					"Revise con: cotejo jobs list", s.Source, civil.Timestamp(seen), often)
			}
		}
		if j.Status == jobFailed && source != noAnswer {
			alert("TAREA_FALLIDA", "%s: la última corrida falló; se repite hasta que termine bien. Revise con: cotejo jobs list", j.Name)
		}
	}
}

// timestamp is nil for no moment.
func timestamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return ptr(civil.Timestamp(t))
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

func editionSchema() *jsonschema.Schema {
	return op.Object(
		op.F("numero", op.Integer("")),
		op.F("edicion_sha256", op.SHA256("")),
		op.F("publicada", op.Moment("")),
	)
}

func healthSchema() *jsonschema.Schema {
	return op.Titled("Salud", op.Object(
		op.F("servicio", op.Text("")),
		op.F("engine_version", op.Text("Versión de la API.")),
		op.F("edicion", op.OrNull(editionSchema())),
		op.F("fuentes", op.List(sourceSchema(), "Una por fuente que esta versión del servicio sabe leer.")),
		op.F("jobs", op.List(op.Object(
			op.F("job", op.Text("La que renueva una fuente se llama como ella.")),
			op.F("status", op.OneOf("Cómo terminó la última corrida, o que está en curso. Una fallida se repite hasta que termine bien. sin_configurar: "+
				"falta algo para que pueda trabajar; detalle dice qué.", JobStatuses...)),
			op.F("corrida", op.OrNull(op.Moment("Cuándo empezó la última; null si nunca ha corrido."))),
			op.F("siguiente", op.OrNull(op.Moment("Cuándo empieza la próxima; null mientras corre y si las tareas están apagadas."))),
			op.F("detalle", op.OrNull(op.Text("Qué dejó la última."))),
		), "Tareas programadas.")),
		op.F("contratacion_publica", op.Object(
			op.F("estado", op.OneOf("Del año más reciente que está cargado: al_dia o atrasada, como en fuentes. SOURCE_NOT_LOADED: no hay ninguno.", procurementNotLoaded, upToDate, overdue)),
			op.F("anios_cargados", op.List(op.Integer(""), "Años cuyo archivo responde.")),
			op.F("anio", op.OrNull(op.Integer("El más reciente de ellos; de su archivo es lo que sigue."))),
			op.F("corte", op.OrNull(op.Day(""))),
			op.F("descargada", op.OrNull(op.Moment(""))),
			op.F("antiguedad_dias", op.OrNull(op.Integer("Días desde la fecha de su versión: su corte; si no lo dice, su publicación; si no, su descarga."))),
		)),
		op.F("alertas", op.List(op.Object(op.F("tipo", op.Text("")), op.F("mensaje", op.Text(""))), "")),
	))
}
