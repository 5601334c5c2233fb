package checks

import (
	"errors"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// hostile are seeds for every parser.
var hostile = []string{
	"", " ", "-", "\xff", "Ñ", "N\u0303", "MU\xd1110218LJ6", "٠٠٢٠١٠٠٧٧٧٧٧٧٧٧٧٧١", "４２９８８５３０２１０", "\u212a", "\u200b", "1234567890123456789",
	"AAMG890230HDFLJL00", "4012 8888-8888 1881", "12.abc.345/01de-35", "0576937-k", "CIK", "CIK320193", "BRK.B", "SC_23456", "OC12PPCU",
	"d412a347-9720-44c0-a9cc-fde068f0a2e7", "Pruebas", "4294967296",
}

// longDigits are more digits than any message about a card may show together.
var longDigits = regexp.MustCompile(`[0-9]{7}`)

// fuzz holds what every Read function promises, for any text.
func fuzz(f *testing.F, name string, more func(t *testing.T, in string, got reading)) {
	i := slices.IndexFunc(readers, func(r reader) bool { return r.name == name })
	r := readers[i]
	for _, in := range slices.Concat(hostile, r.samples) {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := r.read(in)
		if more != nil {
			more(t, in, got)
		}
		if got.err != nil {
			var p *Problem
			if !errors.As(got.err, &p) || !slices.Contains([]string{stringTooShort, stringTooLong, stringPatternMismatch, valueError}, p.Type) {
				t.Fatalf("%q: %#v", in, got.err)
			}
			if p.Rule == "" || len(p.Rule) > 400 || !utf8.ValidString(p.Rule) {
				t.Fatalf("%q: message %q", in, p.Rule)
			}
			if got.normal != "" || got.changes != 0 || got.fault != nil {
				t.Fatalf("%q: a value beside an error: %+v", in, got)
			}
			return
		}
		if !r.normal.MatchString(got.normal) {
			t.Fatalf("%q became %q", in, got.normal)
		}
		if got.fault != nil && (got.fault.Code == "" || !utf8.ValidString(got.fault.Rule)) {
			t.Fatalf("%q: %+v", in, got.fault)
		}
		switch name {
		case "tarjeta", "gt_fel_serie", "gt_fel_numero":
			return // String is not what was read
		}
		if (got.changes == 0) != (got.normal == in) {
			t.Fatalf("%q became %q by %q", in, got.normal, got.changes.Names())
		}
		again := r.read(got.normal)
		if again.err != nil || again.changes != 0 || again.normal != got.normal || (again.fault == nil) != (got.fault == nil) {
			t.Fatalf("%q is not stable: %+v", got.normal, again)
		}
	})
}

func FuzzReadCURP(f *testing.F) {
	official := regexp.MustCompile("^" + patternCURP + "$")
	fuzz(f, "curp", func(t *testing.T, in string, got reading) {
		want := official.MatchString(in)
		if want {
			century := "20"
			if in[16] <= '9' {
				century = "19"
			}
			_, err := time.Parse("20060102", century+in[4:10])
			want = err == nil
		}
		if want != (got.err == nil && got.changes == 0) {
			t.Fatalf("%q: %v; the official pattern and the calendar say %v", in, got.err, want)
		}
	})
}

func FuzzReadNSS(f *testing.F)        { fuzz(f, "nss", nil) }
func FuzzReadCLABE(f *testing.F)      { fuzz(f, "clabe", nil) }
func FuzzReadCNPJ(f *testing.F)       { fuzz(f, "cnpj", nil) }
func FuzzReadLEI(f *testing.F)        { fuzz(f, "lei", nil) }
func FuzzReadNIT(f *testing.F)        { fuzz(f, "gt_nit", nil) }
func FuzzReadUUID(f *testing.F)       { fuzz(f, "gt_fel", nil) }
func FuzzReadSerie(f *testing.F)      { fuzz(f, "gt_fel_serie", nil) }
func FuzzReadNumero(f *testing.F)     { fuzz(f, "gt_fel_numero", nil) }
func FuzzReadSEC(f *testing.F)        { fuzz(f, "sec", nil) }
func FuzzReadRFCChanges(f *testing.F) { fuzz(f, "rfc", nil) }

func FuzzReadUKCompany(f *testing.F) {
	official := regexp.MustCompile("^(" + patternUK + ")$")
	fuzz(f, "uk_company", func(t *testing.T, in string, got reading) {
		if want := official.MatchString(in) && in != "00000000"; want != (got.err == nil && got.changes == 0) {
			t.Fatalf("%q: %v; the pattern says %v", in, got.err, want)
		}
	})
}

// FuzzReadEmail holds that what is accepted is one mailbox to the standard library
// too, and that no header or second recipient hides in it.
func FuzzReadEmail(f *testing.F) {
	fuzz(f, "email", func(t *testing.T, _ string, got reading) {
		if got.err != nil {
			return
		}
		a, err := mail.ParseAddress(got.normal)
		if err != nil || a.Address != got.normal || a.Name != "" || len(got.normal) > 254 || strings.ContainsAny(got.normal, " \t\r\n,;:<>()[]\\\"") {
			t.Fatalf("%q is %v %v", got.normal, a, err)
		}
		e, _, _ := ReadEmail(got.normal)
		if again, _, err := ReadEmail(e.Folded()); err != nil || again.String() != e.Folded() {
			t.Fatalf("%q folded is %q, %v", got.normal, e.Folded(), err)
		}
	})
}

func FuzzReadCard(f *testing.F) {
	fuzz(f, "tarjeta", func(t *testing.T, in string, got reading) {
		if got.err != nil && longDigits.MatchString(got.err.Error()) || got.fault != nil && longDigits.MatchString(got.fault.Rule) ||
			longDigits.MatchString(got.normal) {
			t.Fatalf("%q shows: %+v", in, got)
		}
	})
}

func FuzzHomoclave(f *testing.F) {
	for _, name := range slices.Concat(hostile, []string{"PEREZ GARCIA JUAN", "MUÑOZ MUÑOZ JUAN", "PEREZ&GOMEZ GARCIA JUAN"}) {
		f.Add(name)
	}
	form := regexp.MustCompile(`^[1-9A-NP-Z]{2}$`)
	f.Fuzz(func(t *testing.T, name string) {
		got, err := Homoclave(name)
		var p *Problem
		switch {
		case err == nil && !form.MatchString(got):
			t.Fatalf("%q: %q", name, got)
		case err != nil && (!errors.As(err, &p) || got != "" || len(p.Rule) > 400 || !utf8.ValidString(p.Rule)):
			t.Fatalf("%q: %q %#v", name, got, err)
		}
	})
}
