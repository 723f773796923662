//go:build conformance

package conformance

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// golden is a gateway with data of every kind, and a connection that saw it
// being created.
type golden struct {
	*gateway
	*line
	other    *line // another connection, subscribed to all sessions
	t        testing.TB
	approval string // id of a pending approval
	pending  []wire.PairRequest
	nodes    []wire.NodeRequest
	message  string // id of a message in the session talked
	config   wire.ConfigSnapshot
	paired   string // id of a device, also of its last request
	device   *line  // id of another device
	widened  string // id of its request for more scopes, which was approved
}

const (
	talked  = "agent:main:main"
	aside   = "agent:main:aside"
	waiting = "agent:main:waiting"
)

// notes is a file in the workspace.
const notes = "the tide turns at six\n"

// newGolden has a gateway handle a text, a tool call, an abort, an error, an
// approval, a reset, a patch and pairings.
func newGolden(t testing.TB) *golden {
	t.Helper()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	s.File("notes.txt", notes)
	g := &golden{gateway: s, line: s.operator(t), t: t}
	p := hello(wire.ScopeAdmin)
	p.Catalog = json.RawMessage(`{"sessionKey":"main"}`)
	g.other = s.connect(t, p)
	g.Must("sessions.subscribe", wire.None{}, nil)
	g.other.Must("sessions.subscribe", wire.None{}, nil)
	g.chat(talked, "text", "count", wire.StateFinal)
	g.chat(talked, "tool", "read notes.txt", wire.StateFinal)
	g.chat(talked, "command", "/status", wire.StateFinal)
	g.chat(aside, "failed", "fail", wire.StateError)
	g.aborted()
	g.asked()
	g.Must("sessions.patch", map[string]any{"key": aside, "label": "Aside"}, nil)
	g.Must("sessions.reset", map[string]any{"key": aside}, nil)
	g.devices()
	g.widen()
	var h wire.History
	g.Must("chat.history", wire.ChatHistory{SessionKey: talked}, &h)
	g.message = h.Messages[0].Meta.ID
	g.Must(wire.MethodConfigGet, wire.None{}, &g.config)
	return g
}

func (g *golden) chat(session, run, text, state string) {
	g.t.Helper()
	g.Must("chat.send", wire.ChatSend{SessionKey: session, Message: text, IdempotencyKey: run}, nil)
	if end := g.Ended(run); end.State != state {
		g.t.Fatalf("%q ended as %s: %s", text, end.State, end.ErrorMessage)
	}
}

// aborted aborts a run in the middle of its answer.
func (g *golden) aborted() {
	g.t.Helper()
	g.Must("chat.send", wire.ChatSend{SessionKey: aside, Message: "wait", IdempotencyKey: "aborted"}, nil)
	g.Await("a delta of the run to abort", 0, func(f frame) bool {
		var c wire.Chat
		return f.Event == wire.EventChat && json.Unmarshal(f.Payload, &c) == nil && c.RunID == "aborted" && c.State == wire.StateDelta
	})
	g.Must("chat.abort", wire.ChatAbort{SessionKey: aside, RunID: "aborted"}, nil)
	if end := g.Ended("aborted"); end.State != wire.StateAborted {
		g.t.Fatalf("an aborted run ended as %s", end.State)
	}
}

// asked creates an approval that is decided, and one that stays pending.
func (g *golden) asked() {
	g.t.Helper()
	for _, run := range []string{"allowed", "open"} {
		n := len(g.Frames())
		g.Must("chat.send", wire.ChatSend{SessionKey: waiting, Message: "run touch " + run, IdempotencyKey: run}, nil)
		var asks struct{ ID string }
		if err := json.Unmarshal(g.Event(wire.EventApprovalRequested, n).Payload, &asks); err != nil {
			g.t.Fatal(err)
		}
		g.approval = asks.ID
		if run == "allowed" {
			g.Must("exec.approval.resolve", map[string]any{"id": asks.ID, "decision": "allow-once"}, nil)
			g.Ended(run)
		}
	}
}

// devices pairs devices of this machine, which need no approval, and has them
// request the role of a node, which needs one.
func (g *golden) devices() {
	g.t.Helper()
	person, node := hello(wire.ScopeRead), asNode()
	for range 5 {
		d, n := newDevice(g.t), len(g.Frames())
		if _, f := d.Connect(g.t, g.gateway, person); !f.OK {
			g.t.Fatalf("a device of this machine: %v", f.Error)
		}
		if _, f := d.Connect(g.t, g.gateway, node); f.OK || f.Error.Code != wire.NotPaired {
			g.t.Fatalf("a new role: %s", f.raw)
		}
		var q wire.PairRequest
		if err := json.Unmarshal(g.Event(wire.EventPairRequested, n).Payload, &q); err != nil {
			g.t.Fatal(err)
		}
		if len(g.pending) == 3 {
			g.node(d, q)
			continue
		}
		g.pending = append(g.pending, q)
		g.paired = d.ID
	}
}

// widen has a device request more scopes and get them.
func (g *golden) widen() {
	g.t.Helper()
	l, f := newDevice(g.t).Connect(g.t, g.gateway, hello(wire.ScopeRead))
	if !f.OK {
		g.t.Fatalf("a device of this machine: %v", f.Error)
	}
	var q wire.DeviceRequestID
	l.Must("device.scopes.requestUpgrade", wire.DeviceUpgrade{Scopes: []string{wire.ScopeRead, wire.ScopeWrite}}, &q)
	g.Must("device.pair.approve", q, nil)
	g.device, g.widened = l, q.ID
}

// node pairs a device as a node, which then requests its commands.
func (g *golden) node(d device, q wire.PairRequest) {
	g.t.Helper()
	g.Must("device.pair.approve", wire.DeviceRequestID{ID: q.ID}, nil)
	n := len(g.Frames())
	if _, f := d.Connect(g.t, g.gateway, asNode()); !f.OK {
		g.t.Fatalf("an approved node: %v", f.Error)
	}
	var r wire.NodeRequest
	if err := json.Unmarshal(g.Event(wire.EventNodePairRequested, n).Payload, &r); err != nil {
		g.t.Fatal(err)
	}
	g.nodes = append(g.nodes, r)
}
