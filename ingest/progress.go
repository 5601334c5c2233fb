package ingest

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"cotejo/civil"
)

// Phase is a part of an ingestion that takes time.
type Phase string

const (
	Locating   Phase = "localizando" // the file, on the index page
	Obtaining  Phase = "descargando"
	Waiting    Phase = "esperando" // before another attempt to download
	Reading    Phase = "leyendo"
	Saving     Phase = "guardando"
	Publishing Phase = "publicando"
)

// Step is how far an ingestion is. Phases follow each other; the last step of a
// completed one is Done. A file that is read twice starts again in its phase, and
// so does a download after every Waiting, which is one step and never Done.
type Step struct {
	Source string
	Phase  Phase
	Bytes  int64 // handled in this phase
	Total  int64 // bytes to handle, 0 when unknown
	Rows   int
	Of     int // rows to handle, when the bar is to follow them and not the bytes; 0: it is not
	Done   bool

	// Of Waiting.
	Attempt, Attempts int           // the one that comes next, from 2, and how many there are
	Wait              time.Duration // until then
	Reason            string        // why the one before failed, in Spanish
}

// Progress draws the steps of ingestions: a bar for the current phase on a
// terminal, otherwise one line for each completed phase,
//
//	time source phase rows bytes duration
//	time source esperando attempt/attempts duration reason
//
// It is for one goroutine.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time

	source string
	phase  Phase // "" between phases
	since  time.Time
	drawn  time.Time
	bar    *progressbar.ProgressBar
}

const (
	redraw = 100 * time.Millisecond
	// etaAfter is how long a rate must have been seen before it promises anything.
	etaAfter = 2 * time.Second
)

// NewProgress draws to w, as on a terminal when it is one that can move its cursor.
func NewProgress(w io.Writer) *Progress {
	p := &Progress{w: w, now: time.Now}
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Report takes one step. It is what Request.Progress wants.
func (p *Progress) Report(s Step) {
	now := p.now()
	if s.Source != p.source || s.Phase != p.phase {
		p.Done()
		p.source, p.phase, p.since, p.drawn = s.Source, s.Phase, now, time.Time{}
	}
	switch {
	case s.Phase == Waiting:
		p.wait(s, now)
	case s.Done && p.terminal:
		p.Done()
	case s.Done:
		fmt.Fprintf(p.w, "%s %s %s %d %d %.3fs\n", civil.Timestamp(now), s.Source, s.Phase, s.Rows, s.Bytes, now.Sub(p.since).Seconds())
		p.Done()
	case p.terminal && now.Sub(p.drawn) >= redraw:
		p.drawn = now
		p.draw(s, now.Sub(p.since))
	}
}

// Done takes an unfinished bar off the terminal: the next line that is written
// stands alone.
func (p *Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
	p.phase = ""
}

// wait writes a line also on a terminal: why a download stands still is worth
// keeping in sight.
func (p *Progress) wait(s Step, now time.Time) {
	seconds := s.Wait.Seconds()
	if p.terminal {
		fmt.Fprintf(p.w, "  %s  %s; intento %d de %d en %.0f s\n", s.Source, s.Reason, s.Attempt, s.Attempts, seconds)
	} else {
		fmt.Fprintf(p.w, "%s %s %s %d/%d %.3fs %s\n", civil.Timestamp(now), s.Source, s.Phase, s.Attempt, s.Attempts, seconds, s.Reason)
	}
	p.Done()
}

func (p *Progress) draw(s Step, elapsed time.Duration) {
	done, total := s.Bytes, s.Total
	if s.Of > 0 {
		done, total = int64(s.Rows), int64(s.Of)
	}
	if p.bar == nil {
		total := total
		if total == 0 {
			total = -1
		}
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetWidth(20),
			progressbar.OptionShowBytes(s.Of == 0),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionSetSpinnerChangeInterval(0),
			progressbar.OptionSetTheme(progressbar.Theme{Saucer: "█", SaucerPadding: "░"}),
		)
	}
	text := fmt.Sprintf("  %s  %s", s.Source, s.Phase)
	if s.Rows > 0 {
		text += fmt.Sprintf("  %d filas", s.Rows)
	}
	if elapsed >= etaAfter && done > 0 && total > done {
		left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
		text += fmt.Sprintf("  quedan %d s", int(left.Seconds())+1)
	}
	p.bar.Describe(text)
	_ = p.bar.Set64(done)
}
