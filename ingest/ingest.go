// Package ingest brings official publications into the catalogue: it obtains the
// bytes, reads them into rows, checks them, and makes a new edition of what
// passes. What does not pass is kept with the reasons and never served; what has
// not changed makes no version. How every attempt ended is written down.
//
// It promises that an interrupted or failed ingestion publishes nothing, and
// that the rows depend on the official bytes and the reader alone. It never
// answers questions and never decides what a row means for anyone.
//
// ingest.go is the way of one file from its server to an edition; source.go says
// which publications there are, obtain.go and download.go get their bytes,
// gates.go says what may be served, decide.go what a person decides about the
// rest, history.go how an older file enters the past, partials.go compares a list
// that serves with those published beside it, reread.go reads stored bytes again.
// Reading a source is a folder of its own (sat69b) on top of what all tables share
// (tabular).
package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// Request asks for one source to be brought up to date. Without Content, File
// and Mirror it is downloaded from its official address.
type Request struct {
	Source string // id

	// Content opens the official bytes and Name is what their file is called.
	Content func() (io.ReadCloser, error)
	Name    string
	// File is a path; a file packed with gzip is unpacked.
	File string
	// Mirror is the address that takes the place of the official one, without the
	// path of the publication.
	Mirror string
	Access Access // how a download reaches its server

	// Corte is the cut date of a file that states none. The same bytes again under
	// another one correct the date that is recorded; without one it stands.
	Corte civil.Date
	// History puts a file into the history of its source, by its date; what serves
	// goes on serving. Only of Content or File, and no attempt to renew the source:
	// none is recorded. Without a version in service it changes nothing.
	History bool
	// Free says why the disk has no room for more; nil: there always is. It is asked
	// before and while bytes are kept, and stops the ingestion with ErrNoSpace.
	Free     func() error
	Now      time.Time
	Progress func(Step) // may be nil; called from the goroutine of Ingest
}

// Outcome is how an ingestion ended.
type Outcome string

const (
	// Activated: a new version is in a new edition.
	Activated Outcome = snapshots.OutcomeActivated
	// Unchanged: the bytes, and their date, are those of the version in service.
	Unchanged Outcome = snapshots.OutcomeUnchanged
	// Quarantined: the bytes are kept and not served. The same bytes quarantined
	// again make no second version.
	Quarantined Outcome = snapshots.OutcomeQuarantined
)

// ErrUndated says that nothing dates a file. A download is at least as new as
// its server says, or as the moment it was asked; of a file that someone had, not
// even that is known.
var ErrUndated = errors.New("nada dice de qué fecha es el archivo: indíquela con --corte AAAA-MM-DD")

// ErrUnconfigured says that a source cannot be downloaded before something is
// configured; the message says what, and how to get it. Nothing is recorded.
var ErrUnconfigured = errors.New("falta configurar la fuente")

// ErrNotOffered says that nothing shows that the authority publishes a list: its
// page does not link it, or could not be read. It is no failure, and nothing is
// written down.
var ErrNotOffered = errors.New("la página de la autoridad no enlaza esta lista, o no se pudo leer: no hay nada que cargar")

// ErrNoSpace says that the disk has no room; nothing was published.
var ErrNoSpace = errors.New("no hay espacio para cargar la fuente; libere espacio en el disco y repita la carga")

// freeEvery is how many bytes may arrive between two looks at the free space.
const freeEvery = 4 << 20

// Result is what became of a file.
type Result struct {
	Outcome  Outcome
	Version  snapshots.Version         // the one that the bytes belong to
	Faults   []snapshots.Fault         // Quarantined: found this time; Version.Faults are those of the first
	Edition  snapshots.EditionManifest // in service afterwards; zero when there is none
	Decision *snapshots.Decision       // by hand: Quarantined: that these bytes stay out, which is no alarm; of Accept: the one made. Else nil
}

// Ingest obtains the bytes, then judges and publishes them. Only for the latter it
// holds the catalogue's lock: snapshots.ErrBusy when another process keeps it, or
// put something else into service meanwhile; then nothing is recorded. ErrUnavailable,
// ErrTooLarge, ErrUndated and ErrNoSpace say that there was no file to judge; a
// file that must not be served is not an error but the outcome Quarantined. When
// ctx ends, nothing is published and its error is returned.
//
// How it ended is recorded (snapshots.Attempt), failures included, unless ctx
// ended it, or a file that someone had could not be loaded: neither says anything
// about the source. When the record cannot be written, the error says so and the
// result stands.
func Ingest(ctx context.Context, c *snapshots.Catalogue, r Request) (result Result, err error) {
	source, ok := Lookup(r.Source)
	if !ok {
		return Result{}, fmt.Errorf("no existe la fuente «%s»; hay: %v", r.Source, Sources())
	}
	if r.History && r.Content == nil && r.File == "" {
		return Result{}, fmt.Errorf("%s: la historia se carga de un archivo, con --file", r.Source)
	}
	in := ingestion{Request: r, source: &source, catalogue: c}
	defer in.bytes.close()
	started := time.Now()
	result, err = in.run(ctx)
	if err != nil && (ctx.Err() != nil || errors.Is(err, snapshots.ErrBusy)) {
		return Result{}, err
	}
	if err == nil && (result.Outcome == Activated || result.Outcome == Unchanged) {
		in.lookBeside(ctx, &result)
	}
	if !in.past() && in.Content == nil && !errors.Is(err, ErrNotOffered) {
		in.measure(started, result, err)
	}
	return result, err
}

// run obtains the bytes, and does all that needs the lock.
func (in *ingestion) run(ctx context.Context) (result Result, err error) {
	failure := in.obtain(ctx)
	if failure != nil && (ctx.Err() != nil || in.loose() || errors.Is(failure, ErrUnconfigured) || errors.Is(failure, ErrNotOffered)) {
		return Result{}, failure // nothing to write down
	}
	unlock, err := in.lock(ctx)
	if err != nil {
		return Result{}, errors.Join(failure, err)
	}
	defer unlock()
	if failure == nil || errors.Is(failure, errUnmodified) {
		result, failure = in.judge(ctx, failure != nil)
	}
	if failure != nil && (ctx.Err() != nil || errors.Is(failure, snapshots.ErrBusy)) {
		return Result{}, failure
	}
	return result, errors.Join(failure, in.record(result, failure))
}

// lockPatience is how long bytes that were downloaded wait for another writer,
// who is mostly done within a second; of a file the operator is told at once.
const lockPatience = 10 * time.Second

func (in *ingestion) lock(ctx context.Context) (unlock func(), err error) {
	for end := time.Now().Add(lockPatience); ; {
		unlock, err = in.catalogue.Lock()
		if !errors.Is(err, snapshots.ErrBusy) || in.loose() || time.Now().After(end) {
			return unlock, err
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// record writes down how the attempt ended. Health is open to everyone: what
// failed inside this machine is not told there.
func (in *ingestion) record(r Result, failure error) error {
	if in.past() || failure != nil && in.loose() {
		return nil
	}
	a := snapshots.Attempt{
		Source: in.source.Schema.Source, At: civil.Timestamp(in.Now),
		Outcome: string(r.Outcome), VersionID: r.Version.ID, Faults: r.Faults,
		Validators: in.validators,
	}
	serves := in.active
	if r.Outcome == Activated {
		serves = &r.Version
	}
	a.Notices = append(lacking(serves), in.notices...)
	if failure != nil {
		a.Outcome, a.Error = snapshots.OutcomeFailed, "falló en el equipo que carga las fuentes; vea ahí el error"
		for _, known := range []error{ErrUnavailable, ErrTooLarge} {
			if errors.Is(failure, known) {
				a.Error = failure.Error()
			}
		}
		if errors.Is(failure, ErrNoSpace) {
			a.Error = ErrNoSpace.Error()
		}
		if errors.Is(failure, ErrAccess) {
			a.Error = ErrAccess.Error() + "; vea el error en el equipo que carga las fuentes"
		}
		a.Before = in.lastAnswered()
	}
	return in.catalogue.RecordAttempt(a)
}

// lastAnswered is the newest attempt that did not fail; nil when none is known.
func (in *ingestion) lastAnswered() *snapshots.Attempt {
	last, ok, err := in.catalogue.LastAttempt(in.source.Schema.Source)
	if !ok || err != nil {
		return nil // it is written anew
	}
	return last.Answered()
}

// judge decides what becomes of the bytes; unmodified says that the server kept
// them, because it was told of those in service.
func (in *ingestion) judge(ctx context.Context, unmodified bool) (result Result, err error) {
	before := idOf(in.active)
	if err := in.context(); err != nil {
		return Result{}, err
	}
	overtaken := !in.loose() && idOf(in.active) != before
	if unmodified && !overtaken {
		return Result{Outcome: Unchanged, Version: *in.active, Edition: in.edition}, nil
	}
	if !unmodified {
		if in.stage, err = stageOf(in.catalogue, in.source.Schema.Source, in.bytes.open()); err != nil {
			return Result{}, err
		}
		defer in.stage.Discard()
	}
	if overtaken && (unmodified || !in.serves()) {
		// What serves now may be newer than what the server had then.
		return Result{}, fmt.Errorf("%w: otra versión de %s entró en servicio mientras esta se descargaba; repita la carga", snapshots.ErrBusy, in.source.Schema.Source)
	}
	if result, done, err := in.decided(); done || err != nil {
		return result, err
	}
	if in.past() {
		return in.enterHistory(ctx)
	}
	if len(in.faults) == 0 {
		if result, done, err := in.seen(ctx); done || err != nil {
			return result, err
		}
		if in.faults, err = in.read(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, context.Cause(ctx)
	}
	if len(in.faults) > 0 {
		return in.quarantine()
	}
	return in.activate(ctx)
}

// idOf is the number of a version, 0 of none.
func idOf(v *snapshots.Version) int {
	if v == nil {
		return 0
	}
	return v.ID
}

// ingestion is one file on its way.
type ingestion struct {
	Request
	source    *Source
	catalogue *snapshots.Catalogue
	edition   snapshots.EditionManifest // newest; zero when there is none
	entry     *snapshots.EditionEntry   // of the source in it; nil when there is none
	active    *snapshots.Version        // of entry

	bytes  spool
	from   place // of a download: where the file was
	stage  *snapshots.Stage
	origin snapshots.Origin
	faults []snapshots.Fault // why the file must not be served

	accepted   map[int]bool          // versions in quarantine with the staged bytes that a person accepted
	waiver     *snapshots.Decision   // in spite of which the staged bytes may serve; nil when there is none
	validators *snapshots.Validators // of the newest bytes that their server named; nil when there are none
	notices    []snapshots.Notice
}

// loose reports whether it is a file that someone had, not a download.
func (in *ingestion) loose() bool { return in.Content != nil || in.File != "" }

// context finds what is in service now.
func (in *ingestion) context() error {
	in.edition, in.entry, in.active = snapshots.EditionManifest{}, nil, nil
	m, err := in.catalogue.LatestEdition()
	if errors.Is(err, snapshots.ErrNoEdition) {
		return nil
	}
	if err != nil {
		return err
	}
	in.edition = m
	for i := range m.Sources {
		if e := &m.Sources[i]; e.Source == in.source.Schema.Source {
			v, err := in.catalogue.Version(e.VersionID)
			if err != nil {
				return err
			}
			in.entry, in.active = e, &v
		}
	}
	return nil
}

// receive moves the official bytes into the spool.
func (in *ingestion) receive(ctx context.Context, o *obtained) error {
	defer o.body.Close()
	if err := in.bytes.begin(in.catalogue); err != nil {
		return err
	}
	in.faults = nil
	in.origin = snapshots.Origin{
		URL:        o.official,
		Obtained:   o.from,
		Published:  o.published,
		Downloaded: in.Now,
	}
	in.origin.Corte, in.origin.CorteFrom = in.saidCorte()
	buf := make([]byte, 128<<10)
	for next := int64(0); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if in.bytes.size >= next {
			if err := in.room(); err != nil {
				return err
			}
			next += freeEvery
		}
		n, err := o.body.Read(buf)
		if in.bytes.size+int64(n) > o.max {
			return tooLarge(o.max, o.from)
		}
		if err := in.bytes.write(buf[:n]); err != nil {
			return err
		}
		ended := err == io.EOF
		if errors.Is(err, io.ErrUnexpectedEOF) {
			ended = true
			in.faults = []snapshots.Fault{short(in.bytes.size, o.total)}
		} else if err != nil && !ended {
			return err
		}
		in.report(Step{Phase: Obtaining, Bytes: in.bytes.size, Total: o.total, Done: ended})
		if ended {
			return nil
		}
	}
}

// room reports whether the disk has room for more.
func (in *ingestion) room() error {
	if in.Free == nil {
		return nil
	}
	if err := in.Free(); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoSpace, err)
	}
	return nil
}

// saidCorte is the cut date that the operator gave.
func (in *ingestion) saidCorte() (civil.Date, string) {
	if in.Corte.IsZero() {
		return civil.Date{}, ""
	}
	return in.Corte, snapshots.CorteOfOperator
}

// redates reports whether the operator says another cut date than is recorded of
// these bytes. What a file states of itself stands.
func (in *ingestion) redates(v *snapshots.Version) bool {
	return !in.Corte.IsZero() && in.Corte != v.Corte && v.CorteFrom != snapshots.CorteOfFile
}

// serves reports whether the staged bytes are those in service.
func (in *ingestion) serves() bool {
	return in.active != nil && in.active.SHA256 == in.stage.SHA256()
}

// seen ends the ingestion of bytes that need no reading: those in service, and
// those of a version that was accepted by a process that died before it could
// publish it.
func (in *ingestion) seen(ctx context.Context) (result Result, done bool, err error) {
	reader := in.source.Schema.Reader
	if in.serves() && in.active.Reader == reader && !in.redates(in.active) {
		return Result{Outcome: Unchanged, Version: *in.active, Edition: in.edition}, true, nil
	}
	v, err := in.unpublished(func(v *snapshots.Version) bool { return !in.redates(v) })
	if v == nil || err != nil {
		return Result{}, false, err
	}
	o, err := originOf(v)
	if err != nil {
		return Result{}, false, err
	}
	if faults, err := in.gates(&tabular.Summary{Rows: v.Rows}, &o); len(faults) > 0 || err != nil {
		return Result{}, false, err // to be read again, and judged by that
	}
	result, err = in.publish(ctx, *v)
	return result, true, err
}

// unpublished returns the newest version of the staged bytes that today's reader
// has read, that was accepted after the one in service, and that is wanted; nil
// when there is none.
func (in *ingestion) unpublished(wanted func(*snapshots.Version) bool) (*snapshots.Version, error) {
	return in.find(func(v *snapshots.Version) bool {
		return v.RowsFile != nil && v.Reader == in.source.Schema.Reader && wanted(v) &&
			(in.active == nil || v.ID > in.active.ID && !slices.Contains(in.entry.Chain, v.ID))
	})
}

// find returns the newest version of this source with the staged bytes that is
// wanted, nil when there is none. A damaged manifest is passed over: at worst the
// bytes get a second one.
func (in *ingestion) find(wanted func(*snapshots.Version) bool) (*snapshots.Version, error) {
	versions, _, err := in.catalogue.Versions()
	if err != nil {
		return nil, err
	}
	for i := len(versions) - 1; i >= 0; i-- {
		v := &versions[i]
		if v.Source == in.source.Schema.Source && v.SHA256 == in.stage.SHA256() && wanted(v) {
			return v, nil
		}
	}
	return nil, nil
}

// gates applies gates to the staged bytes.
func (in *ingestion) gates(sum *tabular.Summary, o *snapshots.Origin) ([]snapshots.Fault, error) {
	older := in.active
	if in.serves() {
		older = nil
		if n := len(in.entry.Chain); n > 1 {
			v, err := in.catalogue.Version(in.entry.Chain[n-2])
			if err != nil {
				return nil, err
			}
			older = &v
		}
	}
	faults := gates(sum, o, in.active, older)
	gone, err := in.withdrawn()
	if err != nil {
		return nil, err
	}
	if gone != nil {
		faults = append(faults, withdrawnFault(gone, in.active))
	}
	own, err := in.judged()
	if err != nil {
		return nil, err
	}
	return in.waive(append(faults, own...), o), nil
}

// withdrawn returns the version of the history whose bytes are staged and that a
// person took out of service by accepting an older one in its place; nil when
// there is none. Its bytes coming again must not undo that.
func (in *ingestion) withdrawn() (*snapshots.Version, error) {
	if in.active == nil || in.active.AcceptedFrom == 0 || in.serves() {
		return nil, nil
	}
	return in.find(func(v *snapshots.Version) bool {
		return slices.Contains(in.entry.Chain, v.ID) && in.active.OrderDate.Before(v.OrderDate)
	})
}

// read maps the staged bytes to rows and says what keeps them from being served.
func (in *ingestion) read(ctx context.Context) ([]snapshots.Fault, error) {
	step := Step{Phase: Reading, Total: in.stage.Size()}
	sum, err := readInto(in.stage, in.source, func(bytes int64, rows int) error {
		step.Bytes, step.Rows = bytes, rows
		in.report(step)
		return ctx.Err()
	})
	in.date(&sum)
	var refusal *tabular.Refusal
	switch {
	case errors.As(err, &refusal):
		return []snapshots.Fault{refusal.Fault}, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	step.Rows, step.Done = sum.Rows, true
	in.report(step)
	var faults []snapshots.Fault
	if in.past() {
		faults = pastGates(&sum)
	} else if faults, err = in.gates(&sum, &in.origin); err != nil {
		return nil, err
	}
	if len(faults) == 0 && in.loose() && undated(&in.origin) {
		return nil, fmt.Errorf("%w (%s)", ErrUndated, in.origin.Obtained)
	}
	return faults, nil
}

// undated reports whether nothing dates the bytes but when we got them.
func undated(o *snapshots.Origin) bool { return o.Corte.IsZero() && o.Published.IsZero() }

// date settles what is known of the staged bytes: what they say of themselves,
// else what the operator says, else what is recorded of them already.
func (in *ingestion) date(sum *tabular.Summary) {
	o := &in.origin
	o.Encoding, o.Counts = sum.Encoding, sum.Counts
	switch {
	case !sum.Corte.IsZero():
		o.Corte, o.CorteFrom = sum.Corte, snapshots.CorteOfFile
	case o.Corte.IsZero() && in.serves():
		if known, err := originOf(in.active); err == nil {
			o.Corte, o.CorteFrom, o.Published, o.Downloaded = known.Corte, known.CorteFrom, known.Published, known.Downloaded
		}
	}
}

func (in *ingestion) report(s Step) {
	if in.Progress != nil {
		s.Source = in.source.Schema.Source
		in.Progress(s)
	}
}
