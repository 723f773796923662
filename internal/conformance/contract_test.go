//go:build conformance

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/wire"
)

// ours are methods that the published schema does not know, and why we have
// them.
var ours = map[string]string{
	"backup.create":        "ours: a copy of the database while it is in use",
	"sessions.export":      "ours: a conversation in the file format of OpenClaw",
	"sessions.unsubscribe": "OpenClaw has it too, and leaves it out of the schema",
}

// resultless are methods whose parameters alone the schema defines. Parts of
// their results that it does define are named with the calls.
var resultless = []string{
	"agent", "agent.wait", "chat.abort", "chat.history", "chat.send", "device.pair.approve", "device.pair.list",
	"device.pair.reject", "device.pair.remove", "device.token.revoke", "exec.approval.get", "exec.approval.list",
	"exec.approval.resolve", "health", "sessions.abort", "sessions.describe", "sessions.list",
	"sessions.messages.subscribe", "sessions.messages.unsubscribe", "sessions.patch", "sessions.preview",
	"sessions.reset", "sessions.send", "sessions.subscribe", "status", "system-event", "system-presence", "usage.cost",
}

// irregular are the definitions that are not named as their method is.
var irregular = map[string]string{
	"agent.identity.get params": "AgentIdentityParams",
	"agent.identity.get result": "AgentIdentityResult",
}

// definition returns what the schema calls a method's parameters or result.
func (s *schema) definition(method, of string) string {
	if d, ok := irregular[method+" "+of]; ok {
		return d
	}
	return s.named(method, strings.ToUpper(of[:1])+of[1:])
}

// call is a method with what it is called with.
type call struct {
	method string
	params any
	parts  []part // of the result
}

// golden is a gateway with something of everything, and a connection that saw
// it come to be.
type golden struct {
	*stand
	*line
	other    *line // another connection that watches all sessions
	t        testing.TB
	approval string // the id of one that waits
	pending  []wire.PairRequest
	paired   string // id of a device, of the last request too
}

const (
	talked  = "agent:main:main"
	aside   = "agent:main:aside"
	waiting = "agent:main:waiting"
)

// newGolden lets a gateway live through a text, a tool call, an abort, an
// error, a question, a reset, a patch and pairings.
func newGolden(t testing.TB) *golden {
	t.Helper()
	s := newStand(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	s.File("notes.txt", "the tide turns at six\n")
	g := &golden{stand: s, line: s.operator(t), other: s.operator(t), t: t}
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
	return g
}

func (g *golden) chat(session, run, text, state string) {
	g.t.Helper()
	g.Must("chat.send", wire.ChatSend{SessionKey: session, Message: text, IdempotencyKey: run}, nil)
	if end := g.Ended(run); end.State != state {
		g.t.Fatalf("%q ended as %s: %s", text, end.State, end.ErrorMessage)
	}
}

// aborted is a run that is stopped in the middle of its answer.
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

// asked is a question that is answered, and one that waits.
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

// devices are some of this machine, which are paired without a question, and
// then ask to be nodes too, which needs an answer.
func (g *golden) devices() {
	g.t.Helper()
	person, node := hello(wire.ScopeRead), hello()
	node.Role, node.Client.Mode, node.Client.ID = wire.RoleNode, wire.ModeNode, "node-host"
	for range 3 {
		d, n := newDevice(g.t), len(g.Frames())
		if _, f := d.Connect(g.t, g.stand, person); !f.OK {
			g.t.Fatalf("a device of this machine: %v", f.Error)
		}
		if _, f := d.Connect(g.t, g.stand, node); f.OK || f.Error.Code != wire.NotPaired {
			g.t.Fatalf("a new role: %s", f.raw)
		}
		var q wire.PairRequest
		if err := json.Unmarshal(g.Event(wire.EventPairRequested, n).Payload, &q); err != nil {
			g.t.Fatal(err)
		}
		g.pending = append(g.pending, q)
		g.paired = d.ID
	}
}

// calls are all methods, in the order in which they are called.
func (g *golden) calls() []call {
	row := []part{{"session", "SessionRow"}, {"sessions[]", "SessionRow"}, {"sessionInfo", "SessionRow"}}
	type m = map[string]any
	return []call{
		{"health", m{}, nil},
		{"status", m{}, nil},
		{"system-presence", m{}, []part{{"[]", "PresenceEntry"}}},
		{"system-event", m{"text": "the door opened"}, nil},
		{"logs.tail", m{"limit": 20}, nil},
		{"agents.list", m{}, nil},
		{"agent.identity.get", m{}, nil},
		{"models.list", m{}, nil},
		{"commands.list", m{}, nil},
		{"tools.catalog", m{}, nil},
		{"usage.cost", m{}, nil},

		{"chat.history", m{"sessionKey": talked, "limit": 50}, row},
		{"chat.send", m{"sessionKey": talked, "message": "echo sent", "idempotencyKey": "sent"}, nil},
		{"agent.wait", m{"runId": "sent", "timeoutMs": 20_000}, nil},
		{"agent", m{"message": "echo hi", "idempotencyKey": "agent", "sessionKey": talked}, nil},
		{"chat.abort", m{"sessionKey": talked}, nil},

		{"sessions.subscribe", m{}, nil},
		{"sessions.list", m{"includeDerivedTitles": true, "includeLastMessage": true}, row},
		{"sessions.describe", m{"key": talked}, row},
		{"sessions.resolve", m{"key": "main"}, nil},
		{"sessions.preview", m{"keys": []string{talked, aside}}, nil},
		{"sessions.create", m{"key": "agent:main:made", "label": "Made"}, nil},
		{"sessions.patch", m{"key": "agent:main:made", "label": "Made anew"}, nil},
		{"sessions.send", m{"key": "agent:main:made", "message": "echo sent", "idempotencyKey": "sent2"}, nil},
		{"sessions.abort", m{"key": "agent:main:made"}, nil},
		{"sessions.messages.subscribe", m{"key": talked, "includeApprovals": true}, []part{{"approvalReplay", "SessionApprovalReplay"}}},
		{"sessions.messages.unsubscribe", m{"key": talked}, nil},
		{"sessions.export", m{"key": talked}, nil},
		{"sessions.reset", m{"key": "agent:main:made"}, nil},
		{"sessions.delete", m{"key": "agent:main:made"}, nil},
		{"sessions.unsubscribe", m{}, nil},

		{"exec.approval.list", m{}, nil},
		{"exec.approval.get", m{"id": g.approval}, nil},
		{"exec.approval.resolve", m{"id": g.approval, "decision": "deny"}, nil},

		{"device.pair.list", m{}, []part{{"pending[]", "DevicePairRequestedEvent"}}},
		{"device.pair.approve", m{"requestId": g.pending[0].ID}, nil},
		{"device.pair.reject", m{"requestId": g.pending[1].ID}, nil},
		{"device.token.rotate", m{"deviceId": g.paired, "role": wire.RoleOperator}, nil},
		{"device.token.revoke", m{"deviceId": g.paired, "role": wire.RoleOperator}, nil},
		{"device.pair.remove", m{"deviceId": g.pending[0].Device}, nil},

		{"backup.create", m{"path": g.State + "/copy.db"}, nil},
	}
}

// TestContract holds all that the gateway says against the published schema.
func TestContract(t *testing.T) {
	t.Parallel()
	s, g := newSchema(t), newGolden(t)
	var h wire.Hello
	greeting := g.Frames()[1]
	if err := json.Unmarshal(greeting.Payload, &h); err != nil {
		t.Fatal(err)
	}
	t.Run("the hello", func(t *testing.T) {
		v, err := decoded(greeting.Payload)
		if err := errors.Join(err, s.Check("HelloOk", v)); err != nil {
			t.Error(err)
		}
	})
	calls := g.calls()
	for _, c := range calls {
		t.Run(c.method, func(t *testing.T) { g.line.t = t; s.checkCall(t, g, c) })
	}
	g.line.t = t
	t.Run("each method that is advertised was called", func(t *testing.T) {
		called := map[string]bool{wire.MethodConnect: true}
		for _, c := range calls {
			called[c.method] = true
		}
		for _, m := range h.Features.Methods {
			if !called[m] {
				t.Errorf("%s was not: add it to the calls", m)
			}
			delete(called, m)
		}
		delete(called, wire.MethodConnect)
		for _, m := range slices.Sorted(maps.Keys(called)) {
			t.Errorf("%s was called and is not advertised", m)
		}
	})
	t.Run("errors", func(t *testing.T) { s.checkErrors(t, g, calls) })
	s.checkEvents(t, g, h.Features.Events)
}

// checkCall calls a method and checks what it is asked and what it answers.
func (s *schema) checkCall(t *testing.T, g *golden, c call) {
	if _, known := s.Methods[c.method]; known != (ours[c.method] == "") {
		t.Errorf("the schema knows the method: %v; it is listed as one that it does not know: %q", known, ours[c.method])
	}
	if d := s.definition(c.method, "params"); d != "" {
		b, err := json.Marshal(c.params)
		if err != nil {
			t.Fatal(err)
		}
		v, err := decoded(b)
		if err := errors.Join(err, s.Check(d, v)); err != nil {
			t.Errorf("the test asks what it may not: %v", err)
		}
	}
	f := g.Ask(c.method, c.params)
	if !f.OK {
		t.Fatalf("refused: %s", f.raw)
	}
	s.checkFrame(t, f, "ResponseFrame")
	v, err := decoded(f.Payload)
	if err != nil {
		t.Fatal(err)
	}
	d := s.definition(c.method, "result")
	without := slices.Contains(resultless, c.method) || ours[c.method] != ""
	switch {
	case d == "" && !without:
		t.Error("the schema does not define its result: name it where those are named")
	case d != "" && without:
		t.Errorf("its result is %s, and it is named as one without", d)
	case d != "":
		err = s.Check(d, v)
	}
	if err := errors.Join(err, s.CheckParts(v, c.parts)); err != nil {
		t.Errorf("%v\n%.2000s", err, f.Payload)
	}
}

func (s *schema) checkFrame(t *testing.T, f frame, definition string) {
	t.Helper()
	v, err := decoded(f.raw)
	if err := errors.Join(err, s.Check(definition, v)); err != nil {
		t.Errorf("%v\n%.2000s", err, f.raw)
	}
}

// checkErrors has each method refuse what it must, and looks at how.
func (s *schema) checkErrors(t *testing.T, g *golden, calls []call) {
	nobody := g.stand.operator(t, wire.ScopePairing)
	refused := func(f frame, definition string) {
		t.Helper()
		s.checkFrame(t, f, "ResponseFrame")
		if f.OK {
			t.Errorf("it is not refused: %.300s", f.raw)
			return
		}
		if definition == "" {
			return
		}
		v, err := decoded(f.Error.Details)
		if err := errors.Join(err, s.Check(definition, v), s.Check("GatewayErrorDetails", v)); err != nil {
			t.Errorf("%v\n%s", err, f.raw)
		}
	}
	refused(g.Ask("no.such.method", wire.None{}), "")
	for _, c := range calls {
		if f := g.Ask(c.method, map[string]any{"no such property": 1}); !strings.HasPrefix(f.Error.Message, "invalid "+c.method+" params: ") {
			t.Errorf("%s with a wrong property: %s", c.method, f.raw)
		} else {
			refused(f, "")
		}
		if strings.HasPrefix(c.method, "device.") {
			continue
		}
		if f := nobody.Ask(c.method, c.params); f.OK || f.Error.Code == wire.Forbidden {
			refused(f, "MissingScopeErrorDetails")
		}
	}
	refused(g.Ask("device.pair.approve", wire.DeviceRequestID{ID: "none"}), "")
	refused(g.Ask("chat.send", map[string]any{"sessionKey": "agent:none:main", "message": "x", "idempotencyKey": "x"}), "")
	refused(g.Ask("exec.approval.resolve", map[string]any{"id": "none", "decision": "deny"}), "")
}

// events are the definitions of what events carry.
func events() map[string][]part {
	row := []part{{"session", "SessionRow"}}
	return map[string][]part{
		wire.EventChallenge:         nil,
		wire.EventTick:              {{"", "TickEvent"}},
		wire.EventShutdown:          {{"", "ShutdownEvent"}},
		wire.EventChat:              {{"", "ChatEvent"}},
		wire.EventAgent:             {{"", "AgentEvent"}},
		wire.EventSessionMessage:    row,
		wire.EventSessionTool:       {{"", "AgentEvent"}},
		wire.EventSessionsChanged:   row,
		wire.EventPresence:          {{"presence[]", "PresenceEntry"}},
		wire.EventHealth:            nil,
		wire.EventApprovalRequested: nil,
		wire.EventApprovalResolved:  nil,
		wire.EventPairRequested:     {{"", "DevicePairRequestedEvent"}},
		wire.EventPairResolved:      {{"", "DevicePairResolvedEvent"}},
	}
}

// checkEvents looks at each event that came, lets those come that have not,
// and stops the gateway for the last of them.
func (s *schema) checkEvents(t *testing.T, g *golden, advertised []string) {
	g.Event(wire.EventTick, 0)
	g.Event(wire.EventHealth, 0)
	g.stand.Stop()
	g.Event(wire.EventShutdown, 0)
	seen, defined := map[string]bool{}, events()
	told := map[string]bool{} // one of a kind is told
	for _, f := range append(g.Frames(), g.other.Frames()...) {
		if f.Event == "" {
			continue
		}
		parts, known := defined[f.Event]
		if !known {
			t.Errorf("event %s: add it to the events", f.Event)
			continue
		}
		seen[f.Event] = true
		v, err := decoded(f.raw)
		err = errors.Join(err, s.Check("EventFrame", v))
		payload, _ := v.(map[string]any)
		if err := errors.Join(err, s.CheckParts(payload["payload"], parts)); err != nil && !told[fmt.Sprint(err)] {
			told[fmt.Sprint(err)] = true
			t.Errorf("event %s: %v\n%.1500s", f.Event, err, f.raw)
		}
	}
	for _, name := range advertised {
		if !seen[name] {
			t.Errorf("event %s is advertised and did not come", name)
		}
	}
}
