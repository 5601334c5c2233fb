package generate

import (
	"unicode/utf8"

	"cotejo/checks"
)

// pool is a kind of taxpayers; a taxpayer is a pool and a number in it. Files name the
// same taxpayers when they draw from the same part of a pool.
type pool uint64

const (
	presumed  pool = iota + 1 // those under article 69-B
	debtors                   // those of the lists under article 69
	suppliers                 // contractors of the government
	public                    // public bodies
)

// moral is how many of a million in a pool are legal entities. Of the definitive ones
// under article 69-B 8,686 of 11,336 are; the others are guessed.
var moral = map[pool]int{presumed: 766_000, debtors: 560_000, suppliers: 740_000, public: 1_000_000}

// companies is how many suppliers, those with the most contracts, are legal entities.
const companies = 2_000

// taxpayer is an invented one. Its slices are reused.
type taxpayer struct {
	moral bool
	rfc   []byte // UTF-8
	cell  []byte // the same in windows-1252
	name  []byte // windows-1252
	state string
}

// taxpayer makes number n of a pool into g.who: the same wherever it is asked for.
// The random numbers are begun anew.
func (g *generator) taxpayer(p pool, n int) {
	g.reseed(uint64(p), uint64(n))
	w := &g.who
	w.rfc, w.name = w.rfc[:0], w.name[:0]
	w.state = one(g, states)
	w.moral = g.chance(moral[p]) || p == suppliers && n < companies
	odd := g.random.IntN(1_000_000)
	switch {
	case p == public:
		g.publicBody()
	case w.moral:
		g.company(odd)
	default:
		g.person(odd)
	}
	years := 40 // legal entities since 1985, persons born since 1942
	first := 1985
	if !w.moral {
		years, first = 60, 1942
	}
	year := first + g.random.IntN(years)
	w.rfc = appendTwo(w.rfc, year%100)
	w.rfc = appendTwo(w.rfc, 1+g.random.IntN(12))
	w.rfc = appendTwo(w.rfc, 1+g.random.IntN(28))
	const homoclave = "123456789ABCDEFGHIJKLMNPQRSTUVWXYZ"
	w.rfc = append(w.rfc, homoclave[g.random.IntN(len(homoclave))], homoclave[g.random.IntN(len(homoclave))], '0')
	w.rfc[len(w.rfc)-1] = g.wrongDigit(w.rfc)
	w.cell = w.cell[:0]
	for rest := w.rfc; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		w.cell = append(w.cell, byte(r)) // Ñ is its own code in windows-1252
		rest = rest[size:]
	}
}

// wrongDigit is a check digit that the RFC does not have.
func (g *generator) wrongDigit(rfc []byte) byte {
	parsed, err := checks.ParseRFC(string(rfc))
	if err != nil {
		panic("generate: " + err.Error())
	}
	digit := byte('0' + g.random.IntN(9))
	if right := parsed.CheckDigit().Expected[0]; digit >= right {
		digit++
	}
	return digit
}

// oddShare is how many RFCs of a million have an & and how many an Ñ: 8 and 7 of
// 11,336 in the definitive ones of January 2026.
const oddShare = 700

// company appends a name and the letters of its RFC: those with which three words begin.
func (g *generator) company(odd int) {
	w := &g.who
	first := one(g, trades)
	letter := string(first[0])
	switch {
	case odd < oddShare: // A & B TRADES: the & counts as a word
		w.name = append(w.name, byte('A'+g.random.IntN(26)), ' ', '&', ' ')
		letter = string(w.name[0]) + "&"
	case odd < 2*oddShare:
		w.name = append(w.name, latin("ÑANDÚ ")...)
		letter = "Ñ"
	}
	w.name = append(append(w.name, first...), ' ')
	word := len(w.name)
	w.name = g.appendInvented(w.name)
	w.rfc = append(w.rfc, letter...)
	w.rfc = append(w.rfc, w.name[word])
	third := byte('A' + g.random.IntN(26))
	if g.random.IntN(3) > 0 {
		more := one(g, complements)
		w.name = append(append(w.name, ' '), more...)
		third = more[0]
	}
	if letter[len(letter)-1] != '&' {
		w.rfc = append(w.rfc, third)
	}
	switch n := g.random.IntN(100); {
	case n < 50:
		w.name = append(w.name, ", S.A. DE C.V."...)
	case n < 75:
		w.name = append(w.name, " SA DE CV"...)
	case n < 90:
		w.name = append(w.name, ", S. DE R.L. DE C.V."...)
	default:
		w.name = append(w.name, " S.C."...)
	}
}

// person appends two invented surnames, a given name, and the letters of the RFC.
func (g *generator) person(odd int) {
	w := &g.who
	if odd < oddShare {
		w.name = append(w.name, latin("Ñ")...)
		w.name = append(w.name, 'U')
		w.rfc = append(w.rfc, "ÑU"...)
	}
	start := len(w.name)
	w.name = append(g.appendInvented(w.name), ' ')
	if len(w.rfc) == 0 {
		vowel := byte('X')
		for _, c := range w.name[start+1 : len(w.name)-1] {
			if c == 'A' || c == 'E' || c == 'I' || c == 'O' || c == 'U' {
				vowel = c
				break
			}
		}
		w.rfc = append(w.rfc, w.name[start], vowel)
	}
	start = len(w.name)
	w.name = append(g.appendInvented(w.name), ' ')
	w.rfc = append(w.rfc, w.name[start])
	given := one(g, givenNames)
	w.name = append(w.name, given...)
	w.rfc = append(w.rfc, given[0])
	if g.random.IntN(2) == 0 {
		w.name = append(append(w.name, ' '), one(g, givenNames)...)
	}
}

func (g *generator) publicBody() {
	w := &g.who
	kind := one(g, bodies)
	w.name = append(append(w.name, kind...), ' ')
	start := len(w.name)
	w.name = g.appendInvented(w.name)
	w.rfc = append(w.rfc, kind[0], w.name[start], byte('A'+g.random.IntN(26)))
	w.name = append(append(w.name, ' '), w.state...)
}

// appendInvented appends a word that no language has.
func (g *generator) appendInvented(dst []byte) []byte {
	dst = append(dst, one(g, onsets)...)
	for range 1 + g.random.IntN(2) {
		dst = append(dst, one(g, middles)...)
	}
	return append(dst, one(g, endings)...)
}

var (
	onsets  = latins("BAL", "BEL", "BRI", "CAR", "COL", "CHA", "DAR", "DRE", "FAL", "FLO", "GAN", "GRE", "HUR", "IRA", "JAL", "LOR", "MAR", "MEL", "NUR", "ORI", "PAL", "PRA", "QUI", "RIN", "SAL", "TAL", "TRE", "ULI", "VEN", "XAL", "YUR", "ZAR", "ALU", "EMO")
	middles = latins("BU", "CE", "DI", "FO", "GUA", "LA", "LE", "LI", "MO", "MU", "NA", "NE", "PE", "RA", "RI", "SO", "TA", "TE", "VI", "ZU")
	endings = latins("BRA", "CAS", "DAVE", "DRO", "FINO", "GA", "LES", "LINA", "MERA", "MO", "NDO", "NEZ", "QUE", "RINO", "RRA", "SCO", "TOR", "VAL", "XI", "ZA")

	trades = latins("COMERCIALIZADORA", "CONSTRUCTORA", "SERVICIOS", "ASESORÍA", "GRUPO", "DISTRIBUIDORA", "CORPORATIVO", "CONSULTORÍA", "OPERADORA",
		"INMOBILIARIA", "TRANSPORTES", "PROMOTORA", "DESARROLLOS", "ADMINISTRADORA", "INDUSTRIAS", "SUMINISTROS", "LOGÍSTICA", "PUBLICIDAD", "MANTENIMIENTO",
		"ABASTECEDORA", "PROVEEDORA", "SOLUCIONES", "TECNOLOGÍA", "INGENIERÍA", "URBANIZACIONES", "EDIFICACIONES", "MATERIALES", "EQUIPOS", "LABORATORIOS",
		"FARMACÉUTICA", "AGROPECUARIA", "ALIMENTOS", "HOSPITALARIA", "VIGILANCIA", "ZAPATERÍAS", "KIOSCOS", "REFACCIONES", "JARDINERÍA", "WAGONES", "NEUMÁTICOS")
	complements = latins("DEL NORTE", "DEL BAJÍO", "DEL SURESTE", "DE OCCIDENTE", "INTEGRALES", "Y ASOCIADOS", "INTERNACIONAL", "MEXICANA", "PENINSULAR",
		"UNIDOS", "HERMANOS", "GLOBAL", "ESPECIALIZADOS", "FRONTERIZA", "TOTALES", "CONTEMPORÁNEA", "LATINOAMERICANA", "BÁSICOS", "ZONA CENTRO", "ORIENTE")
	givenNames = latins("JUAN", "MARÍA", "JOSÉ LUIS", "GUADALUPE", "FRANCISCO", "ANA LAURA", "JESÚS", "PATRICIA", "ROBERTO", "ELENA", "MIGUEL ÁNGEL", "SILVIA",
		"FERNANDO", "LETICIA", "RAÚL", "NORMA", "HÉCTOR", "BEATRIZ", "OMAR", "VERÓNICA", "DAVID", "TERESA", "IGNACIO", "CLAUDIA", "XÓCHITL", "WENDY", "QUETZALLI", "ZAIRA")
	bodies = latins("MUNICIPIO DE", "AYUNTAMIENTO DE", "ORGANISMO OPERADOR DE AGUA POTABLE DE", "INSTITUTO TECNOLÓGICO DE", "SISTEMA PARA EL DESARROLLO INTEGRAL DE LA FAMILIA DE",
		"COMISIÓN DE AGUA DE", "UNIVERSIDAD POLITÉCNICA DE", "FIDEICOMISO DE TURISMO DE")
	states = latins("AGUASCALIENTES", "BAJA CALIFORNIA", "BAJA CALIFORNIA SUR", "CAMPECHE", "CHIAPAS", "CHIHUAHUA", "CIUDAD DE MEXICO", "COAHUILA", "COLIMA",
		"DURANGO", "GUANAJUATO", "GUERRERO", "HIDALGO", "JALISCO", "MEXICO", "MICHOACAN", "MORELOS", "NAYARIT", "NUEVO LEON", "OAXACA", "PUEBLA", "QUERETARO",
		"QUINTANA ROO", "SAN LUIS POTOSI", "SINALOA", "SONORA", "TABASCO", "TAMAULIPAS", "TLAXCALA", "VERACRUZ", "YUCATAN", "ZACATECAS")
)
