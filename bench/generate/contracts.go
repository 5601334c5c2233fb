package generate

import (
	"slices"
	"strconv"
	"strings"
)

// year is one file of public contracts at scale 1. All years together have 2.5 million
// rows.
type year struct {
	year, rows int
	described  bool // has the 45th column of the layout until 2022
}

var years = []year{
	{2018, 300_000, false}, {2019, 290_000, false}, {2020, 240_000, true}, {2021, 260_000, true}, {2022, 270_000, true},
	{2023, 310_000, true}, {2024, 320_000, true}, {2025, 300_000, true}, {2026, 210_000, true},
}

// modern is the first year of the layout of 73 columns.
const modern = 2023

const (
	titlesOld = "Orden de gobierno,Siglas de la Institución,Institución,Clave de la UC,Nombre de la UC,Responsable de la UC,Código del expediente," +
		"Referencia del expediente,Clave CUCOP,Título del expediente,Plantilla del expediente,Fundamento legal,Número del procedimiento,Fecha de fallo," +
		"Fecha de publicación,Fecha de apertura,Carácter del procedimiento,Tipo de contratación,Tipo de procedimiento,Forma de participación," +
		"Código del contrato,Núm. de control del contrato,Título del contrato,Descripción del contrato,Fecha de inicio del contrato,Fecha de fin del contrato," +
		"Importe del contrato,Moneda del contrato,Estatus del contrato,Convenio modificatorio,Clave del programa federal,Fecha de firma del contrato," +
		"Contrato marco,Compra consolidada,Contrato plurianual,Clave de cartera SHCP,Folio en el RUPC,RFC,Proveedor o contratista," +
		"Estratificación de la empresa,Clave del país de la empresa,RFC verificado en el SAT,Crédito externo,Organismo financiero,Dirección del anuncio"
	// titleDescribed is not in the layout of 44 columns.
	titleDescribed = "Descripción del contrato,"

	// Of the 73 titles 62 are known, and that the RFC is the 65th: the others are left
	// blank, nine before it and two behind it, and their cells empty.
	titlesModern = "Orden de gobierno,Clave Ramo,Descripción Ramo,Tipo de Institución,Clave Institución,Siglas de la Institución,Institución,Clave de la UC," +
		"Nombre de la UC,Código del expediente,Referencia del expediente,Título del expediente,Partida específica,Ley,Tipo Procedimiento,Artículo de excepción," +
		"Descripción excepción,Contrato marco,Compra consolidada,Número de procedimiento,Tipo de contratación,Carácter del procedimiento,Forma de participación," +
		"Clave del programa federal,Clave de cartera SHCP,Crédito externo,Organismo financiero,Fecha de publicación,Fecha de apertura,Fecha de fallo," +
		"Código del contrato,Núm. del contrato,Título del contrato,Descripción del contrato,Estatus DRC,Estatus Contrato,Tipo de contrato,Contrato plurianual," +
		"Fecha de inicio del contrato,Fecha de fin del contrato,Fecha de firma del contrato,Fecha firma contrato,Importe DRC,Monto sin imp./mínimo," +
		"Monto mínimo con imp.,Monto sin imp./máximo,Monto máximo con imp.,Moneda,Moneda,Convenio modificatorio,Convenio modificatorio,Código Ref. Contrato," +
		"Código Ref. último convenio,Fecha fin último conv,Fecha firma último conv,,,,,,,,,,rfc,Proveedor o contratista,Folio en el RUPC,País de la empresa," +
		"Nacionalidad proveedor o contratista,Estratificación,,,Dirección del anuncio"
)

// Shares, of a million rows, of what was measured in the real files.
const (
	withRFC       = 670_000 // 66 to 68 of 100 from 2018 to 2022; all from 2023 on
	abroad        = 8_000   // EXT…, guessed
	amended       = 40_000  // another row of a contract, guessed
	unpublished   = 124_000 // 2,936 of 23,597
	unawarded     = 200_000 // 3 to 80 of 100
	excepted      = 365_000 // without a public tender
	bundled       = 200_000 // several partidas in a cell
	multiline     = 10_000  // guessed
	lowerCased    = 300_000 // since 2023; guessed
	openEnded     = 80_000  // maximum and minimum in the place of an amount, guessed
	otherMoney    = 25_000  // guessed
	decimalErrors = 10      // until 2020; two in the samples
)

// unsigned is how many of a million lack the day of signature: 33 to 56 of 100.
func (y *year) unsigned() int { return 330_000 + (y.year-2018)*25_000 }

func contractTables() (all []table) {
	for i := range years {
		y := &years[i]
		all = append(all, table{"compranet_" + strconv.Itoa(y.year), y.writeAll})
	}
	return all
}

// Suppliers: number r has heaviest*flat/(r+flat) parts of the contracts. At scale 1
// the first has some 19,500 rows, half of 231,000 suppliers one part, and three of four
// at most three.
const (
	heaviest = 21_000
	flat     = 11
)

// shares is by supplier the sum of the contracts of all up to it.
func (g *generator) shares() []uint32 {
	top := max(int(heaviest*g.scale), 3) * flat
	var sums []uint32
	sum := 0
	for r := 0; top/(r+flat) > 0; r++ {
		sum += top / (r + flat)
		sums = append(sums, uint32(sum))
	}
	return sums
}

// supplier is number r of them: mostly somebody who is on no list.
func supplier(r int) (p pool, n int) {
	switch {
	case r%400 == 390:
		return presumed, r / 400
	case r%100 == 57:
		return debtors, r / 100
	}
	return suppliers, r
}

func (y *year) writeAll(g *generator, out *file) error {
	titles := titlesModern
	if y.year < modern {
		if titles = titlesOld; !y.described {
			titles = strings.Replace(titles, titleDescribed, "", 1)
		}
	}
	if err := out.text([]byte(latin(titles + "\r\n"))); err != nil {
		return err
	}
	shares, buyers := g.shares(), g.buyers()
	rows := g.scaled(y.rows)
	turns := newTurns(g.seed, strconv.Itoa(y.year), rows, 0, 0)
	c := contract{year: y}
	for made, i := 0, 0; i < rows; i++ {
		c.number, c.amendment = made, 0
		if made > 0 && turns.random.IntN(1_000_000) < amended {
			c.number = made - 1 - turns.random.IntN(min(made, 2000))
			c.amendment = 1 + turns.random.IntN(1_000_000)
		} else {
			made++
		}
		c.draw(g, shares, buyers)
		g.row.begin()
		if y.year < modern {
			c.writeOld(g)
		} else {
			c.writeModern(g)
		}
		if err := out.add(&g.row, c.rfc); err != nil {
			return err
		}
	}
	return nil
}

// contract is what a row says. Its first three fields say everything: the same number
// is the same contract, and an amendment of it only has another amount.
type contract struct {
	year      *year
	number    int
	amendment int // 0: none

	rfc      []byte // "" for none that can be asked for
	cell     []byte // what the file has in its place, windows-1252
	name     []byte
	moral    bool
	abroad   bool
	buyer    *buyer
	unit     int
	sequence int
	signed   day
	cents    int
	title    []byte
	more     []byte
	address  [16]byte
}

// draw makes the contract from its number.
func (c *contract) draw(g *generator, shares []uint32, buyers []buyer) {
	key := uint64(c.year.year)<<32 | uint64(c.number)
	g.reseed(seedContract, key)
	total := int(shares[len(shares)-1])
	at, _ := slices.BinarySearch(shares, uint32(1+g.random.IntN(total)))
	c.abroad = g.chance(abroad)
	if c.abroad {
		g.foreign(g.random.IntN(max(int(800*g.scale), 3)))
	} else {
		g.taxpayer(supplier(at))
	}
	c.rfc, c.cell, c.name, c.moral = g.who.rfc, g.who.cell, g.who.name, g.who.moral

	g.reseed(seedContract, ^key)
	if c.year.year < modern && !g.chance(withRFC) {
		c.rfc, c.cell = nil, nil
	}
	if c.year.year < modern && len(c.cell) > 0 && g.chance(1_000) {
		c.cell = append(c.cell, ' ')
	}
	c.buyer = pick(g, buyers)
	c.unit = min(g.random.IntN(len(c.buyer.units)), g.random.IntN(len(c.buyer.units)))
	c.sequence = 1 + g.random.IntN(4000)
	months := 360
	if c.year.year == 2026 {
		months = 220 // until August
	}
	c.signed = dayOf(c.year.year, 1, 2) + day(g.random.IntN(months))
	most := 20_000_00 << g.random.IntN(12)
	c.cents = most/2 + g.random.IntN(most)
	if c.year.year <= 2020 && g.chance(decimalErrors) {
		c.cents = 123_456_789_012_00 + c.cents
	}
	if c.amendment > 0 {
		c.cents += c.cents/100*(1+c.amendment%20) + c.amendment%100
	}
	g.title(c)
	for i := range c.address {
		c.address[i] = "0123456789abcdef"[g.random.IntN(16)]
	}
}

// foreign makes g.who a supplier from abroad, whose RFC stands for none.
func (g *generator) foreign(n int) {
	g.reseed(uint64(suppliers)<<8, uint64(n))
	w := &g.who
	w.rfc, w.moral = w.rfc[:0], true
	w.cell = append(w.cell[:0], "EXT"...)
	w.cell = appendTwo(w.cell, 10+n%16)
	w.cell = appendTwo(w.cell, 1+g.random.IntN(12))
	w.cell = appendTwo(w.cell, 1+g.random.IntN(28))
	w.cell = append(w.cell, one(g, []string{"US", "DE", "ES", "CN", "FR"})...)
	w.cell = append(appendTwo(w.cell, n/10), byte('0'+n%10))
	w.name = append(g.appendInvented(w.name[:0]), " MEDICAL INC."...)
}

// writeOld writes the layout of 2018 to 2022.
func (c *contract) writeOld(g *generator) {
	r, b := &g.row, c.buyer
	r.add("APF")
	r.add(b.short)
	b.write(r)
	c.unitKey(r)
	r.add(b.units[c.unit])
	r.empty(1)
	r.int(1_500_000 + c.number*2)
	r.empty(1)
	g.partidas()
	r.bytes(c.title)
	r.add(one(g, templates))
	r.add(one(g, grounds))
	c.procedure(r)
	clock := func(at day) {
		start := r.open()
		r.b = append(at.appendISO(r.b), ' ')
		r.b = append(appendTwo(r.b, 8+g.random.IntN(12)), ':', '0', '0')
		if g.chance(100_000) {
			r.b = append(r.b, " GMT"...)
		}
		r.shut(start)
	}
	maybe := func(empty int, at day) {
		if g.chance(empty) {
			r.empty(1)
		} else {
			clock(at)
		}
	}
	maybe(unawarded, c.signed-6)
	maybe(unpublished, c.signed-20)
	maybe(400_000, c.signed-12)
	r.add("Nacional")
	r.add(one(g, kinds))
	r.add(one(g, procedures))
	r.add(one(g, ways))
	r.int(1_700_000 + c.number)
	c.buyersNumber(r)
	r.bytes(c.title)
	if c.year.described {
		r.bytes(c.more)
	}
	clock(c.signed + 3)
	clock(dayOf(c.year.year, 12, 31))
	c.amount(r, c.cents, true)
	c.money(g)
	r.add(one(g, states2022))
	if r.add("0"); c.amendment > 0 {
		r.b[len(r.b)-1] = '1'
	}
	r.empty(1)
	maybe(c.year.unsigned(), c.signed)
	r.add("0")
	r.add("0")
	r.add("0")
	r.empty(1)
	if g.chance(300_000) {
		r.int(10_000 + g.random.IntN(200_000))
	} else {
		r.empty(1)
	}
	r.bytes(c.cell)
	r.bytes(c.name)
	r.add(one(g, sizes))
	r.add("MX")
	if r.add("0"); len(c.rfc) > 0 {
		r.b[len(r.b)-1] = '1'
	}
	r.add("0")
	r.empty(1)
	start := r.open()
	r.b = append(r.b, "https://compranet.hacienda.gob.mx/esop/guest/go/opportunity/detail?opportunityId="...)
	r.b = strconv.AppendInt(r.b, int64(1_500_000+c.number*2), 10)
	r.shut(start)
}

// writeModern writes the layout of 2023 on.
func (c *contract) writeModern(g *generator) {
	r, b := &g.row, c.buyer
	if g.chance(lowerCased) {
		lowerCase(c.title, false)
		lowerCase(c.more, false)
	}
	if g.chance(lowerCased) {
		lowerCase(c.name, true)
	}
	r.add("APF")
	r.int(b.branch)
	r.add(b.branchName)
	r.add(one(g, institutionKinds))
	r.int(b.branch*100 + 5)
	r.add(b.short)
	b.write(r)
	c.unitKey(r)
	r.add(b.units[c.unit])
	c.code(r, 'E', c.number*2)
	r.empty(1)
	r.bytes(c.title)
	g.partidas()
	r.add(one(g, laws))
	if g.chance(excepted) {
		r.add(one(g, procedures[1:]))
		r.add(one(g, articles))
		r.add(one(g, exceptions))
	} else {
		r.add(procedures[0])
		r.empty(2)
	}
	r.add("NO")
	r.add("NO")
	c.procedure(r)
	r.add(one(g, kinds))
	r.add("NACIONAL")
	r.add(one(g, ways))
	r.empty(2)
	r.add("NO")
	r.empty(1)
	moment := func(at day) {
		start := r.open()
		r.b = append(at.appendISO(r.b), ' ')
		r.b = append(appendTwo(r.b, g.random.IntN(24)), ':')
		r.b = append(appendTwo(r.b, g.random.IntN(60)), ':')
		r.b = appendTwo(r.b, g.random.IntN(60))
		r.shut(start)
	}
	maybe := func(empty int, at day) {
		if g.chance(empty) {
			r.empty(1)
		} else {
			moment(at)
		}
	}
	slashed := func(at day) {
		start := r.open()
		r.b = at.appendSlashed(r.b)
		r.shut(start)
	}
	maybe(unpublished, c.signed-20)
	maybe(400_000, c.signed-12)
	maybe(unawarded, c.signed-6)
	c.code(r, 'C', c.number)
	c.buyersNumber(r)
	r.bytes(c.title)
	r.bytes(c.more)
	r.add("FORMALIZADO")
	r.add("ACTIVO")
	openContract := g.chance(openEnded)
	if r.add("CERRADO"); openContract {
		r.b = append(r.b[:len(r.b)-len("CERRADO")], "ABIERTO"...)
	}
	r.add("NO")
	slashed(c.signed + 3)
	slashed(dayOf(c.year.year, 12, 31))
	maybe(c.year.unsigned(), c.signed)
	r.empty(1)
	if openContract {
		r.empty(1)
		c.amount(r, c.cents/5*2, false)
		c.amount(r, c.cents/5*2/100*116, false)
		c.amount(r, c.cents, false)
		c.amount(r, c.cents/100*116, false)
	} else {
		c.amount(r, c.cents, false)
		r.empty(4)
	}
	c.money(g)
	r.add("MXN")
	if c.amendment > 0 {
		r.add("SI")
		r.int(1 + c.amendment%3)
	} else {
		r.add("NO")
		r.empty(1)
	}
	r.empty(1)
	if c.amendment > 0 {
		r.int(1 + c.amendment%3)
		slashed(dayOf(c.year.year, 12, 31))
		moment(min(c.signed+60, corteDay))
	} else {
		r.empty(3)
	}
	r.empty(9)
	r.bytes(c.cell)
	r.bytes(c.name)
	r.empty(1)
	if c.abroad {
		r.add("Estados Unidos")
		r.add("EXTRANJERA")
	} else {
		r.add(mexico)
		r.add("NACIONAL")
	}
	r.add(one(g, sizes))
	r.empty(2)
	start := r.open()
	r.b = append(r.b, "https://comprasmx.buengobierno.gob.mx/sitiopublico/#/sitiopublico/detalle/"...)
	r.b = append(append(r.b, c.address[:]...), c.address[:]...)
	r.b = append(r.b, "/procedimiento"...)
	r.shut(start)
}

var mexico = latin("México")

// code writes C-AAAA-00123456.
func (c *contract) code(r *record, kind byte, n int) {
	start := r.open()
	r.b = append(r.b, kind, '-')
	r.b = append(strconv.AppendInt(r.b, int64(c.year.year), 10), '-')
	for unit := 10_000_000; unit > 0; unit /= 10 {
		r.b = append(r.b, byte('0'+n/unit%10))
	}
	r.shut(start)
}

func (c *contract) unitKey(r *record) {
	start := r.open()
	r.b = c.appendUnit(r.b)
	r.shut(start)
}

// appendUnit appends 050XXX012.
func (c *contract) appendUnit(dst []byte) []byte {
	dst = appendTwo(append(dst, '0'), c.buyer.branch)
	dst = append(dst, c.buyer.letters...)
	return appendTwo(append(dst, '0'), c.unit)
}

// procedure writes AA-50-XXX-050XXX012-N-7-2026.
func (c *contract) procedure(r *record) {
	start := r.open()
	r.b = append(r.b, [...]string{"LA-", "AA-", "IA-"}[c.sequence%3]...)
	if c.year.year >= modern {
		r.b = append(append(append(appendTwo(r.b, c.buyer.branch), '-'), c.buyer.letters...), '-')
	}
	r.b = append(c.appendUnit(r.b), '-')
	if c.year.year >= modern {
		r.b = append(r.b, "N-"...)
	} else {
		r.b = append(r.b, 'E')
	}
	r.b = append(strconv.AppendInt(r.b, int64(c.sequence), 10), '-')
	r.b = strconv.AppendInt(r.b, int64(c.year.year), 10)
	r.shut(start)
}

// buyersNumber writes the number that the buyer itself gave.
func (c *contract) buyersNumber(r *record) {
	start := r.open()
	r.b = append(append(r.b, c.buyer.short...), '/')
	r.b = append(strconv.AppendInt(r.b, int64(c.sequence), 10), '/')
	r.b = strconv.AppendInt(r.b, int64(c.year.year), 10)
	r.shut(start)
}

// amount writes pesos; short leaves out zeros at the end.
func (c *contract) amount(r *record, cents int, short bool) {
	start := r.open()
	r.b = strconv.AppendInt(r.b, int64(cents/100), 10)
	if rest := cents % 100; !short || rest > 0 {
		r.b = appendTwo(append(r.b, '.'), rest)
		if short && rest%10 == 0 {
			r.b = r.b[:len(r.b)-1]
		}
	}
	r.shut(start)
}

func (c *contract) money(g *generator) {
	if c.abroad || g.chance(otherMoney) {
		g.row.add(one(g, currencies))
	} else {
		g.row.add("MXN")
	}
}

// partidas writes one, or several in one cell.
func (g *generator) partidas() {
	r := &g.row
	start := r.open()
	n := 1
	if g.chance(bundled) {
		n += 1 + g.random.IntN(4)
	}
	for i := range n {
		if i > 0 {
			r.b = append(r.b, ", "...)
		}
		r.b = strconv.AppendInt(r.b, int64(21101+g.random.IntN(150)*100), 10)
	}
	r.shut(start)
}

// lowerCase makes all letters small but the first of the text, or that of each word.
func lowerCase(text []byte, words bool) {
	for i, c := range text {
		if i == 0 || words && text[i-1] == ' ' {
			continue
		}
		if c >= 'A' && c <= 'Z' || c >= 0xc0 && c <= 0xde && c != 0xd7 {
			text[i] = c + 0x20
		}
	}
}
