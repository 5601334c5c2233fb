package catalog

import (
	"errors"
	"fmt"

	"cotejo/checks"
	"cotejo/civil"
)

// BankClass is what a SPEI code says of its participant. The zero BankClass is
// that of a code outside the SPEI.
type BankClass string

// The first two digits of a SPEI code.
const (
	CentralBank     BankClass = "banco_central"            // 02
	DevelopmentBank BankClass = "banca_desarrollo"         // 37
	CommercialBank  BankClass = "banca_multiple"           // 40
	NonBank         BankClass = "participante_no_bancario" // 90: brokers, SOFIPO, IFPE, clearing
)

// Bank is a bank or another institution with a three-digit code, the first digits
// of its CLABEs. A code outlives its owner: the names are those of their own
// sources and days, and may be of different institutions.
type Bank struct {
	// Code has three digits; SPEI five, or none outside the SPEI.
	Code, SPEI string
	Class      BankClass
	// InSPEI: the code is in the list of participants of the version's day.
	InSPEI bool
	// SPEIName is the short name in that list.
	SPEIName string
	// SATName and SATLegalName are those of the SAT's c_Banco, of 2017, with its
	// validity.
	SATName, SATLegalName string
	SATValidity           Validity
	// Changed: the code has another owner or another name since the SAT's list, so
	// SATLegalName must not be shown as that of the participant.
	Changed bool
	// CommonName is that of public collections, not an official one.
	CommonName string

	listed  civil.Date // day of the list that InSPEI is of
	earlier sighting   // in the list before it
}

// Name returns the newest short name that is known: that of the SPEI, else the
// SAT's, else the common one.
func (b *Bank) Name() string {
	switch {
	case b.SPEIName != "":
		return b.SPEIName
	case b.SATName != "":
		return b.SATName
	}
	return b.CommonName
}

func (Bank) check(key string) *checks.Problem {
	if isASCII(key, 3, 3, false) {
		return nil
	}
	return malformed("La clave de banco son 3 dígitos, los primeros de la CLABE, con sus ceros: 002, no 2.")
}

// standing answers from the list of participants from its day on, and from the
// SAT's validity before the first list. Between the two nothing is stated: a code
// may have left the list on any day. Between two lists it is what both say.
func (b Bank) standing(day civil.Date, _ *Version) Standing {
	sat := b.SATValidity.On(day)
	switch {
	case sat == Ended:
		return Ended
	case !day.Before(b.listed), !b.earlier.day.IsZero() && !day.Before(b.earlier.day):
		switch {
		case day.Before(b.listed) && b.earlier.in != b.InSPEI:
			return Unknown
		case b.InSPEI:
			return InForce
		}
		return Ended
	case sat == InForce && (b.InSPEI || !b.SATValidity.To.IsZero()):
		return InForce
	}
	// The SAT's list begins in 2017; its banks do not.
	return Unknown
}

// notABank is the code that lists derived from the SAT's use for «not applicable».
const notABank = "999"

// Banks is the catalogue of banks, keyed by three digits and by SPEI code.
type Banks struct {
	table  *Table[Bank]
	bySPEI map[string]int
	list   *Version // of the participants; nil: they are of the same file
	basis  string
}

// Version returns what the catalogue was read from.
func (b *Banks) Version() *Version { return b.table.Version() }

// List returns the version of the list of participants that was loaded; nil when
// it is that of Version.
func (b *Banks) List() *Version { return b.list }

// Listed is the day of the list of participants.
func (b *Banks) Listed() civil.Date {
	if b.list != nil {
		return b.list.Date
	}
	return b.Version().Date
}

// Basis is what the movement of a paid answer says of the versions.
func (b *Banks) Basis() string { return b.basis }

// All calls yield with each code of three digits and its bank, in order.
func (b *Banks) All(yield func(string, Bank) bool) {
	for key, bank := range b.table.All {
		if key != notABank && !yield(key, bank) {
			return
		}
	}
}

// On returns the bank of a code of three digits, as Table.On does.
func (b *Banks) On(code string, day civil.Date) (Answer[Bank], error) {
	if code == notABank {
		return Answer[Bank]{}, &NotFoundError{Key: code, Version: b.newest()}
	}
	a, err := b.table.On(code, day)
	if missing, ok := errors.AsType[*NotFoundError](err); ok {
		missing.Version = b.newest()
	}
	return a, err
}

// newest is the version that a code which is nowhere would first be in.
func (b *Banks) newest() *Version {
	if b.list != nil {
		return b.list
	}
	return b.Version()
}

// Participant returns the bank of a SPEI code of five digits, or of the four that
// Banco de México writes for itself (2001). Errors are those of On.
func (b *Banks) Participant(code string, day civil.Date) (Answer[Bank], error) {
	if i, ok := b.bySPEI[code]; ok {
		return b.table.at(i, day), nil
	}
	if !isASCII(code, 5, 5, false) {
		return Answer[Bank]{}, malformed("La clave de participante del SPEI son 5 dígitos: 40002, por ejemplo.")
	}
	return Answer[Bank]{}, &NotFoundError{Key: code, Version: b.newest()}
}

// ReadBanks reads the catalogue bancos.
func ReadBanks(data []byte) (*Banks, error) {
	b := &Banks{bySPEI: map[string]int{}}
	n := 0
	var err error
	b.table, err = readTable(data, "bancos", []string{
		"clave", "clave_spei", "nombre_spei", "en_spei", "sat_nombre", "sat_razon_social", "sat_desde", "sat_hasta", "cambio", "nombre_comunidad",
	}, func(f []string) (Bank, error) {
		bank := Bank{Code: f[0], SPEI: f[1], SPEIName: f[2], SATName: f[4], SATLegalName: f[5], CommonName: f[9]}
		err := errors.Join(flags(f[3:], &bank.InSPEI), flags(f[8:], &bank.Changed))
		if err != nil {
			return Bank{}, err
		}
		if bank.SATValidity, err = validity(f[6], f[7]); err != nil {
			return Bank{}, err
		}
		if bank.Name() == "" && bank.SATLegalName == "" {
			return Bank{}, errors.New("sin nombre")
		}
		if bank.InSPEI != (bank.SPEI != "") {
			return Bank{}, fmt.Errorf("clave del SPEI %.10q en un renglón con en_spei=%q", bank.SPEI, f[3])
		}
		if bank.InSPEI {
			if bank.Class, err = bankClass(bank.Code, bank.SPEI); err != nil {
				return Bank{}, err
			}
		}
		b.place(&bank, n)
		n++
		return bank, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range b.table.rows {
		b.table.rows[i].listed = b.table.version.Date
	}
	b.basis = b.table.version.Basis
	return b, nil
}

// place notes where the row of a participant will be.
func (b *Banks) place(bank *Bank, at int) {
	if !bank.InSPEI {
		return
	}
	b.bySPEI[bank.SPEI] = at
	if short, ok := cutZero(bank.SPEI); ok {
		b.bySPEI[short] = at
	}
}

// bankClass reads a SPEI code: two digits of class and the three of the bank.
func bankClass(code, spei string) (BankClass, error) {
	if isASCII(spei, 5, 5, false) && spei[2:] == code {
		switch spei[:2] {
		case "02":
			return CentralBank, nil
		case "37":
			return DevelopmentBank, nil
		case "40":
			return CommercialBank, nil
		case "90":
			return NonBank, nil
		}
	}
	return "", fmt.Errorf("%.10q no es la clave del SPEI de %.10q", spei, code)
}

func cutZero(s string) (string, bool) { return s[1:], s[0] == '0' }
