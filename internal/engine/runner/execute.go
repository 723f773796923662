package runner

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/internal/engine/budget"
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
	task    bool // somebody waits for its end; see Inbound.Task

	hooked hooked
	calls  calls

	compactions compactions
	quiet       bool // nobody sees the turn: only its messages are published
	attempt     attempt
	pending     *pendingMessage // the last assistant message, not committed yet
	spent       spent
	reasoning   reasoning
	cause       error  // why the loop ended; nil: with an answer
	unsaid      string // the answer that Chela gave because the model gave none

	asked    *llm.Request        // of the last model call
	reserved *budget.Reservation // for the model call in progress; nil: none
	steps    int                 // of Profile.Ladder that were taken

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
	stop     llm.StopReason // of the last answer
	shown    bool           // text of the current turn was published
	length   int            // of that text, in bytes
	failed   string         // the last tool that failed, with its error
	estimate calibration    // of the next request
}

// pendingMessage is an assistant message that is committed together with what
// follows it.
type pendingMessage struct {
	entry     *session.Entry
	usage     usage.Row
	estimated int // tokens of its request; 0: unknown
	calls     []session.Call
	reserved  *budget.Reservation // for the model call; nil: none
	events    []chela.Event       // about budgets, to publish after the commit
	fallback  string              // the model that answered instead of the selected one
	notice    *session.Entry      // tells the person about a fallback; nil: nothing changed
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
func (e *Execution) Live() queue.Live {
	// later, what joins it would be interrupted with it
	return queue.Live{Run: e.run, Steerable: e.run.Attempts <= startsAtOnce && (e.profile == nil || !e.profile.Deaf)}
}

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
	if n := hookDepth(e.run); n > 0 {
		ctx = hook.WithDepth(ctx, n)
	}
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
	to := e.run.Address
	if e.run.Kind == run.Compact && e.run.Origin.Kind != chela.OriginPerson { // nobody waits for an answer
		to = chela.Address{}
	}
	r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: e.phase, Data: to})
	switch {
	case !e.resumed:
		r.publishEntries(e, e.started.input...)
		r.o.Bus.Publish(chela.Event{Session: e.run.Session, Stream: chela.StreamSession, Phase: chela.PhasePatched,
			Data: e.meta})
	case e.phase == chela.PhaseStart:
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: interruptedNotice})
	}
	if e.profile.Home != nil {
		e.profile.Home(ctx)
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
		r.publish(e, chela.Event{Stream: chela.StreamNotice, Text: "the state directory cannot be written; waiting: " +
			chela.PeopleText(err)})
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
		return r.compactRun(ctx, e)
	}
	if e.attempt.answered {
		return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Done})
	}
	if err := r.checkWindow(e); err != nil {
		return r.finish(ctx, e, agent.Event{Kind: agent.End, Reason: agent.Failed, Err: err})
	}
	if done, err := r.begins(ctx, e); done || err != nil {
		return err
	}
	if err := r.addNotes(ctx, e); err != nil {
		return err
	}
	limit := e.profile.MaxAttempts
	if limit <= 0 {
		limit = defaultMaxAttempts
	}
	retries := 0
	for n := 1; ; n++ {
		if err := r.checkSize(ctx, e); err != nil {
			return err
		}
		end, err := r.attempt(ctx, e)
		if err != nil {
			return err
		}
		switch {
		case errors.Is(context.Cause(ctx), ErrShutdown) && end.Reason == agent.Aborted:
			// the next start resumes the run from its rows
			return errors.Join(ErrShutdown, r.settleAborted(ctx, e))
		case errors.Is(end.Err, errNotAlive):
			return errNotAlive
		}
		if again, err := r.revise(ctx, e, end); err != nil {
			return err
		} else if again {
			continue
		}
		if end.Reason == agent.Failed && n < limit && ctx.Err() == nil {
			recovered, err := r.recoverModelError(ctx, e, end.Err, &retries)
			if err != nil {
				return err
			}
			if recovered {
				continue
			}
			if ctx.Err() != nil {
				if end, err = aborted(ctx); err != nil {
					return err
				}
			}
		}
		if over, ok := errors.AsType[*usage.BudgetError](end.Err); ok {
			if err := r.exhausted(ctx, e, over); err != nil {
				return err
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
	prompt := r.request(e, view.Specs(false), open)
	e.attempt.estimate.base = estimate.Request(&prompt)
	prompt.Messages = e.withContext(msgs)
	req := &agent.Request{
		Model:         r.sized(e, r.provider(e)),
		Prompt:        prompt,
		Tools:         view,
		Steer:         func(ctx context.Context) ([]*llm.Message, error) { return r.steer(ctx, e) },
		Fit:           func(ctx context.Context, ms []*llm.Message) ([]*llm.Message, error) { return r.fit(ctx, e, ms) },
		MaxRounds:     p.MaxRounds,
		MaxCalls:      p.MaxCalls,
		EarlierRounds: rounds,
		EarlierCalls:  made,
		ReadOnlyFirst: e.attempt.unknown,
	}
	for _, k := range e.attempt.open {
		req.Open = append(req.Open, k.Wire)
	}
	end, err := r.loop(ctx, e, req)
	if err == nil {
		e.attempt.open, e.attempt.unknown = nil, false
	}
	return end, err
}

// provider returns the model of a run: it is sent the newest messages of the history,
// while the process holds the run's lease, and paid.
func (r *Runner) provider(e *Execution) llm.Provider {
	return limited{r.guard(e, e.profile.Provider), e.profile.MaxHistory}
}

// loop runs the agent loop and commits what its events say. It returns the last event.
func (r *Runner) loop(ctx context.Context, e *Execution, req *agent.Request) (end agent.Event, err error) {
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
	if errors.Is(end.Err, errNotAlive) {
		return end, nil
	}
	return end, r.release(ctx, e)
}

// callsOf returns all calls of a run, newest first.
func callsOf(r session.CallReader, id chela.RunID) ([]session.Call, error) {
	return r.Recent(session.CallQuery{Run: id, Limit: math.MaxInt32})
}

// earlier returns the rounds of tool calls that the run has completed, and the calls
// that it has made. They count towards its limits when it is resumed, and when the
// model is asked again after an error.
func (r *Runner) earlier(ctx context.Context, e *Execution) (rounds, made int, err error) {
	if !e.resumed && e.calls.round == 0 {
		return 0, 0, nil
	}
	list, err := store.Get(ctx, r.o.Store, func(rd store.Reader) ([]session.Call, error) {
		return callsOf(rd.Calls(), e.run.ID)
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
