package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Options are the dependencies of a Runner. Fields that may be nil say so; the
// others are required.
type Options struct {
	Log      *slog.Logger
	Store    store.Store
	Bus      *bus.Bus
	Owner    *leaseholder.Holder // this process
	Executor *invoke.Executor
	Profiles Profiles
	Budgets  *budget.Budgets // nil: those of the store
	Ended    []Ended
	// Hooks run at the points of a run; nil: there are none.
	Hooks *hook.Points
	// Ending is called before the commit that ends a run. It asks hooks and sets
	// run.Run.Decided. nil: nothing is decided.
	Ending   func(context.Context, *run.Run)
	Children Children // nil: no session has any

	// Step is called at named points of a run, before the named step. Tests stop
	// the process in it.
	Step func(name string)
}

// Ended observes the end of runs. The outer part computes; the function that it
// returns (nil: nothing) writes in the commit that ends the run, for example what
// is to be delivered or what a parent run or a job waits for. Neither part does
// I/O.
type Ended func(run.Run) func(store.Tx) error

// Children knows the sessions that other sessions have started. Its methods are called
// in transactions and do no I/O. Package spawn implements it.
type Children interface {
	// Open reports whether a run that is about to end has children that have not ended,
	// or results of children that wait for it.
	Open(store.Tx, run.Run) (bool, error)
	// Stop is called in a commit that stops all work of a session. It returns the
	// sessions below whose work is stopped in the same commit.
	Stop(store.Tx, chela.SessionKey) ([]chela.SessionKey, error)
	// Deleted is called in the commit that stops the work of a session that is to be
	// deleted, and again in the one that deletes it, before its rows are deleted.
	Deleted(store.Tx, chela.SessionKey) error
}

// NoChildren is Children of a gateway in which no session has any.
type NoChildren struct{}

// Open implements [Children].
func (NoChildren) Open(store.Tx, run.Run) (bool, error) { return false, nil }

// Stop implements [Children].
func (NoChildren) Stop(store.Tx, chela.SessionKey) ([]chela.SessionKey, error) { return nil, nil }

// Deleted implements [Children].
func (NoChildren) Deleted(store.Tx, chela.SessionKey) error { return nil }

// Runner carries out runs. It is safe for concurrent use.
type Runner struct {
	o       Options
	cache   *session.Cache
	prompts prompt.Builder

	smallWindows sync.Map // models that were checked, by provider/model
}

// cacheBytes limits the memory for compiled transcripts of all sessions together.
const cacheBytes = 48 << 20

// restBytes is how much of them a gateway keeps while nothing happens.
const restBytes = 1 << 20

// New returns a Runner.
func New(o Options) *Runner {
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	if o.Budgets == nil {
		o.Budgets = budget.New(budget.Options{Store: o.Store, Bus: o.Bus, Notices: notice.New(notice.Options{})})
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Children == nil {
		o.Children = NoChildren{}
	}
	return &Runner{o: o, cache: session.NewCache(cacheBytes)}
}

// The causes with which the context of a run is cancelled.
var (
	ErrStopped    = errors.New("stopped")
	ErrSuperseded = errors.New("superseded by a newer message")
	ErrShutdown   = errors.New("the process is shutting down")
	errTimeout    = errors.New("the run took longer than its time limit")

	// errNotAlive ends an execution. The run is resumed from its rows.
	errNotAlive = errors.New("this process was stopped for longer than its leases last")
)

// ErrChanged reports that what waits for a session changed between reading it and
// acting on it: a message was cancelled, a run was stopped, or the configuration
// or the session's settings are newer than the run's profile. The caller looks
// again.
var ErrChanged = errors.New("what waits for the session has changed")

// MainLane is the lane of runs that do not name another one.
const MainLane = "main"

const (
	defaultMaxAttempts = 24

	// A run that was interrupted is started again at once, then after a pause, so that what
	// may end the process does not block the rest. It is given up after a number of starts,
	// but not within a time, in which something else may be the cause.
	startsAtOnce = 3
	maxStarts    = 10
	minTrying    = 10 * time.Minute
)

// retryPause is the pause before each further start of a run.
var retryPause = backoff.Policy{First: time.Second, Max: 5 * time.Minute, Factor: 2}

// panicError is a panic that was recovered.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("internal error: %v", p.value) }

// Guard calls f and returns a panic in it as an error.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return f()
}

// update runs f in a commit of the run, which fails with chela.ErrFenced when the
// run has lost its lease. A cancelled ctx does not prevent it.
func (r *Runner) update(ctx context.Context, e *Execution, sync store.Sync, f func(store.Tx) error) error {
	return store.Held(context.WithoutCancel(ctx), r.o.Store, e.lease, sync, f)
}

// publish sends an event of the run to its observers.
func (r *Runner) publish(e *Execution, ev chela.Event) {
	if e.quiet && ev.Stream != chela.StreamMessage { // surfaces hide messages themselves
		return
	}
	ev.Run, ev.Session = e.run.ID, e.run.Session
	r.o.Bus.Publish(ev)
}

// PublishAbsorbed tells observers that messages get no answer of their own.
func (r *Runner) PublishAbsorbed(items ...queue.Item) {
	for _, it := range items {
		if it.Kind == queue.Message {
			r.o.Bus.Publish(chela.Event{
				Run: chela.RunID(it.ID), Session: it.Session, Stream: chela.StreamSession, Phase: chela.PhaseAbsorbed,
			})
		}
	}
}

// PublishStopped tells observers that suspended runs ended, and that their
// approvals were withdrawn. Observers of a new process do not know the runs, so
// that each is resumed first.
func (r *Runner) PublishStopped(runs []run.Run, withdrawn []approval.Request) {
	r.publishWithdrawn(withdrawn)
	for _, row := range runs {
		e := &Execution{run: row}
		r.publish(e, chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseResume})
		r.publishEnd(e)
	}
}

func (r *Runner) publishWithdrawn(list []approval.Request) {
	for _, q := range list {
		r.o.Bus.Publish(chela.Event{Session: q.Session, Stream: chela.StreamApproval, Phase: chela.PhaseResolved, Data: q})
	}
}

// DropTranscripts forgets the cached transcripts, because entries were changed in the
// store. Runs in progress keep theirs.
func (r *Runner) DropTranscripts() { r.cache.Clear() }

// Rest gives up most of what is kept in memory to be faster. It is called when no run has
// been in progress for a while.
func (r *Runner) Rest() { r.cache.Trim(restBytes) }
