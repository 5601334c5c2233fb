package generate

import (
	"strconv"
	"strings"
)

// The complete list under article 69-B at scale 1, in the proportions of its state of
// 31 January 2026 (14,280 rows: 11,336 definitive, 966 presumed, 340 cleared, 1,638 with
// a ruling; 238 redacted; 76 RFCs in several rows) and the size of 31 August 2026.
const (
	rows69B     = 15_000
	redacted69B = 250
	again69B    = 80 // second procedures against the same taxpayer
)

const (
	note69B = "Información actualizada al 31 de agosto de 2026; los listados a que se hace mención son sintéticos: este archivo se generó para " +
		"mediciones y pruebas con el formato y el tamaño de la publicación oficial, ninguno de los contribuyentes, oficios y fechas que contiene existe, y " +
		"los dígitos verificadores de sus claves son incorrectos a propósito. Las publicaciones verdaderas se consultan en la página de la autoridad y en " +
		"el Diario Oficial de la Federación, que son las únicas que tienen efectos de conformidad con el artículo 69-B, párrafos primero, segundo, cuarto y " +
		"quinto, del Código Fiscal de la Federación; nada de lo que aquí se lee sustituye, resume ni interpreta lo que en ellas se publica, en perjuicio ni en " +
		"beneficio de persona alguna."
	title69B  = "Listado completo de contribuyentes (Artículo 69-B del CFF)"
	header69B = "No,RFC,Nombre del Contribuyente,Situación del contribuyente," +
		"Número y fecha de oficio global de presunción SAT,Publicación página SAT presuntos," +
		"Número y fecha de oficio global de presunción DOF,Publicación DOF presuntos," +
		"Número y fecha de oficio global de contribuyentes que desvirtuaron SAT,Publicación página SAT desvirtuados," +
		"Número y fecha de oficio global de contribuyentes que desvirtuaron DOF,Publicación DOF desvirtuados," +
		"Número y fecha de oficio global de definitivos SAT,Publicación página SAT definitivos," +
		"Número y fecha de oficio global de definitivos DOF,Publicación DOF definitivos," +
		"Número y fecha de oficio global de sentencia favorable SAT,Publicación página SAT sentencia favorable," +
		"Número y fecha de oficio global de sentencia favorable DOF,Publicación DOF sentencia favorable"
	fillers69B = 3

	titleBis  = "Listado completo de contribuyentes (Artículo 69-B Bis del CFF)"
	headerBis = "No.,RFC,Nombre del Contribuyente,Situación del contribuyente," +
		"Número y fecha de oficio global definitivo SAT,Publicación página SAT definitivo," +
		"Número y fecha de oficio global definitivo DOF,Publicación DOF definitivo," +
		"Número y fecha de oficio global de sentencia favorable SAT,Publicación página SAT sentencia favorable," +
		"Número y fecha de oficio global de sentencia favorable DOF,Publicación DOF sentencia favorable"
)

// Oficios name many taxpayers at once: lots of them appear fortnightly from the first
// one of 2014 to the last one before the corte.
var (
	firstLot = dayOf(2014, 1, 30)
	last69B  = dayOf(2026, 8, 20)
)

const (
	lots      = 304
	recent    = 18 // the last lots, against which nothing is decided yet
	lotDays   = 15
	laterLots = 90 // before a second procedure against the same taxpayer
)

func preamble(note, title, header string, columns int) []byte {
	var b strings.Builder
	blank := strings.Repeat(",", columns-1)
	if strings.ContainsAny(note, `,"`) {
		note = `"` + note + `"`
	}
	for _, line := range []string{note + blank, title + blank, header} {
		b.WriteString(line + "\r\n")
	}
	return []byte(latin(b.String()))
}

func write69B(g *generator, out *file) error {
	if err := out.text(preamble(note69B, title69B, header69B, 20)); err != nil {
		return err
	}
	total, redacted, again := g.scaled(rows69B), g.scaled(redacted69B), g.scaled(again69B)
	if total < redacted+again+3 {
		redacted, again = 0, 0
	}
	distinct := total - redacted - again
	order := newOrder(g.seed, distinct)
	turns := newTurns(g.seed, "sat_69b", distinct, again, redacted)
	for i := range total {
		switch kind, at := turns.next(); kind {
		case turnNew:
			g.taxpayer(presumed, order.at(at))
			g.row69B(i+1, order.at(at), 0)
		case turnAgain:
			g.taxpayer(presumed, order.at(at))
			g.row69B(i+1, order.at(at), 1)
		default:
			g.redacted69B(i + 1)
		}
		if err := out.add(&g.row, g.who.rfc); err != nil {
			return err
		}
	}
	return out.text([]byte(strings.Repeat(strings.Repeat(",", 19)+"\r\n", fillers69B)))
}

// situation of a row: which stages it has.
type situation struct {
	name                         string
	cleared, definitive, granted bool
}

var (
	situationPresumed   = situation{name: "Presunto"}
	situationCleared    = situation{name: "Desvirtuado", cleared: true}
	situationDefinitive = situation{name: "Definitivo", definitive: true}
	situationGranted    = situation{name: "Sentencia Favorable", definitive: true, granted: true}
)

// situation69B is in the proportions of 31 January 2026.
func (g *generator) situation69B() situation {
	switch n := g.random.IntN(14_280); {
	case n < 11_336:
		return situationDefinitive
	case n < 11_336+966:
		return situationPresumed
	case n < 11_336+966+340:
		return situationCleared
	}
	return situationGranted
}

// kinds of row, for the random numbers: pools come before them.
const (
	seed69B = iota + 100
	seedRedacted
	seedBis
	seedList
	seedContract
	seedOrder
	seedInstitution
)

// row69B writes a row of g.who, which is number n of its pool: its first or its second
// procedure. The shares of the oddities are those of the files of 2022 and 2026.
func (g *generator) row69B(no, n, procedure int) {
	g.reseed(seed69B, uint64(n)<<1|uint64(procedure))
	r := &g.row
	r.begin()
	r.int(no)
	start := r.open()
	r.b = append(r.b, g.who.cell...)
	if g.chance(80) {
		r.b = append(r.b, ' ')
	}
	r.shut(start)
	g.name69B()
	s := g.situation69B()
	r.add(s.name)

	lot := g.random.IntN(lots - recent - laterLots)
	if s.name == situationPresumed.name {
		if lot = lots - 1 - g.random.IntN(recent); g.chance(120_000) {
			lot = g.random.IntN(lots - recent - laterLots) // forgotten for years
		}
		if procedure == 0 {
			lot -= recent // a second one comes later
		}
	}
	if procedure > 0 && s.name != situationPresumed.name {
		lot += laterLots
	} else if procedure == 0 {
		lot = max(lot, 0)
	}
	at := firstLot + day(lot*lotDays)
	g.stage(at, 1000+lot*97, s.name == situationPresumed.name && lot > lots-8)
	later := func() { at = min(at+150+day(g.random.IntN(200)), last69B) }
	if s.cleared {
		later()
		g.stage(at, 0, false)
	} else {
		r.empty(4)
	}
	if s.definitive {
		later()
		g.stage(at, 0, false)
	} else {
		r.empty(4)
	}
	if s.granted {
		at = min(at+200+day(g.random.IntN(900)), last69B)
		g.stage(at, 0, at > last69B-40)
	} else {
		r.empty(4)
	}
}

// name69B writes the name of g.who with what the authority writes into it.
func (g *generator) name69B() {
	r := &g.row
	start := r.open()
	name := g.who.name
	switch n := g.random.IntN(1_000_000); {
	case n < 1_000: // typographic quotes
		r.b = append(append(append(r.b, 0x93), name...), 0x94)
	case n < 1_200: // quotes, which make the cell a quoted one
		r.b = append(append(append(r.b, '"'), name...), '"')
	case n < 1_400: // line ends
		r.b = append(append(r.b, name...), " \nS.A.\nDE C.V.\r\n"...)
	case n < 2_900:
		r.b = append(append(r.b, name...), latin(" // En cumplimiento a la sentencia de fecha 12 de marzo de 2021, dictada en el juicio inventado 90/2020")...)
	case n < 4_400:
		r.b = append(append(append(r.b, name...), " // ANTES "...), "COMERCIALIZADORA "...)
		r.b = g.appendInvented(r.b)
		r.b = append(r.b, ", S.A. DE C.V."...)
	case n < 9_000: // a no-break space
		r.b = append(append(r.b, name...), 0xa0)
	case n < 60_000:
		r.b = append(append(r.b, name...), ' ')
	default:
		r.b = append(r.b, name...)
	}
	r.shut(start)
}

// stage writes the four cells of a stage. number is that of its oficio, 0 for one
// that follows from the day; unprinted: it is not in the Diario Oficial yet.
func (g *generator) stage(at day, number int, unprinted bool) {
	r := &g.row
	several := number == 0 && g.chance(5_000) // 125 of 52,769 date cells
	if number == 0 {
		number = 1000 + int(at)*37%38_000
	}
	style := g.random.IntN(1_000_000)
	separator := one(g, dateSeparators)
	oficio := func(at day, number int) {
		start := r.open()
		r.b = appendOficio(r.b, at, number, style)
		if several {
			r.b = append(r.b, one(g, oficioSeparators)...)
			r.b = appendOficio(r.b, at-400, number-1, 999_999)
		}
		r.shut(start)
	}
	published := func(at day, serial bool) {
		start := r.open()
		switch {
		case serial:
			r.b = strconv.AppendInt(r.b, int64(at.serial()), 10)
		case several:
			older := at - 400
			r.b = append(at.appendSlashed(r.b), separator...)
			r.b = older.appendSlashed(r.b)
		case style < 100: // dd/mm/yy
			r.b = at.appendSlashed(r.b)
			n := len(r.b)
			r.b = append(r.b[:n-4], r.b[n-2:]...)
		default:
			r.b = at.appendSlashed(r.b)
		}
		r.shut(start)
	}
	oficio(at, number)
	published(at+day(g.random.IntN(3)), false)
	printed := at + 12 + day(g.random.IntN(24))
	if unprinted || printed > corteDay {
		r.empty(2)
		return
	}
	if g.chance(30_000) { // another oficio
		oficio(at+3, number+1)
	} else {
		oficio(at, number)
	}
	published(printed, g.chance(100))
}

var (
	dateSeparators   = []string{" - ", " // ", " -", "-", " "}
	oficioSeparators = []string{" // ", " // ", "//", " - "}
)

// appendOficio appends number and date of an oficio, in one of the ways in which they
// have been written; style is from 0 to 999,999.
func appendOficio(dst []byte, at day, number, style int) []byte {
	year, month, d := at.date()
	parts, joint := "500-05-", "-"
	switch {
	case year == 2014 && number%2 == 0:
		parts = "500-02-00-"
	case year >= 2026 && number%2 == 0:
		parts, joint = "500 05 ", " "
	case year >= 2026:
		parts = "500-05-00-00-00-"
	}
	dst = append(dst, parts...)
	dst = append(strconv.AppendInt(dst, int64(year), 10), joint...)
	dst = strconv.AppendInt(dst, int64(number), 10)
	link := " de fecha "
	if style < 10_000 {
		link = " de "
	} else if style < 30_000 {
		link = "  de fecha "
	}
	dst = append(dst, link...)
	if style%3 == 0 {
		dst = strconv.AppendInt(dst, int64(d), 10)
	} else {
		dst = appendTwo(dst, d)
	}
	of, to := " de ", " de "
	switch {
	case style >= 30_000 && style < 32_000:
		of, to = " ", " " // 16 junio 2017
	case style >= 32_000 && style < 37_000:
		to = " del "
	}
	dst = append(append(append(dst, of...), months[month-1]...), to...)
	dst = strconv.AppendInt(dst, int64(year), 10)
	switch {
	case style >= 40_000 && style < 70_000:
		dst = append(dst, ' ')
	case style >= 70_000 && style < 70_500:
		dst = append(dst, '?') // a byte that was lost
	case style >= 71_000 && style < 71_050:
		dst = append(dst, latin(" (únicamente en el DOF)")...)
	}
	return dst
}

// redacted69B writes a row that a court had suppressed. Nobody can ask for it.
func (g *generator) redacted69B(no int) {
	g.reseed(seedRedacted, uint64(no))
	r := &g.row
	r.begin()
	r.int(no)
	r.add("XXXXXXXXXXXX")
	g.who.rfc = g.who.rfc[:0]
	start := r.open()
	r.b = append(r.b, latin("Información suprimida en cumplimiento a la suspensión definitiva concedida en el juicio de amparo inventado ")...)
	r.b = strconv.AppendInt(r.b, int64(100+g.random.IntN(1900)), 10)
	r.b = append(r.b, "/2025, radicado en un Juzgado de Distrito que no existe, y en tanto se resuelve lo conducente"...)
	r.shut(start)
	s := situationGranted // 149 of 238
	if n := g.random.IntN(238); n < 74 {
		s = situationDefinitive
	} else if n < 74+15 {
		s = situationPresumed
	}
	r.add(s.name)
	at := firstLot + day(g.random.IntN(lots-recent-laterLots)*lotDays)
	g.stage(at, 1000+int(at-firstLot)/lotDays*97, false)
	r.empty(4)
	if s.definitive {
		g.stage(at+300, 0, false)
	} else {
		r.empty(4)
	}
	if s.granted {
		g.stage(at+900, 0, false)
	} else {
		r.empty(4)
	}
}

// write69BBis writes the three rows that the list has in the whole country, at any
// scale: two of taxpayers of the 69-B list, one with a line end in its name.
func write69BBis(g *generator, out *file) error {
	note := "Información actualizada al 31 de agosto de 2026"
	if err := out.text(preamble(note, titleBis, headerBis, 12)); err != nil {
		return err
	}
	for i := range 3 {
		g.taxpayer(presumed, i)
		g.reseed(seedBis, uint64(i))
		r := &g.row
		r.begin()
		r.int(i + 1)
		r.bytes(g.who.cell)
		start := r.open()
		r.b = append(r.b, g.who.name...)
		if i == 1 {
			r.b = append(r.b, "\nEN LIQUIDACION"...)
		}
		r.shut(start)
		ruled := i == 2
		if r.add("Definitivo"); ruled {
			r.b = append(r.b[:len(r.b)-len("Definitivo")], "Sentencia Favorable"...)
		}
		oficio := func(at day, number int) {
			year, month, d := at.date()
			start := r.open()
			r.b = append(strconv.AppendInt(append(r.b, "900-04-00-00-00-"...), int64(year), 10), '-')
			r.b = append(strconv.AppendInt(r.b, int64(number), 10), " de "...)
			r.b = append(append(append(appendTwo(r.b, d), " de "...), months[month-1]...), " de "...)
			r.b = strconv.AppendInt(r.b, int64(year), 10)
			r.shut(start)
			start = r.open()
			r.b = at.appendSlashed(r.b)
			r.shut(start)
		}
		at := dayOf(2024, 1, 25) + day(200*i)
		oficio(at, 80+i)
		oficio(at+160, 80+i)
		if ruled {
			oficio(at+400, 90)
			r.empty(2)
		} else {
			r.empty(4)
		}
		if err := out.add(r, g.who.rfc); err != nil {
			return err
		}
	}
	return nil
}
