package mirror

import (
	"fmt"
	"path"
	"strings"
	"time"

	"cotejo/civil"
)

// What is published of sanctioned suppliers. Only the open-data table has an official
// address that a program could know; the paths of the others are the mirror's own.
const (
	OpenSanctions = "/datosabiertos/sanc/proveedores_sancionados.csv"
	// Directory is the answer that the page of the directory gets. Its field names are
	// invented: the official ones are published nowhere.
	Directory = sanctions + "particularesSancionadosPro.json"
	// PrivatePersons holds two pages of the first version of System 3 of the national
	// platform, one behind the other; its siblings are collections of the second version.
	PrivatePersons   = sanctions + "psancionados.json"
	SanctionedFirms  = sanctions + "faltas_graves_personas_morales.json"
	SanctionedPeople = sanctions + "faltas_graves_personas_fisicas.json"
	// DirectoryExport is the workbook of the directory's export button.
	DirectoryExport = sanctions + "Proveedores_Contratistas_Sancionados.xlsx"

	sanctions = "/sancionados/"
)

// Sanctions are all of them.
var Sanctions = []string{OpenSanctions, Directory, PrivatePersons, SanctionedFirms, SanctionedPeople, DirectoryExport}

// DayDirectory is the day that an operator would give to the directory's answer of a
// stage: it changes once.
func DayDirectory(stage int) civil.Date { return calendar[stage/2*2].corte }

// sanctionsFile returns one of them as it is at a stage: only the directory's answer
// changes, once.
func sanctionsFile(stage int, name string) (content []byte, ok bool) {
	switch name {
	case DirectoryExport:
		return Workbook(exported), true
	case Directory:
		name = strings.TrimSuffix(name, ".json") + fmt.Sprintf("-%d.json", stage/2)
	case OpenSanctions, PrivatePersons, SanctionedFirms, SanctionedPeople:
	default:
		return nil, false
	}
	content, err := data.ReadFile("data/sancionados/" + path.Base(name))
	return content, err == nil
}

// sanctionsKind is the content type of one of them, and its Last-Modified moment.
func sanctionsKind(stage int, name string) (kind string, modified time.Time, ok bool) {
	switch {
	case name == OpenSanctions:
		return "text/csv", calendar[0].modified, true
	case !strings.HasPrefix(name, sanctions):
		return "", modified, false
	case name == DirectoryExport:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", calendar[0].modified, true
	}
	return "application/json", calendar[stage/2*2].modified, true
}

// exported is the sheet of the export, with the official titles and the oddities of the
// real one: tabs behind names, blanks before amounts, fines without days.
var exported = [][]string{
	{
		"Proveedor y Contratista", "OIC Responsable", "Expediente", "Procedimiento Administrativo", "Ley infringida",
		"Inicio de la sanción", "Fin de la sanción", "Monto de la Multa", "Periodo de Inhabilitación",
	},
	{"PROVEEDORA SANCIONADA INVENTADA, S.A. DE C.V.\t", "INSTITUTO IMAGINARIO DE SALUD", "0237/2022", "PA-0030/2024", laassp, "21-02-2026", "21-05-2027", "             555,644.00", "1 año, 3 meses"},
	{"SOLO MULTADA INVENTADA, S.A. DE C.V.", "INSTITUTO IMAGINARIO DE SALUD", "0063/2023", "PA-0013/2024", laassp, "", "", "           1,462,544.22", ""},
	{"PERSONA SANCIONADA INVENTADA", "SECRETARÍA IMAGINARIA DE OBRAS ", "0005/2024", "PA-0001/2025", "ASUNTOS 32-D", "15-01-2026", "15-07-2026", "                    .9", "6 meses"},
	{"SIN FIN INVENTADA, S.A.", "SECRETARÍA IMAGINARIA DE OBRAS", "0006/2024", "PA-0002/2025", laassp, "15-01-2026", "", "                   0.00", ""},
}

const laassp = "LEY DE ADQUISICIONES, ARRENDAMIENTOS Y SERVICIOS DEL SECTOR PÚBLICO (LAASSP)"
