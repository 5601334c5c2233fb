package checks

import (
	"strconv"
	"strings"
)

// SEC is a validated query for a filer of the US Securities and Exchange
// Commission: a CIK or a ticker. Neither has a check digit. The zero SEC is no
// query.
type SEC struct {
	cik    uint64 // 0: a ticker
	ticker string // "": a CIK
}

// digitsCIK is the length of the canonical form, with zeros at the left.
const digitsCIK = 10

var (
	secForm = form{
		noun:  "un CIK ni un ticker",
		empty: "La consulta está vacía",
		size:  "lleva un CIK, de 1 a 10 dígitos, o un ticker, como AAPL o BRK-B",
	}
	cikForm = form{
		noun: "un CIK",
		size: "lleva de 1 a 10 dígitos",
	}
)

const (
	longestTicker = 5 // before the hyphen
	longestClass  = 4 // after it: class, warrant, preferred share
)

// ReadSEC normalises (trim, upper case, the letters CIK before digits removed,
// the point of a class made a hyphen) and validates length and alphabet. Digits
// alone are a CIK. Blanks inside are refused.
func ReadSEC(in string) (SEC, Changes, error) {
	if isTicker(in) && !hasCIKPrefix(in) {
		return SEC{ticker: in}, 0, nil
	}
	if p := secForm.tooBig(in); p != nil {
		return SEC{}, 0, p
	}
	s, changes := clean(in, secForm.drop)
	digits := s
	if hasCIKPrefix(s) {
		digits = s[len("CIK"):]
		changes |= Prefix
	}
	if digits != "" && allDigits(digits) {
		return readCIK(digits, changes)
	}
	if ticker := strings.ReplaceAll(s, ".", "-"); isTicker(ticker) {
		if ticker != s {
			changes |= Marks
		}
		return SEC{ticker: ticker}, changes, nil
	}
	if p := secForm.length(s, 1, longestTicker+1+longestClass); p != nil {
		return SEC{}, 0, p
	}
	if p := secForm.character(s, "lleva solo letras A-Z, dígitos del 0 al 9 y un guion", func(_ int, r rune) bool {
		return r == '-' || r == '.' || r < 0x80 && isAlnum(byte(r))
	}); p != nil {
		return SEC{}, 0, p
	}
	return SEC{}, 0, secForm.mismatch(s, "un ticker empieza con una letra, tiene hasta 5 caracteres y, después de un guion, hasta 4 de su clase.")
}

func readCIK(digits string, changes Changes) (SEC, Changes, error) {
	if p := cikForm.length(digits, 1, digitsCIK); p != nil {
		return SEC{}, 0, p
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 {
		return SEC{}, 0, cikForm.mismatch(digits, "los números empiezan en 1.")
	}
	if len(digits) < digitsCIK {
		changes |= Zeros
	}
	return SEC{cik: n}, changes, nil
}

// hasCIKPrefix tells CIK320193 from the ticker CIK.
func hasCIKPrefix(s string) bool {
	return len(s) > 3 && s[:3] == "CIK" && allDigits(s[3:])
}

func isTicker(s string) bool {
	base, class, classed := strings.Cut(s, "-")
	if base == "" || len(base) > longestTicker || !isUpper(base[0]) || classed && class == "" || len(class) > longestClass {
		return false
	}
	for i := range len(s) {
		if i != len(base) && !isAlnum(s[i]) {
			return false
		}
	}
	return true
}

// String returns the CIK in ten digits or the ticker, "" for the zero SEC.
func (s SEC) String() string {
	if s.cik == 0 {
		return s.ticker
	}
	return s.CIK()
}

// CIK returns the ten digits of the CIK, "" if the query is a ticker.
func (s SEC) CIK() string {
	if s.cik == 0 {
		return ""
	}
	digits := strconv.FormatUint(s.cik, 10)
	return strings.Repeat("0", digitsCIK-len(digits)) + digits
}

// Number returns the CIK as the number that the SEC's files give, 0 if the query
// is a ticker.
func (s SEC) Number() uint64 { return s.cik }

// Ticker returns the ticker, with a hyphen before its class, "" if the query is
// a CIK.
func (s SEC) Ticker() string { return s.ticker }
