package invoke

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// call is one call being executed.
type call struct {
	v       *View
	wire    llm.ToolCall
	update  func(string)
	started time.Time

	tool    tool.Tool
	spec    tool.Spec
	args    json.RawMessage // the arguments to use; wire.Args is what the model wrote
	id      string          // of the record; without a ledger, the model's id
	rights  []string        // granted to the call by an approval
	ran     string          // the result of the call without them, if it ran before; empty: it did not
	plan    *tool.Plan
	effect  tool.Effect
	checked bool   // loop detection has seen the call
	keyed   string // cached result of key

	env     map[string]string // that hooks added
	asks    []hook.Ask        // hooks that require an approval
	changed []string          // hooks that changed the arguments

	decision session.Decision // for the record
	rule     string           // for the record: what decided
}

// ruleLoop is the rule of calls that loop detection refused.
const ruleLoop = "loop-detection"

// verdict ends a call before its tool runs.
type verdict struct {
	res tool.Result
	err error
}

// Invoke executes a call. update receives new output while the tool runs; it may
// be nil.
func (v *View) Invoke(ctx context.Context, c llm.ToolCall, update func(string)) (tool.Result, error) {
	if update == nil {
		update = func(string) {}
	}
	k := &call{
		v: v, wire: c, update: func(s string) { update(v.x.redact(s)) }, started: time.Now(),
		args: c.Args, id: c.ID, decision: session.DecisionAllowed, rule: "default",
	}
	ctx = chela.WithPrincipal(ctx, v.s.Principal)
	res, err := k.execute(ctx)
	if err == nil {
		res, err = k.finish(ctx, res)
		res = v.x.clean(res)
	}
	k.record(ctx, res, err)
	return res, err
}

// execute performs the steps before the tool, and runs it.
func (k *call) execute(ctx context.Context) (tool.Result, error) {
	steps := [...]func(context.Context) *verdict{
		k.checkBudget, k.findTool, k.readArguments, k.runHooks, k.checkLoop, k.checkRepeats, k.checkApproval, k.start,
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return tool.Result{}, err
		}
		if v := step(ctx); v != nil {
			return v.res, v.err
		}
	}
	started := time.Now()
	res, err := k.run(ctx)
	if err != nil && ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if blocked, ok := errors.AsType[*tool.Blocked](err); ok {
		k.ran = humanize.TruncateBytes(k.v.x.redact(blocked.Ran), maxRan)
		v := k.requestRights(ctx, blocked)
		switch {
		case v == nil: // the rights are always allowed
			if res, err = k.run(ctx); err != nil && ctx.Err() != nil {
				return tool.Result{}, ctx.Err()
			}
		case v.err != nil:
			return v.res, v.err
		default:
			return k.ended(ctx, v.res, err, time.Since(started)), nil
		}
	}
	if err != nil {
		res = failure(k.spec.Name, err.Error())
	}
	return k.ended(ctx, res, err, time.Since(started)), nil
}

// ended returns the result of a call whose tool has run, and tells hooks of it.
func (k *call) ended(ctx context.Context, res tool.Result, err error, took time.Duration) tool.Result {
	res = k.v.x.bounded(res, k.v.s.MaxResult)
	k.observe(ctx, res, err, took)
	return k.withNotice(k.persisted(ctx, res))
}

// finish adds the call's outcome to the run's history, which may add a warning to
// the result or end the run. It also applies loop detection to a call that was
// refused before that step, because a repeated mistake is a loop too.
func (k *call) finish(ctx context.Context, res tool.Result) (tool.Result, error) {
	if !k.checked {
		if v := k.checkLoop(ctx); v != nil {
			return v.res, v.err
		}
	}
	if h := k.v.state.loop; h != nil && k.rule != ruleLoop {
		if note := h.record(k.outcome(res)); note != "" {
			res.Content = append(res.Content[:len(res.Content):len(res.Content)], llm.Text(note))
		}
	}
	return res, k.checkFailures(res.IsError)
}

// maxRan is the number of bytes that are kept of the result of a call that was stopped for
// lack of rights.
const maxRan = 32 << 10

// refuse ends a call with an error result. One that has run, and was stopped, is not
// recorded as denied.
func (k *call) refuse(decision session.Decision, rule, text string) *verdict {
	if k.ran != "" {
		decision = session.DecisionBlocked
		text = "it ran, and was stopped for lack of rights. It was not run again with them: " +
			strings.TrimPrefix(text, "not run: ") +
			". What it did until then is done. It returned:\n" + k.ran
	}
	k.decision, k.rule = decision, rule
	return &verdict{res: failure(k.name(), text)}
}

// halt ends a call and its run.
func (k *call) halt(rule, text string) *verdict {
	k.decision, k.rule = session.DecisionStopped, rule
	return &verdict{res: failure(k.name(), text), err: stopped(text)}
}

// stopped is tool.ErrStop with the message for the person.
type stopped string

func (s stopped) Error() string { return string(s) }
func (stopped) Unwrap() error   { return tool.ErrStop }

// name returns the tool's name; if there is no such tool, the name that the model
// used.
func (k *call) name() string {
	if k.spec.Name != "" {
		return k.spec.Name
	}
	return k.wire.Name
}

// findTool finds the tool and the call's record.
func (k *call) findTool(context.Context) *verdict {
	if k.v.s.Principal.ID == "" {
		return k.refuse(session.DecisionRefused, "principal", "the call has no principal to act for")
	}
	if t, ok := k.v.lookup(k.wire.Name); ok {
		k.tool, k.spec = t, t.Spec()
		if k.v.s.Ledger == nil {
			return nil
		}
		rec, err := k.v.s.Ledger.Call(k.wire)
		if err != nil {
			return &verdict{err: err}
		}
		k.id, k.rights = rec.ID, rec.Rights
		return nil
	}
	if s := k.v.s.Shown; s != nil {
		if _, ok := s.Find(k.wire.Name); ok && k.v.s.Withheld != "" {
			return k.refuse(session.DecisionRefused, "withheld", k.v.s.Withheld)
		} else if ok {
			return k.refuse(session.DecisionRefused, "fork",
				"a subagent may not use this tool, only its requester. Do without it, or say in your report what the requester has to do")
		}
	}
	if _, ok := k.v.s.Tools.Get(k.wire.Name); ok {
		return k.notAllowed()
	}
	text := fmt.Sprintf("there is no tool %q", k.wire.Name)
	switch near := k.v.tools.Nearest(k.wire.Name); {
	case len(near) > 0:
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	case len(k.v.tools.Names()) > 0:
		text += "; the tools are " + strings.Join(k.v.tools.Names(), ", ")
	}
	return k.refuse(session.DecisionRefused, "unknown-tool", text)
}

// notAllowed refuses a tool that exists but is not allowed.
func (k *call) notAllowed() *verdict {
	set := k.v.s.Tools
	e := Rules(set, k.v.s.Policy, k.v.s.Principal).Explain(k.wire.Name, set.Specs())
	if e.Allowed || e.By == policy.Owner {
		return k.refuse(session.DecisionRefused, "owner-only", "only the owner may use this tool")
	}
	last := e.Steps[len(e.Steps)-1]
	return k.refuse(session.DecisionRefused, strings.TrimSpace("policy "+last.Label+" "+last.Key),
		"the configuration does not allow this tool here")
}

// readArguments repairs and validates the arguments.
func (k *call) readArguments(context.Context) *verdict {
	s, err := k.v.x.schemas.of(k.spec)
	if err != nil {
		return k.refuse(session.DecisionRefused, "schema", err.Error())
	}
	args, repairs, err := s.repair(k.wire, k.spec.Aliases)
	if err == nil {
		err = s.validate(args)
	}
	if len(repairs) > 0 {
		k.v.x.log.Info("tool arguments repaired", "tool", k.spec.Name, "run", k.v.s.Run, "repairs", repairs)
	}
	if err != nil {
		k.v.x.log.Info("tool arguments refused", "tool", k.spec.Name, "run", k.v.s.Run,
			"err", humanize.TruncateBytes(err.Error(), maxErrorText))
		return k.refuse(session.DecisionRefused, "schema", err.Error())
	}
	k.args = args
	return nil
}

// checkLoop applies loop detection.
func (k *call) checkLoop(context.Context) *verdict {
	k.checked = true
	h := k.v.state.loop
	if h == nil {
		return nil
	}
	text, stop := h.judge(k.key(), k.name())
	switch {
	case stop:
		return k.halt(ruleLoop, text)
	case text != "":
		return k.refuse(session.DecisionBlocked, ruleLoop, text)
	}
	return nil
}

// start records the start of a call that cannot simply be repeated after a crash, of a
// keyed one, so that it is not said to have never run if it is not repeated, and of every
// call that was approved.
func (k *call) start(ctx context.Context) *verdict {
	effect := k.effect
	if k.v.s.Ledger == nil || effect == tool.Reads && (k.plan == nil || !k.plan.Ask) {
		return nil
	}
	if k.spec.Keyed {
		effect = tool.Reads // recovery repeats it
	}
	err := k.v.s.Ledger.Start(ctx, k.wire, effect)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &verdict{err: ctx.Err()}
	case chela.CodeOf(err) == chela.CodeConflict && !errors.Is(err, chela.ErrFenced):
		return k.refuse(session.DecisionRefused, "ledger", "not run: "+err.Error())
	}
	return &verdict{res: failure(k.spec.Name, "not run: "+err.Error()), err: fmt.Errorf("start %s: %w", k.spec.Name, err)}
}

// run runs the tool.
func (k *call) run(ctx context.Context) (res tool.Result, err error) {
	defer k.recovered(&err)
	s := &k.v.s
	ctx = journal.WithSource(ctx, journal.Source{
		Agent:   s.Agent,
		Session: s.Session,
		Run:     s.Run,
		Call:    k.id,
		Tool:    k.spec.Name,
		By:      s.Principal.ID,
	})
	return k.tool.Run(ctx, k.toolCall())
}

// toolCall returns the call as the tool gets it.
func (k *call) toolCall() tool.Call {
	s := &k.v.s
	return tool.Call{
		ID:       k.id,
		Args:     k.args,
		Agent:    s.Agent,
		Session:  s.Session,
		Run:      s.Run,
		Dir:      s.Dir,
		Folder:   s.Folder,
		Sandbox:  s.Sandbox,
		Exec:     s.Exec,
		Env:      k.env,
		Plan:     k.plan,
		Rights:   k.rights,
		ReadOnly: s.ReadOnly,
		Private:  s.Private,
		Awaited:  s.Awaited,

		Update:  k.update,
		HasTool: k.v.hasTool,
		Room:    cmp.Or(max(s.MaxResult, 0), defaultMaxResult),
	}
}

// recovered turns a panic of a tool into an error with an id that is also in the
// log.
func (k *call) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	id := strings.ToLower(rand.Text()[:8])
	k.v.x.log.Error("tool panicked", "tool", k.name(), "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fmt.Errorf("the tool crashed (error %s in the log); its arguments may be the reason", id)
}

// key identifies the call by its tool and arguments. It must not be called before
// the arguments are final.
func (k *call) key() string {
	if k.keyed == "" {
		k.keyed = digest(k.name(), canonical(k.args), k.wire.Raw)
	}
	return k.keyed
}

func digest(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = append(strconv.AppendInt(b, int64(len(p)), 10), ':')
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// canonical returns the JSON value with sorted keys and without white space.
func canonical(b json.RawMessage) string {
	v, err := decode(b)
	if err != nil {
		return string(b)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(b)
	}
	return string(out)
}
