package budget_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// TestTell checks that the owner is told about a budget in the chat of the main session,
// unless sending to it is off. The transcript has the notice in both cases.
func TestTell(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"": 1, session.SendOff: 0} {
		log := slog.New(slog.DiscardHandler)
		db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db"), Log: log})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		b := budget.New(budget.Options{Store: db, Bus: bus.New(log),
			Notices: notice.New(notice.Options{OwnerChat: func(chela.Address) bool { return true }})})
		rows, notices := 0, 0
		err = db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			chat := chela.Address{Channel: "phone", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
			if err := tx.Sessions().Put(session.Meta{
				Key:     "agent:main:main",
				ID:      "t",
				Agent:   "main",
				Address: chat,
				Active:  time.Now(),
				Send:    name,
			}); err != nil {
				return err
			}
			if _, err := b.Tell(tx, budget.Call{Agent: "main"}, usage.Limits{}, &usage.BudgetError{}, "used",
				"the budget is used up"); err != nil {
				return err
			}
			open, err := tx.Outbox().Open(0)
			if err != nil {
				return err
			}
			entries, err := tx.Sessions().Entries("t", 0, 0)
			rows, notices = len(open), len(entries)
			return err
		})
		if err != nil || rows != want || notices != 1 {
			t.Errorf("/send %q: %d messages and %d notices, want %d and 1: %v", name, rows, notices, want, err)
		}
	}
}
