package mirror

import (
	"path"
	"slices"
	"strings"
	"time"

	"cotejo/civil"
)

// Folders of the lists under article 69: those that are renewed, and closed ones.
const (
	art69Open   = "/Datos_abiertos/Documents_AGR/"
	art69Closed = "/Datos_abiertos/Cifras_SAT/Indef/"
)

// Firmes is the list that changes between the stages.
const Firmes = art69Open + "Firmes.csv"

// Art69 are the official paths of the lists under article 69 that the index page
// links. Eliminados.csv is served beside them and not linked.
var Art69 = []string{
	Firmes,
	art69Open + "Exigibles.csv",
	art69Open + "No_localizados.csv",
	art69Open + "Sentencias.csv",
	art69Open + "Cancelados.csv",
	art69Open + "ReduccionArt74CFF.csv",
	art69Closed + "Condonadosart146BCFF.csv",
	art69Closed + "Condonadosart21CFF.csv",
	art69Closed + "CondonadosporDecreto.csv",
	art69Closed + "Condonados_07_15.csv",
	art69Closed + "Cancelados_07_15.csv",
	art69Closed + "Retornoinversiones.csv",
	art69Open + "EntespublicosydeGobiernoomisos.csv",
	art69Open + "CSDsinefectos.csv",
}

// DayFirmes is the day on which the server says that Firmes was last modified at a
// stage. The lists under article 69 state no day themselves.
func DayFirmes(stage int) civil.Date { return civil.Of(art69Modified(stage, Firmes)) }

const eliminados = art69Open + "Eliminados.csv"

// art69File returns one of these as it is at a stage.
func art69File(stage int, name string) (content []byte, ok bool) {
	if !slices.Contains(Art69, name) && name != eliminados {
		return nil, false
	}
	folder := "data/art69/"
	if name == Firmes && stage >= 2 {
		folder += "2/"
	}
	content, err := data.ReadFile(folder + path.Base(name))
	return content, err == nil
}

// art69Modified is the Last-Modified moment of one of these, which state no day
// themselves; zero for any other file.
func art69Modified(stage int, name string) time.Time {
	switch name = strings.TrimPrefix(name, container); {
	case name == Firmes && stage >= 2:
		return time.Date(2026, 8, 7, 16, 2, 11, 0, time.UTC)
	case strings.HasPrefix(name, art69Open):
		return time.Date(2026, 5, 29, 15, 48, 30, 0, time.UTC)
	case strings.HasPrefix(name, art69Closed):
		return time.Date(2026, 1, 28, 19, 20, 5, 0, time.UTC)
	}
	return time.Time{}
}
