// Package sandbox holds the official-format files that test keys are answered
// from: a second edition, not a second code path. They are read by the same
// readers as the real files, so an engine cannot tell the difference and need
// not ask.
//
// It promises fixed bytes, dates and moments: the sandbox edition, and so every
// sandbox answer, is the same in every installation of the same build. Every
// company in it is invented. It never touches the network or a disk.
//
// The files pass the same gates as real ones: in a data directory that a newer
// build has used, an older or shorter file of this one is quarantined and the
// newer keeps answering. A change of a file therefore needs a later corte.
package sandbox

import (
	"bytes"
	_ "embed"
	"io"
	"slices"
	"time"

	"cotejo/civil"
)

// File is one publication of the sandbox.
type File struct {
	Source     string     // id of the source that reads it: "sat_69b"
	Name       string     // file name, as the authority calls it
	Bytes      []byte     // as if just downloaded
	Corte      civil.Date // stated inside the file, or said here of a file that states none
	Downloaded time.Time  // stands for our clock; UTC
}

// Open reads the file from its beginning. It never fails.
func (f File) Open() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(f.Bytes)), nil
}

// listado69B holds the four RFCs that integrators test with, one for each
// situation of the list: EFO010101AA1 Definitivo, PRE010101AA1 Presunto,
// DES010101AA1 Desvirtuado, SEN010101AA1 Sentencia Favorable.
//
//go:embed data/Listado_completo_69-B.csv
var listado69B []byte

// listado69BBis holds BIS010101AA1, Definitivo under article 69-B Bis.
//
//go:embed data/Listado_69_B_Bis_Completo.csv
var listado69BBis []byte

// firmes and noLocalizados hold FIR010101AA1, a legal entity, and NOLO010101AA1, an
// individual. The other lists under article 69 are not in the sandbox, which its
// answers say.
//
//go:embed data/Firmes.csv
var firmes []byte

//go:embed data/No_localizados.csv
var noLocalizados []byte

// contratos2022 and contratos2025 hold one contract each of CON010101AA1, in the two
// layouts of their files.
//
//go:embed data/Contratos2022.csv
var contratos2022 []byte

//go:embed data/Contratos_CompraNet2025.csv
var contratos2025 []byte

// directorio holds three sanctions of SAN010101AA1: a debarment with a fine, one that is
// over, and a fine alone. The field names of the directory's answer are published
// nowhere: these are ours.
//
//go:embed data/particularesSancionadosPro.json
var directorio []byte

// abiertos holds one of them in the open-data table, which has no RFC.
//
//go:embed data/proveedores_sancionados.csv
var abiertos []byte

// Files returns the publications by source id. The caller owns them.
func Files() []File {
	downloaded := time.Date(2026, 9, 19, 11, 0, 0, 0, time.UTC)
	return []File{
		{
			Source:     "sat_69b",
			Name:       "Listado_completo_69-B.csv",
			Bytes:      slices.Clone(listado69B),
			Corte:      civil.Date{Year: 2026, Month: 8, Day: 31},
			Downloaded: downloaded,
		},
		{
			Source:     "sat_69b_bis",
			Name:       "Listado_69_B_Bis_Completo.csv",
			Bytes:      slices.Clone(listado69BBis),
			Corte:      civil.Date{Year: 2026, Month: 7, Day: 15},
			Downloaded: downloaded,
		},
		{
			Source:     "sat_art69_firmes",
			Name:       "Firmes.csv",
			Bytes:      slices.Clone(firmes),
			Corte:      civil.Date{Year: 2026, Month: 9, Day: 4},
			Downloaded: downloaded,
		},
		{
			Source:     "sat_art69_no_localizados",
			Name:       "No_localizados.csv",
			Bytes:      slices.Clone(noLocalizados),
			Corte:      civil.Date{Year: 2026, Month: 9, Day: 4},
			Downloaded: downloaded,
		},
		{
			Source:     "compranet_2022",
			Name:       "Contratos2022.csv",
			Bytes:      slices.Clone(contratos2022),
			Corte:      civil.Date{Year: 2023, Month: 1, Day: 31},
			Downloaded: downloaded,
		},
		{
			Source:     "compranet_2025",
			Name:       "Contratos_CompraNet2025.csv",
			Bytes:      slices.Clone(contratos2025),
			Corte:      civil.Date{Year: 2026, Month: 7, Day: 31},
			Downloaded: downloaded,
		},
		{
			Source:     "sabg_proveedores_sancionados",
			Name:       "particularesSancionadosPro.json",
			Bytes:      slices.Clone(directorio),
			Corte:      civil.Date{Year: 2026, Month: 9, Day: 18},
			Downloaded: downloaded,
		},
		{
			Source:     "sfp_proveedores_sancionados",
			Name:       "proveedores_sancionados.csv",
			Bytes:      slices.Clone(abiertos),
			Corte:      civil.Date{Year: 2021, Month: 1, Day: 14},
			Downloaded: downloaded,
		},
	}
}
