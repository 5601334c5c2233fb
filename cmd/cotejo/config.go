package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// settings lists everything that can be configured, with its default. A key
// that is not in this list is an error wherever it is written.
var settings = []struct{ key, def, doc string }{
	{"data", "cotejo-data", "carpeta de datos"},
	{"addr", "127.0.0.1:8080", "dirección en la que escucha el servicio"},
	{"mirror", "", "raíz desde la que se descargan las fuentes; vacía: los servidores oficiales"},
	{"pepper_file", "", "archivo con el secreto de las llaves; vacío: DATA/pepper, creado al primer arranque"},
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
	overlay := func(origin string, k *koanf.Koanf) error {
		for _, key := range k.Keys() {
			if !slices.ContainsFunc(settings, func(s struct{ key, def, doc string }) bool { return s.key == key }) {
				return fmt.Errorf("%s: no existe el ajuste «%s»%s", origin, key, nearest(key))
			}
			c.values[key], c.origins[key] = k.String(key), origin
		}
		return nil
	}
	for _, s := range settings {
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
		if err := overlay("archivo "+path, fromFile); err != nil {
			return c, err
		}
	}

	fromEnv := koanf.New(".")
	err := fromEnv.Load(env.Provider(".", env.Opt{
		Prefix:      "COTEJO_",
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			switch key := strings.ToLower(strings.TrimPrefix(name, "COTEJO_")); key {
			case "config", "lang", "shared", "kills", "crashes":
				return "", nil // not settings: the file's own name, language, test knobs
			default:
				return key, value
			}
		},
	}), nil)
	if err == nil {
		err = overlay("variable de entorno COTEJO_*", fromEnv)
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
	return c, overlay(originFlag, fromFlags)
}

// nearest suggests the setting that a mistyped key may have meant.
func nearest(key string) string {
	best, bestDistance := "", 3
	for _, s := range settings {
		if d := editDistance(key, s.key); d < bestDistance {
			best, bestDistance = s.key, d
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
	lines := make([]line, len(settings))
	for i, s := range settings {
		lines[i] = line{Key: s.key, Value: app.config.get(s.key), Doc: s.doc}
		if cmd.Origin {
			lines[i].Origin = app.config.origins[s.key]
		}
	}
	return app.print(lines, func() {
		for _, l := range lines {
			fmt.Fprintf(app.stdout, "%-12s %-24s", l.Key, l.Value)
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
