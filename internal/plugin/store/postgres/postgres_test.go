package postgres_test

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/store/storetest"
	"github.com/chela-ai/chela/internal/plugin/store/postgres"
	"github.com/chela-ai/chela/internal/plugin/store/postgres/postgrestest"
)

// patient is how long the ownership lasts in tests in which nobody takes it over.
const patient = 10 * time.Minute

// open opens a database for a test.
func open(t *testing.T, o postgres.Options) *postgres.DB {
	t.Helper()
	if o.TTL == 0 {
		o.TTL = patient
	}
	d, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func TestStore(t *testing.T) {
	server := postgrestest.Start(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, postgres.Options{URL: server.URL()}) })
}
