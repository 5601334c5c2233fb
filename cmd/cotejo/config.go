package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"cotejo/ingest"
	"cotejo/operation"
	"cotejo/store"
)

// setting is one thing that can be configured.
type setting struct{ key, def, doc string }

// settings lists everything that can be configured, with its default. A key
// that is neither here nor in sourceSettings is an error wherever it is written.
var settings = []setting{
	{"data", "cotejo-data", "carpeta de datos"},
	{"addr", "127.0.0.1:8080", "dirección en la que escucha el servicio"},
	{"mirror", "", "raíz desde la que se descargan las fuentes; vacía: los servidores oficiales"},
	{"pepper_file", "", "archivo con el secreto de las llaves; vacío: DATA/pepper, creado al primer arranque"},
	{"banxico_token_file", "", "archivo con el token del SIE de Banco de México, para el FIX; vacío: se responde la serie incluida"},
	{"anchor", "", "archivo que recuerda hasta dónde llegan las cuentas, mejor en otro disco; vacío: DATA/ancla.json"},
	{"min_free", "auto", "espacio libre bajo el cual no se acepta nada con costo: 2GiB, 500MB; auto: 5 % del disco, de 1 a 16 GiB; 0: sin límite"},
	{"store", "", "base de datos PostgreSQL de las cuentas: postgres://usuario@servidor:5432/base; vacía: en la carpeta de datos. Con contraseña, mejor store_file"},
	{"store_file", "", "archivo con esa dirección, que solo lee su dueño (chmod 600)"},
	{"lease", "10s", "con store: cuánto conserva un nodo las cuentas sin renovar su turno; después las toma otro"},
	{"node", "", "con store: nombre de este nodo; vacío: el de la máquina"},
	{"node_url", "", "con store: dirección en que los demás alcanzan este nodo; vacía: http:// y addr"},
	{"metrics_addr", "127.0.0.1:9180", "dirección de GET /metrics, nunca la pública; vacía: sin métricas"},
	{"shutdown_wait", "2s", "cuánto se sigue atendiendo al cerrar, ya como no listo, para que el balanceador se entere"},
	{"jobs", "on", "tareas programadas de «cotejo serve»: on, off"},
	{"limite_llave", operation.DefaultKeyRate, "peticiones de una llave: N/s o N/s,RÁFAGA; 0: sin límite"},
	{"limite_direccion", operation.DefaultAddressRate, "peticiones sin llave válida, o que registran cuentas, de una red (IPv4, o /64 de IPv6): N/s o N/s,RÁFAGA; 0: sin límite"},
	{"trusted_proxies", "", "redes de los proxies cuyo X-Forwarded-For o Forwarded se cree: 10.0.0.0/8,192.0.2.7; vacía: ninguno"},
	{"accesos_dias", "365", "días que se conserva el registro de accesos"},
	{"accesos_max", "4GiB", "tamaño máximo del registro de accesos; 0: sin límite"},
	{"smtp_addr", "", "servidor de correo, HOST:PUERTO; vacío: no se manda correo y los códigos de registro los da el operador"},
	{"smtp_from", "", "dirección que firma los correos"},
	{"smtp_user", "", "cuenta en el servidor de correo; vacía: sin autenticarse"},
	{"smtp_password_file", "", "archivo con la contraseña de smtp_user, modo 0600"},
	{"smtp_tls", "starttls", "cifrado hacia el servidor de correo: starttls (obligatorio), implicit (puerto 465), none (solo a esta máquina)"},
}

// sourceSettings lists what can be configured of each source. They are shown
// only when they are set.
var sourceSettings = func() (all []setting) {
	for _, id := range ingest.Sources() {
		all = append(all,
			setting{"fuentes." + id + ".proxy", "", "proxy para descargar " + id},
			setting{"fuentes." + id + ".ca_file", "", "archivo PEM con autoridades o certificados intermedios que además valen para " + id})
		if s, _ := ingest.Lookup(id); s.NeedsURL() {
			all = append(all, setting{"fuentes." + id + ".url", "", "dirección del archivo de " + id + ", que no tiene una fija"})
		}
	}
	return all
}()

// knownSetting finds a setting by its key.
func knownSetting(key string) (setting, bool) {
	for _, s := range slices.Concat(settings, sourceSettings) {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// variable is the name of the variable that sets a key.
func variable(key string) string {
	return "COTEJO_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// settingOfVariable is the key that a variable's name, without its prefix and in
// lower case, sets: the dots of a key are underscores there, as those inside it.
func settingOfVariable(name string) string {
	for _, s := range sourceSettings {
		if variable(s.key) == "COTEJO_"+strings.ToUpper(name) {
			return s.key
		}
	}
	return name
}

// originDefault marks a value that nobody set, originFlag one of this command.
const (
	originDefault = "valor por omisión"
	originFlag    = "opción de la línea de comandos"
)

// defaultConfigFile is read when it exists and no other was named.
const defaultConfigFile = "/etc/cotejo/cotejo.yaml"

// configuration holds each setting's value and where it came from.
type configuration struct {
	values, origins map[string]string
}

func (c configuration) get(key string) string { return c.values[key] }

// loadConfiguration joins the layers: flag over COTEJO_* over file over
// default. flags holds only those that were given. environ is os.Environ().
func loadConfiguration(path string, flags map[string]string, environ []string) (configuration, error) {
	c := configuration{map[string]string{}, map[string]string{}}
	overlay := func(originOf func(key string) string, k *koanf.Koanf) error {
		for _, key := range k.Keys() {
			origin := originOf(key)
			if _, ok := knownSetting(key); !ok {
				return fmt.Errorf("%s: no existe el ajuste «%s»%s", origin, key, nearest(key))
			}
			if _, many := k.Get(key).([]any); many {
				return fmt.Errorf("%s: %s es un solo valor, no una lista", origin, key)
			}
			c.values[key], c.origins[key] = k.String(key), origin
		}
		return nil
	}
	for _, s := range slices.Concat(settings, sourceSettings) {
		c.values[s.key], c.origins[s.key] = s.def, originDefault
	}

	named := path != ""
	if !named {
		path = defaultConfigFile
	}
	fromFile := koanf.New(".")
	switch err := fromFile.Load(file.Provider(path), yaml.Parser()); {
	case errors.Is(err, fs.ErrNotExist) && !named:
	case err != nil:
		return c, fmt.Errorf("no se pudo leer la configuración %s: %w", path, err)
	default:
		if err := overlay(func(string) string { return "archivo " + path }, fromFile); err != nil {
			return c, err
		}
	}

	fromEnv := koanf.New(".")
	err := fromEnv.Load(env.Provider(".", env.Opt{
		Prefix:      "COTEJO_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			switch key := strings.ToLower(strings.TrimPrefix(name, "COTEJO_")); key {
			case "config", "key", "url", "lang", "shared", "kills", "crashes",
				"postgres", "postgres_bin", "cuts", "fault_seconds", "pg_stops":
				return "", nil // not settings: the file's own name, what «cotejo lote» reads, language, test knobs
			default:
				return settingOfVariable(key), value
			}
		},
	}), nil)
	if err == nil {
		err = overlay(func(key string) string { return "variable de entorno " + variable(key) }, fromEnv)
	}
	if err != nil {
		return c, err
	}

	given := map[string]any{}
	for key, value := range flags {
		given[key] = value
	}
	fromFlags := koanf.New(".")
	if err := fromFlags.Load(confmap.Provider(given, "."), nil); err != nil {
		return c, err
	}
	if err := overlay(func(string) string { return originFlag }, fromFlags); err != nil {
		return c, err
	}
	return c, c.check()
}

// check refuses values that would only be found wrong while the service runs. An
// empty address would listen everywhere, an empty directory be the current one.
func (c configuration) check() error {
	wrong := func(key, want string) error {
		return fmt.Errorf("%s: %s es %s, no «%s»", c.origins[key], key, want, c.displayed(key))
	}
	if c.get("data") == "" {
		return wrong("data", "una carpeta")
	}
	if !isAddress(c.get("addr")) {
		return wrong("addr", "HOST:PUERTO, como 127.0.0.1:8080")
	}
	if v := c.get("metrics_addr"); v != "" && !isAddress(v) {
		return wrong("metrics_addr", "HOST:PUERTO, como 127.0.0.1:9180, o vacía")
	}
	if v := c.get("mirror"); v != "" {
		if u, err := url.Parse(v); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return wrong("mirror", "una URL http:// o https://, o vacía")
		}
	}
	if v := c.get("store"); v != "" {
		if _, err := store.ParsePostgresURL(v); err != nil {
			return wrong("store", "postgres://usuario@servidor:5432/base, o vacía")
		}
		if c.get("store_file") != "" {
			return fmt.Errorf("%s: store y store_file dicen lo mismo: deje uno", c.origins["store"])
		}
	}
	if d, err := c.duration("lease"); err != nil {
		return fmt.Errorf("%s: %w", c.origins["lease"], err)
	} else if d != 0 && (d < time.Second || d > 5*time.Minute) {
		return wrong("lease", "de 1s a 5m")
	}
	if v := c.get("jobs"); v != "on" && v != "off" {
		return wrong("jobs", "on u off")
	}
	if _, err := c.minFree(); err != nil {
		return fmt.Errorf("%s: %w", c.origins["min_free"], err)
	}
	if _, err := c.duration("shutdown_wait"); err != nil {
		return fmt.Errorf("%s: %w", c.origins["shutdown_wait"], err)
	}
	for _, s := range []struct {
		key   string
		check func() error
	}{
		{"limite_llave", func() error { _, err := c.rate("limite_llave"); return err }},
		{"limite_direccion", func() error { _, err := c.rate("limite_direccion"); return err }},
		{"trusted_proxies", func() error { _, err := c.trustedProxies(); return err }},
		{"accesos_dias", func() error { _, err := c.accessDays(); return err }},
		{"accesos_max", func() error { _, err := c.accessBytes(); return err }},
	} {
		if err := s.check(); err != nil {
			return fmt.Errorf("%s: %w", c.origins[s.key], err)
		}
	}
	for _, id := range ingest.Sources() {
		if err := c.access(id).Check(id); err != nil {
			return err
		}
	}
	return c.checkMail()
}

// isAddress reports whether a service can be asked to listen there: a port, and a
// host or none.
func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// displayed is a value as it may be printed: an URL, well-formed or not, without
// its user and password, either of which may be a secret.
func (c configuration) displayed(key string) string {
	value := c.get(key)
	if key == "store" {
		return displayedStore(value)
	}
	end := strings.LastIndexByte(value, '@')
	if key != "mirror" && !strings.HasSuffix(key, ".proxy") && !strings.HasSuffix(key, ".url") || end < 0 {
		return value
	}
	scheme, _, ok := strings.Cut(value, "://")
	if !ok {
		return "xxxxx" + value[end:]
	}
	return scheme + "://xxxxx" + value[end:]
}

// displayedStore is the address of a database without anything that may be a
// secret: user, password and parameters.
func displayedStore(value string) string {
	if value == "" {
		return ""
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" {
		return "xxxxx"
	}
	return u.Scheme + "://xxxxx@" + u.Host + u.EscapedPath()
}

// storeURL is the address of the database of the accounts, "" when they are in the
// data directory.
func (c configuration) storeURL() (string, error) {
	path := c.get("store_file")
	if path == "" {
		return c.get("store"), nil
	}
	text, err := ownersFile(path)
	if err != nil {
		return "", fmt.Errorf("store_file: %w", err)
	}
	value := strings.TrimSpace(string(text))
	if _, err := store.ParsePostgresURL(value); err != nil {
		return "", exitWith(exitConfig, "%s no contiene una dirección como postgres://usuario:contraseña@servidor:5432/base", path)
	}
	return value, nil
}

// access is how the server of a source is reached.
func (c configuration) access(source string) ingest.Access {
	a := ingest.Access{
		Proxy: c.get("fuentes." + source + ".proxy"), CAFile: c.get("fuentes." + source + ".ca_file"), URL: c.get("fuentes." + source + ".url"),
	}
	if s, _ := ingest.Lookup(source); s.NeedsToken() {
		a.TokenFile = c.get("banxico_token_file")
	}
	return a
}

// lacks says what has to be configured before a source can be downloaded; "" when
// nothing is.
func (c configuration) lacks(source string) string {
	s, ok := ingest.Lookup(source)
	if !ok || c.get("mirror") != "" {
		return ""
	}
	return s.Lacks(c.access(source))
}

// nearest suggests the setting that a mistyped key may have meant.
func nearest(key string) string {
	best, bestDistance := "", 3
	for _, s := range slices.Concat(settings, sourceSettings) {
		for _, written := range []string{s.key, strings.ReplaceAll(s.key, ".", "_")} { // in a file, in a variable
			if d := editDistance(key, written); d < bestDistance {
				best, bestDistance = s.key, d
			}
		}
	}
	if best == "" {
		return "; vea «cotejo config show»"
	}
	return fmt.Sprintf(". ¿Quiso decir «%s»?", best)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

type configShow struct {
	Origin bool `help:"Dice de dónde viene cada valor."`
}

func (cmd *configShow) Run(app *app) error {
	type line struct {
		Key    string `json:"ajuste"`
		Value  string `json:"valor"`
		Origin string `json:"origen,omitempty"`
		Doc    string `json:"descripcion"`
	}
	shown := slices.Clone(settings)
	for _, s := range sourceSettings {
		if app.config.get(s.key) != "" {
			shown = append(shown, s)
		}
	}
	lines := make([]line, len(shown))
	for i, s := range shown {
		lines[i] = line{Key: s.key, Value: app.config.displayed(s.key), Doc: s.doc}
		if cmd.Origin {
			lines[i].Origin = app.config.origins[s.key]
		}
	}
	return app.print(lines, func() {
		for _, l := range lines {
			fmt.Fprintf(app.stdout, "%-16s %-24s", l.Key, l.Value)
			if cmd.Origin {
				fmt.Fprintf(app.stdout, "  (%s)", l.Origin)
			}
			fmt.Fprintf(app.stdout, "  # %s\n", l.Doc)
		}
	})
}

// cleanEnvironment leaves out what would configure a child of this program.
func cleanEnvironment(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, "COTEJO_") })
}

// environment is the process environment; a test replaces it.
var environment = os.Environ
