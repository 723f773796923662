package cron

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Lane is the lane of the runs of jobs.
const Lane = "cron"

// Options are the dependencies of a Scheduler. Those without a default are required.
type Options struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Hooks  *hook.Points // nil: there are none
	Config Config
	// Has reports whether an account of a channel is configured. An empty account is the
	// default one.
	Has func(channel string, account chela.AccountID) bool
	// Rows returns the outbox rows with a text for an address.
	Rows func(base outbox.Row, text string) []outbox.Row
	// Abort stops the run or the waiting item with the id.
	Abort func(context.Context, chela.SessionKey, chela.RunID) ([]chela.RunID, error)
	// Check performs the check of a trigger for an agent. It returns a text that
	// identifies what it found, and a description of it for the model.
	Check func(ctx context.Context, who chela.Principal, agent chela.AgentID,
		t job.Trigger) (seen, found string, err error)
	// Delete deletes a session in which nothing happens, if may permits it.
	Delete func(ctx context.Context, key chela.SessionKey, may func(store.Tx, session.Meta) (bool, error)) (bool, error)
	// File returns the content of cron.store and a text that changes with it; nil: unchanged
	// since then, or there is none.
	File func(path, since string) (raw []byte, stamp string, err error)
	// Journal reports whether changes of jobs are recorded; nil: they are.
	Journal func() bool
	// Ready reports whether the channels are connected. Missed slots wait for it. nil: they are.
	Ready func() bool
	// the wall clock, of jobs and their runs; rows of others have the time of time.Now, which is the
	// default
	Now  func() time.Time
	Step func(name string) // called between the steps of a run, for tests; nil: nothing
}

// Config is what a Scheduler needs of the configuration in force. Its methods do no I/O.
type Config interface {
	// Cron returns the section cron.
	Cron() job.Config
	// HasAgent reports whether an agent exists.
	HasAgent(chela.AgentID) bool
	// CheckModel returns why an agent cannot use a model.
	CheckModel(id chela.AgentID, ref string) error
	// FindLevel returns the thinking level with the name, which must be one of an agent's
	// model; an empty ref is its default model.
	FindLevel(id chela.AgentID, ref, name string) (llm.Level, error)
	// Sends reports whether what a session says is sent to a chat.
	Sends(session.Meta, chela.Address) bool
	// Location returns the zone in which times are shown to people and models.
	Location() *time.Location
}

const (
	maxSleep    = time.Minute            // of the timer
	late        = maxSleep + time.Second // a slot that is older was missed
	missedGap   = 5 * time.Second        // between the starts of missed slots
	readyWithin = 2 * time.Minute        // missed slots wait this long for the channels
	maxDue      = 1000                   // slots that a tick looks at
	batch       = 64                     // of them, claimed in one commit
	retryDelay  = 5 * time.Second        // after an error of the store
)

// Scheduler runs jobs. It is safe for concurrent use.
type Scheduler struct {
	o Options

	mu      sync.Mutex
	changed []chela.RunID // runs whose rows may have ended, to be published
	reload  chan struct{} // cap 1: the configuration has changed

	busy    map[job.ID]bool // jobs whose trigger is being checked
	checks  chan struct{}   // a token for each of them
	watches sync.WaitGroup
}

// New returns a Scheduler. It runs no job before Run.
func New(o Options) *Scheduler {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	if o.Step == nil {
		o.Step = func(string) {}
	}
	if o.Journal == nil {
		o.Journal = func() bool { return true }
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	return &Scheduler{o: o, reload: make(chan struct{}, 1), checks: make(chan struct{}, maxChecks),
		busy: map[job.ID]bool{}}
}

// Reload makes Run read the configuration and the jobs again.
func (s *Scheduler) Reload() {
	select {
	case s.reload <- struct{}{}:
	default:
	}
}

// Run claims slots until ctx ends. It waits for the checks of triggers that are in
// progress.
func (s *Scheduler) Run(ctx context.Context) error {
	wakes := s.o.Store.Wakes(ctx, store.TopicJobs)
	timer := time.NewTimer(0)
	defer timer.Stop()
	c := clock{started: s.o.Now()}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-wakes:
			s.publishEnded(ctx)
		case <-s.reload:
		case <-timer.C:
		}
		wait, err := s.tick(ctx, &c)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.o.Log.Error("run scheduled jobs; retrying", "err", err, "in", retryDelay)
			timer.Reset(retryDelay)
		case wait < 0:
			timer.Stop() // there is nothing to wait for
		default:
			timer.Reset(min(wait, maxSleep))
		}
	}
	s.watches.Wait()
	return nil
}

// gridDelay is the time after the start after which all jobs are read to check their
// slots, so that many jobs do not delay the start of the gateway.
const gridDelay = 5 * time.Second

// clock is what Run remembers from one tick to the next.
type clock struct {
	started time.Time
	last    time.Time // wall clock at the last tick
	grid    time.Time // when the slots are checked; zero: they were
	missed  time.Time // start of the last missed slot
	file    string    // what File returned last
	pruned  time.Time // when old runs and transcripts were deleted last
}

// tick runs what is due. It returns how long Run may sleep; a negative time: until a wake.
func (s *Scheduler) tick(ctx context.Context, c *clock) (time.Duration, error) {
	now := s.o.Now()
	back := now.Before(c.last.Add(-time.Second))
	if back {
		s.o.Log.Warn("the clock was set back; intervals continue on their grid", "by", c.last.Sub(now).Round(time.Second))
	}
	if c.last.IsZero() { // it may have been set while the gateway was not running
		c.grid = now.Add(gridDelay)
	}
	if back || !c.grid.IsZero() && !now.Before(c.grid) {
		c.missed, c.started = earlier(c.missed, now), earlier(c.started, now)
		if err := s.regrid(ctx, c, now); err != nil {
			return 0, err
		}
		c.grid = time.Time{}
	}
	c.last = now
	if err := s.closeLost(ctx, now); err != nil {
		return 0, err
	}
	conf := s.o.Config.Cron()
	s.importFile(ctx, c, conf.File)
	if err := s.prune(ctx, c, now); err != nil && ctx.Err() == nil {
		s.o.Log.Warn("delete old runs of jobs; retrying later", "err", err)
	}
	on := conf.On()
	if on {
		if err := s.runDue(ctx, c, now); err != nil {
			return 0, err
		}
	}
	var next time.Time
	open := 0
	err := s.o.Store.View(ctx, func(r store.Reader) error {
		runs, err := r.Jobs().OpenRuns()
		if open = len(runs); err != nil {
			return err
		}
		next, err = r.Jobs().Next()
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case on && !next.IsZero():
		wait := next.Sub(s.o.Now())
		if wait <= 0 { // a missed slot waits for the one before it or for the channels, a trigger is being checked
			wait = time.Second
		}
		if !c.grid.IsZero() {
			wait = min(wait, gridDelay)
		}
		return wait, nil
	case open > 0 || conf.File != "":
		return maxSleep, nil
	}
	return -1, nil
}
