package query

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/snapshots"
)

// coberturaContratos stands in every answer about contracts.
const coberturaContratos = "La búsqueda por RFC cubre 2018 a 2022 en parte (cerca de dos tercios de los contratos) y completa desde 2023, en los años cargados; los anteriores no publican RFC. Cero contratos no prueba que no los haya."

const contratacionNoCargada = `{"anios_cargados":[],"cobertura":"` + coberturaContratos + `","contratos":null,"estado":"` + noCargada +
	`","fuentes":[],"notas":[],"por_anio":[],"registros":null}`

// pesos is the currency that monto_total is in.
const pesos = "MXN"

// contractYear is a yearly file of an edition.
type contractYear struct {
	schema *snapshots.Schema
	year   int
	list   *snapshots.Source
}

// contractYears appends the files that an edition has, by year.
func contractYears(loaded []contractYear, ed *snapshots.Edition) []contractYear {
	for i := range Contratos {
		if list := ed.Source(Contratos[i].Source); list != nil {
			loaded = append(loaded, contractYear{&Contratos[i], FirstContractYear + i, list})
		}
	}
	return loaded
}

// allYears is room for them that costs no allocation.
type allYears [LastContractYear - FirstContractYear + 1]contractYear

// consulted is their bits.
func consulted(years []contractYear) (bits uint64) {
	for _, y := range years {
		bits |= 1 << y.list.Bit()
	}
	return bits
}

// contract is one contract: the last of the rows that its identity has.
type contract struct {
	from     int // its file, in the years asked
	registro int // number of the record there
	year     int
	day      civil.Date // zero when none can be read
	dayFrom  string     // FIRMA, FALLO, INICIO
	amount   string     // canonical; "" when none can be read
	paidFrom string     // IMPORTE, MAXIMO, MINIMO: the column of the amount
	currency string     // three capital letters; "" when the file states none
	row      *snapshots.Row
}

// contracts returns those of an RFC, in no order, and how many rows they stand in.
// Rows of one code, title and supplier are one contract, also across files: the
// last one counts, by year of the file and place in it. Rows without code are each
// their own. The row itself is kept when keep is set.
func contracts(years []contractYear, mentions uint64, rfc string, keep bool) (found []contract, rows int, err error) {
	at := map[string]int{} // by identity without the RFC
	for i, y := range years {
		if mentions&(1<<y.list.Bit()) == 0 {
			continue
		}
		err := y.list.Find(rfc, func(r snapshots.Row) error {
			if len(r.Norm) != len(contractColumns) || len(r.ID) != 3 {
				return fmt.Errorf("query: %s: una versión tiene %d columnas; este motor lee %d", y.schema.Source, len(r.Norm), len(contractColumns))
			}
			rows++
			c := newContract(i, y.year, &r)
			if keep {
				c.row = &r
			}
			identity := r.ID[1] + "\x00" + r.ID[2]
			before, again := at[identity]
			switch {
			case r.ID[1] == "":
				found = append(found, c)
			case !again:
				at[identity] = len(found)
				found = append(found, c)
			case c.from > found[before].from || c.from == found[before].from && c.registro > found[before].registro:
				found[before] = c
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return found, rows, nil
}

func newContract(from, fileYear int, r *snapshots.Row) contract {
	c := contract{from: from, year: fileYear}
	c.registro, _ = strconv.Atoi(r.Norm[ColContratoRegistro])
	c.day, c.dayFrom = ContractDate(r.Norm)
	if y, ok := ContractYear(r.Norm); ok {
		c.year = y
	}
	for _, of := range [...]struct {
		column int
		origin string
	}{{ColContratoImporte, "IMPORTE"}, {ColContratoMaximo, "MAXIMO"}, {ColContratoMinimo, "MINIMO"}} {
		text := r.Norm[of.column]
		if text == "" {
			continue
		}
		// An amount that is there and cannot be read is not replaced by another one.
		if _, ok := parseImporte(text); ok {
			c.amount, c.paidFrom = text, of.origin
		}
		break
	}
	if m := r.Norm[ColContratoMoneda]; len(m) == 3 && strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		c.currency = m
	}
	return c
}

// totals are what is added up of a year: never across currencies.
type totals struct {
	contracts int
	unsummed  int // of them without an amount that could be added
	pesos     importe
	others    map[string]*total // by currency, "" included
}

type total struct {
	contracts int
	sum       importe
}

// summary is the contracts of an RFC by year.
type summary struct {
	years       map[int]*totals
	implausible int
	unread      int
	unstated    int // amounts without a currency
}

func summarize(found []contract) summary {
	s := summary{years: map[int]*totals{}}
	for i := range found {
		c := &found[i]
		y := s.years[c.year]
		if y == nil {
			y = &totals{others: map[string]*total{}}
			s.years[c.year] = y
		}
		y.contracts++
		amount, ok := parseImporte(c.amount)
		switch {
		case !ok:
			s.unread++
			y.unsummed++
		case amount.implausible():
			s.implausible++
			y.unsummed++
		case c.currency == pesos:
			y.pesos.add(&amount)
		default:
			if c.currency == "" {
				s.unstated++
			}
			o := y.others[c.currency]
			if o == nil {
				o = &total{}
				y.others[c.currency] = o
			}
			o.contracts++
			o.sum.add(&amount)
		}
	}
	return s
}

// appendContratacion appends the block contratacion_publica of a company.
func appendContratacion(dst []byte, years []contractYear, mentions uint64, rfc string, fecha civil.Date) ([]byte, error) {
	if len(years) == 0 {
		return append(dst, contratacionNoCargada...), nil
	}
	var found []contract
	rows := 0
	if mentions&consulted(years) != 0 {
		var err error
		if found, rows, err = contracts(years, mentions, rfc, false); err != nil {
			return dst, err
		}
	}
	dst = append(dst, '{')
	dst = appendContractYears(dst, years)
	dst = append(dst, `,"cobertura":"`+coberturaContratos+`","contratos":`...)
	dst = appendInt(dst, len(found))
	dst = append(dst, ',')
	dst = appendEstado(dst, len(found) > 0)
	dst = append(dst, ',')
	dst = appendContractSources(dst, years, fecha)
	dst = append(dst, ',')
	if len(found) == 0 {
		return append(dst, `"notas":[],"por_anio":[],"registros":0}`...), nil
	}
	s := summarize(found)
	dst = s.appendNotas(dst)
	dst = append(dst, ',')
	dst = s.appendPorAnio(dst)
	dst = append(dst, `,"registros":`...)
	dst = appendInt(dst, rows)
	return append(dst, '}'), nil
}

// appendContractYears appends the member anios_cargados.
func appendContractYears(dst []byte, years []contractYear) []byte {
	dst = append(dst, `"anios_cargados":[`...)
	for i, y := range years {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, y.year)
	}
	return append(dst, ']')
}

// appendContractSources appends the member fuentes.
func appendContractSources(dst []byte, years []contractYear, fecha civil.Date) []byte {
	dst = append(dst, `"fuentes":[`...)
	for i, y := range years {
		if i > 0 {
			dst = append(dst, ',')
		}
		chain := y.list.Chain()
		dst = appendFuente(dst, y.schema, &chain[len(chain)-1], fecha)
	}
	return append(dst, ']')
}

// appendNotas appends the member notas: what the totals leave out, and why.
func (s *summary) appendNotas(dst []byte) []byte {
	dst = append(dst, `"notas":[`...)
	for _, note := range [...]struct {
		n            int
		what, effect string
	}{
		{s.implausible, "Contratos con un importe mayor de 10000000000.00, que parece un error de captura", "Se cuentan y no se suman."},
		{s.unread, "Contratos sin importe legible", "Se cuentan y no se suman."},
		{s.unstated, "Contratos con importe y sin moneda", "Se suman aparte, con moneda null."},
	} {
		if note.n == 0 {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), note.what...), ": "...)
		dst = appendInt(dst, note.n)
		dst = append(append(append(dst, ". "...), note.effect...), '"')
	}
	return append(dst, ']')
}

// appendPorAnio appends the member por_anio, the newest year first.
func (s *summary) appendPorAnio(dst []byte) []byte {
	dst = append(dst, `"por_anio":[`...)
	for i, year := range slices.SortedFunc(maps.Keys(s.years), func(a, b int) int { return cmp.Compare(b, a) }) {
		if i > 0 {
			dst = append(dst, ',')
		}
		y := s.years[year]
		dst = append(dst, `{"anio":`...)
		dst = appendInt(dst, year)
		dst = append(dst, `,"contratos":`...)
		dst = appendInt(dst, y.contracts)
		dst = append(dst, `,"contratos_sin_sumar":`...)
		dst = appendInt(dst, y.unsummed)
		dst = append(dst, `,"monto_otras_monedas":[`...)
		for j, currency := range slices.Sorted(maps.Keys(y.others)) {
			if j > 0 {
				dst = append(dst, ',')
			}
			o := y.others[currency]
			dst = append(dst, `{"contratos":`...)
			dst = appendInt(dst, o.contracts)
			dst = append(dst, `,"moneda":`...)
			dst = appendTextOrNull(dst, currency)
			dst = append(dst, `,"monto_total":"`...)
			dst = append(o.sum.appendTo(dst), `"}`...)
		}
		dst = append(dst, `],"monto_total":"`...)
		dst = append(y.pesos.appendTo(dst), `"}`...)
	}
	return append(dst, ']')
}

func appendTextOrNull(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return canon.AppendString(dst, text)
}
