package query

import "cotejo/snapshots"

// Sanctioned suppliers, contractors and private persons. The authority lets anybody
// see the RFC only in the answer that the page of its directory gets, and the national
// platform (PDN, System 3) in what its providers answer: an operator saves those files
// and loads them. What can be downloaded by a program has no RFC, so it is kept and
// versioned, and answers no question.
//
// Every source with RFC has the same columns at the same places, under the titles of
// its own publication: see the constants below.

// Sancionados are the sources with RFC, in the order of answers. Identity: RFC,
// number of the file or id of the record, and who sanctioned; rows of one identity are
// told apart by their ordinals. A row without an RFC that somebody could ask for is
// suppressed: kept, counted and never found.
//
// Only the first, the directory, can say that an RFC is not in it: the others are of
// other registers and can add, never clear.
//
// Reader is raised whenever the same official bytes would give other rows.
var Sancionados = []snapshots.Schema{
	// A day's answer is out of date the next day; a month is ours, not the authority's.
	{Source: "sabg_proveedores_sancionados", Reader: 1, MaxAge: 31, Columns: sanctionColumns(
		"RFC", "Proveedor y Contratista", "OIC Responsable", "Expediente", "Tipo de sanción",
		"Inicio de la sanción", "Fin de la sanción", "Periodo de Inhabilitación", "Monto de la Multa", "Moneda",
		"Identificador", "Causa", "Procedimiento Administrativo", "Ley infringida", "Fecha de resolución")},
	{Source: "pdn_s3_particulares", Reader: 1, MaxAge: 90, Columns: sanctionColumns(
		"particularSancionado.rfc", "particularSancionado.nombreRazonSocial", "institucionDependencia.nombre", "expediente", "tipoSancion",
		"inhabilitacion.fechaInicial", "inhabilitacion.fechaFinal", "inhabilitacion.plazo", "multa.monto", "multa.moneda",
		"id", "causaMotivoHechos", "tipoFalta", "autoridadSancionadora", "resolucion.fechaNotificacion", "resolucion.sentido", "resolucion.url",
		"objetoContrato", "acto", "fechaCaptura")},
	{Source: "pdn_s3_faltas_graves_personas_morales", Reader: 1, MaxAge: 90, Columns: sanctionColumns(append([]string{
		"datosGenerales.rfc", "datosGenerales.nombreRazonSocial"}, pdn2Titles...)...)},
	{Source: "pdn_s3_faltas_graves_personas_fisicas", Reader: 1, MaxAge: 90, Columns: sanctionColumns(append([]string{
		"datosGenerales.rfc", "datosGenerales.nombres y apellidos"}, pdn2Titles...)...)},
}

// pdn2Titles are the columns that both collections of the second version share: of
// each record, one row for each of its tipoSancion.
var pdn2Titles = []string{
	"dondeCometioLaFalta.nombreEntePublico", "expediente", "tipoSancion.clave",
	"fechaInicial", "fechaFinal", "plazo", "monto", "moneda",
	"id", "faltaCometida.clave", "entePublico.nombre", "resolucion.autoridadResolutora", "resolucion.fechaResolucion",
	"resolucion.fechaNotificacion", "resolucion.fechaResolucionFirme", "resolucion.urlResolucion", "date_created", "date_updated",
}

// Columns of Sancionados by position; those behind are each publication's own.
const (
	ColSancionRFC = iota
	ColSancionNombre
	ColSancionDependencia
	ColSancionExpediente
	ColSancionTipo
	ColSancionInicio
	ColSancionFin
	ColSancionPlazo
	ColSancionMonto
	ColSancionMoneda
	ColSancionID
	ColSancionCausa
	colSancionOther
)

// When a record was captured or touched changes without the sanction changing.
var untrackedSanction = map[string]bool{"fechaCaptura": true, "date_created": true, "date_updated": true}

func sanctionColumns(titles ...string) (columns []snapshots.Column) {
	for _, t := range titles {
		columns = append(columns, snapshots.Column{Name: t, Tracked: !untrackedSanction[t]})
	}
	return columns
}

// The publications without RFC. Identity: an empty RFC, name, number of the file and
// who sanctioned.
var (
	// SancionadosAbiertos is the open-data table. Whether anybody still writes it is not
	// known: the last copy seen is of January 2021, so no newer one is expected.
	SancionadosAbiertos = snapshots.Schema{Source: "sfp_proveedores_sancionados", Reader: 1, Columns: []snapshots.Column{
		{Name: "PROVEEDOR O CONTRATISTA", Tracked: true},
		{Name: "DEPENDENCIA", Tracked: true},
		{Name: "NUMERO DE EXPEDIENTE", Tracked: true},
		{Name: "HECHOS DE LA IRREGULARIDAD", Tracked: true},
		{Name: "OBJETO SOCIAL", Tracked: true},
		{Name: "SENTIDO DE RESOLUCION", Tracked: true},
		{Name: "FECHA DE NOTIFICACION", Tracked: true},
		{Name: "FECHA DE RESOLUCION", Tracked: true},
		{Name: "PLAZO", Tracked: true},
		{Name: "MONTO", Tracked: true},
		{Name: "NOMBRE DEL RESPONSABLE DE LA INFORMACION"},
		{Name: "FECHA DE ACTUALIZACION"}, // of the whole file, in every row
	}}
	// SancionadosExportacion is what the export button of the directory gives.
	SancionadosExportacion = snapshots.Schema{Source: "sabg_proveedores_sancionados_xlsx", Reader: 1, MaxAge: 31, Columns: []snapshots.Column{
		{Name: "Proveedor y Contratista", Tracked: true},
		{Name: "OIC Responsable", Tracked: true},
		{Name: "Expediente", Tracked: true},
		{Name: "Procedimiento Administrativo", Tracked: true},
		{Name: "Ley infringida", Tracked: true},
		{Name: "Inicio de la sanción", Tracked: true},
		{Name: "Fin de la sanción", Tracked: true},
		{Name: "Monto de la Multa", Tracked: true},
		{Name: "Periodo de Inhabilitación", Tracked: true},
	}}
)

// sancionadosSinRFC are they, in the order of answers.
var sancionadosSinRFC = [...]*snapshots.Schema{&SancionadosAbiertos, &SancionadosExportacion}
