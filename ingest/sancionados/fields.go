package sancionados

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"cotejo/query"
)

// The field names of the directory's answer are published nowhere. This table is what
// is believed: by column of query.Sancionados[0], the names that it may have, the most
// telling first, in the form of foldName (case, accents, blanks and punctuation do not
// matter; a dot is a step into an object). To teach the program a name, add it here and
// raise the Reader of the schema.
//
// A name that could be something else's is left out: «nombre» alone may be an
// official's, «fecha» alone anything.
var fields = [...]struct {
	column int
	needed bool
	names  []string
}{
	{query.ColSancionRFC, true, []string{
		"rfc", "rfcproveedor", "rfcparticular", "rfcsancionado", "rfccontratista", "rfcempresa", "rfcproveedorcontratista",
		"registrofederaldecontribuyentes", "registrofederalcontribuyentes", "particularsancionado.rfc", "proveedor.rfc", "particular.rfc",
	}},
	{query.ColSancionNombre, true, []string{
		"proveedorycontratista", "proveedorcontratista", "proveedorocontratista", "nombrerazonsocial", "nombreorazonsocial", "razonsocial",
		"nombreproveedor", "nombreparticular", "nombresancionado", "nombreempresa", "proveedor", "contratista", "particular", "denominacion", "nombrecompleto",
		"particularsancionado.nombrerazonsocial", "proveedor.nombrerazonsocial", "particular.nombrerazonsocial", "proveedor.nombre", "particular.nombre",
	}},
	{query.ColSancionDependencia, false, []string{
		"oicresponsable", "oic", "dependencia", "nombredependencia", "institucion", "institucionodependencia", "entepublico", "autoridadsancionadora",
		"dependenciaentidad", "instituciondependencia.nombre", "dependencia.nombre", "institucion.nombre",
	}},
	{query.ColSancionExpediente, false, []string{"expediente", "numeroexpediente", "numerodeexpediente", "numexpediente", "noexpediente", "expedientenumero"}},
	{query.ColSancionTipo, false, []string{"tiposancion", "tipodesancion", "sentidoresolucion", "sentidoderesolucion", "sancionimpuesta", "sancion", "sentido", "resolucion.sentido"}},
	{query.ColSancionInicio, true, []string{
		"iniciosancion", "iniciodelasancion", "fechainiciosancion", "fechainiciodelasancion", "fechainicioinhabilitacion", "inicioinhabilitacion",
		"fechainicio", "fechainicial", "fechadeinicio", "inicio", "inhabilitacion.fechainicial", "inhabilitacion.fechainicio", "inhabilitacion.inicio",
	}},
	{query.ColSancionFin, true, []string{
		"finsancion", "findelasancion", "fechafinsancion", "fechafindelasancion", "fechafininhabilitacion", "fininhabilitacion", "fechaterminosancion",
		"fechafin", "fechafinal", "fechatermino", "fechadefin", "fin", "termino", "inhabilitacion.fechafinal", "inhabilitacion.fechafin", "inhabilitacion.fin",
	}},
	{query.ColSancionPlazo, false, []string{
		"periodoinhabilitacion", "periododeinhabilitacion", "plazoinhabilitacion", "plazodeinhabilitacion", "tiempoinhabilitacion", "plazo", "periodo", "inhabilitacion.plazo",
	}},
	{query.ColSancionMonto, false, []string{"montomulta", "montodelamulta", "montodemulta", "importemulta", "multamonto", "multa.monto", "monto", "multa"}},
	{query.ColSancionMoneda, false, []string{"moneda", "multa.moneda", "multa.moneda.clave", "tipomoneda"}},
	{query.ColSancionID, false, []string{"id", "idsancion", "idregistro", "idparticular", "folio"}},
	{query.ColSancionCausa, false, []string{"causamotivohechos", "causa", "motivo", "hechos", "hechosdelairregularidad", "irregularidad"}},
	{directoryProcedure, false, []string{"procedimientoadministrativo", "procedimiento", "numeroprocedimiento"}},
	{directoryLaw, false, []string{"leyinfringida", "ley", "normatividadinfringida"}},
	{directoryResolved, false, []string{"fecharesolucion", "fechaderesolucion", "resolucion.fecharesolucion", "resolucion.fecha"}},
}

// Columns of the directory behind those that all sources share.
const (
	directoryProcedure = query.ColSancionCausa + 1 + iota
	directoryLaw
	directoryResolved
)

// foldName is a field name as the table has it.
func foldName(name string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(name) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// flatDepth is how deep fields are looked for.
const flatDepth = 3

// flat calls leaf for every text of a record with its folded path; that of a list are
// its texts joined.
func flat(n node, prefix string, depth int, leaf func(path, shown, text string)) {
	for _, name := range slices.Sorted(maps.Keys(n.members)) { // of two that fold alike the last counts
		member, path := n.members[name], prefix+foldName(name)
		if member.members != nil {
			if depth < flatDepth {
				flat(member, path+".", depth+1, leaf)
			}
			continue
		}
		leaf(path, name, member.joined(func(item node) string {
			if item.members != nil {
				for _, known := range [...]string{"valor", "descripcion", "nombre", "clave"} {
					if text := item.of(known); text != "" {
						return text
					}
				}
			}
			return item.text
		}))
	}
}

// chosen maps the columns to the field that each takes, "" for none, from the fields
// that the file has; missing are the needed columns without any.
func chosen(has map[string]bool) (taken []string, missing []int) {
	taken = make([]string, len(query.Sancionados[0].Columns))
	for _, f := range fields {
		at := slices.IndexFunc(f.names, func(name string) bool { return has[name] })
		switch {
		case at >= 0:
			taken[f.column] = f.names[at]
		case f.needed:
			missing = append(missing, f.column)
		}
	}
	return taken, missing
}
