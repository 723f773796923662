package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// observe converts a bus event into frames. It runs on the publisher's
// goroutine and never blocks.
func (s *Server) observe(e chela.Event) {
	switch e.Stream {
	case chela.StreamAssistant, chela.StreamThinking, chela.StreamLifecycle, chela.StreamTool, chela.StreamNotice:
		s.streams.forEvent(e).observe(e)
	case chela.StreamPlan:
		s.plan(e)
	case chela.StreamMessage:
		s.message(e)
	case chela.StreamCommand:
		s.streams.terminal(e.Run, func() { s.chat(commandChat(e)) })
	case chela.StreamApproval:
		s.approval(e)
	case chela.StreamOperation:
		s.operation(e)
	case chela.StreamCron:
		if c, ok := e.Data.(job.Event); ok {
			s.broadcast(readers, false, wire.EventCron, func() any { return wireview.CronEvent(c) })
		}
	case chela.StreamHeartbeat:
		if r, ok := e.Data.(heartbeat.Result); ok {
			s.broadcast(everyone, false, wire.EventHeartbeat, func() any { return wireview.Heartbeat(r) })
		}
	case chela.StreamCanvas:
		if c, ok := e.Data.(canvas.Changed); ok {
			s.broadcast(followers(e.Session), false, wire.EventCanvas, func() any {
				return wire.CanvasView{SessionKey: string(e.Session), Kind: string(c.Kind), Page: c.Page, Version: c.Version}
			})
		}
	case chela.StreamSession:
		s.session(e)
	}
	// A subagent is a task, and its run and its session are changes of it.
	switch e.Stream {
	case chela.StreamTask, chela.StreamSession:
		s.tasks.add(e)
	case chela.StreamLifecycle:
		if e.Phase != chela.PhaseModel {
			s.tasks.add(e)
		}
	}
}

// audience selects the subscribers that receive an event. The replay log keeps it with the event,
// so that it may be called later, with the subscriber of a connection that has ended. It is
// called with Server.mu held and must not take another lock than that of the subscriber.
type audience func(*subscriber) bool

func everyone(*subscriber) bool    { return true }
func readers(v *subscriber) bool   { return v.who.May(chela.ScopeRead) }
func approvers(v *subscriber) bool { return v.who.May(chela.ScopeApprovals) }

// pluginApprovers selects the approvers that show approvals of plug-ins only.
func pluginApprovers(v *subscriber) bool {
	return approvers(v) && slices.Contains(v.caps, wire.CapPluginApprovals)
}

// followers selects the readers that may see the answers of a session: all,
// except that those with CapSessionScoped must have subscribed to it.
func followers(key chela.SessionKey) audience {
	return func(v *subscriber) bool {
		return readers(v) && (!slices.Contains(v.caps, wire.CapSessionScoped) || v.watches(key))
	}
}

// stepFollowers selects the followers of the session of a step of a run whose
// protocol has such a step.
func stepFollowers(e chela.Event) audience {
	follows := followers(e.Session)
	if inProtocol3(e) {
		return follows
	}
	return func(v *subscriber) bool { return v.proto == wire.Version && follows(v) }
}

// watchers selects the readers that subscribed to the session's messages and
// changes.
func watchers(key chela.SessionKey) audience {
	return func(v *subscriber) bool { return readers(v) && v.watches(key) }
}

// broadcast queues an event for its audience. It is encoded once for each
// protocol version in use. Unless it is droppable, it is retained for replay.
func (s *Server) broadcast(to audience, drop bool, name string, payload func() any) {
	var k *retention
	if !drop {
		k = new(retention)
	}
	s.publish(to, drop, func(proto int) frame { return encode(name, forProtocol(payload(), proto)) }, k)
}

// broadcastText queues a delta of streamed text. For replay it retains an event
// with the complete text, which replaces the one in slot.
func (s *Server) broadcastText(slot **retained, e chela.Event, name string, payload func(all bool) any) {
	k := &retention{slot: slot, bytes: 2 * len(e.Text), encode: func() frame { return encode(name, payload(true)) }}
	s.publish(stepFollowers(e), true, func(proto int) frame { return encode(name, forProtocol(payload(false), proto)) }, k)
}

// forProtocol converts a payload to a protocol version.
func forProtocol(payload any, proto int) any {
	if proto < wire.Version {
		return downgrade(payload)
	}
	return payload
}

// broadcastState queues an event with the gateway's state for readers. It is
// not retained, because the hello contains the state.
func (s *Server) broadcastState(name string, v wire.StateVersion, payload any) {
	s.publish(readers, true, func(int) frame {
		f := encode(name, payload)
		f.head = append(append(f.head, `,"stateVersion":`...), mustEncode(v)...)
		return f
	}, nil)
}

// broadcastTransient queues an event for the clients that are connected now.
func (s *Server) broadcastTransient(drop bool, name string, payload any) {
	s.publish(everyone, drop, func(int) frame { return encode(name, payload) }, nil)
}

// retention says how to retain an event for replay. The zero value retains the
// event itself.
type retention struct {
	slot   **retained   // where the event is that it replaces, and where it is stored; nil: none
	encode func() frame // encodes what is replayed; nil: the event as it was sent
	bytes  int          // about the size of what encode returns
}

// publish queues the frames that encode returns for each protocol version.
// Connections get events in the order of the replay log. drop marks frames that a full send queue
// may lose. k is how the event is retained; nil: it is not.
func (s *Server) publish(to audience, drop bool, make func(proto int) frame, k *retention) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pos int64
	if k != nil && s.replay.needed(to, s.conns) {
		s.replay.pos++
		pos = s.replay.pos
	}
	var frames [wire.Version - wire.Oldest + 1]frame
	for _, c := range s.conns {
		if !to(c.subscriber) {
			continue
		}
		f := &frames[c.proto-wire.Oldest]
		if f.head == nil {
			*f = make(c.proto)
			f.drop = drop
		}
		at := pos
		if !c.resumable { // it would not know what a cursor is
			at = 0
		}
		c.push(*f, true, at)
	}
	if pos > 0 {
		s.retain(to, k, frames[len(frames)-1], make) // only clients of the current protocol resume
	}
}

// retain adds an event to the replay log. now is the encoded
// event, if it was sent to anyone.
func (s *Server) retain(to audience, k *retention, now frame, make func(proto int) frame) {
	e := &retained{to: to, encode: k.encode, bytes: k.bytes}
	if e.encode == nil {
		if now.head == nil {
			now = make(wire.Version)
		}
		e.encode, e.bytes = func() frame { return now }, len(now.head)
	}
	if k.slot == nil {
		s.replay.add(e, nil)
		return
	}
	s.replay.add(e, *k.slot)
	*k.slot = e
}

// chat sends the chat event that ends a run.
func (s *Server) chat(p wire.Chat) {
	s.broadcast(followers(chela.SessionKey(p.SessionKey)), false, wire.EventChat, func() any { return p })
}

// agent sends a step of a run.
func (s *Server) agent(e chela.Event, drop bool, data any) {
	s.broadcast(stepFollowers(e), drop, wire.EventAgent, func() any { return agentEvent(e, data) })
}

// tool sends a step of a tool to the connection that started the run and to
// subscribers of all sessions. No client gets both events, since a tool is shown once in each.
func (s *Server) tool(e chela.Event) {
	drop := e.Phase == chela.PhaseUpdate
	step := func() any { return agentEvent(e, toolStep(e.Tool, e.Phase)) }
	s.broadcast(func(v *subscriber) bool { return readers(v) && v.ownsRun(e.Run) }, drop, wire.EventAgent, step)
	s.broadcast(func(v *subscriber) bool { return readers(v) && !v.ownsRun(e.Run) && v.watchesAll() }, drop,
		wire.EventSessionTool, step)
}

// plan sends the new plan of a session.
func (s *Server) plan(e chela.Event) {
	p, ok := e.Data.(plan.Plan)
	if !ok {
		return
	}
	s.streams.flushRun(e.Run)
	if e.Run != "" { // otherwise a person changed it, and there is no run to which the event belongs
		s.agent(e, false, wireview.PlanOf(p))
	}
	s.broadcast(followers(e.Session), false, wire.EventProgressChanged, func() any {
		c := wire.ProgressChanged{SessionKey: string(e.Session)}
		if n := wireview.Revision(p); n > 0 {
			c.Revision = &n
		}
		return c
	})
}

// message sends a stored message to the session's subscribers. The text that is still to be
// merged is sent first: it belongs before the message that completes it. The row in the event is
// the one last sent, since the store is not read on the publisher's goroutine.
func (s *Server) message(e chela.Event) {
	entry, ok := e.Data.(session.Entry)
	if !ok || !s.hasAudience(watchers(e.Session)) {
		return
	}
	m, ok := wireview.Message(s.o.Show.Entry(entry))
	if !ok {
		return
	}
	s.streams.flushRun(e.Run)
	s.broadcast(watchers(e.Session), false, wire.EventSessionMessage, func() any {
		row := s.changes.cachedRow(e.Session, e.Run, s.streams.active(e.Run))
		out := wire.SessionMessage{
			SessionKey: string(e.Session), SessionID: e.Transcript, AgentID: string(e.Session.Agent()),
			Message: m, MessageID: entry.ID, Seq: entry.Seq, Row: row, Session: row,
		}
		if row != nil {
			out.UpdatedAt = row.UpdatedAt
		}
		return out
	})
}

// approval sends a pending or resolved approval.
func (s *Server) approval(e chela.Event) {
	r, ok := e.Data.(approval.Request)
	if !ok {
		return
	}
	if e.Phase == chela.PhaseRequested {
		s.broadcast(approvers, false, wire.EventApprovalRequested, func() any { return wireview.Approval(r) })
		s.broadcast(pluginApprovers, false, wire.EventPluginApprovalRequested,
			func() any { return wireview.PluginApproval(r) })
		return
	}
	s.broadcast(approvers, false, wire.EventApprovalResolved, func() any { return wireview.Resolved(r) })
	s.broadcast(pluginApprovers, false, wire.EventPluginApprovalResolved, func() any { return wireview.Resolved(r) })
}

// operation sends an operation on a session other than a run.
func (s *Server) operation(e chela.Event) {
	op, ok := e.Data.(chela.Operation)
	if !ok {
		return
	}
	s.broadcast(watchers(e.Session), false, wire.EventSessionOperation, func() any {
		return wire.SessionOperation{
			ID: op.ID, Operation: op.Name, Completed: op.Completed, Reason: op.Reason,
			Phase: string(e.Phase), SessionKey: string(e.Session), AgentID: string(e.Session.Agent()), Time: wire.At(e.Time),
		}
	})
}

// session sends a change of a session.
func (s *Server) session(e chela.Event) {
	// Another run took the message, so that none has the id that its sender got as the
	// answer to chat.send. The sender waits for the end of that id.
	if e.Phase == chela.PhaseAbsorbed {
		s.streams.terminal(e.Run, func() { s.chat(emptyFinal(e)) })
	}
	s.changes.add(change{key: e.Session, reason: changeReason(e.Phase), run: e.Run, time: e.Time})
}

// changeReason returns the protocol's reason for a phase of the stream session.
func changeReason(p chela.Phase) string {
	switch p {
	case chela.PhaseCreated:
		return wire.ChangeCreate
	case chela.PhaseReset:
		return wire.ChangeReset
	case chela.PhasePatched:
		return wire.ChangePatch
	case chela.PhaseDeleted:
		return wire.ChangeDelete
	case chela.PhaseCompacted:
		return wire.ChangeCompact
	case chela.PhaseQueued:
		return wire.ChangeSend
	case chela.PhaseAbsorbed:
		return wire.ChangeSettled
	}
	return string(p)
}

func agentEvent(e chela.Event, data any) wire.Agent {
	return wire.Agent{
		RunID: string(e.Run), SessionKey: string(e.Session), AgentID: string(e.Session.Agent()),
		Stream: string(e.Stream), Data: mustEncode(data), Seq: e.Seq, Time: wire.At(e.Time),
		Heartbeat: heartbeat.IsRun(e.Run),
	}
}

func chatEvent(e chela.Event, state string) wire.Chat {
	return wire.Chat{
		RunID:      string(e.Run),
		SessionKey: string(e.Session),
		AgentID:    string(e.Session.Agent()),
		Seq:        max(e.Seq, 1),
		State:      state,
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

// endChat returns the chat event that ends a run; shown is the text sent so
// far.
func endChat(e chela.Event, shown string) wire.Chat {
	end := endOf(e)
	switch end.Outcome {
	case chela.OutcomeOK:
		p := chatEvent(e, wire.StateFinal)
		p.Stop = cmp.Or(end.Stop, "stop")
		if end.Text != "" && !end.Silent {
			p.Message = answer(e, end.Text)
			p.Message.Meta.Footer = end.Footer
		}
		return p
	case chela.OutcomeAborted, chela.OutcomeSuperseded:
		p := chatEvent(e, wire.StateAborted)
		p.Stop = cmp.Or(end.Stop, stopReason(end.Outcome))
		if text := cmp.Or(end.Text, shown); text != "" {
			p.Message = answer(e, text)
		}
		return p
	}
	p := chatEvent(e, wire.StateError)
	p.ErrorMessage, p.Stop = cmp.Or(end.Error, e.Text), end.Stop
	if end.Outcome == chela.OutcomeTimeout {
		p.ErrorKind = wire.ErrorKindTimeout
	}
	if provider, model, ok := strings.Cut(end.Model, "/"); ok && end.Stop != chela.StopLimit {
		p.ErrorDetail = &wire.ErrorDetail{Provider: provider, Model: model}
	}
	return p
}

// stopReason returns why a run was stopped: by a person, or by a newer message.
func stopReason(o chela.Outcome) string {
	if o == chela.OutcomeSuperseded {
		return wire.StopSuperseded
	}
	return "rpc"
}

// endOf returns the outcome of a run. An event without one is an error unless
// its phase is end.
func endOf(e chela.Event) chela.EndEvent {
	if e.End != nil {
		return *e.End
	}
	if e.Phase == chela.PhaseEnd {
		return chela.EndEvent{Outcome: chela.OutcomeOK, Text: e.Text}
	}
	return chela.EndEvent{Outcome: chela.OutcomeError, Error: e.Text}
}

// lifecycle returns the data of a lifecycle event.
func lifecycle(e chela.Event) wire.Lifecycle {
	l := wire.Lifecycle{Phase: string(e.Phase)}
	switch e.Phase {
	case chela.PhaseStart, chela.PhaseResume:
		l.StartedAt = wire.At(e.Time)
	case chela.PhaseModel:
		if ref, ok := e.Data.(chela.ModelRef); ok {
			l.Provider, l.Model, _ = strings.Cut(string(ref), "/")
		}
	case chela.PhaseEnd, chela.PhaseError:
		end := endOf(e)
		l.StartedAt, l.EndedAt, l.Error = wire.At(end.Started), wire.At(end.Ended), end.Error
		l.Provider, l.Model, _ = strings.Cut(end.Model, "/")
		l.Stop = end.Stop
		switch end.Outcome {
		case chela.OutcomeOK:
			l.Stop = cmp.Or(l.Stop, "stop")
			l.Reply = wireview.Reply(end.Text, end.Silent)
		case chela.OutcomeAborted, chela.OutcomeSuperseded:
			l.Aborted, l.Status, l.Stop = true, "cancelled", cmp.Or(l.Stop, stopReason(end.Outcome))
		}
	}
	return l
}

func toolStep(t *chela.ToolEvent, phase chela.Phase) wire.ToolStep {
	if t == nil {
		return wire.ToolStep{Phase: string(phase)}
	}
	step := wire.ToolStep{Phase: string(phase), Name: t.Name, CallID: t.ID, Meta: t.Label}
	switch phase {
	case chela.PhaseStart:
		step.Args = t.Args
	case chela.PhaseUpdate:
		step.Partial = output(t.Output, nil)
	case chela.PhaseResult:
		step.Args = t.Args // set only if changed since the start
		step.Result, step.IsError, step.Ms = output(t.Output, t.Details), t.IsError, t.Duration.Milliseconds()
	}
	return step
}

func output(text string, details json.RawMessage) *wire.ToolOutput {
	return &wire.ToolOutput{Content: wire.TextContent(text), Details: details}
}
