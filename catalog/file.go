package catalog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"cotejo/civil"
)

// Version is what a catalogue was read from.
type Version struct {
	// ID names the catalogue: bancos, sat_regimen, banxico_fix, …
	ID string
	// Source is the authority and the publication; URL, where it publishes.
	Source, URL string
	// Retrieved says where these facts were read, and License on what terms.
	Retrieved, License string
	// Coverage says what the catalogue holds and what it does not.
	Coverage string
	// Date is the day that the facts are of.
	Date civil.Date
	// SHA256 is of the file's bytes, unpacked, in lower-case hexadecimal: of the
	// official ones when Loaded says where they came from.
	SHA256 string
	Rows   int
	// Basis is what the movement of a paid answer says of the version.
	Basis string
	// Loaded is nil of a file that the binary carries.
	Loaded *Loaded
}

// Loaded is what is known of a version that came from an ingested source. Moments
// are RFC 3339; an unknown one is empty.
type Loaded struct {
	ID                               int // source_version_id
	Corte                            civil.Date
	Activated, Published, Downloaded string
}

// seal completes what is known: Basis.
func (v *Version) seal() { v.Basis = v.ID + " " + v.Date.String() + " sha256 " + v.SHA256[:12] }

// Limits of a catalogue file. The largest that is known, the postal codes of the
// SAT, has 95,000 rows and some 6 MB.
const (
	maxFile  = 16 << 20
	maxRows  = 250_000
	maxField = 1024
)

// ReadFile reads a catalogue file: lines «# nombre: valor» that describe the
// version, then comma-separated values as RFC 4180 has them, the first line with
// the names of the columns. UTF-8 without a byte order mark, lines end in LF;
// days are YYYY-MM-DD, flags 1 or empty, and empty means that nothing is stated.
// id, fuente and version (a day) are required; url, obtenida_de, licencia and
// cobertura are not.
//
// The id and the columns must be those given. row gets each row in order and
// must not keep the slice; it may keep the strings.
func ReadFile(data []byte, id string, columns []string, row func(f []string) error) (Version, error) {
	if len(data) > maxFile {
		return Version{}, fmt.Errorf("el archivo ocupa %d bytes; el máximo es %d", len(data), maxFile)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, '\r') >= 0 || bytes.IndexByte(data, 0) >= 0 {
		return Version{}, errors.New("el archivo debe ser UTF-8 con líneas terminadas en LF")
	}
	sum := sha256.Sum256(data)
	version := Version{SHA256: hex.EncodeToString(sum[:])}
	lines, err := version.readHead(data)
	if err != nil {
		return Version{}, err
	}
	if version.ID != id {
		return Version{}, fmt.Errorf("el archivo es del catálogo %q, no de %q", version.ID, id)
	}
	r := csv.NewReader(bytes.NewReader(lines))
	r.ReuseRecord = true
	r.FieldsPerRecord = len(columns)
	head, err := r.Read()
	if err != nil {
		return Version{}, fmt.Errorf("encabezado: %w", err)
	}
	if !slices.Equal(head, columns) {
		return Version{}, fmt.Errorf("las columnas son %q, se esperaban %q", head, columns)
	}
	for {
		f, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Version{}, err
		}
		if version.Rows++; version.Rows > maxRows {
			return Version{}, fmt.Errorf("el archivo tiene más de %d renglones", maxRows)
		}
		for _, text := range f {
			if len(text) > maxField {
				return Version{}, fmt.Errorf("renglón %d: un campo ocupa %d bytes; el máximo es %d", version.Rows, len(text), maxField)
			}
		}
		if err := row(f); err != nil {
			return Version{}, fmt.Errorf("renglón %d: %w", version.Rows, err)
		}
	}
	if version.Rows == 0 {
		return Version{}, errors.New("el archivo no tiene renglones")
	}
	version.seal()
	return version, nil
}

// readHead reads the lines that describe the version and returns the rest.
func (v *Version) readHead(data []byte) (rest []byte, err error) {
	var date string
	members := map[string]*string{
		"id": &v.ID, "fuente": &v.Source, "url": &v.URL, "obtenida_de": &v.Retrieved,
		"licencia": &v.License, "cobertura": &v.Coverage, "version": &date,
	}
	for {
		after, ok := bytes.CutPrefix(data, []byte("# "))
		if !ok {
			break
		}
		line, next, _ := bytes.Cut(after, []byte("\n"))
		name, value, ok := strings.Cut(string(line), ": ")
		into := members[name]
		if !ok || into == nil || value == "" || len(value) > maxField {
			return nil, fmt.Errorf("la línea «# %.40q» no es «# nombre: valor» de un nombre conocido y escrito una vez", line)
		}
		*into = value
		delete(members, name)
		data = next
	}
	if v.ID == "" || v.Source == "" || date == "" {
		return nil, errors.New("faltan las líneas «# id:», «# fuente:» o «# version:»")
	}
	v.Date, err = civil.Parse(date)
	return data, err
}

// Unpack returns what a gzip file holds, within the limits of a catalogue file.
func Unpack(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(out) > maxFile {
		return nil, fmt.Errorf("el archivo ocupa más de %d bytes", maxFile)
	}
	return out, nil
}

// flag reads 1 or empty.
func flag(s string) (bool, error) {
	if s != "" && s != "1" {
		return false, fmt.Errorf("%.20q no es 1 ni vacío", s)
	}
	return s == "1", nil
}

// flags reads several, in order.
func flags(from []string, into ...*bool) error {
	for i, b := range into {
		var err error
		if *b, err = flag(from[i]); err != nil {
			return err
		}
	}
	return nil
}

// validity reads two days, either of which may be empty.
func validity(from, to string) (v Validity, err error) {
	if err := v.From.UnmarshalText([]byte(from)); err != nil {
		return Validity{}, err
	}
	if err := v.To.UnmarshalText([]byte(to)); err != nil {
		return Validity{}, err
	}
	if !v.To.IsZero() && (v.From.IsZero() || v.To.Before(v.From)) {
		return Validity{}, fmt.Errorf("la vigencia termina el %s sin haber empezado", v.To)
	}
	return v, nil
}
