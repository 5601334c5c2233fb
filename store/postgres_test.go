package store_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"cotejo/store"
	"cotejo/store/storetest"
)

func openPostgres(t testing.TB, url string, o store.PostgresOptions) *store.Postgres {
	t.Helper()
	p, err := store.OpenPostgres(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPostgresConformance(t *testing.T) {
	defer goleak.VerifyNone(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return openPostgres(t, storetest.PostgresURL(t), store.PostgresOptions{})
	})
}
