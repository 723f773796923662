package deliver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/store"
)

func TestAsk(t *testing.T) {
	// suspend has a run wait for a decision, as one commit does.
	suspend := func(b *bench, id string, a chela.Address) {
		b.update(func(tx store.Tx) error {
			r := answer(chela.RunID("run-"+id), "")
			r.State, r.Address = run.Suspended, a
			if err := tx.Runs().Put(r); err != nil {
				return err
			}
			return tx.Approvals().Put(approval.Request{
				ID: id, Session: r.Session, Run: r.ID, Tool: "exec", Text: "rm -rf build", Reason: "it deletes",
				Created: time.Now(), Expires: time.Now().Add(approval.Lifetime),
			})
		})
	}
	const want = "Approval needed for exec: it deletes\n```\nrm -rf build\n```\n/approve a1 allow-once, allow-always or deny"
	on(t, "the channel is asked once", func(t *testing.T, b *bench) {
		b.start()
		synctest.Wait()
		suspend(b, "a1", at("1"))
		for range 3 {
			b.event(chela.Event{Stream: chela.StreamApproval, Phase: chela.PhaseRequested})
		}
		if got := strings.Join(b.fake.Texts(at("1")), "\n"); got != want {
			t.Errorf("people see %q, want %q", got, want)
		}
	})
	on(t, "also when the process ended before it could", func(t *testing.T, b *bench) {
		suspend(b, "a1", at("1"))
		for range 2 {
			b.again()
			b.start()
			time.Sleep(time.Minute)
		}
		if got := strings.Join(b.fake.Texts(at("1")), "\n"); got != want {
			t.Errorf("people see %q, want %q", got, want)
		}
	})
	on(t, "not for clients, and not too late", func(t *testing.T, b *bench) {
		suspend(b, "a1", chela.Address{Channel: chela.LocalChannel})
		suspend(b, "a2", at("1"))
		time.Sleep(time.Hour)
		b.start()
		time.Sleep(time.Minute)
		if got := b.fake.Messages(chela.Address{}); len(got) > 0 {
			t.Errorf("people see %+v", got)
		}
	})
}
