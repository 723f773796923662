package dispatch_test

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

func TestRevokedDevice(t *testing.T) {
	// put stores messages of devices, as if they were sent.
	put := func(h *harness, ids ...string) {
		h.t.Helper()
		err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
			for _, id := range ids {
				who := chela.Principal{ID: "owner", Credential: pairing.Credential(id), Scopes: []chela.Scope{chela.ScopeAdmin}}
				it := queue.Item{
					ID: "m-" + id, Key: "m-" + id, Session: key, Kind: queue.Message, Principal: who,
					State: queue.Waiting, Created: time.Now(), Inbound: chela.Inbound{Text: "hi from " + id, Mode: "followup"},
				}
				if _, err := tx.Queue().Put(it); err != nil {
					return err
				}
				tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
			}
			return nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	pair := func(h *harness, d pairing.Device) {
		h.t.Helper()
		if err := h.st.Update(h.t.Context(), store.Synced,
			func(tx store.Tx) error { return tx.Devices().PutDevice(d) }); err != nil {
			h.t.Fatal(err)
		}
	}
	grant := pairing.Grant{Role: wire.RoleOperator, Scopes: []chela.Scope{chela.ScopeWrite}}
	t.Run("the message of a revoked device is cancelled, that of another runs", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Say("hello"))
		h := newHarness(t, model).open()
		pair(h, pairing.Device{ID: "good", Grants: []pairing.Grant{grant}})
		gone := grant
		gone.Revoked = time.Now()
		pair(h, pairing.Device{ID: "gone", Grants: []pairing.Grant{gone}})
		put(h, "gone", "good")
		if r := h.wait("m-gone"); r.State != run.Aborted || r.Error != "the device was revoked" {
			t.Errorf("the revoked device's run: %s, %q", r.State, r.Error)
		}
		r := h.wait("m-good")
		if r.State != run.OK || len(model.Requests()) != 1 {
			t.Errorf("the run of the other: %s, %d model calls", r.State, len(model.Requests()))
		}
		if r.Principal.May(chela.ScopeAdmin) {
			t.Errorf("it ran as %+v, with more than its present grant", r.Principal)
		}
		for _, l := range h.lines() {
			if l == "user: hi from gone" {
				t.Errorf("transcript: %q", h.lines())
			}
		}
	})
}
