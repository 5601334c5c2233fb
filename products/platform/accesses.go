package platform

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/text/unicode/norm"

	"cotejo/accesslog"
	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ledger"
	op "cotejo/operation"
)

const (
	defaultAccesses = 200
	maxAccesses     = 1000
	defaultDays     = 7 // with today
)

// access is one request, as the answer shows it.
type access struct {
	At        string      `json:"momento"`
	Org       *accessOrg  `json:"organizacion"`
	Key       *string     `json:"llave"`
	Client    *string     `json:"direccion"`
	Method    string      `json:"metodo"`
	Route     string      `json:"ruta"`
	Status    int         `json:"status"`
	Millis    json.Number `json:"ms"`
	Bytes     int64       `json:"bytes"`
	Cut       bool        `json:"cortada"`
	Cost      string      `json:"costo"`
	RequestID string      `json:"request_id"`
	Lost      int         `json:"renglones_perdidos"`
}

type accessOrg struct {
	ID   string  `json:"id"`
	Name *string `json:"nombre"`
}

type accessPage struct {
	From     civil.Date `json:"desde"`
	To       civil.Date `json:"hasta"`
	Days     int        `json:"dias_conservados"`
	Accesses []access   `json:"accesos"`
	Cut      bool       `json:"busqueda_cortada"`
	Next     *string    `json:"siguiente"`
}

// readAccesses is the operation.
func readAccesses(c Config) op.Operation {
	day := func(name, description string) op.Param {
		return op.Param{Name: name, In: op.InQuery, Description: description, Schema: &jsonschema.Schema{Type: "string", Format: "date"}}
	}
	return op.Operation{
		ID: "consultarAccesos", Method: "GET", Path: "/v1/admin/accesos", Tag: "Administración", Auth: op.Admin,
		Summary: "Registro de accesos: quién, desde dónde, a qué ruta y con qué resultado",
		Description: "Las peticiones de los días indicados (días civiles de la Ciudad de México), las más nuevas primero. Solo con llave de administración; " +
			"esta consulta queda también en el registro. Gratuita.\n\n" +
			"De cada petición se guarda la plantilla de la ruta, nunca sus parámetros, ni la consulta, ni encabezados, ni cuerpos, ni llaves: de una llave, solo " +
			"la parte que la identifica. El registro se conserva dias_conservados días, o menos si rebasa su tamaño máximo.\n\n" +
			"No es evidencia: no está en la cadena de las cuentas. Un corte del proceso pierde el último segundo, y un disco lleno o una saturación, más; " +
			"renglones_perdidos dice cuántos faltan antes de un acceso. Las sondas /livez y /readyz no se registran; de las peticiones sin llave que un " +
			"límite rechaza (429), solo una por segundo de cada red.",
		Params: []op.Param{
			day("desde", "Primer día. Si falta, seis días antes de «hasta». Antes de lo que se conserva no hay nada: la respuesta dice desde qué día se buscó."),
			day("hasta", "Último día, incluido. Si falta, hoy."),
			{Name: "org", In: op.InQuery, Description: "Parte del nombre de la organización, sin distinguir acentos ni mayúsculas.",
				Schema: &jsonschema.Schema{Type: "string", MinLength: ptr(1), MaxLength: ptr(100)}},
			{Name: "status", In: op.InQuery, Description: "Solo los de este código de estado HTTP, por ejemplo 401.",
				Schema: &jsonschema.Schema{Type: "integer", Minimum: ptr(100.0), Maximum: ptr(599.0)}},
			{Name: "limite", In: op.InQuery, Description: "Cuántos a lo más.", Default: defaultAccesses,
				Schema: &jsonschema.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(float64(maxAccesses))}},
			{Name: "cursor", In: op.InQuery, Description: "El «siguiente» de una respuesta anterior, con los mismos filtros: sigue desde ahí.",
				Schema: &jsonschema.Schema{Type: "string", Pattern: accesslog.CursorForm}},
		},
		Output: op.Titled("Accesos", op.Object(
			op.F("desde", op.Day("Primer día en que se buscó.")),
			op.F("hasta", op.Day("Último día en que se buscó.")),
			op.F("dias_conservados", op.Integer("Días que se conserva el registro, hoy incluido; 0: sin límite de días.")),
			op.F("accesos", op.List(accessSchema(), "Los más nuevos primero.")),
			op.F("busqueda_cortada", op.Flag("Se revisó tanto registro que la búsqueda se detuvo antes de «limite»: puede haber más a partir de «siguiente».")),
			op.F("siguiente", op.OrNull(op.Form(accesslog.CursorForm, "Cursor con el que se sigue; null cuando ya no hay más."))),
		)),
		Read: func(ctx context.Context, call op.Call) (op.Response, error) { return c.accesses(ctx, call.Input) },
	}
}

func accessSchema() *jsonschema.Schema {
	return op.Object(
		op.F("momento", op.Moment("Cuándo se respondió, con milisegundos.")),
		op.F("organizacion", op.OrNull(op.Object(
			op.F("id", op.Text("")),
			op.F("nombre", op.OrNull(op.Text("Su nombre de hoy; null si ya no existe."))),
		))),
		op.F("llave", op.OrNull(op.Text("Identificador de la llave, no la llave. null: no hubo una válida."))),
		op.F("direccion", op.OrNull(op.Text("Dirección IP del cliente; la del proxy si no es de confianza."))),
		op.F("metodo", op.Text("«-» si no es uno de los conocidos.")),
		op.F("ruta", op.Text("Plantilla de la ruta; «-» si no existe.")),
		op.F("status", op.Integer("")),
		op.F("ms", &jsonschema.Schema{Type: "number", Minimum: new(float64), Description: "Milisegundos desde el último byte de la petición."}),
		op.F("bytes", op.Integer("Del cuerpo de la respuesta.")),
		op.F("cortada", op.Flag("Lo demás de una descarga no se envió: el cliente se fue o la descarga falló.")),
		op.F("costo", op.Money("Pesos cobrados.")),
		op.F("request_id", op.Text("")),
		op.F("renglones_perdidos", op.Integer("Accesos anteriores a este que no se pudieron guardar.")),
	)
}

// accesses reads a page of the access log.
func (c *Config) accesses(ctx context.Context, in op.Input) (op.Response, error) {
	page := accessPage{Days: c.AccessDays, To: civil.Of(c.Now()), Accesses: []access{}}
	today := page.To
	if text, ok := op.Get[string](in, "hasta"); ok {
		page.To, _ = civil.Parse(text) // its form was checked
	}
	if today.Before(page.To) {
		page.To = today
	}
	page.From = daysBefore(page.To, defaultDays-1)
	if text, ok := op.Get[string](in, "desde"); ok {
		if page.From, _ = civil.Parse(text); page.To.Before(page.From) {
			return op.Response{}, &op.InvalidError{Items: []op.Item{{
				Loc: []any{"query", "desde"}, Type: "value_error", Input: text,
				Msg: "«desde» es posterior a «hasta» (si falta, hoy): use un día anterior o igual",
			}}}
		}
	}
	if oldest := daysBefore(today, c.AccessDays-1); c.AccessDays > 0 && page.From.Before(oldest) {
		if page.To.Before(oldest) {
			page.From = page.To
			return op.JSON(page)
		}
		page.From = oldest
	}
	q := accesslog.Query{From: daysBefore(page.From, 1).End(), To: page.To.End()}
	q.Limit, _ = op.Get[int](in, "limite")
	q.Status, _ = op.Get[int](in, "status")
	if text, ok := op.Get[string](in, "cursor"); ok {
		if q.Before, ok = accesslog.ParseCursor(text); !ok {
			return op.Response{}, &op.InvalidError{Items: []op.Item{{
				Loc: []any{"query", "cursor"}, Type: "value_error", Input: text, Msg: "«cursor» no es el «siguiente» de ninguna respuesta; quítelo para empezar de nuevo",
			}}}
		}
	}
	names := map[string]*string{}
	if part, ok := op.Get[string](in, "org"); ok {
		var err error
		if q.Orgs, err = c.organizationsNamed(ctx, part); err != nil {
			return op.Response{}, err
		}
	}
	found, err := c.Access.Read(ctx, q)
	if err != nil {
		return op.Response{}, err
	}
	for i := range found.Entries {
		a, err := c.describe(&found.Entries[i], names)
		if err != nil {
			return op.Response{}, err
		}
		page.Accesses = append(page.Accesses, a)
	}
	page.Cut = found.Cut
	if found.Next != (accesslog.Cursor{}) {
		page.Next = ptr(found.Next.String())
	}
	return op.JSON(page)
}

// describe shows an entry. names are those of organizations met before.
func (c *Config) describe(e *accesslog.Entry, names map[string]*string) (access, error) {
	a := access{
		At: e.At.In(civil.Zone).Format("2006-01-02T15:04:05.000-07:00"), Method: e.Method, Route: e.Route, Status: e.Status,
		Millis: json.Number(strconv.FormatFloat(float64(e.Took)/float64(time.Millisecond), 'f', 3, 64)),
		Bytes:  e.Bytes, Cut: e.Cut, Cost: op.Pesos(e.Cost), RequestID: string(e.RequestID), Lost: e.Lost,
	}
	if e.Client.IsValid() {
		a.Client = ptr(e.Client.String())
	}
	if e.Key != "" {
		a.Key = ptr(e.Key)
	}
	if len(e.Org) == 0 {
		return a, nil
	}
	a.Org = &accessOrg{ID: string(e.Org)}
	name, known := names[a.Org.ID]
	if !known {
		found, err := c.organizationName(a.Org.ID)
		if err != nil {
			return a, err
		}
		name = found
		names[a.Org.ID] = name
	}
	a.Org.Name = name
	return a, nil
}

// organizationsNamed are the public ids of organizations with a part in their names,
// and of their twins for tests.
func (c *Config) organizationsNamed(ctx context.Context, part string) (map[string]bool, error) {
	named := map[string]bool{}
	all, err := c.Pipeline.Accounts.Accounts(ctx)
	for i := range all {
		orgs, err := c.Pipeline.Accounts.Organizations(all[i].ID)
		if err != nil {
			return nil, err
		}
		for _, o := range orgs {
			if strings.Contains(folded(o.Name), folded(part)) {
				named[accounts.FormatOrg(o.ID)], named[accounts.FormatOrg(o.ID.Twin())] = true, true
			}
		}
	}
	return named, err
}

// organizationName is nil for one that does not exist, or not any more.
func (c *Config) organizationName(text string) (*string, error) {
	var id ledger.OrgID
	id, err := accounts.ParseOrg(text)
	if err != nil {
		return nil, nil
	}
	o, err := c.Pipeline.Accounts.Organization(id)
	if errors.Is(err, accounts.ErrNotFound) {
		return nil, nil
	}
	return &o.Name, err
}

// daysBefore is the day that lies n days before d.
func daysBefore(d civil.Date, n int) civil.Date {
	return civil.Of(d.End().AddDate(0, 0, -n).Add(-time.Hour))
}

// folded is a name without accents and capitals.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(name))
}
