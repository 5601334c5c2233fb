package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cotejo/accesslog"
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

func TestSettingsOfASource(t *testing.T) {
	path := writeConfig(t, "jobs: off\nfuentes:\n  sat_69b:\n    proxy: http://usuario:secreto@proxy.test:3128\n")
	c, err := loadConfiguration(path, nil, nil)
	if err != nil || c.get("jobs") != "off" || c.access("sat_69b").Proxy != "http://usuario:secreto@proxy.test:3128" {
		t.Fatalf("%+v, %v", c.values, err)
	}
	// The variable's underscores are those of the id, and dots.
	c, err = loadConfiguration(path, nil, []string{"COTEJO_FUENTES_SAT_69B_PROXY=socks5://otro.test:1080", "COTEJO_JOBS=on"})
	if err != nil || c.get("jobs") != "on" || c.access("sat_69b").Proxy != "socks5://otro.test:1080" || c.access("sat_69b").CAFile != "" {
		t.Fatalf("%+v, %v", c.values, err)
	}
	if !strings.HasPrefix(c.origins["fuentes.sat_69b.proxy"], "variable") {
		t.Errorf("origen %q", c.origins["fuentes.sat_69b.proxy"])
	}

	shown := cotejo(t, 0, "config", "show", "--config", path)
	if !strings.Contains(shown, "fuentes.sat_69b.proxy") || strings.Contains(shown, "secreto@") || strings.Contains(shown, "ca_file") {
		t.Errorf("config show = %s", shown)
	}
	if shown := cotejo(t, 0, "config", "show"); strings.Contains(shown, "fuentes.") {
		t.Errorf("sin ajustes de fuentes, config show = %s", shown)
	}
}

func TestWrongValuesAreErrors(t *testing.T) {
	f := func(file, want string) {
		t.Helper()
		_, err := loadConfiguration(writeConfig(t, file), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secreto") {
			t.Fatalf("error = %v, se esperaba %q", err, want)
		}
	}
	f("jobs: true\n", "jobs es on u off, no «true»")
	f("data:\n", "data es una carpeta, no «»")
	f("data: [a, b]\n", "data es un solo valor")
	f("addr:\n", "addr es HOST:PUERTO")
	f("addr: 127.0.0.1:99999\n", "addr es HOST:PUERTO")
	f("metrics_addr: nada\n", "metrics_addr es HOST:PUERTO")
	f("mirror: nada\n", "mirror es una URL")
	f("mirror: ftp://secreto@espejo.test\n", "«ftp://xxxxx@espejo.test»")
	f("mirror: http://secreto@%zz\n", "«http://xxxxx@%zz»")
	f("mirror: secreto@espejo.test\n", "«xxxxx@espejo.test»")
	f("min_free: mucho\n", "min_free: «mucho»")
	f("shutdown_wait: 2\n", "shutdown_wait: «2»")
	f("limite_llave: 5000\n", "limite_llave: «5000» no es una tasa")
	f("limite_llave: 5/s,0\n", "limite_llave: «5/s,0»: la ráfaga")
	f("limite_direccion: nada\n", "limite_direccion: «nada»")
	f("trusted_proxies: 10.0.0.0/8,proxy.test\n", "trusted_proxies: «proxy.test»")
	f("trusted_proxies: 0.0.0.0/0\n", "trusted_proxies: «0.0.0.0/0» es cualquiera")
	f("trusted_proxies: ::/0\n", "trusted_proxies: «::/0» es cualquiera")
	f("trusted_proxies: ::ffff:10.0.0.0/104\n", "trusted_proxies: «::ffff:10.0.0.0/104»")
	f("trusted_proxies: fe80::1%eth0\n", "trusted_proxies: «fe80::1%eth0»")
	f("trusted_proxies: \""+strings.Repeat("10.0.0.1,", 65)+"\"\n", "más de 64 redes")
	f("accesos_dias: 0\n", "accesos_dias: «0»")
	f("accesos_dias: un año\n", "accesos_dias: «un año»")
	f("accesos_max: mucho\n", "accesos_max: «mucho»")
	f("fuentes:\n  sat_69b:\n    proxy: ftp://usuario:secreto@proxy.test\n", "fuentes.sat_69b.proxy")
	f("fuentes:\n  sat_69b:\n    ca_file: /no/existe.pem\n", "fuentes.sat_69b.ca_file")
	f("fuentes:\n  sat_69b:\n    proxi: x\n", "¿Quiso decir «fuentes.sat_69b.proxy»?")
	f("store: mysql://usuario:secreto@h/b\n", "no «mysql://xxxxx@h/b»")
	f("store: postgres://usuario:secreto@%zz/b\n", "no «xxxxx»")
	f("store: postgres:///b?password=secreto\n", "no «postgres://xxxxx@/b»")
	f("store: postgres://usuario:secreto@h/b\nstore_file: /x\n", "store y store_file")
	f("lease: 0.5s\n", "lease es de 1s a 5m")
	f("lease: 10\n", "lease: «10»")
	f("fuentes:\n  nada:\n    proxy: http://proxy.test:1\n", "«fuentes.nada.proxy»")
}

func TestSettingsOfCallers(t *testing.T) {
	c, err := loadConfiguration(writeConfig(t, "trusted_proxies: \"10.1.2.3/8, 192.0.2.7,2001:db8::/32\"\naccesos_max: 0\nlimite_direccion: 0\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	proxies, err := c.trustedProxies()
	if got := fmt.Sprint(proxies); err != nil || got != "[10.0.0.0/8 192.0.2.7/32 2001:db8::/32]" {
		t.Errorf("trusted_proxies = %s, %v", got, err)
	}
	if keep, err := c.keepAccesses(); err != nil || keep != (accesslog.Keep{Days: 365}) {
		t.Errorf("%+v, %v", keep, err)
	}
	throttle, err := c.throttle()
	if err != nil || throttle.Addresses != nil || throttle.Guesses == nil {
		t.Fatalf("%+v, %v", throttle, err)
	}
	if r := throttle.Keys.Rate(); r.N != 5000 || r.Burst != 10000 {
		t.Errorf("limite_llave = %+v", r)
	}
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
	f("addr: x\n", []string{"COTEJO_DATOS=x"}, "variable de entorno COTEJO_DATOS: no existe el ajuste «datos»")
	f("", []string{"COTEJO_FUENTES_SAT69B_PROXY=x"}, "¿Quiso decir «fuentes.sat_69b.proxy»?")
	f("", []string{"COTEJO_DATA="}, "variable de entorno COTEJO_DATA: data es una carpeta")
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
