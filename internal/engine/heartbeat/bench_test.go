package heartbeat_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	core "github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/heartbeat"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// conf is the configuration of one agent, whose HEARTBEAT.md has the text.
type conf string

func (conf) Heartbeats() []core.Settings {
	return []core.Settings{core.Config{}.Settings("main", time.UTC)}
}

func (c conf) HeartbeatFile(chela.AgentID) (string, bool) { return string(c), true }

func (conf) HeartbeatVisibility(chela.Address) (v core.Visibility) { return v }

func (conf) Sends(session.Meta, chela.Address) bool { return true }

func (conf) IsOwnerChat(chela.Address) bool { return false }

// BenchmarkNothingToDo measures a tick that is due and skipped, because HEARTBEAT.md has
// no instructions.
func BenchmarkNothingToDo(b *testing.B) {
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(b.TempDir(), "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	log := slog.New(slog.DiscardHandler)
	s := heartbeat.New(heartbeat.Options{
		Log:    log,
		Store:  db,
		Bus:    bus.New(log),
		Config: conf("# Heartbeat\n<!-- nothing -->\n"),
		Ready:  func(chela.Address) bool { return true },
		Chunks: func(chela.Address) chunk.Options { return chunk.Options{} },
	})
	for b.Loop() {
		err := db.Update(b.Context(), store.Ordered, func(tx store.Tx) error {
			return tx.Heartbeats().PutState(core.State{Agent: "main", Ticked: time.Now().Add(-time.Hour)})
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := heartbeat.StepOf(s, b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
