package tui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// Messages with the results of calls, and from the connection.
type (
	// attached is the state of the session on the gateway.
	attached struct {
		history   wire.History
		subagents []wire.Task // those that have not ended
		commands  []wire.Command
		approvals []wire.Approval
		err       error
	}
	// events are events from the gateway.
	events struct {
		list  []wire.Event
		ended bool
	}
	// sent is the result of sending a message.
	sent struct {
		run string
		err error
	}
	// resolved is the result of sending a decision.
	resolved struct {
		id  string
		err error
	}
	// failed is the error of a call.
	failed struct{ err error }
)

// callTimeout limits calls that do not wait for a run.
const callTimeout = 15 * time.Second

// call returns a command that calls a method and passes its error to done.
func (s *screen) call(method string, params any, done func(error) tea.Msg) tea.Cmd {
	c := s.client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		return done(c.Call(ctx, method, params, nil))
	}
}

// attach returns a command that loads the state of the session.
//
// The subscription comes first, so that nothing falls between the history and the events. What is
// in both is recognized by its sequence number, and a question by its id.
func (s *screen) attach() tea.Cmd {
	session, c := s.feed.Session, s.client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		var a attached
		var cs wire.CommandsList
		a.err = errors.Join(
			c.Repeat(ctx, wire.MethodSessionsSubscribe, wire.None{}, nil),
			c.Repeat(ctx, wire.MethodCommandsList, wire.CommandsGet{SessionKey: session}, &cs),
		)
		discardEvents(c) // the history contains them
		if a.err == nil {
			a.err = c.Repeat(ctx, wire.MethodApprovalList, wire.None{}, &a.approvals)
		}
		if a.err == nil {
			a.history, a.err = c.History(ctx, session, 200)
		}
		if a.err == nil {
			var page wire.TasksPage
			open := wire.TasksList{SessionKey: session, Limit: 100, Status: wire.Strings{wire.TaskQueued, wire.TaskRunning}}
			a.err = c.Repeat(ctx, wire.MethodTasksList, open, &page)
			a.subagents = page.Tasks
		}
		a.commands = cs.Commands
		return a
	}
}

// discardEvents drops the queued events.
func discardEvents(c *client.Client) {
	for {
		select {
		case _, ok := <-c.Events():
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// maxEvents limits how many events are handled together.
const maxEvents = 256

// listen returns a command that waits for events. Those that are there are handled together, with
// one drawing.
func listen(c *client.Client) tea.Cmd {
	return func() tea.Msg {
		var list []wire.Event
		e, ok := <-c.Events()
		for ok {
			list = append(list, e)
			if len(list) == maxEvents {
				break
			}
			select {
			case e, ok = <-c.Events():
			default:
				return events{list, false}
			}
		}
		return events{list, !ok}
	}
}

// join shows the loaded state as far as it is not on the screen yet, and starts
// to listen for events.
func (s *screen) join(a attached) tea.Cmd {
	_, refused := errors.AsType[*wire.Error](a.err)
	switch {
	case s.client.Err() != nil:
		return s.quit(s.client.Err())
	case refused:
		return s.quit(a.err)
	case a.err != nil: // the connection is lost; try again
		return s.attach()
	}
	s.joined = true
	s.commands = append(a.commands, ownCommands()...)
	s.connectionRestored()
	s.showHistory(a.history)
	clear(s.subagents)
	for _, t := range a.subagents {
		s.subagentChanged(t)
	}
	s.asked = nil
	cmds := []tea.Cmd{listen(s.client)}
	for _, q := range a.approvals {
		cmds = append(cmds, s.ask(q))
	}
	if first := s.o.First; first != "" {
		s.o.First = ""
		cmds = append(cmds, s.send(first))
	}
	return tea.Batch(append(cmds, s.transmit())...)
}

// showHistory shows the part of the history that is not on the screen yet.
func (s *screen) showHistory(h wire.History) {
	if h.SessionID != s.feed.ID {
		s.feed.ID, s.feed.Seq = h.SessionID, 0
	}
	if h.Info != nil {
		s.session = h.Info
	}
	if h.Defaults != nil {
		s.model = *h.Defaults
	}
	if h.HasMore && s.feed.Seq == 0 {
		s.scroll.add(bare, s.styles.Dim.Paint(fmt.Sprintf("… %d earlier entries", h.NextOffset)))
	}
	cut := s.tail() != nil // a message was being shown when the connection was lost
	results := map[string]wire.Message{}
	for _, m := range h.Messages {
		if m.Role == wire.RoleToolResult {
			results[m.ToolCallID] = m
		}
	}
	shown, own := s.feed.Seq, false
	for _, m := range h.Messages {
		// A slash command and its answer have the same Seq. The answer to an own one was shown.
		if m.Meta.Seq <= shown || m.Meta.Seq == s.feed.Seq && own {
			continue
		}
		own = s.feed.Owns(feed.RunOf(m))
		s.feed.Seq = m.Meta.Seq
		s.accepted(feed.RunOf(m))
		if cut && m.Role == wire.RoleAssistant {
			s.showRemainder(m)
			cut = false
			continue
		}
		s.showStored(m, results)
	}
	if s.plan = (wire.Plan{}); h.Plan != nil && feed.PlanOpen(*h.Plan) {
		s.plan = *h.Plan
	}
	s.active, s.suspended, s.stopping = "", false, false
	s.feed.Reset()
	if !s.inFlight(h) {
		s.finish()
	}
}

// inFlight shows the text of the run in progress and reports whether there is
// any. It marks runs whose last message is stored as ended, because late events
// of them may still arrive.
func (s *screen) inFlight(h wire.History) bool {
	f := h.InFlight
	stored := "" // run of the last assistant message
	for _, m := range h.Messages {
		if m.Role != wire.RoleAssistant {
			continue
		}
		stored = m.Meta.RunID
		calls := slices.ContainsFunc(m.Content, func(c wire.Content) bool { return c.Type == wire.ContentCall })
		if !calls && (f == nil || f.RunID != stored) {
			s.feed.MarkEnded(stored)
		}
	}
	if f == nil {
		return false
	}
	s.active, s.startedAt = f.RunID, f.StartedAt.Time()
	open := f.Text != "" && !(stored == f.RunID && strings.HasPrefix(s.lastText, f.Text)) // not stored in the meantime
	s.feed.Resume(f.RunID, f.Seq, open)
	if open {
		s.text(f.Text)
	}
	return open
}

// showRemainder completes a message that was interrupted by the loss of the
// connection.
func (s *screen) showRemainder(m wire.Message) {
	s.text(m.Text())
	s.textEnded()
}

// showStored shows a message of the history with the results of its tool calls.
// A call without a result is still in progress; an event reports its end.
func (s *screen) showStored(m wire.Message, results map[string]wire.Message) {
	switch m.Role {
	case wire.RoleUser:
		s.folded = nil
		if !s.feed.Owns(feed.RunOf(m)) {
			s.userMessage(attach.Text(m))
		}
	case wire.RoleSystem:
		s.notice(m.Text())
	case wire.RoleAssistant:
		if text := m.Text(); strings.TrimSpace(text) != "" {
			s.scroll.add(block, s.markdown(text))
			if m.Meta.RunID != "" { // the same command may follow, with the same answer
				s.lastText = text
			}
		}
		for _, c := range m.Content {
			if r, ok := results[c.ID]; ok && c.Type == wire.ContentCall {
				s.printTool(feed.Tool{Name: c.Name, Label: chela.CallTitle(c.Name, c.Title, c.Arguments)}.Ended(attach.Text(r),
					r.IsError, r.Details))
				if p := feed.PlanOfCall(c.Arguments); c.Name == feed.PlanTool && !r.IsError && !feed.PlanOpen(p) {
					s.planChanged(p)
				}
			}
		}
	}
}

// accepted removes a sent message that a run has accepted.
func (s *screen) accepted(run string) {
	for i, m := range s.sent {
		if m.run == run {
			s.sent = append(s.sent[:i], s.sent[i+1:]...)
			return
		}
	}
}

// handleEvents shows events from the gateway.
func (s *screen) handleEvents(e events) tea.Cmd {
	var cmds []tea.Cmd
	for _, ev := range e.list {
		switch ev.Name {
		case client.EventLost:
			s.connectionLost(ev)
		case client.EventResumed:
			s.connectionRestored()
			cmds = append(cmds, s.transmit())
		case client.EventReset: // the history contains the following events
			return tea.Batch(append(cmds, s.attach())...)
		}
		for _, st := range s.feed.Steps(ev) {
			cmds = append(cmds, s.step(st))
		}
	}
	if e.ended {
		return tea.Batch(append(cmds, s.quit(s.client.Err()))...)
	}
	return tea.Batch(append(cmds, listen(s.client))...)
}

// connectionLost shows that there is no connection.
func (s *screen) connectionLost(e wire.Event) {
	var o client.Outage
	if e.Decode(&o) == nil && o.Attempt > 0 {
		s.note = ansi.Line(o.Reason)
	}
	if !s.lost {
		s.notice("connection lost; reconnecting")
	}
	s.lost, s.turning = true, turning{}
}

// connectionRestored shows that there is a connection again.
func (s *screen) connectionRestored() {
	if s.lost {
		s.lost, s.note = false, ""
		s.scroll.add(bare, s.styles.Dim.Paint("reconnected"))
	}
}

// step shows a step of the conversation.
func (s *screen) step(st feed.Step) tea.Cmd {
	switch st.Kind {
	case feed.UserMessage:
		s.userMessage(st.Text)
	case feed.RunStarted:
		s.runStarted(st.Run)
	case feed.Thinking:
		s.thinking(st.Text)
	case feed.Text:
		if st.Run != s.active && strings.HasPrefix(s.lastText, st.Text) {
			return nil // the run ended while the history was loaded, which contains the text
		}
		s.text(st.Text)
	case feed.TextEnded:
		s.textEnded()
	case feed.ToolStarted:
		s.toolStarted(st.Tool)
	case feed.ToolOutput:
		s.toolOutput(st.Tool, st.Text)
	case feed.ToolEnded:
		s.toolEnded(st.Tool)
	case feed.Suspended:
		s.suspended = true
	case feed.Notice:
		s.notice(st.Text)
	case feed.RunEnded:
		s.runEnded(st.Run, st.End)
	case feed.ApprovalRequested:
		return s.ask(st.Approval)
	case feed.ApprovalResolved:
		s.approvalResolved(st.Approval, st.Text)
	case feed.Stopping:
		s.notice("the gateway is stopping: " + st.Text)
	case feed.SessionChanged:
		s.session = st.Session
	case feed.PlanChanged:
		s.planChanged(st.Plan)
	case feed.SubagentChanged:
		s.subagentChanged(st.Task)
	}
	return nil
}

// subagentChanged notes whether a subagent of the session is at work.
func (s *screen) subagentChanged(t wire.Task) {
	switch {
	case t.Kind != string(task.Subagent) || t.SessionKey != s.feed.Session:
	case t.EndedAt == 0:
		s.subagents[t.ID] = true
	default:
		delete(s.subagents, t.ID)
	}
}

func (s *screen) runStarted(run string) {
	s.accepted(run)
	if run != s.active {
		s.startedAt, s.folded, s.lastText = time.Now(), nil, ""
		s.stopping = false // that was another one
	}
	s.active, s.suspended = run, false
}

// userMessage shows a message of a person.
func (s *screen) userMessage(text string) {
	lines := strings.Split(ansi.Wrap(ansi.Clean(text), s.columns()-2), "\n")
	for i, l := range lines {
		if i == 0 {
			lines[i] = s.styles.Accent.Paint("❯") + " " + l
		} else {
			lines[i] = "  " + l
		}
	}
	s.scroll.add(block, strings.Join(lines, "\n"))
}

// notice shows a notice in a dim style.
func (s *screen) notice(text string) {
	s.scroll.add(bare, s.styles.Dim.Paint(ansi.Wrap(strings.TrimSpace(ansi.Clean(text)), s.columns())))
}

// runEnded shows the end of a run. A message that was merged into another run
// ends without text, which is not shown.
func (s *screen) runEnded(run string, e feed.End) {
	s.accepted(run)
	if run != s.active && e.Text == "" && e.Error == "" {
		return
	}
	if run != s.active && s.active != "" { // a command during the run, which goes on
		if e.State == wire.StateFinal && e.Text != s.lastText {
			s.scroll.add(block, s.markdown(e.Text))
		}
		if e.State == wire.StateError {
			s.problem(e)
		}
		return
	}
	if e.State == wire.StateFinal && e.Text != "" && e.Text != s.lastText {
		s.text(feed.After(s.lastText, e.Text))
	}
	cut := slices.ContainsFunc(s.live, func(it *item) bool { return !it.done })
	replaced := e.State == wire.StateAborted && e.Stop == wire.StopSuperseded
	waits := replaced && slices.ContainsFunc(s.asked, func(a wire.Approval) bool { return a.Request.RunID == run })
	for _, it := range s.live {
		it.waits = waits && !it.done
	}
	s.finish()
	switch {
	case waits: // its call runs when the question is answered
		if cut {
			s.scroll.add(bare, s.styles.Dim.Paint("the next message is answered first; the question stays open"))
		}
	case replaced:
		if cut { // not if the run had only its end left
			s.scroll.add(bare, s.styles.Dim.Paint("■ replaced by the next message"))
		}
	case e.State == wire.StateAborted:
		s.scroll.add(bare, s.styles.Dim.Paint("■ stopped"))
	case e.State == wire.StateError:
		s.problem(e)
	}
	if e.Footer != "" {
		s.notice(e.Footer)
	}
	if run == s.active {
		s.active, s.suspended, s.lastText, s.stopping = "", false, "", false
	}
}

// problem shows why a run failed, with a hint.
func (s *screen) problem(e feed.End) {
	why := ansi.Line(e.Error)
	if !strings.Contains(why, e.Model) {
		why = ansi.Line(e.Model) + ": " + why
	}
	s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ "+why, s.columns())))
	if hint := e.Hint(); hint != "" {
		s.scroll.extend(s.styles.Dim.Paint(ansi.Wrap("  "+hint, s.columns())))
	}
}

// send sends a message that was typed.
func (s *screen) send(line string) tea.Cmd {
	text, files, err := attach.ParseLine(line)
	if err != nil {
		s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ not sent: "+ansi.Line(err.Error()), s.columns())))
		return nil
	}
	m := message{run: rand.Text(), text: text, files: files}
	s.feed.Own(m.run)
	if s.active == "" && len(s.sent) == 0 {
		s.startedAt, s.stopping = time.Now(), false
	}
	s.sent = append(s.sent, m)
	s.userMessage(attach.Preview(text, files))
	return s.transmit()
}

// transmit sends the first message that the gateway has not accepted yet.
// The next one is sent after its result. So the messages arrive in the order in which they were
// typed, even if the answer to one is lost and the client repeats it.
func (s *screen) transmit() tea.Cmd {
	i := slices.IndexFunc(s.sent, func(m message) bool { return !m.taken })
	if s.sending || s.lost || !s.joined || i < 0 {
		return nil
	}
	s.sending = true
	c, ctx := s.client, s.ctx
	p := wire.ChatSend{SessionKey: s.feed.Session, Message: s.sent[i].text, Attachments: s.sent[i].files,
		IdempotencyKey: s.sent[i].run}
	return func() tea.Msg {
		_, err := c.Chat(ctx, p)
		return sent{p.IdempotencyKey, err}
	}
}

// sendResult handles the result of transmit.
func (s *screen) sendResult(r sent) tea.Cmd {
	s.sending = false
	_, refused := errors.AsType[*wire.Error](r.err)
	switch {
	case r.err == nil:
		for i := range s.sent {
			if s.sent[i].run == r.run {
				s.sent[i].taken = true
			}
		}
	case refused:
		s.accepted(r.run)
		s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ not sent: "+ansi.Line(r.err.Error()), s.columns())))
	default:
		return nil // the client is closed
	}
	return s.transmit()
}

// abort stops the run in progress.
func (s *screen) abort() tea.Cmd {
	s.stopping = true
	return s.call(wire.MethodChatAbort, wire.ChatAbort{SessionKey: s.feed.Session}, func(err error) tea.Msg {
		if err != nil {
			return failed{err}
		}
		return nil
	})
}
