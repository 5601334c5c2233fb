package query

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/index"
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

// contract is one contract: the last of the rows that its identity has.
type contract struct {
	from     int // its file, in the years asked
	key      snapshots.RowKey
	registro int // number of the record there
	year     int
	day      civil.Date // zero when none can be read
	dayFrom  string     // FIRMA, FALLO, INICIO
	code     string
	amount   string // canonical; "" when none can be read
	paidFrom string // IMPORTE, MAXIMO, MINIMO: the column of the amount
	currency string // three capital letters; "" when the file states none
}

// collector takes rows of one RFC in and tells its contracts, in no order. Rows of
// one code, title and supplier are one contract, also across files: the last one
// counts, by year of the file and place in it. Rows without code are each their own.
// Its zero value is ready.
type collector struct {
	found []contract
	rows  int
	at    map[string]int // in found, by identity
}

func (k *collector) reset() {
	k.found, k.rows = k.found[:0], 0
	// Clearing a map takes as long as it ever was large.
	if len(k.at) > 64 {
		k.at = nil
	}
	clear(k.at)
}

// add takes a row of the file at years[from].
func (k *collector) add(years []contractYear, from int, key snapshots.RowKey, norm []string) error {
	y := &years[from]
	if len(norm) != len(contractColumns) || key.Parts() != 3 {
		return fmt.Errorf("query: %s: una versión tiene %d columnas; este motor lee %d", y.schema.Source, len(norm), len(contractColumns))
	}
	k.rows++
	c := newContract(from, y.year, key, norm)
	if key.ID(1) == "" {
		k.found = append(k.found, c)
		return nil
	}
	before, again := k.at[key.Identity()]
	switch {
	case !again:
		if k.at == nil {
			k.at = map[string]int{}
		}
		k.at[key.Identity()] = len(k.found)
		k.found = append(k.found, c)
	case c.from > k.found[before].from || c.from == k.found[before].from && c.registro > k.found[before].registro:
		k.found[before] = c
	}
	return nil
}

// read takes in every row of an RFC.
func (k *collector) read(years []contractYear, mentions index.Mentions, rfc string) error {
	for i, y := range years {
		if mentions.Rows(y.list.Bit()).N == 0 {
			continue
		}
		if err := y.list.Visit(rfc, func(key snapshots.RowKey, cells snapshots.Cells) error {
			return k.add(years, i, key, cells.Norm)
		}); err != nil {
			return err
		}
	}
	return nil
}

func newContract(from, fileYear int, key snapshots.RowKey, norm []string) contract {
	c := contract{from: from, key: key, year: fileYear, code: norm[ColContratoCodigo]}
	c.registro, _ = strconv.Atoi(norm[ColContratoRegistro])
	c.day, c.dayFrom = ContractDate(norm)
	if y, ok := ContractYear(norm); ok {
		c.year = y
	}
	for _, of := range [...]struct {
		column int
		origin string
	}{{ColContratoImporte, "IMPORTE"}, {ColContratoMaximo, "MAXIMO"}, {ColContratoMinimo, "MINIMO"}} {
		text := norm[of.column]
		if text == "" {
			continue
		}
		// An amount that is there and cannot be read is not replaced by another one.
		if _, ok := parseImporte(text); ok {
			c.amount, c.paidFrom = text, of.origin
		}
		break
	}
	if m := norm[ColContratoMoneda]; len(m) == 3 && strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		c.currency = m
	}
	return c
}

// procurement is what the contracts of an RFC come to.
type procurement struct {
	contracts int
	rows      int // that they stand in
	years     []totals
	newest    []contractAt // the newest MaxContracts, in order

	implausible int
	unread      int
	unstated    int // amounts without a currency
}

// totals are what is added up of a year: never across currencies.
type totals struct {
	year      int
	contracts int
	unsummed  int // of them without an amount that could be added
	pesos     importe
	others    []total // by currency, "" included
}

type total struct {
	currency  string
	contracts int
	sum       importe
}

// contractAt is where a contract stands.
type contractAt struct {
	from int // its file, in the years asked
	key  snapshots.RowKey
}

// procurementOf tells what the contracts of an RFC come to; the newest of them are
// told when list is set.
func (s *loaded) procurementOf(mentions index.Mentions, rfc checks.RFC, list bool) (*procurement, error) {
	rows := mentions.In(&s.contracts)
	if rows == 0 {
		return &noContracts, nil
	}
	if rows >= manyContractRows {
		if p := s.many.of(rfc.Key()); p != nil {
			return p, nil
		}
	}
	if sums := s.sums.Load(); sums != nil && !list {
		return sums.of(rfc.Key())
	}
	var k collector
	if err := k.read(s.years, mentions, rfc.String()); err != nil {
		return nil, err
	}
	p := k.procurement(list)
	if rows >= manyContractRows {
		s.many.keep(rfc.Key(), p)
	}
	return p, nil
}

// procurement adds up what was taken in. The newest are told when list is set, and
// of those who have many.
func (k *collector) procurement(list bool) *procurement {
	p := summarize(k.found)
	p.rows = k.rows
	if list || k.rows >= manyContractRows {
		p.newest = newestOf(k.found)
	}
	return p
}

var noContracts procurement

func summarize(found []contract) *procurement {
	p := &procurement{contracts: len(found)}
	for i := range found {
		c := &found[i]
		y := p.year(c.year)
		y.contracts++
		amount, ok := parseImporte(c.amount)
		switch {
		case !ok:
			p.unread++
			y.unsummed++
		case amount.implausible():
			p.implausible++
			y.unsummed++
		case c.currency == pesos:
			y.pesos.add(amount)
		default:
			if c.currency == "" {
				p.unstated++
			}
			o := y.other(c.currency)
			o.contracts++
			o.sum.add(amount)
		}
	}
	return p
}

// year returns the totals of a year; they are the newest year first.
func (p *procurement) year(year int) *totals {
	at, have := slices.BinarySearchFunc(p.years, year, func(t totals, year int) int { return cmp.Compare(year, t.year) })
	if !have {
		p.years = slices.Insert(p.years, at, totals{year: year})
	}
	return &p.years[at]
}

func (t *totals) other(currency string) *total {
	at, have := slices.BinarySearchFunc(t.others, currency, func(o total, currency string) int { return cmp.Compare(o.currency, currency) })
	if !have {
		// The text of its row is not kept for three letters.
		t.others = slices.Insert(t.others, at, total{currency: strings.Clone(currency)})
	}
	return &t.others[at]
}

// appendContratacion appends the block contratacion_publica of a company.
func (s *loaded) appendContratacion(dst []byte, mentions index.Mentions, rfc checks.RFC, texts *blockTexts, brief *CompanyBrief) ([]byte, error) {
	if brief.Contratos = 0; len(s.years) == 0 {
		brief.Contratos = -1
	}
	if block, ok := texts.ofNobody(mentions); ok {
		return append(dst, block...), nil
	}
	if len(s.years) == 0 {
		return append(dst, contratacionNoCargada...), nil
	}
	p, err := s.procurementOf(mentions, rfc, false)
	if err != nil {
		return dst, err
	}
	brief.Contratos = p.contracts
	dst = append(dst, '{')
	dst = appendContractYears(dst, s.years)
	dst = append(dst, `,"cobertura":"`+coberturaContratos+`","contratos":`...)
	dst = appendInt(dst, p.contracts)
	dst = append(dst, ',')
	dst = appendEstado(dst, p.contracts > 0)
	dst = append(dst, `,"fuentes":[`...)
	dst = append(dst, texts.fuentes...)
	dst = append(dst, `],`...)
	dst = p.appendNotas(dst)
	dst = append(dst, ',')
	dst = p.appendPorAnio(dst)
	dst = append(dst, `,"registros":`...)
	dst = appendInt(dst, p.rows)
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

// appendNotas appends the member notas: what the totals leave out, and why.
func (p *procurement) appendNotas(dst []byte) []byte {
	dst = append(dst, `"notas":[`...)
	for _, note := range [...]struct {
		n            int
		what, effect string
	}{
		{p.implausible, "Contratos con un importe mayor de 10000000000.00, que parece un error de captura", "Se cuentan y no se suman."},
		{p.unread, "Contratos sin importe legible", "Se cuentan y no se suman."},
		{p.unstated, "Contratos con importe y sin moneda", "Se suman aparte, con moneda null."},
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
func (p *procurement) appendPorAnio(dst []byte) []byte {
	dst = append(dst, `"por_anio":[`...)
	for i := range p.years {
		if i > 0 {
			dst = append(dst, ',')
		}
		y := &p.years[i]
		dst = append(dst, `{"anio":`...)
		dst = appendInt(dst, y.year)
		dst = append(dst, `,"contratos":`...)
		dst = appendInt(dst, y.contracts)
		dst = append(dst, `,"contratos_sin_sumar":`...)
		dst = appendInt(dst, y.unsummed)
		dst = append(dst, `,"monto_otras_monedas":[`...)
		for j := range y.others {
			if j > 0 {
				dst = append(dst, ',')
			}
			o := &y.others[j]
			dst = append(dst, `{"contratos":`...)
			dst = appendInt(dst, o.contracts)
			dst = append(dst, `,"moneda":`...)
			dst = appendTextOrNull(dst, o.currency)
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
