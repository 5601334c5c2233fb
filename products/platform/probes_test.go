package platform

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/ledger"
	op "cotejo/operation"
	"cotejo/snapshots"
	"cotejo/store"
)

// TestStoreIsAskedOnceASecond also holds that a store that does not answer is
// waited for a second and no longer.
func TestStoreIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		answer := func(context.Context) error { return nil }
		p := &storeProbe{now: time.Now, ask: func(ctx context.Context) error { asked++; return answer(ctx) }}
		f := func(want string, wantAsked int) {
			t.Helper()
			if got := p.unmet(t.Context()); got != want || asked != wantAsked {
				t.Errorf("unmet = %q y se preguntó %d veces; se esperaba %q y %d", got, asked, want, wantAsked)
			}
		}
		f("", 1)
		answer = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		f("", 1)
		time.Sleep(storeFresh)
		before := time.Now()
		f("no contestan en un segundo", 2)
		if waited := time.Since(before); waited != storePatience {
			t.Errorf("se esperó %v", waited)
		}
		time.Sleep(storeFresh - time.Nanosecond)
		answer = func(context.Context) error { return ledger.ErrFailed }
		f("no contestan en un segundo", 2)
		time.Sleep(time.Nanosecond)
		f("no aceptan escrituras", 3)
		answer = func(context.Context) error { return nil }
		time.Sleep(storeFresh)
		f("", 4)
		// The one who asks goes away: the answer is not about them.
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		answer = func(ctx context.Context) error { return ctx.Err() }
		time.Sleep(storeFresh)
		if got := p.unmet(gone); got != "" {
			t.Errorf("con un cliente que se fue: %q", got)
		}
	})
}

// TestReadinessNamesEverythingUnmet asks a service where nothing is right.
func TestReadinessNamesEverythingUnmet(t *testing.T) {
	closing := "se está cerrando"
	pebble, err := store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer pebble.Close()
	book, err := ledger.Open(pebble, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book.Close()
	empty, err := snapshots.OpenCatalogue(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	live, err := snapshots.NewLive(empty)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	c := Config{Live: live, Pipeline: &op.Pipeline{Ledger: book}, Conditions: []Condition{
		{"cierre", func() string { return closing }},
		{"disco", func() string { return "" }},
	}}
	table, err := op.NewTable(probes(c))
	if err != nil {
		t.Fatal(err)
	}
	ready := table.Find("sondearServicio")
	_, err = ready.Read(t.Context(), op.Call{})
	var unready *op.UnreadyError
	const all = "cierre: se está cerrando; fuentes: no hay ninguna cargada; cuentas: no aceptan escrituras"
	if !errors.As(err, &unready) || err.Error() != all {
		t.Fatalf("readyz = %v", err)
	}
	if got := string(op.AppendFailure(nil, err, "req_1")); !strings.Contains(got, `"detail":"`+all+`"`) || !strings.Contains(got, `"codigo":"NO_LISTO"`) {
		t.Errorf("cuerpo = %s", got)
	}
	if resp, err := table.Find("sondearProceso").Read(t.Context(), op.Call{}); err != nil || string(resp.Body) != `{"estado":"vivo"}` {
		t.Errorf("livez = %s, %v", resp.Body, err)
	}
}

func TestNoticesAreAlerts(t *testing.T) {
	f := newHealthFixture(t)
	h := &health{Config: Config{Catalogue: f.c, Live: f.live, Now: func() time.Time { return f.now },
		Notices: func() []Notice { return []Notice{{"RELOJ", "El reloj se adelantó 100 % de golpe."}} }}}
	resp, err := h.read()
	if err != nil || !strings.Contains(string(resp.Body), `{"tipo":"RELOJ","mensaje":"El reloj se adelantó 100 % de golpe."}`) {
		t.Errorf("salud = %s, %v", resp.Body, err)
	}
}
