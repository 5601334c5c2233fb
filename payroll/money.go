package payroll

import (
	"strconv"
	"strings"
)

// Pesos is an exact amount of Mexican pesos, in centavos. It is written with
// two decimals and without separators, as text: 4182.00.
type Pesos int64

// Decimal is an exact number with at most five decimals, in units of 0.00001:
// percentages (25 is 25 %) and years.
type Decimal int64

const (
	centavos    = 100
	decimalUnit = 100_000

	// maxNumber bounds the bytes of a number, long before it could overflow.
	maxNumber = 18
)

// Rounding is how every reported amount is rounded, as base_calculo states it.
const Rounding = "Cada renglón se calcula con precisión completa y se redondea una sola vez a centavos, con medio centavo hacia arriba; los totales suman renglones ya redondeados."

// halfUp is the one place where a figure is rounded: num/den, for num >= 0 and
// den > 0, to the nearest integer, halves up. Callers keep num below 2^62.
func halfUp(num, den int64) int64 { return (2*num + den) / (2 * den) }

// percentOf returns p percent of an amount, rounded to centavos.
func percentOf(amount Pesos, p Decimal) Pesos {
	return Pesos(halfUp(int64(amount)*int64(p), 100*decimalUnit))
}

// ParsePesos reads an amount as a request writes it: ASCII digits, at most two
// decimals after a point, no sign, exponent, blanks or thousands separators.
// field is what the problem names.
func ParsePesos(field, text string) (Pesos, *Problem) {
	n, problem := parseNumber(field, text, 2)
	return Pesos(n), problem
}

// ParseDecimal reads a percentage or a number of years, with at most five
// decimals, in the form of ParsePesos.
func ParseDecimal(field, text string) (Decimal, *Problem) {
	n, problem := parseNumber(field, text, 5)
	return Decimal(n), problem
}

// parseNumber returns text in units of its last admitted decimal.
func parseNumber(field, text string, places int) (int64, *Problem) {
	if n, ok := number(text, places); ok {
		return n, nil
	}
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		if _, ok := number(rest, places); ok {
			return 0, &Problem{field, greaterThanEqual, "«" + field + "» no puede ser negativo."}
		}
	}
	return 0, &Problem{field, decimalParsing, "«" + field + "» debe ser un número con punto decimal y a lo más " +
		strconv.Itoa(places) + " decimales, en dígitos 0-9, sin signo, exponente, espacios ni separador de miles; por ejemplo 315.04."}
}

func number(text string, places int) (n int64, ok bool) {
	whole, fraction, point := strings.Cut(text, ".")
	switch {
	case len(text) > maxNumber, whole == "", len(fraction) > places, point && fraction == "":
		return 0, false
	case len(whole) > 1 && whole[0] == '0':
		return 0, false
	case len(whole) > 12:
		return 0, false
	}
	for _, part := range [2]string{whole, fraction} {
		for i := range len(part) {
			if part[i] < '0' || part[i] > '9' {
				return 0, false
			}
			n = n*10 + int64(part[i]-'0')
		}
	}
	for range places - len(fraction) {
		n *= 10
	}
	return n, true
}

// String writes the amount with two decimals: -535.65.
func (p Pesos) String() string { return fixed(int64(p), 2) }

// MarshalText writes what String does, so that JSON carries amounts as text.
func (p Pesos) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String writes the number without needless zeros: 0.54355, 25.
func (d Decimal) String() string {
	return strings.TrimSuffix(strings.TrimRight(fixed(int64(d), 5), "0"), ".")
}

// MarshalText writes what String does.
func (d Decimal) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// fixed writes n units of 10^-places.
func fixed(n int64, places int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	digits := strconv.FormatInt(n, 10)
	if short := places + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	cut := len(digits) - places
	return sign + digits[:cut] + "." + digits[cut:]
}

// ratio writes num/den rounded half up to places decimals, for facts that are
// shown and never computed with.
func ratio(num, den int64, places int) string {
	unit := int64(1)
	for range places {
		unit *= 10
	}
	return fixed(halfUp(num*unit, den), places)
}
