package catalog

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"cotejo/checks"
)

// Rate is pesos for one dollar in ten-thousandths, the unit of the FIX. Positive.
type Rate int32

// maxRate keeps every product of an amount and a rate within 64 bits of centavos.
const maxRate Rate = 9999_9999

// rateScale is ten-thousandths in a peso.
const rateScale = 1_0000

// ParseRate reads digits with at most four decimals (18.8817). Values of a
// thousand and more may have a comma between the thousands. It never rounds.
func ParseRate(s string) (Rate, error) {
	whole, decimals, dot := strings.Cut(s, ".")
	if head, tail, comma := strings.Cut(whole, ","); comma && len(head) == 1 && len(tail) == 3 {
		whole = head + tail
	}
	if !isASCII(whole, 1, 4, false) || dot && !isASCII(decimals, 1, 4, false) {
		return 0, fmt.Errorf("%.20q no es un tipo de cambio con hasta 4 decimales", s)
	}
	n, err := strconv.ParseInt(whole+decimals+"0000"[len(decimals):], 10, 32)
	if err != nil || n <= 0 || Rate(n) > maxRate {
		return 0, fmt.Errorf("%.20q no es un tipo de cambio entre 0.0001 y 9999.9999", s)
	}
	return Rate(n), nil
}

// String returns the rate with four decimals, as it is published.
func (r Rate) String() string { return fmt.Sprintf("%d.%04d", r/rateScale, r%rateScale) }

// Amount is money to convert, in millionths of its currency: exact for the six
// decimals of a dollar token.
type Amount uint64

const (
	amountDecimals = 6
	amountScale    = 1_000_000
	// maxAmountDigits bounds the integer part: below a million million.
	maxAmountDigits = 12
)

// ParseAmount reads digits with at most six decimals. Signs, exponents, blanks
// and thousands separators are not read. The error is a *checks.Problem.
func ParseAmount(s string) (Amount, error) {
	whole, decimals, dot := strings.Cut(s, ".")
	switch {
	case len(s) > maxAmountDigits+1+amountDecimals, isASCII(whole, maxAmountDigits+1, len(s), false):
		return 0, &checks.Problem{Type: "string_too_long", Rule: "El monto lleva hasta 12 dígitos enteros y 6 decimales."}
	case !isASCII(whole, 1, maxAmountDigits, false), dot && !isASCII(decimals, 1, amountDecimals, false):
		return 0, malformed("El monto se escribe con dígitos y, si hace falta, punto y hasta 6 decimales: 1250.50, sin signo, comas ni exponente.")
	}
	n, err := strconv.ParseUint(whole+decimals+"000000"[len(decimals):], 10, 64)
	return Amount(n), err
}

// String returns the amount without trailing zeros beyond two decimals.
func (a Amount) String() string {
	return decimal(uint64(a)/amountScale, uint64(a)%amountScale, amountDecimals)
}

// ToMXN converts dollars to pesos. exact is the whole product, of at most ten
// decimals; centavos is that product rounded half up, the only rounding.
func (r Rate) ToMXN(usd Amount) (centavos int64, exact string) {
	const scale = amountScale * rateScale
	hi, lo := bits.Mul64(uint64(usd), uint64(r))
	whole, rest := bits.Div64(hi, lo, scale)
	return int64(whole*100 + (rest+scale/200)/(scale/100)), decimal(whole, rest, 10)
}

// ToUSD converts pesos to dollars. cents is the quotient, which in general has no
// end, rounded half up: the only rounding.
func (r Rate) ToUSD(mxn Amount) (cents int64) {
	// (mxn/10^6) / (r/10^4) dollars are mxn/r cents. An amount is below 10^18, so
	// the quotient fits.
	whole, rest := uint64(mxn)/uint64(r), uint64(mxn)%uint64(r)
	if rest*2 >= uint64(r) {
		whole++
	}
	return int64(whole)
}

// decimal writes whole and a fraction of so many digits, keeping two at least.
func decimal(whole, fraction uint64, digits int) string {
	text := fmt.Sprintf("%0*d", digits, fraction)
	for len(text) > 2 && text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	return strconv.FormatUint(whole, 10) + "." + text
}
