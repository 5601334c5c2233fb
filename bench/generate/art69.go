package generate

import (
	"strconv"
	"strings"
	"time"
)

// list is one of the lists under article 69.
type list struct {
	code   string
	header string
	// rows and distinct RFCs at scale 1. Rows are as measured in May to August 2026,
	// of lists that nobody measured since, in September 2024; the RFCs of FIRMES,
	// REDUCCION_ART74 and the small ones are guessed.
	rows, rfcs int
	// listed is the part of those under article 69-B who are in it too, and debtors
	// where in their pool the others come from: lists whose parts overlap name the same
	// ones. Both are at scale 1 and guessed.
	listed  [2]int
	debtors int
	// same: of 100 repeated rows so many are equal in every cell.
	same  int
	write func(g *generator, l *list)
}

const (
	titlesCredits   = "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA"
	titlesRulings   = "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION,ENTIDAD FEDERATIVA"
	titlesCancelled = "RFC,RAZON SOCIAL,TIPO PERSONA,SUPUESTO,FECHA DE CANCELACION,MONTO,FECHA DE PUBLICACION,ENTIDAD FEDERATIVA"
	titlesReduced   = `RFC,"NOMBRE, DENOMINACION O RAZON SOCIAL",TIPO DE PERSONA,SUPUESTO,FECHA DE AUTORIZACION,MONTO,FECHA DE PUBLICACION,ENTIDAD FEDERATIVA`
	titlesForgiven  = "RFC,RAZÓN SOCIAL,TIPO PERSONA,SUPUESTO,FECHAS DE PRIMERA PUBLICACION,MONTO,FECHA DE PUBLICACIÓN,Entidad Federativa"
	titlesForgiven0 = `Año,Tipo persona,RFC,Contribuyente," Importe condonado "," Motivo de condonación ",Entidad Federativa`
	titlesCancel0   = `AÑO,TIPO DE PERSONA,RFC,CONTRIBUYENTE," Importe pesos ",Motivo,ENTIDAD FEDERATIVA`
	titlesBodies    = "RFC,RAZON SOCIAL,SUPUESTO,EJERCICIO,PERIODO,FECHA DE PRIMERA PUBLICACION"
	titlesSeals     = "RFC,NOMBRE O RAZÓN SOCIAL,SUPUESTO DE CANCELACIÓN CSD,FECHA DE CANCELACIÓN CSD,ADMINISTRACIÓN GENERAL RESPONSABLE DE LA CANCELACIÓN,FECHA DE PUBLICACIÓN"
)

// art69 is the fourteen lists. ELIMINADOS is not among them: nobody knows whether it
// is published.
var art69 = []list{
	{code: "FIRMES", header: titlesCredits, rows: 264_368, rfcs: 260_700, listed: [2]int{0, 4_400}, debtors: 0, same: 60, write: writeCredit("FIRMES")},
	{code: "EXIGIBLES", header: titlesCredits, rows: 5_785, rfcs: 5_700, listed: [2]int{4_000, 4_300}, debtors: 255_000, same: 60, write: writeCredit("EXIGIBLES")},
	{code: "NO_LOCALIZADOS", header: titlesCredits, rows: 53_422, rfcs: 53_000, listed: [2]int{1_500, 4_500}, debtors: 240_000, same: 60, write: writeCredit("NO LOCALIZADOS")},
	{code: "SENTENCIAS", header: titlesRulings, rows: 572, rfcs: 560, listed: [2]int{0, 20}, debtors: 500, same: 60, write: writeCredit("SENTENCIAS")},
	{code: "CANCELADOS", header: titlesCancelled, rows: 184_852, rfcs: 182_312, listed: [2]int{4_000, 5_000}, debtors: 230_000, write: (*generator).cancelled},
	{code: "REDUCCION_ART74", header: titlesReduced, rows: 107_000, rfcs: 95_000, debtors: 400_000, write: (*generator).reduced},
	{code: "CONDONADOS_146B", header: titlesForgiven, rows: 17, rfcs: 17, debtors: 490_000, write: writeForgiven("CONDONADOS")},
	{code: "REDUCCION_ART21", header: titlesForgiven, rows: 4, rfcs: 4, debtors: 490_100, write: writeForgiven("REDUCCION")},
	{code: "CONDONADOS_DECRETO", header: titlesForgiven, rows: 7, rfcs: 7, debtors: 490_200, write: writeForgiven("CONDONADOS")},
	{code: "CONDONADOS_07_15", header: titlesForgiven0, rows: 10_216, rfcs: 9_000, debtors: 480_000, write: (*generator).before2015},
	{code: "CANCELADOS_07_15", header: titlesCancel0, rows: 23_006, rfcs: 20_000, debtors: 405_000, write: (*generator).before2015},
	{code: "RETORNO_INVERSIONES", header: titlesForgiven, rows: 74, rfcs: 70, debtors: 490_300, write: writeForgiven("RETORNO DE INVERSIONES")},
	{code: "ENTES_PUBLICOS_OMISOS", header: titlesBodies, rows: 4_008, rfcs: 597, write: (*generator).body},
	{code: "CSD_SIN_EFECTOS", header: titlesSeals, rows: 60_000, rfcs: 59_302, listed: [2]int{0, 6_600}, debtors: 10_000, write: (*generator).seal},
}

func art69Tables() (all []table) {
	for i := range art69 {
		l := &art69[i]
		all = append(all, table{"sat_art69_" + strings.ToLower(l.code), l.writeAll})
	}
	return all
}

func (l *list) writeAll(g *generator, out *file) error {
	if err := out.text([]byte(latin(l.header + "\r\n"))); err != nil {
		return err
	}
	rows, rfcs := g.scaled(l.rows), g.scaled(l.rfcs)
	order := newOrder(g.seed, rfcs)
	turns := newTurns(g.seed, l.code, rfcs, rows-rfcs, 0)
	for range rows {
		kind, at := turns.next()
		p, n := l.taxpayer(g, order.at(at))
		occurrence := uint64(0)
		if kind == turnAgain && turns.random.IntN(100) >= l.same {
			occurrence = turns.random.Uint64()
		}
		g.taxpayer(p, n)
		g.reseed(seedList, mix(uint64(p)<<32|uint64(n))^mix(uint64(len(l.code))<<32|uint64(l.rows))^occurrence)
		g.row.begin()
		l.write(g, l)
		if err := out.add(&g.row, g.who.rfc); err != nil {
			return err
		}
	}
	return nil
}

// taxpayer is number i of the list.
func (l *list) taxpayer(g *generator, i int) (p pool, n int) {
	if l.code == "ENTES_PUBLICOS_OMISOS" {
		return public, i
	}
	at := func(n int) int { return int(float64(n) * g.scale) }
	from, to := at(l.listed[0]), at(l.listed[1])
	if i < to-from {
		return presumed, from + i
	}
	return debtors, at(l.debtors) + i - (to - from)
}

// identity writes RFC, name and person type of g.who.
func (g *generator) identity(moral, fisica string) {
	r := &g.row
	r.bytes(g.who.cell)
	g.listedName()
	if r.add(fisica); g.who.moral {
		r.b = append(r.b[:len(r.b)-len(fisica)], moral...)
	}
}

func (g *generator) listedName() {
	start := g.row.open()
	switch n := g.random.IntN(1_000_000); {
	case n < 500: // typographic quotes
		g.row.b = append(append(append(g.row.b, 0x93), g.who.name...), 0x94)
	case n < 600: // a line end
		g.row.b = append(append(g.row.b, g.who.name...), '\n')
	default:
		g.row.b = append(g.row.b, g.who.name...)
	}
	g.row.shut(start)
}

// writeCredit writes a row of a list of tax credits. One in 5,000 says neither
// SUPUESTO nor person type.
func writeCredit(ground string) func(g *generator, l *list) {
	return func(g *generator, l *list) {
		r := &g.row
		if g.chance(200) {
			r.bytes(g.who.cell)
			g.listedName()
			r.empty(2)
		} else {
			g.identity("M", "F")
			r.add(ground)
		}
		g.firstPublication()
		r.add(g.who.state)
	}
}

// firstPublication writes a day on which lists appear: the 1st or the 16th of a month,
// or the 1 January 2014 that stands for all before it. One in 50 is not padded.
func (g *generator) firstPublication() {
	at := dayOf(2014, 1, 1)
	if g.random.IntN(100) >= 15 {
		half := 1 + g.random.IntN(24*12+15) // to 16 August 2026
		at = dayOf(2014, time.Month(1+half/2), 1+15*(half%2))
	}
	start := g.row.open()
	if g.random.IntN(50) == 0 {
		g.row.b = at.appendUnpadded(g.row.b)
	} else {
		g.row.b = at.appendSlashed(g.row.b)
	}
	g.row.shut(start)
}

// decided writes a day since first on which something was decided, and returns it.
func (g *generator) decided(first day) day {
	at := first + day(g.random.IntN(int(corteDay-60-first)))
	g.day(at)
	return at
}

func (g *generator) day(at day) {
	start := g.row.open()
	g.row.b = at.appendSlashed(g.row.b)
	g.row.shut(start)
}

// published writes a day of the month after at on which lists appear.
func (g *generator) published(at day) {
	year, month, _ := at.date()
	g.day(dayOf(year, month+1, 1+15*g.random.IntN(2)))
}

// amount writes pesos: a few hundred to hundreds of millions, with commas, which make
// the cell a quoted one, and around it blanks in some lists.
func (g *generator) amount(around string) {
	most := 400 << g.random.IntN(20)
	start := g.row.open()
	g.row.b = append(g.row.b, around...)
	g.row.b = appendGrouped(g.row.b, most/2+g.random.IntN(most))
	g.row.b = append(g.row.b, around...)
	g.row.shut(start)
}

var cancelledGrounds = []string{"CANCELADOS POR INSOLVENCIA", "CANCELADOS POR INCOSTEABILIDAD", "CANCELADOS"}

func (g *generator) cancelled(*list) {
	g.identity("M", "F")
	g.row.add(one(g, cancelledGrounds))
	at := g.decided(dayOf(2014, 1, 1))
	g.amount("")
	g.published(at)
	g.row.add(g.who.state)
}

func (g *generator) reduced(*list) {
	g.identity("Persona moral", "Persona fisica")
	g.row.add("REDUCCION DE MULTAS")
	at := g.decided(dayOf(2014, 1, 1))
	g.amount("")
	g.published(at)
	g.row.add(g.who.state)
}

func writeForgiven(ground string) func(g *generator, l *list) {
	return func(g *generator, l *list) {
		g.identity("M", "F")
		g.row.add(ground)
		g.firstPublication()
		g.amount("")
		g.firstPublication()
		g.row.add(g.who.state)
	}
}

// before2015 writes a row of a closed list: the year first. One old file has a letter
// in a code page of DOS.
func (g *generator) before2015(l *list) {
	r := &g.row
	r.int(2007 + g.random.IntN(9))
	kind, reason := "Persona fisica", "INSOLVENCIA"
	if l.code == "CONDONADOS_07_15" {
		kind, reason = "Persona F\xa1sica", "CONDONACION"
	}
	if g.who.moral {
		kind = "Persona Moral"
	}
	r.add(kind)
	r.bytes(g.who.cell)
	g.listedName()
	g.amount(" ")
	r.add(reason)
	r.add(g.who.state)
}

var periods = []string{"ENERO", "FEBRERO", "MARZO", "ABRIL", "MAYO", "JUNIO", "JULIO", "AGOSTO", "SEPTIEMBRE", "OCTUBRE", "NOVIEMBRE", "DICIEMBRE", "ANUAL"}

func (g *generator) body(*list) {
	r := &g.row
	r.bytes(g.who.cell)
	g.listedName()
	r.add("FRACCION VII")
	r.open()
	r.b = strconv.AppendInt(r.b, int64(2015+g.random.IntN(11)), 10)
	r.add(one(g, periods))
	g.firstPublication()
}

var (
	sealGrounds = latins("FRACCIÓN X", "FRACCIÓN X", "FRACCIÓN X", "FRACCIÓN XI", "FRACCIÓN XII")
	authorities = []string{"AGAFF", "AGR", "AGGC", "AGH", "AGACE"}
)

// seal writes a row of a list that has neither person type nor state. The real one has
// a byte that windows-1252 lacks in it; here a few of 60,000 rows do.
func (g *generator) seal(*list) {
	r := &g.row
	r.bytes(g.who.cell)
	start := r.open()
	r.b = append(r.b, g.who.name...)
	if g.chance(50) {
		r.b = append(r.b, 0x8d)
	}
	r.shut(start)
	r.add(one(g, sealGrounds))
	at := g.decided(dayOf(2020, 1, 1))
	r.add(one(g, authorities))
	g.published(at)
}
