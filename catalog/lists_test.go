package catalog

import (
	"slices"
	"strings"
	"testing"
)

func TestBanks(t *testing.T) {
	banks := Embedded().Banks
	f := func(code, on, spei string, class BankClass, name string, want Standing) {
		t.Helper()
		a, err := banks.On(code, day(on))
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		if a.Row.SPEI != spei || a.Row.Class != class || a.Row.Name() != name || a.Standing != want || a.Version != banks.Version() {
			t.Errorf("%s el %s: %+v", code, on, a)
		}
		if spei == "" {
			return
		}
		if p, err := banks.Participant(spei, day(on)); err != nil || p != a {
			t.Errorf("participante %s: %+v %v", spei, p, err)
		}
	}
	// Participants of March 2026 (table of the reference).
	f("001", "2026-11-20", "02001", CentralBank, "Banxico", InForce)
	f("002", "2026-11-20", "40002", CommercialBank, "Banamex", InForce)
	f("166", "2026-11-20", "37166", DevelopmentBank, "BaBien", InForce)
	f("646", "2026-11-20", "90646", NonBank, "STP", InForce)
	f("738", "2026-11-20", "90738", NonBank, "Fintoc", InForce)
	f("901", "2026-11-20", "90901", NonBank, "Cls", InForce)
	// The list is of 2026-03-25; before it the SAT's validity speaks, and nobody
	// before that.
	f("002", "2026-03-25", "40002", CommercialBank, "Banamex", InForce)
	f("002", "2026-03-24", "40002", CommercialBank, "Banamex", InForce)
	f("002", "2017-01-01", "40002", CommercialBank, "Banamex", InForce)
	f("002", "2016-12-31", "40002", CommercialBank, "Banamex", Unknown)
	f("738", "2026-03-24", "90738", NonBank, "Fintoc", Unknown)
	// IXE: c_Banco states 2017-01-01 to 2017-08-13.
	f("032", "2017-08-13", "", "", "IXE", InForce)
	f("032", "2017-08-14", "", "", "IXE", Ended)
	f("032", "2026-11-20", "", "", "IXE", Ended)
	// Interacciones is open in c_Banco and no participant: it left on a day that
	// nobody states.
	f("037", "2026-03-24", "", "", "INTERACCIONES", Unknown)
	f("037", "2026-03-25", "", "", "INTERACCIONES", Ended)
	f("022", "2020-01-01", "", "", "GE Money Bank", Unknown)
	f("022", "2026-11-20", "", "", "GE Money Bank", Ended)

	for _, key := range []string{"111", "000", "999"} {
		_, err := banks.On(key, now)
		missing(t, err, key)
	}
	for _, key := range []string{"", "2", "02", "0002", "40002", "0a2", "٠٠٢", "00 ", "-02"} {
		_, err := banks.On(key, now)
		problem(t, err, "string_pattern_mismatch", "3 dígitos")
	}
	if a, err := banks.Participant("2001", now); err != nil || a.Row.Code != "001" {
		t.Errorf("2001: %+v %v", a, err)
	}
	_, err := banks.Participant("40805", now) // Banxico Pruebas
	missing(t, err, "40805")
	_, err = banks.Participant("002", now)
	problem(t, err, "string_pattern_mismatch", "5 dígitos")
}

// TestBanksAreThoseOfTheReference: 148 codes, 98 participants, and the relation
// between the two codes of each.
func TestBanksAreThoseOfTheReference(t *testing.T) {
	banks := Embedded().Banks
	codes, participants := 0, 0
	for code, b := range banks.All {
		codes++
		if b.InSPEI {
			participants++
			if b.SPEI[2:] != code {
				t.Errorf("%s: %s", code, b.SPEI)
			}
		}
	}
	if codes != 147 || participants != 98 {
		t.Errorf("%d claves y %d participantes, se esperaban 147 (sin 999) y 98", codes, participants)
	}
	for code, changed := range map[string]bool{"124": true, "138": true, "166": true, "638": true, "002": false, "012": false} {
		if a, _ := banks.On(code, now); a.Row.Changed != changed {
			t.Errorf("%s: Changed %v", code, a.Row.Changed)
		}
	}
	rows := shared(t, "bancos.csv")
	if len(rows) != banks.Version().Rows {
		t.Fatalf("%d renglones", len(rows))
	}
	for _, r := range rows {
		if r["clave_abm"] == notABank {
			continue
		}
		a, err := banks.On(r["clave_abm"], now)
		b := a.Row
		spei := r["clave_spei"]
		if spei == "2001" {
			spei = "02001"
		}
		if err != nil || b.SPEI != spei || b.SPEIName != r["nombre_spei"] || b.SATLegalName != r["sat_razon_social"] ||
			b.SATName != r["sat_nombre_corto"] || b.SATValidity.To.String() != r["sat_vigencia_hasta"] || b.CommonName != r["nombre_comunidad"] {
			t.Errorf("%v\n%+v %v", r, b, err)
		}
	}
}

func TestLookUpsDoNotAllocate(t *testing.T) {
	set := Embedded()
	f := func(name string, lookUp func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, lookUp); n != 0 {
			t.Errorf("%s: %v asignaciones", name, n)
		}
	}
	f("banco", func() { _, _ = set.Banks.On("002", now) })
	f("participante", func() { _, _ = set.Banks.Participant("40002", now) })
	f("plaza", func() { _, _ = set.Plazas.On("180", now) })
	f("régimen", func() { _, _ = set.Regimes.On("601", now) })
	f("uso", func() { _, _ = set.Uses.On("G03", now) })
	f("FIX", func() { _, _ = set.FIX.At(Payment, day("2024-12-31"), now) })
	f("código postal", func() { _, _ = set.Postal.Of("01000") })
}

func TestSAT(t *testing.T) {
	set := Embedded()
	r := func(key string, fisica, moral bool) {
		t.Helper()
		a, err := set.Regimes.On(key, now)
		if err != nil || a.Row.Fisica != fisica || a.Row.Moral != moral || a.Standing != InForce ||
			a.Row.Admits(Fisica) != fisica || a.Row.Admits(Moral) != moral || a.Row.Admits(0) {
			t.Errorf("%s: %+v %v", key, a, err)
		}
	}
	r("601", false, true)
	r("605", true, false)
	r("610", true, true)
	r("616", true, false)
	r("626", true, true)

	// Validity begins on 2022-01-01 for every key of CFDI 4.0.
	if a, err := set.Regimes.On("601", day("2021-12-31")); err != nil || a.Standing != NotYet {
		t.Errorf("601 en 2021: %+v %v", a, err)
	}
	if a, err := set.Regimes.On("601", day("2022-01-01")); err != nil || a.Standing != InForce {
		t.Errorf("601 en 2022: %+v %v", a, err)
	}
	_, err := set.Regimes.On("602", now)
	missing(t, err, "602")
	_, err = set.Regimes.On("1", now)
	problem(t, err, "string_pattern_mismatch", "3 dígitos")

	u := func(key string, fisica, moral bool, regimes string) {
		t.Helper()
		a, err := set.Uses.On(key, now)
		if err != nil || a.Row.Fisica != fisica || a.Row.Moral != moral || strings.Join(a.Row.Regimes, " ") != regimes {
			t.Errorf("%s: %+v %v", key, a, err)
		}
	}
	// The catalogue writes «625,626» without a blank in G01 and G02 only.
	u("G01", true, true, "601 603 606 612 620 621 622 623 624 625 626")
	u("G02", true, true, "601 603 606 612 616 620 621 622 623 624 625 626")
	u("D10", true, false, "605 606 607 608 611 612 614 615 625")
	u("CN01", true, false, "605")
	u("CP01", true, true, "601 603 605 606 607 608 610 611 612 614 615 616 620 621 622 623 624 625 626")
	g03, _ := set.Uses.On("G03", now)
	if !g03.Row.AdmitsRegime("601") || g03.Row.AdmitsRegime("605") || g03.Row.AdmitsRegime("") {
		t.Error("G03 y el régimen del receptor")
	}
	_, err = set.Uses.On("P01", now) // CFDI 3.3
	missing(t, err, "P01")
	for _, key := range []string{"g03", "G3", "G003X", "", "601", "G0Ñ"} {
		_, err = set.Uses.On(key, now)
		problem(t, err, "string_pattern_mismatch", "uso del CFDI")
	}

	p := func(key, text string, banked bool, payer, beneficiary AccountRule) {
		t.Helper()
		a, err := set.PaymentForms.On(key, now)
		if err != nil || a.Row.Text != text || a.Row.Banked != banked || a.Row.Payer != payer || a.Row.Beneficiary != beneficiary {
			t.Errorf("%s: %+v %v", key, a, err)
		}
	}
	p("01", "Efectivo", false, AccountRule{}, AccountRule{})
	p("03", "Transferencia electrónica de fondos", true,
		AccountRule{true, true, "[0-9]{10}|[0-9]{16}|[0-9]{18}"}, AccountRule{true, true, "[0-9]{10}|[0-9]{18}"})
	p("06", "Dinero electrónico", true, AccountRule{true, true, "[0-9]{10}"}, AccountRule{})
	p("99", "Por definir", false, AccountRule{true, true, ""}, AccountRule{true, true, ""})
	transfer, _ := set.PaymentForms.On("03", now)
	check, _ := set.PaymentForms.On("02", now)
	if !transfer.Row.AllowsPaymentChain || check.Row.AllowsPaymentChain || !check.Row.NeedsForeignBankName || check.Row.NeedsOperationNumber {
		t.Errorf("banderas: %+v %+v", transfer.Row, check.Row)
	}
	for _, key := range []string{"07", "09", "10", "11", "16", "18", "22", "32"} {
		_, err = set.PaymentForms.On(key, now)
		missing(t, err, key)
	}
	_, err = set.PaymentForms.On("1", now)
	problem(t, err, "string_pattern_mismatch", "01, no 1")
}

func TestSATIsThatOfTheReference(t *testing.T) {
	set := Embedded()
	for _, r := range shared(t, "sat_c_RegimenFiscal.csv") {
		a, err := set.Regimes.On(r["id"], now)
		if err != nil || a.Row.Text != r["texto"] || a.Row.Fisica != (r["aplica_fisica"] == "1") || a.Row.Moral != (r["aplica_moral"] == "1") ||
			a.Row.From.String() != r["vigencia_desde"] || a.Row.To.String() != r["vigencia_hasta"] {
			t.Errorf("%v\n%+v %v", r, a.Row, err)
		}
	}
	for _, r := range shared(t, "sat_c_UsoCFDI.csv") {
		want := strings.FieldsFunc(r["regimenes_fiscales_receptores"], func(c rune) bool { return c == ',' || c == ' ' })
		slices.Sort(want)
		a, err := set.Uses.On(r["id"], now)
		if err != nil || a.Row.Text != r["texto"] || a.Row.Fisica != (r["aplica_fisica"] == "1") || !slices.Equal(a.Row.Regimes, want) {
			t.Errorf("%v\n%+v %v", r, a.Row, err)
		}
		for _, regime := range want {
			if _, err := set.Regimes.On(regime, now); err != nil {
				t.Errorf("%s nombra el régimen %s: %v", r["id"], regime, err)
			}
		}
	}
	for _, r := range shared(t, "sat_c_FormaPago.csv") {
		a, err := set.PaymentForms.On(r["id"], now)
		if err != nil || a.Row.Text != r["texto"] || a.Row.Banked != (r["es_bancarizado"] == "1") ||
			a.Row.Payer.Pattern != strings.Replace(r["patron_cuenta_ordenante"], anything, "", 1) ||
			a.Row.Beneficiary.Pattern != strings.Replace(r["patron_cuenta_beneficiario"], anything, "", 1) {
			t.Errorf("%v\n%+v %v", r, a.Row, err)
		}
	}
}

func TestPlazas(t *testing.T) {
	plazas := Embedded().Plazas
	f := func(code, towns string) {
		t.Helper()
		a, err := plazas.On(code, now)
		var got []string
		for _, town := range a.Row.Towns {
			got = append(got, strings.TrimSpace(town.Name+" "+town.State))
		}
		if err != nil || strings.Join(got, "; ") != towns || a.Standing != InForce {
			t.Errorf("%s: %v %v", code, got, err)
		}
	}
	f("010", "Aguascalientes MX-AGU")
	f("027", "Tecate MX-BCN; Tijuana")
	f("028", "La Mesa; Playas de Rosarito MX-BCN; Tijuana")
	f("078", "Saltillo MX-COA")
	f("294", "Ciudad Sahagún MX-HID; Teocaltiche") // Teocaltiche is in Jalisco
	f("542", "Cuautla MX-MOR; Oaxtepec, Morelos")
	f("975", "Ciudad de México MX-CMX")
	if a, _ := plazas.On("180", now); len(a.Row.Towns) != 16 {
		t.Errorf("la plaza 180 tiene %d poblaciones", len(a.Row.Towns))
	}
	_, err := plazas.On("539", now) // clabe-validator: digit right, plaza unknown
	missing(t, err, "539")
	_, err = plazas.On("10", now)
	problem(t, err, "string_pattern_mismatch", "3 dígitos")
	if a, _ := plazas.On("010", day("2026-02-26")); a.Standing != Unknown {
		t.Error("la recopilación no habla de días anteriores")
	}

	// 725 codes of the shared table and the 63 below 100 that it left out.
	codes := 0
	for range plazas.All {
		codes++
	}
	if codes != 788 {
		t.Errorf("%d plazas", codes)
	}
	rows := shared(t, "clabe_plazas.csv")
	if len(rows) != 815 {
		t.Fatalf("%d renglones", len(rows))
	}
	for _, r := range rows {
		a, err := plazas.On(r["plaza"], now)
		if err != nil || !slices.Contains(a.Row.Towns, Town{r["nombre"], r["estado_iso3166_2"]}) {
			t.Errorf("%v: %+v %v", r, a.Row, err)
		}
	}
}

func TestPostal(t *testing.T) {
	postal := Embedded().Postal
	f := func(code, state, name string) {
		t.Helper()
		p, err := postal.Of(code)
		if err != nil || p.Code != code || p.State != state || p.StateName != name || p.Loaded || p.Version.ID != "cp_prefijos" {
			t.Errorf("%s: %+v %v", code, p, err)
		}
	}
	f("01000", "CMX", "Ciudad de México")
	f("16999", "CMX", "Ciudad de México")
	f("17000", "", "") // a prefix that no state uses: not refused
	f("20000", "AGU", "Aguascalientes")
	f("44100", "JAL", "Jalisco")
	f("64000", "NLE", "Nuevo León")
	f("77500", "ROO", "Quintana Roo")
	f("99999", "ZAC", "Zacatecas")
	_, err := postal.Of("00100")
	problem(t, err, "string_pattern_mismatch", "00")
	for _, code := range []string{"", "1000", "010000", "0100O", "٠١٠٠٠"} {
		_, err = postal.Of(code)
		problem(t, err, "string_pattern_mismatch", "5 dígitos")
	}
	states := map[string]bool{}
	for _, s := range postal.states {
		if s.code != "" {
			states[s.code] = true
		}
	}
	if len(states) != 32 {
		t.Errorf("%d estados", len(states))
	}
}
