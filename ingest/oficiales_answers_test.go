package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strings"
	"testing"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/query"
	"cotejo/snapshots"
)

// TestOficialesAreAnswered: the files go the whole way, into an edition and out of it
// as an answer. Here is told what no reader decides: the name before its note, the
// person type that the RFC tells, which of several rows is the contract, its amount
// and year, and the totals.
func TestOficialesAreAnswered(t *testing.T) {
	for _, file := range oficialesExpected(t).forReader {
		if file.single() {
			continue
		}
		t.Run(strings.ReplaceAll(file.Archivo, "/", " "), func(t *testing.T) {
			f := newFixture(t)
			given := civil.Of(noon)
			if file.Corte != "" {
				given = civil.Date{} // the file says it
			}
			r, err := Ingest(context.Background(), f.c, Request{
				Source: file.source(), Now: f.now, Name: path.Base(file.Archivo), Content: openerOf(oficial(t, file.Archivo)), Corte: given,
			})
			if err != nil || r.Outcome != Activated || r.Version.Rows != file.Filas {
				t.Fatalf("%s, %d rows, %v, %v", r.Outcome, r.Version.Rows, r.Faults, err)
			}
			ed, err := f.c.OpenEdition(r.Edition)
			if err != nil {
				t.Fatal(err)
			}
			defer ed.Release()
			byRFC := map[string][]expectedRow{}
			for _, want := range file.rows(t) {
				byRFC[want.RFC] = append(byRFC[want.RFC], want)
			}
			totals, contracts := map[string]*big.Rat{}, 0
			for rfc, want := range byRFC {
				parsed, err := checks.ParseRFC(rfc)
				if err != nil {
					contracts += len(want)
					continue // suppressed, from abroad or without RFC: nobody can ask for it
				}
				if parsed.CheckDigit().Matches() {
					t.Errorf("%s may be somebody's", rfc)
				}
				var a answered
				answerOf(t, ed, query.Company{RFC: parsed}, &a)
				switch file.Fuente {
				case "sat_69":
					a.checkArt69(t, rfc, file.Lista, want)
				case "sat_69b":
					checkSituaciones(t, a.Lista.Situaciones, want)
				case "sat_69b_bis":
					checkSituaciones(t, a.Bis.Situaciones, want)
				case "contratos":
					var l answeredContracts
					answerOf(t, ed, query.Contracts{RFC: parsed, Limit: query.MaxContracts}, &l)
					contracts += l.check(t, want)
					a.add(t, totals)
				}
			}
			if file.Registros > 0 && contracts != file.Registros {
				t.Errorf("%d contracts, want %d", contracts, file.Registros)
			}
			for currency, want := range file.Totales {
				if len(currency) != 3 {
					continue // a note
				}
				if got := totals[currency]; got == nil || !(amounts{want.(string)}).is(got.RatString()) {
					t.Errorf("the total in %s is %v, want %v", currency, got, want)
				}
			}
		})
	}
}

type answered struct {
	Art69 struct {
		Listas []struct {
			Lista, Nombre string
			Persona       string           `json:"tipo_persona"`
			Registros     []map[string]any `json:"registros_oficiales"`
		}
	} `json:"sat_art69"`
	Lista struct{ Situaciones []situacion } `json:"sat_69b"`
	Bis   struct{ Situaciones []situacion } `json:"sat_69b_bis"`

	Contratacion struct {
		PorAnio []struct {
			Total string `json:"monto_total"`
			Otras []struct {
				Moneda string
				Total  string `json:"monto_total"`
			} `json:"monto_otras_monedas"`
		} `json:"por_anio"`
	} `json:"contratacion_publica"`
}

type situacion struct{ Anotacion, Nombre, Situacion string }

type answeredContracts struct {
	Total     int `json:"total_contratos"`
	Contratos []struct {
		Anio                                          int
		Num                                           string `json:"num_contrato"`
		Fecha, Monto, Moneda                          *string
		Flagged                                       bool `json:"monto_no_plausible"`
		Proveedor, Dependencia, Procedimiento, Titulo string
		Unidad                                        string `json:"unidad_compradora"`
	}
}

func answerOf(t testing.TB, ed *snapshots.Edition, q query.Question, into any) {
	t.Helper()
	registro, _, err := query.AppendRegistro(nil, q, civil.Of(noon), ed)
	if err != nil {
		t.Fatal(err)
	}
	parts, _ := query.Split(registro)
	if err := json.Unmarshal(parts.Resultado, into); err != nil {
		t.Fatal(err)
	}
}

func (a *answered) checkArt69(t *testing.T, rfc, list string, want []expectedRow) {
	t.Helper()
	if len(a.Art69.Listas) != 1 || a.Art69.Listas[0].Lista != list || len(a.Art69.Listas[0].Registros) != len(want) {
		t.Fatalf("%s: %+v, want %d records", rfc, a.Art69.Listas, len(want))
	}
	var wrong differ
	wrong.same("person", a.Art69.Listas[0].Persona, *want[0].Persona)
	wrong.same("name", a.Art69.Listas[0].Nombre, want[0].Nombre)
	for _, w := range wrong {
		t.Errorf("%s (%s): %s", rfc, want[0].Rasgo, w)
	}
}

func checkSituaciones(t *testing.T, got []situacion, want []expectedRow) {
	t.Helper()
	var wanted []situacion
	for _, w := range want {
		wanted = append(wanted, situacion{w.Anotacion, w.Nombre, w.Situacion})
	}
	less := func(a, b situacion) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	slices.SortFunc(wanted, less)
	got = slices.SortedFunc(slices.Values(got), less)
	if !slices.Equal(got, wanted) {
		t.Errorf("%s: %q, want %q", want[0].RFC, got, wanted)
	}
}

// check compares the contracts of an RFC and returns how many they are.
func (l *answeredContracts) check(t *testing.T, rows []expectedRow) int {
	t.Helper()
	wanted := 0
	for _, want := range rows {
		if want.Sustituida > 0 {
			continue
		}
		wanted++
		found := false
		for _, c := range l.Contratos {
			if c.Num != want.Num || c.Titulo != want.Titulo {
				continue
			}
			found = true
			var wrong differ
			wrong.same("supplier", c.Proveedor, want.Proveedor)
			wrong.same("buyer", c.Dependencia, want.Dependencia)
			wrong.same("unit", c.Unidad, want.Unidad)
			wrong.same("procedure", c.Procedimiento, want.Procedimiento)
			wrong.same("currency", told(c.Moneda), want.Moneda)
			wrong.same("flag", fmt.Sprint(c.Flagged), fmt.Sprint(want.Marcado))
			if years := fmt.Sprint(want.Anio); years != fmt.Sprint(c.Anio) && !strings.Contains(years, fmt.Sprintf("%d", c.Anio)) {
				wrong.same("year", fmt.Sprint(c.Anio), years)
			}
			if !want.Monto.is(told(c.Monto)) {
				wrong.same("amount", told(c.Monto), fmt.Sprint(want.Monto))
			}
			wrong.same("day", told(c.Fecha), told(want.Fecha))
			for _, w := range wrong {
				t.Errorf("fila %d (%s): %s", want.Fila, want.Rasgo, w)
			}
		}
		if !found {
			t.Errorf("fila %d (%s): not among %+v", want.Fila, want.Rasgo, l.Contratos)
		}
	}
	if l.Total != wanted {
		t.Errorf("%s: %d contracts, want %d", rows[0].RFC, l.Total, wanted)
	}
	return l.Total
}

// told is a member that may be null.
func told(member *string) string {
	if member == nil {
		return "null"
	}
	return *member
}

// add adds what the years of an RFC sum up to.
func (a *answered) add(t *testing.T, totals map[string]*big.Rat) {
	t.Helper()
	plus := func(currency, text string) {
		n, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatalf("%q is no amount", text)
		}
		if totals[currency] == nil {
			totals[currency] = new(big.Rat)
		}
		totals[currency].Add(totals[currency], n)
	}
	for _, y := range a.Contratacion.PorAnio {
		plus("MXN", y.Total)
		for _, o := range y.Otras {
			plus(o.Moneda, o.Total)
		}
	}
}
