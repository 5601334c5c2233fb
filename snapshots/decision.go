package snapshots

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cotejo/civil"
)

// What a person can decide about a version in quarantine.
const (
	DecisionAccepted = "aceptada"  // its bytes may serve, in spite of what was found
	DecisionRejected = "rechazada" // its bytes stay out, also when they come again
)

// Limits of what a decision says, in characters.
const (
	maxWho = 100
	maxWhy = 1000
)

// ErrDecision says that a decision lacks who or why, or says them in a way that
// cannot be kept.
var ErrDecision = errors.New("snapshots: la decisión no se puede registrar")

// Decision is what a person decided about a version in quarantine. It never
// changes; a later one about the same version takes its place.
type Decision struct {
	Number    int      `json:"decision"` // filled by Decide
	Source    string   `json:"source"`   // filled by Decide
	VersionID int      `json:"source_version_id"`
	Decision  string   `json:"resultado"`         // DecisionAccepted or DecisionRejected
	Faults    []string `json:"motivos,omitempty"` // codes: DecisionAccepted: what the version may serve in spite of
	Who       string   `json:"quien"`
	Why       string   `json:"porque"`
	At        string   `json:"decidida"` // RFC 3339
}

func decisionPath(n int) string { return decisionsDir + "/" + strconv.Itoa(n) + ".json" }

func (d *Decision) check() error {
	switch {
	case d.Number < 1:
		return fmt.Errorf("decision %d", d.Number)
	case !validSource(d.Source):
		return fmt.Errorf("source %q", d.Source)
	case d.VersionID < 1:
		return fmt.Errorf("source_version_id %d", d.VersionID)
	case d.Decision != DecisionAccepted && d.Decision != DecisionRejected:
		return fmt.Errorf("resultado %q", d.Decision)
	case (d.Decision == DecisionAccepted) != (len(d.Faults) > 0):
		return errors.New("una aceptación lleva motivos y un rechazo no")
	}
	if _, err := time.Parse(time.RFC3339, d.At); err != nil {
		return err
	}
	return errors.Join(said("quién decide", d.Who, maxWho), said("por qué", d.Why, maxWhy))
}

// said checks a text that a person gave.
func said(what, text string, most int) error {
	switch n := utf8.RuneCountInString(text); {
	case text == "":
		return fmt.Errorf("falta %s", what)
	case n > most:
		return fmt.Errorf("%s: %d caracteres; el máximo es %d", what, n, most)
	case !utf8.ValidString(text), strings.TrimSpace(text) != text:
		return fmt.Errorf("%s: no es un texto sin blancos alrededor", what)
	case strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%s: lleva caracteres de control; escríbalo en un solo renglón", what)
	}
	return nil
}

// Decide writes a decision down, under the next free number. Its version must be
// in quarantine. Blanks around Who and Why are dropped; ErrDecision when what is
// left says nothing or cannot be kept. The lock must be held.
func (c *Catalogue) Decide(d Decision, now time.Time) (Decision, error) {
	if !c.locked.Load() {
		return Decision{}, ErrNotLocked
	}
	v, err := c.Version(d.VersionID)
	if err != nil {
		return Decision{}, err
	}
	if v.State != stateQuarantined {
		return Decision{}, fmt.Errorf("%w: la versión %d no está en cuarentena", ErrDecision, v.ID)
	}
	numbers, err := c.numbers(decisionsDir)
	if err != nil {
		return Decision{}, err
	}
	d.Number, d.Source, d.At = 1, v.Source, civil.Timestamp(now)
	if len(numbers) > 0 {
		d.Number = numbers[len(numbers)-1] + 1
	}
	d.Who, d.Why = strings.TrimSpace(d.Who), strings.TrimSpace(d.Why)
	if err := d.check(); err != nil {
		return Decision{}, fmt.Errorf("%w: %w", ErrDecision, err)
	}
	if err := c.mkdir(decisionsDir); err != nil {
		return Decision{}, err
	}
	if err := c.publishManifest(decisionPath(d.Number), &d); errors.Is(err, os.ErrExist) {
		return Decision{}, fmt.Errorf("snapshots: la decisión %d apareció mientras se escribía: %w", d.Number, ErrBusy)
	} else if err != nil {
		return Decision{}, err
	}
	return d, nil
}

// Decisions lists what was decided by hand, oldest first, as Versions does.
func (c *Catalogue) Decisions() (decisions []Decision, damaged []error, err error) {
	return list(c, decisionsDir, c.decision)
}

// DecisionOf returns the newest decision about a version; ok is false when there
// is none. A decision that cannot be read may be about any version: then the
// error says so, beside the newest that could be read.
func (c *Catalogue) DecisionOf(versionID int) (d Decision, ok bool, err error) {
	all, damaged, err := c.Decisions()
	if err != nil {
		return Decision{}, false, err
	}
	for _, d := range slices.Backward(all) {
		if d.VersionID == versionID {
			return d, true, errors.Join(damaged...)
		}
	}
	return Decision{}, false, errors.Join(damaged...)
}

func (c *Catalogue) decision(n int) (Decision, error) {
	var d Decision
	if err := c.readManifest(decisionPath(n), &d); err != nil {
		return Decision{}, err
	}
	if d.Number != n {
		return Decision{}, &CorruptError{Path: decisionPath(n), Want: fmt.Sprintf("decision %d", n), Got: strconv.Itoa(d.Number)}
	}
	return d, nil
}
