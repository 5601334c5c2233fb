package canon

import (
	"math"
	"strconv"
)

// maxExactDigits is how many decimal digits binary64 always holds exactly.
const maxExactDigits = 15

// number reads a JSON number and writes it as ECMAScript does.
func (p *parser) number() error {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	whole := p.pos
	if !p.digits() || p.in[whole] == '0' && p.pos > whole+1 {
		return fail(whole, ErrSyntax)
	}
	if digits := p.pos - whole; digits <= maxExactDigits && p.peek() != '.' && p.peek() != 'e' && p.peek() != 'E' {
		if p.in[whole] == '0' {
			start = whole // -0 is 0
		}
		p.out = append(p.out, p.in[start:p.pos]...)
		return nil
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return fail(p.pos, ErrSyntax)
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return fail(p.pos, ErrSyntax)
		}
	}
	f, err := strconv.ParseFloat(string(p.in[start:p.pos]), 64)
	if err != nil {
		return fail(start, ErrNumber)
	}
	p.out = appendNumber(p.out, f)
	return nil
}

// digits skips decimal digits and reports whether there was any.
func (p *parser) digits() bool {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}

// appendNumber appends a finite number as ECMAScript's Number::toString writes
// it, the only form that RFC 8785 admits.
func appendNumber(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0') // also -0
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// strconv writes two digits of exponent at least: 1e-07 is 1e-7.
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
