package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary stand in for the program, so that tests can
// start it as a process of its own and kill it.
func TestMain(m *testing.M) {
	if os.Getenv("COTEJO_TEST_CHILD") != "" {
		os.Unsetenv("COTEJO_TEST_CHILD")
		main()
	}
	environment = func() []string { return nil }
	os.Exit(m.Run())
}

// program returns a command that runs this program in a process of its own.
func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "COTEJO_TEST_CHILD=1")
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

// stageFile writes one stage of the bundled mirror to a file.
func stageFile(t *testing.T, stage int) string {
	t.Helper()
	path := t.TempDir() + "/Listado_completo_69-B.csv"
	if err := os.WriteFile(path, mirrorFile(t, stage), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestANewcomerWithoutServer(t *testing.T) {
	data := t.TempDir() + "/datos"
	cotejo(t, exitNotFound, "check", "EFO010101AA1", "--data", data)
	cotejo(t, 0, "doctor", "--data", data)
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
	cotejo(t, exitUsage, "check", "EFO0101AA1", "--data", data)
	cotejo(t, exitUsage, "check", "XAXX010101000", "--data", data)
	cotejo(t, exitUsage, "ingest", "sat_69bb", "--data", data)
	cotejo(t, exitUsage, "ingest", "--file", "sat_69b=/no/existe", "--data", data)
	cotejo(t, exitUsage, "ingest", "--corte", "2026-02-30", "--data", data)
	cotejo(t, exitUsage, "nada")
	cotejo(t, exitUnavailable, "ingest", "sat_69b", "--mirror", "http://127.0.0.1:1", "--data", data)

	older := cotejo(t, exitPartial, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	if !strings.Contains(older, "CORTE_ANTERIOR") {
		t.Fatalf("versión anterior: %s", older)
	}
}

func TestRecomputeGivesTheSameBytes(t *testing.T) {
	data := t.TempDir()
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 0), "--data", data)
	registro := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json")
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
	if now := cotejo(t, 0, "check", "EFO010101AA1", "--data", data, "--json"); now == registro {
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

func TestAccountsFromTheCommandLine(t *testing.T) {
	data := t.TempDir()
	org := cotejoJSON[orgReply](t, "orgs", "create", "--name", "ALFA", "--data", data)
	if list := cotejoJSON[[]orgReply](t, "orgs", "list", "--data", data); len(list) != 1 || list[0] != org {
		t.Fatalf("orgs list = %+v", list)
	}
	wallet := cotejoJSON[walletReply](t, "wallet", "credit", "--org", org.ID, "--mxn", "500.50", "--reason", "prueba", "--data", data)
	if wallet.Balance != "500.50" || len(wallet.Lots) != 1 {
		t.Fatalf("wallet = %+v", wallet)
	}
	live := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "live", "--data", data)
	test := cotejoJSON[keyReply](t, "keys", "create", "--org", org.ID, "--mode", "test", "--data", data)
	if !strings.HasPrefix(live.Key, "svc_live_") || !strings.HasPrefix(test.Key, "svc_test_") {
		t.Fatalf("llaves = %+v %+v", live, test)
	}
	cotejo(t, exitUsage, "keys", "create", "--org", org.ID, "--mode", "vivo", "--data", data)
	cotejo(t, exitNotFound, "keys", "create", "--org", "org_0000000000001", "--mode", "live", "--data", data)
	cotejo(t, exitUsage, "wallet", "credit", "--org", org.ID, "--mxn", "0", "--reason", "x", "--data", data)
}

func TestANewerDataDirectoryIsRefused(t *testing.T) {
	data := t.TempDir()
	if err := os.WriteFile(data+"/FORMATO", []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cotejo(t, exitConfig, "doctor", "--data", data)
}
