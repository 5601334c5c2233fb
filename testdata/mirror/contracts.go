package mirror

import (
	"fmt"
	"path"
	"strings"
	"time"
)

// The files of public contracts, by year. Those of 2018 to 2022 have no official
// address that a program could know: their paths are the mirror's own.
const (
	FirstContracts = 2018
	LastContracts  = 2026
	contracts      = "/cnetassets/datos_abiertos_contratos_expedientes/"
)

// Contracts is the path of the file of a year.
func Contracts(year int) string {
	if year < 2023 {
		return fmt.Sprintf("%sContratos%d.csv", contracts, year)
	}
	return fmt.Sprintf("%sContratos_CompraNet%d.csv", contracts, year)
}

// contractsFile returns one of them as it is at a stage: only that of the last year
// grows, once.
func contractsFile(stage int, name string) (content []byte, ok bool) {
	for year := FirstContracts; year <= LastContracts; year++ {
		if name != Contracts(year) {
			continue
		}
		file := path.Base(name)
		if year == LastContracts {
			file = strings.TrimSuffix(file, ".csv") + fmt.Sprintf("-%d.csv", stage/2)
		}
		content, err := data.ReadFile("data/contratos/" + file)
		return content, err == nil
	}
	return nil, false
}

// contractsModified is the Last-Modified moment of one of them at a stage.
func contractsModified(stage int, name string) time.Time {
	if name == Contracts(LastContracts) {
		return calendar[stage/2*2].modified
	}
	return calendar[0].modified
}
