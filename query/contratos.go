package query

import (
	"strconv"

	"cotejo/civil"
	"cotejo/snapshots"
)

// The files of public contracts of the federal government (CompraNet, Compras MX):
// one source a year, all with the same columns. The first years publish the RFC of
// two thirds of the suppliers; before 2018 there is none.
const (
	FirstContractYear = 2018
	LastContractYear  = 2026
)

// Contratos are the row schemas of the yearly files, by year. All have the columns
// of the layout in use since 2023 that an answer or its evidence needs, under their
// official titles; the official bytes keep the others. Identity: RFC as published
// (empty when the file gives none), contract code, and a hash of title and supplier.
// An amended contract stands in several rows of one identity: all are kept, the one
// with the highest Registro counts.
//
// Reader is raised whenever the same official bytes would give other rows.
var Contratos = func() (all []snapshots.Schema) {
	for year := FirstContractYear; year <= LastContractYear; year++ {
		s := snapshots.Schema{Source: "compranet_" + strconv.Itoa(year), Reader: 1, Columns: contractColumns}
		switch {
		case year == LastContractYear:
			// The file of the running year is written anew every few weeks, at no
			// stated rhythm.
			s.MaxAge = 45
		case year >= 2023:
			// Those of closed years still grow: contracts are reported late.
			s.MaxAge = 200
		}
		all = append(all, s)
	}
	return all
}()

var contractColumns = []snapshots.Column{
	{Name: "rfc", Tracked: true},
	{Name: "Proveedor o contratista", Tracked: true},
	{Name: "Código del contrato", Tracked: true},
	{Name: "Título del contrato", Tracked: true},
	{Name: "Institución", Tracked: true},
	{Name: "Nombre de la UC", Tracked: true},
	{Name: "Número de procedimiento", Tracked: true},
	{Name: "Tipo Procedimiento"},
	{Name: "Código del expediente"},
	{Name: "Partida específica"},
	{Name: "Fecha de firma del contrato", Tracked: true},
	{Name: "Fecha de fallo", Tracked: true},
	{Name: "Fecha de inicio del contrato", Tracked: true},
	{Name: "Importe DRC", Tracked: true},
	{Name: "Monto sin imp./máximo", Tracked: true},
	{Name: "Monto sin imp./mínimo", Tracked: true},
	{Name: "Moneda", Tracked: true},
	{Name: "Convenio modificatorio", Tracked: true},
	{Name: "RFC verificado en el SAT"}, // until 2022
	{Name: "Dirección del anuncio"},
	{Name: "Registro"}, // no official column: the record's number in the file, from 1 after the titles
}

// Columns of Contratos by position.
const (
	ColContratoRFC = iota
	ColContratoProveedor
	ColContratoCodigo
	ColContratoTitulo
	ColContratoInstitucion
	ColContratoUC
	ColContratoProcedimiento
	ColContratoTipo
	ColContratoExpediente
	ColContratoPartida
	ColContratoFirma
	ColContratoFallo
	ColContratoInicio
	ColContratoImporte
	ColContratoMaximo
	ColContratoMinimo
	ColContratoMoneda
	ColContratoConvenio
	ColContratoVerificado
	ColContratoAnuncio
	ColContratoRegistro
)

// ContractDate is the day of a contract by its normalised cells: that of its
// signature, else of the award, else of its beginning. origin says which; "" when
// none can be read.
func ContractDate(norm []string) (day civil.Date, origin string) {
	for _, from := range [...]struct {
		column int
		origin string
	}{{ColContratoFirma, "FIRMA"}, {ColContratoFallo, "FALLO"}, {ColContratoInicio, "INICIO"}} {
		if d, err := civil.Parse(norm[from.column]); err == nil {
			return d, from.origin
		}
	}
	return civil.Date{}, ""
}

// ContractYear is the year of a contract by its normalised cells: that in its code
// (C-AAAA-…, E-AAAA-…), else that of its day. ok is false when neither tells.
func ContractYear(norm []string) (year int, ok bool) {
	code := norm[ColContratoCodigo]
	if len(code) > 7 && (code[0] == 'C' || code[0] == 'E') && code[1] == '-' && code[6] == '-' {
		if y, err := strconv.Atoi(code[2:6]); err == nil && y >= 2000 && y < 2100 {
			return y, true
		}
	}
	d, origin := ContractDate(norm)
	return d.Year, origin != ""
}
