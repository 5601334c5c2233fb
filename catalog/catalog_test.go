package catalog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cotejo/checks"
	"cotejo/civil"
)

func day(s string) civil.Date {
	d, err := civil.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// now is a day after every version but the series' own.
var now = day("2026-11-20")

// TestVersions pins what the binary carries: a changed file is a changed line here.
func TestVersions(t *testing.T) {
	f := func(v *Version, id, date string, rows int, sha string) {
		t.Helper()
		if v.ID != id || v.Date.String() != date || v.Rows != rows || v.SHA256 != sha {
			t.Errorf("%s %s: %d renglones, %s\nse esperaba %s %s: %d renglones, %s", v.ID, v.Date, v.Rows, v.SHA256, id, date, rows, sha)
		}
		if v.Source == "" || v.URL == "" || v.Retrieved == "" || v.License == "" || v.Coverage == "" {
			t.Errorf("%s no dice de dónde viene: %+v", v.ID, v)
		}
	}
	all := Embedded().Versions()
	if len(all) != 8 {
		t.Fatalf("hay %d catálogos, se esperaban 8", len(all))
	}
	f(all[0], "bancos", "2026-03-25", 148, "93b572ed9017392d5103b5984ee867ea77679c62ba9590ab2c9ed6dfa49b1d1a")
	f(all[1], "banxico_fix", "2025-11-25", 8556, "be4369d9010c0847a71e386159591077129f88b8dced1c1e418a148c4da66a39")
	f(all[2], "clabe_plazas", "2026-02-27", 884, "f1ae028ca7e0c0bfb8741260dd3a51c23994f7ae0a978f49e4d95564993cd861")
	f(all[3], "cp_prefijos", "2026-08-06", 32, "c794c157fb25f758f0ca6210c34648bc08e7103ad54b6de89a56dce67eaa3c25")
	f(all[4], "sat_forma_pago", "2026-08-06", 22, "58517500b7dcbb2928f381648c9f1c54da77927cc2fd57be304a9ea829d4c4f0")
	f(all[5], "sat_regimen", "2026-08-06", 19, "3d5ff67faa365df21cc699048463abb4606bc341c6176de99af7e1110b202049")
	f(all[6], "sat_uso_cfdi", "2026-08-06", 24, "aed2787f88a2f9fd88003f920f0989713dd06ddc21a9c7f49da305d67135b28e")
	f(all[7], "telefono_nir", "2026-07-17", 420, "6a1a2380b128e82e11c08286140ea9ab43cada6127c7a811dd8c29dd519c970b")
}

func TestHashIsThatOfTheUnpackedFile(t *testing.T) {
	entries, err := files.ReadDir("data")
	if err != nil || len(entries) != 8 {
		t.Fatalf("%d archivos: %v", len(entries), err)
	}
	want := map[string]bool{}
	for _, v := range Embedded().Versions() {
		want[v.SHA256] = true
	}
	for _, e := range entries {
		data, err := files.ReadFile("data/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(e.Name(), ".gz") {
			if data, err = Unpack(data); err != nil {
				t.Fatal(err)
			}
		}
		sum := sha256.Sum256(data)
		if !want[hex.EncodeToString(sum[:])] {
			t.Errorf("el SHA-256 de %s no está entre las versiones", e.Name())
		}
	}
}

// TestEmbeddedIsSmall: the binary carries tables, not archives.
func TestEmbeddedIsSmall(t *testing.T) {
	total := 0
	entries, _ := files.ReadDir("data")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		total += int(info.Size())
	}
	if total > 120_000 {
		t.Errorf("los catálogos ocupan %d bytes", total)
	}
}

func TestFileFormat(t *testing.T) {
	columns := []string{"a", "b"}
	const head = "# id: x\n# fuente: y\n# version: 2026-01-02\n"
	f := func(data, want string) {
		t.Helper()
		n := 0
		v, err := ReadFile([]byte(data), "x", columns, func(f []string) error { n++; return nil })
		if want == "" {
			if err != nil || v.Rows != n || n == 0 {
				t.Errorf("%q: %v, %d de %d renglones", data, err, v.Rows, n)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, se esperaba %q", data, err, want)
		}
	}
	f(head+"a,b\n1,2\n", "")
	f(head+"# cobertura: todo\na,b\n1,\"2,3\"\n4,\n", "")
	f(head+"a,b\n", "no tiene renglones")
	f(head+"a,c\n1,2\n", "se esperaban")
	f(head+"a,b\n1,2,3\n", "wrong number of fields")
	f(head+"a,b\n1,\"2\n", "quote")
	f(head+"a,b\r\n1,2\r\n", "LF")
	f(head+"a,b\n1,\xff\n", "UTF-8")
	f("\ufeff"+head+"a,b\n1,2\n", "faltan")
	f("# id: z\n# fuente: y\n# version: 2026-01-02\na,b\n1,2\n", `es del catálogo "z"`)
	f("# id: x\n# version: 2026-01-02\na,b\n1,2\n", "faltan")
	f("# id: x\n# fuente: y\n# version: 2026-02-30\na,b\n1,2\n", "2026-02-30")
	f(head+"# id: x\na,b\n1,2\n", "escrito una vez")
	f(head+"# otra: x\na,b\n1,2\n", "nombre conocido")
	f(head+"a,b\n1,"+strings.Repeat("x", maxField+1)+"\n", "el máximo es 1024")
	f(head+"a,b\n"+strings.Repeat("1,2\n", maxRows+1), "más de 250000")
	f(strings.Repeat("x", maxFile+1), "el máximo es")
	f("", "faltan")
}

func TestUnpackIsBounded(t *testing.T) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(make([]byte, maxFile+1))
	w.Close()
	if _, err := Unpack(b.Bytes()); err == nil || !strings.Contains(err.Error(), "más de") {
		t.Errorf("una bomba de %d bytes: %v", b.Len(), err)
	}
	if _, err := Unpack([]byte("no es gzip")); err == nil {
		t.Error("se aceptó lo que no es gzip")
	}
}

func TestKeysAscendAndAreWellFormed(t *testing.T) {
	const head = "# id: sat_regimen\n# fuente: y\n# version: 2026-01-02\nclave,texto,fisica,moral,desde,hasta\n"
	f := func(rows, want string) {
		t.Helper()
		_, err := ReadRegimes([]byte(head + rows))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, se esperaba %q", rows, err, want)
		}
	}
	f("601,A,,1,2022-01-01,\n601,B,,1,2022-01-01,\n", "una sola vez")
	f("603,A,,1,2022-01-01,\n601,B,,1,2022-01-01,\n", "no sigue")
	f("1,A,,1,2022-01-01,\n", "3 dígitos")
	f("601,A,x,1,2022-01-01,\n", "no es 1 ni vacío")
	f("601,A,,1,,\n", "inicio de la vigencia")
	f("601,,,1,2022-01-01,\n", "falta el texto")
	f("601,A,,1,2022-01-02,2022-01-01\n", "sin haber empezado")
}

func TestValidityIncludesBothDays(t *testing.T) {
	f := func(from, to, on string, want Standing) {
		t.Helper()
		v, err := validity(from, to)
		if err != nil {
			t.Fatal(err)
		}
		if got := v.On(day(on)); got != want {
			t.Errorf("[%s, %s] el %s: %d, se esperaba %d", from, to, on, got, want)
		}
	}
	f("2022-01-01", "2023-06-30", "2021-12-31", NotYet)
	f("2022-01-01", "2023-06-30", "2022-01-01", InForce)
	f("2022-01-01", "2023-06-30", "2023-06-30", InForce)
	f("2022-01-01", "2023-06-30", "2023-07-01", Ended)
	f("2022-01-01", "", "9999-12-31", InForce)
	f("", "", "2022-01-01", Unknown)
}

func TestVigente(t *testing.T) {
	f := func(s Standing, vigente, known bool) {
		t.Helper()
		if v, k := s.Vigente(); v != vigente || k != known {
			t.Errorf("%d: %v, %v", s, v, k)
		}
	}
	f(Unknown, false, false)
	f(NotYet, false, true)
	f(InForce, true, true)
	f(Ended, false, true)
}

// problem asserts that an error is a *checks.Problem whose rule says want.
func problem(t *testing.T, err error, kind, want string) {
	t.Helper()
	var p *checks.Problem
	if !errors.As(err, &p) || p.Type != kind || !strings.Contains(p.Rule, want) {
		t.Errorf("%v (%T), se esperaba %s: …%s…", err, err, kind, want)
	}
}

// missing asserts that an error says that a key is in no row.
func missing(t *testing.T, err error, key string) {
	t.Helper()
	var e *NotFoundError
	if !errors.Is(err, ErrNotFound) || !errors.As(err, &e) || e.Key != key || e.Version.SHA256 == "" {
		t.Errorf("%v (%T), se esperaba que faltara %s", err, err, key)
	}
}

// shared reads an official table beside the repository, or skips.
func shared(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	dir := os.Getenv("COTEJO_SHARED")
	if dir == "" {
		dir = "../../shared"
	}
	data, err := os.ReadFile(filepath.Join(dir, "data", "catalogs", name))
	if err != nil {
		t.Skipf("sin archivos de referencia: %v", err)
	}
	if strings.HasSuffix(name, ".gz") {
		if data, err = Unpack(data); err != nil {
			t.Fatal(err)
		}
	}
	all, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = f[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func FuzzReadFile(f *testing.F) {
	for _, name := range []string{"regimen.csv", "uso_cfdi.csv", "forma_pago.csv", "cp_prefijos.csv"} {
		data, err := files.ReadFile("data/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("# id: bancos\n# fuente: y\n# version: 2026-01-02\nclave,clave_spei,nombre_spei,en_spei,sat_nombre,sat_razon_social,sat_desde,sat_hasta,cambio,nombre_comunidad\n001,02001,Banxico,1,,,,,,\n"))
	f.Add([]byte("# id: telefono_nir\n# fuente: y\n# version: 2026-01-02\nnir,clase,zona\n33,geografica,x\n"))
	f.Add([]byte("# id: clabe_plazas\n# fuente: y\n# version: 2026-01-02\nplaza,poblacion,estado\n027,Tecate,MX-BCN\n"))
	f.Add([]byte("# id: banxico_fix\n# fuente: y\n# version: 2026-01-02\nfecha_determinacion,fix_mxn_por_usd\n2026-01-02,18.1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := ReadBanks(data); err == nil {
			for code := range b.All {
				if a, err := b.On(code, now); err != nil || a.Row.Code != code {
					t.Fatalf("%q: %v", code, err)
				}
			}
		}
		if r, err := ReadRegimes(data); err == nil {
			for key := range r.All {
				if a, err := r.On(key, now); err != nil || a.Standing == Unknown {
					t.Fatalf("%q: %v", key, err)
				}
			}
		}
		if u, err := ReadUses(data); err == nil {
			for _, use := range u.All {
				for _, regime := range use.Regimes {
					if !use.AdmitsRegime(regime) {
						t.Fatalf("%q no admite %q", use.Key, regime)
					}
				}
			}
		}
		_, _ = ReadPaymentForms(data)
		if p, err := ReadPhones(data); err == nil {
			for code := range p.All {
				if a, err := p.On((code + "5555555555")[:10], now); err != nil || a.Row.Area.Code != code {
					t.Fatalf("%q: %v", code, err)
				}
			}
		}
		if p, err := ReadPlazas(data); err == nil {
			for _, plaza := range p.All {
				if len(plaza.Towns) == 0 {
					t.Fatalf("%q sin poblaciones", plaza.Code)
				}
			}
		}
		_, _ = ReadPostal(data)
		if s, err := ReadSeries(data); err == nil {
			last := s.Last()
			if got, err := s.At(Payment, last.Payable, now); err != nil || got.Rate != last.Rate {
				t.Fatalf("último dato: %v %v", got, err)
			}
		}
	})
}
