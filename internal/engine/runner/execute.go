package runner

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// Execution is a run that this process carries out.
type Execution struct {
	run     run.Run
	lease   lease.Lease
	alive   func() bool  // whether this process certainly still holds the lease
	meta    session.Meta // as the last commit left it
	profile *Profile
	session Session

	phase   chela.Phase // of its first event: chela.PhaseStart or PhaseResume
	started started     // of a new run
	resumed bool

	calls   calls
	attempt attempt
	pending *pendingMessage // the last assistant message, not committed yet
	spent   spent
	limited bool // one of its limits ended the run

	// open is what had not ended in the session when the run began or was resumed; nil:
	// it must be read.
	open *openWork
	// newest is the Seq of the transcript's last entry as the commit that began
	// the run left it; 0: not known, there may be newer ones.
	newest int64
	// noneWaiting is set when no item waited for the session in the run's last
	// commit. Then the queue is not read before Session.Changed.
	noneWaiting bool
}

// calls is the state of a run's tool calls.
type calls struct {
	byWire   map[string]session.Call // of the last assistant message, by the provider's id
	outcomes sync.Map                // session.Outcome of calls that ended, by Call.ID
	err      atomic.Pointer[error]   // why a row about a call could not be written
	round    int
	open     bool // there may be calls or approvals that are not closed
}

// attempt is the state of one pass through the agent loop.
type attempt struct {
	open     []session.Call // calls without a result, of a resumed run
	unknown  bool           // a call has an unknown outcome: only reading tools at first
	answered bool           // the transcript ends with the answer already
	shown    bool           // text of the current turn was published
	failed   string         // the last tool that failed, with its error
}

// pendingMessage is an assistant message that is committed together with what
// follows it.
type pendingMessage struct {
	entry    *session.Entry
	usage    usage.Row
	calls    []session.Call
	fallback string         // the model that answered instead of the selected one
	notice   *session.Entry // tells the person about a fallback; nil: nothing changed
}

// entries returns the transcript entries of the message.
func (p *pendingMessage) entries() []*session.Entry {
	if p.notice == nil {
		return []*session.Entry{p.entry}
	}
	return []*session.Entry{p.notice, p.entry}
}

// Session is how a run communicates with the goroutine that serves its session.
type Session interface {
	// Changed reports whether items may have arrived since its last call.
	Changed() bool
	// Ended is called after the commit that ends or suspends the run, before
	// observers are told.
	Ended()
}

// ID returns the id of the run.
func (e *Execution) ID() chela.RunID { return e.run.ID }

// Live returns the run as it is now, for [queue.Plan].
func (e *Execution) Live() queue.Live { return queue.Live{Run: e.run, Steerable: true} }

// NoneWaiting reports whether no other item waited for the session in the run's
// last commit.
func (e *Execution) NoneWaiting() bool { return e.noneWaiting }

// Policy returns the queue policy for messages that arrive during the run.
func (r *Runner) Policy(e *Execution) queue.Policy {
	return r.o.Profiles.Policy(e.meta, e.run.Address)
}

// timeout returns the time limit of the run; 0: none.
func (e *Execution) timeout() time.Duration {
	return cmp.Or(e.run.Overrides.Timeout, e.profile.Timeout)
}

// Execute carries a run out until it ends or is suspended. On an error the rows
// of the run say what is left to do.
func (r *Runner) Execute(ctx context.Context, e *Execution, s Session) error {
	e.session = s
	ctx = chela.WithPrincipal(ctx, e.run.Principal)
	if timeout := e.timeout(); timeout > 0 {
		from := e.run.Started
		if e.phase == chela.PhaseResume { // the time that a person took to decide does not count
			from = time.Now()
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, from.Add(timeout), errTimeout)
		defer cancel()
	}
	if !e.resumed {
		r.publishStarted(e)
	}
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: e.phase, Data: e.run.Address})
	switch {
	case !e.resumed:
		r.publishEntries(e, e.started.input...)
		r.o.Bus.Publish(chela.Event{Session: e.run.Session, Stream: chela.StreamSession, Phase: chela.PhasePatched, Data: e.meta})
	case e.phase == chela.PhaseStart:
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: interruptedNotice})
	}
	err := Guard(func() error { return r.attempts(ctx, e) })
	if p, ok := errors.AsType[*panicError](err); ok {
		r.o.Log.Error("run panicked", "session", e.run.Session, "run", e.run.ID, "err", p, "stack", string(p.stack))
		e.pending = nil
		err = r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Failed, Err: p})
	}
	switch {
	case err == nil || errors.Is(err, ErrShutdown) || errors.Is(err, errNotAlive):
	case errors.Is(err, chela.ErrFenced): // the session was deleted or taken over: nothing can be written
		e.run.State, e.run.Error, e.run.Ended = run.Superseded, errorText(err), time.Now()
		e.run.Text, e.run.Footer = "", "" // not stored
		r.publishEnd(e)
	case ctx.Err() == nil || !errors.Is(context.Cause(ctx), ErrShutdown):
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: "the state directory cannot be written; waiting: " + oneLine(err.Error(), 200)})
	}
	return err
}

// attempts runs the agent loop until the run ends, and repeats it after errors of
// the model that can be recovered.
func (r *Runner) attempts(ctx context.Context, e *Execution) error {
	if u, ok := e.profile.Provider.(unusable); ok {
		return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Failed, Err: u.err})
	}
	if e.run.Kind == run.Compact {
		if _, err := r.cutHistory(ctx, e, ""); err != nil {
			return err
		}
		return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Done})
	}
	if e.attempt.answered {
		return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Done})
	}
	limit := e.profile.MaxAttempts
	if limit <= 0 {
		limit = defaultMaxAttempts
	}
	retries := 0
	for n := 1; ; n++ {
		end, err := r.attempt(ctx, e)
		if err != nil {
			return err
		}
		switch {
		case errors.Is(context.Cause(ctx), ErrShutdown) && end.Reason == agent.Aborted:
			return ErrShutdown // the next start resumes the run from its rows
		case errors.Is(end.Err, errNotAlive):
			return errNotAlive
		}
		if end.Reason == agent.Failed && n < limit && ctx.Err() == nil {
			recovered, err := r.recoverModelError(ctx, e, end.Err, &retries)
			if err != nil {
				return err
			}
			if recovered {
				continue
			}
		}
		return r.finish(ctx, e, end)
	}
}

// attempt runs the agent loop once, from the state of the transcript. An error
// means that rows could not be written; nothing was published that is not stored.
func (r *Runner) attempt(ctx context.Context, e *Execution) (agent.Event, error) {
	msgs, err := r.messages(context.WithoutCancel(ctx), e) // a cancelled ctx ends the loop below
	if err != nil {
		return agent.Event{}, err
	}
	rounds, made, err := r.earlier(context.WithoutCancel(ctx), e)
	if err != nil {
		return agent.Event{}, err
	}
	open, err := r.openWork(context.WithoutCancel(ctx), e)
	if err != nil {
		return agent.Event{}, err
	}
	scope := r.scope(e)
	scope.Earlier = made
	p, view := e.profile, r.o.Executor.For(scope)
	think := p.think(e.meta, e.run)
	req := &agent.Request{
		Model: guarded{p.Provider, e.alive},
		Prompt: llm.Request{
			Model: p.Model.ID, Messages: msgs, MaxTokens: p.MaxTokens,
			System: r.system(e, view.Specs(false), think, open), Thinking: think, Cache: p.Cache, Session: e.meta.ForkOf(e.run).Transcript,
		},
		Tools:         view,
		Steer:         func(ctx context.Context) ([]*llm.Message, error) { return r.steer(ctx, e) },
		MaxRounds:     p.MaxRounds,
		MaxCalls:      p.MaxCalls,
		EarlierRounds: rounds,
		EarlierCalls:  made,
		ReadOnlyFirst: e.attempt.unknown,
	}
	for _, k := range e.attempt.open {
		req.Open = append(req.Open, k.Wire)
	}
	var end agent.Event
	for ev := range agent.Run(ctx, req) {
		if ev.Kind == agent.End {
			end = ev
			continue
		}
		if err := r.handle(ctx, e, ev); err != nil {
			return end, err
		}
	}
	if err := e.calls.err.Load(); err != nil {
		return end, *err
	}
	e.attempt.open, e.attempt.unknown = nil, false
	return end, nil
}

// earlier returns the rounds of tool calls that the run has completed, and the calls
// that it has made. They count towards its limits when it is resumed, and when the
// model is asked again after an error.
func (r *Runner) earlier(ctx context.Context, e *Execution) (rounds, made int, err error) {
	if !e.resumed && e.calls.round == 0 {
		return 0, 0, nil
	}
	list, err := store.Get(ctx, r.o.Store, func(rd store.Reader) ([]session.Call, error) {
		return rd.Calls().Recent(session.CallQuery{Run: e.run.ID, Limit: math.MaxInt32})
	})
	closed := map[string]bool{} // by round
	for _, k := range list {
		round := k.ID[:strings.LastIndexByte(k.ID, ':')]
		before, known := closed[round]
		closed[round] = k.State == session.Closed && (before || !known)
		if k.Outcome.Decision != "" { // not skipped
			made++
		}
	}
	for _, done := range closed {
		if done {
			rounds++
		}
	}
	return rounds, made, err
}

// system returns the system prompt of a run that may use the tools. In a group it
// does not contain the files that are private to the person. The prompt of a forked
// session is that of the run that it was forked from, except for what is open in it.
func (r *Runner) system(e *Execution, tools []llm.ToolSpec, think llm.Level, open openWork) []llm.Block {
	from := e.meta.ForkOf(e.run)
	in, to := e.profile.Prompt, from.Address
	if e.profile.Files != nil && from.Overrides.Context != run.ContextLight {
		child := from.Bounds.Depth > 0
		in.Files = e.profile.Files.Files(!child && (to.Local() || to.Peer.Kind == chela.Direct))
		if child {
			in.Files = prompt.ForChildren(in.Files)
		}
	}
	if e.profile.Files != nil && from.Bounds.Depth < e.profile.MaxDepth {
		in.Types = typeLines(e.profile.Files)
	}
	in.Tools, in.Dir, in.Now = tools, e.profile.Dir, time.Now()
	in.Extra = strings.TrimSpace(from.Prompt + "\n\n" + from.Overrides.Prompt)
	in.Agent, in.Model, in.Channel, in.Thinking = string(e.meta.Agent), e.profile.Model.Ref(), to.Channel, think
	in.Children = subagent.Prompt(open.children)
	if slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Name == planTool }) {
		in.Plan = open.plan.Prompt()
	}
	blocks := slices.Clone(r.prompts.Build(in)) // the files may repeat a secret
	for i := range blocks {
		blocks[i].Text = r.o.Executor.Redact(blocks[i].Text)
	}
	return blocks
}

// planTool is the name of the tool with which the model keeps its plan.
const planTool = "plan"

// openWork is what has not ended in a session: it is in the system prompt of each
// attempt, so that the model knows it even if the messages about it are no longer sent.
type openWork struct {
	plan     plan.Plan
	children []subagent.Running
}

// openWork returns what has not ended in the session of a run: what the commit that began
// or resumed the run read, or, in later attempts, what the rows say now.
func (r *Runner) openWork(ctx context.Context, e *Execution) (openWork, error) {
	if w := e.open; w != nil {
		e.open = nil
		return *w, nil
	}
	return store.Get(ctx, r.o.Store, func(rd store.Reader) (openWork, error) {
		m, err := session.Lookup(rd.Sessions(), e.run.Session)
		if err != nil {
			return openWork{}, err
		}
		return readOpenWork(m, rd.Children(), rd.Runs())
	})
}

// readOpenWork reads what has not ended in a session.
func readOpenWork(m session.Meta, children subagent.Reader, runs run.Reader) (openWork, error) {
	w := openWork{plan: m.Plan}
	open, err := children.Open(m.Key)
	for i := 0; i < len(open) && err == nil; i++ {
		var active []run.Run
		active, err = runs.Active(open[i].Session)
		w.children = append(w.children, subagent.Running{Child: open[i], State: subagent.StateOf(active)})
	}
	return w, err
}

// typeLines describes the agent types of a workspace, one line each.
func typeLines(w *prompt.Workspace) (lines []string) {
	types, _ := w.Types()
	for _, t := range types {
		lines = append(lines, t.Name+": "+t.Description)
	}
	return lines
}

// scope returns what the executor has to know about the run.
func (r *Runner) scope(e *Execution) invoke.Scope {
	var rules policy.Pipeline
	if e.profile.Policy != nil {
		rules = e.profile.Policy(e.run.Principal)
	}
	var box *sandbox.Session
	if e.profile.Sandbox != nil {
		box = e.profile.Sandbox(e.run.Principal)
	}
	s := invoke.Scope{
		Agent: e.run.Agent, Session: e.run.Session, Run: e.run.ID, Dir: e.profile.Dir, Folder: e.meta.Bounds.Folder, Sandbox: box,
		Principal: e.run.Principal, Tools: e.permitted(e.meta.Bounds, e.run.Overrides), Policy: rules, Budget: e.profile.Budget, Loop: e.profile.Loop,
		ReadOnly: e.meta.Bounds.ReadOnly, Ledger: ledger{r, e},
		Started: time.Now(), // the time that a person took to decide does not count
		Spent: func() usage.Sum {
			return usage.Sum{Tokens: e.spent.tokens, NanoUSD: e.spent.nanoUSD, Calls: e.spent.calls}
		},
	}
	if e.meta.Forked() && e.profile.ForkPolicy != nil {
		from := e.meta.ForkOf(e.run)
		shown, _ := invoke.Allowed(e.permitted(from.Bounds, from.Overrides), e.profile.ForkPolicy(e.run.Principal), e.run.Principal)
		s.Shown = &shown
	}
	return s
}

// permitted returns the tools that the bounds of a session and the overrides of a run
// permit.
func (e *Execution) permitted(b session.Bounds, o run.Overrides) tool.Set {
	if len(b.Tools) == 0 && o.Tools.IsZero() {
		return e.profile.Tools
	}
	names := session.Permitted(e.profile.Tools.Names(), b, o, policy.Match)
	return e.profile.Tools.Filter(func(s tool.Spec) bool { return slices.Contains(names, s.Name) })
}
