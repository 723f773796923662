package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/store/storetest"
)

// open opens a database in a temporary directory and closes it when the test ends.
func open(tb testing.TB) *DB {
	tb.Helper()
	return openAt(tb, filepath.Join(tb.TempDir(), "chela.db"))
}

func openAt(tb testing.TB, path string) *DB {
	tb.Helper()
	d, err := Open(tb.Context(), Options{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return d
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store {
		d := open(t)
		t.Cleanup(func() {
			if err := d.Check(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return d
	})
}
