package checks

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// scheme is a check digit seen from outside: bodies to complete, and an
// independent, slow account of what completes them.
type scheme struct {
	name    string
	body    string // regular expression of what comes before the check digits
	example string
	// completes reports whether an identifier carries the right check digits.
	completes func(id string) bool
	// read is the code under test; err is a *Problem.
	read func(id string) (d Comparison, err error)
	// excused reports whether the algorithm promises nothing about the character
	// at a place, counted from 0, replaced by another of the same class.
	excused func(id string, at int, by byte) bool
	// missed counts, for example, the replacements that nothing notices, of all.
	missed, of int
}

func never(string, int, byte) bool { return false }

// weighted says that a replacement escapes a sum modulo m.
func weighted(table string, m int, weight func(id string, at int) int) func(string, int, byte) bool {
	return func(id string, at int, by byte) bool {
		difference := strings.IndexByte(table, by) - strings.IndexByte(table, id[at])
		return weight(id, at)*difference%m == 0
	}
}

var schemes = []scheme{
	{
		name: "rfc", body: `[A-Z&]{3,4}[0-9]{2}(0[1-9]|1[012])(0[1-9]|1[0-9]|2[0-8])[A-Z0-9]{2}`, example: "MHTR93041179A",
		completes: func(id string) bool { return digitByHand(id) == id[len(id)-1] },
		read:      func(id string) (Comparison, error) { r, err := ParseRFC(id); return r.CheckDigit(), err },
		excused: weighted("0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ", 11, func(id string, at int) int {
			return len(id) - at
		}),
		missed: 29, of: 197, // a letter weighs 11, and so counts nothing; letters 11 places apart are the same
	},
	{
		name: "curp", body: `[A-Z][AEIOUX][A-Z]{2}[0-9]{2}(0[1-9]|1[012])(0[1-9]|1[0-9]|2[0-8])[HMX](DF|NL|NE|VZ|AS)[BCDFGHJKLMNPQRSTVWXYZ]{3}[0-9A-Z]`,
		example: "GOMC000229XDFMRRA3",
		completes: func(id string) bool {
			sum := 0
			for i := range 18 {
				value := strings.IndexByte("0123456789ABCDEFGHIJKLMN.OPQRSTUVWXYZ", id[i])
				sum += value * (18 - i)
			}
			return sum%10 == 0
		},
		read: func(id string) (Comparison, error) { c, _, err := ReadCURP(id); return c.CheckDigit(), err },
		excused: weighted("0123456789ABCDEFGHIJKLMN.OPQRSTUVWXYZ", 10, func(_ string, at int) int {
			return 18 - at
		}),
		missed: 40, of: 338, // half the weights are even, and 15, 10 and 5 are multiples of five
	},
	{
		name: "nss", body: `[0-9]{10}`, example: "42988530210",
		completes: luhnHolds, excused: never,
		read: func(id string) (Comparison, error) { n, _, err := ReadNSS(id); return n.CheckDigit(), err },
		of:   99,
	},
	{
		name: "tarjeta", body: `[0-9]{11,18}`, example: "4012888888881881",
		completes: luhnHolds, excused: never,
		read: func(id string) (Comparison, error) { c, _, err := ReadCard(id); return c.CheckDigit(), err },
		of:   144,
	},
	{
		name: "clabe", body: `[0-9]{17}`, example: "646180000110000009",
		completes: func(id string) bool {
			sum := int(id[17] - '0')
			for i := range 17 {
				sum += int(id[i]-'0') * []int{3, 7, 1}[i%3]
			}
			return sum%10 == 0
		},
		excused: never,
		read:    func(id string) (Comparison, error) { c, _, err := ReadCLABE(id); return c.CheckDigit(), err },
		of:      162,
	},
	{
		name: "cnpj", body: `[0-9A-Z]{12}`, example: "12ABC34501DE35",
		completes: func(id string) bool {
			return cnpjByHand(id, []int{5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2}) == int(id[12]-'0') &&
				cnpjByHand(id, []int{6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2}) == int(id[13]-'0')
		},
		read: func(id string) (Comparison, error) { c, _, err := ReadCNPJ(id); return c.CheckDigit(), err },
		// Letters 11 or 22 places apart weigh the same; and the remainders 0 and 1
		// share the digit 0, which hides an error only when both digits are 0.
		excused: func(id string, at int, by byte) bool {
			return at < 12 && ((int(by)-int(id[at]))%11 == 0 || id[12:] == "00")
		},
		missed: 9, of: 206,
	},
	{
		name: "lei", body: `[0-9A-Z]{18}`, example: "WT03B8BB1IX8WI9ZGV02",
		completes: func(id string) bool {
			var digits strings.Builder
			for _, c := range id {
				digits.WriteString(big.NewInt(int64(strings.IndexRune("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", c))).String())
			}
			n, _ := new(big.Int).SetString(digits.String(), 10)
			return n.Mod(n, big.NewInt(97)).Int64() == 1 && id[18:] >= "02" && id[18:] <= "98"
		},
		excused: never,
		read:    func(id string) (Comparison, error) { l, _, err := ReadLEI(id); return l.CheckDigit(), err },
		of:      372,
	},
	{
		name: "gt_nit", body: `[1-9][0-9]{0,10}`, example: "800000001026",
		completes: func(id string) bool {
			sum := strings.IndexByte("0123456789K", id[len(id)-1])
			for i := range len(id) - 1 {
				sum += int(id[i]-'0') * (len(id) - i)
			}
			return sum%11 == 0
		},
		read: func(id string) (Comparison, error) { n, _, err := ReadNIT(id); return n.CheckDigit(), err },
		// The tenth digit before the check digit weighs 11.
		excused: func(id string, at int, _ byte) bool { return len(id)-at == 11 },
		missed:  9, of: 108,
	},
}

func luhnHolds(id string) bool {
	sum := 0
	for i := range len(id) {
		d := int(id[len(id)-1-i] - '0')
		if i%2 == 1 {
			d = []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}[d]
		}
		sum += d
	}
	return sum%10 == 0
}

func cnpjByHand(id string, weights []int) int {
	sum := 0
	for i, w := range weights {
		sum += (int(id[i]) - 48) * w
	}
	if rest := sum % 11; rest >= 2 {
		return 11 - rest
	}
	return 0
}

// completed returns body with the check digits that hold, by trying all.
func (s scheme) completed(body string) (id string, ok bool) {
	candidates := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "K"}
	if s.name == "lei" || s.name == "cnpj" {
		candidates = nil
		for i := range 100 {
			candidates = append(candidates, string([]byte{byte('0' + i/10), byte('0' + i%10)}))
		}
	}
	for _, c := range candidates {
		if c == "A" && s.name != "rfc" || c == "K" && s.name != "gt_nit" {
			continue
		}
		if s.completes(body + c) {
			return body + c, true
		}
	}
	return "", false
}

// replacements calls f with each identifier that differs from id in one
// character, a digit for a digit or a letter for a letter.
func replacements(id string, f func(at int, by byte, other string)) {
	for at := range len(id) {
		class := ""
		switch c := id[at]; {
		case '0' <= c && c <= '9':
			class = "0123456789"
		case 'A' <= c && c <= 'Z':
			class = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		}
		for i := range len(class) {
			if class[i] != id[at] {
				f(at, class[i], id[:at]+class[i:i+1]+id[at+1:])
			}
		}
	}
}

func TestCheckDigits(t *testing.T) {
	for _, s := range schemes {
		whole := readers[slices.IndexFunc(readers, func(r reader) bool { return r.name == s.name })].read
		t.Run(s.name, func(t *testing.T) {
			bodies := rapid.StringMatching(s.body)
			rapid.Check(t, func(t *rapid.T) {
				id, ok := s.completed(bodies.Draw(t, "body"))
				if !ok {
					t.Fatal("nothing completes the body")
				}
				d, err := s.read(id)
				if err != nil || !d.Matches() || d.Found == "" || !strings.HasSuffix(id, d.Found) {
					t.Fatalf("%s: %v, %v; it is right", id, d, err)
				}
				// Nothing but another rule than the digit's makes it invalid.
				if got := whole(id); got.err != nil || got.changes != 0 || got.fault != nil && got.fault.Code == FaultDigit ||
					got.fault != nil && s.name != "tarjeta" && s.name != "cnpj" {
					t.Fatalf("%s: %+v; it is valid", id, got)
				}
				replacements(id, func(at int, by byte, other string) {
					if got := whole(other); s.name != "rfc" && got.err == nil && got.fault == nil && !s.completes(other) {
						t.Fatalf("%s: no fault; its digit is wrong", other)
					}
					d, err := s.read(other)
					if err != nil {
						return
					}
					if d.Matches() != s.completes(other) {
						t.Fatalf("%s: %v; the algorithm says %v", other, d, s.completes(other))
					}
					if d.Matches() && !s.excused(id, at, by) {
						t.Fatalf("%s passes like %s", other, id)
					}
				})
			})
		})
	}
}

// TestMissedReplacements counts what each algorithm cannot see, so that nobody
// promises more than it does.
func TestMissedReplacements(t *testing.T) {
	for _, s := range schemes {
		if !s.completes(s.example) {
			if id, ok := s.completed(s.example[:len(s.example)-1]); ok {
				t.Fatalf("%s: example %s; right is %s", s.name, s.example, id)
			}
			t.Fatalf("%s: wrong example %s", s.name, s.example)
		}
		missed, of := 0, 0
		replacements(s.example, func(_ int, _ byte, other string) {
			of++
			if d, err := s.read(other); err == nil && d.Matches() {
				missed++
			}
		})
		if missed != s.missed || of != s.of {
			t.Errorf("%s: %d of %d replacements in %s pass; want %d of %d", s.name, missed, of, s.example, s.missed, s.of)
		}
	}
}

// TestCNPJMissesADigit is why nobody promises that a CNPJ shows every wrong
// digit: 0 stands for two remainders in each of its sums.
func TestCNPJMissesADigit(t *testing.T) {
	for _, id := range []string{"10000017000100", "30000017000100"} {
		if c, _, err := ReadCNPJ(id); err != nil || c.Fault() != nil {
			t.Errorf("%s: %v, %v", id, err, c.Fault())
		}
	}
}
