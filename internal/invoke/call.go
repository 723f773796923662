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

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/tool"
)

// call is one call on its way through the door.
type call struct {
	v      *View
	wire   llm.ToolCall
	update func(string)
	begun  time.Time

	tool    tool.Tool
	spec    tool.Spec
	args    json.RawMessage // what is run; wire.Args is what the model wrote
	plan    *tool.Plan
	effect  tool.Effect
	watched bool   // loop detection was asked
	id      string // see key

	asks    []hook.Ask // hooks that want a person to allow it
	changed []string   // hooks that changed the arguments

	decision string // for the audit: allowed, or what happened instead
	rule     string // for the audit: what decided
}

// verdict is how a call ends before its tool runs.
type verdict struct {
	res tool.Result
	err error
}

// Invoke carries a call out.
func (v *View) Invoke(ctx context.Context, c llm.ToolCall, update func(string)) (tool.Result, error) {
	if update == nil {
		update = func(string) {}
	}
	k := &call{v: v, wire: c, update: func(s string) { update(v.d.redact(s)) }, begun: time.Now(), args: c.Args, decision: "allowed", rule: "default"}
	ctx = chela.WithPrincipal(ctx, v.s.Principal)
	res, err := k.carry(ctx)
	if err == nil {
		res, err = k.settle(ctx, res)
		res = v.d.clean(res)
	}
	k.record(ctx, res, err)
	return res, err
}

// carry takes the call through the door to its tool.
func (k *call) carry(ctx context.Context) (tool.Result, error) {
	steps := [...]func(context.Context) *verdict{k.afford, k.find, k.read, k.hook, k.watch, k.repeat, k.allow, k.start}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return tool.Result{}, err
		}
		if v := step(ctx); v != nil {
			return v.res, v.err
		}
	}
	begun := time.Now()
	res, err := k.run(ctx)
	if err != nil && ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	took := time.Since(begun)
	if err != nil {
		res = failure(k.spec.Name, err.Error())
	}
	res = bounded(res, k.v.s.MaxResult)
	k.told(ctx, res, err, took)
	return k.shown(res), nil
}

// settle writes the call's outcome into the run's history, which may add a
// warning to it or end the run. A call that was refused before loop detection
// was asked is judged now: a mistake that is repeated for ever is a loop too.
func (k *call) settle(ctx context.Context, res tool.Result) (tool.Result, error) {
	if !k.watched {
		if v := k.watch(ctx); v != nil {
			return v.res, v.err
		}
	}
	if h := k.v.state.loop; h != nil && k.rule != "loop-detection" {
		if note := h.record(k.outcome(res)); note != "" {
			res.Content = append(res.Content[:len(res.Content):len(res.Content)], llm.Text(note))
		}
	}
	return res, k.failing(res.IsError)
}

// refuse ends a call with an error result.
func (k *call) refuse(decision, rule, text string) *verdict {
	k.decision, k.rule = decision, rule
	return &verdict{res: failure(k.name(), text)}
}

// halt ends a call and its run.
func (k *call) halt(rule, text string) *verdict {
	k.decision, k.rule = "stopped", rule
	return &verdict{res: failure(k.name(), text), err: stopped(text)}
}

// stopped is tool.ErrStop with the one message to the person.
type stopped string

func (s stopped) Error() string { return string(s) }
func (stopped) Unwrap() error   { return tool.ErrStop }

// name is the tool's name, or what the model called it.
func (k *call) name() string {
	if k.spec.Name != "" {
		return k.spec.Name
	}
	return k.wire.Name
}

// find looks the tool up.
func (k *call) find(context.Context) *verdict {
	if k.v.s.Principal.ID == "" {
		return k.refuse("refused", "principal", "nobody is named for whom this would act")
	}
	t, ok := k.v.lookup(k.wire.Name)
	if ok {
		k.tool, k.spec = t, t.Spec()
		return nil
	}
	if _, ok := k.v.s.Tools.Get(k.wire.Name); ok {
		return k.withheld()
	}
	text := fmt.Sprintf("there is no tool %q", k.wire.Name)
	switch near := k.v.tools.Nearest(k.wire.Name); {
	case len(near) > 0:
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	case len(k.v.tools.Names()) > 0:
		text += "; there are " + strings.Join(k.v.tools.Names(), ", ")
	}
	return k.refuse("refused", "unknown-tool", text)
}

// withheld refuses a tool that there is and that is not offered.
func (k *call) withheld() *verdict {
	set := k.v.s.Tools
	e := Rules(set, k.v.s.Policy, k.v.s.Principal).Explain(k.wire.Name, set.Names())
	if e.Offered || e.By == policy.Owner {
		return k.refuse("refused", "owner-only", "only the owner may use this tool")
	}
	last := e.Steps[len(e.Steps)-1]
	return k.refuse("refused", strings.TrimSpace("policy "+last.Label+" "+last.Key), "the configuration does not offer this tool here")
}

// read repairs and validates the arguments.
func (k *call) read(context.Context) *verdict {
	s, err := k.v.d.schemas.of(k.spec)
	if err != nil {
		return k.refuse("refused", "schema", err.Error())
	}
	args, repairs, err := s.repair(k.wire, k.spec.Aliases)
	if err == nil {
		err = s.validate(args)
	}
	if len(repairs) > 0 {
		k.v.d.log.Info("tool arguments repaired", "tool", k.spec.Name, "run", k.v.s.Run, "repairs", repairs)
	}
	if err != nil {
		k.v.d.log.Info("tool arguments refused", "tool", k.spec.Name, "run", k.v.s.Run, "err", clip(err.Error(), 200))
		return k.refuse("refused", "schema", err.Error())
	}
	k.args = args
	return nil
}

// watch asks loop detection.
func (k *call) watch(context.Context) *verdict {
	k.watched = true
	h := k.v.state.loop
	if h == nil {
		return nil
	}
	text, stop := h.judge(k.key(), k.name())
	switch {
	case stop:
		return k.halt("loop-detection", text)
	case text != "":
		return k.refuse("blocked", "loop-detection", text)
	}
	return nil
}

// allow makes the plan of a call that has one and gets it allowed.
func (k *call) allow(ctx context.Context) *verdict {
	k.effect = k.spec.Effect
	if p, ok := k.tool.(tool.Planner); ok {
		plan, err := k.planned(ctx, p)
		switch {
		case err != nil && ctx.Err() != nil:
			return &verdict{err: ctx.Err()}
		case err != nil:
			return k.refuse("refused", "plan", err.Error())
		case plan.Deny != "":
			return k.refuse("denied", "plan", plan.Deny)
		}
		plan.Hash = cmp.Or(plan.Hash, k.key())
		k.plan, k.effect = &plan, plan.Effect
	}
	k.wanted()
	switch {
	case k.plan == nil || !k.plan.Ask:
		return nil
	case k.v.s.Ledger == nil:
		return k.nobody()
	}
	return k.decided(ctx)
}

// planned asks the tool for its plan.
func (k *call) planned(ctx context.Context, p tool.Planner) (plan tool.Plan, err error) {
	defer k.recovered(&err)
	return p.Plan(ctx, k.use())
}

// decided lets a call pass that a person has allowed, and suspends one that
// nobody has decided.
func (k *call) decided(ctx context.Context) *verdict {
	l := k.v.s.Ledger
	req, err := l.Decision(ctx, k.wire)
	if err != nil {
		return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
	}
	switch {
	case req.ID == "":
		return k.ask(ctx)
	case req.Decision == approval.Pending:
		k.decision, k.rule = "suspended", "approval"
		return &verdict{err: tool.ErrSuspended}
	case !req.Decision.Allows():
		return k.refuse("denied", "approval", deniedText(req))
	case req.Hash != k.plan.Hash:
		return k.refuse("denied", "approval", "not run: what it would do now is not what was approved. Call the tool again to ask anew")
	}
	k.rule = "approval"
	return nil
}

// ask suspends the call, unless the person has allowed its plan always.
func (k *call) ask(ctx context.Context) *verdict {
	l := k.v.s.Ledger
	if !k.plan.Once {
		always, err := l.Always(ctx, k.spec.Name, k.plan.Hash)
		if err != nil {
			return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
		}
		if always {
			k.rule = "allowed-always"
			return nil
		}
	}
	if k.v.s.Alone {
		return k.nobody()
	}
	plan, err := k.legible()
	if err != nil {
		return k.refuse("refused", "approval", "not asked about: "+err.Error()+". Make it shorter, or write what is long to a file first")
	}
	if err := l.Suspend(ctx, k.wire, plan); err != nil {
		return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
	}
	k.decision, k.rule = "suspended", "approval"
	return &verdict{err: tool.ErrSuspended}
}

// nobody refuses a call that must ask where nobody is asked.
func (k *call) nobody() *verdict {
	if k.plan.Alone {
		k.rule = "ask-fallback"
		return nil
	}
	return k.refuse("denied", "approval", "this needs a person's approval, and there is nobody to ask here: "+k.plan.Reason)
}

// legible is the plan as it is stored, and shown to people.
func (k *call) legible() (plan tool.Plan, err error) {
	plan = *k.plan
	if plan.Text, err = approval.Show(k.v.d.redact(plan.Text)); err != nil {
		return plan, err
	}
	plan.Reason, err = approval.Show(k.v.d.redact(plan.Reason))
	return plan, err
}

// deniedText tells the model why a call was not allowed.
func deniedText(r approval.Request) string {
	switch r.Decision {
	case approval.Expired:
		return "not run: nobody answered the request for approval in time. Ask the person whether it is still wanted, then call the tool again: a new request is made"
	case approval.Withdrawn:
		return "not run: the request for approval was withdrawn because the run was stopped. Call the tool again if it is still wanted"
	}
	by := r.By
	if by == "" {
		by = "the person"
	}
	return "not run: denied by " + by + ". Do not try it in another way; call the tool again only when the person asks for it"
}

// start records that the call begins, when it has an effect or was decided.
func (k *call) start(ctx context.Context) *verdict {
	if k.v.s.Ledger == nil || k.effect == tool.Reads && (k.plan == nil || !k.plan.Ask) {
		return nil
	}
	err := k.v.s.Ledger.Start(ctx, k.wire, k.effect)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &verdict{err: ctx.Err()}
	case chela.CodeOf(err) == chela.CodeConflict && !errors.Is(err, chela.ErrFenced):
		return k.refuse("refused", "ledger", "not run: "+err.Error())
	}
	return &verdict{res: failure(k.spec.Name, "not run: "+err.Error()), err: fmt.Errorf("begin %s: %w", k.spec.Name, err)}
}

// run runs the tool.
func (k *call) run(ctx context.Context) (res tool.Result, err error) {
	defer k.recovered(&err)
	return k.tool.Run(ctx, k.use())
}

// use is the call as the tool gets it.
func (k *call) use() tool.Call {
	s := &k.v.s
	return tool.Call{
		ID: k.wire.ID, Args: k.args, Agent: s.Agent, Session: s.Session, Run: s.Run, Dir: s.Dir,
		Plan: k.plan, Update: k.update, Offered: k.v.offers,
	}
}

// recovered turns a panic of a tool into an error with an id that is also in
// the log.
func (k *call) recovered(err *error) {
	p := recover()
	if p == nil {
		return
	}
	id := strings.ToLower(rand.Text()[:8])
	k.v.d.log.Error("tool panicked", "tool", k.name(), "id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	*err = fmt.Errorf("the tool crashed (error %s in the log); its arguments may be the reason", id)
}

// key identifies the call by what it would do. It is asked for when the
// arguments are final.
func (k *call) key() string {
	if k.id == "" {
		k.id = digest(k.name(), canonical(k.args), k.wire.Raw)
	}
	return k.id
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

// canonical returns the JSON value with sorted keys and without blanks.
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
