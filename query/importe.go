package query

import (
	"slices"
	"strconv"
	"strings"
)

// Amounts of contracts are decimals with as many places as were published, never
// floats: a re-saved copy has 5173223.079999998, and that is what it says.

// Bounds of an amount: more than any budget, fewer than a hostile cell could cost.
const (
	importeDigits = 18 // before the point
	importePlaces = 18 // behind it
)

// AppendImporte appends a published amount in canonical form: a sign when negative,
// digits without leading zeros, a point, and two places or as many more as are not
// zero. It reads a peso sign, blanks, and commas between groups of three digits. ok
// is false, and nothing is appended, when text is no such number.
func AppendImporte(dst []byte, text string) (out []byte, ok bool) {
	rest := strings.ReplaceAll(text, " ", "")
	negative := strings.HasPrefix(rest, "-")
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "-"), "$")
	whole, places, point := strings.Cut(rest, ".")
	if point && places == "" || !digits(places) {
		return dst, false
	}
	if strings.Contains(whole, ",") {
		groups := strings.Split(whole, ",")
		for i, g := range groups {
			if len(g) != 3 && (i > 0 || len(g) == 0 || len(g) > 3) {
				return dst, false
			}
		}
		whole = strings.Join(groups, "")
	}
	if whole == "" && !point || !digits(whole) {
		return dst, false
	}
	whole = strings.TrimLeft(whole, "0")
	places = strings.TrimRight(places, "0")
	if len(whole) > importeDigits || len(places) > importePlaces {
		return dst, false
	}
	if negative && whole+places != "" {
		dst = append(dst, '-')
	}
	if whole == "" {
		whole = "0"
	}
	dst = append(append(dst, whole...), '.')
	dst = append(dst, places...)
	for n := len(places); n < 2; n++ {
		dst = append(dst, '0')
	}
	return dst, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// importe is an amount. Its zero value is zero.
type importe struct {
	whole  int64 // pesos, rounded down
	places int64 // above whole, in units of 10^-importePlaces
}

const placesInOne = 1_000_000_000_000_000_000 // 10^importePlaces

// limitePlausible is where an amount stops being one: of the contracts above it in
// the files of 2018 to 2020, all were decimal errors. So many plausible amounts as
// there can be rows add up to less than an importe holds.
const limitePlausible = 10_000_000_000

// parseImporte reads what AppendImporte wrote; false for any other text.
func parseImporte(canonical string) (a importe, ok bool) {
	whole, places, point := strings.Cut(canonical, ".")
	unsigned := strings.TrimPrefix(whole, "-")
	if !point || unsigned == "" || len(unsigned) > importeDigits || !digits(unsigned) ||
		len(places) < 2 || len(places) > importePlaces || !digits(places) {
		return a, false
	}
	for i := range len(unsigned) {
		a.whole = a.whole*10 + int64(unsigned[i]-'0')
	}
	for i := range importePlaces {
		a.places *= 10
		if i < len(places) {
			a.places += int64(places[i] - '0')
		}
	}
	if len(unsigned) < len(whole) {
		a = a.negated()
	}
	return a, true
}

func (a importe) negated() importe {
	if a.places == 0 {
		return importe{whole: -a.whole}
	}
	return importe{-a.whole - 1, placesInOne - a.places}
}

func (a *importe) add(b importe) {
	a.whole += b.whole
	if a.places += b.places; a.places >= placesInOne {
		a.places -= placesInOne
		a.whole++
	}
}

// implausible reports whether an amount is beyond what a contract can be of.
func (a importe) implausible() bool {
	if a.whole < 0 {
		a = a.negated()
	}
	return a.whole > limitePlausible || a.whole == limitePlausible && a.places > 0
}

// appendTo appends the amount in canonical form.
func (a importe) appendTo(dst []byte) []byte {
	if a.whole < 0 {
		dst = append(dst, '-')
		a = a.negated()
	}
	dst = append(strconv.AppendInt(dst, a.whole, 10), '.')
	start := len(dst)
	dst = strconv.AppendInt(dst, placesInOne+a.places, 10)
	dst = slices.Delete(dst, start, start+1) // the one that keeps leading zeros
	for n := len(dst); n > start+2 && dst[n-1] == '0'; n-- {
		dst = dst[:n-1]
	}
	return dst
}

// Implausible reports whether an amount in canonical form is beyond what a contract
// can be of: it is kept, and left out of every total.
func Implausible[T string | []byte](canonical T) bool {
	for i := range min(len(canonical), importeSure+1) {
		if canonical[i] == '.' {
			return false
		}
	}
	a, ok := parseImporte(string(canonical))
	return ok && a.implausible()
}

// importeSure is how many digits before the point no implausible amount has.
const importeSure = 10
