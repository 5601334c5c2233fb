package sancionados

import (
	"fmt"
	"strconv"
	"strings"

	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// MaxPDN bounds a file of answers of the national platform.
const MaxPDN = 64 << 20

// ReadPDN1 reads answers of the first version of System 3, {"pagination":{…},
// "results":[…]}: all pages of one query, one behind the other in one file. Each page
// says which it is and whether another follows, and a file that lacks one is refused:
// what is not in it would be answered as «no match». So is one in which no record has an
// RFC, which is what the platform answers to whoever does not say who asks.
func ReadPDN1(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	p := pdn{schema: &query.Sancionados[1], add: add, rfcField: "particularSancionado.rfc", id: []int{query.ColSancionID, query.ColSancionExpediente}}
	return p.read(official, func(d *document) error {
		pages := paging{}
		for d.more() {
			if err := pages.page(d, p.record1); err != nil {
				return err
			}
		}
		return pages.complete()
	})
}

// pdn is one pass over one file.
type pdn struct {
	schema   *snapshots.Schema
	add      func(snapshots.Row) error
	rfcField string
	id       []int // columns of the identity behind the RFC

	m   mapper
	sum tabular.Summary
	got int // records
}

func (p *pdn) read(official snapshots.Opener, walk func(*document) error) (tabular.Summary, error) {
	p.sum.Encoding, p.sum.Counts = tabular.UTF8, map[string]int{}
	p.m = mapper{kinds: kindsOf(p.schema), counts: p.sum.Counts, rfc: query.ColSancionRFC, id: p.id}
	err := over(official, func(d *document) error {
		if err := walk(d); err != nil {
			return err
		}
		return d.end()
	})
	p.sum.Suppressed = p.sum.Counts[WithoutRFC]
	if err == nil && p.sum.Rows > 0 && p.sum.Suppressed == p.sum.Rows {
		err = tabular.Refuse(tabular.Header, fmt.Sprintf("ninguno de sus %d registros trae un RFC en %s: sin él no se puede preguntar por nadie. Pida la consulta con los permisos (o con rfcSolicitante) con que la plataforma lo entrega", p.got, p.rfcField))
	}
	return p.sum, err
}

func (p *pdn) row(raw []string) error {
	if err := p.add(p.m.row(raw)); err != nil {
		return err
	}
	p.sum.Rows++
	return nil
}

// paging follows the pages of the queries in a file.
type paging struct {
	number int  // of the last page, 0 before the first
	more   bool // it says that another follows
	total  int  // rows that its query has
	got    int  // rows of it so far
}

// page reads one answer.
func (g *paging) page(d *document, record func(node) error) error {
	var pagination node
	results, rows := false, 0
	err := d.object("la respuesta", func(name string) error {
		switch name {
		case "pagination":
			var err error
			pagination, err = d.record()
			return err
		case "results":
			results = true
			return d.list("results", func() error {
				n, err := d.record()
				if err != nil {
					return err
				}
				rows++
				return record(n)
			})
		}
		_, err := d.record()
		return err
	})
	if err != nil {
		return err
	}
	number, err1 := strconv.Atoi(pagination.of("page"))
	total, err2 := strconv.Atoi(pagination.of("totalRows"))
	next := pagination.of("hasNextPage")
	if !results || err1 != nil || err2 != nil || number < 1 || total < 0 || next != "true" && next != "false" {
		return shape("faltan results, o pagination con page, totalRows y hasNextPage")
	}
	switch {
	case g.more && (number != g.number+1 || total != g.total):
		return tabular.Refuse(tabular.OtherList, fmt.Sprintf("después de la página %d viene la %d: junte todas las páginas de la consulta en orden, en un solo archivo", g.number, number))
	case !g.more && number != 1:
		return tabular.Refuse(tabular.OtherList, fmt.Sprintf("empieza en la página %d: junte todas las páginas de la consulta, desde la 1, en un solo archivo", number))
	case !g.more:
		g.got = 0
	}
	g.number, g.total, g.more = number, total, next == "true"
	g.got += rows
	if !g.more {
		return g.full()
	}
	return nil
}

func (g *paging) full() error {
	if g.got != g.total {
		return tabular.Refuse(tabular.Truncated, fmt.Sprintf("trae %d de los %d registros que dice tener (totalRows); guarde de nuevo todas las páginas", g.got, g.total))
	}
	return nil
}

func (g *paging) complete() error {
	if g.more {
		return tabular.Refuse(tabular.Truncated, fmt.Sprintf("la página %d dice que hay otra (hasNextPage) y no viene: junte todas las páginas de la consulta en un solo archivo", g.number))
	}
	return nil
}

// record1 maps a record of the first version.
func (p *pdn) record1(n node) error {
	who := n.at("particularSancionado")
	if who.members == nil {
		return shape("un elemento de results no tiene particularSancionado")
	}
	p.got++
	code := func(n node) string { return firstOf(n.of("valor"), n.of("clave"), n.text) }
	raw := make([]string, len(p.schema.Columns))
	for i, text := range [...]string{
		who.of("rfc"), who.of("nombreRazonSocial"), n.of("institucionDependencia", "nombre"), n.of("expediente"), n.at("tipoSancion").joined(code),
		n.of("inhabilitacion", "fechaInicial"), n.of("inhabilitacion", "fechaFinal"), n.of("inhabilitacion", "plazo"),
		n.of("multa", "monto"), firstOf(n.of("multa", "moneda", "clave"), n.of("multa", "moneda", "valor"), n.of("multa", "moneda")),
		n.of("id"), n.of("causaMotivoHechos"), n.of("tipoFalta"), n.of("autoridadSancionadora"), n.of("resolucion", "fechaNotificacion"),
		n.of("resolucion", "sentido"), n.of("resolucion", "url"), n.of("objetoContrato"), n.of("acto"), n.of("fechaCaptura"),
	} {
		raw[i] = text
	}
	return p.row(raw)
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// Collections of the second version. Those of public servants are known so as to be
// refused by name: a servant is no supplier.
const (
	morales = "faltas_graves_personas_morales"
	fisicas = "faltas_graves_personas_fisicas"
)

// ReadPDN2Morales and ReadPDN2Fisicas read answers of the second version of System 3,
// {"data":[…],"meta":{"total_count":…}}, one collection each: all parts of one query,
// one behind the other in one file. meta is needed: nothing else says that the file is
// all there is. A record becomes a row for each of its sanctions.
func ReadPDN2Morales(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return readPDN2(&query.Sancionados[2], morales, official, add)
}

func ReadPDN2Fisicas(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	return readPDN2(&query.Sancionados[3], fisicas, official, add)
}

func readPDN2(schema *snapshots.Schema, collection string, official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error) {
	p := pdn{schema: schema, add: add, rfcField: "datosGenerales.rfc", id: []int{query.ColSancionID, query.ColSancionTipo}}
	return p.read(official, func(d *document) error {
		total, parts := 0, 0
		for d.more() {
			n, err := p.part2(d, collection)
			if err != nil {
				return err
			}
			if parts++; parts > 1 && n != total {
				return tabular.Refuse(tabular.OtherList, fmt.Sprintf("sus partes dicen tener %d y %d registros: no son de una misma consulta; guárdelas de nuevo", total, n))
			}
			total = n
		}
		if p.got != total {
			return tabular.Refuse(tabular.Truncated, fmt.Sprintf("trae %d de los %d registros que dice tener (meta.total_count); pida la colección completa (limit=-1) o junte todas sus partes, sin filtro, en un solo archivo", p.got, total))
		}
		return nil
	})
}

// part2 reads one answer and returns how many records the whole collection has.
func (p *pdn) part2(d *document, collection string) (total int, err error) {
	data := false
	var meta node
	err = d.object("la respuesta", func(name string) error {
		switch name {
		case "meta":
			var err error
			meta, err = d.record()
			return err
		case "data":
			data = true
			return d.list("data", func() error {
				n, err := d.record()
				if err != nil {
					return err
				}
				return p.record2(n, collection)
			})
		}
		_, err := d.record()
		return err
	})
	if err != nil {
		return 0, err
	}
	total, bad := strconv.Atoi(meta.of("total_count"))
	if !data || bad != nil || total < 0 {
		return 0, shape("faltan data, o meta.total_count; pida la colección con meta=total_count")
	}
	return total, nil
}

// collectionOf names the collection that a record has the shape of.
func collectionOf(n node) string {
	who := n.at("datosGenerales")
	_, post := n.members["empleoCargoComision"]
	_, sex := who.members["sexo"]
	switch {
	case post || sex: // no other collection asks for them
		return "servidores públicos"
	case n.at("particularSancionado").members != nil:
		return "particulares sancionados, de la versión 1"
	case who.members == nil:
		return ""
	}
	if _, ok := who.members["nombreRazonSocial"]; ok {
		return morales
	}
	if _, ok := who.members["nombres"]; ok {
		return fisicas
	}
	return ""
}

// record2 maps a record of the second version: a row for each sanction.
func (p *pdn) record2(n node, collection string) error {
	switch is := collectionOf(n); is {
	case collection:
	case "":
		return shape("un elemento de data no tiene datosGenerales con el nombre de " + collection)
	default:
		return tabular.Refuse(tabular.OtherList, fmt.Sprintf("es de %s y no de %s; los servidores públicos no son proveedores y no se cargan, y cada colección se carga con su propia fuente", is, collection))
	}
	p.got++
	who := n.at("datosGenerales")
	name := who.of("nombreRazonSocial")
	if collection == fisicas {
		name = strings.Join(strings.Fields(strings.Join([]string{who.of("nombres"), who.of("primerApellido"), who.of("segundoApellido")}, " ")), " ")
	}
	sanctions := n.at("tipoSancion").items
	if len(sanctions) == 0 {
		sanctions = []node{n.at("tipoSancion")}
	}
	code := func(n node) string { return firstOf(n.of("clave"), n.of("valor")) }
	for _, s := range sanctions {
		term := s.at("inhabilitacion")
		if term.members == nil {
			term = s.at("suspensionActividades")
		}
		fine := s.at("sancionEconomica")
		if fine.members == nil {
			fine = s.at("indemnizacion")
		}
		raw := make([]string, len(p.schema.Columns))
		for i, text := range [...]string{
			who.of("rfc"), name, n.of("dondeCometioLaFalta", "nombreEntePublico"), n.of("expediente"), s.of("clave"),
			term.of("fechaInicial"), term.of("fechaFinal"), written(term), fine.of("monto"), fine.of("moneda"),
			n.of("id"), n.at("faltaCometida").joined(code), n.of("entePublico", "nombre"), n.of("resolucion", "autoridadResolutora"),
			n.of("resolucion", "fechaResolucion"), n.of("resolucion", "fechaNotificacion"), n.of("resolucion", "fechaResolucionFirme"),
			n.of("resolucion", "urlResolucion"), n.of("date_created"), n.of("date_updated"),
		} {
			raw[i] = text
		}
		if err := p.row(raw); err != nil {
			return err
		}
	}
	return nil
}

// written is a term by its numbers of years, months and days, those that are given.
func written(term node) string {
	var all []string
	for _, unit := range [...]struct{ name, one, many string }{
		{"plazoAnios", "año", "años"}, {"plazoSuspensioAnios", "año", "años"}, // as the official definition spells it
		{"plazoMeses", "mes", "meses"}, {"plazoSuspensionMeses", "mes", "meses"},
		{"plazoDias", "día", "días"}, {"plazoSuspensionDias", "día", "días"},
	} {
		switch n := term.of(unit.name); n {
		case "", "0":
		case "1":
			all = append(all, "1 "+unit.one)
		default:
			all = append(all, n+" "+unit.many)
		}
	}
	return strings.Join(all, ", ")
}
