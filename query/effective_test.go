package query

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/civil"
	"cotejo/snapshots"
)

// cells maps columns to normalised cells.
type cells map[int]string

func listRow(l *listing, situacion string, filled cells) *snapshots.Row {
	norm := make([]string, len(l.schema.Columns))
	norm[l.nombre], norm[l.situacion] = "ALFA", situacion
	for c, text := range filled {
		norm[c] = text
	}
	return &snapshots.Row{ID: []string{"AAA010101AA1", "1"}, Raw: norm, Norm: norm}
}

// TestEffectOn says of invented rows what was in effect on a day.
func TestEffectOn(t *testing.T) {
	f := func(l *listing, situacion string, filled cells, want ...string) {
		t.Helper()
		r := listRow(l, situacion, filled)
		for _, w := range want {
			day, said, _ := strings.Cut(w, ": ")
			if _, err := civil.Parse(day); err != nil {
				t.Fatal(err)
			}
			e, ok := l.effectOn(r, day)
			got := "nada"
			switch {
			case ok && e.motivo != "":
				got = e.motivo
			case ok:
				got = l.stages[e.stage].situacion + " " + e.fecha + " " + strings.TrimPrefix(e.medium, "PUBLICACION_")
				if e.oficio != "" {
					got += " " + e.oficio
				}
			}
			if got != said {
				t.Errorf("%s %v on %s: %s, want %s", situacion, filled, day, got, said)
			}
		}
	}
	// Each stage from its day until the next one's.
	f(lista69B, "Sentencia Favorable", cells{
		col69bPresuncionOficioSAT: "P-1", col69bPresuncionSAT: "2018-06-01", col69bPresuncionDOF: "2018-06-25",
		col69bDefinitivoSAT: "2018-09-28", col69bDefinitivoDOF: "2018-10-23",
		col69bSentenciaSAT: "2019-03-05",
	},
		"1900-01-01: nada", "2018-05-31: nada",
		"2018-06-01: Presunto 2018-06-01 SAT P-1", "2018-09-27: Presunto 2018-06-01 SAT P-1",
		"2018-09-28: Definitivo 2018-09-28 SAT", "2019-03-04: Definitivo 2018-09-28 SAT",
		"2019-03-05: Sentencia Favorable 2019-03-05 SAT", "9999-12-31: Sentencia Favorable 2019-03-05 SAT")
	f(lista69B, "Desvirtuado", cells{col69bPresuncionSAT: "2024-08-14", col69bDesvirtuadoSAT: "2025-03-13"},
		"2024-08-13: nada", "2025-03-12: Presunto 2024-08-14 SAT", "2025-03-13: Desvirtuado 2025-03-13 SAT")
	// By a ruling, after it was definitive.
	f(lista69B, "Desvirtuado", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoSAT: "2019-01-01", col69bDesvirtuadoSAT: "2021-01-01"},
		"2018-06-01: Presunto 2018-01-01 SAT", "2020-01-01: Definitivo 2019-01-01 SAT", "2021-01-01: Desvirtuado 2021-01-01 SAT")
	f(lista69B, "Presunto", cells{col69bPresuncionSAT: "2026-07-03"}, "2026-07-02: nada", "2026-07-03: Presunto 2026-07-03 SAT")
	f(lista69BBis, "Definitivo", cells{colBisDefinitivoSAT: "2024-01-25"}, "2024-01-24: nada", "2024-01-25: Definitivo 2024-01-25 SAT")
	f(lista69BBis, "Sentencia Favorable", cells{colBisDefinitivoDOF: "2024-02-20", colBisSentenciaSAT: "2026-02-02"},
		"2024-02-19: nada", "2024-02-20: Definitivo 2024-02-20 DOF", "2026-02-02: Sentencia Favorable 2026-02-02 SAT")
	// Only the Diario Oficial is dated: the day is its own, and so is the oficio.
	f(lista69B, "Presunto", cells{col69bPresuncionOficioSAT: "P-1", col69bPresuncionOficioDOF: "P-2", col69bPresuncionDOF: "2018-06-25"},
		"2018-06-24: nada", "2018-06-25: Presunto 2018-06-25 DOF P-2")
	// Several days in a cell, newest first: the stage began on each.
	f(lista69B, "Definitivo", cells{
		col69bPresuncionOficioSAT: "P-2 // P-1", col69bPresuncionSAT: "2018-06-02 2017-03-05",
		col69bDefinitivoOficioSAT: "D-1", col69bDefinitivoSAT: "2020-05-25 2019-04-26",
	},
		"2017-03-04: nada", "2017-03-05: Presunto 2017-03-05 SAT P-1", "2018-06-02: Presunto 2018-06-02 SAT P-2",
		"2019-04-26: Definitivo 2019-04-26 SAT", "2020-05-25: Definitivo 2020-05-25 SAT")
	// Backwards, with a second oficio: the sentence was in effect in between.
	f(lista69B, "Definitivo", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoSAT: "2022-01-01 2019-01-01", col69bSentenciaSAT: "2020-01-01"},
		"2019-06-01: Definitivo 2019-01-01 SAT", "2021-12-31: Sentencia Favorable 2020-01-01 SAT", "2022-01-01: Definitivo 2022-01-01 SAT")
	// Backwards, without one: from the sentence on the dates say something else
	// than the row, and when it was taken back is not known.
	f(lista69B, "Definitivo", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoSAT: "2019-01-01", col69bSentenciaSAT: "2020-01-01"},
		"2019-12-31: Definitivo 2019-01-01 SAT", "2020-01-01: "+fechasNoConcuerdan, "2026-01-01: "+fechasNoConcuerdan)
	f(lista69B, "Situación nueva", cells{col69bPresuncionSAT: "2018-01-01"}, "2017-12-31: nada", "2018-01-01: "+fechasNoConcuerdan)
	// Two stages published on one day.
	f(lista69B, "Definitivo", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoSAT: "2018-01-01"}, "2018-01-01: Definitivo 2018-01-01 SAT")
	// Without dates that can be read, nothing is guessed.
	f(lista69B, "Definitivo", cells{col69bPresuncionOficioSAT: "P-1"}, "2018-01-01: "+sinFechas)
	f(lista69B, "Presunto", cells{col69bPresuncionSAT: "99/99/9999", col69bPresuncionDOF: "pendiente"}, "2018-01-01: "+sinFechas)
	f(lista69B, "Presunto", cells{col69bPresuncionSAT: "99/99/9999", col69bPresuncionDOF: ""}, "2018-01-01: "+sinFechas)
	// Text in the place of a day: the stage may have begun before its other day.
	f(lista69B, "Presunto", cells{col69bPresuncionSAT: "2018-01-01 y otra", col69bPresuncionDOF: "2018-02-01"},
		"2018-01-15: "+etapaSinFecha, "2018-02-01: Presunto 2018-02-01 DOF")
	f(lista69B, "Definitivo", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoSAT: "pendiente", col69bDefinitivoDOF: "2019-02-01"},
		"2017-12-31: nada", "2018-01-01: "+etapaSinFecha, "2019-01-31: "+etapaSinFecha, "2019-02-01: Definitivo 2019-02-01 DOF")
	// A stage without a date may have begun on any day between its neighbours'.
	f(lista69B, "Definitivo", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoOficioSAT: "D-1"},
		"2017-12-31: nada", "2018-01-01: "+etapaSinFecha)
	f(lista69B, "Sentencia Favorable", cells{col69bPresuncionSAT: "2018-01-01", col69bDefinitivoDOF: "pendiente", col69bSentenciaSAT: "2020-01-01"},
		"2017-12-31: nada", "2019-12-31: "+etapaSinFecha, "2020-01-01: Sentencia Favorable 2020-01-01 SAT")
	// Every procedure was presumed before it was anything else.
	f(lista69B, "Definitivo", cells{col69bDefinitivoSAT: "2019-01-01"}, "2018-12-31: "+etapaSinFecha, "2019-01-01: Definitivo 2019-01-01 SAT")
}

// TestEffectIsConstantBetweenStageDates holds, for any dates in any stages, that
// the answer changes on the days that the row gives and on no other, and that a
// day of the row is in effect on it unless a stage is not dated.
func TestEffectIsConstantBetweenStageDates(t *testing.T) {
	day := rapid.Custom(func(t *rapid.T) string {
		return civil.Date{Year: rapid.IntRange(2018, 2020).Draw(t, "año"), Month: 1, Day: rapid.IntRange(1, 9).Draw(t, "día")}.String()
	})
	dateCell := rapid.OneOf(rapid.Just(""), day, rapid.Custom(func(t *rapid.T) string {
		return day.Draw(t, "una") + " " + day.Draw(t, "otra")
	}), rapid.Just("ilegible"), rapid.Custom(func(t *rapid.T) string { return day.Draw(t, "una") + " y más" }))
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom([]*listing{lista69B, lista69BBis}).Draw(t, "lista")
		r := listRow(l, rapid.SampledFrom(l.stages).Draw(t, "situación").situacion, nil)
		var given []string
		for _, s := range l.stages {
			for _, c := range []int{s.oficioSAT + 1, s.oficioDOF + 1} {
				r.Norm[c] = dateCell.Draw(t, "celda")
				given = append(given, dates(r.Norm[c])...)
			}
		}
		a, b := day.Draw(t, "D"), day.Draw(t, "E")
		if a > b {
			a, b = b, a
		}
		if slices.ContainsFunc(given, func(d string) bool { return a < d && d <= b }) {
			return
		}
		first, okFirst := l.effectOn(r, a)
		second, okSecond := l.effectOn(r, b)
		if first != second || okFirst != okSecond {
			t.Fatalf("%s: %+v, %v; %s: %+v, %v", a, first, okFirst, b, second, okSecond)
		}
		if okFirst && first.motivo == "" && (first.fecha > a || !slices.Contains(given, first.fecha)) {
			t.Fatalf("%s: se apoya en %s", a, first.fecha)
		}
	})
}
