package bench

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/query"
	"cotejo/snapshots"
)

// Rows that the sources of the company answer have today, in all; a synthetic
// edition of another size has as many of each in proportion.
const (
	rows69B       = 15_000
	rowsContracts = 2_500_000
	rowsOfSources = rows69B + rowsContracts + 738_400 // those of rowsArt69
)

// rowsArt69 are the rows of the lists under article 69, by code: two of them have
// more than half.
var rowsArt69 = map[string]int{
	"FIRMES": 264_000, "EXIGIBLES": 24_000, "NO_LOCALIZADOS": 40_000, "SENTENCIAS": 4_000, "CANCELADOS": 185_000,
	"REDUCCION_ART74": 30_000, "CONDONADOS_146B": 100, "REDUCCION_ART21": 12_000, "CONDONADOS_DECRETO": 6_000,
	"CONDONADOS_07_15": 60_000, "CANCELADOS_07_15": 49_000, "RETORNO_INVERSIONES": 300, "ENTES_PUBLICOS_OMISOS": 4_000,
	"CSD_SIN_EFECTOS": 60_000,
}

// largestContracts is how many contracts the supplier has that has most.
const largestContracts = 20_000

// syntheticEdition is an edition with all sources of the company answer.
type syntheticEdition struct {
	*snapshots.Edition
	rows    int
	listed  []string // distinct RFCs that some source mentions
	largest string   // the supplier with largestContracts, at least
}

// editionDay is the day of the versions of a synthetic edition.
var editionDay = civil.Date{Year: 2026, Month: 8, Day: 31}

// publishEdition builds an edition of about so many rows in a new catalogue at
// dir, and opens it. The same numbers give the same edition.
func publishEdition(dir string, rows int, progress func(format string, args ...any)) (*syntheticEdition, error) {
	c, err := snapshots.OpenCatalogue(dir)
	if err != nil {
		return nil, err
	}
	unlock, err := c.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	p := editionWriter{c: c, random: rand.New(rand.NewPCG(69, uint64(rows))), known: map[string]bool{}}
	e := &syntheticEdition{}
	sized := func(n int) int { return max(1, int(int64(n)*int64(rows)/rowsOfSources)) }

	progress("edición de %d registros: listas del SAT", rows)
	if err := p.publish(query.Sat69B, p.sat69B(sized(rows69B))); err != nil {
		return nil, err
	}
	if err := p.publish(query.Sat69BBis, p.sat69BBis(3)); err != nil {
		return nil, err
	}
	for i := range query.Art69Lists {
		l := &query.Art69Lists[i]
		if n, ok := rowsArt69[l.Code]; ok {
			if err := p.publish(l.Schema, p.art69(l, sized(n))); err != nil {
				return nil, err
			}
		}
	}
	progress("edición de %d registros: contratos", rows)
	e.largest = p.rfc(0)
	p.suppliers = make([]string, sized(rowsContracts)/7+1)
	for i := range p.suppliers {
		p.suppliers[i] = p.rfc(3)
	}
	for i, schema := range query.Contratos {
		if err := p.publish(schema, p.contracts(i, sized(rowsContracts/len(query.Contratos)), e.largest)); err != nil {
			return nil, err
		}
	}
	m, err := c.LatestEdition()
	if err != nil {
		return nil, err
	}
	e.rows = p.rows
	progress("edición de %d registros: abrir", e.rows)
	if e.Edition, err = c.OpenEdition(m); err != nil {
		return nil, err
	}
	// Some suppliers have no contract.
	for _, rfc := range p.listed {
		if key, ok := checks.PackRFC(rfc); ok && e.Mentions(key) != nil {
			e.listed = append(e.listed, rfc)
		}
	}
	return e, nil
}

// editionWriter publishes synthetic sources.
type editionWriter struct {
	c         *snapshots.Catalogue
	random    *rand.Rand
	rows      int
	known     map[string]bool
	listed    []string // known, in order
	suppliers []string
}

// rfc returns an RFC: in percent of the cases one that another row has.
func (p *editionWriter) rfc(percent int) string {
	if len(p.listed) > 0 && p.random.IntN(100) < percent {
		return p.listed[p.random.IntN(len(p.listed))]
	}
	for {
		if rfc := RandomRFC(p.random); !p.known[rfc] {
			p.known[rfc] = true
			p.listed = append(p.listed, rfc)
			return rfc
		}
	}
}

// publish makes a version of a source of the rows that each hands on.
func (p *editionWriter) publish(schema snapshots.Schema, each func(add func(snapshots.Row) error) error) error {
	s, err := p.c.Stage(schema.Source)
	if err != nil {
		return err
	}
	defer s.Discard()
	if _, err := s.Write([]byte(schema.Source)); err != nil {
		return err
	}
	if err := s.Seal(); err != nil {
		return err
	}
	s.Begin(schema)
	if err := each(s.Add); err != nil {
		return err
	}
	p.rows += s.Rows()
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, civil.Zone)
	v, err := s.Accept(snapshots.Origin{URL: "https://ejemplo.test/" + schema.Source, Corte: editionDay, Downloaded: at})
	if err != nil {
		return err
	}
	_, err = p.c.Publish(v, at)
	return err
}

// cells makes a row whose cells are given and whose normalised text differs from
// the published one where that has lower case.
func cells(id []string, raw []string) snapshots.Row {
	norm := make([]string, len(raw))
	for i := range raw {
		norm[i] = strings.ToUpper(raw[i])
	}
	return snapshots.Row{ID: id, Raw: raw, Norm: norm}
}

func (p *editionWriter) sat69B(rows int) func(func(snapshots.Row) error) error {
	return func(add func(snapshots.Row) error) error {
		for i := range rows {
			rfc := p.rfc(0)
			oficio := fmt.Sprintf("500-05-%d-%d", 2014+p.random.IntN(12), 1000+i)
			raw := make([]string, len(query.Sat69B.Columns))
			raw[0], raw[1], raw[2], raw[3] = strconv.Itoa(i+1), rfc, fmt.Sprintf("Empresa Sintética %d, S.A. de C.V.", i), "Definitivo"
			for at := 4; at < len(raw); at += 2 {
				if at < 8 || at >= 12 && at < 16 {
					raw[at], raw[at+1] = oficio+" de fecha 01 de junio de 2018", "2018-06-01"
				}
			}
			r := cells([]string{rfc, oficio}, raw)
			r.Norm[3] = raw[3]
			if err := add(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func (p *editionWriter) sat69BBis(rows int) func(func(snapshots.Row) error) error {
	return func(add func(snapshots.Row) error) error {
		for i := range rows {
			rfc := p.rfc(0)
			raw := make([]string, len(query.Sat69BBis.Columns))
			raw[0], raw[1], raw[2], raw[3], raw[4] = strconv.Itoa(i+1), rfc, "Empresa Sintética", "Definitivo", fmt.Sprint("900-04-2024-", i)
			r := cells([]string{rfc, raw[4]}, raw)
			r.Norm[3] = raw[3]
			if err := add(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func (p *editionWriter) art69(l *query.Art69List, rows int) func(func(snapshots.Row) error) error {
	return func(add func(snapshots.Row) error) error {
		for i := range rows {
			rfc := p.rfc(12)
			raw := make([]string, len(l.Schema.Columns))
			for at, c := range l.Schema.Columns {
				switch name := strings.ToUpper(c.Name); {
				case name == "RFC":
					raw[at] = rfc
				case strings.HasPrefix(name, "TIPO"):
					raw[at] = query.Moral
				case strings.HasPrefix(name, "FECHA"):
					raw[at] = fmt.Sprintf("%d-%02d-%02d", 2014+p.random.IntN(12), 1+p.random.IntN(12), 1+15*p.random.IntN(2))
				case name == "AÑO":
					raw[at] = strconv.Itoa(2007 + p.random.IntN(9))
				case strings.Contains(name, "SOCIAL"), strings.Contains(name, "CONTRIBUYENTE"):
					raw[at] = fmt.Sprintf("Contribuyente Sintético %d, S.A. de C.V.", i)
				case strings.Contains(name, "MONTO"), strings.Contains(name, "IMPORTE"):
					raw[at] = strconv.Itoa(p.random.IntN(10_000_000))
				default:
					raw[at] = "SINALOA"
				}
			}
			r := cells([]string{rfc, fmt.Sprintf("%032x", p.random.Uint64())}, raw)
			for at, c := range l.Schema.Columns {
				if strings.HasPrefix(strings.ToUpper(c.Name), "TIPO") {
					r.Norm[at] = raw[at]
				}
			}
			if err := add(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// contracts are those of the year at which. A few suppliers have most of them.
func (p *editionWriter) contracts(which, rows int, largest string) func(func(snapshots.Row) error) error {
	year := query.FirstContractYear + which
	return func(add func(snapshots.Row) error) error {
		ofLargest := largestContracts/len(query.Contratos) + 1
		for i := range rows + ofLargest {
			rfc := largest
			if i < rows {
				u := p.random.Float64()
				rfc = p.suppliers[int(u*u*u*float64(len(p.suppliers)))]
			}
			raw := make([]string, len(query.Contratos[which].Columns))
			raw[query.ColContratoRFC] = rfc
			raw[query.ColContratoProveedor] = "Proveedor Sintético " + rfc
			raw[query.ColContratoCodigo] = fmt.Sprintf("C-%d-%08d", year, i)
			raw[query.ColContratoTitulo] = fmt.Sprintf("Adquisición de material sintético número %d para la unidad %d", i, p.random.IntN(1000))
			raw[query.ColContratoInstitucion] = fmt.Sprintf("INSTITUTO SINTÉTICO DE LA SEGURIDAD %d", p.random.IntN(40))
			raw[query.ColContratoUC] = fmt.Sprintf("UNIDAD COMPRADORA SINTÉTICA NÚMERO %d", p.random.IntN(900))
			raw[query.ColContratoProcedimiento] = fmt.Sprintf("AA-%02d-%03d-%09d-N-%d-%d", p.random.IntN(60), p.random.IntN(999), p.random.IntN(1e9), i%999, year)
			raw[query.ColContratoTipo] = "ADJUDICACIÓN DIRECTA POR MONTOS MÁXIMOS"
			raw[query.ColContratoExpediente] = fmt.Sprintf("E-%d-%08d", year, i)
			raw[query.ColContratoPartida] = fmt.Sprint(20000 + p.random.IntN(9999))
			day := fmt.Sprintf("%d-%02d-%02d", year, 1+p.random.IntN(12), 1+p.random.IntN(28))
			raw[query.ColContratoFallo], raw[query.ColContratoInicio] = day, day
			if i%2 == 0 {
				raw[query.ColContratoFirma] = day
			}
			raw[query.ColContratoImporte] = fmt.Sprintf("%d.%02d", p.random.IntN(50_000_000), p.random.IntN(100))
			raw[query.ColContratoMoneda] = "MXN"
			raw[query.ColContratoAnuncio] = fmt.Sprintf("https://ejemplo.test/sitiopublico/expediente/%08d/procedimiento", p.random.IntN(1e8))
			raw[query.ColContratoRegistro] = strconv.Itoa(i + 1)
			r := cells([]string{rfc, raw[query.ColContratoCodigo], fmt.Sprintf("%032x", p.random.Uint64())}, raw)
			r.Norm[query.ColContratoAnuncio] = raw[query.ColContratoAnuncio]
			if err := add(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// parsed are RFCs as the engine takes them.
func parsed(rfcs []string) ([]checks.RFC, error) {
	all := make([]checks.RFC, len(rfcs))
	for i, text := range rfcs {
		var err error
		if all[i], err = checks.ParseRFC(text); err != nil {
			return nil, err
		}
	}
	return all, nil
}
