package sat69b

import (
	"cotejo/query"
	"cotejo/snapshots"
)

// layout is one of the lists: its columns and how they are read.
type layout struct {
	schema     *snapshots.Schema
	kinds      []kind     // by canonical column
	identity   int        // column of the oficio that tells the procedures against one taxpayer apart
	situations [][]byte   // that the article knows
	parted     bool       // each situation is published as a list of its own too, under the same title
	older      [][]placed // known headers that lack columns, or whose titles repeat
}

// kind is how a column is normalised.
type kind byte

const (
	plain kind = iota
	rfc
	situation
	oficios
	dates
)

// Columns that stand in the same place in both lists.
const (
	columnNo  = 0
	columnRFC = 1

	columnSituation = 3
)

// complete is the list under article 69-B.
var complete = layout{
	schema: &query.Sat69B,
	kinds: []kind{
		plain, rfc, plain, situation,
		oficios, dates, oficios, dates, // presunción: SAT, DOF
		oficios, dates, oficios, dates, // desvirtuados: SAT, DOF
		oficios, dates, oficios, dates, // definitivos: SAT, DOF
		oficios, dates, oficios, dates, // sentencia favorable: SAT, DOF
	},
	identity: 4, // the presumption, on the SAT's page
	situations: [][]byte{
		[]byte("Presunto"), []byte("Desvirtuado"), []byte("Definitivo"), []byte("Sentencia Favorable"),
	},
	parted: true,
	older:  [][]placed{titles2019},
}

// bis is the list under article 69-B Bis. It names nobody before the definitive
// oficio, so that one is the identity.
var bis = layout{
	schema: &query.Sat69BBis,
	kinds: []kind{
		plain, rfc, plain, situation,
		oficios, dates, oficios, dates, // definitivo: SAT, DOF
		oficios, dates, oficios, dates, // sentencia favorable: SAT, DOF
	},
	identity:   4, // the definitive oficio, on the SAT's page
	situations: [][]byte{[]byte("Definitivo"), []byte("Sentencia Favorable")},
	older:      [][]placed{titlesDefinitivo},
}

// placed is a folded title and where its column stands in the schema.
type placed struct {
	title     string
	canonical int
}

// titles2019 are the 18 columns of the complete list of 2019 and before, by
// position: titles repeat, so only their order tells SAT from DOF. That layout has
// a single oficio for who was cleared and for who is definitive; it fills the SAT
// column and leaves the DOF column empty.
var titles2019 = []placed{
	{"no", 0},
	{"rfc", 1},
	{"nombre del contribuyente", 2},
	{"situacion del contribuyente", 3},
	{"numero y fecha de oficio global de presuncion", 4},
	{"publicacion pagina sat presuntos", 5},
	{"numero y fecha de oficio global de presuncion", 6},
	{"publicacion dof presuntos", 7},
	{"publicacion pagina sat desvirtuados", 9},
	{"numero y fecha de oficio global de contribuyentes que desvirtuaron", 8},
	{"publicacion dof desvirtuados", 11},
	{"numero y fecha de oficio global de definitivos", 12},
	{"publicacion pagina sat definitivos", 13},
	{"publicacion dof definitivos", 15},
	{"numero y fecha de oficio global de sentencia favorable", 16},
	{"publicacion pagina sat sentencia favorable", 17},
	{"numero y fecha de oficio global de sentencia favorable", 18},
	{"publicacion dof sentencia favorable", 19},
}

// titlesDefinitivo are the 8 columns of the «Listado Global Definitivo» under
// article 69-B Bis: the list as it is while nobody on it has won a ruling.
var titlesDefinitivo = []placed{
	{"no", 0},
	{"rfc", 1},
	{"nombre del contribuyente", 2},
	{"situacion del contribuyente", 3},
	{"numero y fecha de oficio global definitivo sat", 4},
	{"publicacion pagina sat definitivo", 5},
	{"numero y fecha de oficio global definitivo dof", 6},
	{"publicacion dof definitivo", 7},
}
