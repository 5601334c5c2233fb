// Package banxico reads what Banco de México publishes as JSON: the FIX series of
// its SIE API into rows of catalog.FIXSource, and the participants of the SPEI into
// rows of catalog.SPEISource. The shapes are those of package catalog, which
// refuses everything else; here they become rows and reasons.
//
// It is pure: the same bytes give the same rows. Start reading at ReadFIX.
package banxico

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cotejo/catalog"
	"cotejo/ingest/tabular"
	"cotejo/snapshots"
)

// MaxBytes bounds an answer. The whole series takes some 0.4 MB, the list 4 kB.
const MaxBytes = 4 << 20

const advice = "; descárguela de nuevo y, si se repite, compárela con la publicación oficial"

// ReadFIX gives the days of the answer for the whole series to add, in ascending
// order. A *tabular.Refusal says why it must not be served.
func ReadFIX(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	sum.Encoding, sum.Counts = tabular.UTF8, map[string]int{}
	days, err := fix(official)
	if err != nil {
		return sum, err
	}
	sum.Corte, err = catalog.FIXRows(days, func(r snapshots.Row) error {
		sum.Rows++
		return add(r)
	})
	if errors.Is(err, catalog.ErrNoValue) {
		return sum, tabular.Refuse(tabular.NoRows, "la respuesta no trae ningún valor de la serie "+catalog.SeriesFIX+advice)
	}
	return sum, err
}

// fix parses the answer.
func fix(official snapshots.Opener) ([]catalog.Datum, error) {
	data, err := content(official)
	if err != nil {
		return nil, err
	}
	days, err := catalog.ParseSIE(data, catalog.SeriesFIX)
	if said, ok := errors.AsType[*catalog.SIEError](err); ok {
		return nil, tabular.Refuse(tabular.Rejected, said.Error()+" en lugar de la serie; revise el token y cuántas consultas permite, y repita la carga más tarde")
	}
	if err != nil {
		return nil, tabular.Refuse(tabular.Broken, err.Error()+advice)
	}
	return days, nil
}

// ReadSPEI gives the participants of the SPEI to add, by code.
func ReadSPEI(official snapshots.Opener, add func(snapshots.Row) error) (sum tabular.Summary, err error) {
	sum.Encoding, sum.Counts = tabular.UTF8, map[string]int{}
	list, err := spei(official)
	if err != nil {
		return sum, err
	}
	sum.Rows = len(list)
	return sum, catalog.SPEIRows(list, add)
}

// spei parses the list.
func spei(official snapshots.Opener) ([]catalog.Participant, error) {
	data, err := content(official)
	if err != nil {
		return nil, err
	}
	list, err := catalog.ParseSPEI(data)
	if err != nil {
		return nil, tabular.Refuse(tabular.Broken, err.Error()+advice)
	}
	return list, nil
}

// JudgeSPEI compares the first list with that of this program, since no version
// comes before it: every participant that it lacks is answered as one that left.
// More than a tenth of them is a reason for a person to decide about.
func JudgeSPEI(before, staged snapshots.Opener) (faults []snapshots.Fault, notices []snapshots.Notice, err error) {
	if before != nil {
		return nil, nil, nil
	}
	list, err := spei(staged)
	if err != nil {
		return nil, nil, err
	}
	known, gone := 0, 0
	for _, bank := range catalog.Embedded().Banks.All {
		if !bank.InSPEI {
			continue
		}
		known++
		if !slices.ContainsFunc(list, func(p catalog.Participant) bool { return p.Code == bank.SPEI }) {
			gone++
		}
	}
	if gone*10 > known {
		faults = append(faults, snapshots.Fault{Code: tabular.FewerRows, Message: fmt.Sprintf(
			"le faltan %d de los %d participantes de la lista incluida en este programa; puede estar incompleta: compárela con la de Banco de México y acepte o rechace la versión", gone, known)})
	}
	return faults, nil, nil
}

// content reads the whole answer, and refuses what is no answer.
func content(official snapshots.Opener) ([]byte, error) {
	in, err := official()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text := bufio.NewReader(in)
	if err := tabular.Sniff(text); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(text, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxBytes {
		return nil, tabular.Refuse(tabular.Broken, fmt.Sprintf("la respuesta pasa de %d bytes", MaxBytes))
	}
	if end := bytes.TrimSpace(data); end[len(end)-1] != '}' {
		return nil, tabular.Refuse(tabular.Truncated, "la respuesta no termina como empieza: está cortada; descárguela de nuevo")
	}
	return data, nil
}

// maxNamed bounds how many days a reason names.
const maxNamed = 5

// JudgeFIX compares a series that can be read with the one that answers until
// then, nil when that is the one of this program: what was published does not
// change, so every day that did is a reason for a person to decide about. That
// the series of this program says something else is told, and keeps nothing back.
func JudgeFIX(before, staged snapshots.Opener) (faults []snapshots.Fault, notices []snapshots.Notice, err error) {
	days, err := fix(staged)
	if err != nil {
		return nil, nil, err
	}
	is := observations(days)
	embedded := catalog.Embedded().FIX
	differ := embedded.Against(is)
	gone, _, other := split(differ)
	if len(other) > 0 {
		notices = append(notices, snapshots.Notice{Code: Disagrees, Message: fmt.Sprintf(
			"la serie incluida en este programa, hasta el %s, dice otra cosa de %s. Vale la de Banco de México; cada respuesta por uno de esos días lo dice",
			embedded.Version().Date, named(other))})
	}
	was := "la serie incluida en este programa"
	var changed, extra []catalog.Disagreement
	if before != nil {
		old, err := fix(before)
		if err != nil {
			return nil, nil, err
		}
		was = "la versión en servicio"
		gone, extra, other = split(catalog.NewSeries(observations(old)).Against(is))
		changed = append(other, extra...)
	}
	if len(gone) > 0 {
		faults = append(faults, snapshots.Fault{Code: tabular.FewerRows, Message: fmt.Sprintf(
			"ya no trae el valor de %s, que %s sí tiene; la respuesta puede ser de una parte de la serie: pida la serie completa", named(gone), was)})
	}
	if len(changed) > 0 {
		faults = append(faults, snapshots.Fault{Code: tabular.Changed, Message: fmt.Sprintf(
			"cambia lo ya publicado de %s; compárelo con el SIE de Banco de México y acepte o rechace la versión", named(changed))})
	}
	return faults, notices, nil
}

// Disagrees is the code of the notice about the series of this program.
const Disagrees = "SERIE_DIFIERE"

func observations(days []catalog.Datum) (list []catalog.Observation) {
	for _, d := range days {
		if d.Rate != 0 {
			list = append(list, d.Observation)
		}
	}
	return list
}

// split sorts what two series disagree about: values that are gone, that are new
// between older ones, and that are others.
func split(all []catalog.Disagreement) (gone, added, other []catalog.Disagreement) {
	for _, d := range all {
		switch {
		case d.Is == 0:
			gone = append(gone, d)
		case d.Was == 0:
			added = append(added, d)
		default:
			other = append(other, d)
		}
	}
	return gone, added, other
}

// named says which days, the first few with both values.
func named(days []catalog.Disagreement) string {
	value := func(r catalog.Rate) string {
		if r == 0 {
			return "sin dato"
		}
		return r.String()
	}
	var list []string
	for i, d := range days {
		if i == maxNamed {
			list = append(list, fmt.Sprintf("y %d días más", len(days)-maxNamed))
			break
		}
		list = append(list, fmt.Sprintf("%s (%s, ahora %s)", d.Day, value(d.Was), value(d.Is)))
	}
	return strings.Join(list, ", ")
}
