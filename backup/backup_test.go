package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func write(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// TestWhatNamesComesBeforeWhatIsNamed: a version that is published between two
// listings must not be in a backup without its files.
func TestWhatNamesComesBeforeWhatIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"snapshots/s/a/oficial.zst", "versions/1.json", "tmp/1-1-x", "lock", "editions/1.json",
		"decisions/1.json", "checked/s.json", "algo/nuevo", "suelto"} {
		write(t, filepath.Join(dir, "fuentes", name), "x", 0o444)
	}
	got, err := listCatalogue(dir, "fuentes")
	want := []string{"fuentes/checked/s.json", "fuentes/editions/1.json", "fuentes/decisions/1.json", "fuentes/versions/1.json",
		"fuentes/algo/nuevo", "fuentes/snapshots/s/a/oficial.zst", "fuentes/suelto"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; se esperaba %v", got, err, want)
	}
	if got, err := listCatalogue(dir, "nada"); err != nil || got != nil {
		t.Errorf("sin catálogo: %v, %v", got, err)
	}
}

// TestOnlyWhatIsNeverWrittenAgainIsShared changes a file after its backup.
func TestOnlyWhatIsNeverWrittenAgainIsShared(t *testing.T) {
	dir := t.TempDir()
	f := func(mode os.FileMode, wantShared bool) {
		t.Helper()
		from, to := filepath.Join(dir, mode.String()), filepath.Join(dir, "respaldo", mode.String())
		write(t, from, "uno", mode)
		if err := take(from, to); err != nil {
			t.Fatal(err)
		}
		a, errA := os.Stat(from)
		b, errB := os.Stat(to)
		if errA != nil || errB != nil || os.SameFile(a, b) != wantShared {
			t.Errorf("%v: compartido %v, %v, %v", mode, !wantShared, errA, errB)
		}
	}
	f(0o444, true)
	f(0o400, true)
	f(0o644, false)
	f(0o600, false)
}
