package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
)

const (
	maxQueued = 1 << 20 // bytes of an answer that were not used; then the agent waits
	maxCalls  = 4096    // calls of a turn that are shown
	maxOutput = 64 << 10
)

// eventKind is the kind of an event of a turn.
type eventKind int

const (
	said    eventKind = iota + 1 // text of the answer
	thought                      // text of its thinking
	called                       // a call began, or asks for permission
	planned                      // there is another plan
)

// event is something that the agent reported and that is not used yet.
type event struct {
	kind eventKind
	text string
	call string
	plan plan.Plan
}

// turn is the work of an agent on one prompt.
type turn struct {
	run  chela.RunID
	note string // for the person, after the answer

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	queue   []event
	size    int // bytes of queue
	calls   map[string]*toolCall
	over    bool // the agent has answered the prompt, or will not
	dropped bool // nobody wants the rest
	stop    sdk.StopReason
	err     error
	answer  string // the last text of the agent
}

// keep keeps a text of the agent. It is the answer if none follows.
func (t *turn) keep(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if strings.TrimSpace(text) != "" {
		t.answer = text
	}
}

// last returns the last text of the agent.
func (t *turn) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answer
}

// toolCall is a call that the agent makes.
type toolCall struct {
	title  string
	kind   string
	input  json.RawMessage
	status sdk.ToolCallStatus
	output string
	shown  bool        // an event for it is in the queue, or its call is open in the transcript
	ask    *permission // not answered; nil: none
}

// permission is a question of the agent for permission.
type permission struct {
	options []sdk.PermissionOption
	asked   bool                                // a person was asked, or could not be
	answer  chan<- sdk.RequestPermissionOutcome // capacity 1
}

func newTurn(run chela.RunID) *turn {
	return &turn{run: run, changed: make(chan struct{}), calls: map[string]*toolCall{}}
}

// notifyLocked wakes those that wait for a change.
func (t *turn) notifyLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// addLocked queues an event. Text joins the text before it.
func (t *turn) addLocked(e event) {
	if t.dropped {
		return
	}
	t.size += len(e.text)
	if last := len(t.queue) - 1; last >= 0 && e.kind == t.queue[last].kind && (e.kind == said || e.kind == thought) {
		t.queue[last].text += e.text
	} else {
		t.queue = append(t.queue, e)
	}
	t.notifyLocked()
}

// room waits until there is room in the queue, or done ends.
func (t *turn) room(done <-chan struct{}) {
	for {
		t.mu.Lock()
		full, changed := t.size > maxQueued && !t.dropped, t.changed
		t.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-changed:
		case <-done:
			return
		}
	}
}

// update applies an update of the agent.
func (t *turn) update(u sdk.SessionUpdate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case u.AgentMessageChunk != nil:
		t.addLocked(event{kind: said, text: textOf(u.AgentMessageChunk.Content)})
	case u.AgentThoughtChunk != nil:
		t.addLocked(event{kind: thought, text: textOf(u.AgentThoughtChunk.Content)})
	case u.ToolCall != nil:
		c := u.ToolCall
		t.callLocked(sdk.ToolCallUpdate{
			ToolCallId: c.ToolCallId,
			Title:      &c.Title,
			Kind:       &c.Kind,
			Status:     &c.Status,
			Content:    c.Content,
			RawInput:   c.RawInput,
			RawOutput:  c.RawOutput,
		}, nil)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		t.callLocked(sdk.ToolCallUpdate{
			ToolCallId: c.ToolCallId,
			Title:      c.Title,
			Kind:       c.Kind,
			Status:     c.Status,
			Content:    c.Content,
			RawInput:   c.RawInput,
			RawOutput:  c.RawOutput,
		}, nil)
	case u.Plan != nil:
		if p, ok := planOf(u.Plan.Entries); ok {
			t.addLocked(event{kind: planned, plan: p})
		}
	}
}

// callLocked applies what is known about a call, with a question for permission, if it has one.
func (t *turn) callLocked(u sdk.ToolCallUpdate, ask *permission) {
	c := t.calls[string(u.ToolCallId)]
	isNew := c == nil
	if isNew {
		if len(t.calls) >= maxCalls {
			ask.cancel()
			return
		}
		c = &toolCall{status: sdk.ToolCallStatusPending}
		t.calls[string(u.ToolCallId)] = c
	}
	set(&c.title, u.Title)
	if u.Kind != nil && *u.Kind != "" {
		c.kind = string(*u.Kind)
	}
	if u.Status != nil && *u.Status != "" {
		c.status = *u.Status
	}
	if raw, err := json.Marshal(u.RawInput); err == nil && u.RawInput != nil {
		c.input = raw
	}
	if text := outputOf(u.Content, u.RawOutput); text != "" {
		c.output = text
	}
	if ask != nil {
		c.ask.cancel()
		c.ask = ask
	}
	if (isNew || ask != nil) && !c.shown {
		c.shown = true
		t.addLocked(event{kind: called, call: string(u.ToolCallId)})
		return
	}
	t.notifyLocked()
}

// set replaces a text by a new one that is not empty.
func set(s *string, to *string) {
	if to != nil && strings.TrimSpace(*to) != "" {
		*s = *to
	}
}

// request adds a question for permission.
func (t *turn) request(r sdk.RequestPermissionRequest, answer chan<- sdk.RequestPermissionOutcome) {
	p := &permission{options: r.Options, answer: answer}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.dropped {
		p.cancel()
		return
	}
	t.callLocked(r.ToolCall, p)
}

// end ends the turn.
func (t *turn) end(stop sdk.StopReason, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over, t.stop, t.err = true, stop, err
	t.cancelLocked()
	t.notifyLocked()
}

// drop discards the rest of the turn. Questions for permission are answered as cancelled.
func (t *turn) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped, t.queue, t.size = true, nil, 0
	t.cancelLocked()
	t.notifyLocked()
}

func (t *turn) cancelLocked() {
	for _, c := range t.calls {
		c.ask.cancel()
		c.ask = nil
	}
}

// deny answers the questions whose calls have ended without an answer to them: a person
// denied them, or nobody could be asked.
func (t *turn) deny() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if c.ask != nil && c.ask.asked {
			c.ask.decide(false)
			c.ask, c.shown = nil, false
		}
	}
}

// next returns the next event. It reports false if the turn is over.
func (t *turn) next(ctx context.Context) (event, bool, error) {
	for {
		t.mu.Lock()
		if len(t.queue) > 0 {
			e := t.queue[0]
			t.queue = t.queue[1:]
			t.size -= len(e.text)
			t.notifyLocked()
			t.mu.Unlock()
			return e, true, nil
		}
		over, changed := t.over || t.dropped, t.changed
		t.mu.Unlock()
		if over {
			return event{}, false, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return event{}, false, ctx.Err()
		}
	}
}

// wait waits for the end of the turn, and reports false if done ends before.
func (t *turn) wait(done <-chan struct{}) bool {
	for {
		t.mu.Lock()
		over, changed := t.over, t.changed
		t.mu.Unlock()
		if over {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return false
		}
	}
}

// attentionLocked reports whether something waits that a person has to see before the end
// of a call.
func (t *turn) attentionLocked() bool {
	for _, e := range t.queue {
		if e.kind == said || e.kind == called && t.calls[e.call].ask != nil {
			return true
		}
	}
	return false
}

// cancel answers that nothing was decided. p may be nil.
func (p *permission) cancel() {
	if p != nil {
		p.answer <- sdk.NewRequestPermissionOutcomeCancelled()
	}
}

// decide answers a question. What a person allowed is this call only: what the agent
// calls "always" may be more than the person saw.
func (p *permission) decide(allowed bool) {
	kinds := []sdk.PermissionOptionKind{sdk.PermissionOptionKindRejectOnce, sdk.PermissionOptionKindRejectAlways}
	if allowed {
		kinds = []sdk.PermissionOptionKind{sdk.PermissionOptionKindAllowOnce, sdk.PermissionOptionKindAllowAlways}
	}
	for _, kind := range kinds {
		for _, o := range p.options {
			if o.Kind == kind {
				p.answer <- sdk.NewRequestPermissionOutcomeSelected(o.OptionId)
				return
			}
		}
	}
	p.cancel()
}

// textOf returns the text of a block; what is no text is named.
func textOf(b sdk.ContentBlock) string {
	switch {
	case b.Text != nil:
		return b.Text.Text
	case b.Image != nil:
		return "[image]"
	case b.Audio != nil:
		return "[sound]"
	case b.ResourceLink != nil:
		return b.ResourceLink.Uri
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return b.Resource.Resource.TextResourceContents.Text
	}
	return ""
}

// outputOf returns what a call has given, as text.
func outputOf(content []sdk.ToolCallContent, raw any) string {
	var parts []string
	for _, c := range content {
		switch {
		case c.Content != nil:
			parts = append(parts, textOf(c.Content.Content))
		case c.Diff != nil:
			parts = append(parts, diffOf(c.Diff))
		}
	}
	text := strings.Join(parts, "\n")
	if text == "" && raw != nil {
		if s, ok := raw.(string); ok {
			text = s
		} else if b, err := json.Marshal(raw); err == nil {
			text = string(b)
		}
	}
	if len(text) > maxOutput {
		text = strings.ToValidUTF8(text[:maxOutput], "") + "\n[the rest is left out]"
	}
	return text
}

// diffOf returns a change of a file.
func diffOf(d *sdk.ToolCallContentDiff) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", d.Path)
	if d.OldText != nil {
		for line := range strings.Lines(*d.OldText) {
			b.WriteString("- " + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	for line := range strings.Lines(d.NewText) {
		b.WriteString("+ " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// planOf returns the plan of the agent as one of the session.
func planOf(entries []sdk.PlanEntry) (plan.Plan, bool) {
	var steps []plan.Step
	for i, e := range entries[:min(len(entries), plan.MaxSteps)] {
		s := plan.Step{ID: fmt.Sprint(i + 1), Title: shorten(e.Content, plan.MaxTitle), State: plan.Pending}
		switch e.Status {
		case sdk.PlanEntryStatusInProgress:
			s.State = plan.InProgress
		case sdk.PlanEntryStatusCompleted:
			s.State = plan.Completed
		}
		steps = append(steps, s)
	}
	p, err := plan.New(steps, now())
	return p, err == nil
}
