package devices_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// declare connects a node with a declaration.
func declare(h *methodtest.Fixture, id string, commands ...string) {
	in := pairing.Identity{ID: id, Key: "k", Role: wire.RoleNode, Client: wire.ClientInfo{
		ID: "node-host", Mode: wire.ModeNode, Platform: "linux", Family: "Linux", DisplayName: "desk",
	}}
	now := time.Now()
	h.Put(func(tx store.Tx) error {
		a, err := pairing.Admit(tx.Devices(), in, pairing.Proof{Local: true, Authority: []chela.Scope{chela.ScopeAdmin}}, now)
		if err != nil {
			return err
		}
		s, err := pairing.NewSurface([]string{"system"}, commands)
		if err != nil {
			return err
		}
		_, err = pairing.Declare(tx.Devices(), a, s, "1.2", now)
		return err
	})
}

func TestNodeApproval(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	if got := methodtest.Do[wire.Nodes](t, h, wire.MethodNodeList, nil); got.Nodes == nil ||
		len(got.Nodes) != 0 || got.Time == 0 {
		t.Errorf("no nodes: %+v", got)
	}
	declare(h, "n1", "camera.snap")
	node := func() wire.Node {
		t.Helper()
		list := methodtest.Do[wire.Nodes](t, h, wire.MethodNodeList, nil).Nodes
		one := methodtest.Do[wire.NodeDescription](t, h, wire.MethodNodeDescribe, wire.NodeID{ID: "n1"}).Node
		if len(list) != 1 || list[0].ID != one.ID || list[0].Approval != one.Approval ||
			!slices.Equal(list[0].Commands, one.Commands) {
			t.Fatalf("listed %+v, described %+v", list, one)
		}
		return one
	}
	if n := node(); n.Approval != wire.NodePending || len(n.Commands) != 0 || n.Version != "1.2" || !n.Paired ||
		n.Connected || n.DisplayName != "desk" {
		t.Errorf("before approval: %+v", n)
	}
	waiting := methodtest.Do[wire.NodePairs](t, h, wire.MethodNodePairList, nil)
	if len(waiting.Pending) != 1 || len(waiting.Paired) != 0 ||
		!slices.Equal(waiting.Pending[0].Required, []string{"operator.pairing", "operator.write"}) {
		t.Fatalf("pending: %+v", waiting)
	}
	approved := methodtest.Do[wire.NodeApprovedResult](t, h, wire.MethodNodePairApprove,
		wire.DeviceRequestID{ID: waiting.Pending[0].ID})
	if !slices.Equal(approved.Node.Commands, []string{"camera.snap"}) || approved.Node.ApprovedAt == 0 {
		t.Errorf("approved: %+v", approved)
	}
	for e := range h.Events() {
		if e.Name != wire.EventNodePairResolved {
			continue
		}
		var r wire.NodePairResolved
		if err := e.Decode(&r); err != nil || r.ID != waiting.Pending[0].ID || r.Node != "n1" ||
			r.Decision != wire.PairApproved {
			t.Errorf("announced %+v, %v", r, err)
		}
		break
	}
	if n := node(); n.Approval != wire.NodeApproved || !slices.Equal(n.Commands, []string{"camera.snap"}) {
		t.Errorf("after approval: %+v", n)
	}

	if got := methodtest.Do[wire.NodePairs](t, h, wire.MethodNodePairList, nil); len(got.Pending) != 0 ||
		len(got.Paired) != 1 || got.Paired[0].ID != "n1" {
		t.Errorf("after approval: %+v", got)
	}

	declare(h, "n1", "camera.snap", "system.run")
	if n := node(); n.Approval != wire.NodeReapproval || !slices.Equal(n.Commands, []string{"camera.snap"}) ||
		n.Pending == "" {
		t.Errorf("with a wider declaration: %+v", n)
	}
	wider := methodtest.Do[wire.NodePairs](t, h, wire.MethodNodePairList, nil).Pending[0]
	pairer := h.Dial(client.Options{Scopes: []string{"operator.pairing", "operator.write"}})
	defer pairer.Close()
	err := pairer.Call(t.Context(), wire.MethodNodePairApprove, wire.DeviceRequestID{ID: wider.ID}, nil)
	if we, ok := errors.AsType[*wire.Error](err); !ok || we.Message != "missing scope: operator.admin" {
		t.Errorf("commands that run programs were approved with the pairing scope: %v", err)
	}
	rejected := methodtest.Do[wire.NodeRejected](t, h, wire.MethodNodePairReject, wire.DeviceRequestID{ID: wider.ID})
	if n := node(); rejected.Node != "n1" || n.Approval != wire.NodeApproved {
		t.Errorf("rejected %+v: %+v", rejected, n)
	}
	if e := event[wire.NodePairResolved](t, h, wire.EventNodePairResolved); e.ID != wider.ID || e.Node != "n1" ||
		e.Decision != wire.PairRejected {
		t.Errorf("announced %+v", e)
	}
	renamed := methodtest.Do[wire.NodeRename](t, h, wire.MethodNodeRename, wire.NodeRename{ID: "n1", Name: "kitchen"})
	if n := node(); renamed.Name != "kitchen" || n.DisplayName != "kitchen" {
		t.Errorf("renamed %+v: %+v", renamed, n)
	}
	connected := connect(t, h, pairing.Access{Device: "n1", Role: wire.RoleNode})
	methodtest.Do[wire.NodeID](t, h, wire.MethodNodePairRemove, wire.NodeID{ID: "n1"})
	waittest.For(t, "the end of the connection of a removed node", connected.Done())
	if got := methodtest.Do[wire.Nodes](t, h, wire.MethodNodeList, nil); len(got.Nodes) != 0 {
		t.Errorf("after removal: %+v", got)
	}
	for method, params := range map[string]any{
		wire.MethodNodeDescribe:    wire.NodeID{ID: "n1"},
		wire.MethodNodePairRemove:  wire.NodeID{ID: "n1"},
		wire.MethodNodeRename:      wire.NodeRename{ID: "n1", Name: "x"},
		wire.MethodNodePairApprove: wire.DeviceRequestID{ID: "x"},
		wire.MethodNodePairReject:  wire.DeviceRequestID{ID: "x"},
	} {
		if err := h.Call(t.Context(), method, params, nil); err == nil || !strings.Contains(err.Error(), ": unknown ") {
			t.Errorf("%s for an unknown node: %v", method, err)
		}
	}
}
