package acp

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// follow passes the events of the gateway to the sessions until the connection ends.
func (a *agent) follow(ctx context.Context) error {
	events := a.o.Client.Events()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return cmp.Or(a.o.Client.Err(), errors.New("the gateway has closed the connection"))
			}
			a.event(ctx, e)
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *agent) event(ctx context.Context, e wire.Event) {
	a.mu.Lock()
	all := make([]*session, 0, len(a.sessions))
	for _, s := range a.sessions {
		all = append(all, s)
	}
	a.mu.Unlock()
	for _, s := range all {
		if e.Name == client.EventReset {
			a.reset(ctx, s)
			continue
		}
		a.mu.Lock()
		steps := s.feed.Steps(e)
		a.mu.Unlock()
		for _, step := range steps {
			a.step(ctx, s, step)
		}
	}
}

// reset asks about what was missed while the connection was lost.
func (a *agent) reset(ctx context.Context, s *session) {
	a.mu.Lock()
	s.feed.Reset()
	var runs []string
	for run := range s.turns {
		runs = append(runs, run)
	}
	a.mu.Unlock()
	for _, run := range runs {
		var w wire.AgentWaited
		if a.o.Client.Repeat(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 1}, &w) != nil ||
			w.Status == wire.StatusTimeout {
			continue
		}
		end := feed.End{State: wire.StateFinal, Error: w.Error, Stop: w.Stop}
		if w.Status != wire.StatusOK {
			end.State = wire.StateError
		}
		if w.Reply != nil {
			end.Text = w.Reply.Text
		}
		a.step(ctx, s, feed.Step{Kind: feed.RunEnded, Run: run, End: end})
	}
	var pending []wire.Approval
	if a.o.Client.Repeat(ctx, wire.MethodApprovalList, wire.None{}, &pending) == nil {
		for _, p := range pending {
			a.step(ctx, s, feed.Step{Kind: feed.ApprovalRequested, Run: p.Request.RunID, Approval: p})
		}
	}
}

// step tells the editor a step of a session. Runs of other clients of the session are told,
// too: it is one conversation.
func (a *agent) step(ctx context.Context, s *session, st feed.Step) {
	switch st.Kind {
	case feed.UserMessage:
		a.update(ctx, s, sdk.UpdateUserMessageText(st.Text))
	case feed.Text:
		if more := grown(&s.text, st.Text); more != "" {
			a.update(ctx, s, sdk.UpdateAgentMessageText(more))
		}
	case feed.TextEnded:
		a.said(s, st.Run)
	case feed.Thinking:
		if more := grown(&s.think, st.Text); more != "" {
			a.update(ctx, s, sdk.UpdateAgentThoughtText(more))
		}
	case feed.Notice:
		a.update(ctx, s, sdk.UpdateAgentThoughtText(ansi.Line(st.Text)))
	case feed.ToolStarted, feed.ToolOutput, feed.ToolEnded:
		a.call(ctx, s, st)
	case feed.PlanChanged:
		a.update(ctx, s, sdk.UpdatePlan(entries(st.Plan)...))
	case feed.ApprovalRequested:
		r := st.Approval.Request
		if r.SessionKey == string(s.id) || r.AskedKey == string(s.id) {
			a.ask(ctx, s, st.Approval)
		}
	case feed.ApprovalResolved:
		a.mu.Lock()
		withdraw := s.asked[st.Approval.ID]
		a.mu.Unlock()
		if withdraw != nil {
			withdraw()
		}
	case feed.RunEnded:
		a.end(ctx, s, st)
	}
}

// grown returns what a growing text has more than was shown of it, and remembers it. A text
// that begins anew is a paragraph of its own.
func grown(shown *string, text string) (more string) {
	more, ok := strings.CutPrefix(text, *shown)
	if !ok {
		more = "\n\n" + text
	}
	*shown = text
	return more
}

// said notes that the message in progress is complete.
func (a *agent) said(s *session, run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := s.turns[run]; t != nil {
		t.last = s.text
	}
	s.text, s.think = "", ""
}

// end ends a run. What of its answer was not shown, such as the answer to a command, is.
func (a *agent) end(ctx context.Context, s *session, st feed.Step) {
	a.mu.Lock()
	t := s.turns[st.Run]
	delete(s.turns, st.Run)
	shown := s.text
	if t != nil {
		shown = cmp.Or(shown, t.last)
	}
	s.text, s.think, s.calls = "", "", nil
	a.mu.Unlock()
	rest, more := strings.CutPrefix(feed.After(shown, st.End.Text), shown)
	if strings.TrimSpace(rest) != "" {
		if !more && !strings.HasPrefix(rest, "\n") {
			rest = "\n\n" + rest
		}
		a.update(ctx, s, sdk.UpdateAgentMessageText(rest))
	}
	if t != nil {
		t.done <- st.End
	}
}

// call tells the editor about a tool call.
func (a *agent) call(ctx context.Context, s *session, st feed.Step) {
	id := sdk.ToolCallId(st.Tool.ID)
	switch st.Kind {
	case feed.ToolStarted:
		s.calls = append(s.calls, st.Tool)
		a.mu.Lock()
		kind := cmp.Or(a.kinds[st.Tool.Name], sdk.ToolKindOther)
		a.mu.Unlock()
		a.update(ctx, s, sdk.StartToolCall(id, st.Tool.Label, sdk.WithStartKind(kind),
			sdk.WithStartStatus(sdk.ToolCallStatusInProgress)))
	case feed.ToolOutput:
		a.update(ctx, s, sdk.UpdateToolCall(id, sdk.WithUpdateContent(content(st.Text))))
	case feed.ToolEnded:
		s.calls = slices.DeleteFunc(s.calls, func(t feed.Tool) bool { return t.ID == st.Tool.ID })
		status := sdk.ToolCallStatusCompleted
		if st.Tool.Failed {
			status = sdk.ToolCallStatusFailed
		}
		a.update(ctx, s, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content(st.Tool.Output))))
	}
}

// maxOutput is how much of an output an editor gets, in bytes.
const maxOutput = 32 << 10

func content(text string) []sdk.ToolCallContent {
	text = ansi.Clean(text)
	if len(text) > maxOutput {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxOutput:], "")
	}
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

// entries returns a plan in the form of the protocol.
func entries(p wire.Plan) []sdk.PlanEntry {
	out := make([]sdk.PlanEntry, 0, len(p.Steps))
	for _, step := range p.Steps {
		status := sdk.PlanEntryStatusCompleted
		switch step.Status {
		case wire.PlanPending:
			status = sdk.PlanEntryStatusPending
		case wire.PlanInProgress:
			status = sdk.PlanEntryStatusInProgress
		}
		out = append(out, sdk.PlanEntry{Content: step.Step, Priority: sdk.PlanEntryPriorityMedium, Status: status})
	}
	return out
}

// ask asks the person in the editor about an approval, unless it did already. The answer
// may come from another client.
func (a *agent) ask(ctx context.Context, s *session, p wire.Approval) {
	asking, withdraw := context.WithCancel(ctx)
	a.mu.Lock()
	if s.asked[p.ID] != nil {
		a.mu.Unlock()
		withdraw()
		return
	}
	s.asked[p.ID] = withdraw
	call := sdk.ToolCallUpdate{ToolCallId: sdk.ToolCallId("approval_" + p.ID), Title: sdk.Ptr(p.Request.Command),
		Status: sdk.Ptr(sdk.ToolCallStatusPending)}
	for _, t := range s.calls {
		if t.Name == p.Request.Tool { // the last one waits
			call.ToolCallId = sdk.ToolCallId(t.ID)
		}
	}
	a.mu.Unlock()
	if p.Request.Reason != "" {
		call.Content = content(p.Request.Reason)
	}
	options := []sdk.PermissionOption{
		{Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once", OptionId: wire.AllowOnce},
		{Kind: sdk.PermissionOptionKindRejectOnce, Name: "Deny", OptionId: wire.Deny},
	}
	if !p.Request.Once {
		options = slices.Insert(options, 1,
			sdk.PermissionOption{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow for this session",
				OptionId: wire.AllowSession},
			sdk.PermissionOption{Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow always", OptionId: wire.AllowAlways})
	}
	go func() {
		defer func() {
			withdraw()
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(s.asked, p.ID)
		}()
		got, err := a.conn.RequestPermission(asking,
			sdk.RequestPermissionRequest{SessionId: s.id, ToolCall: call, Options: options})
		if asking.Err() != nil {
			return // it was decided elsewhere, or the editor has gone
		}
		decision := wire.Deny
		if err == nil && got.Outcome.Selected != nil {
			decision = string(got.Outcome.Selected.OptionId)
		} else if err != nil {
			a.o.Log.Warn("the editor did not answer a question", "err", err)
			decision = wire.DenyUnasked
		}
		if err := a.o.Client.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: p.ID, Decision: decision},
			nil); err != nil {
			a.o.Log.Warn("answer to an approval", "err", err)
		}
	}()
}

// update sends an update of a session.
func (a *agent) update(ctx context.Context, s *session, u sdk.SessionUpdate) {
	if err := a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: s.id, Update: u}); err != nil {
		a.o.Log.Debug("update for the editor", "err", err)
	}
}
