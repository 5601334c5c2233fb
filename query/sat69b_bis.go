package query

import "cotejo/snapshots"

// Sat69BBis is the row schema of the SAT's list under article 69-B Bis of the
// Código Fiscal de la Federación (undue transmission of tax losses): 12
// columns. Identity: RFC and number of the definitive oficio (SAT).
var Sat69BBis = snapshots.Schema{
	Source: "sat_69b_bis",
	Reader: 1,
	// Three rows in the whole country, republished at no fixed rhythm: cuts of
	// 13 June 2025 and 12 March 2026 are known.
	MaxAge: 400,
	Columns: []snapshots.Column{
		{Name: "No"}, // a running number
		{Name: "RFC", Tracked: true},
		{Name: "Nombre del Contribuyente", Tracked: true},
		{Name: "Situación del contribuyente", Tracked: true},
		{Name: "Número y fecha de oficio global definitivo SAT", Tracked: true},
		{Name: "Publicación página SAT definitivo", Tracked: true},
		{Name: "Número y fecha de oficio global definitivo DOF", Tracked: true},
		{Name: "Publicación DOF definitivo", Tracked: true},
		{Name: "Número y fecha de oficio global de sentencia favorable SAT", Tracked: true},
		{Name: "Publicación página SAT sentencia favorable", Tracked: true},
		{Name: "Número y fecha de oficio global de sentencia favorable DOF", Tracked: true},
		{Name: "Publicación DOF sentencia favorable", Tracked: true},
	},
}

// lista69BBis is that list with the stages of its procedure.
var lista69BBis = newListing(Sat69BBis, colBisNombre, colBisSituacion, []stage{
	{"Definitivo", colBisDefinitivoOficioSAT, colBisDefinitivoOficioDOF},
	{"Sentencia Favorable", colBisSentenciaOficioSAT, colBisSentenciaOficioDOF},
})

// Columns of Sat69BBis by position.
const (
	colBisNo = iota
	colBisRFC
	colBisNombre
	colBisSituacion
	colBisDefinitivoOficioSAT
	colBisDefinitivoSAT
	colBisDefinitivoOficioDOF
	colBisDefinitivoDOF
	colBisSentenciaOficioSAT
	colBisSentenciaSAT
	colBisSentenciaOficioDOF
	colBisSentenciaDOF
)
