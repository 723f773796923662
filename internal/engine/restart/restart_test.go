package restart_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/restart"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

const key = chela.SessionKey("agent:main:main")

// chat is where the run answers.
var chat = chela.Address{Channel: "tg", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}

// open returns a store with a session and a run.
func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		m, err := session.Lookup(tx.Sessions(), key)
		if err != nil {
			return err
		}
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		return tx.Runs().Put(run.Run{
			ID:        "r",
			Session:   key,
			SessionID: m.ID,
			Agent:     "main",
			Kind:      run.Turn,
			State:     run.Running,
			Principal: chela.Owner("socket"),
			Address:   chat,
			Started:   time.Now(),
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func requests(s store.Store, owner string) restart.Requests {
	return restart.New(restart.Options{
		Store: s, Owner: owner, Sends: func(session.Meta, chela.Address) bool { return true },
		Chunks: func(chela.Address) chunk.Options { return chunk.Options{} },
	})
}

// state returns what is to be sent, and what waits in the session.
func state(t *testing.T, s store.Store) (rows []outbox.Row, waiting, deferred []queue.Item) {
	t.Helper()
	err := s.View(t.Context(), func(r store.Reader) (err error) {
		if rows, err = r.Outbox().Open(0); err != nil {
			return err
		}
		if waiting, err = r.Queue().Waiting(key); err != nil {
			return err
		}
		deferred, err = r.Queue().Deferred()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, waiting, deferred
}

func TestRequests(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ failure, told string }{
		"EVOLVE-03 the new configuration is in use": {"", "🔄 The gateway has restarted: a new port."},
		"EVOLVE-03 the last good configuration is in use now": {"port 1 is taken",
			"⚠️ It could not start with the new configuration, and runs with the last good one: port 1 is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			first := requests(s, "first")
			for _, reason := range []string{"a new\nport.", "again"} {
				if ok, err := first.Record(t.Context(), tool.Call{ID: "c", Session: key, Run: "r"}, reason); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			if n, err := first.Answer(t.Context(), ""); n != 0 || err != nil {
				t.Errorf("the process that ends answers %d, %v", n, err)
			}
			if rows, waiting, deferred := state(t, s); len(rows)+len(waiting) > 0 || len(deferred) != 1 {
				t.Fatalf("before the restart: %v, %v, %v", rows, waiting, deferred)
			}
			for i, want := range []int{1, 0, 0} { // later starts find nothing
				if n, err := requests(s, "next").Answer(t.Context(), tt.failure); n != want || err != nil {
					t.Fatalf("start %d answers %d, %v", i, n, err)
				}
			}
			rows, waiting, deferred := state(t, s)
			if len(rows) != 1 || rows[0].Address != chat || !strings.Contains(rows[0].Text, tt.told) {
				t.Errorf("the chat gets %+v", rows)
			}
			if len(deferred) != 0 || len(waiting) != 1 || waiting[0].Kind != queue.Event || waiting[0].Next ||
				waiting[0].Inbound.Address != chat || !waiting[0].Principal.IsOwner() ||
				!strings.Contains(waiting[0].Inbound.Text, tt.told) {
				t.Errorf("waiting %+v, deferred %v", waiting, deferred)
			}
			if again := strings.Contains(waiting[0].Inbound.Text, "Do not repeat"); again != (tt.failure != "") {
				t.Errorf("the model reads %q", waiting[0].Inbound.Text)
			}
		})
	}
	t.Run("a call outside of a run waits for nothing", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		if ok, err := requests(s, "first").Record(t.Context(), tool.Call{ID: "c", Session: key}, "x"); ok || err != nil {
			t.Error(ok, err)
		}
		if _, _, deferred := state(t, s); len(deferred) > 0 {
			t.Error(deferred)
		}
	})
}
