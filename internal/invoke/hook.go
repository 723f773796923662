package invoke

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/tool"
)

// hooked is the call as hooks see it.
func (k *call) hooked() hook.Call {
	s := &k.v.s
	return hook.Call{Agent: s.Agent, Session: s.Session, Run: s.Run, ID: k.wire.ID, Tool: k.spec.Name, Args: k.args}
}

// hook asks the hooks before the call.
func (k *call) hook(ctx context.Context) *verdict {
	d, err := k.v.d.hooks.Before(ctx, k.hooked(), k.valid)
	switch {
	case err != nil:
		return &verdict{err: err}
	case d.Block != "":
		return k.refuse("blocked", "hook:"+d.By, "blocked: "+d.Block)
	}
	k.asks = d.Asks
	if d.Change == nil {
		return nil
	}
	k.rule, k.changed = "hook:"+strings.Join(d.Change, ","), d.Change
	k.v.d.log.Info("hook rewrote tool arguments", "hook", strings.Join(d.Change, ","), "tool", k.spec.Name,
		"was", k.v.d.short(k.args), "args", k.v.d.short(d.Args))
	k.args = d.Args
	return nil
}

// valid says what is wrong with arguments.
func (k *call) valid(args json.RawMessage) error {
	s, err := k.v.d.schemas.of(k.spec)
	if err != nil {
		return err
	}
	return s.validate(args)
}

// wanted adds to the plan that hooks want a person to allow the call, each time
// anew. A tool that makes no plan of its own gets the plan to be called as it is.
func (k *call) wanted() {
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
		why = append(why, cmp.Or(a.Reason, "the hook "+a.Hook+" asks for it"))
	}
	k.plan.Ask, k.plan.Once, k.plan.Alone, k.plan.Reason = true, true, false, strings.Join(why, "; ")
}

// told tells the hooks after the call.
func (k *call) told(ctx context.Context, res tool.Result, err error, took time.Duration) {
	k.v.d.hooks.After(ctx, k.hooked(), hook.Done{Content: res.Content, Details: res.Details, IsError: res.IsError, Err: err, Took: took})
}

// maxShown bounds the arguments that a result repeats.
const maxShown = 2000

// shown says in the result with which arguments the tool was run, when hooks
// changed them: the model, and who reads the transcript, would take those of
// the call for it.
func (k *call) shown(res tool.Result) tool.Result {
	if k.changed == nil {
		return res
	}
	note := fmt.Sprintf("[Run with other arguments, from the hook %s: %s]", strings.Join(k.changed, ", "), clip(string(k.args), maxShown))
	res.Content = append([]llm.Part{llm.Text(note)}, res.Content...)
	res.Args = k.args
	return res
}
