package snapshots

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/index"
)

const (
	maxManifestBytes = 4 << 20
	maxSources       = index.MaxSources // that Mentions tells apart

	stateAccepted    = "aceptada"
	stateQuarantined = "cuarentena"

	manifestSum = "manifiesto_sha256"
)

// Fault is one reason for a quarantine.
type Fault struct {
	Code    string `json:"codigo"`  // HTML, TRUNCADO, ENCABEZADO, SIN_FILAS, MENOS_FILAS, CORTE_ANTERIOR …
	Message string `json:"mensaje"` // Spanish, says what was expected and what to do
}

// Origin is where a version's bytes came from and when. Zero times and dates
// are unknown.
type Origin struct {
	URL        string // official address of the publication
	Obtained   string // where these bytes were really read: an URL or "archivo:NAME"
	Corte      civil.Date
	CorteFrom  string         // who said the corte: CorteOfFile, CorteOfOperator
	Published  time.Time      // Last-Modified of the server
	Downloaded time.Time      // never unknown
	Encoding   string         // "windows-1252", "utf-8" or "utf-8 recodificado"
	Counts     map[string]int // what the reader met: "bytes_no_asignados", "filas_vacias" …
	// AcceptedFrom is the version in quarantine whose bytes a person let serve; 0
	// when none had to.
	AcceptedFrom int
}

// Who said the corte of a version.
const (
	CorteOfFile     = "archivo"  // the official file itself
	CorteOfOperator = "operador" // whoever loaded a file that states none
)

// OrderDate is the day by which versions of a source are compared: the corte,
// else the day of publication, else that of the download.
func (o *Origin) OrderDate() civil.Date {
	switch {
	case !o.Corte.IsZero():
		return o.Corte
	case !o.Published.IsZero():
		return civil.Of(o.Published)
	default:
		return civil.Of(o.Downloaded)
	}
}

// File is a published file of a version or edition.
type File struct {
	Path   string `json:"ruta"` // relative to the catalogue, slash-separated
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Version is the manifest of one download. It never changes.
type Version struct {
	ID         int            `json:"source_version_id"`
	Source     string         `json:"source"`
	State      string         `json:"estado"` // "aceptada" or "cuarentena"
	Faults     []Fault        `json:"motivos,omitempty"`
	SHA256     string         `json:"sha256"` // of the official bytes, unpacked, as received
	Bytes      int64          `json:"bytes"`
	URL        string         `json:"url"`
	Obtained   string         `json:"obtenida_de"`
	Corte      civil.Date     `json:"corte"`
	CorteFrom  string         `json:"corte_de"`                               // CorteOfFile, CorteOfOperator, "" when unknown
	Published  string         `json:"ultima_modificacion_servidor,omitempty"` // RFC 3339
	Downloaded string         `json:"descargada"`                             // RFC 3339
	OrderDate  civil.Date     `json:"fecha_de_orden"`                         // corte, else published, else downloaded
	Encoding   string         `json:"codificacion,omitempty"`
	Counts     map[string]int `json:"conteos,omitempty"`
	Reader     int            `json:"lector,omitempty"`
	Columns    []Column       `json:"columnas,omitempty"`
	Rows       int            `json:"filas"`
	Suppressed int            `json:"suprimidas"`
	RowsDigest string         `json:"filas_digest,omitempty"`
	Official   File           `json:"oficial"` // zstd of the official bytes
	RowsFile   *File          `json:"filas_archivo,omitempty"`
	// AcceptedFrom is the version in quarantine that a person accepted as this one.
	AcceptedFrom int `json:"aceptada_de,omitempty"`
}

// EditionManifest is the set of versions that answers are given from.
type EditionManifest struct {
	Number    int            `json:"edicion"`
	SHA256    string         `json:"edicion_sha256"`
	Published string         `json:"publicada"` // RFC 3339
	Sources   []EditionEntry `json:"fuentes"`   // by source
}

// EditionEntry is one source in an edition.
type EditionEntry struct {
	Source         string     `json:"source"`
	VersionID      int        `json:"source_version_id"`
	SHA256         string     `json:"sha256"`
	Reader         int        `json:"lector"`
	RowsDigest     string     `json:"filas_digest"`
	HistoryDigest  string     `json:"historia_digest"`
	Corte          civil.Date `json:"corte"`
	OrderDate      civil.Date `json:"fecha_de_orden"`
	PublishedReset string     `json:"publicada_en_reset"` // when the first edition with this version was published
	Chain          []int      `json:"historia"`           // version ids that the history was built from, in order
	History        File       `json:"historia_archivo"`
}

func officialPath(source, sha string) string {
	return snapshotsDir + "/" + source + "/" + sha + "/oficial.zst"
}

func rowsPath(source, sha string, reader int) string {
	return snapshotsDir + "/" + source + "/" + sha + "/filas-" + strconv.Itoa(reader) + ".sst"
}

func historyPath(source, digest string) string {
	return snapshotsDir + "/" + source + "/historia/" + digest + ".sst"
}

func versionPath(id int) string        { return versionsDir + "/" + strconv.Itoa(id) + ".json" }
func editionPath(n int) string         { return editionsDir + "/" + strconv.Itoa(n) + ".json" }
func checkedPath(source string) string { return checkedDir + "/" + source + ".json" }

// evidence is edicion_sha256: see the package comment.
func (m *EditionManifest) evidence() (string, error) {
	type entry struct {
		Source        string  `json:"source"`
		SHA256        string  `json:"sha256"`
		Reader        int     `json:"lector"`
		RowsDigest    string  `json:"filas_digest"`
		HistoryDigest string  `json:"historia_digest"`
		Corte         *string `json:"corte"`
		OrderDate     string  `json:"fecha_de_orden"`
	}
	entries := make([]entry, len(m.Sources))
	for i, e := range m.Sources {
		entries[i] = entry{e.Source, e.SHA256, e.Reader, e.RowsDigest, e.HistoryDigest, nil, e.OrderDate.String()}
		if !e.Corte.IsZero() {
			corte := e.Corte.String()
			entries[i].Corte = &corte
		}
	}
	text, err := canon.Marshal(entries)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// emptyEdition is what a catalogue answers from before its first edition: no
// sources, under the hash of that. It has no number and no file.
func emptyEdition() EditionManifest {
	var m EditionManifest
	m.SHA256, _ = m.evidence() // of no entries: cannot fail
	return m
}

// Text returns the manifest as it is published, but for the line feed at its end:
// canonical JSON with its own hash.
func (v Version) Text() ([]byte, error) { return manifestText(v) }

// Text is as Version.Text. The edition without sources has no file, and the same form.
func (m EditionManifest) Text() ([]byte, error) {
	if m.Sources == nil {
		m.Sources = []EditionEntry{}
	}
	return manifestText(m)
}

func manifestText(v any) ([]byte, error) {
	text, err := encodeManifest(v)
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// Quarantined reports whether nothing is answered from the version.
func (v *Version) Quarantined() bool { return v.State == stateQuarantined }

// encodeManifest returns the text of a manifest: canonical JSON with its own
// hash, and a newline.
func encodeManifest(v any) ([]byte, error) {
	body, err := canon.Marshal(v)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	members[manifestSum] = strconv.AppendQuote(nil, hex.EncodeToString(sum[:]))
	text, err := canon.Marshal(members)
	if err != nil {
		return nil, err
	}
	if len(text) >= maxManifestBytes {
		return nil, fmt.Errorf("snapshots: el manifiesto pasa de %d bytes", maxManifestBytes)
	}
	return append(text, '\n'), nil
}

// decodeManifest reads what encodeManifest wrote and nothing else: any other
// text is a *CorruptError without a path.
func decodeManifest(text []byte, into any) error {
	corrupt := func(got string) error { return &CorruptError{Want: "un manifiesto en JSON canónico", Got: got} }
	if len(text) > maxManifestBytes {
		return corrupt("un archivo demasiado grande")
	}
	body, ok := bytes.CutSuffix(text, []byte("\n"))
	if !ok {
		return corrupt("un archivo sin fin de línea: está truncado")
	}
	again, err := canon.Transform(body)
	if err != nil {
		return corrupt(err.Error())
	}
	if !bytes.Equal(again, body) {
		return corrupt("JSON que no es canónico")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return corrupt(err.Error())
	}
	var want string
	if err := json.Unmarshal(members[manifestSum], &want); err != nil {
		return corrupt("un manifiesto sin " + manifestSum)
	}
	delete(members, manifestSum)
	plain, err := canon.Marshal(members)
	if err != nil {
		return corrupt(err.Error())
	}
	if sum := sha256.Sum256(plain); hex.EncodeToString(sum[:]) != want {
		return &CorruptError{Want: want, Got: hex.EncodeToString(sum[:])}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return corrupt(err.Error())
	}
	return nil
}

// readManifest reads and checks one manifest. A missing one is ErrNotFound.
func (c *Catalogue) readManifest(rel string, into interface{ check() error }) error {
	_, err := c.manifestText(rel, into)
	return err
}

// manifestText is readManifest and the file's bytes.
func (c *Catalogue) manifestText(rel string, into interface{ check() error }) ([]byte, error) {
	f, err := os.Open(c.path(rel))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, rel)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, err
	}
	if err := decodeManifest(text, into); err != nil {
		var bad *CorruptError
		if errors.As(err, &bad) {
			bad.Path = rel
		}
		return nil, err
	}
	if err := into.check(); err != nil {
		return nil, &CorruptError{Path: rel, Want: "un manifiesto coherente", Got: err.Error()}
	}
	return text, nil
}

// check refuses what no catalogue of ours ever writes, so that a manifest
// cannot name a file outside its own folder.
func (v *Version) check() error {
	switch {
	case v.ID < 1:
		return fmt.Errorf("source_version_id %d", v.ID)
	case !validSource(v.Source):
		return fmt.Errorf("source %q", v.Source)
	case !validDigest(v.SHA256):
		return fmt.Errorf("sha256 %q", v.SHA256)
	case v.Bytes < 0 || v.Rows < 0 || v.Suppressed < 0 || v.Suppressed > v.Rows:
		return errors.New("cuentas imposibles")
	case v.OrderDate.IsZero():
		return errors.New("sin fecha_de_orden")
	case v.CorteFrom != "" && (v.Corte.IsZero() || v.CorteFrom != CorteOfFile && v.CorteFrom != CorteOfOperator):
		return fmt.Errorf("corte_de %q", v.CorteFrom)
	case v.AcceptedFrom < 0 || v.AcceptedFrom >= v.ID || v.AcceptedFrom > 0 && v.State != stateAccepted:
		return fmt.Errorf("aceptada_de %d", v.AcceptedFrom)
	case !v.Official.valid(officialPath(v.Source, v.SHA256)):
		return fmt.Errorf("oficial %q", v.Official.Path)
	}
	switch v.State {
	case stateQuarantined:
		if len(v.Faults) == 0 || v.RowsFile != nil {
			return errors.New("una cuarentena lleva motivos y no lleva filas")
		}
	case stateAccepted:
		if err := (Schema{Source: v.Source, Reader: v.Reader, Columns: v.Columns}).check(); err != nil {
			return err
		}
		if v.RowsFile == nil || !v.RowsFile.valid(rowsPath(v.Source, v.SHA256, v.Reader)) || !validDigest(v.RowsDigest) {
			return errors.New("una versión aceptada lleva filas_archivo y filas_digest")
		}
	default:
		return fmt.Errorf("estado %q", v.State)
	}
	return nil
}

func (m *EditionManifest) check() error {
	if m.Number < 1 {
		return fmt.Errorf("edicion %d", m.Number)
	}
	if len(m.Sources) > maxSources {
		return fmt.Errorf("%d fuentes; el máximo de una edición es %d", len(m.Sources), maxSources)
	}
	for i := range m.Sources {
		e := &m.Sources[i]
		switch {
		case !validSource(e.Source) || i > 0 && m.Sources[i-1].Source >= e.Source:
			return fmt.Errorf("source %q", e.Source)
		case !validDigest(e.SHA256) || !validDigest(e.RowsDigest) || !validDigest(e.HistoryDigest):
			return fmt.Errorf("%s: huella mal escrita", e.Source)
		case len(e.Chain) == 0 || slices.Min(e.Chain) < 1 || e.Chain[len(e.Chain)-1] != e.VersionID:
			return fmt.Errorf("%s: historia %v", e.Source, e.Chain)
		case !e.History.valid(historyPath(e.Source, e.HistoryDigest)):
			return fmt.Errorf("%s: historia_archivo %q", e.Source, e.History.Path)
		}
	}
	sha, err := m.evidence()
	if err != nil {
		return err
	}
	if sha != m.SHA256 {
		return fmt.Errorf("edicion_sha256 %s no es la de sus fuentes (%s)", m.SHA256, sha)
	}
	return nil
}

// agrees says whether the version is the one that the entry was made from.
func (e *EditionEntry) agrees(v *Version) error {
	if v.State != stateAccepted || v.ID != e.VersionID || v.Source != e.Source || v.SHA256 != e.SHA256 ||
		v.Reader != e.Reader || v.RowsDigest != e.RowsDigest || v.Corte != e.Corte || v.OrderDate != e.OrderDate {
		return &CorruptError{Path: versionPath(e.VersionID), Want: "la versión de la que habla la edición", Got: "otra"}
	}
	return nil
}

// same reports whether a version of the source is nothing but v again.
func (v *Version) same(sha string, reader int, corte, order civil.Date) bool {
	return v.SHA256 == sha && v.Reader == reader && v.Corte == corte && v.OrderDate == order
}

func (f *File) valid(path string) bool {
	return f.Path == path && f.Bytes >= 0 && validDigest(f.SHA256)
}

// validSource accepts what can be a folder's name and a bit of an URL.
func validSource(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_')) {
			return false
		}
	}
	return true
}

func validDigest(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
