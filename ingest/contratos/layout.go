package contratos

import (
	"fmt"
	"strings"

	"cotejo/ingest/tabular"
	"cotejo/query"
)

// column is where a column of query.Contratos is found.
type column struct {
	// titles are the official ones, the layout of 2023 on first.
	titles []string
	needed bool
	kind   kind
}

// kind is how the cells of a column are normalised.
type kind byte

const (
	plain kind = iota
	key        // an identifier: upper case, no blanks
	day
	sum
	currency
)

// columns is by position in query.Contratos. Registro, the last, is in no file.
var columns = [...]column{
	query.ColContratoRFC:           {titles: []string{"rfc"}, needed: true, kind: key},
	query.ColContratoProveedor:     {titles: []string{"Proveedor o contratista"}, needed: true},
	query.ColContratoCodigo:        {titles: []string{"Código del contrato"}, needed: true, kind: key},
	query.ColContratoTitulo:        {titles: []string{"Título del contrato"}, needed: true},
	query.ColContratoInstitucion:   {titles: []string{"Institución"}, needed: true},
	query.ColContratoUC:            {titles: []string{"Nombre de la UC"}, needed: true},
	query.ColContratoProcedimiento: {titles: []string{"Número de procedimiento", "Número del procedimiento"}, needed: true},
	query.ColContratoTipo:          {titles: []string{"Tipo Procedimiento", "Tipo de procedimiento"}},
	query.ColContratoExpediente:    {titles: []string{"Código del expediente"}},
	query.ColContratoPartida:       {titles: []string{"Partida específica", "Clave CUCOP"}},
	query.ColContratoFirma:         {titles: []string{"Fecha de firma del contrato"}, needed: true, kind: day},
	query.ColContratoFallo:         {titles: []string{"Fecha de fallo"}, needed: true, kind: day},
	query.ColContratoInicio:        {titles: []string{"Fecha de inicio del contrato"}, needed: true, kind: day},
	query.ColContratoImporte:       {titles: []string{"Importe DRC", "Importe del contrato"}, needed: true, kind: sum},
	query.ColContratoMaximo:        {titles: []string{"Monto sin imp./máximo"}, kind: sum},
	query.ColContratoMinimo:        {titles: []string{"Monto sin imp./mínimo"}, kind: sum},
	query.ColContratoMoneda:        {titles: []string{"Moneda", "Moneda del contrato"}, needed: true, kind: currency},
	query.ColContratoConvenio:      {titles: []string{"Convenio modificatorio"}},
	query.ColContratoVerificado:    {titles: []string{"RFC verificado en el SAT"}},
	query.ColContratoAnuncio:       {titles: []string{"Dirección del anuncio"}},
}

// neededSince2023 are needed where the amount may stand in them: in the layout that
// has Importe DRC.
var neededSince2023 = []int{query.ColContratoMaximo, query.ColContratoMinimo}

// header says where the columns are in a file.
type header struct {
	from  [len(columns)]int // position in the file, -1: the layout lacks it
	width int               // cells of the titles
}

// match finds the columns among the titles, each at its first occurrence.
func match(titles [][]byte) (*header, error) {
	at := map[string]int{}
	for i, t := range titles {
		folded := tabular.Fold(t)
		if _, before := at[folded]; !before && folded != "" {
			at[folded] = i
		}
	}
	h := &header{width: len(titles)}
	for h.width > 0 && tabular.Blank(titles[h.width-1]) {
		h.width--
	}
	var missing []string
	lack := func(i int) { missing = append(missing, "«"+strings.Join(columns[i].titles, "» o «")+"»") }
	for i, c := range columns {
		h.from[i] = -1
		for _, title := range c.titles {
			if found, ok := at[tabular.Fold([]byte(title))]; ok && h.from[i] < 0 {
				h.from[i] = found
			}
		}
		if c.needed && h.from[i] < 0 {
			lack(i)
		}
	}
	if _, modern := at[tabular.Fold([]byte(columns[query.ColContratoImporte].titles[0]))]; modern {
		for _, i := range neededSince2023 {
			if h.from[i] < 0 {
				lack(i)
			}
		}
	}
	if missing != nil {
		return nil, tabular.Refuse(tabular.Header, fmt.Sprintf(
			"faltan las columnas %s entre los %d títulos del primer renglón; cargue el archivo completo de contratos, como se publica%s", strings.Join(missing, ", "), h.width, advice))
	}
	return h, nil
}

// fits reports whether a record has a cell for each title and no text beyond.
func (h *header) fits(cells [][]byte) bool {
	if len(cells) < h.width {
		return false
	}
	for _, c := range cells[h.width:] {
		if !tabular.Blank(c) {
			return false
		}
	}
	return true
}
