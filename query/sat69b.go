package query

import "cotejo/snapshots"

// Sat69B is the row schema of the SAT's complete list under article 69-B of
// the Código Fiscal de la Federación: the canonical 20-column layout in use
// since 2021. Older layouts are mapped onto it. Identity: RFC and number of the
// presumption oficio (SAT).
//
// Reader is raised whenever the same official bytes would give other rows.
var Sat69B = snapshots.Schema{
	Source: "sat_69b",
	Reader: 1,
	// Month-end cuts, published two to four weeks later: the day before its
	// successor came out, the cut of January 2026 was 46 days old, that of April 47.
	// A month of 31 days and four weeks make 59.
	MaxAge: 60,
	Columns: []snapshots.Column{
		{Name: "No"}, // a running number that shifts with every version
		{Name: "RFC", Tracked: true},
		{Name: "Nombre del Contribuyente", Tracked: true},
		{Name: "Situación del contribuyente", Tracked: true},
		{Name: "Número y fecha de oficio global de presunción SAT", Tracked: true},
		{Name: "Publicación página SAT presuntos", Tracked: true},
		{Name: "Número y fecha de oficio global de presunción DOF", Tracked: true},
		{Name: "Publicación DOF presuntos", Tracked: true},
		{Name: "Número y fecha de oficio global de contribuyentes que desvirtuaron SAT", Tracked: true},
		{Name: "Publicación página SAT desvirtuados", Tracked: true},
		{Name: "Número y fecha de oficio global de contribuyentes que desvirtuaron DOF", Tracked: true},
		{Name: "Publicación DOF desvirtuados", Tracked: true},
		{Name: "Número y fecha de oficio global de definitivos SAT", Tracked: true},
		{Name: "Publicación página SAT definitivos", Tracked: true},
		{Name: "Número y fecha de oficio global de definitivos DOF", Tracked: true},
		{Name: "Publicación DOF definitivos", Tracked: true},
		{Name: "Número y fecha de oficio global de sentencia favorable SAT", Tracked: true},
		{Name: "Publicación página SAT sentencia favorable", Tracked: true},
		{Name: "Número y fecha de oficio global de sentencia favorable DOF", Tracked: true},
		{Name: "Publicación DOF sentencia favorable", Tracked: true},
	},
}

// lista69B is that list with the stages of its procedure.
var lista69B = newListing(Sat69B, col69bNombre, col69bSituacion, []stage{
	{"Presunto", col69bPresuncionOficioSAT, col69bPresuncionOficioDOF},
	{"Desvirtuado", col69bDesvirtuadoOficioSAT, col69bDesvirtuadoOficioDOF},
	{"Definitivo", col69bDefinitivoOficioSAT, col69bDefinitivoOficioDOF},
	{"Sentencia Favorable", col69bSentenciaOficioSAT, col69bSentenciaOficioDOF},
})

// Columns of Sat69B by position.
const (
	col69bNo = iota
	col69bRFC
	col69bNombre
	col69bSituacion
	col69bPresuncionOficioSAT
	col69bPresuncionSAT
	col69bPresuncionOficioDOF
	col69bPresuncionDOF
	col69bDesvirtuadoOficioSAT
	col69bDesvirtuadoSAT
	col69bDesvirtuadoOficioDOF
	col69bDesvirtuadoDOF
	col69bDefinitivoOficioSAT
	col69bDefinitivoSAT
	col69bDefinitivoOficioDOF
	col69bDefinitivoDOF
	col69bSentenciaOficioSAT
	col69bSentenciaSAT
	col69bSentenciaOficioDOF
	col69bSentenciaDOF
)
