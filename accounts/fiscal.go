package accounts

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"cotejo/catalog"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/store"
)

const spaceFiscal ledger.Space = 0x53

// Fiscal is what an organization is invoiced with (CFDI 4.0, Anexo 20, node
// Receptor) and written to. An empty text is a value that it has not given.
type Fiscal struct {
	LegalName  string // as in its Constancia de Situación Fiscal, without the régimen societario
	RFC        string
	PostalCode string
	Regime     string // c_RegimenFiscal
	Use        string // c_UsoCFDI
	Email      string
	// Updated is when they were last changed; zero: never. SetFiscal sets it.
	Updated time.Time
}

// Names of the fields, as the API has them.
const (
	FieldLegalName  = "razon_social"
	FieldRFC        = "rfc_fiscal"
	FieldPostalCode = "cp"
	FieldRegime     = "regimen_fiscal"
	FieldUse        = "uso_cfdi"
	FieldEmail      = "email"
)

// FiscalFault is why a field cannot be what it is.
type FiscalFault struct {
	Field string
	checks.Problem
}

// maxFiscalName is the longest name of a CFDI 4.0, in runes.
const maxFiscalName = 300

// ReadFiscal normalises fiscal data and lays each field that is given beside the
// rules of its own, the catalogues as of a day, and the other fields. It returns every
// fault, in the order of the fields.
func ReadFiscal(set *catalog.Set, day civil.Date, in Fiscal) (Fiscal, []FiscalFault) {
	var faults []FiscalFault
	note := func(field string, err error) bool {
		var p *checks.Problem
		if errors.As(err, &p) {
			faults = append(faults, FiscalFault{field, *p})
		}
		return err == nil
	}
	out := in
	out.LegalName = strings.TrimSpace(in.LegalName)
	if in.LegalName != "" {
		note(FieldLegalName, checkLegalName(out.LegalName))
	}
	var person catalog.Person // 0: not known
	if in.RFC != "" {
		rfc, err := checks.ParseRFC(in.RFC)
		if err == nil && rfc.Generic() {
			err = wrong("%s es un RFC genérico: no es de nadie. Envíe el suyo; sin él se factura al público en general.", rfc)
		}
		if out.RFC = rfc.String(); note(FieldRFC, err) {
			if person = catalog.Fisica; rfc.Moral() {
				person = catalog.Moral
			}
		}
	}
	if in.PostalCode != "" {
		_, err := set.Postal.Of(in.PostalCode)
		note(FieldPostalCode, err)
	}
	regime := ""
	if in.Regime != "" && note(FieldRegime, checkRegime(set, day, in.Regime, person)) {
		regime = in.Regime
	}
	if in.Use != "" {
		note(FieldUse, checkUse(set, day, in.Use, person, regime))
	}
	if in.Email != "" {
		email, _, err := checks.ReadEmail(in.Email)
		note(FieldEmail, err)
		out.Email = email.String()
	}
	return out, faults
}

// Pending is ReadFiscal's faults, and one for each field without which no invoice can
// be made out: all but the e-mail. Fiscal data without any are complete.
func (f *Fiscal) Pending(set *catalog.Set, day civil.Date) []FiscalFault {
	_, faults := ReadFiscal(set, day, *f)
	for _, field := range []struct{ name, value string }{
		{FieldLegalName, f.LegalName}, {FieldRFC, f.RFC}, {FieldPostalCode, f.PostalCode}, {FieldRegime, f.Regime}, {FieldUse, f.Use},
	} {
		if field.value == "" {
			faults = append(faults, FiscalFault{field.name, checks.Problem{Type: "missing", Rule: "Falta; sin él se factura al público en general."}})
		}
	}
	return faults
}

func wrong(format string, args ...any) error {
	return &checks.Problem{Type: "value_error", Rule: fmt.Sprintf(format, args...)}
}

func checkLegalName(name string) error {
	n := utf8.RuneCountInString(name)
	switch {
	case n == 0:
		return &checks.Problem{Type: "string_too_short", Rule: "La razón social está en blanco; escríbala como en su Constancia de Situación Fiscal."}
	case n > maxFiscalName:
		return &checks.Problem{Type: "string_too_long", Rule: fmt.Sprintf("La razón social tiene %d caracteres; un CFDI admite %d.", n, maxFiscalName)}
	case strings.ContainsRune(name, '|'):
		return wrong("La razón social no puede llevar «|» (Anexo 20); quítelo.")
	}
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return wrong("La razón social lleva caracteres que no se imprimen; quítelos.")
		}
	}
	return nil
}

// standing refuses a key that may not be used on a day.
func standing(key string, s catalog.Standing, v catalog.Validity) error {
	switch s {
	case catalog.Ended:
		return wrong("La clave %s dejó de estar vigente después del %s; use una vigente.", key, v.To)
	case catalog.NotYet:
		return wrong("La clave %s entra en vigor el %s; use una vigente.", key, v.From)
	}
	return nil
}

func personName(p catalog.Person) string {
	if p == catalog.Moral {
		return "persona moral (12 caracteres)"
	}
	return "persona física (13 caracteres)"
}

// unknownKey turns a catalogue's word for a key that it lacks into a problem.
func unknownKey(err error) error {
	if errors.Is(err, catalog.ErrNotFound) {
		return wrong("%s", err)
	}
	return err
}

func checkRegime(set *catalog.Set, day civil.Date, key string, person catalog.Person) error {
	a, err := set.Regimes.On(key, day)
	if err != nil {
		return unknownKey(err)
	}
	if err := standing(key, a.Standing, a.Row.Validity); err != nil {
		return err
	}
	if person != 0 && !a.Row.Admits(person) {
		return wrong("El régimen %s (%s) no es de una %s, y el RFC lo es; revise ambos en su Constancia de Situación Fiscal.", key, a.Row.Text, personName(person))
	}
	return nil
}

// checkUse lays a use beside the person and the regime, "" when that is not known.
func checkUse(set *catalog.Set, day civil.Date, key string, person catalog.Person, regime string) error {
	a, err := set.Uses.On(key, day)
	if err != nil {
		return unknownKey(err)
	}
	if err := standing(key, a.Standing, a.Row.Validity); err != nil {
		return err
	}
	fits := func(u *catalog.Use) bool {
		return (person == 0 || u.Admits(person)) && (regime == "" || u.AdmitsRegime(regime))
	}
	if fits(&a.Row) {
		return nil
	}
	var others []string
	for other, u := range set.Uses.All {
		if u.On(day) == catalog.InForce && fits(&u) {
			others = append(others, other)
		}
	}
	why := fmt.Sprintf("con el régimen %s", regime)
	if person != 0 && !a.Row.Admits(person) {
		why = "de una " + personName(person)
	}
	return wrong("El uso %s (%s) no es %s; use uno de: %s.", key, a.Row.Text, why, strings.Join(others, ", "))
}

// Fiscal returns the fiscal data of an organization, or of its twin, which has its own;
// zero when there are none.
func (s *Service) Fiscal(account ledger.AccountID, org ledger.OrgID) (Fiscal, error) {
	v, err := s.ledger.Read(account).Get(spaceFiscal, idKey(uint64(org)))
	if errors.Is(err, store.ErrNotFound) {
		return Fiscal{}, nil
	}
	if err != nil {
		return Fiscal{}, err
	}
	return decodeFiscal(v)
}

// SetFiscal replaces the fiscal data of an organization, or of its twin, by what
// ReadFiscal found no fault with, and returns them. The same again changes nothing.
func (s *Service) SetFiscal(ctx context.Context, account ledger.AccountID, org ledger.OrgID, f Fiscal) (Fiscal, error) {
	f.Updated = storedTime(s.now())
	res, err := s.ledger.Do(ctx, account, putFiscal{org, f})
	if err != nil {
		return Fiscal{}, err
	}
	return res.(Fiscal), nil
}

type putFiscal struct {
	org ledger.OrgID
	f   Fiscal
}

// Apply returns the Fiscal that is stored.
func (c putFiscal) Apply(tx *ledger.Tx) (ledger.Result, error) {
	if _, err := tx.Get(spaceOrg, idKey(uint64(c.org.Entity()))); err != nil {
		return nil, absent(err, "la organización "+FormatOrg(c.org))
	}
	key := idKey(uint64(c.org))
	v, err := tx.Get(spaceFiscal, key)
	if err == nil {
		is, err := decodeFiscal(v)
		if err != nil {
			return nil, err
		}
		same := c.f
		if same.Updated = is.Updated; same == is {
			return is, nil
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	tx.Put(spaceFiscal, key, c.f.append(nil))
	return c.f, nil
}

// texts are the fields in the order in which they are stored.
func (f *Fiscal) texts() [6]*string {
	return [...]*string{&f.LegalName, &f.RFC, &f.PostalCode, &f.Regime, &f.Use, &f.Email}
}

func (f *Fiscal) append(dst []byte) []byte {
	dst = appendTime(append(dst, schema), f.Updated)
	for _, text := range f.texts() {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(*text)))
		dst = append(dst, *text...)
	}
	return dst
}

func decodeFiscal(v []byte) (f Fiscal, err error) {
	if len(v) < 9 || v[0] != schema {
		return f, errValue
	}
	f.Updated = decodeTime(v[1:])
	v = v[9:]
	for _, text := range f.texts() {
		if len(v) < 2 || len(v)-2 < int(binary.BigEndian.Uint16(v)) {
			return Fiscal{}, errValue
		}
		n := 2 + int(binary.BigEndian.Uint16(v))
		*text, v = string(v[2:n]), v[n:]
	}
	if len(v) > 0 {
		return Fiscal{}, errValue
	}
	return f, nil
}
