package evidence

import (
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/checks"
	"cotejo/civil"
	"cotejo/operation"
)

// span is a period: civil days of Mexico City, both included, a year at most.
type span struct{ from, to civil.Date }

const (
	paramMonth = "mes"
	paramFrom  = "desde"
	paramTo    = "hasta"
)

func periodParams() []operation.Param {
	day := func(name, description string) operation.Param {
		return operation.Param{
			Name: name, In: operation.InQuery, Parse: parseDay(name), Description: description,
			Schema: &jsonschema.Schema{Type: "string", Format: "date"},
		}
	}
	return []operation.Param{
		{
			Name: paramMonth, In: operation.InQuery, Parse: parseMonth,
			Description: "Mes, AAAA-MM. Sin él y sin desde, el mes en curso.",
			Schema:      &jsonschema.Schema{Type: "string", Pattern: `^[0-9]{4}-(0[1-9]|1[0-2])$`},
		},
		day(paramFrom, "Primer día, AAAA-MM-DD. No se combina con mes."),
		day(paramTo, "Último día, AAAA-MM-DD, a lo más un año después de desde. Sin él, hoy."),
	}
}

// firstYear is before anything that was ever answered here.
const firstYear = 2000

// parseMonth returns the first day of a month.
func parseMonth(text string) (any, error) {
	d, err := civil.Parse(text + "-01")
	if err != nil || len(text) != 7 || d.Year < firstYear {
		return nil, &checks.Problem{Type: "date_parsing", Rule: "«mes» debe ser un mes, AAAA-MM, desde 2000-01: por ejemplo 2026-11"}
	}
	return d, nil
}

func parseDay(name string) func(string) (any, error) {
	return func(text string) (any, error) {
		d, err := civil.Parse(text)
		if err != nil || d.Year < firstYear {
			return nil, &checks.Problem{Type: "date_parsing", Rule: "«" + name + "» debe ser un día que exista, AAAA-MM-DD, desde 2000-01-01"}
		}
		return d, nil
	}
}

// period reads the period that is asked about. Its error is an InvalidError.
func period(in operation.Input, now time.Time) (span, error) {
	month, hasMonth := operation.Get[civil.Date](in, paramMonth)
	from, hasFrom := operation.Get[civil.Date](in, paramFrom)
	to, hasTo := operation.Get[civil.Date](in, paramTo)
	today := civil.Of(now)
	refuse := func(name, kind, msg string, value civil.Date) (span, error) {
		return span{}, &operation.InvalidError{Items: []operation.Item{{
			Loc: []any{string(operation.InQuery), name}, Type: kind, Msg: msg, Input: value.String(),
		}}}
	}
	switch {
	case hasMonth && hasFrom:
		return refuse(paramFrom, "value_error", "«mes» y «desde» no se combinan; envíe mes, o desde y hasta", from)
	case hasMonth && hasTo:
		return refuse(paramTo, "value_error", "«mes» y «hasta» no se combinan; envíe mes, o desde y hasta", to)
	case hasTo && !hasFrom:
		return refuse(paramTo, "value_error", "Falta «desde»: envíe desde y hasta, o mes", to)
	case !hasFrom:
		if !hasMonth {
			month = civil.Date{Year: today.Year, Month: today.Month, Day: 1}
		}
		if today.Before(month) {
			return refuse(paramMonth, "less_than_equal", "«mes» no puede ser posterior al mes en curso, "+today.String()[:7], month)
		}
		return span{month, added(month, 0, 1, -1)}, nil
	case today.Before(from):
		return refuse(paramFrom, "less_than_equal", "«desde» no puede ser posterior a hoy, "+today.String()+" (Ciudad de México)", from)
	case !hasTo:
		to = today
	}
	if to.Before(from) {
		return refuse(paramTo, "greater_than_equal", "«hasta» debe ser igual o posterior a «desde», "+from.String()+"; revise si están invertidos", to)
	}
	if last := added(from, 1, 0, -1); last.Before(to) {
		return refuse(paramTo, "less_than_equal", "El periodo pasa de un año: con desde="+from.String()+", «hasta» puede ser a lo más "+last.String()+
			"; pida los demás días en otra petición", to)
	}
	return span{from, to}, nil
}

// added is a date some years, months and days later.
func added(d civil.Date, years, months, days int) civil.Date {
	t := time.Date(d.Year, d.Month, d.Day, 12, 0, 0, 0, civil.Zone).AddDate(years, months, days)
	return civil.Of(t)
}
