package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// must returns what Read gives for a text that it accepts.
func must[T any](t *testing.T, read func(string) (T, Changes, error), in string) T {
	t.Helper()
	v, _, err := read(in)
	if err != nil {
		t.Fatalf("«%s»: %v", in, err)
	}
	return v
}

// faultIs compares a fault with what it should say; code "" is none.
func faultIs(t *testing.T, what string, got *Fault, code, rule string) {
	t.Helper()
	switch {
	case code == "" && got != nil:
		t.Errorf("%s: %v; want no fault", what, *got)
	case code != "" && (got == nil || *got != Fault{code, rule}):
		t.Errorf("%s: %v; want %s %s", what, got, code, rule)
	}
}

// TestDayOf compares the calendar with that of the standard library, over the two
// centuries and beyond every month's end.
func TestDayOf(t *testing.T) {
	days := 0
	for _, century := range []int{1900, 2000} {
		for date := range 1000000 {
			aammdd := fmt.Sprintf("%06d", date)
			if aammdd[2:4] > "19" || aammdd[4:] > "39" {
				continue
			}
			got := dayOf(century, aammdd)
			want, err := time.Parse("20060102", fmt.Sprintf("%02d%s", century/100, aammdd))
			if (err != nil) != got.IsZero() || err == nil && got.String() != want.Format(time.DateOnly) {
				t.Fatalf("%d %s: %v; want %v %v", century, aammdd, got, want, err)
			}
			if err == nil {
				days++
			}
		}
	}
	if days != 73049 {
		t.Errorf("%d days in two centuries", days)
	}
}

// digitOfCURP completes a CURP by the account of schemes.
func digitOfCURP(body string) string {
	s := schemes[slices.IndexFunc(schemes, func(s scheme) bool { return s.name == "curp" })]
	id, _ := s.completed(body)
	return id[len(body):]
}

func TestCURPFacts(t *testing.T) {
	f := func(in, birth, sex, state, stateName, homoclave, word, expected string) {
		t.Helper()
		c := must(t, ReadCURP, in)
		got := [...]string{c.Birth().String(), c.Sex(), c.State(), c.StateName(), c.Homoclave(), c.Word(), c.CheckDigit().Expected}
		if want := [...]string{birth, sex, state, stateName, homoclave, word, expected}; got != want {
			t.Errorf("%s: %q; want %q", in, got, want)
		}
	}
	f("HEGG560427MVZRRL04", "1956-04-27", "M", "VZ", "Veracruz", "0", "", "4")
	f("HEGG050427MVZRRLA7", "2005-04-27", "M", "VZ", "Veracruz", "A", "", "7")
	f("GOMC000229XDFMRRA3", "2000-02-29", "X", "DF", "Ciudad de México", "A", "", "3")
	f("BOXW310820HNERXN09", "1931-08-20", "H", "NE", "Nacido en el extranjero", "0", "", "9")
	f("FETO930411HJCRMN01", "1993-04-11", "H", "JC", "Jalisco", "0", "FETO", "1")
	// The first and the last day that a CURP can write.
	f("AAMG000101HDFLJL05", "1900-01-01", "H", "DF", "Ciudad de México", "0", "", digitOfCURP("AAMG000101HDFLJL0"))
	f("AAMG000228HDFLJL05", "1900-02-28", "H", "DF", "Ciudad de México", "0", "", digitOfCURP("AAMG000228HDFLJL0"))
	f("AAMG000101HDFLJLA5", "2000-01-01", "H", "DF", "Ciudad de México", "A", "", digitOfCURP("AAMG000101HDFLJLA"))
	// A letter after year 99 is 2099: whoever has a clock may remark on it.
	f("AAMG991231HASLJLA0", "2099-12-31", "H", "AS", "Aguascalientes", "A", "", "8")
	// catalogmx publishes this one as valid; the official algorithm gives 8.
	f("OEAF771012HMCRGR09", "1977-10-12", "H", "MC", "México", "0", "", "8")
	// Quoted for foreign employees: the first passes, the second does not.
	f("XEXX010101HNEXXXA4", "2001-01-01", "H", "NE", "Nacido en el extranjero", "A", "", "4")
	f("XEXX010101MNEXXXA8", "2001-01-01", "M", "NE", "Nacido en el extranjero", "A", "", "4")

	faultIs(t, "OEAF771012HMCRGR09", must(t, ReadCURP, "OEAF771012HMCRGR09").Fault(), FaultDigit,
		"La CURP termina en 9 y según su algoritmo el dígito verificador es 8: revise que ningún carácter haya cambiado al copiar.")
}

// TestCURPStates compares the states with the alternatives of the official
// pattern: no more and no fewer.
func TestCURPStates(t *testing.T) {
	official := regexp.MustCompile(`^([ABCMTZ]S|[BCJMOT]C|[CNPST]L|[GNQ]T|[GQS]R|C[MH]|[MY]N|[DH]G|NE|VZ|DF|SP)$`)
	names := map[string]bool{}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string(a) + string(b)
			name := stateOf(code)
			if (name != "") != official.MatchString(code) {
				t.Errorf("%s is %q", code, name)
			}
			if name != "" {
				names[name] = true
			}
		}
	}
	if len(names) != 33 {
		t.Errorf("%d different names; want 32 states and abroad", len(names))
	}
}

func TestWordsAreSorted(t *testing.T) {
	for _, words := range [][]string{rfcWords, curpWords} {
		if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
			t.Errorf("not sorted, or twice: %v", words)
		}
	}
	if len(rfcWords) != 41 || len(curpWords) != 81 {
		t.Errorf("%d and %d words", len(rfcWords), len(curpWords))
	}
}

func TestNSSFacts(t *testing.T) {
	n := must(t, ReadNSS, "42988530210")
	got := [...]string{n.Subdelegation(), n.Registered(), n.Born(), n.Serial(), n.CheckDigit().Found}
	if want := [...]string{"42", "98", "85", "3021", "0"}; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if n.Blank() {
		t.Error("a number of a worker is blank")
	}
	if blank := must(t, ReadNSS, "00000000000"); !blank.Blank() || blank.Fault() != nil {
		t.Errorf("eleven zeros: %v %v; want a remark, no fault", blank.Blank(), blank.Fault())
	}
	faultIs(t, "12345678904", must(t, ReadNSS, "12345678904").Fault(), FaultDigit,
		"El NSS termina en 4 y según su algoritmo el dígito verificador es 3: revise que ningún carácter haya cambiado al copiar.")
}

func TestCLABEFacts(t *testing.T) {
	c := must(t, ReadCLABE, "002010077777777779")
	got := [...]string{c.Bank(), c.Plaza(), c.Account(), c.Last4(), c.CheckDigit().Found, c.CheckDigit().Expected}
	if want := [...]string{"002", "010", "07777777777", "7779", "9", "1"}; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	faultIs(t, c.String(), c.Fault(), FaultDigit,
		"La CLABE termina en 9 y según su algoritmo el dígito verificador es 1: revise que ningún carácter haya cambiado al copiar.")
}

func TestCardFacts(t *testing.T) {
	f := func(in, brand, bin6, bin8, last4 string, length int, code, rule string) {
		t.Helper()
		c := must(t, ReadCard, in)
		if c.Brand() != brand || c.BIN6() != bin6 || c.BIN8() != bin8 || c.Last4() != last4 || c.Length() != length {
			t.Errorf("%s: %s %s %s %s %d", in, c.Brand(), c.BIN6(), c.BIN8(), c.Last4(), c.Length())
		}
		faultIs(t, in, c.Fault(), code, rule)
	}
	const luhn = "El número de tarjeta no cumple el algoritmo de Luhn: revise que ningún dígito haya cambiado al copiar."
	f("4012888888881881", "visa", "401288", "40128888", "1881", 16, "", "")
	f("378282246310005", "american-express", "378282", "", "0005", 15, "", "")
	f("378282246310006", "american-express", "378282", "", "0006", 15, FaultDigit, luhn)
	f("411111111111", "visa", "411111", "", "1111", 12, FaultLength,
		"Las tarjetas visa no tienen 12 dígitos: revise que no falte ni sobre ninguno.")
	f("0000000000000000", "desconocida", "000000", "00000000", "0000", 16, FaultRepeat,
		"El número de tarjeta solo tiene ceros: ninguna tarjeta lo lleva, envíe el número de la tarjeta.")
	// A brand that nobody here knows is no fault.
	f("1234567812345670", "desconocida", "123456", "12345678", "5670", 16, "", "")
	f("9792000000000005", "troy", "979200", "97920000", "0005", 16, FaultDigit, luhn)

	brand := func(first8, want string) {
		t.Helper()
		if got := must(t, ReadCard, first8+"00000000").Brand(); got != want {
			t.Errorf("%s…: %s; want %s", first8, got, want)
		}
	}
	// The longest prefix wins, then the narrowest range of the same length.
	brand("40291700", "visa")
	brand("40291800", "naranja")
	brand("40117800", "elo")
	brand("60000000", "maestro")
	brand("60110000", "discover")
	brand("50609900", "verve")
	brand("50612800", "maestro")
	brand("50669800", "maestro")
	brand("50669900", "elo")
	brand("63737423", "hiper")
	brand("63737424", "maestro")
	brand("62778000", "elo")
	brand("62777900", "unionpay")
	brand("62201800", "unionpay")
	brand("22050000", "desconocida")
	brand("22040000", "mir")
	brand("22200000", "desconocida")
	brand("22210000", "mastercard")
	brand("27200000", "mastercard")
	brand("27210000", "desconocida")
	brand("35270000", "desconocida")
	brand("35280000", "jcb")
	brand("30600000", "desconocida")
}

// TestCardBrandsAreRanges holds what brandOf relies on.
func TestCardBrandsAreRanges(t *testing.T) {
	for _, b := range cardBrands {
		for _, p := range b.prefixes {
			if p.first > p.last || decimals(p.first) != decimals(p.last) || decimals(p.first) > 8 {
				t.Errorf("%s: %d to %d is no range of prefixes", b.name, p.first, p.last)
			}
		}
	}
}

// TestCardNeverShowsItsNumber prints cards and their problems in all ways that
// code here might.
func TestCardNeverShowsItsNumber(t *testing.T) {
	const pan = "4012888888881881"
	card := must(t, ReadCard, pan)
	// The middle digits, and the number whatever separates it.
	secret := regexp.MustCompile(`8{5}|4012.?8888`)
	shown := []string{card.String(), card.GoString()}
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %b %c %U %T%v") {
		shown = append(shown, fmt.Sprintf(verb, card), fmt.Sprintf(verb, &card), fmt.Sprintf(verb, struct{ C Card }{card}),
			fmt.Sprintf(verb, []Card{card}))
	}
	wrong := must(t, ReadCard, pan[:15]+"2")
	shown = append(shown, wrong.Fault().Rule, must(t, ReadCard, pan[:13]).Fault().Rule)
	for _, in := range []string{pan + "X", pan + pan, "X" + pan, pan[:11], strings.Repeat(pan, 9), pan + "٣"} {
		if _, _, err := ReadCard(in); err == nil {
			t.Errorf("%s is a card", in)
		} else {
			shown = append(shown, err.Error(), fmt.Sprintf("%#v", err))
		}
	}
	for _, text := range shown {
		if secret.MatchString(text) {
			t.Errorf("the number is in %q", text)
		}
	}
	if got := fmt.Sprintf("%v %d", card, &card); got != "•••• 1881 •••• 1881" {
		t.Errorf("masked as %q", got)
	}
}

func TestCNPJFacts(t *testing.T) {
	// The worked example of the Receita Federal.
	c := must(t, ReadCNPJ, "12.ABC.345/01DE-35")
	got := [...]string{c.Root(), c.Order(), c.Masked(), c.CheckDigit().Found, c.CheckDigit().Expected}
	if want := [...]string{"12ABC345", "01DE", "12.ABC.345/01DE-35", "35", "35"}; got != want || !c.Alphanumeric() {
		t.Errorf("%q, %v; want %q", got, c.Alphanumeric(), want)
	}
	if must(t, ReadCNPJ, "07195358000166").Alphanumeric() {
		t.Error("digits are alphanumeric")
	}
	wrong := must(t, ReadCNPJ, "12ABC34501DE36")
	faultIs(t, wrong.String(), wrong.Fault(), FaultDigit,
		"El CNPJ termina en 36 y según su algoritmo los dígitos verificadores son 35: revise que ningún carácter haya cambiado al copiar.")
	const repeats = "El CNPJ repite un solo carácter: ninguna entidad lo tiene, envíe el CNPJ de la entidad."
	for _, in := range []string{"00000000000000", "00000000000001", "11111111111111"} {
		faultIs(t, in, must(t, ReadCNPJ, in).Fault(), FaultRepeat, repeats)
	}
	// Only what repeats to the end is a filler.
	faultIs(t, "11111111111180", must(t, ReadCNPJ, "11111111111180").Fault(), "", "")
}

func TestLEIFacts(t *testing.T) {
	l := must(t, ReadLEI, "213800KUD8LAJWSQ9D51")
	got := [...]string{l.Issuer(), l.Entity(), l.CheckDigit().Found, l.CheckDigit().Expected}
	if want := [...]string{"2138", "00KUD8LAJWSQ9D", "51", "15"}; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	faultIs(t, l.String(), l.Fault(), FaultDigit,
		"El LEI termina en 51 y según su algoritmo los dígitos verificadores son 15: revise que ningún carácter haya cambiado al copiar.")
	// 99 leaves the remainder of 02, but no issuer computes it.
	for tail, fault := range map[string]bool{"02": false, "99": true} {
		in := "529900000000000000" + tail
		if got := must(t, ReadLEI, in).Fault() != nil; got != fault {
			t.Errorf("%s: fault %v; want %v", in, got, fault)
		}
	}
}

func TestAutorizacionFacts(t *testing.T) {
	const uuid = "D412A347-9720-44C0-A9CC-FDE068F0A2E7"
	f := func(serie, numero, code, rule string) Autorizacion {
		t.Helper()
		a, _, err := ReadAutorizacion(uuid, serie, numero)
		if err != nil {
			t.Fatal(err)
		}
		faultIs(t, serie+" "+numero, a.Fault(), code, rule)
		return a
	}
	a := f("D412A347", "2535474368", "", "")
	if want := (Comparison{"D412A347", "D412A347"}); a.Serie() != want || a.Test() || a.String() != uuid {
		t.Errorf("%v %v %v", a.Serie(), a.Test(), a)
	}
	if want := (Comparison{"2535474368", "2535474368"}); a.Numero() != want {
		t.Errorf("%v", a.Numero())
	}
	a = f("D412A348", "1", FaultSerie, "La Serie es D412A348 y el UUID empieza con D412A347: no son del mismo documento, pida el XML certificado al emisor.")
	if a.Serie().Matches() || a.Numero() != (Comparison{"1", "2535474368"}) {
		t.Errorf("%v %v", a.Serie(), a.Numero())
	}
	const numero = "El Numero es 2535474369 y el que corresponde al UUID es 2535474368: no son del mismo documento, pida el XML certificado al emisor."
	f("D412A347", "2535474369", FaultNumero, numero)
	// The Numero of a test document follows the rule too.
	f("PRUEBAS", "2535474369", FaultNumero, numero)
	if a := f("PRUEBAS", "2535474368", "", ""); !a.Test() || a.Serie() != (Comparison{"PRUEBAS", "D412A347"}) {
		t.Errorf("%v %v", a.Test(), a.Serie())
	}
	zeros, changes, err := ReadAutorizacion("d412a347-0000-0001-a9cc-fde068f0a2e7", "d412a347", "0000000001")
	if err != nil || changes != Upper|Zeros || zeros.Fault() != nil {
		t.Errorf("%v %v %v", changes.Names(), err, zeros.Fault())
	}
}

func TestNITFacts(t *testing.T) {
	n := must(t, ReadNIT, "7108-K")
	if want := (Comparison{"K", "0"}); n.CheckDigit() != want {
		t.Errorf("%v; want %v", n.CheckDigit(), want)
	}
	faultIs(t, n.String(), n.Fault(), FaultDigit,
		"El NIT termina en K y según su algoritmo el dígito verificador es 0: revise que ningún carácter haya cambiado al copiar.")
}

func TestUKCompanyFacts(t *testing.T) {
	f := func(in, prefix, jurisdiction, kind string) {
		t.Helper()
		c := must(t, ReadUKCompany, in)
		if c.Prefix() != prefix || c.Jurisdiction() != jurisdiction || c.Kind() != kind {
			t.Errorf("%s: %q %q %q", in, c.Prefix(), c.Jurisdiction(), c.Kind())
		}
	}
	f("00445790", "", "Inglaterra y Gales", "company")
	f("SO300001", "SO", "Escocia", "limited liability partnership")
	f("R0000123", "R0", "Irlanda del Norte", "company")
	f("IP28746R", "IP", "Inglaterra y Gales", "industrial and provident society")
	f("RS123CUS", "RS", "", "registered society")
	f("OC12PPPW", "OC", "Inglaterra y Gales", "limited liability partnership")
	f("NO001234", "NO", "", "")
}

// TestSECVectors are the public rows that the design quotes.
func TestSECVectors(t *testing.T) {
	for in, want := range map[string]string{
		"AAPL": "AAPL", "VLRS": "VLRS", "TV": "TV", "BRK.B": "BRK-B", "BRK-A": "BRK-A", "amx": "AMX",
		"1129137": "0001129137", "0001076378": "0001076378", "CIK320193": "0000320193", "CIK": "CIK",
	} {
		if got := must(t, ReadSEC, in); got.String() != want || (got.CIK() == "") == (got.Ticker() == "") {
			t.Errorf("%s: %s %q %q; want %s", in, got, got.CIK(), got.Ticker(), want)
		}
	}
	if n := must(t, ReadSEC, "0001076378").Number(); n != 1076378 {
		t.Errorf("number %d", n)
	}
	if must(t, ReadSEC, "320193") != must(t, ReadSEC, "cik0000320193") {
		t.Error("two spellings of a CIK differ")
	}
}

// TestSECTickers reads the tickers of the official file's sample.
func TestSECTickers(t *testing.T) {
	shared := os.Getenv("COTEJO_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	sample, err := os.ReadFile(filepath.Join(shared, "data", "catalogs", "sec_company_tickers_sample.json"))
	if err != nil {
		t.Skipf("no sample (set COTEJO_SHARED): %v", err)
	}
	rows := regexp.MustCompile(`"cik_str":(\d+),"ticker":"([^"]+)"`).FindAllSubmatch(sample, -1)
	if len(rows) != 20 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		if got := must(t, ReadSEC, string(row[2])); got.Ticker() != string(row[2]) {
			t.Errorf("ticker %s: %s", row[2], got)
		}
		if got := must(t, ReadSEC, string(row[1])); fmt.Sprint(got.Number()) != string(row[1]) {
			t.Errorf("CIK %s: %s", row[1], got)
		}
	}
}

func TestHomoclave(t *testing.T) {
	f := func(name, want string) {
		t.Helper()
		if got, err := Homoclave(name); err != nil || got != want {
			t.Errorf("%q: %s %v; want %s", name, got, err, want)
		}
	}
	// rfc-facil, HomoclaveCalculatorTest; the spellings are one name.
	f("MUÑOZ MUÑOZ JUAN", "RZ")
	f("muñoz  mun\u0303oz   juán", "RZ")
	f(" Orozco Gómez, Eliud. ", "15")
	f("OROZCO GOMEZ ELIUD", "15")
	refuse := func(name, want string) {
		t.Helper()
		if got, err := Homoclave(name); err == nil || err.Error() != want {
			t.Errorf("%q: %s %v; want %s", name, got, err, want)
		}
	}
	refuse(" -.", "El nombre está vacío: lleva paterno, materno y nombres, o la denominación.")
	refuse("PEREZ 李", "«PEREZ 李» no es un nombre para calcular la homoclave: el carácter 7 es «李»; lleva solo letras, dígitos, espacios y &.")
}

// TestEmail lists what is an address here and what is not, and how it is shown.
func TestEmail(t *testing.T) {
	f := func(in, folded, masked string) {
		t.Helper()
		e := must(t, ReadEmail, in)
		if e.Folded() != folded || e.Masked() != masked {
			t.Errorf("%s: %s, %s", in, e.Folded(), e.Masked())
		}
	}
	f("Ana.Ruiz+sat@Empresa.com.MX", "ana.ruiz+sat@empresa.com.mx", "A***@empresa.com.mx")
	f("a@b.co", "a@b.co", "a***@b.co")
	if e := (Email{}); e.String() != "" || e.Folded() != "" || e.Masked() != "" {
		t.Errorf("the zero address: %q %q %q", e.String(), e.Folded(), e.Masked())
	}
	for _, in := range []string{
		"ana@empresa", "@empresa.mx", "ana@", "ana@empresa.1", "ana@127.0.0.1", "ana@[127.0.0.1]", "ana@empresa.m", "ana@-empresa.mx", "ana@empresa-.mx",
		"ana@empresa..mx", ".ana@empresa.mx", "ana.@empresa.mx", "a..b@empresa.mx", "a b@empresa.mx", "\"a b\"@empresa.mx", "ana@empresa.mx,otra@otra.mx",
		"Ana <ana@empresa.mx>", "<ana@empresa.mx>", "ana@empresa.mx\r\nBcc: otra@otra.mx", "ana@empresa.mx\x00", "peña@empresa.mx", "ana@peña.mx",
		"ana@empresa.mx.", strings.Repeat("a", 65) + "@empresa.mx", "ana@" + strings.Repeat("a", 64) + ".mx", "ana;otra@empresa.mx", "ana(x)@empresa.mx",
	} {
		if e, _, err := ReadEmail(in); err == nil {
			t.Errorf("«%s» is taken for %s", in, e)
		}
	}
}
