package query

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/snapshots"
)

// motorContracts is a second engine of the service: the first has its plain name.
const motorContracts = "COMPANY/CONTRATOS/1"

// MaxContracts is the most that an answer lists.
const MaxContracts = 500

// maxContractsBytes bounds the list, so that a registro of it can be kept.
const maxContractsBytes = 768 << 10

// Contracts asks for the public contracts of one RFC.
type Contracts struct {
	RFC checks.RFC
	// Limit is how many to list, from 1 to MaxContracts; all are counted.
	Limit int
}

const advertenciaContratos = "Contratos como los publican CompraNet y Compras MX; no es una calificación crediticia ni dice si el contrato se cumplió."

// Motor implements Question.
func (Contracts) Motor() string { return motorContracts }

// AppendEntrada implements Question.
func (c Contracts) AppendEntrada(dst []byte) []byte {
	dst = append(dst, `{"limite":`...)
	dst = appendInt(dst, c.Limit)
	dst = append(dst, `,"rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	return append(dst, '}')
}

func parseContracts(entrada []byte) (Question, error) {
	var in struct {
		Limite *int    `json:"limite"`
		RFC    *string `json:"rfc"`
	}
	dec := json.NewDecoder(bytes.NewReader(entrada))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	if in.RFC == nil || in.Limite == nil {
		return nil, errors.New("faltan rfc o limite")
	}
	if *in.Limite < 1 || *in.Limite > MaxContracts {
		return nil, fmt.Errorf("limite es %d; de 1 a %d", *in.Limite, MaxContracts)
	}
	rfc, err := checks.ParseRFC(*in.RFC)
	if err != nil {
		return nil, err
	}
	return Contracts{RFC: rfc, Limit: *in.Limite}, nil
}

// Chargeable implements Question.
func (Contracts) Chargeable(ed *snapshots.Edition) bool { return len(loadedIn(ed).years) > 0 }

// AppendResultado implements Question. The answer is charged iff at least one year
// was consulted. An RFC without contracts costs one probe of the edition table.
func (c Contracts) AppendResultado(dst []byte, fecha civil.Date, ed *snapshots.Edition) ([]byte, Outcome, error) {
	in := loadedIn(ed)
	out := Outcome{Code: noDisponible, Consulted: in.contracts}
	if len(in.years) > 0 {
		out.Code, out.Charged = "COMPANY_OK", true
	}
	p, err := in.procurementOf(ed.Classify(c.RFC.Key()), c.RFC, true)
	if err != nil {
		return dst, out, err
	}

	dst = append(dst, `{"advertencia":"`+advertenciaContratos+`",`...)
	dst = appendContractYears(dst, in.years)
	dst = append(dst, `,"cobertura":"`+coberturaContratos+`","contratos":[`...)
	if dst, err = in.appendContracts(dst, p.newest[:min(len(p.newest), c.Limit)]); err != nil {
		return dst, out, err
	}
	dst = append(dst, `],`...)
	if len(in.years) > 0 {
		dst = appendEstado(dst, p.contracts > 0)
	} else {
		dst = append(dst, `"estado":"`+noCargada+`"`...)
	}
	dst = append(dst, `,"fuentes":[`...)
	dst = append(dst, in.on(fecha).contracts.fuentes...)
	dst = append(dst, `],"limite":`...)
	dst = appendInt(dst, c.Limit)
	dst = append(dst, ',')
	dst = p.appendNotas(dst)
	dst = append(dst, `,"registros":`...)
	dst = appendCount(dst, p.rows, len(in.years) > 0)
	dst = append(dst, `,"result_code":"`...)
	dst = append(dst, out.Code...)
	dst = append(dst, `","rfc":`...)
	dst = canon.AppendString(dst, c.RFC.String())
	dst = append(dst, `,"total_contratos":`...)
	dst = appendCount(dst, p.contracts, len(in.years) > 0)
	return append(dst, '}'), out, nil
}

// appendContracts appends the items of contratos, as many as maxContractsBytes has
// room for.
func (s *loaded) appendContracts(dst []byte, list []contractAt) ([]byte, error) {
	type told struct {
		contract
		norm []string
	}
	rows := make([]told, len(list))
	order := make([]int, len(list)) // as they stand in the files
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(list[i].from, list[j].from), cmp.Compare(list[i].key, list[j].key))
	})
	var keys []snapshots.RowKey
	for at := 0; at < len(order); {
		from, first := list[order[at]].from, at
		for keys = keys[:0]; at < len(order) && list[order[at]].from == from; at++ {
			keys = append(keys, list[order[at]].key)
		}
		next := first
		y := &s.years[from]
		if err := y.list.VisitKeys(keys, func(key snapshots.RowKey, cells snapshots.Cells) error {
			rows[order[next]] = told{newContract(from, y.year, key, cells.Norm), slices.Clone(cells.Norm)}
			next++
			return nil
		}); err != nil {
			return dst, err
		}
	}
	for i, start := 0, len(dst); i < len(rows); i++ {
		end := len(dst)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rows[i].appendTo(dst, rows[i].norm, s.years)
		if len(dst)-start > maxContractsBytes {
			return dst[:end], nil
		}
	}
	return dst, nil
}

// appendCount appends a number that is null when nothing was asked.
func appendCount(dst []byte, n int, asked bool) []byte {
	if !asked {
		return append(dst, "null"...)
	}
	return appendInt(dst, n)
}

// newestOf returns where the newest MaxContracts stand, the newest first, and those
// without a day last among those of their year. found is sorted by it.
func newestOf(found []contract) []contractAt {
	at := func(c *contract) civil.Date {
		if c.day.IsZero() {
			return civil.Date{Year: c.year}
		}
		return c.day
	}
	slices.SortFunc(found, func(a, b contract) int {
		x, y := at(&a), at(&b)
		return cmp.Or(
			cmp.Compare(y.Year, x.Year), cmp.Compare(y.Month, x.Month), cmp.Compare(y.Day, x.Day),
			cmp.Compare(a.code, b.code),
			cmp.Compare(b.from, a.from), cmp.Compare(b.registro, a.registro))
	})
	newest := make([]contractAt, min(len(found), MaxContracts))
	for i := range newest {
		newest[i] = contractAt{found[i].from, found[i].key}
	}
	return newest
}

// appendTo appends one item of contratos[]; norm are the cells of its row.
func (c *contract) appendTo(dst []byte, norm []string, years []contractYear) []byte {
	text := func(name string, column int) {
		dst = append(append(append(dst, `,"`...), name...), `":`...)
		dst = canon.AppendString(dst, norm[column])
	}
	dst = append(dst, `{"anio":`...)
	dst = appendInt(dst, c.year)
	text("anuncio", ColContratoAnuncio)
	text("dependencia", ColContratoInstitucion)
	dst = append(dst, `,"fecha":`...)
	dst = appendDay(dst, c.day)
	dst = append(dst, `,"fecha_de":`...)
	dst = appendTextOrNull(dst, c.dayFrom)
	dst = append(dst, `,"fuente":`...)
	dst = canon.AppendString(dst, years[c.from].schema.Source)
	dst = append(dst, `,"moneda":`...)
	dst = appendTextOrNull(dst, c.currency)
	dst = append(dst, `,"monto":`...)
	dst = appendTextOrNull(dst, c.amount)
	dst = append(dst, `,"monto_de":`...)
	dst = appendTextOrNull(dst, c.paidFrom)
	amount, ok := parseImporte(c.amount)
	dst = append(dst, `,"monto_no_plausible":`...)
	dst = strconv.AppendBool(dst, ok && amount.implausible())
	text("num_contrato", ColContratoCodigo)
	text("procedimiento", ColContratoProcedimiento)
	text("proveedor", ColContratoProveedor)
	dst = append(dst, `,"registro":`...)
	dst = appendInt(dst, c.registro)
	text("titulo", ColContratoTitulo)
	text("unidad_compradora", ColContratoUC)
	return append(dst, '}')
}
