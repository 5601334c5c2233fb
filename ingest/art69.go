package ingest

import (
	"cotejo/ingest/sat69"
	"cotejo/query"
)

// Folders of the SAT's container: lists that are renewed, and closed ones.
const (
	art69Open   = "/Datos_abiertos/Documents_AGR/"
	art69Closed = "/Datos_abiertos/Cifras_SAT/Indef/"
)

// art69Files says by list where it was when this program was made, and the most
// that it may have: several times what it measured, or what it had rows for.
var art69Files = map[string]struct {
	path     string
	maxBytes int64
}{
	"FIRMES":                {art69Open + "Firmes.csv", 96 << 20},                        // 20.1 MB
	"EXIGIBLES":             {art69Open + "Exigibles.csv", 8 << 20},                      // 484 KB
	"NO_LOCALIZADOS":        {art69Open + "No_localizados.csv", 32 << 20},                // 4.4 MB
	"SENTENCIAS":            {art69Open + "Sentencias.csv", 4 << 20},                     // 51 KB
	"CANCELADOS":            {art69Open + "Cancelados.csv", 96 << 20},                    // 20.6 MB
	"REDUCCION_ART74":       {art69Open + "ReduccionArt74CFF.csv", 64 << 20},             // 107,000 rows
	"CONDONADOS_146B":       {art69Closed + "Condonadosart146BCFF.csv", 1 << 20},         // 17 rows
	"REDUCCION_ART21":       {art69Closed + "Condonadosart21CFF.csv", 1 << 20},           // 4 rows
	"CONDONADOS_DECRETO":    {art69Closed + "CondonadosporDecreto.csv", 1 << 20},         // 7 rows
	"CONDONADOS_07_15":      {art69Closed + "Condonados_07_15.csv", 16 << 20},            // 10,216 rows
	"CANCELADOS_07_15":      {art69Closed + "Cancelados_07_15.csv", 16 << 20},            // 23,006 rows
	"RETORNO_INVERSIONES":   {art69Closed + "Retornoinversiones.csv", 1 << 20},           // 74 rows
	"ENTES_PUBLICOS_OMISOS": {art69Open + "EntespublicosydeGobiernoomisos.csv", 8 << 20}, // 391 KB
	"CSD_SIN_EFECTOS":       {art69Open + "CSDsinefectos.csv", 32 << 20},                 // 5.0 MB
	"ELIMINADOS":            {art69Open + "Eliminados.csv", 32 << 20},                    // never seen in this container
}

// art69 lists the sources of the lists under article 69.
func art69() []Source {
	var sources []Source
	for i := range query.Art69Lists {
		l := &query.Art69Lists[i]
		file := art69Files[l.Code]
		s := Source{
			Schema: l.Schema, MaxBytes: file.maxBytes, base: satContainer, path: file.path,
			indexed: true, whenLinked: l.WhenLinked, Read: sat69.Reader(l),
		}
		if l.LabelSeen {
			s.linkText = l.Label
		}
		sources = append(sources, s)
	}
	return sources
}
