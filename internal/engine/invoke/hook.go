package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// hookCall returns the call as hooks get it.
func (k *call) hookCall() hook.Call {
	return hook.Call{Context: k.v.hookContext(), ID: k.wire.ID, Tool: k.spec.Name, Args: k.args, Valid: k.validate}
}

// hookContext says to hooks for whom the calls of the view are.
func (v *View) hookContext() hook.Context {
	return hook.Context{
		Agent:     v.s.Agent,
		Session:   v.s.Session,
		SessionID: v.s.Transcript,
		Run:       v.s.Run,
		Workspace: v.s.Dir,
		Requester: v.s.Requester,
	}
}

// runHooks runs the hooks before a call, and those that add variables to a command.
func (k *call) runHooks(ctx context.Context) *verdict {
	if v := k.decide(ctx); v != nil {
		return v
	}
	return k.addEnv(ctx)
}

// addEnv gives a command the variables of the scope, and asks hooks for more, which
// replace them.
func (k *call) addEnv(ctx context.Context) *verdict {
	point := &k.v.x.hooks.ResolveExecEnv
	if !k.spec.Has(tool.RunsCommands) {
		return nil
	}
	if k.v.s.Env != nil && k.v.s.Sandbox == nil {
		k.env = k.v.s.Env()
	}
	if !point.Any() {
		return nil
	}
	var args struct{ Command, Workdir string }
	_ = json.Unmarshal(k.args, &args) // they are valid
	out, err := point.Decide(ctx, hook.ResolveExecEnv{Context: k.v.hookContext(), Tool: k.spec.Name, Command: args.Command,
		Dir: args.Workdir})
	if err != nil {
		return &verdict{err: err}
	}
	env := maps.Clone(k.env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, out.Answer.Env)
	k.env = env
	return nil
}

// decide runs the hooks before a call.
func (k *call) decide(ctx context.Context) *verdict {
	point := &k.v.x.hooks.BeforeToolCall
	if !point.Any() {
		return nil
	}
	d, err := point.Decide(ctx, k.hookCall())
	switch {
	case err != nil:
		return &verdict{err: err}
	case d.Answer.Block:
		return k.refuse(session.DecisionBlocked, "hook:"+d.By, "blocked: "+d.Answer.Reason)
	}
	k.asks = d.Answer.Asks
	if d.Changed == nil {
		return nil
	}
	k.rule, k.changed = "hook:"+strings.Join(d.Changed, ","), d.Changed
	k.v.x.log.Info("hook changed tool arguments", "hook", strings.Join(d.Changed, ","), "tool", k.spec.Name,
		"was", k.v.x.shortArgs(k.args, logged), "args", k.v.x.shortArgs(d.Answer.Args, logged))
	k.args = d.Answer.Args
	return nil
}

// observe tells hooks that a call has ended.
func (k *call) observe(ctx context.Context, res tool.Result, err error, took time.Duration) {
	h := k.v.x.hooks
	if !h.AfterToolCall.Any() && (!res.IsError || !h.ToolCallFailed.Any()) {
		return
	}
	d := hook.Done{
		Call:    k.hookCall(),
		Content: res.Content,
		Details: res.Details,
		IsError: res.IsError,
		Err:     err,
		Took:    took,
		Millis:  took.Milliseconds(),
	}
	switch {
	case err != nil:
		d.Error = err.Error()
	case res.IsError:
		d.Error = text(res)
	}
	h.AfterToolCall.Notify(ctx, d)
	if res.IsError {
		h.ToolCallFailed.Notify(ctx, d)
	}
}

// text returns the text of a result.
func text(res tool.Result) string { return (&llm.Message{Parts: res.Content}).PlainText() }

// persisted returns a result as the hooks before it is stored leave it.
func (k *call) persisted(ctx context.Context, res tool.Result) tool.Result {
	point := &k.v.x.hooks.ToolResultPersist
	if !point.Any() {
		return res
	}
	e := hook.ToolResultPersist{
		Context: k.v.hookContext(),
		ID:      k.wire.ID,
		Tool:    k.spec.Name,
		Text:    text(res),
		IsError: res.IsError,
	}
	d, err := point.Decide(ctx, e)
	switch {
	case err != nil || d.Answer.Text == nil && !d.Answer.Block:
		return res
	case d.Answer.Block:
		d.Answer.Text = new(string)
		*d.Answer.Text = "[The hook " + d.By + " removed the result]"
	}
	content := []llm.Part{llm.Text(*d.Answer.Text)}
	for _, p := range res.Content {
		if p.Kind != llm.PartText && !d.Answer.Block {
			content = append(content, p)
		}
	}
	res.Content, res.Details = content, nil
	return res
}

// validate checks arguments against the schema of the tool.
func (k *call) validate(args json.RawMessage) error {
	s, err := k.v.x.schemas.of(k.spec)
	if err != nil {
		return err
	}
	return s.validate(args)
}

// addHookAsks adds the approvals that hooks require to the plan. Such an approval
// is valid for one call. A tool without a plan gets one with its arguments.
func (k *call) addHookAsks() {
	if len(k.asks) == 0 {
		return
	}
	if k.plan == nil {
		k.plan = &tool.Plan{Effect: k.effect, Text: k.spec.Name + " " + string(k.args), Hash: k.key()}
	}
	var why []string
	if k.plan.Ask && k.plan.Reason != "" {
		why = append(why, k.plan.Reason)
	}
	for _, a := range k.asks {
		why = append(why, cmp.Or(a.Reason, "required by the hook "+a.Hook))
		if a.Wait > 0 && (k.plan.Wait == 0 || a.Wait < k.plan.Wait) {
			k.plan.Wait = a.Wait
		}
	}
	k.plan.Ask, k.plan.Once, k.plan.Unattended, k.plan.Reason = true, true, false, strings.Join(why, "; ")
}

// maxNotice is the length of changed arguments that a result shows, in bytes.
const maxNotice = 2000

// withNotice adds the arguments that the tool was run with to the result if hooks
// changed them. Otherwise the model and readers of the transcript would assume
// those of the call.
func (k *call) withNotice(res tool.Result) tool.Result {
	if k.changed == nil {
		return res
	}
	note := fmt.Sprintf("[The hook %s changed the arguments: %s]", strings.Join(k.changed, ", "),
		humanize.TruncateBytes(string(k.args), maxNotice))
	res.Content = append([]llm.Part{llm.Text(note)}, res.Content...)
	res.Args = k.args
	return res
}
