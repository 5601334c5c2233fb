package checks

import (
	"strconv"
	"strings"
	"unicode"
)

// Problem is a rule that an identifier breaks: Type is the validation code of
// the API (string_too_short, string_too_long, string_pattern_mismatch,
// value_error), Rule names what was expected, in Spanish, with the remedy.
// Rule may quote the identifier; it is plain text, not escaped for HTML.
type Problem struct {
	Type string
	Rule string
}

func (p *Problem) Error() string { return p.Rule }

const (
	stringTooShort        = "string_too_short"
	stringTooLong         = "string_too_long"
	stringPatternMismatch = "string_pattern_mismatch"
	valueError            = "value_error"
)

// maxQuoted bounds how much of a hostile input a message repeats, in characters.
const maxQuoted = 20

// quote makes text safe to repeat in a message or a log line: at most maxQuoted
// characters, those that do not print (controls, bidirectional marks) escaped
// and invalid bytes shown as U+FFFD.
func quote(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n == maxQuoted {
			b.WriteString("…")
			break
		}
		n++
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}
