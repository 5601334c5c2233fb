package ingest

import (
	"fmt"
	"io"
	"slices"

	"cotejo/civil"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// minShare is the least share of the active version's rows, in percent, that a
// new version may have. A fixed floor would block lists of three rows.
const minShare = 90

// Of the records of a file, one in unreadShare may have been left out because they
// could not be read, and unreadFew in any.
const (
	unreadShare = 1000
	unreadFew   = 5
)

// gates says why a table that could be read must not be served, nothing when it
// may. active serves now and older is what the table would follow: the same, or
// the version before it when the table is active under other dates, which may
// then be corrected in both directions. Both may be nil.
func gates(sum *tabular.Summary, o *snapshots.Origin, active, older *snapshots.Version) []snapshots.Fault {
	if sum.Rows == 0 {
		return pastGates(sum)
	}
	faults, rows := pastGates(sum), sum.Rows
	if active != nil && int64(rows)*100 < int64(active.Rows)*minShare {
		faults = append(faults, snapshots.Fault{Code: tabular.FewerRows, Message: fmt.Sprintf(
			"tiene %d filas, %.1f %% menos que las %d de la versión %d; compárelo con la publicación oficial: puede estar cortado",
			rows, 100*(1-float64(rows)/float64(active.Rows)), active.Rows, active.ID)})
	}
	order := o.OrderDate()
	if today := civil.Of(o.Downloaded); today.Before(order) {
		faults = append(faults, snapshots.Fault{Code: tabular.FutureCut, Message: fmt.Sprintf(
			"es del %s (%s), posterior al día en que se obtuvo (%s); revise la fecha y el reloj de este equipo",
			order, kindOfDate(o.Corte, !o.Published.IsZero()), today)})
	}
	if older != nil && order.Before(older.OrderDate) && !onlyDownloaded(older) {
		message := fmt.Sprintf("es del %s (%s) y la versión %d es del %s (%s); descargue la publicación vigente. Una lista antigua que falte en la historia se carga con --history",
			order, kindOfDate(o.Corte, !o.Published.IsZero()), older.ID, older.OrderDate, kindOfDate(older.Corte, older.Published != ""))
		if older.CorteFrom != snapshots.CorteOfFile {
			message += fmt.Sprintf(". Si la fecha equivocada es la de la versión %d, cargue otra vez su archivo con --corte", older.ID)
		}
		faults = append(faults, snapshots.Fault{Code: tabular.OlderCut, Message: message})
	}
	return faults
}

// judged is what the source itself says of the staged bytes.
func (in *ingestion) judged() ([]snapshots.Fault, error) {
	if in.source.judge == nil {
		return nil, nil
	}
	var before snapshots.Opener
	if in.active != nil {
		before = func() (io.ReadCloser, error) { return in.catalogue.Official(*in.active) }
	}
	faults, notices, err := in.source.judge(before, in.stage.Open)
	for _, n := range notices {
		if !slices.Contains(in.notices, n) {
			in.notices = append(in.notices, n)
		}
	}
	return faults, err
}

// pastGates says why a file must not enter the history. Nothing but its
// readability counts: what serves is not touched, a list of years ago is rightly
// shorter, and what enters must not depend on which of its neighbours came first.
func pastGates(sum *tabular.Summary) []snapshots.Fault {
	var faults []snapshots.Fault
	add := func(code, format string, args ...any) {
		faults = append(faults, snapshots.Fault{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if sum.Rows == 0 {
		return []snapshots.Fault{{Code: tabular.NoRows, Message: "el archivo tiene títulos pero ninguna fila; compárelo con la publicación oficial"}}
	}
	// The partial lists carry the title of the complete one.
	if sum.Single != "" {
		add(tabular.OtherList, "todas sus %d filas dicen «%.60s»: parece la lista de esa situación y no la completa; cargue la completa", sum.Rows, sum.Single)
	}
	// Accented letters and Ñ are in names and in RFCs: who asks would not find them.
	if sum.Encoding == tabular.Recoded {
		add(tabular.Damaged, "la codificación de sus %d filas está dañada: alguien leyó UTF-8 como windows-1252 o latin-1 y lo guardó otra vez («Ã±» en lugar de «ñ»); descargue el archivo de la dirección oficial", sum.Rows)
	}
	// Every official list ends its last line. A server that announces too few
	// bytes, or a proxy, cuts inside the last cell without any other sign.
	if sum.Unended {
		add(tabular.Unended, "la última de sus %d filas no termina en fin de línea, como en toda lista oficial: puede estar cortada; descárguelo de nuevo y compare el final con la publicación oficial", sum.Rows)
	}
	if bad := sum.Counts[tabular.UnreadRecords]; bad > max(unreadFew, (sum.Rows+bad)/unreadShare) {
		add(tabular.Unread, "%s; revise sus comillas y compare el archivo con la publicación oficial. Lo que falta no se encontraría: acéptelo solo si eso no importa", leftOut(bad, sum.Rows))
	}
	return faults
}

// leftOut says how many records of a file were not read.
func leftOut(bad, rows int) string {
	return fmt.Sprintf("%d de sus %d registros (%.2f %%) no tienen las celdas de los títulos y se omitieron", bad, rows+bad, 100*float64(bad)/float64(rows+bad))
}

// noticeUnread is the code of the notice that a version in service lacks records.
const noticeUnread = "REGISTROS_OMITIDOS"

// lacking is a notice that what serves lacks records of its file; none when it has
// all of them, or nothing serves.
func lacking(serves *snapshots.Version) []snapshots.Notice {
	if serves == nil || serves.Counts[tabular.UnreadRecords] == 0 {
		return nil
	}
	return []snapshots.Notice{{Code: noticeUnread, Message: fmt.Sprintf(
		"de la versión %d en servicio, %s: quien solo está en ellos no se encuentra. Se cuentan en %s; compárelos con la publicación oficial",
		serves.ID, leftOut(serves.Counts[tabular.UnreadRecords], serves.Rows), tabular.UnreadRecords)}}
}

func withdrawnFault(gone, active *snapshots.Version) snapshots.Fault {
	return snapshots.Fault{Code: tabular.Withdrawn, Message: fmt.Sprintf(
		"son los bytes de la versión %d, que dejó de servir cuando se aceptó a mano la %d, más antigua; si deben servir otra vez, acepte esta versión",
		gone.ID, active.ID)}
}

// onlyDownloaded reports whether nothing is known of a version's age but the day
// on which we got it. Its content may be weeks older: to hold a later file to
// that day would block the next real publication.
func onlyDownloaded(v *snapshots.Version) bool { return v.Corte.IsZero() && v.Published == "" }

func kindOfDate(corte civil.Date, published bool) string {
	switch {
	case !corte.IsZero():
		return "fecha de corte"
	case published:
		return "fecha del servidor"
	default:
		return "día de la descarga"
	}
}

// short is the fault of a file that ended before its stated length.
func short(got, want int64) snapshots.Fault {
	message := fmt.Sprintf("llegaron %d bytes y el archivo no termina", got)
	if want > 0 {
		message = fmt.Sprintf("llegaron %d de %d bytes", got, want)
	}
	return snapshots.Fault{Code: tabular.Truncated, Message: message + "; descárguelo de nuevo"}
}
