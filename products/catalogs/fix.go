package catalogs

import (
	"errors"
	"strconv"

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

// From what an answer about the rate is, up to which day, and what it does not mean.
const (
	includedNotice = "Se responde desde la serie incluida en el programa, que llega hasta el "
	loadedNotice   = "Se responde desde la serie de Banco de México que se cargó, que llega hasta el "
	expectedNotice = " Las fechas marcadas como previstas salen del calendario bancario: la serie no llega a ellas."
	lawNotice      = " Qué fecha corresponde a una obligación lo dice la ley que la rige."
)

// rates answers from the series of the edition.
func rates(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	series := catalog.Of(in.Edition()).FIX
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
		return uncovered(m, series, err)
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
	m.series(series)
	expected, differs := "", ""
	if fix.PayableExpected {
		expected = expectedNotice
	}
	if other, ok := series.Disagrees(fix.Determined); ok {
		differs = " La serie incluida en el programa tiene otro valor de ese día, " + other.String() + "; vale el de Banco de México."
	}
	from, after := includedNotice, "; no se consultó a Banco de México."
	if series.Version().Loaded != nil {
		from, after = loadedNotice, "."
	}
	return m.end(from+series.End()+after+expected+differs+lawNotice, series.Version().Basis)
}

// series writes fuente, with what there is to say of a series.
func (m *members) series(s *catalog.Series) {
	m.open("fuente")
	*m = s.Version().AppendMembers(*m, series)
	m.day("desde", s.First())
	m.day("hasta", s.Last().Determined)
	m.name("dias_distintos_de_la_incluida")
	*m = strconv.AppendInt(*m, int64(len(s.Disagreements())), 10)
	m.close()
}

// date writes one of the three dates of a rate.
func (m *members) date(name string, d civil.Date, expected bool) {
	m.open(name)
	m.day(dateParam, d)
	m.flag("prevista", expected)
	m.close()
}

// uncovered answers that a day has no value, with none.
func uncovered(m members, series *catalog.Series, err error) ([]byte, operation.Computed, error) {
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
	switch {
	case reason == futureDay:
		notice = "No se inventa un valor ni se cobra: el de ese día todavía no existe o no está en la serie. Pregunte por un día de cobertura."
	case series.Version().Loaded != nil:
		notice = "No se inventa un valor ni se cobra: el de ese día no está en la serie de Banco de México que se cargó. " +
			"Pregunte por un día de cobertura, o más tarde: el FIX se determina a mediodía de cada día hábil bancario."
	}
	m.series(series)
	body, computed, err := m.end(notice, series.Version().Basis)
	computed.Code, computed.Charged = unavailable, false
	return body, computed, err
}
