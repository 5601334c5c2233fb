package platform

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
	"cotejo/civil"
	op "cotejo/operation"
	"cotejo/query"
	"cotejo/snapshots"
)

// known are the sources that this build answers from, whether they are loaded or
// not.
var known = func() []*snapshots.Schema {
	all := []*snapshots.Schema{&query.Sat69B, &query.Sat69BBis, &catalog.FIXSource, &catalog.SPEISource, &catalog.NumberingSource}
	for i := range query.Art69Lists {
		all = append(all, &query.Art69Lists[i].Schema)
	}
	for i := range query.Contratos {
		all = append(all, &query.Contratos[i])
	}
	for i := range query.Sancionados {
		all = append(all, &query.Sancionados[i])
	}
	return append(all, &query.SancionadosAbiertos, &query.SancionadosExportacion)
}()

// absent reports whether there is nothing to say of a source: its authority need
// not publish it, and it never came.
func absent(c *snapshots.Catalogue, schema *snapshots.Schema) bool {
	if !slices.ContainsFunc(query.Art69Lists, func(l query.Art69List) bool { return l.WhenLinked && l.Schema.Source == schema.Source }) {
		return false
	}
	_, came, err := c.LastAttempt(schema.Source)
	return !came && err == nil
}

// States of a source. What serves does not change when an attempt to renew it
// goes wrong, nor when it grows old.
const (
	upToDate    = "al_dia"        // no older than the authority's rhythm lets expect
	overdue     = "atrasada"      // older, although the last attempt went well
	quarantined = "en_cuarentena" // the last download must not serve, and waits for a decision
	noAnswer    = "no_responde"   // the last attempt brought no file
	notLoaded   = "no_cargada"
	// Not loaded, and not before something is configured: no failure.
	unconfigured = "sin_configurar"
)

// SourceState is what there is to say of one source: what serves, how old it is,
// and how the last attempt to renew it ended.
type SourceState struct {
	Source     string             `json:"source"`
	SHA256     *string            `json:"sha256"`
	Rows       *int               `json:"registros"`
	Published  *string            `json:"publicada"`
	Corte      *string            `json:"corte"`
	Downloaded *string            `json:"descargada"`
	Checked    *string            `json:"revisada"`
	VersionID  *int               `json:"source_version_id"`
	State      string             `json:"estado"`
	Age        *int               `json:"antiguedad_dias"`
	MaxAge     *int               `json:"esperada_cada_dias"`
	Quarantine *Quarantine        `json:"cuarentena"`
	Failure    *string            `json:"falla"`
	Notices    []snapshots.Notice `json:"avisos"`
	Partials   []PartialState     `json:"parciales"`
	Help       *string            `json:"ayuda"`

	// success is when it was last seen what the authority publishes, whatever
	// became of it; zero when it never was.
	success time.Time
	// waits says that a version in quarantine waits for a decision.
	waits bool
}

// Quarantine is the version that the last attempt brought and that must not
// serve.
type Quarantine struct {
	VersionID int               `json:"source_version_id"`
	Faults    []snapshots.Fault `json:"motivos"`
	Decision  *DecisionState    `json:"decision"`
}

// DecisionState is what a person decided about a version, without who and why:
// health is open to everyone.
type DecisionState struct {
	Result string `json:"resultado"`
	At     string `json:"decidida"`
}

// PartialState is how a partial list that the authority publishes beside a
// complete one agreed with it.
type PartialState struct {
	File    string  `json:"archivo"`
	Corte   *string `json:"corte"`
	Rows    int     `json:"filas"`
	State   string  `json:"estado"`
	Missing int     `json:"faltan"`
	Extra   int     `json:"sobran"`
	Message *string `json:"mensaje"`
}

// served is the version of a source that answers; nil when none does.
type served struct {
	entry   *snapshots.EditionEntry
	version *snapshots.Version
}

// alertFunc takes an alarm of a source.
type alertFunc func(kind, format string, args ...any)

// DescribeSources describes the known sources as the newest edition of a
// catalogue has them, without opening it. A version whose manifest cannot be
// read counts as not loaded.
func DescribeSources(c *snapshots.Catalogue, m *snapshots.EditionManifest, now time.Time, lacks func(string) string) []SourceState {
	var states []SourceState
	for _, schema := range known {
		var s *served
		for i := range m.Sources {
			e := &m.Sources[i]
			if e.Source != schema.Source {
				continue
			}
			if v, err := c.Version(e.VersionID); err == nil {
				s = &served{e, &v}
			}
		}
		if s == nil && absent(c, schema) {
			continue
		}
		state := describe(c, schema, s, now, func(string, string, ...any) {})
		state.lack(lacks)
		states = append(states, state)
	}
	return states
}

// lack says what has to be configured before the source can be downloaded.
func (s *SourceState) lack(lacks func(string) string) {
	if lacks == nil {
		return
	}
	what := lacks(s.Source)
	if what == "" {
		return
	}
	s.Help = ptr(what)
	if s.State == notLoaded {
		s.State = unconfigured
	}
}

// clockSlack is how far ahead of the clock a moment may be written and still be
// believed.
const clockSlack = time.Hour

// seen is when it was last seen what the authority publishes, by the source
// itself or the task that renews it; zero when it never was. What lies in the
// future was written while the clock was wrong.
func (s *SourceState) seen(jobs []Job, now time.Time) (latest time.Time) {
	consider := func(t time.Time) {
		if t.After(latest) && !t.After(now.Add(clockSlack)) {
			latest = t
		}
	}
	consider(s.success)
	for _, j := range jobs {
		if j.Name == s.Source {
			consider(j.Success)
		}
	}
	return latest
}

// describe says what there is to say of one source, and raises its alarms.
func describe(c *snapshots.Catalogue, schema *snapshots.Schema, serving *served, now time.Time, alert alertFunc) SourceState {
	id := schema.Source
	s := SourceState{
		Source: id, State: notLoaded, Notices: []snapshots.Notice{}, Partials: []PartialState{},
	}
	if schema.MaxAge > 0 {
		s.MaxAge = ptr(schema.MaxAge)
	}
	if serving != nil {
		v := serving.version
		s.State = upToDate
		s.SHA256, s.Rows, s.VersionID = ptr(v.SHA256), ptr(v.Rows), ptr(v.ID)
		s.Published, s.Downloaded = ptr(serving.entry.PublishedReset), ptr(v.Downloaded)
		if !v.Corte.IsZero() {
			s.Corte = ptr(v.Corte.String())
		}
		s.Checked = s.Downloaded
		s.success = moment(v.Downloaded)
		s.Age = ptr(max(0, v.OrderDate.Days(civil.Of(now))))
		if schema.MaxAge > 0 && *s.Age > schema.MaxAge {
			s.State = overdue
			alert("FUENTE_ATRASADA", "%s: la versión que responde es del %s, de hace %d días; se espera una más nueva cada %d. "+
				"Compárela con la publicación oficial: el servidor puede estar dando un archivo viejo.", id, v.OrderDate, *s.Age, schema.MaxAge)
		}
	}
	last, ok, err := c.LastAttempt(id)
	if err != nil {
		alert("ARCHIVO_DANADO", "%s: no se puede leer cómo terminó el último intento de renovarla%s. Se escribe de nuevo en el próximo.", id, damagedFile(err))
	}
	if !ok || err != nil {
		return s
	}
	at := moment(last.At)
	if s.success.After(now.Add(clockSlack)) {
		s.success = time.Time{} // downloaded under a date that was wrong
	}
	if at.Before(s.success) {
		// Whoever published what serves died before it could say so.
		return s
	}
	s.Checked = ptr(last.At)
	// A quarantine goes on waiting while the server does not answer.
	answered := last.Answered()
	if answered != nil && !moment(answered.At).Before(s.success) {
		s.success = moment(answered.At)
	} else {
		answered = nil
	}
	if answered != nil && answered.Outcome == snapshots.OutcomeQuarantined {
		s.Quarantine = &Quarantine{VersionID: answered.VersionID, Faults: answered.Faults}
		d, decided, err := c.DecisionOf(answered.VersionID)
		if err != nil {
			alert("ARCHIVO_DANADO", "%s: no se puede leer una decisión%s; restáurela de una copia de respaldo.", id, damagedFile(err))
		}
		if decided {
			s.Quarantine.Decision = &DecisionState{d.Decision, d.At}
		}
		if !decided || d.Decision != snapshots.DecisionRejected {
			s.State, s.waits = quarantined, true
			alert("FUENTE_EN_CUARENTENA", "%s: la última descarga no pasó la revisión; sigue respondiendo la versión anterior, si la hay. "+
				"Revísela con: cotejo sources show %s", id, id)
		}
	}
	if last.Outcome == snapshots.OutcomeFailed {
		s.State, s.Failure = noAnswer, ptr(last.Error)
		alert("FUENTE_NO_RESPONDE", "%s: el último intento de renovarla no obtuvo un archivo; sigue respondiendo la versión anterior, si la hay. "+
			"El porqué está en falla; se intenta de nuevo cada hora si las tareas están encendidas.", id)
	}
	s.Notices = append(s.Notices, last.Notices...)
	if len(s.Notices) > 0 {
		codes := make([]string, len(s.Notices))
		for i, n := range s.Notices {
			codes[i] = n.Code
		}
		alert("FUENTE_CON_AVISOS", "%s: el último intento dejó avisos (%s); véalos en avisos. No impiden que responda.", id, strings.Join(codes, ", "))
	}
	for _, p := range last.Partials {
		state := PartialState{File: p.File, Rows: p.Rows, State: p.State, Missing: p.Missing, Extra: p.Extra}
		if !p.Corte.IsZero() {
			state.Corte = ptr(p.Corte.String())
		}
		if p.Message != "" {
			state.Message = ptr(p.Message)
		}
		s.Partials = append(s.Partials, state)
	}
	return s
}

// moment reads a moment of a manifest, which is well-formed; zero otherwise.
func moment(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

func ptr[T any](v T) *T { return &v }

var editionID = metrics.NewGauge("cotejo_edition_id", nil)

// gauges are those of one source.
type gauges struct{ age, quarantined, rows, success *metrics.Gauge }

var sourceGauges = func() map[string]gauges {
	all := map[string]gauges{}
	for _, schema := range known {
		label := `{source="` + schema.Source + `"}`
		all[schema.Source] = gauges{
			age:         metrics.NewGauge("cotejo_source_age_seconds"+label, nil),
			quarantined: metrics.NewGauge("cotejo_source_quarantined"+label, nil),
			rows:        metrics.NewGauge("cotejo_source_rows"+label, nil),
			success:     metrics.NewGauge("cotejo_source_last_success_timestamp_seconds"+label, nil),
		}
	}
	return all
}()

// Measure sets the metrics of sources: the age counts from the start of the
// version's fecha_de_orden, and is NaN while none is loaded. Whoever serves calls
// it every few seconds.
func Measure(c Config) {
	ed := c.Live.Acquire()
	defer ed.Release()
	editionID.Set(float64(ed.Manifest().Number))
	now := c.Now()
	var jobs []Job
	if c.Jobs != nil {
		jobs = c.Jobs()
	}
	for _, schema := range known {
		g, serving := sourceGauges[schema.Source], servedBy(ed, schema.Source)
		s := describe(c.Catalogue, schema, serving, now, func(string, string, ...any) {})
		age, rows, waiting := math.NaN(), 0.0, 0.0
		if serving != nil {
			d := serving.version.OrderDate
			age = now.Sub(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, civil.Zone)).Seconds()
			rows = float64(serving.version.Rows)
		}
		if s.waits {
			waiting = 1
		}
		g.age.Set(age)
		g.rows.Set(rows)
		g.quarantined.Set(waiting)
		success := 0.0
		if t := s.seen(jobs, now); !t.IsZero() {
			success = float64(t.Unix())
		}
		g.success.Set(success)
	}
}

// servedBy is the version of a source that an edition answers from.
func servedBy(ed *snapshots.Edition, id string) *served {
	if s := ed.Source(id); s != nil {
		return &served{s.Entry(), s.Version()}
	}
	return nil
}

func sourceSchema() *jsonschema.Schema {
	return op.Object(
		op.F("source", op.Text("")),
		op.F("sha256", op.OrNull(op.SHA256("Del archivo oficial que responde."))),
		op.F("registros", op.OrNull(op.Integer(""))),
		op.F("publicada", op.OrNull(op.Moment("Cuándo empezó a responderse desde esta versión (publicada_en_reset)."))),
		op.F("corte", op.OrNull(op.Day("Fecha de corte dentro del archivo."))),
		op.F("descargada", op.OrNull(op.Moment(""))),
		op.F("revisada", op.OrNull(op.Moment("Cuándo fue el último intento de renovarla, haya terminado como haya terminado."))),
		op.F("source_version_id", op.OrNull(op.Integer(""))),
		op.F("estado", op.OneOf("De nuestra copia; no dice nada de ninguna empresa. al_dia: no pasa de la antigüedad que el ritmo de la autoridad deja esperar; "+
			"no afirma que no haya publicado algo más nuevo. atrasada: pasa, aunque el último intento haya salido bien. en_cuarentena: lo último que "+
			"se descargó no pasó la revisión y espera una decisión. no_responde: el último intento no obtuvo un archivo. sin_configurar: no está "+
			"cargada y falta algo para poder descargarla; no es una falla.",
			upToDate, overdue, quarantined, noAnswer, notLoaded, unconfigured)),
		op.F("antiguedad_dias", op.OrNull(op.Integer("Días desde la fecha de la versión que responde: su corte; si no lo dice, su publicación; si no, su descarga."))),
		op.F("esperada_cada_dias", op.OrNull(op.Integer("Antigüedad a partir de la que se da por atrasada; null si no se espera ninguna más nueva, como de un año cerrado."))),
		op.F("cuarentena", op.OrNull(op.Object(
			op.F("source_version_id", op.Integer("")),
			op.F("motivos", op.List(op.Object(op.F("codigo", op.Text("")), op.F("mensaje", op.Text(""))), "")),
			op.F("decision", op.OrNull(op.Object(
				op.F("resultado", op.OneOf("Una rechazada no levanta alertas.", snapshots.DecisionAccepted, snapshots.DecisionRejected)),
				op.F("decidida", op.Moment("")),
			))),
		))),
		op.F("falla", op.OrNull(op.Text("Por qué el último intento no obtuvo un archivo."))),
		op.F("avisos", op.List(op.Object(op.F("codigo", op.Text("")), op.F("mensaje", op.Text(""))),
			"Lo que alguien debe mirar y no impide responder: un archivo que cambió de lugar, una lista parcial que dice otra cosa.")),
		op.F("parciales", op.List(op.Object(
			op.F("archivo", op.Text("")),
			op.F("corte", op.OrNull(op.Day(""))),
			op.F("filas", op.Integer("")),
			op.F("estado", op.Text("concuerda, difiere, otro_corte o no_obtenido.")),
			op.F("faltan", op.Integer("Filas de la lista completa que no tiene.")),
			op.F("sobran", op.Integer("Filas que la lista completa no tiene.")),
			op.F("mensaje", op.OrNull(op.Text(""))),
		), "Listas parciales que la autoridad publica aparte y cuánto concuerdan con la completa. Nunca se responde desde ellas.")),
		op.F("ayuda", op.OrNull(op.Text("Qué hacer si la fuente no está cargada, y qué falta configurar para que se renueve."))),
	)
}
