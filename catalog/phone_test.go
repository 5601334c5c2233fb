package catalog

import (
	"strings"
	"testing"
)

func TestPhones(t *testing.T) {
	phones := Embedded().Phones
	f := func(in, number, format, zone string, class AreaClass, prefix string) {
		t.Helper()
		a, err := phones.On(in, now)
		p := a.Row
		if err != nil || p.Number != number || p.Format() != format || p.Area.Zone != zone || p.Area.Class != class || p.Dialled != prefix ||
			p.International() != "+52"+number || a.Standing != InForce || p.Area.Code+p.Local != p.Number {
			t.Errorf("%q: %+v %v", in, a, err)
		}
	}
	f("5512345678", "5512345678", "55 1234 5678", "Ciudad de México, CDMX", Geographic, "")
	f("55 1234-5678", "5512345678", "55 1234 5678", "Ciudad de México, CDMX", Geographic, "")
	f(" (222) 123.4567 ", "2221234567", "222 123 4567", "Puebla", Geographic, "")
	f("+52 55 1234 5678", "5512345678", "55 1234 5678", "Ciudad de México, CDMX", Geographic, "52")
	f("005281 1234 5678", "8112345678", "81 1234 5678", "Monterrey, NL", Geographic, "0052")
	f("+5213312345678", "3312345678", "33 1234 5678", "Guadalajara, JAL", Geographic, "521")
	f("005213312345678", "3312345678", "33 1234 5678", "Guadalajara, JAL", Geographic, "00521")
	f("01 222 123 4567", "2221234567", "222 123 4567", "Puebla", Geographic, "01")
	f("044 55 1234 5678", "5512345678", "55 1234 5678", "Ciudad de México, CDMX", Geographic, "044")
	f("0455512345678", "5512345678", "55 1234 5678", "Ciudad de México, CDMX", Geographic, "045")
	f("5612345678", "5612345678", "56 1234 5678", "", Geographic, "")
	f("9871234567", "9871234567", "987 123 4567", "Cozumel, Quintana Roo", Geographic, "")
	f("8001234567", "8001234567", "800 123 4567", "", TollFree, "")
	f("9001234567", "9001234567", "900 123 4567", "", Premium, "")
	f("2001234567", "2001234567", "200 123 4567", "", Satellite, "")
	f("3001234567", "3001234567", "300 123 4567", "", SharedCost, "")
	f("5001234567", "5001234567", "500 123 4567", "", Personal, "")
	// Ten digits are never a prefix and the rest: no area code begins with 52.
	_, err := phones.On("5212345678", now)
	missing(t, err, "521")
	_, err = phones.On("9111234567", now)
	missing(t, err, "911")

	for prefix, void := range map[string]bool{"": false, "+52": false, "0052": false, "521": true, "01": true, "044": true} {
		if a, err := phones.On(prefix+"5512345678", now); err != nil || a.Row.VoidPrefix() != void {
			t.Errorf("%q: prefijo sin uso %v %v", prefix, a.Row.VoidPrefix(), err)
		}
	}
}

func TestPhoneRefusals(t *testing.T) {
	phones := Embedded().Phones
	f := func(in, kind, want string) {
		t.Helper()
		_, err := phones.On(in, now)
		problem(t, err, kind, want)
	}
	for n := range 31 {
		if n == digitsInNumber {
			continue
		}
		kind := "string_too_short"
		if n > digitsInNumber {
			kind = "string_too_long"
		}
		f(strings.Repeat("7", n), kind, "10 dígitos")
	}
	f(strings.Repeat("7", 1<<16), "string_too_long", "10 dígitos")
	f("15512345678", "string_too_long", "11") // the 1 alone was never a prefix of a national number
	f("0512345678", "string_pattern_mismatch", "de 2 a 9")
	f("1512345678", "string_pattern_mismatch", "de 2 a 9")
	f("01 0551234567", "string_pattern_mismatch", "de 2 a 9")
	f("55-1234-567a", "string_pattern_mismatch", "dígitos")
	f("٥٥١٢٣٤٥٦٧٨", "string_pattern_mismatch", "dígitos")
	f("５５12345678", "string_pattern_mismatch", "dígitos")
	// A + says that a country follows, and ours is 52.
	f("+5512345678", "string_pattern_mismatch", "+52")
	f("+5212345678", "string_pattern_mismatch", "+52")
	f("+1 551 234 5678", "string_pattern_mismatch", "+52")
	f("+0445512345678", "string_pattern_mismatch", "+52")
	f("+", "string_pattern_mismatch", "+52")
	f("+52 551 234 567", "string_too_long", "el texto tiene 11")
	f("++5512345678", "string_pattern_mismatch", "dígitos")
	f("55+12345678", "string_pattern_mismatch", "dígitos")
	f("5512345678\n", "string_pattern_mismatch", "dígitos")
	f("55/12345678", "string_pattern_mismatch", "dígitos")
}

// TestEveryAreaCode asks for each of the thousand beginnings of a number.
func TestEveryAreaCode(t *testing.T) {
	phones := Embedded().Phones
	found := map[string]bool{}
	for n := range 800 {
		head := string([]byte{byte('2' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
		a, err := phones.On(head+"1234567", now)
		if err != nil {
			missing(t, err, head)
			continue
		}
		found[a.Row.Area.Code] = true
		if !strings.HasPrefix(head, a.Row.Area.Code) {
			t.Errorf("%s: clave %s", head, a.Row.Area.Code)
		}
	}
	two := 0
	for code := range phones.All {
		if !found[code] {
			t.Errorf("ningún número llega a la clave %s", code)
		}
		if len(code) == 2 {
			two++
			if !strings.Contains("33 55 56 81", code) {
				t.Errorf("%s no es de 2 dígitos", code)
			}
		}
	}
	if len(found) != 420 || two != 4 {
		t.Errorf("%d claves, %d de 2 dígitos; se esperaban 420 y 4", len(found), two)
	}
	for _, r := range shared(t, "telefono_nir.csv") {
		zone := r["zonas"]
		if r["nir"] == "987" {
			zone = "Cozumel, Quintana Roo" // the source says QRO, which is Querétaro
		}
		if i, ok := phones.table.places[r["nir"]]; !ok || phones.table.rows[i].Zone != zone {
			t.Errorf("%v", r)
		}
	}
}

func FuzzPhone(f *testing.F) {
	f.Add("+52 1 (55) 1234-5678")
	f.Add("01 222 123 4567")
	f.Add("٥٥١٢٣٤٥٦٧٨")
	phones := Embedded().Phones
	f.Fuzz(func(t *testing.T, in string) {
		a, err := phones.On(in, now)
		if err != nil {
			return
		}
		p := a.Row
		if !isASCII(p.Number, digitsInNumber, digitsInNumber, false) || p.Area.Code+p.Local != p.Number {
			t.Fatalf("%q: %+v", in, p)
		}
		for _, again := range []string{p.Number, p.Format(), p.International()} {
			if b, err := phones.On(again, now); err != nil || b.Row.Number != p.Number {
				t.Fatalf("%q → %q: %+v %v", in, again, b, err)
			}
		}
	})
}
