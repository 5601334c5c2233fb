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

// standing answers from the list of participants from the version's day on, and
// from the SAT's validity before. Between the two nothing is stated: a code may
// have left the list on any day.
func (b Bank) standing(day civil.Date, version *Version) Standing {
	sat := b.SATValidity.On(day)
	switch {
	case sat == Ended:
		return Ended
	case !day.Before(version.Date):
		if b.InSPEI {
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
}

// Version returns what the catalogue was read from.
func (b *Banks) Version() *Version { return b.table.Version() }

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
		return Answer[Bank]{}, &NotFoundError{Key: code, Version: b.Version()}
	}
	return b.table.On(code, day)
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
	return Answer[Bank]{}, &NotFoundError{Key: code, Version: b.Version()}
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
			b.bySPEI[bank.SPEI] = n
			if short, ok := cutZero(bank.SPEI); ok {
				b.bySPEI[short] = n
			}
		}
		n++
		return bank, nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
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
