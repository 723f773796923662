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

// TestContract validates all output of the gateway against the published
// schema.
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
	t.Run("each advertised method was called", func(t *testing.T) {
		called := map[string]bool{wire.MethodConnect: true}
		for _, c := range calls {
			called[c.method] = true
		}
		for _, m := range h.Features.Methods {
			if !called[m] {
				t.Errorf("%s was not called: add it to the calls", m)
			}
			delete(called, m)
		}
		delete(called, wire.MethodConnect)
		for _, m := range slices.Sorted(maps.Keys(called)) {
			t.Errorf("%s was called but is not advertised", m)
		}
	})
	t.Run("errors", func(t *testing.T) { s.checkErrors(t, g, calls) })
	s.checkEvents(t, g, h.Features.Events)
}

// checkCall calls a method and validates its parameters and its result.
func (s *schema) checkCall(t *testing.T, g *golden, c call) {
	if _, known := s.Methods[c.method]; known != (ours[c.method] == "") {
		t.Errorf("the schema knows the method: %v; but it is listed in ours: %q", known, ours[c.method])
	}
	if d := s.definition(c.method, "params"); d != "" {
		b, err := json.Marshal(c.params)
		if err != nil {
			t.Fatal(err)
		}
		v, err := decoded(b)
		if err := errors.Join(err, s.Check(d, v)); err != nil {
			t.Errorf("the parameters of the test are invalid: %v", err)
		}
	}
	if c.method == wire.MethodNodeInvoke {
		done := make(chan struct{})
		go func() { defer close(done); g.snap() }()
		defer func() { <-done }()
	}
	f := g.by(c.method).Ask(c.method, c.params)
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
		t.Error("the schema does not define the result: add the method to resultless")
	case d != "" && without:
		t.Errorf("the result is %s, but the method is in resultless", d)
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

// checkErrors has each method reject invalid parameters and checks the errors.
func (s *schema) checkErrors(t *testing.T, g *golden, calls []call) {
	nobody, reads := g.gateway.connect(t, hello()), reading(t)
	refused := func(f frame, definition string) {
		t.Helper()
		s.checkFrame(t, f, "ResponseFrame")
		if f.OK {
			t.Errorf("not rejected: %.300s", f.raw)
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
		caller, missing := g.line, "MissingScopeErrorDetails"
		if forNodes(c.method) {
			caller, missing = g.by(c.method), ""
		}
		f := caller.Ask(c.method, map[string]any{"no such property": 1})
		unknown := f.Error != nil && strings.HasPrefix(f.Error.Message, "invalid "+c.method+" params: ") &&
			strings.Contains(f.Error.Message, "no such property")
		switch {
		case unknown == reads[c.method]:
			t.Errorf("%s with an unknown property: %s", c.method, f.raw)
		case unknown:
			refused(f, "")
		}
		refused(nobody.Ask(c.method, c.params), missing)
	}
	refused(g.Ask("device.pair.approve", wire.DeviceRequestID{ID: "none"}), "")
	refused(g.Ask("chat.send", map[string]any{"sessionKey": "agent:none:main", "message": "x", "idempotencyKey": "x"}), "")
	refused(g.Ask("exec.approval.resolve", map[string]any{"id": "none", "decision": "deny"}), "")
}

// checkEvents validates each event that arrived, triggers the missing ones, and
// stops the gateway for the last one.
func (s *schema) checkEvents(t *testing.T, g *golden, advertised []string) {
	g.Event(wire.EventTick, 0)
	g.Event(wire.EventHealth, 0)
	g.gateway.Stop()
	g.Event(wire.EventShutdown, 0)
	seen, defined := map[string]bool{}, events()
	told := map[string]bool{} // report one of each kind
	for _, f := range append(g.Frames(), g.other.Frames()...) {
		if f.Event == "" {
			s.checkFrame(t, f, "ResponseFrame")
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
			t.Errorf("event %s is advertised but did not arrive", name)
		}
	}
}
