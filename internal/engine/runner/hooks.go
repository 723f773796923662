package runner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// hooked is what hooks decided about a run when it was begun or resumed.
type hooked struct {
	prompt  hook.PromptChange
	files   []prompt.File // in the system prompt; nil: those of the workspace
	message *llm.Message  // of the person, that prompt.PrependContext precedes; nil: there is none
	revised bool          // the model was asked to go on once
}

// hookContext says to hooks for whom the run is.
func (e *Execution) hookContext() hook.Context {
	c := hook.Context{
		Agent:     e.run.Agent,
		Session:   e.run.Session,
		SessionID: e.run.SessionID,
		Run:       e.run.ID,
		Requester: e.requester(),
	}
	if e.profile != nil {
		c.Workspace = e.profile.Dir
	}
	return c
}

// requester is the person that the run is for.
func (e *Execution) requester() *hook.Requester {
	return hook.RequesterAt(e.run.Address, e.run.Principal.ID, e.run.Principal.IsOwner())
}

// chooseModel returns the draft of a run with the model that hooks choose.
func (r *Runner) chooseModel(ctx context.Context, draft run.Run, items []queue.Item) (run.Run, error) {
	point := &r.o.Hooks.BeforeModelResolve
	if !point.Any() {
		return draft, nil
	}
	e := Execution{run: draft}
	out, err := point.Decide(ctx, hook.BeforeModelResolve{Context: e.hookContext(), Model: draft.Overrides.Model,
		Prompt: textOf(items)})
	if err == nil && out.Answer.Ref() != "" {
		draft.Overrides.Model = out.Answer.Ref()
	}
	return draft, err
}

// textOf returns the text of the messages that a run answers.
func textOf(items []queue.Item) string {
	var texts []string
	for _, it := range items {
		if it.Kind == queue.Message || it.Kind == queue.Event {
			texts = append(texts, it.Inbound.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// begins calls the hooks at the beginning of a run. done reports that the run has
// ended, because a hook answered or blocked it. A run that is resumed before its model
// has answered has not passed them for certain, and passes them again.
func (r *Runner) begins(ctx context.Context, e *Execution) (done bool, err error) {
	h := r.o.Hooks
	if !h.InboundClaim.Any() && !h.BeforeDispatch.Any() && !h.BeforeAgentRun.Any() && !h.BeforeAgentReply.Any() &&
		!h.BeforePromptBuild.Any() && !h.AgentBootstrap.Any() {
		return false, nil
	}
	if err := r.buildPrompt(ctx, e); err != nil {
		return false, err
	}
	if e.resumed {
		_, made, err := r.earlier(context.WithoutCancel(ctx), e)
		if err != nil || made > 0 || len(e.attempt.open) > 0 {
			return false, err
		}
	}
	text := ""
	if m := e.hooked.message; m != nil {
		text = m.PlainText()
	}
	if e.run.Origin.Kind == chela.OriginPerson {
		in := hook.InboundClaim{
			Context: e.hookContext(), Content: text, Channel: e.run.Address.Channel, Sender: e.run.Origin.ID,
			IsGroup: e.run.Address.Peer.Kind == chela.Group || e.run.Address.Peer.Kind == chela.Room,
		}
		for _, point := range [...]*hook.Deciding[hook.InboundClaim, hook.Claim]{&h.InboundClaim, &h.BeforeDispatch} {
			out, err := point.Decide(ctx, in)
			if err != nil || out.Answer.Handled {
				return true, r.claimed(ctx, e, out.Answer, err)
			}
		}
	}
	start := hook.RunStart{Context: e.hookContext(), Prompt: text, Origin: string(e.run.Origin.Kind),
		Model: e.profile.Model.Ref()}
	block, err := h.BeforeAgentRun.Decide(ctx, start)
	if err != nil || block.Answer.Block {
		if err == nil {
			err = chela.Errorf(chela.CodeForbidden, "blocked: %s", oneLine(block.Answer.Reason, 500))
		}
		return true, r.finish(ctx, e, endOf(ctx, err))
	}
	out, err := h.BeforeAgentReply.Decide(ctx, start)
	if err != nil || out.Answer.Handled {
		return true, r.claimed(ctx, e, out.Answer, err)
	}
	return false, nil
}

// endOf returns the end of a run that could not begin.
func endOf(ctx context.Context, err error) agent.Event {
	reason := agent.Failed
	if ctx.Err() != nil {
		reason = agent.Aborted
	}
	return agent.Event{Kind: agent.End, Reason: reason, Err: err}
}

// claimed ends a run with the answer of a hook instead of the model's.
func (r *Runner) claimed(ctx context.Context, e *Execution, c hook.Claim, err error) error {
	if err != nil {
		if errors.Is(context.Cause(ctx), ErrShutdown) {
			return ErrShutdown
		}
		return r.finish(ctx, e, endOf(ctx, err))
	}
	if text := strings.TrimSpace(c.Text); text != "" {
		m := &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEnd, Parts: []llm.Part{llm.Text(text)}}
		if err := r.add(ctx, e, m, chela.Origin{Kind: chela.OriginHook}); err != nil {
			return err
		}
		e.attempt.answered, e.run.Text = true, text
		r.publish(e, chela.Event{Stream: chela.StreamAssistant, Delta: text})
	} else {
		e.run.Silent = true
	}
	return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Done})
}

// add adds a message to the transcript that neither a person nor the model wrote.
func (r *Runner) add(ctx context.Context, e *Execution, m *llm.Message, from chela.Origin) error {
	entry := &session.Entry{
		ID:      uuid.NewString(),
		Kind:    session.KindMessage,
		Time:    time.Now(),
		Run:     e.run.ID,
		Message: m,
		Origin:  from,
		NanoUSD: -1,
	}
	err := r.update(ctx, e, store.Ordered, func(tx store.Tx) error { return tx.Sessions().Append(e.run.SessionID, entry) })
	if err == nil {
		r.publishStored(e, e.meta, entry)
	}
	return err
}

// buildPrompt calls the hooks that change the prompt of a run, once for each time it
// is begun or resumed.
func (r *Runner) buildPrompt(ctx context.Context, e *Execution) error {
	h := r.o.Hooks
	msgs, err := r.messages(context.WithoutCancel(ctx), e)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(msgs) {
		if m.Role == llm.RoleUser && !isNotes(m) {
			e.hooked.message = m
			break
		}
	}
	if h.BeforePromptBuild.Any() {
		in := hook.BeforePromptBuild{Context: e.hookContext(), Tools: e.profile.Tools.Names()}
		if e.hooked.message != nil {
			in.Prompt = e.hooked.message.PlainText()
		}
		out, err := h.BeforePromptBuild.Decide(ctx, in)
		if err != nil {
			return nil // ctx has ended, which the loop reports
		}
		e.hooked.prompt = out.Answer
	}
	if !h.AgentBootstrap.Any() || e.profile.Files == nil {
		return nil
	}
	in := hook.AgentBootstrap{Context: e.hookContext()}
	in.Workspace = e.profile.Files.Dir()
	for _, f := range r.promptFiles(e) {
		in.Files = append(in.Files, hook.BootstrapFile{Name: f.Name, Text: f.Text, Missing: f.Missing})
	}
	out, err := h.AgentBootstrap.Decide(ctx, in)
	if err != nil || len(out.Changed) == 0 {
		return nil
	}
	e.hooked.files = []prompt.File{}
	for _, f := range out.Answer.Files {
		e.hooked.files = append(e.hooked.files,
			prompt.File{Name: f.Name, Text: strings.ToValidUTF8(f.Text, "\ufffd"), Missing: f.Missing && f.Text == ""})
	}
	return nil
}

// withContext returns the messages with the context that hooks put before the one of
// the person.
func (e *Execution) withContext(msgs []*llm.Message) []*llm.Message {
	text := e.hooked.prompt.PrependContext
	i := slices.Index(msgs, e.hooked.message)
	if text == "" || i < 0 {
		return msgs
	}
	msgs = slices.Clone(msgs)
	old := msgs[i]
	msgs[i] = &llm.Message{Role: old.Role, Parts: append([]llm.Part{llm.Text(text + "\n\n")}, old.Parts...)}
	return msgs
}

// withSystem returns the system prompt as hooks change it.
func (e *Execution) withSystem(blocks []llm.Block) []llm.Block {
	c := e.hooked.prompt
	if c.System != "" {
		blocks = []llm.Block{{Text: c.System, Cache: true}}
	}
	if c.PrependSystem != "" && len(blocks) > 0 {
		blocks[0].Text = c.PrependSystem + "\n\n" + blocks[0].Text
	}
	if c.AppendSystem != "" {
		blocks = append(blocks, llm.Block{Text: "\n" + c.AppendSystem + "\n"})
	}
	return blocks
}

// allows reports whether hooks let the run use a tool.
func (e *Execution) allows(name string) bool {
	return e.hooked.prompt.ToolsAllow == nil || slices.Contains(e.hooked.prompt.ToolsAllow, name)
}

// revise asks hooks about an answer that is about to end the run, once. It reports
// whether the model has to go on.
func (r *Runner) revise(ctx context.Context, e *Execution, end agent.Event) (bool, error) {
	point := &r.o.Hooks.BeforeAgentFinalize
	if !point.Any() || e.hooked.revised || end.Reason != agent.Done || e.pending == nil || ctx.Err() != nil {
		return false, nil
	}
	text := e.pending.entry.Message.PlainText()
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	e.hooked.revised = true
	out, err := point.Decide(ctx, hook.BeforeAgentFinalize{Context: e.hookContext(), Text: text})
	if err != nil || out.Answer.Action != "revise" {
		return false, nil
	}
	if err := r.flush(ctx, e); err != nil {
		return false, err
	}
	return true, r.add(ctx, e, llm.User(llm.EventPrefix+out.Answer.Reason),
		chela.Origin{Kind: chela.OriginHook, ID: out.By})
}

// rewritten returns a message of the model as hooks let it be stored.
func (r *Runner) rewritten(ctx context.Context, e *Execution, m *llm.Message) *llm.Message {
	point := &r.o.Hooks.BeforeMessageWrite
	if !point.Any() {
		return m
	}
	text := m.PlainText()
	out, err := point.Decide(ctx, hook.BeforeMessageWrite{Context: e.hookContext(), Role: string(m.Role), Text: text})
	switch {
	case err != nil || out.Answer.Text == nil && !out.Answer.Block:
		return m
	case out.Answer.Block:
		text = ""
	default:
		text = *out.Answer.Text
	}
	own := &llm.Message{Role: m.Role, Stop: m.Stop}
	if text != "" {
		own.Parts = append(own.Parts, llm.Text(text))
	}
	for _, p := range m.Parts {
		if p.Kind == llm.PartCall {
			own.Parts = append(own.Parts, p)
		}
	}
	return own
}

// notifyEnd tells hooks that a run has ended.
func (r *Runner) notifyEnd(e *Execution) {
	point := &r.o.Hooks.AgentEnd
	if !point.Any() || e.run.Kind != run.Turn {
		return
	}
	msgs, err := r.messages(context.Background(), e)
	if err != nil {
		r.o.Log.Warn("read the messages of a run for hooks", "run", e.run.ID, "err", err)
	}
	point.Notify(hook.WithDepth(context.Background(), hookDepth(e.run)), hook.AgentEnd{
		Context: e.hookContext(), Success: e.run.State == run.OK, Error: e.run.Error, Text: e.run.Text, Messages: msgs,
		Took: e.run.Ended.Sub(e.run.Started).Milliseconds(),
	})
}

// hookDepth returns how many hooks led to a run, for runs whose context has ended.
func hookDepth(r run.Run) int {
	if r.Origin.Kind == chela.OriginHook {
		return 1
	}
	return 0
}
