package checks

// checkDigits are the values of a single check digit, as text; ten is A in an
// RFC and K in a NIT.
const checkDigits = "0123456789"

// pairs are the numbers 00 to 99, one after the other.
var pairs = func() string {
	var b [200]byte
	for i := range 100 {
		b[2*i], b[2*i+1] = byte('0'+i/10), byte('0'+i%10)
	}
	return string(b[:])
}()

// isDigit and isAlnum look at one byte; isAlnum knows upper case only.
func isDigit(c byte) bool { return c-'0' < 10 }

func isAlnum(c byte) bool { return isDigit(c) || c-'A' < 26 }

// allDigits reports whether s is ASCII digits alone; true for "".
func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// digitOf is the value of a digit, whose byte is one.
func digitOf(c byte) int { return int(c - '0') }

// luhn returns the digit that completes body, which holds ASCII digits, by the
// Luhn algorithm (ISO/IEC 7812-1, annex B).
func luhn[T string | []byte](body T) int {
	sum := 0
	for i := range len(body) {
		d := digitOf(body[len(body)-1-i])
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return (10 - sum%10) % 10
}

// readDigits reads a text of exactly n ASCII digits. The identifier keeps the
// bytes of in when nothing had to change.
func readDigits(in string, n int, f form) (string, Changes, error) {
	if len(in) == n && allDigits(in) {
		return in, 0, nil
	}
	if p := f.tooBig(in); p != nil {
		return "", 0, p
	}
	s, changes := clean(in, f.drop)
	if p := f.length(s, n, n); p != nil {
		return "", 0, p
	}
	if p := f.character(s, "lleva solo dígitos del 0 al 9", digitRune); p != nil {
		return "", 0, p
	}
	return s, changes, nil
}

func digitRune(_ int, r rune) bool { return '0' <= r && r <= '9' }

// readCode reads a text of exactly n characters, letters A-Z or digits, of which
// the last two are digits.
func readCode(in string, n int, f form) (string, Changes, error) {
	if isCode(in, n) {
		return in, 0, nil
	}
	if p := f.tooBig(in); p != nil {
		return "", 0, p
	}
	s, changes := clean(in, f.drop)
	if isCode(s, n) {
		return s, changes, nil
	}
	if p := f.length(s, n, n); p != nil {
		return "", 0, p
	}
	if p := f.character(s, "lleva solo letras A-Z y dígitos del 0 al 9", func(_ int, r rune) bool {
		return r < 0x80 && isAlnum(byte(r))
	}); p != nil {
		return "", 0, p
	}
	return "", 0, f.character(s, "los dos últimos, los dígitos verificadores, son del 0 al 9", func(at int, r rune) bool {
		return at <= n-2 || digitRune(at, r)
	})
}

func isCode(s string, n int) bool {
	if len(s) != n || !allDigits(s[n-2:]) {
		return false
	}
	for i := range n - 2 {
		if !isAlnum(s[i]) {
			return false
		}
	}
	return true
}
