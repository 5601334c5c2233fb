package ingest

import (
	"fmt"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// minShare is the least share of the active version's rows, in percent, that a
// new version may have. A fixed floor would block lists of three rows.
const minShare = 90

// gates says why a table that could be read must not be served, nothing when it
// may. active is nil for the first version of a source.
func gates(sum *tabular.Summary, active *snapshots.Version) []snapshots.Fault {
	if sum.Rows == 0 {
		return []snapshots.Fault{{Code: tabular.NoRows, Message: "el archivo tiene títulos pero ninguna fila; compárelo con la publicación oficial"}}
	}
	if active == nil {
		return nil
	}
	var faults []snapshots.Fault
	if int64(sum.Rows)*100 < int64(active.Rows)*minShare {
		faults = append(faults, snapshots.Fault{Code: tabular.FewerRows, Message: fmt.Sprintf(
			"tiene %d filas, %.1f %% menos que las %d de la versión %d; compárelo con la publicación oficial: puede estar cortado",
			sum.Rows, 100*(1-float64(sum.Rows)/float64(active.Rows)), active.Rows, active.ID)})
	}
	if !sum.Corte.IsZero() && sum.Corte.Before(active.Corte) {
		faults = append(faults, snapshots.Fault{Code: tabular.OlderCut, Message: fmt.Sprintf(
			"su corte es %s y el de la versión %d en servicio es %s; descargue la publicación vigente",
			sum.Corte, active.ID, active.Corte)})
	}
	return faults
}

// short is the fault of a file that ended before its stated length.
func short(got, want int64) snapshots.Fault {
	message := fmt.Sprintf("llegaron %d bytes y el archivo no termina", got)
	if want > 0 {
		message = fmt.Sprintf("llegaron %d de %d bytes", got, want)
	}
	return snapshots.Fault{Code: tabular.Truncated, Message: message + "; descárguelo de nuevo"}
}
