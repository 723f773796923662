package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/storetest"
)

// open opens a database in a directory of the test and closes it at its end.
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
	storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
}
