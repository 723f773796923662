package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/maintenance"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// BenchmarkSweep is a sweep of 10,000 sessions: counted because the mode is warn, and
// looked through because none of those that are too many may be deleted.
func BenchmarkSweep(b *testing.B) {
	db, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	err = db.Update(b.Context(), store.Ordered, func(tx store.Tx) error {
		var errs []error
		for i := range 10_000 {
			at := time.Unix(int64(i), 0)
			errs = append(errs, tx.Sessions().Put(session.Meta{
				Key: chela.SessionKey(fmt.Sprintf("agent:main:s%d", i)), ID: fmt.Sprintf("transcript-%d", i), Agent: "main",
				Title: "a note about gardens", Created: at, Updated: at,
			}))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, mode := range []string{"warn", "enforce"} {
		b.Run(mode, func(b *testing.B) {
			s := maintenance.Sessions{
				Log:    slog.New(slog.DiscardHandler),
				Store:  db,
				Bus:    bus.New(slog.New(slog.DiscardHandler)),
				Config: maintenance.SessionConfig{Mode: mode},
				Delete: func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error) {
					return false, nil
				},
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := maintenance.Sweep(s, b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
