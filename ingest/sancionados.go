package ingest

import (
	"cotejo/ingest/sancionados"
	"cotejo/query"
)

const (
	// openSanctions publishes the table without RFC; nobody here knows whether it still
	// answers.
	openSanctions = "https://datosabiertos.funcionpublica.gob.mx"
	// directory shows the directory to people: what it gets over the network is
	// signed, so no program asks for it, and whoever wants it saves the answer.
	directory = "https://directoriosancionados.buengobierno.gob.mx"
	// platform is the page of the national platform; no public address without a key is
	// known of its System 3.
	platform = "https://www.plataformadigitalnacional.org"
)

// sanctionSources are those with RFC, and those without. Paths of files that have no
// official address are of a mirror.
func sanctionSources() []Source {
	return []Source{
		{
			Schema: query.Sancionados[0], MaxBytes: sancionados.MaxDirectorio, Read: sancionados.ReadDirectorio,
			base: directory, page: directory + "/", path: "/sancionados/particularesSancionadosPro.json",
		},
		{
			Schema: query.Sancionados[1], MaxBytes: sancionados.MaxPDN, Read: sancionados.ReadPDN1,
			base: platform, page: platform + "/", path: "/sancionados/psancionados.json",
		},
		{
			Schema: query.Sancionados[2], MaxBytes: sancionados.MaxPDN, Read: sancionados.ReadPDN2Morales,
			base: platform, page: platform + "/", path: "/sancionados/faltas_graves_personas_morales.json",
		},
		{
			Schema: query.Sancionados[3], MaxBytes: sancionados.MaxPDN, Read: sancionados.ReadPDN2Fisicas,
			base: platform, page: platform + "/", path: "/sancionados/faltas_graves_personas_fisicas.json",
		},
		{
			Schema: query.SancionadosAbiertos, MaxBytes: sancionados.MaxAbiertos, Read: sancionados.ReadAbiertos,
			base: openSanctions, path: "/datosabiertos/sanc/proveedores_sancionados.csv",
		},
		{
			Schema: query.SancionadosExportacion, MaxBytes: sancionados.MaxExportacion, Read: sancionados.ReadExportacion,
			base: directory, page: directory + "/", path: "/sancionados/Proveedores_Contratistas_Sancionados.xlsx",
		},
	}
}
