package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// TestRefusedStatement makes each statement of the methods that write fail. The
// method must return the error: otherwise the rest of its work would be committed.
func TestRefusedStatement(t *testing.T) {
	t.Parallel()
	d := open(t)
	long := time.Now().Add(-1000 * time.Hour)
	seed := func(tx store.Tx) error {
		_, err1 := tx.Queue().Put(queue.Item{ID: "r", Session: "s", State: queue.Taken, Run: "r"})
		_, err2 := tx.Queue().Put(queue.Item{ID: "other", Session: "s", State: queue.Taken, Run: "r"})
		_, err3 := tx.Queue().Put(queue.Item{ID: "w", Session: "s"})
		_, _, err4 := tx.Leases().Acquire(lease.Session("s"), "me")
		return errors.Join(err1, err2, err3, err4, tx.Leases().Beat("me", -100*time.Hour),
			tx.Sessions().Append("t", &session.Entry{ID: "e", Kind: session.KindMessage, Message: llm.User("hi")}),
			tx.Sessions().Put(session.Meta{Key: "s", ID: "t"}), tx.Sessions().Archive("s", session.Past{ID: "p"}),
			tx.Runs().Put(run.Run{ID: "r", Session: "s", SessionID: "t", State: run.OK, Started: long, Ended: long}),
			tx.Calls().Plan(session.Call{ID: "c", Run: "r", Session: "s", State: session.Closed}),
			tx.Approvals().Put(approval.Request{ID: "a", Session: "s", Run: "r", Decision: approval.Deny}),
			tx.Outbox().Put(outbox.Row{Key: "o", Session: "s", State: outbox.Pending}),
			tx.Usage().PutHold(usage.Hold{ID: "h", Scopes: []usage.Scope{{Name: "x"}}}),
			tx.Devices().PutDevice(pairing.Device{ID: "paired"}),
			tx.Devices().PutRequest(pairing.Request{ID: "q", Device: "new"}))
	}
	if err := d.Update(t.Context(), store.Ordered, seed); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		refused  []string // the statements, each tried alone: the operation, the table, and which rows
		function func(store.Tx) error
	}{
		{"append to a new transcript", []string{"INSERT ON transcript", "INSERT ON entry"}, func(tx store.Tx) error {
			return tx.Sessions().Append("new", &session.Entry{ID: "1"}, &session.Entry{ID: "2"})
		}},
		{"append", []string{"INSERT ON entry WHEN new.id = '2'"}, func(tx store.Tx) error {
			return tx.Sessions().Append("t", &session.Entry{ID: "1"}, &session.Entry{ID: "2"}, &session.Entry{ID: "3"})
		}},
		{"put a session", []string{"UPDATE ON session"},
			func(tx store.Tx) error { return tx.Sessions().Put(session.Meta{Key: "s", ID: "u"}) }},
		{"archive", []string{"INSERT ON past"},
			func(tx store.Tx) error { return tx.Sessions().Archive("s", session.Past{ID: "q"}) }},
		{"take out of the archive", []string{"DELETE ON past"},
			func(tx store.Tx) error { return tx.Sessions().Unarchive("s", "p") }},
		{"delete a session", []string{
			"DELETE ON entry", "DELETE ON transcript", "DELETE ON past", "UPDATE ON call", "DELETE ON approval",
			"DELETE ON outbox", "DELETE ON run", "UPDATE ON item", "UPDATE ON lease", "DELETE ON session",
		}, func(tx store.Tx) error { return tx.Sessions().Delete("s") }},
		{"put an item", []string{"INSERT ON item"}, func(tx store.Tx) error {
			_, err := tx.Queue().Put(queue.Item{ID: "new", Session: "s"})
			return err
		}},
		{"set items", []string{"UPDATE ON item WHEN new.id = 'r'"}, func(tx store.Tx) error {
			return tx.Queue().Set(queue.Done, queue.Item{ID: "r"}, queue.Item{ID: "other"})
		}},
		{"take items", []string{"UPDATE ON item"}, func(tx store.Tx) error {
			_, err := tx.Queue().Take(queue.Taken, queue.Item{ID: "w"})
			return err
		}},
		{"finish", []string{"UPDATE ON item WHEN new.id = 'r'", "UPDATE ON item WHEN new.id = 'other'"},
			func(tx store.Tx) error {
				return tx.Queue().Finish("r")
			}},
		{"acquire a lease", []string{"INSERT ON lease"}, func(tx store.Tx) error {
			_, _, err := tx.Leases().Acquire("new", "me")
			return err
		}},
		{"release a lease", []string{"UPDATE ON lease"}, func(tx store.Tx) error {
			return tx.Leases().Release(lease.Lease{Name: lease.Session("s"), Owner: "me", Fence: 1})
		}},
		{"beat", []string{"DELETE ON beat", "INSERT ON beat"},
			func(tx store.Tx) error { return tx.Leases().Beat("you", time.Hour) }},
		{"plan calls", []string{"INSERT ON call WHEN new.id = '1'"}, func(tx store.Tx) error {
			return tx.Calls().Plan(session.Call{ID: "1"}, session.Call{ID: "2"})
		}},
		{"move a call", []string{"UPDATE ON call"}, func(tx store.Tx) error { return tx.Calls().Move("c", session.Started) }},
		{"close a call", []string{"UPDATE ON call"},
			func(tx store.Tx) error { return tx.Calls().Close("c", session.Outcome{}) }},
		{"put a call", []string{"UPDATE ON call"}, func(tx store.Tx) error { return tx.Calls().Put(session.Call{ID: "c"}) }},
		{"put a run", []string{"UPDATE ON run"}, func(tx store.Tx) error { return tx.Runs().Put(run.Run{ID: "r"}) }},
		{"prune runs", []string{"DELETE ON call", "DELETE ON approval", "DELETE ON run"}, func(tx store.Tx) error {
			_, err := tx.Runs().Prune(time.Now())
			return err
		}},
		{"put an approval", []string{"UPDATE ON approval"},
			func(tx store.Tx) error { return tx.Approvals().Put(approval.Request{ID: "a"}) }},
		{"put outbox rows", []string{"INSERT ON outbox WHEN new.key = '1'"}, func(tx store.Tx) error {
			return tx.Outbox().Put(outbox.Row{Key: "1"}, outbox.Row{Key: "2"})
		}},
		{"delete outbox rows", []string{"DELETE ON outbox"},
			func(tx store.Tx) error { return tx.Outbox().Delete("o", "none") }},
		{"add usage", []string{"INSERT ON usage"}, func(tx store.Tx) error { return tx.Usage().Add(usage.Row{Run: "r"}) }},
		{"put a hold", []string{"INSERT ON hold WHEN new.scope = '1'"}, func(tx store.Tx) error {
			return tx.Usage().PutHold(usage.Hold{ID: "new", Scopes: []usage.Scope{{Name: "1"}, {Name: "2"}}})
		}},
		{"settle a hold", []string{"UPDATE ON hold"}, func(tx store.Tx) error { return tx.Usage().SettleHold("h", 1) }},
		{"put a device", []string{"UPDATE ON device"},
			func(tx store.Tx) error { return tx.Devices().PutDevice(pairing.Device{ID: "paired"}) }},
		{"put a request", []string{"INSERT ON device"}, func(tx store.Tx) error {
			return tx.Devices().PutRequest(pairing.Request{ID: "z", Device: "z"})
		}},
		{"drop a request", []string{"UPDATE ON device", "DELETE ON device"},
			func(tx store.Tx) error { return tx.Devices().DropRequest("q") }},
		{"put invitations", []string{"INSERT ON setting"},
			func(tx store.Tx) error { return tx.Devices().PutInvites([]pairing.Invite{{ID: "i"}}) }},
	} {
		for _, statement := range tt.refused {
			op, rest, _ := strings.Cut(statement, " ")
			on, rows, _ := strings.Cut(strings.TrimPrefix(rest, "ON "), " ")
			trigger := fmt.Sprintf(
				"CREATE TEMP TRIGGER refuse BEFORE %s ON main.%s %s BEGIN SELECT RAISE(ABORT, 'refused'); END", op, on, rows)
			var got error
			if err := d.Update(t.Context(), store.Ordered, func(x store.Tx) error {
				if err := x.(table.Tx).C.Conn.(*conn).script(t.Context(), trigger); err != nil {
					return err
				}
				got = tt.function(x)
				return errors.ErrUnsupported // removes the trigger again
			}); !errors.Is(err, errors.ErrUnsupported) {
				t.Fatalf("%s: %v", trigger, err)
			}
			if got == nil || !strings.Contains(got.Error(), "refused") {
				t.Errorf("%s: error %v, although the statement %q was refused", tt.name, got, statement)
			}
		}
	}
}
