package snapshots

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// How an attempt to bring a source up to date can end.
const (
	OutcomeActivated   = "activada"   // a new version is in a new edition
	OutcomeUnchanged   = "sin_cambio" // the bytes in service are still the published ones
	OutcomeQuarantined = "cuarentena" // there were bytes, and they must not be served
	OutcomeFailed      = "fallida"    // there were no bytes to judge
)

// Attempt is how the last look for a new version of a source ended. What serves
// is said by the edition; this says how far that can be relied on to be current.
type Attempt struct {
	Source    string  `json:"source"`
	At        string  `json:"revisada"`                    // RFC 3339
	Outcome   string  `json:"resultado"`                   // OutcomeActivated …
	VersionID int     `json:"source_version_id,omitempty"` // of the bytes; 0 when there were none
	Faults    []Fault `json:"motivos,omitempty"`           // OutcomeQuarantined: what was found this time
	Error     string  `json:"error,omitempty"`             // OutcomeFailed: what to tell people, in Spanish
}

// maxAttemptError bounds what a server can make us keep and show of its failure.
const maxAttemptError = 1000

func (a *Attempt) check() error {
	if !validSource(a.Source) {
		return fmt.Errorf("source %q", a.Source)
	}
	if _, err := time.Parse(time.RFC3339, a.At); err != nil {
		return err
	}
	quarantined, failed := a.Outcome == OutcomeQuarantined, a.Outcome == OutcomeFailed
	switch {
	case !quarantined && !failed && a.Outcome != OutcomeActivated && a.Outcome != OutcomeUnchanged:
		return fmt.Errorf("resultado %q", a.Outcome)
	case quarantined != (len(a.Faults) > 0), failed != (a.Error != ""), failed != (a.VersionID == 0), a.VersionID < 0:
		return fmt.Errorf("un resultado %q con otros datos", a.Outcome)
	}
	return nil
}

// RecordAttempt remembers how the last attempt ended, in the place of the one
// before. The lock must be held: the next writer empties the folder that the
// file passes through.
func (c *Catalogue) RecordAttempt(a Attempt) error {
	if !c.locked.Load() {
		return ErrNotLocked
	}
	a.Error = strings.ToValidUTF8(a.Error, "\ufffd")
	if len(a.Error) > maxAttemptError {
		a.Error = strings.ToValidUTF8(a.Error[:maxAttemptError], "") + "…"
	}
	if err := a.check(); err != nil {
		return fmt.Errorf("snapshots: intento: %w", err)
	}
	return c.writeManifest(checkedPath(a.Source), &a, c.disk.Rename)
}

// LastAttempt reads what RecordAttempt remembered; ok is false when there never
// was an attempt.
func (c *Catalogue) LastAttempt(source string) (a Attempt, ok bool, err error) {
	if !validSource(source) {
		return Attempt{}, false, fmt.Errorf("snapshots: %q no es el nombre de una fuente", source)
	}
	path := checkedPath(source)
	if err := c.readManifest(path, &a); errors.Is(err, ErrNotFound) {
		return Attempt{}, false, nil
	} else if err != nil {
		return Attempt{}, false, err
	}
	if a.Source != source {
		return Attempt{}, false, &CorruptError{Path: path, Want: "source " + source, Got: a.Source}
	}
	return a, true, nil
}
