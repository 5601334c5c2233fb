package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cotejo/civil"
	"cotejo/snapshots"
)

// SPEISource is the row schema of the list of participants of the SPEI that Banco
// de México publishes by day. Identity: the code of five digits.
var SPEISource = snapshots.Schema{
	Source: "banxico_spei",
	Reader: 1,
	// It changes a few times a year, on no fixed days, and states no date.
	MaxAge: 400,
	Columns: []snapshots.Column{
		{Name: "clave", Tracked: true},
		{Name: "nombre", Tracked: true},
	},
}

// Limits of the list, which has some 100 participants in some 4 kB.
const (
	maxSPEI             = 1 << 20
	maxParticipants     = 2000
	maxParticipantBytes = 200
)

// Participant is a row of the list.
type Participant struct {
	// Code has five digits: Banco de México writes its own without the zero.
	Code string
	// Written and Name are as published.
	Written, Name string
}

// ErrNoParticipants is returned for an answer that holds no list.
var ErrNoParticipants = errors.New("la respuesta de Banco de México no trae la lista «instituciones»")

// ParseSPEI reads the JSON answer of Banco de México with its participants, pairs
// of code and name, and returns them ascending. The last three digits are the key
// of CLABEs: two participants that share them are an error, as is anything that is
// not the known shape.
func ParseSPEI(data []byte) ([]Participant, error) {
	if len(data) > maxSPEI {
		return nil, fmt.Errorf("la respuesta ocupa %d bytes; el máximo es %d", len(data), maxSPEI)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("la respuesta no es UTF-8")
	}
	var answer struct {
		Institutions [][]json.RawMessage `json:"instituciones"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("la respuesta no es el JSON conocido: %w", err)
	}
	if len(answer.Institutions) == 0 {
		return nil, ErrNoParticipants
	}
	if len(answer.Institutions) > maxParticipants {
		return nil, fmt.Errorf("la lista trae %d participantes; el máximo es %d", len(answer.Institutions), maxParticipants)
	}
	var list []Participant
	for i, pair := range answer.Institutions {
		p, err := participant(pair)
		if err != nil {
			return nil, fmt.Errorf("participante %d: %w", i+1, err)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Participant) int { return strings.Compare(a.Code, b.Code) })
	seen := map[string]string{}
	for _, p := range list {
		if other, again := seen[p.Code[2:]]; again {
			return nil, fmt.Errorf("%s y %s tienen los mismos tres últimos dígitos, que son la clave de las CLABE", other, p.Code)
		}
		seen[p.Code[2:]] = p.Code
	}
	return list, nil
}

// participant reads a pair; the code may be a text or a number.
func participant(pair []json.RawMessage) (p Participant, err error) {
	if len(pair) != 2 {
		return p, fmt.Errorf("tiene %d partes, se esperaban la clave y el nombre", len(pair))
	}
	if p.Written = string(bytes.TrimSpace(pair[0])); strings.HasPrefix(p.Written, `"`) {
		if err := json.Unmarshal(pair[0], &p.Written); err != nil {
			return p, err
		}
	}
	if err := json.Unmarshal(pair[1], &p.Name); err != nil {
		return p, errors.New("el nombre no es un texto")
	}
	p.Code = p.Written
	if len(p.Code) == 4 {
		p.Code = "0" + p.Code
	}
	if !isASCII(p.Code, 5, 5, false) {
		return p, fmt.Errorf("%.20q no es una clave de 5 dígitos", p.Written)
	}
	if strings.TrimSpace(p.Name) == "" || len(p.Name) > maxParticipantBytes || strings.ContainsFunc(p.Name, unprintable) {
		return p, fmt.Errorf("%s no tiene un nombre de hasta %d bytes, sin caracteres de control", p.Code, maxParticipantBytes)
	}
	return p, nil
}

// unprintable are control characters that are no blanks: those become one space.
func unprintable(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }

// SPEIRows gives the rows of a list to add.
func SPEIRows(list []Participant, add func(snapshots.Row) error) error {
	for _, p := range list {
		name := strings.Join(strings.Fields(p.Name), " ")
		if err := add(snapshots.Row{ID: []string{p.Code}, Raw: []string{p.Written, p.Name}, Norm: []string{p.Code, name}}); err != nil {
			return err
		}
	}
	return nil
}

// testParticipants stand in public lists and are no institutions.
var testParticipants = []string{"40805", "40819", "40994", "40995"}

// loadBanks makes the catalogue of banks with the list of a source. A list that is
// older than the one in the catalogue changes nothing.
func loadBanks(src *snapshots.Source, embedded *Banks) (*Banks, error) {
	list := map[string]Participant{} // by the three digits
	err := src.All(func(r snapshots.Row) error {
		code := r.Norm[0]
		if !isASCII(code, 5, 5, false) {
			return fmt.Errorf("clave %.10q", code)
		}
		if !slices.Contains(testParticipants, code) {
			list[code[2:]] = Participant{Code: code, Name: r.Norm[1]}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	version := loadedVersion(src, "Banco de México, participantes del SPEI", "Participantes del SPEI a la fecha de la versión: participa, clave, nombre y vigencia son de esta lista")
	if version.Date.Before(embedded.Version().Date) {
		return embedded, nil
	}
	return embedded.with(list, &version)
}

// with is the catalogue with another list of participants, newer than its own.
func (b *Banks) with(list map[string]Participant, version *Version) (*Banks, error) {
	merged := &Banks{
		table: &Table[Bank]{version: b.table.version, places: map[string]int{}}, bySPEI: map[string]int{}, list: version,
		basis: b.basis + "; " + version.Basis,
	}
	rows := maps.Collect(b.table.All)
	for code := range list {
		if _, known := rows[code]; !known {
			rows[code] = Bank{Code: code}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(rows)) {
		bank := rows[code]
		bank.earlier = sighting{day: b.Listed(), in: bank.InSPEI}
		bank.listed = version.Date
		p, in := list[code]
		bank.InSPEI, bank.SPEI, bank.Class = in, "", ""
		if in {
			// The name of another owner, or another name of the same one.
			bank.Changed = bank.Changed || bank.SPEIName != "" && !strings.EqualFold(bank.SPEIName, p.Name)
			bank.SPEI, bank.SPEIName = p.Code, p.Name
			bank.Class, _ = bankClass(code, p.Code) // another one has no name yet
		}
		merged.place(&bank, len(merged.table.keys))
		if err := merged.table.add(code, bank); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// sighting is whether a code was in the list of a day. The zero sighting is none.
type sighting struct {
	day civil.Date
	in  bool
}
