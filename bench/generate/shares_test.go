package generate

import (
	"strings"
	"testing"

	"cotejo/query"
)

// between fails when the share of n in of, in a million, is out of bounds.
func between(t *testing.T, what string, n, of, low, high int) {
	t.Helper()
	if of == 0 || n*1_000_000 < low*of || n*1_000_000 > high*of {
		t.Errorf("%s: %d of %d, expected %d to %d of a million", what, n, of, low, high)
	}
}

// count counts the cells for which is says so.
func count(cells []string, is func(c string) bool) (n int) {
	for _, c := range cells {
		if is(c) {
			n++
		}
	}
	return n
}

func equals(want string) func(string) bool { return func(c string) bool { return c == want } }
func contains(part string) func(string) bool {
	return func(c string) bool { return strings.Contains(c, part) }
}

// TestSharesOf69B: the list as it was measured in 2022 and January 2026.
func TestSharesOf69B(t *testing.T) {
	dir, m := made(t, 7, 1, "sat_69b")
	titles, rows := records(t, content(t, dir, "sat_69b"))
	f := m.Files[0]
	if f.Rows != rows69B || f.RFCs != rows69B-redacted69B-again69B || f.Bytes/int64(f.Rows) < 280 || f.Bytes/int64(f.Rows) > 360 {
		t.Errorf("%+v", f)
	}
	situations := cells(t, titles, rows, "Situación del contribuyente")
	between(t, "definitive", count(situations, equals("Definitivo")), len(rows), 770_000, 810_000)
	between(t, "presumed", count(situations, equals("Presunto")), len(rows), 58_000, 78_000)
	between(t, "cleared", count(situations, equals("Desvirtuado")), len(rows), 18_000, 30_000)
	between(t, "with a ruling", count(situations, equals("Sentencia Favorable")), len(rows), 105_000, 140_000)

	rfcs := cells(t, titles, rows, "RFC")
	if n := count(rfcs, equals("XXXXXXXXXXXX")); n != redacted69B {
		t.Errorf("%d redacted rows", n)
	}
	seen, again, persons := distinct(rfcs), 0, 0
	procedures := map[string]bool{}
	oficios := cells(t, titles, rows, "Número y fecha de oficio global de presunción SAT")
	for i, rfc := range rfcs {
		if key := rfc + oficios[i]; rfc != "XXXXXXXXXXXX" && procedures[key] {
			t.Errorf("%s twice", key)
		} else {
			procedures[key] = true
		}
	}
	for rfc, n := range seen {
		if n > 1 {
			again++
		}
		if len([]rune(rfc)) == 13 {
			persons++
		}
	}
	between(t, "RFCs in several rows", again, len(seen), 4_000, 6_000)
	between(t, "individuals", persons, len(seen), 210_000, 260_000)
	between(t, "RFCs with &", count(rfcs, contains("&")), len(rows), 300, 1_500)
	between(t, "RFCs with Ñ", count(rfcs, contains("Ñ")), len(rows), 300, 1_500)

	names := cells(t, titles, rows, "Nombre del Contribuyente")
	between(t, "notes in names", count(names, contains("//")), len(rows), 2_000, 4_500)
	between(t, "line ends in names", count(names, contains("\n")), len(rows), 60, 600)
	between(t, "typographic quotes", count(names, contains("“")), len(rows), 400, 1_800)
	between(t, "no-break spaces", count(names, contains("\u00a0")), len(rows), 3_000, 6_500)

	filled, several, serial, short, days, future := 0, 0, 0, 0, 0, 0
	for _, title := range titles[4:] {
		if !strings.HasPrefix(title, "Publicación") {
			continue
		}
		for _, c := range cells(t, titles, rows, title) {
			if c == "" {
				continue
			}
			filled++
			switch {
			case len(c) > 10:
				several++
			case len(c) == 5:
				serial++
			case len(c) == 8:
				short++
			case len(c) == 10 && c[2] == '/' && c[5] == '/':
				days++
				if c[6:]+c[3:5]+c[:2] > "20260831" {
					future++
				}
			}
		}
	}
	if future > 0 {
		t.Errorf("%d days are after the corte", future)
	}
	between(t, "dd/mm/yyyy", days, filled, 990_000, 999_500)
	between(t, "several days in a cell", several, filled, 1_200, 5_000)
	between(t, "Excel serials", serial, filled, 1, 300)
	between(t, "two-digit years", short, filled, 1, 1_000)
}

// TestSharesOfArticle69: sizes, repetition and dates of the lists.
func TestSharesOfArticle69(t *testing.T) {
	total := 0
	for _, l := range art69 {
		total += l.rows
	}
	if total < 700_000 || total > 760_000 || len(art69) != len(query.Art69Lists)-1 {
		t.Errorf("%d rows in %d lists", total, len(art69))
	}
	dir, _ := made(t, 7, 0.1, "sat_69b", "sat_art69_firmes", "sat_art69_entes_publicos_omisos", "sat_art69_cancelados", "sat_art69_csd_sin_efectos", "compranet_2024")
	rfcsOf := func(source string) map[string]int {
		titles, rows := records(t, content(t, dir, source))
		return distinct(cells(t, titles, rows, "RFC"))
	}
	titles, rows := records(t, content(t, dir, "sat_art69_firmes"))
	equal := map[string]int{}
	for _, r := range rows {
		equal[strings.Join(r, "|")]++
	}
	between(t, "rows equal to another", len(rows)-len(equal), len(rows), 5_000, 12_000)
	dates := cells(t, titles, rows, "FECHA DE PRIMERA PUBLICACION")
	between(t, "the placeholder day", count(dates, func(c string) bool { return c == "01/01/2014" || c == "1/1/2014" }), len(rows), 120_000, 180_000)
	between(t, "on the 1st or 16th", count(dates, func(c string) bool {
		return strings.HasPrefix(c, "01/") || strings.HasPrefix(c, "16/") || strings.HasPrefix(c, "1/")
	}), len(rows), 1_000_000, 1_000_000)
	between(t, "legal entities", count(cells(t, titles, rows, "TIPO PERSONA"), equals("M")), len(rows), 500_000, 620_000)
	between(t, "neither SUPUESTO nor person type", count(cells(t, titles, rows, "SUPUESTO"), equals("")), len(rows), 30, 600)

	titles, rows = records(t, content(t, dir, "sat_art69_cancelados"))
	between(t, "amounts with commas", count(cells(t, titles, rows, "MONTO"), contains(",")), len(rows), 800_000, 1_000_000)
	when, then := cells(t, titles, rows, "FECHA DE CANCELACION"), cells(t, titles, rows, "FECHA DE PUBLICACION")
	iso := func(c string) string { return c[6:] + c[3:5] + c[:2] }
	for i := range rows {
		if iso(when[i]) >= iso(then[i]) || iso(then[i]) > "20260831" {
			t.Fatalf("cancelled on %s, published on %s", when[i], then[i])
		}
	}
	if bodies := rfcsOf("sat_art69_entes_publicos_omisos"); len(bodies) != 60 {
		t.Errorf("%d public bodies", len(bodies))
	}

	shared := func(a, b map[string]int) (n int) {
		for rfc := range a {
			if b[rfc] > 0 {
				n++
			}
		}
		return n
	}
	presumed, firm, sealless, contractors := rfcsOf("sat_69b"), rfcsOf("sat_art69_firmes"), rfcsOf("sat_art69_csd_sin_efectos"), rfcsOf("compranet_2024")
	between(t, "of 69-B in Firmes", shared(presumed, firm), len(presumed), 250_000, 350_000)
	between(t, "of 69-B without seals", shared(presumed, sealless), len(presumed), 400_000, 500_000)
	between(t, "contractors under 69-B", shared(contractors, presumed), len(contractors), 500, 6_000)
	between(t, "contractors in Firmes", shared(contractors, firm), len(contractors), 4_000, 20_000)
}

// TestSharesOfContracts: what was measured in the files of 2018 to 2022 and of 2025.
func TestSharesOfContracts(t *testing.T) {
	rows := 0
	for _, y := range years {
		rows += y.rows
	}
	if rows != 2_500_000 {
		t.Errorf("%d rows at scale 1", rows)
	}
	dir, _ := made(t, 7, 0.05, "compranet_2019", "compranet_2025")
	f := func(source, code, signed, partida string) (titles []string, all [][]string) {
		official := content(t, dir, source)
		titles, all = records(t, official)
		n := len(all)
		between(t, source+": without signature", count(cells(t, titles, all, signed), equals("")), n, 330_000, 560_000)
		between(t, source+": bundled", count(cells(t, titles, all, partida), contains(", ")), n, 180_000, 220_000)
		between(t, source+": without publication", count(cells(t, titles, all, "Fecha de publicación"), equals("")), n, 110_000, 140_000)
		between(t, source+": without award", count(cells(t, titles, all, "Fecha de fallo"), equals("")), n, 180_000, 220_000)
		codes := map[string]int{}
		for _, c := range cells(t, titles, all, code) {
			codes[c]++
		}
		between(t, source+": amendments", n-len(codes), n, 30_000, 50_000)
		between(t, source+": from abroad", count(cells(t, titles, all, "RFC"), func(c string) bool { return strings.HasPrefix(c, "EXT") }), n, 3_000, 12_000)
		between(t, source+": quotes that nobody escaped", strings.Count(string(official), ` "DR. BELINAGA M`), n, 10_000, 60_000)
		if strings.Contains(string(official), `""DR.`) {
			t.Errorf("%s: they are escaped", source)
		}
		return titles, all
	}
	titles, all := f("compranet_2019", "Código del contrato", "Fecha de firma del contrato", "Clave CUCOP")
	if len(titles) != 44 {
		t.Errorf("%d titles", len(titles))
	}
	between(t, "with RFC", count(cells(t, titles, all, "RFC"), func(c string) bool { return c != "" }), len(all), 660_000, 680_000)
	between(t, "GMT", count(cells(t, titles, all, "Fecha de fin del contrato"), contains(" GMT")), len(all), 80_000, 120_000)

	titles, all = f("compranet_2025", "Código del contrato", "Fecha de firma del contrato", "Partida específica")
	if n := count(cells(t, titles, all, "rfc"), equals("")); n > 0 {
		t.Errorf("%d rows of 2025 without RFC", n)
	}
	between(t, "cells of several lines", count(cells(t, titles, all, "Descripción del contrato"), contains("\n")), len(all), 6_000, 14_000)
	between(t, "supplier names in small letters", count(cells(t, titles, all, "Proveedor o contratista"), func(c string) bool { return c != strings.ToUpper(c) }), len(all), 270_000, 330_000)
	begins, signs := cells(t, titles, all, "Fecha de inicio del contrato"), cells(t, titles, all, "Fecha de firma del contrato")
	for i := range all {
		if begins[i][2] != '/' || signs[i] != "" && signs[i][4] != '-' {
			t.Fatalf("%q, %q", begins[i], signs[i])
		}
	}
}

// TestSkewOfSuppliers: a few have thousands of contracts and most one to three.
func TestSkewOfSuppliers(t *testing.T) {
	shares := newGenerator(1, 1).shares()
	few, before := 0, uint32(0)
	for _, sum := range shares {
		if sum-before <= 3 {
			few++
		}
		before = sum
	}
	if shares[0] != heaviest || len(shares) < 200_000 {
		t.Errorf("the first has %d of %d parts, there are %d suppliers", shares[0], before, len(shares))
	}
	between(t, "at most three", few, len(shares), 730_000, 770_000)
	between(t, "of the first", int(shares[0]), int(before), 9_000, 10_000)
	between(t, "of the first hundred", int(shares[99]), int(before), 180_000, 300_000)
}
