package acp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
)

// window is the context window of an agent in tokens: the agent itself takes care of its
// conversation, and never gets that of the session.
const window = 100_000_000

// Model returns the model that stands for an agent.
func Model(name string) llm.Model {
	return llm.Model{Provider: acp.Provider, ID: name, Name: name, Context: window, Images: true, Price: &llm.Price{}}
}

// Provider returns the agent of a session as the model of a run.
func (p *Pool) Provider(key chela.SessionKey, id chela.RunID, name string, prog acp.Program) llm.Provider {
	return model{p, key, id, name, prog}
}

// model is the agent of a session as the model of a run.
type model struct {
	p    *Pool
	key  chela.SessionKey
	run  chela.RunID
	name string
	prog acp.Program
}

var _ llm.Provider = model{}

// interrupted is the answer to a message whose answer was interrupted.
const interrupted = "⚠️ The coding agent %s was interrupted by a restart before it had finished. What it had done until then stays done; nothing was sent to it again. " +
	"Say how to go on, for example: look at what is done, and go on."

// Stream implements llm.Provider: it sends the new messages, unless they were sent before,
// and follows the answer to its end or to the next call.
func (m model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		a, t := m.p.turnOf(m.key, m.run)
		if t == nil {
			var text string
			var err error
			if a, t, text, err = m.begin(ctx, a, r); err != nil {
				yield(llm.Event{}, err)
				return
			}
			if text != "" {
				yield(llm.Event{Kind: llm.Done, Message: m.message(r, llm.StopUnable, llm.Text(text))}, nil)
				return
			}
		}
		t.deny()
		m.follow(ctx, r, a, t, yield)
	}
}

// begin sends the messages of a run. text is the answer if there is nothing to follow.
func (m model) begin(ctx context.Context, a *agent, r *llm.Request) (_ *agent, t *turn, text string, err error) {
	if a != nil {
		if old := a.turnNow(); old != nil { // of a run that a message has replaced
			a.cancelTurn(old)
		}
	}
	x, err := m.p.o.State(ctx, m.key)
	if err != nil {
		return nil, nil, "", err
	}
	if x.Prompted == m.run {
		return nil, nil, fmt.Sprintf(interrupted, m.name), nil
	}
	a, note, err := m.p.acquire(ctx, m.key, x, m.prog)
	if err != nil {
		return nil, nil, "", err
	}
	blocks := m.prompt(a, r.Messages)
	if len(blocks) == 0 { // the run is about events of Chela, which are none of the agent's business
		return nil, nil, run.NoReply, nil
	}
	err = m.p.o.Record(ctx, m.key, func(x *session.External) { x.Remote, x.Prompted = string(a.remote), m.run })
	if err != nil {
		return nil, nil, "", err
	}
	t = a.prompt(m.run, blocks)
	t.note = note
	return a, t, "", nil
}

// prompt returns the messages of persons since the last answer. What Chela itself wrote
// into the conversation is left out.
func (m model) prompt(a *agent, messages []*llm.Message) (blocks []sdk.ContentBlock) {
	first := len(messages)
	for first > 0 && messages[first-1].Role == llm.RoleUser {
		first--
	}
	for _, msg := range messages[first:] {
		if said, ok := strings.CutPrefix(msg.PlainText(), llm.EventPrefix+llm.RequesterPrefix); ok {
			blocks = append(blocks, sdk.TextBlock(said))
			continue
		}
		if own(msg.PlainText()) {
			continue
		}
		for _, part := range msg.Parts {
			switch {
			case part.Kind == llm.PartText && part.Text != "":
				blocks = append(blocks, sdk.TextBlock(part.Text))
			case part.Kind == llm.PartImage:
				blocks = append(blocks, m.picture(a, part))
			}
		}
	}
	return blocks
}

// picture returns a picture for the agent, or a text if it takes none.
func (m model) picture(a *agent, part llm.Part) sdk.ContentBlock {
	if !a.info.AgentCapabilities.PromptCapabilities.Image {
		return sdk.TextBlock("[A picture was sent, which " + m.name + " does not take.]")
	}
	data, kind := part.Data, part.MIME
	if part.Ref != "" {
		var err error
		if data, kind, err = m.p.o.Image(part.Ref); err != nil {
			return sdk.TextBlock("[A picture was sent, which cannot be read.]")
		}
	}
	return sdk.ImageBlock(base64.StdEncoding.EncodeToString(data), kind)
}

// own reports whether a message is one that Chela writes into conversations.
func own(text string) bool {
	for _, prefix := range [...]string{llm.EventPrefix, llm.EventsHeading, llm.OverheardHeading, llm.EarlierHeading} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// message returns a message of the agent.
func (m model) message(r *llm.Request, stop llm.StopReason, parts ...llm.Part) *llm.Message {
	return &llm.Message{Role: llm.RoleAssistant, Parts: parts, Provider: acp.Provider, Model: r.Model, Stop: stop}
}

// follow yields what the agent says, until it makes a call or has finished.
func (m model) follow(ctx context.Context, r *llm.Request, a *agent, t *turn, yield func(llm.Event, error) bool) {
	var text strings.Builder
	for {
		e, more, err := t.next(ctx)
		switch {
		case err != nil:
			a.cancelTurn(t)
			yield(llm.Event{}, err)
			return
		case !more:
			m.end(r, a, t, text.String(), yield)
			return
		}
		switch e.kind {
		case said, thought:
			kind := llm.ThinkingDelta
			if e.kind == said {
				kind = llm.TextDelta
				text.WriteString(e.text)
				t.keep(text.String())
			}
			if !yield(llm.Event{Kind: kind, Text: e.text}, nil) {
				a.cancelTurn(t)
				return
			}
		case planned:
			m.p.o.Plan(ctx, m.key, m.run, e.plan)
		case called:
			var parts []llm.Part
			if strings.TrimSpace(text.String()) != "" {
				parts = append(parts, llm.Text(text.String()))
			}
			call := &llm.ToolCall{ID: e.call, Name: Name, Args: t.arguments(e.call)}
			parts = append(parts, llm.Part{Kind: llm.PartCall, Call: call})
			yield(llm.Event{Kind: llm.Done, Message: m.message(r, llm.StopTools, parts...)}, nil)
			return
		}
	}
}

// end yields the end of an answer.
func (m model) end(r *llm.Request, a *agent, t *turn, text string, yield func(llm.Event, error) bool) {
	a.finish(t)
	x, err := m.p.o.State(context.WithoutCancel(m.p.ctx), m.key)
	if err == nil && x.Once {
		m.p.Stop(m.key, "its task is done")
	}
	if t.err != nil {
		yield(llm.Event{}, t.err)
		return
	}
	if strings.TrimSpace(text) == "" { // what it said before its last call is the answer
		text = t.last()
	}
	stop, why := llm.StopEnd, ""
	switch t.stop {
	case sdk.StopReasonMaxTokens:
		stop = llm.StopLength
	case sdk.StopReasonRefusal:
		why = fmt.Sprintf("(%s refused to go on.)", m.name)
	case sdk.StopReasonMaxTurnRequests:
		why = fmt.Sprintf("(%s stopped at its limit of steps. Say: go on.)", m.name)
	case sdk.StopReasonCancelled:
		why = fmt.Sprintf("(%s stopped before it had finished.)", m.name)
	}
	if strings.TrimSpace(text) == "" && why == "" {
		why = fmt.Sprintf("(%s has finished, without a message.)", m.name)
	}
	if t.note != "" {
		why = strings.TrimSpace(why + " ⚠️ " + t.note)
	}
	if why != "" {
		text = strings.TrimSpace(text + "\n\n" + why)
	}
	yield(llm.Event{Kind: llm.Done, Message: m.message(r, stop, llm.Text(text))}, nil)
}

// arguments returns the arguments of a call as the transcript has them.
func (t *turn) arguments(id string) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[id]
	args := callArgs{ID: id, Title: shorten(c.title, maxTitle), Kind: c.kind, Input: c.input}
	if len(args.Input) > maxInput {
		args.Input = nil
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}
