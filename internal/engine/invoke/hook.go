package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// hookCall returns the call as hooks get it.
func (k *call) hookCall() hook.Call {
	s := &k.v.s
	return hook.Call{Agent: s.Agent, Session: s.Session, Run: s.Run, ID: k.wire.ID, Tool: k.spec.Name, Args: k.args}
}

// runHooks runs the Before hooks.
func (k *call) runHooks(ctx context.Context) *verdict {
	d, err := k.v.x.hooks.Before(ctx, k.hookCall(), k.validate)
	switch {
	case err != nil:
		return &verdict{err: err}
	case d.Block != "":
		return k.refuse(session.DecisionBlocked, "hook:"+d.By, "blocked: "+d.Block)
	}
	k.asks = d.Asks
	if d.Change == nil {
		return nil
	}
	k.rule, k.changed = "hook:"+strings.Join(d.Change, ","), d.Change
	k.v.x.log.Info("hook changed tool arguments", "hook", strings.Join(d.Change, ","), "tool", k.spec.Name,
		"was", k.v.x.shortArgs(k.args), "args", k.v.x.shortArgs(d.Args))
	k.args = d.Args
	return nil
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
	note := fmt.Sprintf("[The hook %s changed the arguments: %s]", strings.Join(k.changed, ", "), humanize.TruncateBytes(string(k.args), maxNotice))
	res.Content = append([]llm.Part{llm.Text(note)}, res.Content...)
	res.Args = k.args
	return res
}
