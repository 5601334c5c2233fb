package catalogs

import (
	"errors"

	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/operation"
)

const unavailable = "SOURCE_UNAVAILABLE"

// Why a series has no value for a day.
const (
	beforeSeries = "anterior_a_la_serie"
	afterSeries  = "posterior_a_la_serie"
	futureDay    = "fecha_futura"
)

// What an answer about the rate does not mean.
const (
	expectedNotice = " Las fechas marcadas como previstas salen del calendario bancario: la serie no llega a ellas."
	lawNotice      = " Qué fecha corresponde a una obligación lo dice la ley que la rige."
)

// rates answers from one series.
func rates(series *catalog.Series) compute {
	first, last := civil.Date{}, series.Last().Determined
	for o := range series.All {
		first = o.Day
		break
	}
	from := sourceOf(series.Version(), func(m *members) {
		m.text("origen", "serie_incluida")
		m.day("desde", first)
		m.day("hasta", last)
	})
	embedded := "Se responde desde la serie incluida en el programa, que llega hasta el " + last.String() + "; no se consultó a Banco de México."
	return func(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
		today := in.Today()
		day, ok := operation.Get[civil.Date](in, dateParam)
		if !ok {
			day = today
		}
		name, _ := operation.Get[string](in, "base")
		basis, _ := catalog.ParseBasis(name)
		m := members(dst)
		m.day(dateParam, day)
		m.text("base", name)
		m.text("serie", catalog.SeriesFIX)
		fix, err := series.At(basis, day, today)
		if err != nil {
			return uncovered(m, &from, err)
		}
		m.day("fecha_dato", fix.Date())
		m.flag("fecha_dato_prevista", fix.Expected())
		m.known("motivo", string(fix.Gap))
		m.flag("motivo_previsto", fix.GapExpected)
		m.text("explicacion", fix.Explain())
		m.open("tipo_cambio")
		m.text("valor", fix.Rate.String())
		m.text("unidad", "MXN por USD")
		m.date("determinacion", fix.Determined, false)
		m.date("publicacion_dof", fix.Published, fix.PublishedExpected)
		m.date("pagos", fix.Payable, fix.PayableExpected)
		m.close()
		if amount, ok := operation.Get[catalog.Amount](in, "monto"); ok {
			centavos, exact := fix.Rate.ToMXN(amount)
			m.open("conversion")
			m.text("monto", amount.String())
			m.text("moneda", "USD")
			m.text("exacto", exact)
			m.text("resultado", operation.Pesos(centavos))
			m.text("moneda_resultado", "MXN")
			m.close()
		} else {
			m.null("conversion")
		}
		notice := embedded + lawNotice
		if fix.PayableExpected {
			notice = embedded + expectedNotice + lawNotice
		}
		return from.end(m, notice)
	}
}

// date writes one of the three dates of a rate.
func (m *members) date(name string, d civil.Date, expected bool) {
	m.open(name)
	m.day(dateParam, d)
	m.flag("prevista", expected)
	m.close()
}

// uncovered answers that a day has no value, with none.
func uncovered(m members, from *source, err error) ([]byte, operation.Computed, error) {
	var outside *catalog.CoverageError
	if !errors.As(err, &outside) {
		return nil, operation.Computed{}, err
	}
	reason := afterSeries
	switch {
	case errors.Is(err, catalog.ErrBeforeSeries):
		reason = beforeSeries
	case errors.Is(err, catalog.ErrFuture):
		reason = futureDay
	}
	m.null("fecha_dato")
	m.flag("fecha_dato_prevista", false)
	m.text("motivo", reason)
	m.flag("motivo_previsto", false)
	m.text("explicacion", outside.Error())
	m.null("tipo_cambio")
	m.null("conversion")
	m.open("cobertura")
	m.day("desde", outside.From)
	m.day("hasta", outside.To)
	m.close()
	notice := "No se inventa un valor ni se cobra: sin token de Banco de México solo responde la serie incluida en el programa. " +
		"Pregunte por un día de cobertura, o consulte el SIE de Banco de México (serie " + catalog.SeriesFIX + ")."
	if reason == futureDay {
		notice = "No se inventa un valor ni se cobra: el de ese día todavía no existe o no está en la serie incluida en el programa. Pregunte por un día de cobertura."
	}
	body, computed, err := from.end(m, notice)
	computed.Code, computed.Charged = unavailable, false
	return body, computed, err
}
