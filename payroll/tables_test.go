package payroll

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cotejo/civil"
)

func TestTablesAreHashedAndHaveNoGap(t *testing.T) {
	all := Tables()
	if len(all) != 46 {
		t.Fatalf("%d versions; want 46", len(all))
	}
	files, err := filepath.Glob(filepath.Join("data", "*", "*.csv"))
	if err != nil || len(files) != len(all) {
		t.Fatalf("%d files, %d versions, %v", len(files), len(all), err)
	}
	for i, v := range all {
		content, err := os.ReadFile(filepath.Join("data", v.File))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); v.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: sha256 %s is not the file's", v.File, v.SHA256)
		}
		if v.Table+"/"+v.Version+".csv" != v.File || v.LegalBasis == "" || v.Source == "" || v.Verification == "" {
			t.Errorf("%s is not complete: %+v", v.File, v)
		}
		if i == 0 || all[i-1].Table != v.Table {
			continue
		}
		if all[i-1].To.IsZero() || all[i-1].To.Days(v.From) != 1 {
			t.Errorf("%s ends on %s and %s begins on %s", all[i-1].File, all[i-1].To, v.File, v.From)
		}
	}
}

// TestYearlyTablesEnd holds that no figure of a year outlives it.
func TestYearlyTablesEnd(t *testing.T) {
	f := func(name string, versions []Version, want string) {
		t.Helper()
		if got := versions[len(versions)-1].To.String(); got != want {
			t.Errorf("%s ends on %q; want %q", name, got, want)
		}
	}
	f("uma", list(umaTable), "2027-01-31")
	f("salario_minimo", list(minimumWage), "2026-12-31")
	f("isr_tarifa", list(isrTable), "2026-12-31")
	f("subsidio_empleo", list(subsidyTable), "2026-12-31")
	f("ceav_patronal", list(ceavTable), "")
	f("vacaciones", list(vacationTable), "")
}

// TestUMALaw checks article 4: monthly = daily × 30.4, annual = monthly × 12.
func TestUMALaw(t *testing.T) {
	for i := range umaTable {
		u := umaTable[i].figures
		if monthly := centavosOf(product(money(u.daily), rat("30.4"))); monthly != u.monthly || 12*monthly != u.annual {
			t.Errorf("%s: %s daily gives %s monthly; the table says %s, %s annual", umaTable[i].File, u.daily, monthly, u.monthly, u.annual)
		}
	}
}

// TestVacationLaw recomputes LFT 76 for every year of service.
func TestVacationLaw(t *testing.T) {
	for n := 1; n <= MaxYears+1; n++ {
		want := []int{12, 14, 16, 18, 20, 22}[min(n, 6)-1]
		if n > 6 {
			want = 22 + 2*((n-6)/5)
		}
		if got := vacationTable[1].figures.days(n); got != want {
			t.Errorf("year %d: %d days; want %d", n, got, want)
		}
	}
}

// TestTariffs is the self-check of every tariff: it covers every centavo once,
// it is continuous, rates rise, and the shorter periods are the monthly tariff
// divided by 30.4, rounded by day and multiplied by the days.
func TestTariffs(t *testing.T) {
	for i := range isrTable {
		v := &isrTable[i]
		if len(v.figures) != len(Periods) {
			t.Errorf("%s has %d periods", v.File, len(v.figures))
		}
		for _, p := range Periods {
			tariff := v.figures[p]
			if len(tariff) != 11 || tariff[0].lower != 1 || tariff[0].fee != 0 || tariff[10].upper != 0 {
				t.Fatalf("%s %s has no beginning or no end", v.File, p)
			}
			days := 1
			if d, _ := p.days10(); d < monthDays10 && p != Annual {
				days = int(d / 10)
			}
			for k := 1; k < len(tariff); k++ {
				a, b := &tariff[k-1], &tariff[k]
				if b.lower != a.upper+1 || b.rate <= a.rate {
					t.Errorf("%s %s, line %d: from %s at %s after %s at %s", v.File, p, k+1, b.lower, b.percent, a.upper, a.percent)
				}
				// Two centavos as published; the periods made of days repeat what their day
				// lost, limits and fees together less than a centavo each day.
				reached := plus(money(a.fee), over(product(money(a.upper-a.lower), rat(a.percent)), ints(100)))
				jump := new(big.Rat).Sub(money(b.fee), reached)
				if jump.Abs(jump).Cmp(big.NewRat(int64(max(2, days)), 100)) > 0 {
					t.Errorf("%s %s, line %d: the fee jumps by %s", v.File, p, k+1, jump.FloatString(4))
				}
			}
			if p == Monthly || p == Annual {
				continue
			}
			for k, m := range v.figures[Monthly] {
				upper := Pesos(days) * centavosOf(over(money(m.upper), rat("30.4")))
				fee := Pesos(days) * centavosOf(over(money(m.fee), rat("30.4")))
				if s := tariff[k]; s.upper != upper || s.fee != fee || s.rate != m.rate {
					t.Errorf("%s %s, line %d: %s, %s at %s; the rule gives %s, %s", v.File, p, k+1, s.upper, s.fee, s.percent, upper, fee)
				}
			}
		}
	}
}

func TestReadVersionRefusesWhatIsBroken(t *testing.T) {
	const good = "# tabla: uma\n# version: 2026\n# vigencia_desde: 2026-02-01\n# vigencia_hasta:\n# fundamento: L\n# fuente: F\n# verificacion: V\ndiario\n1.00\n"
	f := func(old, replacement, want string) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("%q for %q: %s; want %q", replacement, old, got, want)
			}
		}()
		_, r := readVersion("uma/2026.csv", []byte(strings.Replace(good, old, replacement, 1)))
		r.pesos(r.lines[0], "diario")
	}
	f("", "", "<nil>")
	f("# version: 2026\n", "", "line 2 is not version")
	f("2026-02-01", "2026-02-30", "no pair of dates")
	f("hasta:", "hasta: 2026-01-31", "not complete")
	f("# fuente: F", "# fuente:", "not complete")
	f("1.00\n", "", "no rows")
	f("1.00", "1.00,2", "no rows")
	f("1.00", "1.005", "«diario» debe ser un número")
	f("diario\n", "mensual\n", "no column diario")
}

func TestVersionsMustFollowEachOther(t *testing.T) {
	f := func(to, from, file, want string) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("%s, %s: %s; want %q", to, from, got, want)
			}
		}()
		var end civil.Date
		if to != "" {
			end = day(to)
		}
		// In the wrong order, as a folder may list them.
		table[uma]{
			{Version: Version{Table: "uma", Version: "2", From: day(from), File: file}},
			{Version: Version{Table: "uma", Version: "1", From: day("2024-01-01"), To: end, File: "uma/1.csv"}},
		}.order("uma")
	}
	f("2024-12-31", "2025-01-01", "uma/2.csv", "<nil>")
	f("2024-12-31", "2025-01-02", "uma/2.csv", "does not begin")
	f("2025-01-01", "2025-01-01", "uma/2.csv", "does not begin")
	f("", "2025-01-01", "uma/2.csv", "does not begin")
	f("2024-12-31", "2025-01-01", "uma/3.csv", "its names")
}

func TestSubsidyIsItsPercentage(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "not that percentage") {
			t.Error(got)
		}
	}()
	// 536.22 is the figure of the press; 15.02 % of 3566.22 is 535.65.
	readSubsidy(rows{&Version{}, []string{"porcentaje", "uma_mensual", "tope_ingreso_mensual", "monto_mensual"}, [][]string{{"15.02", "3566.22", "11492.66", "536.22"}}})
}

// TestTablesAreTheReference compares the loaded figures with the collected
// ones, cell by cell.
func TestTablesAreTheReference(t *testing.T) {
	read := func(name string) []map[string]string {
		file, err := os.Open(shared(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		all, err := csv.NewReader(file).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var out []map[string]string
		for _, line := range all[1:] {
			row := map[string]string{}
			for i, title := range all[0] {
				row[title] = line[i]
			}
			out = append(out, row)
		}
		return out
	}
	on := func(row map[string]string) civil.Date {
		d, err := civil.Parse(row["vigencia_desde"])
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	agree := func(what any, got Pesos, want string) {
		t.Helper()
		if want != "" && !same(got.String(), want) || want == "" && got != 0 {
			t.Errorf("%v: %s; the reference says %q", what, got, want)
		}
	}

	for _, row := range read("uma.csv") {
		u := figuresOf(t, umaTable, on(row))
		agree(row, u.daily, row["diario"])
		agree(row, u.monthly, row["mensual"])
		agree(row, u.annual, row["anual"])
	}
	for _, row := range read("salario_minimo.csv") {
		w := figuresOf(t, minimumWage, on(row))
		agree(row, w.general, row["general_diario"])
		agree(row, w.border, row["zlfn_diario"])
	}
	for _, row := range read("ceav_patronal.csv") {
		var rank int
		fmt.Sscan(row["rango"], &rank)
		b := figuresOf(t, ceavTable, on(row))[rank-1]
		if b.percent != row["cuota_patronal_pct"] || b.text != row["rango_texto"] {
			t.Errorf("%v: %s, %s", row, b.percent, b.text)
		}
	}
	lines := map[string]int{}
	for _, row := range read("isr_tarifas.csv") {
		p := row["ejercicio"] + row["periodicidad"]
		s := figuresOf(t, isrTable, on(row))[Period(row["periodicidad"])][lines[p]]
		lines[p]++
		agree(row, s.lower, row["limite_inferior"])
		agree(row, s.upper, row["limite_superior"])
		agree(row, s.fee, row["cuota_fija"])
		if s.percent != row["porcentaje_excedente"] {
			t.Errorf("%v: %s", row, s.percent)
		}
	}
	if len(lines) != 24 {
		t.Errorf("%d tariffs were compared", len(lines))
	}
	for _, row := range read("vacaciones.csv") {
		var from, to, days int
		fmt.Sscan(row["anios_desde"], &from)
		fmt.Sscan(row["anios_hasta"], &to)
		fmt.Sscan(row["dias"], &days)
		for n := from; n <= to; n++ {
			if got := figuresOf(t, vacationTable, on(row)).days(n); got != days {
				t.Errorf("%v: year %d has %d days", row, n, got)
			}
		}
	}
	text, err := os.ReadFile(shared(t, "imss_cuotas.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fees struct {
		Ramas []struct {
			Clave  string
			Patron string `json:"patron_pct"`
			Obrero string `json:"obrero_pct"`
		}
	}
	if err := json.Unmarshal(text, &fees); err != nil {
		t.Fatal(err)
	}
	for i, b := range fees.Ramas {
		got := imssRates[0].figures[i]
		own := slices.Contains([]string{"ceav", "riesgos_trabajo"}, b.Clave)
		if got.key != b.Clave || !same(got.worker.String(), b.Obrero) || !own && !same(got.employer.String(), b.Patron) {
			t.Errorf("%+v: %+v", b, got)
		}
	}
}
