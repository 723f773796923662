package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/wire"
)

// observe turns what the bus publishes into frames. It is called in the
// publisher's goroutine and never waits. Who publishes goes on with a run: only
// its end it writes itself.
func (s *Server) observe(e chela.Event) {
	goesOn := e.Phase != chela.PhaseEnd && e.Phase != chela.PhaseError
	s.together(goesOn, func() { s.show(e) })
}

func (s *Server) show(e chela.Event) {
	switch e.Stream {
	case chela.StreamAssistant, chela.StreamThinking, chela.StreamLifecycle, chela.StreamTool, chela.StreamNotice:
		s.streams.of(e).observe(e)
	case chela.StreamMessage:
		s.message(e)
	case chela.StreamCommand:
		s.streams.terminal(e.Run, func() { s.chat(commandChat(e)) })
	case chela.StreamApproval:
		s.approval(e)
	case chela.StreamOperation:
		s.operation(e)
	case chela.StreamSession:
		s.session(e)
	}
}

// Who an event is for.
type audience func(*viewer) bool

func everybody(*viewer) bool  { return true }
func readers(v *viewer) bool  { return v.who.May(chela.ScopeRead) }
func deciders(v *viewer) bool { return v.who.May(chela.ScopeApprovals) }

// followers are who may see what is said in the session: all readers, but of
// those that want only sessions they subscribed to only these.
func followers(key chela.SessionKey) audience {
	return func(v *viewer) bool {
		return readers(v) && (!slices.Contains(v.caps, wire.CapSessionScoped) || v.watches(key))
	}
}

// watchers are who asked for the session's messages and changes.
func watchers(key chela.SessionKey) audience {
	return func(v *viewer) bool { return readers(v) && v.watches(key) }
}

// broadcast queues an event for everyone that it is for. It is encoded for the
// first one of each protocol version, and not at all when there is none. One
// that may not be left out is kept for clients that come back.
func (s *Server) broadcast(to audience, drop bool, name string, payload func() any) {
	var k *keeping
	if !drop {
		k = new(keeping)
	}
	s.spread(to, drop, func(proto int) frame { return encode(name, suited(payload(), proto)) }, k)
}

// grow queues a part of a text that grows. For clients that come back the
// event with all of the text is kept, in the place of what is in slot.
func (s *Server) grow(slot **kept, e chela.Event, name string, payload func(all bool) any) {
	k := &keeping{slot: slot, bytes: 2 * len(e.Text), make: func() frame { return encode(name, payload(true)) }}
	s.spread(followers(e.Session), true, func(proto int) frame { return encode(name, suited(payload(false), proto)) }, k)
}

// suited returns a payload for a protocol version.
func suited(payload any, proto int) any {
	if proto < wire.Version {
		return older(payload)
	}
	return payload
}

// broadcastState queues an event that says how the gateway is, for readers.
// Clients that come back are told in their hello.
func (s *Server) broadcastState(name string, v wire.StateVersion, payload any) {
	s.spread(readers, true, func(int) frame {
		f := encode(name, payload)
		f.head = append(append(f.head, `,"stateVersion":`...), raw(v)...)
		return f
	}, nil)
}

// passing queues an event that says something to those only who are there now.
func (s *Server) passing(drop bool, name string, payload any) {
	s.spread(everybody, drop, func(int) frame { return encode(name, payload) }, nil)
}

// keeping says how an event is kept. The zero value keeps the event itself.
type keeping struct {
	slot  **kept       // of what it takes the place of
	make  func() frame // instead of the event
	bytes int
}

// spread sends what make returns for a protocol version. Connections get events
// in the order in which they are kept.
func (s *Server) spread(to audience, drop bool, make func(proto int) frame, k *keeping) {
	s.flush(s.queue(to, drop, make, k), false)
}

// queue queues an event and returns the connections that are to be written to
// now.
func (s *Server) queue(to audience, drop bool, make func(proto int) frame, k *keeping) []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pos int64
	if k != nil && s.record.wanted(to, s.conns) {
		s.record.pos++
		pos = s.record.pos
	}
	var frames [wire.Version - wire.Oldest + 1]frame
	for _, c := range s.conns {
		if !to(c.viewer) {
			continue
		}
		f := &frames[c.proto-wire.Oldest]
		if f.head == nil {
			*f = make(c.proto)
			f.drop = drop
		}
		at := pos
		if !c.marks {
			at = 0
		}
		if c.push(*f, true, at) {
			s.due = append(s.due, c)
		}
	}
	if pos > 0 {
		s.keep(to, k, frames[len(frames)-1], make)
	}
	if s.joining > 0 {
		return nil // who sends together does it
	}
	return s.dueLocked()
}

// dueLocked takes the connections for which something was queued.
func (s *Server) dueLocked() []*conn {
	due := s.due
	s.due = nil
	return due
}

// together has the events that f sends leave together, when all are known. Who
// is busy has another goroutine write them.
func (s *Server) together(busy bool, f func()) {
	s.mu.Lock()
	s.joining++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.joining--
		due := s.dueLocked()
		s.mu.Unlock()
		s.flush(due, busy)
	}()
	f()
}

// few is how many connections who publishes writes to.
const few = 4

// flush sends what is queued for the connections. It never waits.
func (s *Server) flush(due []*conn, busy bool) {
	if busy && len(due) > 0 || len(due) > few {
		s.workers.Go(func() { flush(due) })
		return
	}
	flush(due)
}

func flush(conns []*conn) {
	for _, c := range conns {
		c.flush()
	}
}

// keep puts an event into the record. now is the event, when somebody got it.
func (s *Server) keep(to audience, k *keeping, now frame, make func(proto int) frame) {
	e := &kept{to: to, make: k.make, bytes: k.bytes}
	if e.make == nil {
		if now.head == nil {
			now = make(wire.Version)
		}
		e.make, e.bytes = func() frame { return now }, len(now.head)
	}
	if k.slot == nil {
		s.record.add(e, nil)
		return
	}
	s.record.add(e, *k.slot)
	*k.slot = e
}

// chat sends a chat event that ends a run to those that follow its session.
func (s *Server) chat(p wire.Chat) {
	s.broadcast(followers(chela.SessionKey(p.SessionKey)), false, wire.EventChat, func() any { return p })
}

// agent sends a step of a run.
func (s *Server) agent(e chela.Event, drop bool, data any) {
	s.broadcast(followers(e.Session), drop, wire.EventAgent, func() any { return agentEvent(e, data) })
}

// tool sends what a tool does to the connection that started the run, and to
// those that watch all sessions.
func (s *Server) tool(e chela.Event) {
	drop := e.Phase == chela.PhaseUpdate
	step := func() any { return agentEvent(e, toolStep(e.Tool, e.Phase)) }
	s.broadcast(func(v *viewer) bool { return readers(v) && v.owns(e.Run) }, drop, wire.EventAgent, step)
	s.broadcast(func(v *viewer) bool { return readers(v) && !v.owns(e.Run) && v.watchesAll() }, drop, wire.EventSessionTool, step)
}

// message sends a stored message to those who asked for it.
func (s *Server) message(e chela.Event) {
	entry, ok := e.Data.(session.Entry)
	if !ok || !s.anyone(watchers(e.Session)) {
		return
	}
	m, ok := shape.Message(s.o.Show.Entry(entry))
	if !ok {
		return
	}
	s.streams.settle(e.Run)
	s.broadcast(watchers(e.Session), false, wire.EventSessionMessage, func() any {
		row := s.changes.known(e.Session, e.Run, s.streams.goesOn(e.Run))
		return wire.SessionMessage{
			SessionKey: string(e.Session), SessionID: e.Transcript, AgentID: string(e.Session.Agent()),
			Message: m, MessageID: entry.ID, Seq: entry.Seq, UpdatedAt: wire.At(e.Time), Row: row, Session: row,
		}
	})
}

// approval sends a request for a decision, or the decision.
func (s *Server) approval(e chela.Event) {
	r, ok := e.Data.(approval.Request)
	if !ok {
		return
	}
	if e.Phase == chela.PhaseRequested {
		s.broadcast(deciders, false, wire.EventApprovalRequested, func() any { return shape.Approval(r) })
		return
	}
	s.broadcast(deciders, false, wire.EventApprovalResolved, func() any { return shape.Resolved(r) })
}

// operation sends what is done with a session beside its runs.
func (s *Server) operation(e chela.Event) {
	op, ok := e.Data.(wire.SessionOperation)
	if !ok {
		return
	}
	op.Phase, op.SessionKey, op.AgentID, op.Time = e.Phase, string(e.Session), string(e.Session.Agent()), wire.At(e.Time)
	s.broadcast(watchers(e.Session), false, wire.EventSessionOperation, func() any { return op })
}

// session sends a change of a session.
func (s *Server) session(e chela.Event) {
	reason, known := reasons[e.Phase]
	if e.Phase == chela.PhaseAbsorbed {
		s.streams.terminal(e.Run, func() { s.chat(emptyFinal(e)) })
		reason, known = "agent.input.settled", true
	}
	if !known {
		reason = e.Phase
	}
	s.changes.add(change{key: e.Session, reason: reason, run: e.Run, time: e.Time})
}

// reasons are phases of stream session in the words of the protocol.
var reasons = map[string]string{
	"created": "create", "compacted": "compact", "reset": "reset", "patched": "patch", "deleted": "delete", "queued": "send",
}

func agentEvent(e chela.Event, data any) wire.Agent {
	return wire.Agent{
		RunID: string(e.Run), SessionKey: string(e.Session), AgentID: string(e.Session.Agent()),
		Stream: string(e.Stream), Data: raw(data), Seq: e.Seq, Time: wire.At(e.Time),
	}
}

func chatEvent(e chela.Event, state string) wire.Chat {
	return wire.Chat{
		RunID: string(e.Run), SessionKey: string(e.Session), AgentID: string(e.Session.Agent()), Seq: max(e.Seq, 1), State: state,
	}
}

func answer(e chela.Event, text string) *wire.Message {
	return &wire.Message{Role: wire.RoleAssistant, Content: wire.TextContent(text), Timestamp: wire.At(e.Time)}
}

func emptyFinal(e chela.Event) wire.Chat { return chatEvent(e, wire.StateFinal) }

func commandChat(e chela.Event) wire.Chat {
	p := chatEvent(e, wire.StateFinal)
	p.Stop = "stop"
	if e.Text != "" {
		p.Message = answer(e, e.Text)
		p.Message.Meta.Kind = wire.KindCommand
	}
	return p
}

// endChat is the chat event that ends a run of which shown was seen.
func endChat(e chela.Event, shown string) wire.Chat {
	end := endOf(e)
	switch end.Outcome {
	case "ok":
		p := chatEvent(e, wire.StateFinal)
		p.Stop = cmp.Or(end.Stop, "stop")
		if end.Text != "" && !end.Silent {
			p.Message = answer(e, end.Text)
			p.Message.Meta.Footer = end.Footer
		}
		return p
	case "aborted", "superseded":
		p := chatEvent(e, wire.StateAborted)
		p.Stop = cmp.Or(end.Stop, "rpc")
		if text := cmp.Or(end.Text, shown); text != "" {
			p.Message = answer(e, text)
		}
		return p
	}
	p := chatEvent(e, wire.StateError)
	p.ErrorMessage, p.Stop = cmp.Or(end.Error, e.Text), end.Stop
	if end.Outcome == "timeout" {
		p.ErrorKind = "timeout"
	}
	if provider, model, ok := strings.Cut(end.Model, "/"); ok && end.Stop != chela.StopLimit {
		p.ErrorDetail = &wire.ErrorDetail{Provider: provider, Model: model}
	}
	return p
}

// endOf returns how a run ended; an end that says nothing is an error.
func endOf(e chela.Event) chela.EndEvent {
	if e.End != nil {
		return *e.End
	}
	if e.Phase == chela.PhaseEnd {
		return chela.EndEvent{Outcome: "ok", Text: e.Text}
	}
	return chela.EndEvent{Outcome: "error", Error: e.Text}
}

// lifecycle is the data of a lifecycle event.
func lifecycle(e chela.Event) wire.Lifecycle {
	l := wire.Lifecycle{Phase: e.Phase}
	switch e.Phase {
	case chela.PhaseStart, chela.PhaseResume:
		l.StartedAt = wire.At(e.Time)
	case chela.PhaseModel:
		if ref, ok := e.Data.(string); ok {
			l.Provider, l.Model, _ = strings.Cut(ref, "/")
		}
	case chela.PhaseEnd, chela.PhaseError:
		end := endOf(e)
		l.StartedAt, l.EndedAt, l.Error = wire.At(end.Started), wire.At(end.Ended), end.Error
		l.Provider, l.Model, _ = strings.Cut(end.Model, "/")
		l.Stop = end.Stop
		switch end.Outcome {
		case "ok":
			l.Stop = cmp.Or(l.Stop, "stop")
			l.Reply = shape.Reply(end.Text, end.Silent)
		case "aborted", "superseded":
			l.Aborted, l.Status, l.Stop = true, "cancelled", cmp.Or(l.Stop, "rpc")
		}
	}
	return l
}

func toolStep(t *chela.ToolEvent, phase string) wire.ToolStep {
	if t == nil {
		return wire.ToolStep{Phase: phase}
	}
	step := wire.ToolStep{Phase: phase, Name: t.Name, CallID: t.ID, Meta: t.Label}
	switch phase {
	case chela.PhaseStart:
		step.Args = t.Args
	case chela.PhaseUpdate:
		step.Partial = output(t.Output, nil)
	case chela.PhaseResult:
		step.Args = t.Args // none, unless they are others than on start
		step.Result, step.IsError, step.Ms = output(t.Output, t.Details), t.IsError, t.Duration.Milliseconds()
	}
	return step
}

func output(text string, details json.RawMessage) *wire.ToolOutput {
	return &wire.ToolOutput{Content: wire.TextContent(text), Details: details}
}
