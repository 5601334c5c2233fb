package platform

import (
	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
	op "cotejo/operation"
)

// sourcesAnswer is what /v1/fuentes says: the sources as health has them, and the
// lists that the program carries.
type sourcesAnswer struct {
	Edition  *editionState  `json:"edicion"`
	Sources  []SourceState  `json:"fuentes"`
	Included []includedList `json:"incluidas"`
}

// includedList is a list that the program carries.
type includedList struct {
	ID        string  `json:"id"`
	Name      string  `json:"nombre"`
	URL       *string `json:"url"`
	Retrieved *string `json:"obtenida_de"`
	License   *string `json:"licencia"`
	Version   string  `json:"version"`
	SHA256    string  `json:"sha256"`
	Rows      int     `json:"registros"`
	Coverage  *string `json:"cobertura"`
	Replaced  *string `json:"fuente"`
	Serves    bool    `json:"responde"`
	Why       string  `json:"motivo"`
}

// renewed says of each list which source renews it, and whether in its place; or
// why none does.
var renewed = map[string]struct {
	source string
	whole  bool
	why    string
}{
	"banxico_fix":    {catalog.FIXSource.Source, true, "Responde mientras no se carga la serie de Banco de México, y siempre a las llaves de prueba."},
	"bancos":         {catalog.SPEISource.Source, false, "La lista de participantes del SPEI que se cargue sustituye quién participa, su clave y su nombre; los nombres del SAT son de su lista de 2017."},
	"telefono_nir":   {catalog.NumberingSource.Source, false, "El plan de numeración que se cargue dice de cada rango su modalidad y su proveedor; las claves de área y sus zonas son de esta lista."},
	"sat_regimen":    {"", false, onlyXLS},
	"sat_uso_cfdi":   {"", false, onlyXLS},
	"sat_forma_pago": {"", false, onlyXLS},
	"clabe_plazas":   {"", false, "Ninguna autoridad publica las plazas de la CLABE en un archivo que un programa pueda leer."},
	"cp_prefijos":    {"", false, "El catálogo de códigos postales del SAT se publica en una hoja de cálculo, y la licencia del de Correos de México no permite servirlo."},
}

const onlyXLS = "El SAT publica el catálogo en una hoja de cálculo (XLS) cuyo formato este programa no lee: se incluye la copia pública que se indica y se renueva con el programa."

// included lists them, by id, as an edition answers from them.
func included(set *catalog.Set) []includedList {
	optional := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	loaded := map[string]bool{
		catalog.FIXSource.Source:       set.FIX.Version().Loaded != nil,
		catalog.SPEISource.Source:      set.Banks.List() != nil,
		catalog.NumberingSource.Source: set.Phones.Plan() != nil,
	}
	var lists []includedList
	for _, v := range catalog.Embedded().Versions() {
		how := renewed[v.ID]
		lists = append(lists, includedList{
			ID: v.ID, Name: v.Source, URL: optional(v.URL), Retrieved: optional(v.Retrieved), License: optional(v.License),
			Version: v.Date.String(), SHA256: v.SHA256, Rows: v.Rows, Coverage: optional(v.Coverage),
			Replaced: optional(how.source), Serves: !(how.whole && loaded[how.source]), Why: how.why,
		})
	}
	return lists
}

func sourcesSchema() *jsonschema.Schema {
	return op.Titled("Fuentes", op.Object(
		op.F("edicion", op.OrNull(editionSchema())),
		op.F("fuentes", op.List(sourceSchema(), "Una por fuente oficial que esta versión del servicio sabe leer, cargada o no, como en /v1/salud.")),
		op.F("incluidas", op.List(op.Object(
			op.F("id", op.Text("Catálogo.")),
			op.F("nombre", op.Text("Autoridad y publicación.")),
			op.F("url", op.OrNull(op.Text("Dónde publica la autoridad."))),
			op.F("obtenida_de", op.OrNull(op.Text("De dónde se leyeron en realidad los datos."))),
			op.F("licencia", op.OrNull(op.Text(""))),
			op.F("version", op.Day("Día del que son los datos.")),
			op.F("sha256", op.SHA256("Del archivo del catálogo.")),
			op.F("registros", op.Integer("")),
			op.F("cobertura", op.OrNull(op.Text("Qué tiene y qué no."))),
			op.F("fuente", op.OrNull(op.Text("Fuente oficial que la renueva o la completa cuando se carga; null: ninguna, y motivo dice por qué."))),
			op.F("responde", op.Flag("Se responde desde ella. false: la fuente la sustituye.")),
			op.F("motivo", op.Text("Por qué la trae el programa.")),
		), "Listas que trae el programa, con su versión y su hash: no son descargas de la autoridad.")),
	))
}
