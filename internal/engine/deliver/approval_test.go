package deliver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

func TestApprovals(t *testing.T) {
	// suspend commits a run that waits for an approval.
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
	on(t, "a request is sent once", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Temporary())
		b.start()
		suspend(b, "a1", at("1"))
		for range 3 {
			b.event(chela.Event{Stream: chela.StreamApproval, Phase: chela.PhaseRequested})
		}
		time.Sleep(time.Minute)
		if row := b.row("approval:a1:0"); row.Session != "agent:main:main" {
			t.Errorf("row %+v", row)
		}
		if got := strings.Join(b.fake.Texts(at("1")), "\n"); got != want {
			t.Errorf("visible texts: %q, want %q", got, want)
		}
	})
	for _, buttons := range []bool{true, false} {
		on(t, fmt.Sprintf("AP-17 with buttons where a platform has them: %v", buttons), func(t *testing.T, b *bench) {
			b.w.o.Limits = func(string) channel.Limits { return channel.Limits{Buttons: buttons} }
			b.start()
			suspend(b, "a1", at("1"))
			b.event(chela.Event{Stream: chela.StreamApproval, Phase: chela.PhaseRequested})
			var got []string
			for _, m := range b.fake.Messages(at("1")) {
				for _, row := range m.Buttons {
					for _, k := range row {
						got = append(got, k.Label+": "+k.Data)
					}
				}
			}
			want := []string{"Allow once: /approve a1 allow-once", "Always: /approve a1 allow-always", "Deny: /approve a1 deny"}
			if !buttons {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("buttons %q, want %q", got, want)
			}
		})
	}
	on(t, "a request is sent after a crash", func(t *testing.T, b *bench) {
		suspend(b, "a1", at("1"))
		for range 2 {
			b.restart()
			b.start()
			time.Sleep(time.Minute)
		}
		if got := strings.Join(b.fake.Texts(at("1")), "\n"); got != want {
			t.Errorf("visible texts: %q, want %q", got, want)
		}
	})
	on(t, "the request of a child is sent to the chat of its root", func(t *testing.T, b *bench) {
		suspend(b, "a1", chela.Address{Channel: chela.LocalChannel})
		b.update(func(tx store.Tx) error {
			q, err := tx.Approvals().Get("a1")
			if err != nil {
				return err
			}
			q.Asked = "agent:main:root"
			err = tx.Sessions().Put(session.Meta{Key: q.Asked, ID: "t", Agent: "main", Address: at("2")})
			return errors.Join(err, tx.Approvals().Put(q))
		})
		b.start()
		if got := strings.Join(b.fake.Texts(at("2")), "\n"); got != want {
			t.Errorf("visible texts: %q, want %q", got, want)
		}
	})
	on(t, "no request to the chat of a root that does not send", func(t *testing.T, b *bench) {
		suspend(b, "a1", chela.Address{Channel: chela.LocalChannel})
		b.update(func(tx store.Tx) error {
			q, err := tx.Approvals().Get("a1")
			if err != nil {
				return err
			}
			q.Asked = "agent:main:root"
			err = tx.Sessions().Put(session.Meta{Key: q.Asked, ID: "t", Agent: "main", Address: at("2"), Send: session.SendOff})
			return errors.Join(err, tx.Approvals().Put(q))
		})
		b.start()
		time.Sleep(time.Minute)
		if got := b.fake.Texts(at("2")); len(got) > 0 {
			t.Errorf("visible texts: %q", got)
		}
	})
	on(t, "no request for a client, and none that has expired", func(t *testing.T, b *bench) {
		suspend(b, "a1", chela.Address{Channel: chela.LocalChannel})
		suspend(b, "a2", at("1"))
		time.Sleep(time.Hour)
		b.start()
		time.Sleep(time.Minute)
		if got := b.fake.Messages(chela.Address{}); len(got) > 0 {
			t.Errorf("visible messages: %+v", got)
		}
		if _, order, err := b.w.open(t.Context()); len(order) > 0 || err != nil {
			t.Errorf("rows for %v, %v", order, err)
		}
	})
}
