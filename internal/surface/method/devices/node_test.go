package devices_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestNodes(t *testing.T) {
	t.Parallel()
	t.Run("ND-01 an unknown node waits, and gets a token when it is approved", func(t *testing.T) {
		t.Parallel()
		h := methodtest.New(t, llmtest.NewScript())
		node := pairing.Identity{ID: "n1", Key: "k", Role: wire.RoleNode,
			Client: wire.ClientInfo{ID: "node-host", Mode: wire.ModeNode}}
		connect := func() (a pairing.Admission) {
			t.Helper()
			err := h.Store.Update(t.Context(), store.Ordered, func(tx store.Tx) (err error) {
				a, err = pairing.Admit(tx.Devices(), node, pairing.Proof{}, time.Now())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		a := connect()
		var details struct {
			Code, Reason, RequestID, DeviceID string
		}
		if a.Refusal == nil || a.Refusal.Code != wire.NotPaired || json.Unmarshal(a.Refusal.Details, &details) != nil {
			t.Fatalf("refused with %+v", a.Refusal)
		}
		if details.Code != pairing.CodePairingRequired || details.Reason != pairing.ReasonNotPaired ||
			details.DeviceID != "n1" {
			t.Errorf("details %s", a.Refusal.Details)
		}
		waiting := list(t, h).Pending
		if len(waiting) != 1 || waiting[0].ID != details.RequestID || waiting[0].Role != wire.RoleNode {
			t.Errorf("pending: %+v, want request %s", waiting, details.RequestID)
		}
		if again := connect(); again.Requested != nil || list(t, h).Pending[0].ID != details.RequestID {
			t.Error("a retry created another request")
		}
		methodtest.Do[wire.DeviceApproved](t, h, wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: details.RequestID})
		if a := connect(); a.Refusal != nil || a.Access.Token == "" || len(a.Access.Scopes) != 0 {
			t.Errorf("after approval: %+v", a)
		}
	})
	t.Run("ND-08 a wider request is pending beside the approved one", func(t *testing.T) {
		t.Parallel()
		h := methodtest.New(t, llmtest.NewScript())
		approved(t, h, "d1", chela.ScopeRead)
		a := ask(t, h, "d1", chela.ScopeRead, chela.ScopeWrite)
		if a.Refusal == nil || a.Requested == nil || !a.Requested.Repair {
			t.Fatalf("the wider request: %+v", a)
		}
		got := list(t, h)
		if len(got.Pending) != 1 || len(got.Paired) != 1 || !slices.Equal(got.Paired[0].Scopes, []string{"operator.read"}) {
			t.Errorf("devices: %+v", got)
		}
		newer := ask(t, h, "d1", chela.ScopeAdmin)
		if newer.Superseded == nil || newer.Superseded.ID != a.Requested.ID {
			t.Errorf("another request: %+v", newer)
		}
		if again := ask(t, h, "d1", chela.ScopeRead); again.Refusal != nil {
			t.Errorf("with the approved scopes: %v", again.Refusal)
		}
	})
}
