package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// now is the time of plans.
func now() time.Time { return time.Now() }

var errClosed = errors.New("the gateway is shutting down")

// Options are the parts that a Pool uses. All but Redact are required.
type Options struct {
	Log     *slog.Logger
	Broker  sandbox.Broker // starts programs with all rights of this process
	Environ []string       // variables of this process; see [sandbox.Environment]
	Version string         // of Chela, for agents
	Redact  func(string) string
	// State returns what a session has to do with its agent, and Record changes it in a
	// synced commit.
	State  func(context.Context, chela.SessionKey) (session.External, error)
	Record func(context.Context, chela.SessionKey, func(*session.External)) error
	// Image returns the content and the type of a picture that is stored as a file.
	Image func(ref string) (data []byte, kind string, err error)
	// Plan stores the plan of a session.
	Plan func(context.Context, chela.SessionKey, chela.RunID, plan.Plan)
}

// Pool holds the programs of agents, at most one for a session. It is safe for concurrent
// use.
type Pool struct {
	o      Options
	ctx    context.Context // ends at Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	most   int
	idle   time.Duration
	agents map[chela.SessionKey]*agent
	slots  int // programs that have not ended, and those being started
}

// New returns a Pool without programs. Close must be called.
func New(o Options) *Pool {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	p := &Pool{o: o, most: acp.Config{}.Concurrent(), idle: acp.Config{}.Idle(), agents: map[chela.SessionKey]*agent{}}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// Use puts the limits of a configuration in force. If agents are switched off or an agent
// is not allowed any more, its programs are ended.
func (p *Pool) Use(c acp.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most, p.idle = c.Concurrent(), c.Idle()
	for _, a := range p.agents {
		if _, _, err := c.Find(a.name); err != nil {
			p.endLocked(a, err)
		}
	}
}

// endLocked ends a program in the background.
func (p *Pool) endLocked(a *agent, why error) {
	if p.agents[a.key] == a {
		delete(p.agents, a.key)
	}
	if !p.closed {
		p.wg.Go(func() { a.stop(why) })
	}
}

// Stop ends the program of a session, if it has one.
func (p *Pool) Stop(key chela.SessionKey, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.agents[key]; a != nil {
		p.endLocked(a, errors.New(why))
	}
}

// Ended cancels what the agent of a session does for a run that has ended.
func (p *Pool) Ended(key chela.SessionKey, run chela.RunID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.agents[key]
	if a == nil || p.closed {
		return
	}
	if t := a.turnNow(); t != nil && t.run == run {
		p.wg.Go(func() { a.cancelTurn(t) })
	}
}

// StateOf returns the state of the program of a session.
func (p *Pool) StateOf(key chela.SessionKey) acp.State {
	p.mu.Lock()
	a := p.agents[key]
	p.mu.Unlock()
	if a == nil {
		return acp.State{}
	}
	s := a.state()
	if t := a.turnNow(); t != nil {
		s.Busy, s.Waits = true, t.waits()
	}
	return s
}

// Running returns the number of programs.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots
}

// turnOf returns the turn of a session for a run; nil: there is none.
func (p *Pool) turnOf(key chela.SessionKey, run chela.RunID) (*agent, *turn) {
	p.mu.Lock()
	a := p.agents[key]
	p.mu.Unlock()
	if a == nil {
		return nil, nil
	}
	if t := a.turnNow(); t != nil && t.run == run {
		return a, t
	}
	return a, nil
}

// acquire returns the program of a session, which it starts if necessary. note tells the
// person that the agent does not remember the conversation; empty: it does.
func (p *Pool) acquire(ctx context.Context, key chela.SessionKey, x session.External,
	prog acp.Program) (a *agent, note string, err error) {
	p.mu.Lock()
	a = p.agents[key]
	p.mu.Unlock()
	if a != nil && a.alive() && a.same(x, prog) {
		return a, "", nil
	}
	if a != nil {
		p.Stop(key, "it is started anew")
	}
	if err := p.reserve(ctx); err != nil {
		return nil, "", fmt.Errorf("coding agent %s: %w", x.Agent, err)
	}
	made, note, err := p.start(ctx, key, x, prog)
	if err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.wg.Go(func() { made.stop(errClosed) })
		return nil, "", errClosed
	}
	p.agents[key] = made
	return made, note, nil
}

// reserve makes room for a program: it ends the one that has been idle for longest.
func (p *Pool) reserve(ctx context.Context) error {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return errClosed
		}
		if p.slots < p.most {
			p.slots++
			p.wg.Add(1) // until the program has ended
			p.mu.Unlock()
			return nil
		}
		var idle *agent
		for _, a := range p.agents {
			if a.turnNow() == nil && (idle == nil || a.lastUse().Before(idle.lastUse())) {
				idle = a
			}
		}
		if idle == nil {
			n := p.most
			p.mu.Unlock()
			return &chela.Error{
				Code: chela.CodeFull, Message: humanize.Many(n, "coding agent") +
					" run already, and all are busy (acp.maxConcurrentSessions); wait until one has answered",
				Hint: "/acp sessions lists them",
			}
		}
		p.endLocked(idle, errors.New("it was ended to make room for another one"))
		p.mu.Unlock()
		select {
		case <-idle.exited:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release frees the room of a program that has ended.
func (p *Pool) release(a *agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slots--
	if a != nil && p.agents[a.key] == a {
		delete(p.agents, a.key)
	}
}

// rest ends a program that is not used for some time.
func (p *Pool) rest(a *agent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	a.setTimer(time.AfterFunc(p.idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if a.turnNow() == nil && !p.closed {
			p.endLocked(a, errors.New("it was not used for some time"))
		}
	}))
}

// Close ends all programs and waits for them. If ctx ends before, they are killed.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, a := range p.agents {
		p.wg.Go(func() { a.stop(errClosed) })
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		p.cancel(errClosed)
		return nil
	case <-ctx.Done():
	}
	p.cancel(errClosed) // ends the programs
	<-done
	return ctx.Err()
}

// SetMode sets the mode of the agent of a session, which must run.
func (p *Pool) SetMode(ctx context.Context, key chela.SessionKey, mode string) error {
	p.mu.Lock()
	a := p.agents[key]
	p.mu.Unlock()
	if a == nil {
		return chela.Errorf(chela.CodeConflict, "the coding agent does not run; it is started by the next message")
	}
	s := a.state()
	if !slices.Contains(s.Modes, mode) {
		if len(s.Modes) == 0 {
			return chela.Errorf(chela.CodeInvalid, "the coding agent %s offers no modes", a.name)
		}
		return chela.Errorf(chela.CodeInvalid, "the coding agent %s has no mode %q; it has: %s", a.name, mode,
			strings.Join(s.Modes, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	if err := a.setMode(ctx, mode); err != nil {
		return a.explain(err)
	}
	return nil
}

// Missing returns why the program of an agent cannot be started; nil: it can.
func Missing(environ []string, name string, prog acp.Program) error {
	if _, err := pathOf(sandbox.Environment(environ, prog.Env), prog); err != nil {
		return unavailable(name, prog, err)
	}
	return nil
}

// unavailable returns the error of a program that is not installed.
func unavailable(name string, prog acp.Program, err error) error {
	hint := "chela config set acp.agents." + name + ".command PATH"
	if prog.Install != "" {
		hint = prog.Install
	}
	return &chela.Error{Code: chela.CodeUnavailable, Message: fmt.Sprintf("coding agent %s: %v", name, err), Hint: hint}
}

// shorten returns a text as one line of at most n characters.
func shorten(s string, n int) string {
	return humanize.Truncate(strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " "), n)
}

// equal reports whether two programs are the same.
func equal(a, b acp.Program) bool {
	if a.Command != b.Command || len(a.Env) != len(b.Env) || !slices.Equal(a.Args, b.Args) {
		return false
	}
	for name, v := range a.Env {
		if w, ok := b.Env[name]; !ok || w != v {
			return false
		}
	}
	return true
}
