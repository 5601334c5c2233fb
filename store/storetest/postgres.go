package storetest

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cotejo/store"
)

// PostgresURL names an empty schema of the database in COTEJO_POSTGRES, as a URL for
// store.OpenPostgres; it goes with the test. Without the variable the test is
// skipped.
func PostgresURL(t testing.TB) string {
	t.Helper()
	base := os.Getenv("COTEJO_POSTGRES")
	if base == "" {
		t.Skip("COTEJO_POSTGRES is not set: the URL of a PostgreSQL database whose contents may be thrown away (.ci/run starts one)")
	}
	scratch, drop, err := store.ScratchPostgres(context.Background(), base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return scratch
}

// Execute executes a statement on a connection of its own, again and again for as long
// as the server is not ready.
func Execute(t testing.TB, base, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, base)
		if err == nil {
			_, err = conn.Exec(ctx, sql)
			if closed := conn.Close(ctx); err == nil {
				err = closed
			}
		}
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "connect") && !strings.Contains(err.Error(), "57P0") {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// HostOf is where the server of a URL listens.
func HostOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		t.Skip("COTEJO_POSTGRES names no host and port, which a proxy needs")
	}
	if u.Port() == "" {
		return u.Host + ":5432"
	}
	return u.Host
}

// Through is a URL whose connections go to another address.
func Through(t testing.TB, address, host string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal("COTEJO_POSTGRES is no URL")
	}
	u.Host = host
	return u.String()
}
