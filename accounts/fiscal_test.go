package accounts_test

import (
	"context"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ledger"
)

var today = civil.Date{Year: 2026, Month: 11, Day: 20}

// complete is what no rule has anything against.
var complete = accounts.Fiscal{
	LegalName: "EMPAQUES DEL ÑANDU", RFC: "ENA010101AB8", PostalCode: "06600", Regime: "601", Use: "G03", Email: "facturas@empaques.example",
}

// faults tells which fields are refused, and the rule of the first.
func faults(f accounts.Fiscal, day civil.Date) (fields []string, rule string) {
	_, all := accounts.ReadFiscal(catalog.Embedded(), day, f)
	for _, fault := range all {
		fields = append(fields, fault.Field)
	}
	if len(all) > 0 {
		rule = all[0].Rule
	}
	return fields, rule
}

func TestReadFiscal(t *testing.T) {
	f := func(change func(*accounts.Fiscal), want string, says ...string) {
		t.Helper()
		in := complete
		change(&in)
		got, rule := faults(in, today)
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %v, want %q", in, got, want)
		}
		for _, word := range says {
			if !strings.Contains(rule, word) {
				t.Errorf("%+v: the rule lacks %q: %s", in, word, rule)
			}
		}
	}
	f(func(*accounts.Fiscal) {}, "")
	f(func(in *accounts.Fiscal) { *in = accounts.Fiscal{} }, "")

	name := func(text, want string) {
		t.Helper()
		f(func(in *accounts.Fiscal) { in.LegalName = text }, want)
	}
	name(strings.Repeat("Ñ", 300), "")
	name(strings.Repeat("Ñ", 301), "razon_social")
	name("   ", "razon_social")
	name("A|B", "razon_social")
	name("A\nB", "razon_social")
	name("A\u202eB", "razon_social")
	name("A\xffB", "razon_social")
	name(`O'Neil & "Hijos"`, "")

	rfc := func(text, want string, says ...string) {
		t.Helper()
		f(func(in *accounts.Fiscal) { in.RFC = text }, want, says...)
	}
	rfc("XAXX010101000", "rfc_fiscal", "genérico", "público en general")
	rfc("xexx010101000", "rfc_fiscal", "genérico")
	rfc("ENA010101AB", "rfc_fiscal")
	rfc("ENA010231AB8", "rfc_fiscal")
	rfc("RUAA800101AB1", "regimen_fiscal", "601", "persona física")

	postal := func(text, want string) {
		t.Helper()
		f(func(in *accounts.Fiscal) { in.PostalCode = text }, want)
	}
	postal("01000", "")
	postal("6600", "cp")
	postal("066000", "cp")
	postal("0660O", "cp")
	postal("00100", "cp")

	f(func(in *accounts.Fiscal) { in.Regime = "600" }, "regimen_fiscal", "600", "catálogo")
	f(func(in *accounts.Fiscal) { in.Regime = "6O1" }, "regimen_fiscal")
	f(func(in *accounts.Fiscal) { in.Regime = "612" }, "regimen_fiscal", "persona moral")
	f(func(in *accounts.Fiscal) { in.Regime, in.RFC, in.Use = "612", "", "D01" }, "") // no RFC says who
	f(func(in *accounts.Fiscal) { in.Use = "G99" }, "uso_cfdi", "catálogo")
	f(func(in *accounts.Fiscal) { in.Use = "g03" }, "uso_cfdi")
	f(func(in *accounts.Fiscal) { in.Use = "D01" }, "uso_cfdi", "persona moral", "G01, G02, G03")
	f(func(in *accounts.Fiscal) { in.Use, in.Regime = "D01", "" }, "uso_cfdi", "persona moral")
	f(func(in *accounts.Fiscal) { in.Use, in.RFC = "CN01", "" }, "uso_cfdi", "con el régimen 601")
	f(func(in *accounts.Fiscal) { in.Use, in.Regime, in.RFC = "CN01", "605", "RUAA800101AB1" }, "")
	// The use is not blamed for what the regime is.
	f(func(in *accounts.Fiscal) { in.Regime, in.Use = "605", "G03" }, "regimen_fiscal")
	// Before the catalogue began.
	if got, rule := faults(complete, civil.Date{Year: 2021, Month: 12, Day: 31}); !slices.Equal(got, []string{"regimen_fiscal", "uso_cfdi"}) || !strings.Contains(rule, "2022-01-01") {
		t.Errorf("before 2022: %v: %s", got, rule)
	}
}

func TestEmail(t *testing.T) {
	f := func(address string, want bool) {
		t.Helper()
		in := complete
		in.Email = address
		if got, rule := faults(in, today); (len(got) == 0) != want {
			t.Errorf("%q: accepted %v, want %v: %s", address, !want, want, rule)
		}
	}
	f("a@b.mx", true)
	f("Facturas.2026+cotejo@sub.empresa-uno.com.mx", true)
	f("o'neil@empresa.mx", true)
	f("a@xn--andu-hqa.mx", true)
	f(strings.Repeat("a", 64)+"@empresa.mx", true)
	f(strings.Repeat("a", 65)+"@empresa.mx", false)
	f("a@"+strings.Repeat("b.", 126)+"mx", false) // 256 bytes
	f("a@"+strings.Repeat("b", 64)+".mx", false)
	f("Ana <a@b.mx>", false)
	f("<a@b.mx>", false)
	f("a@b.mx, c@d.mx", false)
	f("a@b.mx (Ana)", false)
	f("a @b.mx", false)
	f("a@ b.mx", false)
	f("a@b.mx\r\nBcc: c@d.mx", false)
	f(`"a b"@b.mx`, false)
	f(`"a"@b.mx`, false)
	f("a@localhost", false)
	f("a@[127.0.0.1]", false)
	f("a@127.0.0.1", false)
	f("a@b..mx", false)
	f("a@-b.mx", false)
	f("a@b-.mx", false)
	f("a@b_c.mx", false)
	f(".a@b.mx", false)
	f("a..b@b.mx", false)
	f("a@ñandú.mx", false)
	f("ñ@b.mx", false)
	f("a", false)
	f("a@", false)
	f("@b.mx", false)
	f("a@b@c.mx", false)

	in := complete
	in.Email = " Ana.Ruiz@Empresa.MX\t"
	out, found := accounts.ReadFiscal(catalog.Embedded(), today, in)
	if len(found) > 0 || out.Email != "Ana.Ruiz@empresa.mx" {
		t.Errorf("kept as %q, %v", out.Email, found)
	}
}

func FuzzEmail(f *testing.F) {
	for _, seed := range []string{"a@b.mx", "Ana <a@b.mx>", `"a"@b.mx`, "a@[::1]", "a@b.mx\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		out, found := accounts.ReadFiscal(catalog.Embedded(), today, accounts.Fiscal{Email: address})
		if len(found) > 0 || address == "" {
			return
		}
		parsed, err := mail.ParseAddress("Ana <" + out.Email + ">")
		if err != nil || parsed.Address != out.Email || strings.ContainsAny(out.Email, " \r\n\t<>\"(),;:\\[]") || !utf8.ValidString(out.Email) {
			t.Errorf("%q is accepted as %q; as an address it is %v, %v", address, out.Email, parsed, err)
		}
	})
}

// TestPendingSaysWhatIsMissing: complete is what an invoice can be made out to today.
func TestPendingSaysWhatIsMissing(t *testing.T) {
	f := func(in accounts.Fiscal, day civil.Date, want string) {
		t.Helper()
		var got []string
		for _, fault := range in.Pending(catalog.Embedded(), day) {
			got = append(got, fault.Field)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%+v: %v, want %q", in, got, want)
		}
	}
	f(complete, today, "")
	f(accounts.Fiscal{}, today, "razon_social rfc_fiscal cp regimen_fiscal uso_cfdi")
	without := complete
	without.Email = ""
	f(without, today, "")
	without.PostalCode = ""
	f(without, today, "cp")
	f(complete, civil.Date{Year: 2021, Month: 12, Day: 31}, "regimen_fiscal uso_cfdi") // not in force
}

// TestFiscalIsKept: whatever is accepted comes back, of the organization alone.
func TestFiscalIsKept(t *testing.T) {
	fs := vfs.NewMem()
	f := open(t, fs, nil)
	defer func() { f.close() }()
	given := complete
	account, orgs, err := f.CreateAccount(context.Background(), accounts.AccountRequest{Name: "Uno", Entities: []string{"Dos"}, Fiscal: &given})
	if err != nil {
		t.Fatal(err)
	}
	is := map[ledger.OrgID]accounts.Fiscal{}
	given.Updated = account.Created
	is[orgs[0].ID] = given
	rapid.Check(t, func(rt *rapid.T) {
		org := rapid.SampledFrom(orgs).Draw(rt, "organization").ID
		if rapid.Bool().Draw(rt, "twin") {
			org = org.Twin()
		}
		text := rapid.OneOf(rapid.Just(""), rapid.StringN(0, 40, -1), rapid.Just(strings.Repeat("Ñ", 300)))
		in := accounts.Fiscal{LegalName: text.Draw(rt, "a"), RFC: text.Draw(rt, "b"), PostalCode: text.Draw(rt, "c"), Regime: text.Draw(rt, "d"), Use: text.Draw(rt, "e"), Email: text.Draw(rt, "f")}
		got, err := f.SetFiscal(ctx, account.ID, org, in)
		want := in
		if want.Updated = is[org].Updated; want.Updated.IsZero() || want != is[org] { // else the same again
			want.Updated = f.now
		}
		if is[org] = want; err != nil || got != want {
			rt.Fatalf("SetFiscal = %+v, %v; want %+v", got, err, want)
		}
		if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
			now := f.now
			f.close()
			f = open(t, fs, nil)
			f.now = now
		}
		for _, o := range orgs {
			for _, id := range []ledger.OrgID{o.ID, o.ID.Twin()} {
				if got, err := f.Fiscal(account.ID, id); err != nil || got != is[id] {
					rt.Fatalf("Fiscal of %v = %+v, %v; want %+v", id, got, err, is[id])
				}
			}
		}
	})
	if _, err := f.SetFiscal(ctx, account.ID, 2, complete); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	before := is[orgs[0].ID]
	f.advance(time.Hour)
	if got, err := f.SetFiscal(ctx, account.ID, orgs[0].ID, before); err != nil || got != before {
		t.Errorf("the same again: %+v, %v; want %+v", got, err, before)
	}
}
