package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cotejo/accounts"
	"cotejo/admin"
	"cotejo/ingest"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

// TestMain lets the test binary stand in for the program, so that tests can
// start it as a process of its own and kill it.
func TestMain(m *testing.M) {
	if os.Getenv("COTEJO_TEST_CHILD") != "" {
		os.Unsetenv("COTEJO_TEST_CHILD")
		main()
	}
	environment = func() []string { return quiet }
	os.Exit(m.Run())
}

// quiet takes away what the tests of one machine would get in each other's way
// with: its free space, a fixed port, a wait for a balancer that is not there,
// scheduled work that would ask the official servers, a limit for one key.
var quiet = []string{"COTEJO_LIMITE_LLAVE=0", "COTEJO_JOBS=off", "COTEJO_MIN_FREE=0", "COTEJO_METRICS_ADDR=", "COTEJO_SHUTDOWN_WAIT=0s"}

// program returns a command that runs this program in a process of its own,
// with its defaults but for quiet.
func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	// The race detector would sleep a second at its end.
	cmd.Env = append(append(cleanEnvironment(os.Environ()), quiet...), "COTEJO_TEST_CHILD=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// cotejo runs a command line in this process and returns what it prints.
func cotejo(t *testing.T, wantCode int, args ...string) (stdout string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), args, &out, &errOut); code != wantCode {
		t.Fatalf("cotejo %s: código %d, se esperaba %d\n%s%s", strings.Join(args, " "), code, wantCode, &out, &errOut)
	}
	return out.String()
}

func cotejoJSON[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	out := cotejo(t, 0, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("cotejo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return v
}

// newData names a data directory that is not there yet.
func newData(t *testing.T) string { return t.TempDir() + "/datos" }

// loadedData returns a data directory that holds a stage of the mirror.
func loadedData(t *testing.T, stage int) string {
	t.Helper()
	data := newData(t)
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, stage), "--data", data)
	return data
}

// failing runs a command line that must fail and returns what it says.
func failing(t *testing.T, wantCode int, args ...string) (stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := run(t.Context(), args, &out, &errOut); code != wantCode {
		t.Fatalf("cotejo %s: código %d, se esperaba %d\n%s%s", strings.Join(args, " "), code, wantCode, &out, &errOut)
	}
	return errOut.String()
}

// stageFile writes one stage of the bundled mirror to a file.
func stageFile(t *testing.T, stage int) string {
	t.Helper()
	path := t.TempDir() + "/Listado_completo_69-B.csv"
	if err := os.WriteFile(path, mirrorFile(t, stage), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Older files make the edition that loading them in time would have made.
func TestIngestHistory(t *testing.T) {
	ordered, data := newData(t), loadedData(t, 2)
	want := ""
	for stage := range 3 {
		want = cotejoJSON[[]ingestReply](t, "ingest", "--file", "sat_69b="+stageFile(t, stage), "--data", ordered)[0].Edition
	}
	r := cotejoJSON[[]ingestReply](t, "ingest", "--history", "--file", "sat_69b="+stageFile(t, 1), "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	if len(r) != 2 || r[0].Past != 2 || r[1].Past != 3 || r[1].Result != "activada" || r[1].Edition != want {
		t.Fatalf("ingest --history = %+v, want edition %s", r, want)
	}
	if out := cotejo(t, 0, "ingest", "--history", "--file", "sat_69b="+stageFile(t, 0), "--data", data); !strings.Contains(out, "sin cambio") {
		t.Errorf("again: %s", out)
	}
	cotejo(t, 0, "verify", "all", "--data", data)

	if says := failing(t, exitUsage, "ingest", "--history", "--file", "sat_69b="+stageFile(t, 3), "--data", data); !strings.Contains(says, "sin --history") {
		t.Errorf("a newer file: %s", says)
	}
	failing(t, exitUsage, "ingest", "--history", "--data", data)
	failing(t, exitUsage, "ingest", "--history", "sat_69b", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	failing(t, exitUsage, "ingest", "--history", "--corte", "2020-01-01", "--file", "sat_69b="+stageFile(t, 0), "--file", "sat_69b="+stageFile(t, 1), "--data", data)
}

// What was rejected by hand is no alarm.
// TestIngestOfSeveralSources: one that fails keeps no other from its turn.
func TestIngestOfSeveralSources(t *testing.T) {
	data := newData(t)
	var out, errOut bytes.Buffer
	code := run(t.Context(), []string{"ingest", "--data", data,
		"--file", "sat_69b=" + writeConfig(t, ""), "--file", "sat_69b=/dev/null", "--file", "sat_69b=" + stageFile(t, 0)}, &out, &errOut)
	if code != exitFailed || !strings.Contains(out.String(), "✓ versión 2") || !strings.Contains(errOut.String(), "/dev/null no es un archivo") {
		t.Errorf("%d\n%s%s", code, &out, &errOut)
	}
}

func TestIngestOfARejectedFile(t *testing.T) {
	data := loadedData(t, 1)
	old := "sat_69b=" + stageFile(t, 0)
	cotejo(t, exitPartial, "ingest", "--file", old, "--data", data)
	c, err := snapshots.OpenCatalogue(filepath.Join(data, dirSources))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Reject(c, 2, "Ana Ruiz", "es la lista anterior", now()); err != nil {
		t.Fatal(err)
	}
	if out := cotejo(t, 0, "ingest", "--file", old, "--data", data); !strings.Contains(out, "versión 2, que rechazó Ana Ruiz") {
		t.Error(out)
	}
	if r := cotejoJSON[[]ingestReply](t, "ingest", "--file", old, "--data", data); r[0].Result != "cuarentena" || r[0].Rejected != "Ana Ruiz" || len(r[0].Faults) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestANewcomerWithoutServer(t *testing.T) {
	data := newData(t)
	cotejo(t, exitNotFound, "check", "EFO010101AA1", "--data", data)
	for stage := range 2 {
		r := cotejoJSON[[]ingestReply](t, "ingest", "--file", "sat_69b="+stageFile(t, stage), "--data", data)
		if len(r) != 1 || r[0].Version != stage+1 || r[0].Edition == "" || r[0].Rows == 0 {
			t.Fatalf("ingest = %+v", r)
		}
	}
	if r := cotejoJSON[[]ingestReply](t, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data); r[0].Result != "sin_cambio" {
		t.Fatalf("segunda vez = %+v", r)
	}
	if out := cotejo(t, 0, "check", "efo010101aa1", "--data", data); !strings.Contains(out, "Aparece: ") {
		t.Fatalf("check = %s", out)
	}
	if out := cotejo(t, 0, "check", "ZZZ010101AA1", "--data", data); !strings.Contains(out, "No aparece en esta versión") {
		t.Fatalf("check = %s", out)
	}
	cotejo(t, 0, "doctor", "--data", data)
	cotejo(t, exitUsage, "check", "EFO0101AA1", "--data", data)
	cotejo(t, exitUsage, "check", "XAXX010101000", "--data", data)
	cotejo(t, exitUsage, "ingest", "sat_69bb", "--data", data)
	cotejo(t, exitUsage, "ingest", "--file", "sat_69b=/no/existe", "--data", data)
	cotejo(t, exitUsage, "ingest", "--corte", "2026-02-30", "--data", data)
	cotejo(t, exitUsage, "nada")
	// What does not answer at all is asked again, which takes its time.
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	cotejo(t, exitUnavailable, "ingest", "sat_69b", "--mirror", empty.URL, "--data", data)

	older := cotejo(t, exitPartial, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	if !strings.Contains(older, "CORTE_ANTERIOR") {
		t.Fatalf("versión anterior: %s", older)
	}
}

// inNovember sets the clock of the program to 20 November 2026.
func inNovember(t *testing.T) {
	was := now
	now = func() time.Time { return time.Date(2026, 11, 20, 16, 15, 0, 0, time.UTC) }
	t.Cleanup(func() { now = was })
}

func TestRecomputeGivesTheSameBytes(t *testing.T) {
	inNovember(t)
	f := func(ask ...string) {
		t.Helper()
		data := loadedData(t, 0)
		ask = append([]string{"check", "EFO010101AA1", "--data", data, "--json"}, ask...)
		registro := cotejo(t, 0, ask...)
		cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
		if now := cotejo(t, 0, ask...); now == registro {
			t.Fatal("la edición nueva responde lo mismo, edición incluida")
		}
		path := t.TempDir() + "/registro.json"
		if err := os.WriteFile(path, []byte(registro), 0o600); err != nil {
			t.Fatal(err)
		}
		if again := cotejo(t, 0, "recompute", path, "--data", data); again != strings.TrimSuffix(registro, "\n") {
			t.Fatalf("recalculado:\n%s\nguardado:\n%s", again, registro)
		}
	}
	f()
	f("--en-fecha", "2026-06-15")
}

// TestCheckSaysWhatIsKnownOfAnEarlierDay reads what a person sees.
func TestCheckSaysWhatIsKnownOfAnEarlierDay(t *testing.T) {
	inNovember(t)
	data := loadedData(t, 0)
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 3), "--data", data)
	f := func(day string, want ...string) {
		t.Helper()
		out := cotejo(t, 0, "check", "EFO010101AA1", "--en-fecha", day, "--data", data)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: falta %q en\n%s", day, w, out)
			}
		}
	}
	f("2026-08-20", "Aparece: Definitivo", "corte 2026-08-31\n", "listado al 2026-08-20       Aparece: Presunto", "versión del 2026-05-31", "vigente el 2026-08-20       Definitivo desde 2026-08-12")
	f("2026-03-20", "No hay versión: la primera es del 2026-05-31 (no equivale a «no aparece»)", "Presunto desde 2026-03-12")
	f("1900-01-01", "Ninguna situación")
	cotejo(t, exitUsage, "check", "EFO010101AA1", "--en-fecha", "2026-02-30", "--data", data)
	cotejo(t, exitUsage, "check", "EFO010101AA1", "--en-fecha", "1899-12-31", "--data", data)
	cotejo(t, exitUsage, "check", "EFO010101AA1", "--en-fecha", "9999-01-01", "--data", data)
}

func TestAccountsFromTheCommandLine(t *testing.T) {
	data := newData(t)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0]
	list := cotejoJSON[[]accountReply](t, "accounts", "list", "--data", data)
	if len(list) != 1 || list[0].Name != "ALFA" || len(list[0].Orgs) != 1 || list[0].Orgs[0] != org {
		t.Fatalf("accounts list = %+v", list)
	}
	account := list[0].ID
	added := cotejoJSON[orgReply](t, "orgs", "create", "--account", account, "BETA", "--data", data)
	credit := cotejoJSON[creditReply](t, "wallet", "credit", "--org", org.ID, "--mxn", "500.50", "--reason", "prueba", "--data", data)
	if credit != (creditReply{Org: org.ID, Movement: 1, Credited: "500.50", Balance: "500.50"}) {
		t.Fatalf("credit = %+v", credit)
	}
	wallet := cotejoJSON[walletReply](t, "wallet", "show", "--org", org.ID, "--data", data)
	if wallet.Balance != "500.50" || len(wallet.Lots) != 1 || len(wallet.Uses) != 0 {
		t.Fatalf("wallet = %+v", wallet)
	}
	credit = cotejoJSON[creditReply](t, "wallet", "credit", "--org", org.ID, "--uses", "COMPANY:10", "--reason", "prueba", "--data", data)
	if credit != (creditReply{Org: org.ID, Movement: 2, Credited: "0.00", Balance: "500.50", Service: "COMPANY", Uses: 10, Left: 10}) {
		t.Fatalf("credit of uses = %+v", credit)
	}
	wallet = cotejoJSON[walletReply](t, "wallet", "show", "--org", org.ID, "--data", data)
	if wallet.Balance != "500.50" || len(wallet.Uses) != 1 || wallet.Uses[0].Service != "COMPANY" || wallet.Uses[0].Left != 10 || wallet.Uses[0].Number != 2 {
		t.Fatalf("wallet = %+v", wallet)
	}
	if said := cotejo(t, 0, "wallet", "show", "--org", org.ID, "--data", data); !strings.Contains(said, "10 usos de COMPANY") {
		t.Errorf("wallet show = %s", said)
	}
	for _, bad := range []string{"COMPANY", "COMPANY:", "COMPANY:0", "COMPANY:-1", "COMPANY:+1", "COMPANY:1.5", ":3", "EMPRESA:3", "COMPANY:2000000"} {
		cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--uses", bad, "--reason", "x", "--data", data)
	}
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--reason", "x", "--data", data)
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--mxn", "1", "--uses", "COMPANY:1", "--reason", "x", "--data", data)
	live := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "live", "--data", data)
	test := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "test", "--data", data)
	if !strings.HasPrefix(live.Key, "svc_live_") || !strings.HasPrefix(test.Key, "svc_test_") {
		t.Fatalf("llaves = %+v %+v", live, test)
	}
	keys := cotejoJSON[[]keyReply](t, "keys", "list", "--org", org.ID, "--data", data)
	live.Key, test.Key = "", "" // never shown again
	if !reflect.DeepEqual(keys, []keyReply{live, test}) || live.Org != org.ID || test.Org != org.Twin || test.State != "activa" {
		t.Fatalf("keys list = %+v; se crearon %+v y %+v", keys, live, test)
	}
	shown := cotejoJSON[accountReply](t, "accounts", "show", account, "--data", data)
	if shown.Balance != "500.50" || !reflect.DeepEqual(shown.Orgs, []orgReply{org, added}) || !reflect.DeepEqual(shown.Keys, keys) {
		t.Fatalf("accounts show = %+v", shown)
	}
	two := cotejoJSON[accountReply](t, "accounts", "create", "GAMA", "--entity", "GAMA, NORTE", "--entity", "GAMA SUR", "--data", data)
	if len(two.Orgs) != 3 || two.Orgs[1].Name != "GAMA, NORTE" || two.Orgs[2].Name != "GAMA SUR" {
		t.Fatalf("accounts create = %+v", two)
	}
	cotejo(t, exitNotFound, "accounts", "show", "cta_0000000000001", "--data", data)
	cotejo(t, exitUsage, "accounts", "show", "cta_0000000000000", "--data", data)
	cotejo(t, exitNotFound, "orgs", "create", "--account", "cta_0000000000001", "BETA", "--data", data)
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.Twin, "--mxn", "1", "--reason", "x", "--data", data)
	cotejo(t, exitUsage, "keys", "create", "--mode", "live", "--data", data)
	cotejo(t, exitUsage, "keys", "create", "--org", org.ID, "--mode", "admin", "--data", data)
	cotejo(t, exitUsage, "keys", "list", "--data", data)
	cotejo(t, exitUsage, "keys", "create", "--org", org.ID, "--mode", "vivo", "--data", data)
	cotejo(t, exitNotFound, "keys", "create", "--org", "org_0000000000002", "--mode", "live", "--data", data)
	cotejo(t, exitNotFound, "keys", "list", "--org", "org_0000000000001", "--data", data)
	cotejo(t, exitUsage, "keys", "list", "--org", "org_1", "--data", data)
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--mxn", "0", "--reason", "x", "--data", data)
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--mxn", "1", "--reason", "a\nb", "--data", data)
	cotejo(t, exitUsage, "accounts", "create", "", "--data", data)
	for range 9 {
		cotejo(t, 0, "keys", "create", "--org", org.ID, "--mode", "live", "--data", data)
	}
	cotejo(t, exitUsage, "keys", "create", "--org", org.ID, "--mode", "live", "--data", data)
}

// TestKeysFromTheCommandLine: restricted, rotated, deactivated, and an operator's.
func TestKeysFromTheCommandLine(t *testing.T) {
	inNovember(t)
	data := newData(t)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	only := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--only", "verificarEmpresa,leerVerificacion", "--data", data)
	if !slices.Equal(only.Only, []string{"leerVerificacion", "verificarEmpresa"}) {
		t.Errorf("--only: %+v", only)
	}
	if says := failing(t, exitUsage, "keys", "create", "--org", org, "--mode", "live", "--only", "operacionInexistente", "--data", data); !strings.Contains(says, "operacionInexistente") {
		t.Errorf("an unknown operation: %s", says)
	}
	failing(t, exitUsage, "keys", "create", "--org", org, "--mode", "live", "--only", "consultarSalud", "--data", data)
	failing(t, exitUsage, "keys", "create", "--mode", "admin", "--only", "verificarEmpresa", "--data", data)

	next := cotejoJSON[keyReply](t, "keys", "rotate", only.ID, "--grace", "2h", "--data", data)
	if next.Key == only.Key || !slices.Equal(next.Only, only.Only) || next.Mode != "live" || next.Org != org {
		t.Errorf("rotate = %+v", next)
	}
	list := func() map[string]keyReply {
		m := map[string]keyReply{}
		for _, k := range cotejoJSON[[]keyReply](t, "keys", "list", "--org", org, "--data", data) {
			m[k.ID] = k
		}
		return m
	}
	if k := list()[only.ID]; k.State != "en_gracia" || k.Until != "2026-11-20T12:15:00-06:00" || k.Successor != next.ID {
		t.Errorf("a rotated key = %+v", k)
	}
	if k := cotejoJSON[keyReply](t, "keys", "show", only.ID, "--data", data); !reflect.DeepEqual(k, list()[only.ID]) || k.Org != org {
		t.Errorf("keys show = %+v", k)
	}
	failing(t, exitNotFound, "keys", "show", "00000000", "--data", data)
	failing(t, exitUsage, "keys", "rotate", only.ID, "--data", data)
	failing(t, exitUsage, "keys", "rotate", next.ID, "--grace", "721h", "--data", data)
	failing(t, exitNotFound, "keys", "rotate", "00000000", "--data", data)
	failing(t, exitUsage, "keys", "rotate", "svc_live_x", "--data", data)
	if k := cotejoJSON[keyReply](t, "keys", "deactivate", next.ID, "--data", data); k.State != "desactivada" || k.Deactivated != "2026-11-20T10:15:00-06:00" {
		t.Errorf("deactivate = %+v", k)
	}
	cotejo(t, 0, "keys", "deactivate", next.ID, "--data", data) // it is so already
	failing(t, exitNotFound, "keys", "deactivate", "00000000", "--data", data)
	if k := list()[next.ID]; k.State != "desactivada" {
		t.Errorf("a deactivated key = %+v", k)
	}

	admin := cotejoJSON[keyReply](t, "keys", "create", "--mode", "admin", "--data", data)
	keys := cotejoJSON[[]keyReply](t, "keys", "list", "--admin", "--data", data)
	if !strings.HasPrefix(admin.Key, "svc_admin_") || admin.Org != "" || len(keys) != 1 || keys[0].ID != admin.ID {
		t.Errorf("admin = %+v, %+v", admin, keys)
	}
	if out := cotejo(t, 0, "keys", "list", "--org", org, "--data", data); !strings.Contains(out, "solo leerVerificacion, verificarEmpresa") {
		t.Error(out)
	}
}

// unwritable is a terminal that has gone.
type unwritable struct{}

func (unwritable) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestAKeyThatCannotBeShownIsNamed: it exists, and nobody has it.
func TestAKeyThatCannotBeShownIsNamed(t *testing.T) {
	data := newData(t)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	var errOut bytes.Buffer
	code := run(t.Context(), []string{"keys", "create", "--org", org, "--mode", "live", "--data", data}, unwritable{}, &errOut)
	keys := cotejoJSON[[]keyReply](t, "keys", "list", "--org", org, "--data", data)
	if code != exitIO || len(keys) != 1 || !strings.Contains(errOut.String(), keys[0].ID) {
		t.Fatalf("código %d, %+v: %s", code, keys, &errOut)
	}
}

// TestALostAnswerNamesTheCheck cuts the connection after the command was sent.
func TestALostAnswerNamesTheCheck(t *testing.T) {
	data := loadedData(t, 0)
	f := func(want string, args ...string) {
		t.Helper()
		l, err := net.Listen("unix", data+"/admin.sock")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			if conn, err := l.Accept(); err == nil {
				conn.Read(make([]byte, 1))
				conn.Close()
			}
		}()
		said := failing(t, exitFailed, append(args, "--data", data)...)
		if !strings.Contains(said, "resultado desconocido") || !strings.Contains(said, "«cotejo "+want+" --data") {
			t.Errorf("%v: %s", args, said)
		}
	}
	f("accounts list", "accounts", "create", "ALFA")
	f("keys list --org org_0000000000001", "keys", "create", "--org", "org_0000000000001", "--mode", "live")
	f("keys show abcdefgh", "keys", "rotate", "abcdefgh")
	f("keys show abcdefgh", "keys", "deactivate", "abcdefgh")
	f("accounts show cta_0000000000001", "orgs", "create", "--account", "cta_0000000000001", "BETA")
	f("wallet show --org org_0000000000001", "wallet", "credit", "--org", "org_0000000000001", "--mxn", "5", "--reason", "x")
}

// TestReadingCreatesNothing holds that a mistyped --data is said, not made.
func TestReadingCreatesNothing(t *testing.T) {
	const org = "org_0000000000001"
	registro := t.TempDir() + "/registro.json"
	if err := os.WriteFile(registro, []byte(`{"edicion_sha256":"","entrada":{},"fecha":"2026-11-20","motor":"COMPANY/1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(args ...string) {
		t.Helper()
		data := newData(t)
		said := failing(t, exitNotFound, append(args, "--data", data)...)
		if !strings.Contains(said, "cotejo ingest sat_69b --data "+data) {
			t.Errorf("%v no dice cómo se crea: %s", args, said)
		}
		if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v creó la carpeta: %v", args, err)
		}
		if err := os.Mkdir(data, 0o700); err != nil { // there, and no data directory
			t.Fatal(err)
		}
		failing(t, exitNotFound, append(args, "--data", data)...)
		if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
			t.Errorf("%v escribió %v en una carpeta ajena: %v", args, left, err)
		}
	}
	f("check", "EFO010101AA1")
	f("recompute", registro)
	f("verify", "all")
	f("verify", "COM-20260101-00000000")
	f("accounts", "list")
	f("keys", "list", "--org", org)
	f("keys", "create", "--org", org, "--mode", "live")
	f("keys", "show", "abcdefgh")
	f("keys", "rotate", "abcdefgh")
	f("keys", "deactivate", "abcdefgh")
	f("accounts", "show", "cta_0000000000001")
	f("orgs", "create", "--account", "cta_0000000000001", "BETA")
	f("wallet", "show", "--org", org)
	f("wallet", "credit", "--org", org, "--mxn", "5", "--reason", "x")
	f("doctor")
	f("snapshots", "rebuild")
}

// TestOthersMayNotEnter: what lies in the directory opens every account.
func TestOthersMayNotEnter(t *testing.T) {
	data := loadedData(t, 0)
	cotejo(t, 0, "doctor", "--data", data)
	if err := os.Chmod(data, 0o750); err != nil {
		t.Fatal(err)
	}
	cotejo(t, exitFailed, "doctor", "--data", data)
	if said := failing(t, exitConfig, "serve", "--data", data, "--addr", "127.0.0.1:0"); !strings.Contains(said, "chmod 700 "+data) {
		t.Errorf("serve: %s", said)
	}
	if said := failing(t, 0, "accounts", "list", "--data", data); !strings.Contains(said, "aviso: ") {
		t.Errorf("accounts list no avisa: %s", said)
	}
}

// TestThePepperIsThatOfTheAccounts: with another one every key would answer 401.
func TestThePepperIsThatOfTheAccounts(t *testing.T) {
	data := newData(t)
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	cotejo(t, 0, "keys", "create", "--org", org, "--mode", "live", "--data", data)
	right, err := os.ReadFile(data + "/pepper")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(data + "/pepper"); err != nil {
		t.Fatal(err)
	}
	cotejo(t, exitConfig, "accounts", "list", "--data", data)
	cotejo(t, exitConfig, "serve", "--data", data, "--addr", "127.0.0.1:0")
	cotejo(t, exitFailed, "doctor", "--data", data)
	if _, err := os.Stat(data + "/pepper"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("se creó otro secreto: %v", err)
	}

	elsewhere := t.TempDir() + "/secreto"
	write := func(secret []byte, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(elsewhere, secret, mode), os.Chmod(elsewhere, mode)); err != nil {
			t.Fatal(err)
		}
	}
	f := func(code int) {
		t.Helper()
		cotejo(t, code, "accounts", "list", "--data", data, "--pepper-file", elsewhere)
	}
	f(exitConfig) // there is none
	write(bytes.Repeat([]byte{1}, 32), 0o600)
	f(exitConfig) // another one
	write(right[:31], 0o600)
	f(exitConfig) // too short
	write(right, 0o640)
	f(exitConfig) // others may read it
	write(right, 0o600)
	f(0)
}

func TestExitCodes(t *testing.T) {
	f := func(err error, want int) {
		t.Helper()
		if got := exitCode(fmt.Errorf("aquí: %w", err)); got != want {
			t.Errorf("exitCode(%v) = %d, se esperaba %d", err, got, want)
		}
	}
	path := func(err error) error { return &os.PathError{Op: "open", Path: "x", Err: err} }
	f(path(syscall.ENOSPC), exitIO)
	f(path(syscall.EIO), exitIO)
	f(path(syscall.EACCES), exitIO)
	f(path(syscall.EROFS), exitIO)
	f(path(syscall.EMFILE), exitTryAgain)
	f(path(syscall.ENOENT), exitFailed)
	f(ledger.ErrFailed, exitIO)
	f(ledger.ErrBusy, exitTryAgain)
	f(ledger.ErrIntegrity, exitVerifyNo)
	f(&snapshots.CorruptError{}, exitVerifyNo)
	f(snapshots.ErrBusy, exitTryAgain)
	f(snapshots.ErrNotFound, exitNotFound)
	f(accounts.ErrInvalid, exitUsage)
	f(accounts.ErrTooManyKeys, exitUsage)
	f(accounts.ErrTooManyOrganizations, exitUsage)
	f(accounts.ErrNotFound, exitNotFound)
	f(accounts.ErrPepper, exitConfig)
	f(store.ErrInUse, exitInUse)
	f(store.ErrUnavailable, exitUnavailable)
	f(store.ErrFormat, exitConfig)
	f(store.ErrFenced, exitTryAgain)
	f(ledger.ErrStandby, exitTryAgain)
	f(ledger.ErrUnknown, exitTryAgain)
	f(ingest.ErrUnavailable, exitUnavailable)
	f(ingest.ErrUndated, exitUsage)
	f(context.Canceled, exitInterrupted)
	f(fmt.Errorf("%w: %w", admin.ErrLost, context.Canceled), exitInterrupted)
	f(&admin.Error{Code: exitVerifyNo}, exitVerifyNo)
	f(errors.New("otro"), exitFailed)
}

// TestMachineErrorsNameTheNextStep holds that a refusal of the machine is not only
// told but says what to do.
func TestMachineErrorsNameTheNextStep(t *testing.T) {
	f := func(errno syscall.Errno, want string) {
		t.Helper()
		if got := nextStep(&os.PathError{Op: "open", Path: "x", Err: errno}); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("nextStep(%v) = %q, se esperaba %q", errno, got, want)
		}
	}
	f(syscall.EACCES, "permisos")
	f(syscall.EROFS, "solo lectura")
	f(syscall.ENOSPC, "libere espacio")
	f(syscall.EIO, "dmesg")
	f(syscall.EMFILE, "reintente")
	f(syscall.ENOENT, "")
	if said := failing(t, exitNotFound, "sources", "accept", "9", "--who", "Ana", "--why", "x", "--data", loadedData(t, 0)); !strings.Contains(said, "cotejo sources show") {
		t.Errorf("sources accept = %s", said)
	}
}

func TestAnotherDataFormatIsRefused(t *testing.T) {
	data := t.TempDir()
	f := func(format, want string) {
		t.Helper()
		if err := os.WriteFile(data+"/FORMATO", []byte(format+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"doctor"}, {"ingest", "sat_69b"}} {
			if says := failing(t, exitConfig, append(command, "--data", data)...); !strings.Contains(says, want) {
				t.Errorf("format %s: %s", format, says)
			}
		}
	}
	f("3", "la versión de cotejo que la escribió o una posterior")
	f("1", "ya no lee ni convierte")
}
