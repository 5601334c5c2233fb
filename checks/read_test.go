package checks

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// reading is what every Read function gives, whatever its type.
type reading struct {
	normal  string
	changes Changes
	err     error
	fault   *Fault
}

// reader is one Read function, with the texts that are in normal form.
type reader struct {
	name    string
	read    func(in string) reading
	normal  *regexp.Regexp
	samples []string
}

func readerOf[T fmt.Stringer](name, normal string, read func(string) (T, Changes, error), samples ...string) reader {
	return reader{name, func(in string) reading {
		v, changes, err := read(in)
		r := reading{v.String(), changes, err, nil}
		if f, ok := any(v).(interface{ Fault() *Fault }); ok {
			r.fault = f.Fault()
		}
		return r
	}, regexp.MustCompile(`^(` + normal + `)$`), samples}
}

const (
	patternCURP = `[A-Z][AEIOUX][A-Z]{2}[0-9]{2}(0[1-9]|1[012])(0[1-9]|[12][0-9]|3[01])[MHX]([ABCMTZ]S|[BCJMOT]C|[CNPST]L|[GNQ]T|[GQS]R|C[MH]|[MY]N|[DH]G|NE|VZ|DF|SP)[BCDFGHJ-NP-TV-Z]{3}[0-9A-Z][0-9]` // anexo 20, t_CURP
	patternUK   = `(AC|ZC|FC|GE|LP|OC|SE|SA|SZ|SF|GS|SL|SO|SC|ES|NA|NZ|NF|GN|NL|NC|R0|NI|EN|\d{2}|SG|FE|CE|CS|IP|SP|NP|IC|SI|NV|RC|SR|NR|RS|NO|PC)\d{5}(\d|C|R)|` +
		`(RS|SO)(\d{3}(\d{3}|\d{2}[WSRCZF]|\d(FI|RS|SA|IP|US|EN|AS)|CUS))|(NI|SL)\d{5}[\dA]|OC(([\dP]{5}[CWERTB])|([\dP]{4}(OC|CU)))`
)

var readers = []reader{
	readerOf("rfc", official.String()[1:len(official.String())-1], ReadRFC, "EFO010101AA1", "XAXX010101000", "MUÑ110218LJ6"),
	readerOf("curp", patternCURP, ReadCURP, "AAMG890608HDFLJL00", "GOMC000229XDFMRRA3"),
	readerOf("nss", `[0-9]{11}`, ReadNSS, "42988530210"),
	readerOf("clabe", `[0-9]{18}`, ReadCLABE, "002010077777777771"),
	readerOf("tarjeta", `•••• [0-9]{4}`, ReadCard, "4012888888881881", "6799990100000000019"),
	readerOf("cnpj", `[0-9A-Z]{12}[0-9]{2}`, ReadCNPJ, "12ABC34501DE35", "07195358000166"),
	readerOf("lei", `[0-9A-Z]{18}[0-9]{2}`, ReadLEI, "213800KLHG79RR4RVR16"),
	readerOf("gt_nit", `[1-9][0-9]{0,10}[0-9K]`, ReadNIT, "800000001026", "576937K"),
	readerOf("gt_fel", `[0-9A-F]{8}-([0-9A-F]{4}-){3}[0-9A-F]{12}`, func(uuid string) (Autorizacion, Changes, error) {
		return ReadAutorizacion(uuid, "D412A347", "2535474368")
	}, "D412A347-9720-44C0-A9CC-FDE068F0A2E7"),
	readerOf("gt_fel_serie", `[0-9A-F-]{36}`, func(serie string) (Autorizacion, Changes, error) {
		return ReadAutorizacion("D412A347-9720-44C0-A9CC-FDE068F0A2E7", serie, "2535474368")
	}, "D412A347", "PRUEBAS"),
	readerOf("gt_fel_numero", `[0-9A-F-]{36}`, func(numero string) (Autorizacion, Changes, error) {
		return ReadAutorizacion("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "D412A347", numero)
	}, "2535474368"),
	readerOf("uk_company", patternUK, ReadUKCompany, "00445790", "SC123456", "RS12345W", "OC12PPCU", "NI00001A"),
	readerOf("email", `[!-?A-~]+@[0-9a-z.-]+\.[a-z][0-9a-z-]+`, ReadEmail, "ana.ruiz@empresa.mx", "A+b_c-1@sub.xn--empaques-i7a.com.mx"),
	readerOf("sec", `[0-9]{10}|[A-Z][0-9A-Z]{0,4}(-[0-9A-Z]{1,4})?`, ReadSEC, "0000320193", "AAPL", "BRK-B", "CIK"),
}

// TestNormalFormsPass holds what callers rely on: a text in normal form is read
// as it is, without a change, a fault or an allocation.
func TestNormalFormsPass(t *testing.T) {
	for _, r := range readers {
		for _, in := range r.samples {
			got := r.read(in)
			if got.err != nil || got.changes != 0 || got.fault != nil && r.name != "rfc" || !r.normal.MatchString(got.normal) {
				t.Errorf("%s «%s»: %+v", r.name, in, got)
			}
			if got.normal != in && !strings.HasPrefix(r.name, "gt_fel_") && r.name != "tarjeta" {
				t.Errorf("%s «%s» became %s", r.name, in, got.normal)
			}
		}
	}
}

func TestReadDoesNotAllocate(t *testing.T) {
	f := func(name string, read func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, read); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
	var (
		digit Comparison
		err   error
		fault *Fault
	)
	f("RFC", func() { sink, _, err = ReadRFC("MUÑ110218LJ6"); digit = sink.CheckDigit() })
	f("ParseRFC", func() { sink, err = ParseRFC("XAXX010101000") })
	var curp CURP
	f("CURP", func() { curp, _, err = ReadCURP("GOMC000229XDFMRRA3"); digit, fault = curp.CheckDigit(), curp.Fault() })
	f("CURP parts", func() { _, _, _ = curp.Birth(), curp.StateName(), curp.Word() })
	var nss NSS
	f("NSS", func() { nss, _, err = ReadNSS("42988530210"); digit, fault = nss.CheckDigit(), nss.Fault() })
	var clabe CLABE
	f("CLABE", func() {
		clabe, _, err = ReadCLABE("002010077777777771")
		digit, fault = clabe.CheckDigit(), clabe.Fault()
	})
	var card Card
	f("Card", func() {
		card, _, err = ReadCard("4012 8888-8888 1881")
		digit, fault = card.CheckDigit(), card.Fault()
	})
	var cnpj CNPJ
	f("CNPJ", func() { cnpj, _, err = ReadCNPJ("12ABC34501DE35"); digit, fault = cnpj.CheckDigit(), cnpj.Fault() })
	var lei LEI
	f("LEI", func() { lei, _, err = ReadLEI("213800KLHG79RR4RVR16"); digit, fault = lei.CheckDigit(), lei.Fault() })
	var nit NIT
	f("NIT", func() { nit, _, err = ReadNIT("800000001026"); digit, fault = nit.CheckDigit(), nit.Fault() })
	var fel Autorizacion
	f("Autorizacion", func() {
		fel, _, err = ReadAutorizacion("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "D412A347", "2535474368")
		fault = fel.Fault()
	})
	f("UKCompany", func() { _, _, err = ReadUKCompany("SC123456") })
	f("SEC", func() { _, _, err = ReadSEC("BRK-B") })
	f("SEC CIK", func() { _, _, err = ReadSEC("320193") })
	if err != nil || fault != nil || !digit.Matches() {
		t.Error(err, fault, digit)
	}
}

// TestChanges lists what is done to a text, and what is therefore answered.
func TestChanges(t *testing.T) {
	f := func(kind, in, normal string, names ...string) {
		t.Helper()
		i := slices.IndexFunc(readers, func(r reader) bool { return r.name == kind })
		got := readers[i].read(in)
		if got.err != nil || got.normal != normal || !slices.Equal(got.changes.Names(), names) {
			t.Errorf("%s «%s»: %s %q %v; want %s %q", kind, in, got.normal, got.changes.Names(), got.err, normal, names)
		}
	}
	f("rfc", " efo-010101 aa1\n", "EFO010101AA1", "espacios", "guiones", "mayusculas")
	f("rfc", "MUN\u0303110218LJ6", "MUÑ110218LJ6", "unicode_nfc")
	f("rfc", "muñ110218LJ6", "MUÑ110218LJ6", "mayusculas")
	f("curp", "aamg 890608-HDFLJL-00", "AAMG890608HDFLJL00", "espacios", "guiones", "mayusculas")
	f("nss", "\t4298853021-0 ", "42988530210", "espacios", "guiones")
	f("clabe", "002 010 07777777777-1", "002010077777777771", "espacios", "guiones")
	f("clabe", "\u00a0002010077777777771\u00a0", "002010077777777771", "espacios")
	f("tarjeta", "4012-8888 8888 1881", "•••• 1881", "espacios", "guiones")
	f("tarjeta", "\u00a04012888888881881", "•••• 1881", "espacios")
	f("cnpj", "12.abc.345/01de-35", "12ABC34501DE35", "guiones", "signos", "mayusculas")
	f("lei", "2138 00KL HG79 RR4R VR16", "213800KLHG79RR4RVR16", "espacios")
	f("gt_nit", "0576937-k", "576937K", "guiones", "mayusculas", "ceros_a_la_izquierda")
	f("gt_fel", "d412a347-9720-44c0-a9cc-fde068f0a2e7", "D412A347-9720-44C0-A9CC-FDE068F0A2E7", "mayusculas")
	f("gt_fel_serie", "Pruebas", "D412A347-9720-44C0-A9CC-FDE068F0A2E7", "mayusculas")
	f("uk_company", "445790", "00445790", "ceros_a_la_izquierda")
	f("uk_company", "sc 123456", "SC123456", "espacios", "mayusculas")
	f("sec", "320193", "0000320193", "ceros_a_la_izquierda")
	f("sec", "cik0000320193", "0000320193", "mayusculas", "prefijo")
	f("sec", "brk.b", "BRK-B", "signos", "mayusculas")
	f("email", " Ana.Ruiz@Empresa.MX\t", "Ana.Ruiz@empresa.mx", "espacios", "minusculas")
}

// TestReadRefuses names, for each identifier, the rule that a text breaks first.
func TestReadRefuses(t *testing.T) {
	f := func(kind, in, wantType, wantRule string) {
		t.Helper()
		i := slices.IndexFunc(readers, func(r reader) bool { return r.name == kind })
		got := readers[i].read(in)
		var p *Problem
		if !errors.As(got.err, &p) {
			t.Errorf("%s «%s»: %+v; want a problem", kind, in, got)
			return
		}
		if got.normal != "" || got.changes != 0 || got.fault != nil {
			t.Errorf("%s «%s»: a value beside an error: %+v", kind, in, got)
		}
		if p.Type != wantType || p.Rule != wantRule {
			t.Errorf("%s «%s»:\n got %s %s\nwant %s %s", kind, in, p.Type, p.Rule, wantType, wantRule)
		}
	}
	const short, long, pattern, value = "string_too_short", "string_too_long", "string_pattern_mismatch", "value_error"

	f("email", " ", short, "La dirección de correo está vacía: nombre@dominio.")
	f("email", "ana.empresa.mx", pattern, "«ana.empresa.mx» no es una dirección de correo: le falta la arroba: nombre@dominio.")
	f("email", strings.Repeat("a", 60)+"@"+strings.Repeat("a.", 97)+"mx", long, "Una dirección de correo tiene a lo más 254 caracteres.")
	f("email", strings.Repeat("a", 509), long, "Una dirección de correo tiene a lo más 254 caracteres.")

	f("curp", "", short, "La CURP está vacía: lleva 18 caracteres.")
	f("curp", "AAMG890608HDFLJL0", short, "«AAMG890608HDFLJL0» no es una CURP: tiene 17 caracteres; lleva 18 caracteres.")
	f("curp", "AAMG890608HDFLJL000", long, "«AAMG890608HDFLJL000» no es una CURP: tiene 19 caracteres; lleva 18 caracteres.")
	f("curp", "MUÑG890608HDFLJL00", pattern, "«MUÑG890608HDFLJL00» no es una CURP: el carácter 3 es «Ñ»; lleva solo letras A-Z, con X en lugar de Ñ, y dígitos del 0 al 9.")
	f("curp", "MUN\u0303G890608HDFLJL00", pattern, "«MUÑG890608HDFLJL00» no es una CURP: el carácter 3 es «Ñ»; lleva solo letras A-Z, con X en lugar de Ñ, y dígitos del 0 al 9.")
	f("curp", "MU\xd1G890608HDFLJL00", pattern, "«MU�G890608HDFLJL00» no es una CURP: el carácter 3 es un byte que no es UTF-8; lleva solo letras A-Z, con X en lugar de Ñ, y dígitos del 0 al 9.")
	f("curp", "AAMG89060٨HDFLJL00", pattern, "«AAMG89060٨HDFLJL00» no es una CURP: el carácter 10 es «٨», un dígito de otra escritura; lleva solo letras A-Z, con X en lugar de Ñ, y dígitos del 0 al 9.")
	f("curp", "AA1G890608HDFLJL00", pattern, "«AA1G890608HDFLJL00» no es una CURP: debe empezar con cuatro letras; empieza con «AA1G».")
	f("curp", "ABMG890608HDFLJL00", pattern, "«ABMG890608HDFLJL00» no es una CURP: la segunda letra es una vocal o X; es «B».")
	f("curp", "AAMGX90608HDFLJL00", pattern, "«AAMGX90608HDFLJL00» no es una CURP: después de 4 letras lleva seis dígitos, la fecha AAMMDD; tiene «X90608».")
	f("curp", "AAMG891308HDFLJL00", pattern, "«AAMG891308HDFLJL00» no es una CURP: en la fecha AAMMDD «891308» el mes es 13; debe ser de 01 a 12.")
	f("curp", "AAMG890600HDFLJL00", pattern, "«AAMG890600HDFLJL00» no es una CURP: en la fecha AAMMDD «890600» el día es 00; debe ser de 01 a 31.")
	f("curp", "AAMG890608QDFLJL00", pattern, "«AAMG890608QDFLJL00» no es una CURP: el carácter 11, el sexo, es H, M o X; es «Q».")
	f("curp", "AAMG890608HCXLJL00", pattern, "«AAMG890608HCXLJL00» no es una CURP: los caracteres 12 y 13 son la clave de la entidad de nacimiento, como DF o NL, o NE en el extranjero; «CX» no es ninguna.")
	f("curp", "AAMG890608HDFLAL00", pattern, "«AAMG890608HDFLAL00» no es una CURP: los caracteres 14 a 16 son consonantes o X; el 15 es «A».")
	f("curp", "AAMG890608HDFLJL0A", pattern, "«AAMG890608HDFLJL0A» no es una CURP: el último carácter, el dígito verificador, es del 0 al 9; es «A».")
	f("curp", "AAMG890230HDFLJL00", value, "«AAMG890230HDFLJL00» no es una CURP: el día 30 del mes 02 no existe en 1989, el año que indica un dígito en el carácter 17; revise la fecha AAMMDD «890230».")
	f("curp", "AAMG000229HDFLJL00", value, "«AAMG000229HDFLJL00» no es una CURP: el día 29 del mes 02 no existe en 1900, el año que indica un dígito en el carácter 17; revise la fecha AAMMDD «000229».")
	f("curp", "AAMG010229HDFLJLA0", value, "«AAMG010229HDFLJLA0» no es una CURP: el día 29 del mes 02 no existe en 2001, el año que indica una letra en el carácter 17; revise la fecha AAMMDD «010229».")

	f("nss", "", short, "El NSS está vacío: lleva 11 dígitos seguidos, sin espacios.")
	f("nss", "1234567890", short, "«1234567890» no es un NSS: tiene 10 caracteres; lleva 11 dígitos seguidos, sin espacios.")
	f("nss", "123456789 03", long, "«123456789 03» no es un NSS: tiene 12 caracteres; lleva 11 dígitos seguidos, sin espacios.")
	f("nss", "12345 78903", pattern, "«12345 78903» no es un NSS: el carácter 6 es « »; lleva solo dígitos del 0 al 9.")
	f("nss", "1234567890３", pattern, "«1234567890３» no es un NSS: el carácter 11 es «３», un dígito de otra escritura; lleva solo dígitos del 0 al 9.")

	f("clabe", "1234567890123456789", long, "«1234567890123456789» no es una CLABE: tiene 19 caracteres; lleva 18 dígitos.")
	f("clabe", "00201007777777777O", pattern, "«00201007777777777O» no es una CLABE: el carácter 18 es «O»; lleva solo dígitos del 0 al 9.")
	f("clabe", "٠٠٢٠١٠٠٧٧٧٧٧٧٧٧٧٧١", pattern, "«٠٠٢٠١٠٠٧٧٧٧٧٧٧٧٧٧١» no es una CLABE: el carácter 1 es «٠», un dígito de otra escritura; lleva solo dígitos del 0 al 9.")

	f("tarjeta", "", short, "El número de tarjeta está vacío: lleva de 12 a 19 dígitos.")
	f("tarjeta", "41111111111", short, "El número de tarjeta tiene 11 dígitos; lleva de 12 a 19.")
	f("tarjeta", "41111111111111111111", long, "El número de tarjeta tiene 20 dígitos; lleva de 12 a 19.")
	f("tarjeta", "4111-1111-1111-111X", pattern, "El número de tarjeta lleva solo dígitos del 0 al 9; el carácter 19 es «X».")
	f("tarjeta", "٤٠١٢888888881881", pattern, "El número de tarjeta lleva solo dígitos del 0 al 9; el carácter 1 es «٤», un dígito de otra escritura.")
	f("tarjeta", strings.Repeat("4", 65), long, "El número de tarjeta ocupa 65 bytes; lleva de 12 a 19 dígitos.")

	f("cnpj", "1234567890123", short, "«1234567890123» no es un CNPJ: tiene 13 caracteres; lleva 14 caracteres, los dos últimos dígitos.")
	f("cnpj", "12abc34501de3Ç", pattern, "«12ABC34501DE3Ç» no es un CNPJ: el carácter 14 es «Ç»; lleva solo letras A-Z y dígitos del 0 al 9.")
	f("cnpj", "12ABC34501DEA5", pattern, "«12ABC34501DEA5» no es un CNPJ: el carácter 13 es «A»; los dos últimos, los dígitos verificadores, son del 0 al 9.")

	f("lei", "213800KUD8LAJWSQ9DAB", pattern, "«213800KUD8LAJWSQ9DAB» no es un LEI: el carácter 19 es «A»; los dos últimos, los dígitos verificadores, son del 0 al 9.")
	f("lei", "213800KUD8LAJWSQ9D155", long, "«213800KUD8LAJWSQ9D15…» no es un LEI: tiene 21 caracteres; lleva 20 caracteres, los dos últimos dígitos.")

	f("gt_nit", "", short, "El NIT está vacío: lleva de 2 a 12 caracteres, el último el dígito verificador.")
	f("gt_nit", "000", short, "El NIT solo tiene ceros: lleva de 2 a 12 caracteres, el último el dígito verificador.")
	f("gt_nit", "K", short, "«K» no es un NIT: tiene 1 carácter; lleva de 2 a 12 caracteres, el último el dígito verificador.")
	f("gt_nit", "C/F", pattern, "«C/F» no es un NIT: el carácter 1 es «C»; lleva dígitos del 0 al 9, y en el último lugar un dígito o K.")
	f("gt_nit", "cf", pattern, "«CF» no es un NIT: CF es consumidor final; envíe el NIT de un contribuyente.")
	f("gt_nit", "K576937", pattern, "«K576937» no es un NIT: el carácter 1 es «K»; lleva dígitos del 0 al 9, y en el último lugar un dígito o K.")
	f("gt_nit", "1234567890123", long, "«1234567890123» no es un NIT: tiene 13 caracteres; lleva de 2 a 12 caracteres, el último el dígito verificador.")

	f("gt_fel", "", short, "El número de autorización está vacío: lleva un UUID de 36 caracteres con guiones.")
	f("gt_fel", "A1B2C3-987654321", short, "«A1B2C3-987654321» no es un UUID: tiene 16 caracteres; lleva un UUID de 36 caracteres con guiones.")
	f("gt_fel", "D412A347-9720-44C0-A9CC-FDE068F0A2EG", pattern, "«D412A347-9720-44C0-A…» no es un UUID: el carácter 36 es «G»; lleva dígitos hexadecimales en grupos de 8, 4, 4, 4 y 12, separados con guiones.")
	f("gt_fel_serie", "D412A34", short, "«D412A34» no es una Serie: tiene 7 caracteres; lleva 8 dígitos hexadecimales, o PRUEBAS.")
	f("gt_fel_numero", "4294967296", value, "«4294967296» no es un Numero: es mayor que 4294967295.")
	f("gt_fel_numero", "-1", pattern, "«-1» no es un Numero: el carácter 1 es «-»; lleva solo dígitos del 0 al 9.")

	f("uk_company", "SC12345", short, "«SC12345» no es un número de Companies House: tiene 7 caracteres; lleva 8 caracteres: ocho dígitos, o un prefijo de dos letras como SC y seis dígitos.")
	f("uk_company", "XX123456", pattern, "«XX123456» no es un número de Companies House: el prefijo XX no es de ningún registro; use uno como SC, NI u OC, u ocho dígitos.")
	f("uk_company", "0044579O", pattern, "«0044579O» no es un número de Companies House: «44579O» no puede seguir a 00 en ese registro; lleva seis dígitos.")
	f("uk_company", "0", pattern, "«00000000» no es un número de Companies House: los números empiezan en 00000001.")
	f("uk_company", "SC_23456", pattern, "«SC_23456» no es un número de Companies House: el carácter 3 es «_»; lleva solo letras A-Z y dígitos del 0 al 9.")

	const query = "lleva un CIK, de 1 a 10 dígitos, o un ticker, como AAPL o BRK-B."
	const ticker = "un ticker empieza con una letra, tiene hasta 5 caracteres y, después de un guion, hasta 4 de su clase."
	f("sec", "", short, "La consulta está vacía: "+query)
	f("sec", "12345678901", long, "«12345678901» no es un CIK: tiene 11 caracteres; lleva de 1 a 10 dígitos.")
	f("sec", "00000000000320193", long, "«00000000000320193» no es un CIK: tiene 17 caracteres; lleva de 1 a 10 dígitos.")
	f("sec", "0", pattern, "«0» no es un CIK: los números empiezan en 1.")
	f("sec", "ZZZZZZ", pattern, "«ZZZZZZ» no es un CIK ni un ticker: "+ticker)
	f("sec", "-", pattern, "«-» no es un CIK ni un ticker: "+ticker)
	f("sec", "3.14", pattern, "«3.14» no es un CIK ni un ticker: "+ticker)
	f("sec", "AAPL MSFT", pattern, "«AAPL MSFT» no es un CIK ni un ticker: el carácter 5 es « »; lleva solo letras A-Z, dígitos del 0 al 9 y un guion.")
	f("sec", "AAPL;", pattern, "«AAPL;» no es un CIK ni un ticker: el carácter 5 es «;»; lleva solo letras A-Z, dígitos del 0 al 9 y un guion.")
}

// TestReadIsBounded gives every parser more than it should look at: the message
// stays short and the work does not grow with the input.
func TestReadIsBounded(t *testing.T) {
	const size = 1 << 20
	for _, r := range readers {
		for _, unit := range []string{"1", " ", "Ñ", "N\u0303", "\u0303", "\xff", "٣", "A-"} {
			in := strings.Repeat(unit, size/len(unit))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := r.read(in)
			runtime.ReadMemStats(&after)
			var p *Problem
			if !errors.As(got.err, &p) || p.Type != stringTooLong {
				t.Errorf("%s: 1 MB of %q: %v", r.name, unit, got.err)
				continue
			}
			if len(p.Rule) > 400 || !utf8.ValidString(p.Rule) {
				t.Errorf("%s: 1 MB of %q: message of %d bytes", r.name, unit, len(p.Rule))
			}
			if spent := after.TotalAlloc - before.TotalAlloc; spent > size/8 {
				t.Errorf("%s: 1 MB of %q: %d bytes allocated", r.name, unit, spent)
			}
		}
	}
	if _, err := Homoclave(strings.Repeat("A", size)); err == nil || len(err.Error()) > 400 {
		t.Errorf("homoclave of 1 MB: %v", err)
	}
}

// TestZeroValues asks everything of values that identify nothing.
func TestZeroValues(t *testing.T) {
	var (
		curp CURP
		card Card
		fel  Autorizacion
		uk   UKCompany
		sec  SEC
	)
	for _, text := range []string{
		curp.String(), curp.Birth().String(), curp.Sex(), curp.State(), curp.StateName(), curp.Homoclave(), curp.Word(),
		NSS{}.String(), NSS{}.Subdelegation(), NSS{}.Registered(), NSS{}.Born(), NSS{}.Serial(),
		CLABE{}.String(), CLABE{}.Bank(), CLABE{}.Plaza(), CLABE{}.Account(), CLABE{}.Last4(),
		card.String(), card.BIN6(), card.BIN8(), card.Last4(),
		CNPJ{}.String(), CNPJ{}.Masked(), CNPJ{}.Root(), CNPJ{}.Order(),
		LEI{}.String(), LEI{}.Issuer(), LEI{}.Entity(), NIT{}.String(),
		fel.String(), uk.String(), uk.Prefix(), uk.Jurisdiction(), uk.Kind(), sec.String(), sec.CIK(), sec.Ticker(),
	} {
		if text != "" {
			t.Errorf("a zero value says %q", text)
		}
	}
	none := Comparison{}
	for i, d := range []Comparison{
		curp.CheckDigit(), NSS{}.CheckDigit(), CLABE{}.CheckDigit(), card.CheckDigit(), CNPJ{}.CheckDigit(),
		LEI{}.CheckDigit(), NIT{}.CheckDigit(), fel.Serie(), fel.Numero(),
	} {
		if d != none {
			t.Errorf("zero value %d compares %v", i, d)
		}
	}
	for i, f := range []*Fault{
		curp.Fault(), NSS{}.Fault(), CLABE{}.Fault(), card.Fault(), CNPJ{}.Fault(), LEI{}.Fault(), NIT{}.Fault(), fel.Fault(),
	} {
		if f != nil {
			t.Errorf("zero value %d has a fault: %v", i, f)
		}
	}
	if (NSS{}).Blank() || fel.Test() || sec.Number() != 0 || card.Length() != 0 || card.Brand() != UnknownBrand {
		t.Error("a zero value claims to be something")
	}
}
