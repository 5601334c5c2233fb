package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cotejo/checks"
	"cotejo/civil"
)

// Person is the kind of taxpayer: an RFC of 13 characters is Fisica, one of 12 is
// Moral.
type Person uint8

const (
	Fisica Person = iota + 1
	Moral
)

// Persons says to whom a key applies.
type Persons struct {
	Fisica, Moral bool
}

// Admits reports whether the key applies to p.
func (a Persons) Admits(p Person) bool { return p == Fisica && a.Fisica || p == Moral && a.Moral }

// Regime is a row of c_RegimenFiscal. 616 is of personas físicas in the catalogue,
// yet it is also the regime of the generic RFC.
type Regime struct {
	Key, Text string
	Persons
	Validity
}

func (Regime) check(key string) *checks.Problem {
	if isASCII(key, 3, 3, false) {
		return nil
	}
	return malformed("El régimen fiscal son 3 dígitos: 601, por ejemplo.")
}

func (r Regime) standing(day civil.Date, _ *Version) Standing { return r.On(day) }

// Use is a row of c_UsoCFDI.
type Use struct {
	Key, Text string
	Persons
	Validity
	// Regimes are those of the receivers that may state this use, ascending. The
	// slice is shared and read-only.
	Regimes []string
}

// AdmitsRegime reports whether a receiver of a regime may state this use.
func (u *Use) AdmitsRegime(regime string) bool {
	_, ok := slices.BinarySearch(u.Regimes, regime)
	return ok
}

func (Use) check(key string) *checks.Problem {
	if isASCII(key, 3, 4, true) && key[0] > '9' {
		return nil
	}
	return malformed("El uso del CFDI es una clave de 3 o 4 caracteres en mayúsculas: G03 o CP01, por ejemplo.")
}

func (u Use) standing(day civil.Date, _ *Version) Standing { return u.On(day) }

// AccountRule says what a payment form allows to be stated of an account.
type AccountRule struct {
	// Allowed: the account may be stated. BankRFC: so may the RFC of its bank.
	Allowed, BankRFC bool
	// Pattern is the SAT's, alternatives separated by |; empty when nothing is
	// required of the text. It is data to show: the SAT's notation is not that of
	// any regular expression library.
	Pattern string
}

// PaymentForm is a row of c_FormaPago.
type PaymentForm struct {
	Key, Text string
	// Banked: the payment goes through the financial system.
	Banked bool
	// NeedsOperationNumber, AllowsPaymentChain and NeedsForeignBankName are flags
	// of the catalogue for the complement of payments.
	NeedsOperationNumber, AllowsPaymentChain, NeedsForeignBankName bool
	// Payer and Beneficiary are the accounts of origin and of destination.
	Payer, Beneficiary AccountRule
	Validity
}

func (PaymentForm) check(key string) *checks.Problem {
	if isASCII(key, 2, 2, false) {
		return nil
	}
	return malformed("La forma de pago son 2 dígitos, con su cero: 01, no 1.")
}

func (p PaymentForm) standing(day civil.Date, _ *Version) Standing { return p.On(day) }

// ReadRegimes reads the catalogue sat_regimen.
func ReadRegimes(data []byte) (*Table[Regime], error) {
	return readTable(data, "sat_regimen", []string{"clave", "texto", "fisica", "moral", "desde", "hasta"},
		func(f []string) (r Regime, err error) {
			r.Key, r.Text = f[0], f[1]
			r.Validity, err = satRow(f[1], f[4], f[5], flags(f[2:], &r.Fisica, &r.Moral))
			return r, err
		})
}

// ReadUses reads the catalogue sat_uso_cfdi.
func ReadUses(data []byte) (*Table[Use], error) {
	return readTable(data, "sat_uso_cfdi", []string{"clave", "texto", "fisica", "moral", "desde", "hasta", "regimenes"},
		func(f []string) (u Use, err error) {
			u.Key, u.Text = f[0], f[1]
			u.Validity, err = satRow(f[1], f[4], f[5], flags(f[2:], &u.Fisica, &u.Moral))
			if err != nil {
				return Use{}, err
			}
			u.Regimes = strings.Fields(f[6])
			slices.Sort(u.Regimes)
			for i, regime := range u.Regimes {
				if (Regime{}).check(regime) != nil || i > 0 && u.Regimes[i-1] == regime {
					return Use{}, fmt.Errorf("los regímenes %.80q no son claves de 3 dígitos, cada una una vez", f[6])
				}
			}
			return u, nil
		})
}

// anything is how the SAT writes a pattern that demands nothing.
const anything = `\V*`

// ReadPaymentForms reads the catalogue sat_forma_pago.
func ReadPaymentForms(data []byte) (*Table[PaymentForm], error) {
	return readTable(data, "sat_forma_pago", []string{
		"clave", "texto", "bancarizado", "numero_operacion", "rfc_banco_ordenante", "cuenta_ordenante", "patron_ordenante",
		"rfc_banco_beneficiario", "cuenta_beneficiario", "patron_beneficiario", "cadena_pago", "banco_extranjero", "desde", "hasta",
	}, func(f []string) (p PaymentForm, err error) {
		p.Key, p.Text = f[0], f[1]
		p.Payer.Pattern, p.Beneficiary.Pattern = f[6], f[9]
		for _, pattern := range []*string{&p.Payer.Pattern, &p.Beneficiary.Pattern} {
			if *pattern == anything {
				*pattern = ""
			}
		}
		p.Validity, err = satRow(f[1], f[12], f[13],
			flags(f[2:], &p.Banked, &p.NeedsOperationNumber, &p.Payer.BankRFC, &p.Payer.Allowed),
			flags(f[7:], &p.Beneficiary.BankRFC, &p.Beneficiary.Allowed),
			flags(f[10:], &p.AllowsPaymentChain, &p.NeedsForeignBankName))
		return p, err
	})
}

// satRow reads what every row of the SAT has, and reports the first problem.
func satRow(text, from, to string, problems ...error) (Validity, error) {
	if err := errors.Join(problems...); err != nil {
		return Validity{}, err
	}
	if text == "" || from == "" {
		return Validity{}, errors.New("falta el texto o el inicio de la vigencia")
	}
	return validity(from, to)
}
