package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/lane"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/worker"
)

// Options is what a Conductor works with. All fields are required but Drain,
// Ended and Step.
type Options struct {
	Log     *slog.Logger
	Store   store.Store
	Bus     *bus.Bus
	Owner   string // this process: another one at each start
	Lanes   *lane.Lanes
	Cache   *session.Cache
	Door    *invoke.Door
	Profile ProfileFunc
	Ended   []Ended

	// Drain is how long Run waits for runs in progress when its context ends;
	// what is not done by then is resumed at the next start. 0: 8 s.
	Drain time.Duration

	// Step is called at named points of a run, before what the name says. The
	// kill driver ends the process in it.
	Step func(name string)
}

// Conductor carries out what waits for sessions.
type Conductor struct {
	o       Options
	notices *session.Notices
	workers *worker.Pool

	mu      sync.Mutex
	live    map[chela.SessionKey]*served
	closing bool
	work    context.Context // of everything that is carried out; ends with the drain
	wg      sync.WaitGroup
}

// served is a session that a goroutine is serving.
type served struct {
	key  chela.SessionKey
	hint chan struct{} // cap 1: look again
	news atomic.Bool   // there was a hint since the run in progress looked

	mu     sync.Mutex
	watch  func()      // has somebody look at hints during the run; nil: none is in progress
	active chela.RunID // run in progress; empty: none
	cancel context.CancelCauseFunc
	halted chela.RunID // run that is to be stopped as soon as it is active
}

// Causes of a run's cancellation.
var (
	errStopped    = errors.New("stopped")
	errSuperseded = errors.New("superseded by a newer message")
	errShutdown   = errors.New("the process is shutting down")
	errTimeout    = errors.New("the run took longer than its time limit")
)

// New returns a Conductor. Nothing happens before Run.
func New(o Options) *Conductor {
	if o.Drain == 0 {
		o.Drain = 8 * time.Second
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	return &Conductor{o: o, notices: session.NewNotices(), workers: worker.New(), live: map[chela.SessionKey]*served{}}
}

// Run carries out what waits, and what is put from now on, until ctx ends. It
// then begins nothing new, waits for the runs in progress as long as
// Options.Drain says, and returns when everything it began is done.
func (c *Conductor) Run(ctx context.Context) error {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(errShutdown)
	defer c.workers.Close()
	c.mu.Lock()
	c.work = work
	c.mu.Unlock()

	wakes := c.o.Store.Wakes(ctx, store.TopicQueue)
	if err := c.recover(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("look for interrupted runs: %w", err)
	}
	c.expire(ctx)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case t, ok := <-wakes:
			if ok {
				c.wake(t.Session)
			}
		case <-tick.C:
			c.expire(ctx)
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	c.closing = true
	for _, s := range c.live {
		s.look()
	}
	c.mu.Unlock()

	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	t := time.NewTimer(c.o.Drain)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		cancel(errShutdown)
		<-done
	}
	return nil
}

// wake has the session looked at, by its goroutine or a new one.
func (c *Conductor) wake(key chela.SessionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.live[key]; s != nil {
		s.look()
		return
	}
	if c.closing || c.work == nil {
		return
	}
	s := &served{key: key, hint: make(chan struct{}, 1)}
	s.look()
	c.live[key] = s
	c.wg.Add(1)
	c.attend(s, nil)
}

// attend serves the session on a goroutine of its own, which is counted already.
func (c *Conductor) attend(s *served, first func(context.Context) (time.Time, error)) {
	c.workers.Go(func() {
		defer c.wg.Done()
		c.serve(c.work, s, first)
	})
}

func (s *served) look() {
	s.news.Store(true)
	select {
	case s.hint <- struct{}{}:
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch != nil {
		s.watch()
	}
}

// watched sets what is called at hints; it is not called any more when this
// returns.
func (s *served) watched(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch = f
	if f != nil && len(s.hint) > 0 {
		f()
	}
}

// leave ends the service of a session unless something arrived meanwhile.
func (c *Conductor) leave(s *served) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.hint) > 0 && !c.closing {
		return false
	}
	delete(c.live, s.key)
	return true
}

func (c *Conductor) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// crashed is a panic that was caught.
type crashed struct {
	value any
	stack []byte
}

func (c *crashed) Error() string { return fmt.Sprintf("internal error: %v", c.value) }

// guard runs f and turns a panic into an error.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &crashed{p, debug.Stack()}
		}
	}()
	return f()
}

// begun marks the run as the session's active one; stop cancels it.
func (s *served) begun(id chela.RunID, stop context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.cancel = id, stop
	if s.halted == id {
		stop(errStopped)
	}
}

func (s *served) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.cancel = "", nil
}

// halt stops the run if it is active, and else when it becomes so. It reports
// whether it was.
func (s *served) halt(id chela.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == id {
		s.cancel(errStopped)
		return true
	}
	s.halted = id
	return false
}

// stop cancels the active run if it is id, or whatever it is for the empty id.
func (s *served) stop(id chela.RunID, cause error) (chela.RunID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == "" || id != "" && s.active != id {
		return "", false
	}
	s.cancel(cause)
	return s.active, true
}

// Live reports whether a run of the session is in progress in this process.
func (c *Conductor) Live(key chela.SessionKey) bool {
	c.mu.Lock()
	s := c.live[key]
	c.mu.Unlock()
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active != ""
}

// Notify queues a line of information for the session's next run. At most 20
// are kept; they do not survive a restart, so that nothing that is owed to
// somebody may live here alone.
func (c *Conductor) Notify(key chela.SessionKey, text string) { c.notices.Add(key, text) }

// Wait returns the run when it is final, or ctx's error. The id may be that of
// a message: the run that took it is waited for. An unknown id is
// chela.ErrNotFound.
func (c *Conductor) Wait(ctx context.Context, id chela.RunID) (run.Run, error) {
	changed := make(chan struct{}, 1)
	cancel := c.o.Bus.Subscribe(func(e chela.Event) {
		if e.End != nil || e.Stream == chela.StreamSession {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	defer cancel()
	for {
		r, err := c.find(ctx, id)
		if err != nil || r.State.Final() {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// find returns the run with the id, or the run that took the message with it.
// A message that still waits is a run that has not started.
func (c *Conductor) find(ctx context.Context, id chela.RunID) (run.Run, error) {
	var r run.Run
	err := c.o.Store.View(ctx, func(rd store.Reader) error {
		var err error
		if r, err = rd.Runs().Get(id); !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		it, err := rd.Queue().Get(string(id))
		if err != nil {
			return err
		}
		if it.Run != "" && it.Run != id {
			r, err = rd.Runs().Get(it.Run)
			return err
		}
		r = pendingRun(it)
		return nil
	})
	return r, err
}
