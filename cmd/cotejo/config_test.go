package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cotejo.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLayersOfTheConfiguration(t *testing.T) {
	path := writeConfig(t, "addr: archivo:1\ndata: /archivo\nmirror: https://archivo.test\n")
	c, err := loadConfiguration(path, map[string]string{"addr": "opcion:1"}, []string{"COTEJO_ADDR=entorno:1", "COTEJO_DATA=/entorno", "OTRA=x"})
	if err != nil {
		t.Fatal(err)
	}
	f := func(key, value, origin string) {
		t.Helper()
		if c.get(key) != value || !strings.HasPrefix(c.origins[key], origin) {
			t.Fatalf("%s = %q de %q; se esperaba %q de %q", key, c.get(key), c.origins[key], value, origin)
		}
	}
	f("addr", "opcion:1", "opción")
	f("data", "/entorno", "variable")
	f("mirror", "https://archivo.test", "archivo")
	f("pepper_file", "", originDefault)
}

func TestUnknownSettingsAreErrors(t *testing.T) {
	f := func(file string, environ []string, want string) {
		t.Helper()
		path := writeConfig(t, file)
		_, err := loadConfiguration(path, nil, environ)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("error = %v, se esperaba %q", err, want)
		}
	}
	f("adr: x\n", nil, "¿Quiso decir «addr»?")
	f("addr: x\n", []string{"COTEJO_DATOS=x"}, "«datos»")
	f("a: [", nil, "no se pudo leer")
}

func TestANamedFileMustExist(t *testing.T) {
	if _, err := loadConfiguration(filepath.Join(t.TempDir(), "no.yaml"), nil, nil); err == nil {
		t.Fatal("se aceptó un archivo de configuración que no existe")
	}
}

func TestPesosAreExact(t *testing.T) {
	f := func(in string, want int64) {
		t.Helper()
		got, err := parsePesos(in)
		if (err == nil) != (want > 0) || err == nil && got != want {
			t.Fatalf("parsePesos(%q) = %d, %v; se esperaba %d", in, got, err, want)
		}
	}
	f("500", 500_00)
	f("500.5", 500_50)
	f("0.01", 1)
	f("90071992547409.93", 9007199254740993)
	f("0", 0)
	f("-1", 0)
	f("1.001", 0)
	f("1e3", 0)
	f("1.", 0)
	f("", 0)
	f("99999999999999999999", 0)
	if got := pesos(-5); got != "-0.05" {
		t.Fatalf("pesos(-5) = %s", got)
	}
}
