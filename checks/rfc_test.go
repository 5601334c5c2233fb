package checks

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestParseRFC(t *testing.T) {
	// digit is what the authority's algorithm gives.
	f := func(in string, moral bool, digit byte) {
		t.Helper()
		r, err := ParseRFC(in)
		if err != nil {
			t.Errorf("ParseRFC(%q): %v", in, err)
			return
		}
		if r.String() != in {
			t.Errorf("ParseRFC(%q) = %q", in, r)
		}
		if r.Moral() != moral {
			t.Errorf("%s: Moral() = %v", in, r.Moral())
		}
		if got, want := r.CheckDigit(), (Comparison{in[len(in)-1:], string(digit)}); got != want {
			t.Errorf("%s: CheckDigit() = %v; want %v", in, got, want)
		}
		if generic := in == "XAXX010101000" || in == "XEXX010101000"; r.Generic() != generic {
			t.Errorf("%s: Generic() = %v", in, r.Generic())
		}
		if key, ok := PackRFC(in); !ok || key != r.Key() {
			t.Errorf("%s: Key() = %d, PackRFC = %d, %v", in, r.Key(), key, ok)
		}
	}

	// python-stdnum, tests/test_mx_rfc.doctest.
	f("AMM020222UT3", true, '3')
	f("CTE870318ANA", true, 'A')
	f("CGB000229SW0", true, '0')
	f("MUÑ110218LJ6", true, '6')
	f("&&&030828PX7", true, '7')
	f("&JE040614N51", true, '1')
	f("AP&0305026J9", true, '9')
	// The same, list of RFCs in use that fail the digit.
	f("ALC920108P18", true, 'A')
	f("CLA091217733", true, '4')
	f("CME030507A29", true, 'A')
	// phpcfdi/rfc, CheckSumTest and generic RFCs.
	f("SAT970701NN3", true, '3')
	f("A&A050908GT0", true, '0')
	f("XAXX010101000", false, '4')
	f("XEXX010101000", false, '0')
	// validate-rfc, tests and issues.
	f("MHTR93041179A", false, 'A')
	f("AECS211112JPA", false, 'A')
	f("LME060822IH5", true, '3')
	f("RDE7910023J3", true, '1')
	// stdnum-js, pull request 163.
	f("PAF070213GI1", true, 'A')
	// The API's sandbox.
	f("PRE010101AA1", true, '0')
	f("EFO010101AA1", true, '1')
	f("NOLO010101AA1", false, '7')
	// 29 February of 00 exists in 2000 only; the homoclave may hold 0 and O.
	f("EDI000229CA3", true, '3')
	f("CCM650122I06", true, '6')
	// Ñ in every place.
	f("ÑÑÑ010101AA1", true, digitByHand("ÑÑÑ010101AA1"))
	f("ÑÑÑÑ010101AA1", false, digitByHand("ÑÑÑÑ010101AA1"))
}

// digitByHand repeats the reference algorithm with its own table.
func digitByHand(rfc string) byte {
	table := []rune("0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ")
	runes := []rune(rfc)
	if len(runes) == 12 {
		runes = append([]rune{' '}, runes...)
	}
	sum := 0
	for i, r := range runes[:12] {
		for v, c := range table {
			if c == r {
				sum += v * (13 - i)
			}
		}
	}
	return "0A987654321"[sum%11]
}

func TestParseRFCNormalises(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		r, err := ParseRFC(in)
		if err != nil {
			t.Errorf("ParseRFC(%q): %v", in, err)
			return
		}
		clean, err := ParseRFC(want)
		if err != nil {
			t.Fatal(err)
		}
		if r != clean {
			t.Errorf("ParseRFC(%q) = %q; want %q", in, r, clean)
		}
	}
	f("efo010101aa1", "EFO010101AA1")
	f("\u00a0 EFO-010101-AA1\r\n", "EFO010101AA1")
	f("E F O\t010101 AA1", "EFO010101AA1")
	f("muñ110218lj6", "MUÑ110218LJ6")
	f("MUN\u0303110218LJ6", "MUÑ110218LJ6")
	f("mun\u0303-110218-lj6", "MUÑ110218LJ6")
}

func TestParseRFCRefuses(t *testing.T) {
	f := func(in, kind, rule string) {
		t.Helper()
		r, err := ParseRFC(in)
		var p *Problem
		if !errors.As(err, &p) {
			t.Errorf("ParseRFC(%q) = %q, %v; want a problem", in, r, err)
			return
		}
		if r != (RFC{}) {
			t.Errorf("ParseRFC(%q) = %q beside an error", in, r)
		}
		if p.Type != kind || p.Rule != rule {
			t.Errorf("ParseRFC(%q):\n got %s %s\nwant %s %s", in, p.Type, p.Rule, kind, rule)
		}
	}
	short := func(in, rule string) { t.Helper(); f(in, "string_too_short", rule) }
	long := func(in, rule string) { t.Helper(); f(in, "string_too_long", rule) }
	pattern := func(in, rule string) { t.Helper(); f(in, "string_pattern_mismatch", rule) }
	value := func(in, rule string) { t.Helper(); f(in, "value_error", rule) }

	short("", "El RFC está vacío: una persona moral tiene 12 caracteres y una física 13.")
	short(" - ", "El RFC está vacío: una persona moral tiene 12 caracteres y una física 13.")
	short("Ñ", "«Ñ» no es un RFC: tiene 1 carácter; una persona moral tiene 12 caracteres y una física 13.")
	short("EFO0101AA1", "«EFO0101AA1» no es un RFC: tiene 10 caracteres; una persona moral tiene 12 caracteres y una física 13.")
	short("efo-0101-aa1", "«EFO0101AA1» no es un RFC: tiene 10 caracteres; una persona moral tiene 12 caracteres y una física 13.")
	short("EFO\n\x1b[2J01", `«EFO\n\x1b[2J01» no es un RFC: tiene 10 caracteres; una persona moral tiene 12 caracteres y una física 13.`)
	short("A\u202eB\xff", `«A\u202eB�» no es un RFC: tiene 4 caracteres; una persona moral tiene 12 caracteres y una física 13.`)

	long("XAXX0101010000", "«XAXX0101010000» no es un RFC: tiene 14 caracteres; una persona moral tiene 12 caracteres y una física 13.")
	long("ABCDEFGHIJKLMNÑPQRSTUVWXYZ", "«ABCDEFGHIJKLMNÑPQRST…» no es un RFC: tiene 26 caracteres; una persona moral tiene 12 caracteres y una física 13.")
	long("EFO010101AA1"+strings.Repeat(" ", 64),
		"«EFO010101AA1        …» no es un RFC: ocupa 76 bytes; una persona moral tiene 12 caracteres y una física 13.")

	pattern("EF1010101AA1", "«EF1010101AA1» no es un RFC: con 12 caracteres debe empezar con 3 letras (A-Z, Ñ o &).")
	pattern("EFÁX010101AA1", "«EFÁX010101AA1» no es un RFC: con 13 caracteres debe empezar con 4 letras (A-Z, Ñ o &).")
	pattern("EFſ010101AA1", "«EFſ010101AA1» no es un RFC: con 12 caracteres debe empezar con 3 letras (A-Z, Ñ o &).")
	// Ñ in windows-1252, alone or already replaced by whoever decoded it.
	pattern("MU\xd1110218LJ6", "«MU�110218LJ6» no es un RFC: el carácter 3 es un byte que no es UTF-8; envíe la Ñ en UTF-8 (%C3%91 en una URL).")
	pattern("MU�110218LJ6", "«MU�110218LJ6» no es un RFC: el carácter 3 es un byte que no es UTF-8; envíe la Ñ en UTF-8 (%C3%91 en una URL).")
	// Ñ in code page 850, in Mac OS Roman, in UTF-8 that was read as another
	// encoding and written again, and as HTML has it: no letter is guessed.
	pattern("MU\xa5110218LJ6", "«MU�110218LJ6» no es un RFC: el carácter 3 es un byte que no es UTF-8; envíe la Ñ en UTF-8 (%C3%91 en una URL).")
	pattern("MU\x84110218LJ6", "«MU�110218LJ6» no es un RFC: el carácter 3 es un byte que no es UTF-8; envíe la Ñ en UTF-8 (%C3%91 en una URL).")
	pattern("MUÃ‘110218LJ6", "«MUÃ‘110218LJ6» no es un RFC: con 13 caracteres debe empezar con 4 letras (A-Z, Ñ o &).")
	pattern("MUÃ\u0091110218LJ6", `«MUÃ\u0091110218LJ6» no es un RFC: con 13 caracteres debe empezar con 4 letras (A-Z, Ñ o &).`)
	pattern("MU?110218LJ6", "«MU?110218LJ6» no es un RFC: con 12 caracteres debe empezar con 3 letras (A-Z, Ñ o &).")
	long("MU&Ntilde;110218LJ6", "«MU&NTILDE;110218LJ6» no es un RFC: tiene 19 caracteres; una persona moral tiene 12 caracteres y una física 13.")
	// Blanks and hyphens that are not ASCII, inside.
	long("EFO\u00a0010101\u2013AA1", `«EFO\u00a0010101–AA1» no es un RFC: tiene 14 caracteres; una persona moral tiene 12 caracteres y una física 13.`)
	pattern("EFO010101\u200bAA1", `«EFO010101\u200bAA1» no es un RFC: con 13 caracteres debe empezar con 4 letras (A-Z, Ñ o &).`)
	pattern("ＥＦＯ010101AA1", "«ＥＦＯ010101AA1» no es un RFC: con 12 caracteres debe empezar con 3 letras (A-Z, Ñ o &).")
	pattern("EFO_010101AA1", "«EFO_010101AA1» no es un RFC: con 13 caracteres debe empezar con 4 letras (A-Z, Ñ o &).")
	pattern("EFO٠١٠١٠١AA1", "«EFO٠١٠١٠١AA1» no es un RFC: después de 3 letras lleva seis dígitos, la fecha AAMMDD; tiene «٠١٠١٠١».")
	pattern("XXXXXXXXXXXX", "«XXXXXXXXXXXX» no es un RFC: después de 3 letras lleva seis dígitos, la fecha AAMMDD; tiene «XXXXXX».")
	pattern("MHTR815511A70", "«MHTR815511A70» no es un RFC: en la fecha AAMMDD «815511» el mes es 55; debe ser de 01 a 12.")
	pattern("XAXX010001000", "«XAXX010001000» no es un RFC: en la fecha AAMMDD «010001» el mes es 00; debe ser de 01 a 12.")
	pattern("XAXX010132000", "«XAXX010132000» no es un RFC: en la fecha AAMMDD «010132» el día es 32; debe ser de 01 a 31.")
	pattern("XAXX010100000", "«XAXX010100000» no es un RFC: en la fecha AAMMDD «010100» el día es 00; debe ser de 01 a 31.")
	pattern("EFO010101Ñ&1", "«EFO010101Ñ&1» no es un RFC: los dos caracteres de la homoclave, después de la fecha, son letras A-Z o dígitos.")
	pattern("GODE561231GRB", "«GODE561231GRB» no es un RFC: el último carácter, el dígito verificador, es un dígito o la letra A.")
	pattern("GODE561231GR٣", "«GODE561231GR٣» no es un RFC: el último carácter, el dígito verificador, es un dígito o la letra A.")

	value("AAAA010229AAA", "«AAAA010229AAA» no es un RFC: el día 29 del mes 02 no existe en 1901 ni en 2001; revise la fecha AAMMDD «010229».")
	value("AAA960230AAA", "«AAA960230AAA» no es un RFC: el día 30 del mes 02 no existe en 1996 ni en 2096; revise la fecha AAMMDD «960230».")
	value("aaa010431aaa", "«AAA010431AAA» no es un RFC: el día 31 del mes 04 no existe en 1901 ni en 2001; revise la fecha AAMMDD «010431».")
	value("AAA011131AAA", "«AAA011131AAA» no es un RFC: el día 31 del mes 11 no existe en 1901 ni en 2001; revise la fecha AAMMDD «011131».")
}

func TestZeroRFC(t *testing.T) {
	var r RFC
	in1900s, in2000s := r.Days()
	if r.String()+r.Letters()+r.Date()+r.Homoclave()+r.Word() != "" || r.Key() != 0 || r.Moral() || r.Generic() ||
		r.CheckDigit() != (Comparison{}) || !in1900s.IsZero() || !in2000s.IsZero() {
		t.Errorf("zero RFC claims to be one: %q", r)
	}
}

func TestRFCParts(t *testing.T) {
	f := func(in, letters, date, in1900s, in2000s, homoclave, word string) {
		t.Helper()
		r, err := ParseRFC(in)
		if err != nil {
			t.Fatal(err)
		}
		earlier, later := r.Days()
		got := [...]string{r.Letters(), r.Date(), earlier.String(), later.String(), r.Homoclave(), r.Word()}
		if want := [...]string{letters, date, in1900s, in2000s, homoclave, word}; got != want {
			t.Errorf("%s: %q; want %q", in, got, want)
		}
	}
	f("EFO010131AA1", "EFO", "010131", "1901-01-31", "2001-01-31", "AA", "")
	f("MUÑ110218LJ6", "MUÑ", "110218", "1911-02-18", "2011-02-18", "LJ", "")
	f("CGB000229SW0", "CGB", "000229", "", "2000-02-29", "SW", "")
	f("AAA000101AA1", "AAA", "000101", "1900-01-01", "2000-01-01", "AA", "")
	f("AAA991231AA1", "AAA", "991231", "1999-12-31", "2099-12-31", "AA", "")
	f("PEDO960229AA1", "PEDO", "960229", "1996-02-29", "2096-02-29", "AA", "PEDO")
	f("ÑÑÑÑ010101AA1", "ÑÑÑÑ", "010101", "1901-01-01", "2001-01-01", "AA", "")
	// Only an individual's four letters can be a word.
	f("PED010101AA1", "PED", "010101", "1901-01-01", "2001-01-01", "AA", "")
}

var sink RFC

// official is t_RFC of the CFDI schema.
var official = regexp.MustCompile(`^[A-Z&Ñ]{3,4}[0-9]{2}(0[1-9]|1[012])(0[1-9]|[12][0-9]|3[01])[A-Z0-9]{2}[0-9A]$`)

func FuzzParseRFC(f *testing.F) {
	for _, in := range []string{"", "EFO010101AA1", "mun\u0303-110218-lj6", "XAXX010101000", "ÑÑÑÑ000229&&A", "EFO0101AA1", "\xff\xc3\xc3\x91010101AA1"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if key, ok := PackRFC(in); ok != official.MatchString(in) || ok != (key != 0) {
			t.Fatalf("PackRFC(%q) = %d, %v; the official pattern says %v", in, key, ok, !ok)
		}
		r, err := ParseRFC(in)
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 400 {
				t.Fatalf("message %q", err)
			}
			return
		}
		s := r.String()
		if !official.MatchString(s) || !norm.NFC.IsNormalString(s) {
			t.Fatalf("ParseRFC(%q) = %q", in, s)
		}
		if again, err := ParseRFC(s); err != nil || again != r {
			t.Fatalf("%q is not stable: %q, %v", s, again, err)
		}
		if got := unpack(r.Key()); got != s {
			t.Fatalf("key of %q is that of %q", s, got)
		}
		if d := r.CheckDigit(); d.Expected != string(digitByHand(s)) {
			t.Fatalf("digit of %q = %v; want %q", s, d, digitByHand(s))
		}
	})
}
