package checks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// synthetic is gt_fel_dte_sintetico.xml, written after two published samples and
// not signed.
func synthetic(t testing.TB) string {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", "fel.xml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// changed replaces the first of each pair, which must be there, by the second.
func changed(t testing.TB, doc string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(doc, pairs[i]) {
			t.Fatalf("the document has no %s", pairs[i])
		}
		doc = strings.ReplaceAll(doc, pairs[i], pairs[i+1])
	}
	return doc
}

func TestFELFacts(t *testing.T) {
	got, changes, err := ReadFEL([]byte(synthetic(t)))
	if err != nil || changes != 0 || got.Fault() != nil {
		t.Fatalf("%v %v %v", err, changes.Names(), got.Fault())
	}
	if got.Encoding != "UTF-8" || got.Version != "0.1" || got.Type != "FACT" || got.Issued != "2026-03-02T10:15:00-06:00" ||
		got.Currency != "GTQ" || got.Branch != "1" || got.Trade != "Emisor Sintetico" || got.Items != 1 || got.Total != "100.000000" ||
		got.Certified != "2026-03-02T10:15:03-06:00" || got.Signatures != 0 || got.Test() {
		t.Errorf("%+v", got)
	}
	for _, p := range []struct{ got, want FELParty }{
		{got.Issuer, FELParty{"576937K", "Emisor Sintetico, Sociedad Anonima", PartyNIT, Comparison{"K", "K"}}},
		{got.Receiver, FELParty{"CF", "CONSUMIDOR FINAL", PartyConsumer, Comparison{}}},
		{got.Certifier, FELParty{"16693949", "Superintendencia de Administracion Tributaria", PartyNIT, Comparison{"9", "9"}}},
	} {
		if p.got != p.want {
			t.Errorf("%+v; want %+v", p.got, p.want)
		}
	}
	a := got.Authorization
	if got.String() != "0B6E2D14-7C3A-4F19-9A02-1E5D4C3B2A10" || a.Serie() != (Comparison{"0B6E2D14", "0B6E2D14"}) || a.Numero() != (Comparison{"2084196121", "2084196121"}) {
		t.Errorf("%v %v %v", a, a.Serie(), a.Numero())
	}
}

// TestFELAuthorizations puts the vectors of Serie, Numero and UUID into a
// document: they give there what they give alone.
func TestFELAuthorizations(t *testing.T) {
	doc := synthetic(t)
	f := func(uuid, serie, numero, code string, test bool) {
		t.Helper()
		got, _, err := ReadFEL([]byte(changed(t, doc, ">0B6E2D14-7C3A-4F19-9A02-1E5D4C3B2A10<", ">"+uuid+"<",
			`Serie="0B6E2D14"`, `Serie="`+serie+`"`, `Numero="2084196121"`, `Numero="`+numero+`"`)))
		if err != nil || got.Test() != test {
			t.Fatalf("%s: test %v, %v", uuid, got.Test(), err)
		}
		switch fault := got.Fault(); {
		case code == "" && fault != nil, code != "" && (fault == nil || fault.Code != code):
			t.Errorf("%s %s %s: %+v; want %s", uuid, serie, numero, fault, code)
		}
	}
	f("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "D412A347", "2535474368", "", false)          // published FEL parser test fixture
	f("B18CF427-0889-5925-8EB3-CC1FD31B98E4", "B18CF427", "143218981", "", false)           // synthetic, computed
	f("5AC1F2F2-40CF-4703-8116-1AC282EB1306", "PRUEBAS", "1087325955", "", true)            // published sample
	f("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "D412A347", "2535474369", FaultNumero, false) // derived
	f("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "D412A348", "2535474368", FaultSerie, false)  // derived
	f("A1B2C3-987654321", "A1B2C3", "987654321", FaultAuthorization, false)                 // derived from a public demo
	f("D412A347-9720-44C0-A9CC-FDE068F0A2E7", "PRUEBAS", "2535474369", FaultNumero, true)
	f(" d412a347-9720-44c0-a9cc-fde068f0a2e7 ", "d412a347", "2535474368", "", false)
}

func TestFELFaults(t *testing.T) {
	doc := synthetic(t)
	const ask = " Pida el XML certificado al emisor."
	f := func(code, rule string, pairs ...string) {
		t.Helper()
		got, _, err := ReadFEL([]byte(changed(t, doc, pairs...)))
		if err != nil {
			t.Fatal(err)
		}
		faultIs(t, pairs[1], got.Fault(), code, rule)
	}
	lacks := func(rule string, pairs ...string) { t.Helper(); f(FaultStructure, rule+ask, pairs...) }

	// Structure: what is missing, empty, twice, or elsewhere.
	lacks("SAT no tiene DTE.", "dte:DTE", "dte:OTRO")
	lacks("DTE no tiene Certificacion.", "dte:Certificacion>", "dte:Otra>")
	lacks("DTE no tiene Certificacion.", "<dte:Certificacion>", `<x:Certificacion xmlns:x="urn:x">`, "</dte:Certificacion>", "</x:Certificacion>")
	lacks("DTE tiene más de un DatosEmision.", "<dte:Certificacion>", "<dte:DatosEmision/><dte:Certificacion>")
	lacks("Certificacion tiene más de un NumeroAutorizacion.", "<dte:FechaHoraCertificacion>", "<dte:NumeroAutorizacion/><dte:FechaHoraCertificacion>")
	lacks("DatosGenerales no tiene el atributo Tipo.", `Tipo="FACT"`, "")
	lacks("El atributo NITEmisor de Emisor está vacío.", `"576937K"`, `" "`)
	lacks("Emisor no tiene DireccionEmisor.", "dte:DireccionEmisor", "dte:Direcciones")
	lacks("Receptor no tiene el atributo NombreReceptor.", `NombreReceptor=`, `Nombre=`)
	lacks("Items no tiene Item.", "dte:Item ", "dte:Renglon ", "dte:Item>", "dte:Renglon>")
	lacks("Item no tiene PrecioUnitario.", "dte:PrecioUnitario>", "dte:Unitario>")
	lacks("BienOServicio de un Item es B o S; tiene «X».", `BienOServicio="B"`, `BienOServicio="X"`)
	lacks("GranTotal lleva un número, como 100.00; tiene «1e2».", "<dte:GranTotal>100.000000", "<dte:GranTotal>1e2")
	lacks("GranTotal lleva un número, como 100.00; tiene «١٠٠».", "<dte:GranTotal>100.000000", "<dte:GranTotal>١٠٠")
	lacks("GranTotal lleva un número, como 100.00; tiene «100.».", "<dte:GranTotal>100.000000", "<dte:GranTotal>100.")
	lacks("GranTotal está vacío.", "<dte:GranTotal>100.000000", "<dte:GranTotal> ")
	lacks("NumeroAutorizacion está vacío.", ">0B6E2D14-7C3A-4F19-9A02-1E5D4C3B2A10<", "><")
	lacks("El atributo Serie de NumeroAutorizacion está vacío.", `Serie="0B6E2D14"`, `Serie=""`)

	// Days and hours that do not exist.
	const exists = " no es una fecha y hora que exista, como 2026-03-02T10:15:00-06:00; pida el XML certificado al emisor."
	f(FaultDate, "FechaHoraEmision: «2026-02-30T10:15:00-…»"+exists, `"2026-03-02T10:15:00-06:00"`, `"2026-02-30T10:15:00-06:00"`)
	f(FaultDate, "FechaHoraEmision: «2026-03-02T25:15:00»"+exists, `"2026-03-02T10:15:00-06:00"`, `"2026-03-02T25:15:00"`)
	f(FaultDate, "FechaHoraEmision: «2026-03-02»"+exists, `"2026-03-02T10:15:00-06:00"`, `"2026-03-02"`)
	f(FaultDate, "FechaHoraEmision: «2100-02-29T00:00:00»"+exists, `"2026-03-02T10:15:00-06:00"`, `"2100-02-29T00:00:00"`)
	f(FaultDate, "FechaHoraCertificacion: «2026-03-02T1:15:03»"+exists, ">2026-03-02T10:15:03-06:00<", ">2026-03-02T1:15:03<")
	f("", "", `"2026-03-02T10:15:00-06:00"`, `"2026-03-02T10:15:00"`) // published samples have no offset
	f("", "", `"2026-03-02T10:15:00-06:00"`, `"2026-03-02T10:15:00.000-06:00"`)

	// The NIT of both sides.
	f(FaultIssuer, "El NIT del emisor termina en 1 y según su algoritmo el dígito verificador es K: revise que ningún carácter haya cambiado al copiar.",
		`"576937K"`, `"5769371"`)
	f(FaultIssuer, "NITEmisor: «CF» no es un NIT: CF es consumidor final; envíe el NIT de un contribuyente.", `"576937K"`, `"CF"`)
	f(FaultReceiver, "El NIT del receptor termina en K y según su algoritmo el dígito verificador es 0: revise que ningún carácter haya cambiado al copiar.",
		`"CF"`, `"7108K"`)
	f(FaultReceiver, "IDReceptor: «FF12» no es un NIT: el carácter 1 es «F»; lleva dígitos del 0 al 9, y en el último lugar un dígito o K.", `"CF"`, `"FF12"`)
	f(FaultReceiver, "IDReceptor: «123» no es un CUI, que lleva 13 dígitos; revise TipoEspecial y el número.", `"CF"`, `"123" TipoEspecial="CUI"`)
	f("", "", `"CF"`, `"800000001026"`) // a public test issuer
	f("", "", `"CF"`, `"3-37772-5"`)
	f("", "", `"CF"`, `"2345678900101" TipoEspecial="CUI"`)
	f("", "", `"CF"`, `"2345678900101"`)
	f("", "", `"CF"`, `"X-12/34" TipoEspecial="EXT"`)
	f("", "", `"CF"`, `"X-12/34" TipoEspecial="PAS"`)

	// Of several faults the structure is told first, then the order of Fault.
	f(FaultDate, "FechaHoraEmision: «hoy»"+exists, `"2026-03-02T10:15:00-06:00"`, `"hoy"`, `"576937K"`, `"1"`, `Serie="0B6E2D14"`, `Serie="00000000"`)
	f(FaultIssuer, "NITEmisor: «1» no es un NIT: tiene 1 carácter; lleva de 2 a 12 caracteres, el último el dígito verificador.",
		`"576937K"`, `"1"`, `Serie="0B6E2D14"`, `Serie="00000000"`)
}

// TestFELWhereItStands: the document is found by its namespace, whatever wraps it
// and whatever its prefix; what belongs to others is passed over.
func TestFELWhereItStands(t *testing.T) {
	doc := synthetic(t)
	_, bare, _ := strings.Cut(doc, "?>")
	f := func(name, doc string, signatures int, encoding string) {
		t.Helper()
		got, _, err := ReadFEL([]byte(doc))
		if err != nil || got.Fault() != nil || got.Signatures != signatures || got.Encoding != encoding || got.String() == "" {
			t.Errorf("%s: %v, %v, %d signatures, %s", name, err, got.Fault(), got.Signatures, got.Encoding)
		}
	}
	f("wrapped", "<Resultado><x/>"+bare+"<y/></Resultado>", 0, "UTF-8")
	f("other prefix", changed(t, doc, "dte:", "g:", "xmlns:dte=", "xmlns:g="), 0, "UTF-8")
	f("default namespace", changed(t, doc, "<dte:", "<", "</dte:", "</", "xmlns:dte=", "xmlns="), 0, "UTF-8")
	f("signed", changed(t, doc, "</dte:SAT>", "</dte:SAT><ds:Signature><ds:SignedInfo/></ds:Signature><ds:Signature/>"), 2, "UTF-8")
	f("adenda and complement", changed(t, doc, "</dte:DTE>", "</dte:DTE><dte:Adenda><DTE><NITEmisor>1</NITEmisor></DTE></dte:Adenda>",
		"</dte:DatosEmision>", "<dte:Complementos><dte:Complemento><cno:Referencia/></dte:Complemento></dte:Complementos></dte:DatosEmision>"), 0, "UTF-8")
	f("latin 1", changed(t, doc, "UTF-8", "ISO-8859-1", "Sociedad Anonima", "Sociedad An\xf3nima"), 0, "ISO-8859-1")
}

func TestFELProblems(t *testing.T) {
	doc := synthetic(t)
	_, bare, _ := strings.Cut(doc, "?>")
	f := func(doc, kind, rule string) {
		t.Helper()
		got, changes, err := ReadFEL([]byte(doc))
		var p *Problem
		if !errors.As(err, &p) || p.Type != kind || p.Rule != rule {
			t.Errorf("%.80q:\n got %v\nwant %s %s", doc, err, kind, rule)
		}
		if got != (FEL{}) || changes != 0 {
			t.Errorf("%.80q: a document beside an error: %+v", doc, got)
		}
	}
	f("", valueError, "El documento no se puede leer: XML, línea 1: no hay ningún elemento; envíe el documento completo.")
	f("{}", valueError, "El documento no se puede leer: XML, línea 1: hay texto fuera del elemento raíz; quítelo.")
	f(strings.Replace(doc, "?>", `?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>`, 1), valueError,
		"El documento no se puede leer: XML, línea 1: no se admiten DOCTYPE, ENTITY ni otras declaraciones; quítelas.")
	f(changed(t, doc, `Tipo="FACT"`, `Tipo="FACT" Tipo="NCRE"`), valueError,
		"El documento no se puede leer: XML, línea 2: «dte:DatosGenerales» repite el atributo «Tipo».")
	f(doc+"<x/>", valueError, "El documento no se puede leer: XML, línea 3: hay un segundo elemento raíz; envíe un solo documento.")
	f(changed(t, doc, ">Articulo de prueba<", "><b/><"), valueError,
		"El documento no se puede leer: XML, línea 2: «dte:Descripcion» lleva solo texto y tiene dentro «b».")
	const none = "El XML no es un documento FEL: no tiene el elemento GTDocumento del espacio de nombres http://www.sat.gob.gt/dte/fel/0.2.0; envíe el XML certificado."
	f("<a><b/></a>", valueError, none)
	f(changed(t, doc, "dte/fel/0.2.0", "dte/fel/0.1.0"), valueError, none)
	f("<a>"+bare+bare+"</a>", valueError, "El XML tiene más de un GTDocumento; envíe un documento a la vez.")
	f(strings.Repeat("<a>", 33), stringTooLong, "El documento no se puede leer: XML, línea 1: hay más de 32 elementos uno dentro de otro.")
	f(doc+strings.Repeat(" ", 2<<20), stringTooLong, "El documento no se puede leer: XML, línea 1: el documento ocupa 2099511 bytes y se admiten 2097152.")
}

func FuzzReadFEL(f *testing.F) {
	doc := []byte(synthetic(f))
	f.Add(doc)
	f.Add(bytes.ReplaceAll(doc, []byte("576937K"), []byte("1")))
	f.Add([]byte(`<GTDocumento xmlns="http://www.sat.gob.gt/dte/fel/0.2.0"/>`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, _, err := ReadFEL(doc)
		var p *Problem
		switch {
		case err != nil && (!errors.As(err, &p) || len(p.Rule) > 600 || got != FEL{}):
			t.Fatalf("%q: %v", doc, err)
		case err != nil:
		case got.Fault() == nil && (got.String() == "" || !got.Issuer.Digit.Matches() || got.Issuer.Digit.Found == "" || got.Items == 0 || got.Receiver.Kind == ""):
			t.Fatalf("%q: no fault in %+v", doc, got)
		case got.Fault() != nil && (got.Fault().Code == "" || len(got.Fault().Rule) > 600):
			t.Fatalf("%q: %+v", doc, got.Fault())
		}
	})
}
