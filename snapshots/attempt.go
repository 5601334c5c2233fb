package snapshots

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cotejo/civil"
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
	// Notices do not keep a version from serving: a file that moved, a partial
	// list that says something else.
	Notices []Notice `json:"avisos,omitempty"`
	// Validators let the next download ask whether the bytes changed.
	Validators *Validators `json:"validadores,omitempty"`
	Partials   []Partial   `json:"parciales,omitempty"`
	// Before is, of OutcomeFailed, the last attempt that brought bytes or learned
	// that nothing had changed: what it found still holds. nil when none is known.
	Before *Attempt `json:"anterior,omitempty"`
}

// Notice is something that an operator should look at.
type Notice struct {
	Code    string `json:"codigo"`  // ENLACE_CAMBIO, ENLACE_AUSENTE, ARCHIVO_DESCONOCIDO, PARCIAL_DIFIERE …
	Message string `json:"mensaje"` // Spanish, says what to do
}

// Validators are what a server said of the bytes it gave (RFC 9110, section 8.8).
type Validators struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"` // as sent
	SHA256       string `json:"sha256"`                  // of the bytes that they belong to
}

// Partial is a list that the authority publishes beside the complete one, and
// how far both agree. It is never answered from.
type Partial struct {
	File    string     `json:"archivo"`
	URL     string     `json:"url"`
	SHA256  string     `json:"sha256,omitempty"`
	Corte   civil.Date `json:"corte"`
	Rows    int        `json:"filas"`
	State   string     `json:"estado"`             // "concuerda", "difiere", "otro_corte", "no_obtenido"
	Missing int        `json:"faltan"`             // rows of the complete list that it lacks
	Extra   int        `json:"sobran"`             // rows that the complete list lacks
	Example []string   `json:"ejemplos,omitempty"` // RFC and situation of the first few that differ
	Message string     `json:"mensaje,omitempty"`  // Spanish, when it was not obtained or could not be read
}

// These bound what a server can make us keep and show of what it said: bytes of a
// message, and notices.
const (
	maxAttemptError = 1000
	maxNotices      = 20
)

// Answered is the newest attempt that did not fail: this one or the one before;
// nil when none is known.
func (a *Attempt) Answered() *Attempt {
	if a.Outcome == OutcomeFailed {
		return a.Before
	}
	return a
}

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
	case a.Before != nil && (!failed || a.Before.Source != a.Source || a.Before.Outcome == OutcomeFailed):
		return errors.New("un intento anterior que no es de este")
	}
	if a.Before != nil {
		if err := a.Before.check(); err != nil {
			return err
		}
	}
	if v := a.Validators; v != nil && (v.URL == "" || len(v.SHA256) != hex.EncodedLen(sha256.Size)) {
		return fmt.Errorf("validadores que no dicen de qué son: %+v", *v)
	}
	return nil
}

// bounded is a message as it may be kept: valid UTF-8, and shortened.
func bounded(message string) string {
	message = strings.ToValidUTF8(message, "\ufffd")
	if len(message) > maxAttemptError {
		message = strings.ToValidUTF8(message[:maxAttemptError], "") + "…"
	}
	return message
}

// RecordAttempt remembers how the last attempt ended, in the place of the one
// before. The lock must be held: the next writer empties the folder that the
// file passes through. Long messages are shortened and the notices beyond a
// bound left out; a is the caller's and stays as it is.
func (c *Catalogue) RecordAttempt(a Attempt) error {
	if !c.locked.Load() {
		return ErrNotLocked
	}
	a.Error = bounded(a.Error)
	a.Notices = slices.Clone(a.Notices[:min(len(a.Notices), maxNotices)])
	for i := range a.Notices {
		a.Notices[i].Message = bounded(a.Notices[i].Message)
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
