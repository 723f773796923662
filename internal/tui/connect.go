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
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// What calls and the connection give.
type (
	// attached says what the gateway knows of the session.
	attached struct {
		history   wire.History
		commands  []wire.Command
		approvals []wire.Approval
		err       error
	}
	// events are what came from the gateway.
	events struct {
		list  []wire.Event
		ended bool
	}
	// sent says what became of an own message.
	sent struct {
		run string
		err error
	}
	// resolved says what became of a decision.
	resolved struct {
		id  string
		err error
	}
	failed struct{ err error }
)

// callLimit bounds calls that are answered at once.
const callLimit = 15 * time.Second

// call returns a command that makes a call and gives its error to done.
func (s *screen) call(method string, params any, done func(error) tea.Msg) tea.Cmd {
	c := s.client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, callLimit)
		defer cancel()
		return done(c.Call(ctx, method, params, nil))
	}
}

// attach learns what there is to show.
func (s *screen) attach() tea.Cmd {
	session, c := s.feed.Session, s.client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(s.ctx, callLimit)
		defer cancel()
		var a attached
		var cs wire.CommandsList
		a.err = errors.Join(
			c.Repeat(ctx, wire.MethodSessionsSubscribe, wire.None{}, nil),
			c.Repeat(ctx, wire.MethodCommandsList, wire.CommandsGet{SessionKey: session}, &cs),
		)
		forget(c) // what happened so far is in the history
		if a.err == nil {
			a.err = c.Repeat(ctx, wire.MethodApprovalList, wire.None{}, &a.approvals)
		}
		if a.err == nil {
			a.history, a.err = c.History(ctx, session, 200)
		}
		a.commands = cs.Commands
		return a
	}
}

// forget drops the events that wait.
func forget(c *client.Client) {
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

// maxEvents bounds how many events are shown together.
const maxEvents = 256

// listen waits for events.
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

// join shows what the gateway knows and the screen does not, and begins to
// listen.
func (s *screen) join(a attached) tea.Cmd {
	_, refused := errors.AsType[*wire.Error](a.err)
	switch {
	case s.client.Err() != nil:
		return s.leave(s.client.Err())
	case refused:
		return s.leave(a.err)
	case a.err != nil: // there is no connection, or not for long
		return s.attach()
	}
	s.joined = true
	s.commands = append(a.commands, ownCommands()...)
	s.found()
	s.catchUp(a.history)
	s.asked = nil
	cmds := []tea.Cmd{listen(s.client)}
	for _, q := range a.approvals {
		cmds = append(cmds, s.ask(q))
	}
	return tea.Batch(append(cmds, s.transmit())...)
}

// catchUp shows what the history has and the screen has not.
func (s *screen) catchUp(h wire.History) {
	if h.SessionID != s.id {
		s.id, s.feed.Seq = h.SessionID, 0
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
	cut := s.tail() != nil
	results := map[string]wire.Message{}
	for _, m := range h.Messages {
		if m.Role == wire.RoleToolResult {
			results[m.ToolCallID] = m
		}
	}
	for _, m := range h.Messages {
		if m.Meta.Seq <= s.feed.Seq {
			continue
		}
		s.feed.Seq = m.Meta.Seq
		s.arrived(feed.Sender(m))
		if cut && m.Role == wire.RoleAssistant {
			s.rest(m)
			cut = false
			continue
		}
		s.past(m, results)
	}
	s.active, s.waits = "", false
	s.feed.Rejoin()
	if !s.inFlight(h) {
		s.finish()
	}
}

// inFlight shows what the run in progress has written, and says of other runs
// whose last message is there that they are over: events may still tell of
// them. It reports whether a message is in progress.
func (s *screen) inFlight(h wire.History) bool {
	f := h.InFlight
	stored := "" // run of the last message
	for _, m := range h.Messages {
		if m.Role != wire.RoleAssistant {
			continue
		}
		stored = m.Meta.RunID
		calls := slices.ContainsFunc(m.Content, func(c wire.Content) bool { return c.Type == wire.ContentCall })
		if !calls && (f == nil || f.RunID != stored) {
			s.feed.Over(stored)
		}
	}
	if f == nil {
		return false
	}
	s.active, s.since = f.RunID, f.StartedAt.Time()
	open := f.Text != "" && !(stored == f.RunID && strings.HasPrefix(s.last, f.Text)) // stored meanwhile
	s.feed.Resume(f.RunID, f.Seq, open)
	if open {
		s.text(f.Text)
	}
	return open
}

// rest shows of a message that was cut by the loss of the connection what was
// not shown.
func (s *screen) rest(m wire.Message) {
	s.text(m.Text())
	s.closed()
}

// past shows an earlier message with the results of its calls. A call without
// one goes on: its end comes as an event.
func (s *screen) past(m wire.Message, results map[string]wire.Message) {
	switch m.Role {
	case wire.RoleUser:
		s.folded = nil
		if !s.feed.Owns(feed.Sender(m)) {
			s.said(attach.Text(m))
		}
	case wire.RoleSystem:
		s.notice(m.Text())
	case wire.RoleAssistant:
		if text := m.Text(); strings.TrimSpace(text) != "" {
			s.scroll.add(block, s.markdown(text))
			s.last = text
		}
		for _, c := range m.Content {
			if r, ok := results[c.ID]; ok && c.Type == wire.ContentCall {
				s.printTool(feed.Tool{Label: chela.CallTitle(c.Name, c.Arguments), Output: attach.Text(r), Failed: r.IsError})
			}
		}
	}
}

// arrived says that a run has taken an own message.
func (s *screen) arrived(run string) {
	for i, m := range s.sent {
		if m.run == run {
			s.sent = append(s.sent[:i], s.sent[i+1:]...)
			return
		}
	}
}

// events shows what came from the gateway.
func (s *screen) events(e events) tea.Cmd {
	var cmds []tea.Cmd
	for _, ev := range e.list {
		switch ev.Name {
		case client.EventLost:
			s.outage(ev)
		case client.EventResumed:
			s.found()
			cmds = append(cmds, s.transmit())
		case client.EventReset: // what follows is in the history, too
			return tea.Batch(append(cmds, s.attach())...)
		}
		for _, st := range s.feed.Take(ev) {
			cmds = append(cmds, s.step(st))
		}
	}
	if e.ended {
		return tea.Batch(append(cmds, s.leave(s.client.Err()))...)
	}
	return tea.Batch(append(cmds, listen(s.client))...)
}

// outage says that there is no connection.
func (s *screen) outage(e wire.Event) {
	var o client.Outage
	if e.Decode(&o) == nil && o.Attempt > 0 {
		s.note = ansi.Line(o.Reason)
	}
	if !s.lost {
		s.notice("connection lost; connecting again")
	}
	s.lost = true
}

// found says that there is a connection again.
func (s *screen) found() {
	if s.lost {
		s.lost, s.note = false, ""
		s.scroll.add(bare, s.styles.Dim.Paint("connected again"))
	}
}

// step shows what happened.
func (s *screen) step(st feed.Step) tea.Cmd {
	switch st.Kind {
	case feed.Said:
		s.said(st.Text)
	case feed.Began:
		s.began(st.Run)
	case feed.Thinking:
		s.thinking(st.Text)
	case feed.Text:
		if st.Run != s.active && strings.HasPrefix(s.last, st.Text) {
			return nil // it ended while the history was read, which has it
		}
		s.text(st.Text)
	case feed.Closed:
		s.closed()
	case feed.ToolBegan:
		s.toolBegan(st.Tool)
	case feed.ToolWrote:
		s.toolWrote(st.Tool, st.Text)
	case feed.ToolEnded:
		s.toolEnded(st.Tool)
	case feed.Waits:
		s.waits = true
	case feed.Noticed:
		s.notice(st.Text)
	case feed.Ended:
		s.ended(st.Run, st.End)
	case feed.Asked:
		return s.ask(st.Approval)
	case feed.Decided:
		s.settled(st.Approval, st.Text)
	case feed.Stopping:
		s.notice("the gateway stops: " + st.Text)
	case feed.Changed:
		s.session = st.Session
		if st.Session.SessionID != s.id {
			s.id, s.feed.Seq = st.Session.SessionID, 0
		}
	}
	return nil
}

func (s *screen) began(run string) {
	s.arrived(run)
	if run != s.active {
		s.since, s.folded, s.last = time.Now(), nil, ""
	}
	s.active, s.waits = run, false
}

// said shows a person's message.
func (s *screen) said(text string) {
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

// notice shows a line of the system.
func (s *screen) notice(text string) {
	s.scroll.add(bare, s.styles.Dim.Paint(ansi.Wrap(strings.TrimSpace(ansi.Clean(text)), s.columns())))
}

// ended shows how a run ended. The end of a message that was taken into
// another run says nothing and ends nothing.
func (s *screen) ended(run string, e feed.End) {
	s.arrived(run)
	if run != s.active && e.Text == "" && e.Error == "" {
		return
	}
	if e.State == wire.StateFinal && e.Text != "" && e.Text != s.last {
		s.text(e.Text)
	}
	s.finish()
	switch {
	case e.State == wire.StateAborted:
		s.scroll.add(bare, s.styles.Dim.Paint("■ stopped"))
	case e.State == wire.StateError:
		s.problem(e)
	}
	if e.Footer != "" {
		s.notice(e.Footer)
	}
	if run == s.active {
		s.active, s.waits, s.last = "", false, ""
	}
}

// problem shows why a run failed, and what can be done.
func (s *screen) problem(e feed.End) {
	why := ansi.Line(e.Error)
	if e.Model != "" && !strings.Contains(why, e.Model) {
		why = ansi.Line(e.Model) + ": " + why
	}
	s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ "+why, s.columns())))
	if e.Stop != wire.StopLimit { // which says itself what can be done
		s.scroll.more(s.styles.Dim.Paint("  send the message again, or /model to choose another model"))
	}
}

// send sends what was typed.
func (s *screen) send(line string) tea.Cmd {
	text, files, err := attach.Line(line)
	if err != nil {
		s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ not sent: "+ansi.Line(err.Error()), s.columns())))
		return nil
	}
	m := message{run: rand.Text(), text: text, files: files}
	s.feed.Own(m.run)
	if s.active == "" && len(s.sent) == 0 {
		s.since = time.Now()
	}
	s.sent = append(s.sent, m)
	s.said(attach.Shown(text, files))
	return s.transmit()
}

// transmit sends the first own message that the gateway does not have. The
// next one follows it.
func (s *screen) transmit() tea.Cmd {
	i := slices.IndexFunc(s.sent, func(m message) bool { return !m.taken })
	if s.sending || s.lost || !s.joined || i < 0 {
		return nil
	}
	s.sending = true
	c, ctx := s.client, s.ctx
	p := wire.ChatSend{SessionKey: s.feed.Session, Message: s.sent[i].text, Attachments: s.sent[i].files, IdempotencyKey: s.sent[i].run}
	return func() tea.Msg {
		_, err := c.Chat(ctx, p)
		return sent{p.IdempotencyKey, err}
	}
}

// settle takes note of what became of an own message.
func (s *screen) settle(r sent) tea.Cmd {
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
		s.arrived(r.run)
		s.scroll.add(bare, s.styles.Bad.Paint(ansi.Wrap("✗ not sent: "+ansi.Line(r.err.Error()), s.columns())))
	default:
		return nil // the client has ended
	}
	return s.transmit()
}

// abort stops what is in progress.
func (s *screen) abort() tea.Cmd {
	s.note = "stopping; ctrl+c again leaves"
	return s.call(wire.MethodChatAbort, wire.ChatAbort{SessionKey: s.feed.Session}, func(err error) tea.Msg {
		if err != nil {
			return failed{err}
		}
		return nil
	})
}
