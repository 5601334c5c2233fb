package operation

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/catalog"
)

// Schemas of answers are strict: an object has exactly the members that are
// declared, and all of them unless marked optional. A client that was generated
// from them can rely on it; a member that is added later must be declared.

// Field is one member of an object.
type Field struct {
	Name     string
	Schema   *jsonschema.Schema
	Optional bool
}

// F declares a member that is always there.
func F(name string, s *jsonschema.Schema) Field { return Field{name, s, false} }

// Maybe declares a member that may be absent.
func Maybe(name string, s *jsonschema.Schema) Field { return Field{name, s, true} }

// Object is an object with exactly these members, shown in this order.
func Object(fields ...Field) *jsonschema.Schema {
	s := Members(fields...)
	s.AdditionalProperties = Nothing()
	return s
}

// Members is an object with at least these members, as a request sends it.
func Members(fields ...Field) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:       "object",
		Properties: make(map[string]*jsonschema.Schema, len(fields)),
	}
	for _, f := range fields {
		s.Properties[f.Name] = f.Schema
		s.PropertyOrder = append(s.PropertyOrder, f.Name)
		if !f.Optional {
			s.Required = append(s.Required, f.Name)
		}
	}
	return s
}

// MapOf is an object with any names and values of one schema.
func MapOf(s *jsonschema.Schema, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: description, AdditionalProperties: s}
}

// Nothing is the schema that no value satisfies.
func Nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// Text is any string.
func Text(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description}
}

// Form is a string of a regular expression.
func Form(pattern, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: description}
}

// SHA256 is a hash in lower-case hexadecimal.
func SHA256(description string) *jsonschema.Schema { return Form(`^[0-9a-f]{64}$`, description) }

// Day is a calendar day, AAAA-MM-DD.
func Day(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Format: "date", Description: description}
}

// Moment is an RFC 3339 timestamp.
func Moment(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Format: "date-time", Description: description}
}

// Money is an amount in pesos with two decimals, as a string.
func Money(description string) *jsonschema.Schema { return Form(`^-?[0-9]+\.[0-9]{2}$`, description) }

// Integer is a whole number that is not negative.
func Integer(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Minimum: new(float64), Description: description}
}

// Signed is a whole number.
func Signed(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: description}
}

// Flag is true or false.
func Flag(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: description}
}

// OneOf is one of a few words.
func OneOf(description string, words ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Description: description}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Known is a string of a few known words. Others may come, and are not an error.
func Known(description string, words ...string) *jsonschema.Schema {
	s := Text(description)
	for _, w := range words {
		s.Examples = append(s.Examples, w)
	}
	return s
}

// Always is one value.
func Always(value any) *jsonschema.Schema { return &jsonschema.Schema{Const: &value} }

// List is an array of items.
func List(items *jsonschema.Schema, description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: items, Description: description}
}

// Empty is an array that has no items yet.
func Empty(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", MaxItems: new(int), Description: description}
}

// OrNull also allows null.
func OrNull(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type == "" || s.Enum != nil {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	c := *s
	c.Type, c.Types = "", []string{s.Type, "null"}
	return &c
}

// Titled names a schema, so that the OpenAPI document can refer to it.
func Titled(title string, s *jsonschema.Schema) *jsonschema.Schema {
	s.Title = title
	return s
}

// AnyRecord is the output of an operation that gives back any recorded answer.
var AnyRecord = &jsonschema.Schema{Ref: "#/components/schemas/Verificacion"}

// rawJSON is the JSON of a literal of the operation list.
func rawJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// CatalogVersion describes what catalog.Version.AppendMembers writes, with further
// members behind. kind is what the version is of: lista or serie.
func CatalogVersion(kind string, more ...Field) *jsonschema.Schema {
	included, loaded := kind+"_incluida", kind+"_cargada"
	return Object(append([]Field{
		F("id", Text("Catálogo, o fuente oficial que se cargó.")),
		F("nombre", Text("Autoridad y publicación.")),
		F("url", OrNull(Text("Dónde publica la autoridad."))),
		F("obtenida_de", OrNull(Text("De dónde se leyeron en realidad los datos."))),
		F("version", Day("Día del que son los datos.")),
		F("sha256", SHA256("Del archivo del catálogo; de lo que se cargó, del archivo oficial como se recibió.")),
		F("registros", Integer("Renglones del archivo.")),
		F("cobertura", OrNull(Text("Qué tiene el catálogo y qué no."))),
		F("origen", OneOf(included+": la trae el programa. "+loaded+": es la versión de una fuente oficial que se cargó; ninguna consulta pregunta a la autoridad en el momento.", included, loaded)),
		F("source_version_id", OrNull(Integer("De lo que se cargó; null de lo que trae el programa."))),
		F("corte", OrNull(Day("Fecha de corte, si el archivo o quien lo cargó la dice."))),
		F("publicada_en_reset", OrNull(Moment("Cuándo empezó a responderse desde esta versión."))),
		F("ultima_modificacion_servidor", OrNull(Moment("La que dijo el servidor de la autoridad."))),
		F("descargada", OrNull(Moment(""))),
	}, more...)...)
}

// CatalogBank describes what answers say of a bank's names, whatever day is asked about.
func CatalogBank() []Field {
	return []Field{
		F("nombre", OrNull(Text("El nombre corto más reciente que se conoce: el del SPEI, si no el del SAT, si no el común."))),
		F("clase", OrNull(OneOf("Según la clave del SPEI; null fuera de él.",
			string(catalog.CentralBank), string(catalog.DevelopmentBank), string(catalog.CommercialBank), string(catalog.NonBank)))),
		F("spei", Object(
			F("participa", Flag("Está en la lista de participantes de lista_del.")),
			F("clave", OrNull(Form(`^[0-9]{5}$`, ""))),
			F("nombre", OrNull(Text(""))),
			F("lista_del", Day("")),
		)),
		F("catalogo_sat", OrNull(Object(
			F("nombre", OrNull(Text(""))),
			F("razon_social", OrNull(Text("De 2017. Si cambio_de_titular_o_nombre, no es la del participante de hoy."))),
			F("desde", OrNull(Day(""))),
			F("hasta", OrNull(Day(""))),
		))),
		F("nombre_comun", OrNull(Text("De recopilaciones públicas; no es oficial."))),
		F("cambio_de_titular_o_nombre", Flag("La clave tiene otro titular u otro nombre que en el catálogo del SAT.")),
	}
}
