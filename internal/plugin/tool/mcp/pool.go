package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/secret"
)

const (
	maxRunning  = 32                     // servers
	maxListing  = 2                      // servers that are started to list their tools, at a time
	maxFailures = 3                      // failed starts in a row, until a server is paused
	pauseTime   = time.Minute            // of a paused server
	listTime    = 5 * time.Minute        // between attempts to list tools that are unknown
	settleTime  = 200 * time.Millisecond // in which changes are reported together
	staleTime   = time.Second            // between lists of a server that says that they change
	drainTime   = 30 * time.Second       // for calls of a server that was removed
	maxAttempts = 4                      // to get a connection for a call
)

// Options are the parts that a Pool uses. Log, Broker, State and HTTP are required.
type Options struct {
	Log     *slog.Logger
	Broker  sandbox.Broker                // starts programs with all rights of this process
	Cage    sandbox.Broker                // confines programs; nil: programs with Rights are refused
	Environ []string                      // variables of this process; see [sandbox.Environment]
	State   string                        // the state directory; lists of tools are kept in cache/mcp
	HTTP    func(mcp.Server) *http.Client // returns a client with a Transport that reaches only the host of the URL
	// LoginHTTP returns a client with a Transport that reaches the hosts at which one logs in
	// at a server; nil: HTTP.
	LoginHTTP func(mcp.Server) *http.Client
	Redact    func(string) string // removes known secrets from errors; nil: none is removed
	Hide      func(secret.Value)  // makes a secret known; nil: nothing does
	// Lapsed tells the person that a login has ended. It may be called again with a text
	// for which it returned an error; nil: nobody is told.
	Lapsed  func(text string) error
	Label   untrusted.Labeler
	Version string // of Chela, for servers
	Changed func() // called when Tools would return others; nil: nothing is. It must not call Close
}

// Pool keeps the connections to servers. It is safe for concurrent use.
type Pool struct {
	o       Options
	ctx     context.Context // ends at Close
	cancel  context.CancelCauseFunc
	wg      sync.WaitGroup
	changed chan struct{} // receives if a catalog is new
	watched sync.Once     // report was started
	listing chan struct{} // holds an element for each server that is started to list its tools

	mu       sync.Mutex
	closed   bool
	finding  bool // Discover was called
	idle     time.Duration
	servers  map[string]*server
	catalogs map[string]Catalog           // by key
	logins   map[string]*login            // by name of the server
	clashes  map[string]map[string]string // why tools are not offered because of their names, by server and name
	running  map[*conn]struct{}           // connections that have not ended
	slots    int                          // running, and being started
}

// server is a server in force. The Pool's mutex guards it.
type server struct {
	name string
	key  string        // of its catalog
	gone chan struct{} // closed when it is no longer in force

	config   mcp.Server
	conn     *conn  // nil: it does not run
	starting *start // nil: it is not being started
	calls    int    // in progress
	free     *sync.Cond
	timer    *time.Timer // stops it
	failures int         // in a row
	next     time.Time   // when it may be started again
	err      error       // of the last start or the last end
	active   time.Time   // when it was started or the last call ended
	called   time.Time   // when the last call of a tool ended
}

// start is an attempt to start a server.
type start struct {
	done chan struct{} // closed at its end
	err  error
}

// New returns a Pool without servers. Close must be called.
func New(o Options) *Pool {
	p := &Pool{
		o:        o,
		changed:  make(chan struct{}, 1),
		listing:  make(chan struct{}, maxListing),
		idle:     mcp.IdleTime,
		servers:  map[string]*server{},
		catalogs: map[string]Catalog{},
		logins:   map[string]*login{},
		clashes:  map[string]map[string]string{},

		running: map[*conn]struct{}{},
	}
	if p.o.LoginHTTP == nil {
		p.o.LoginHTTP = p.o.HTTP
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// report calls Changed.
func (p *Pool) report() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.changed:
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(settleTime):
		}
		select { // changes in the meantime are reported too
		case <-p.changed:
		default:
		}
		if p.o.Changed != nil {
			p.o.Changed()
		}
	}
}

// Discover lists the tools of servers that are unknown, in the background, from now on.
func (p *Pool) Discover() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finding || p.closed {
		return
	}
	p.finding = true
	for _, s := range p.servers {
		p.wg.Go(func() { p.discover(s) })
	}
}

// Use puts servers in force, in place of those before. A server that is unchanged
// continues to run. One that was changed or removed is stopped when its calls have
// ended. idle is the time without calls after which a server is stopped.
func (p *Pool) Use(servers map[string]mcp.Server, idle time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.idle = cmp.Or(max(0, idle), mcp.IdleTime)
	for name, s := range p.servers {
		if n, ok := servers[name]; ok && n.On() && same(s.config, n) {
			s.config = n
			continue
		}
		delete(p.servers, name)
		p.retireLocked(s)
	}
	used := map[string]bool{}
	for name, n := range servers {
		if !n.On() {
			continue
		}
		s := p.servers[name]
		if s == nil {
			s = &server{name: name, key: key(name, n), gone: make(chan struct{}), config: n, free: sync.NewCond(&p.mu)}
			p.servers[name] = s
			if p.finding {
				p.wg.Go(func() { p.discover(s) })
			}
		}
		used[s.key] = true
	}
	maps.DeleteFunc(p.catalogs, func(key string, _ Catalog) bool { return !used[key] })
}

// same reports whether a running server need not be started anew.
func same(a, b mcp.Server) bool {
	for _, s := range []*mcp.Server{&a, &b} {
		s.Check, s.Own, s.Enabled, s.Parallel, s.Filter, s.ConnectMS, s.RequestMS = nil, nil, nil,
			false, mcp.ToolFilter{}, 0, 0
	}
	return reflect.DeepEqual(a, b)
}

// retireLocked stops a server that is no longer in force when its calls have ended.
func (p *Pool) retireLocked(s *server) {
	close(s.gone)
	if s.conn == nil {
		return
	}
	late := time.AfterFunc(drainTime, func() { p.wake(s) })
	end := context.AfterFunc(p.ctx, func() { p.wake(s) })
	by := time.Now().Add(drainTime)
	p.wg.Go(func() {
		defer late.Stop()
		defer end()
		p.mu.Lock()
		for s.calls > 0 && time.Now().Before(by) && !p.closed {
			s.free.Wait()
		}
		c := p.detachLocked(s)
		p.mu.Unlock()
		if c != nil {
			c.stop()
		}
	})
}

func (p *Pool) wake(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.free.Broadcast()
}

// detachLocked takes the connection from a server, which no longer counts as running.
func (p *Pool) detachLocked(s *server) *conn {
	c := s.conn
	s.conn = nil
	if s.timer != nil {
		s.timer.Stop()
	}
	return c
}

// discover lists the tools of a server if they are unknown.
func (p *Pool) discover(s *server) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	p.wg.Go(func() {
		select {
		case <-s.gone:
			cancel()
		case <-ctx.Done():
		}
	})
	p.remind(ctx, s.name)
	for logged := false; ; {
		if _, ok := p.catalog(s.key); ok {
			return
		}
		select {
		case p.listing <- struct{}{}:
		case <-ctx.Done():
			return
		}
		_, _, err := p.acquire(ctx, s)
		<-p.listing
		if err == nil {
			p.release(s)
			return
		}
		if !logged && ctx.Err() == nil {
			p.o.Log.Warn("tools of a server are unknown", "err", err)
			logged = true
		}
		select {
		case <-time.After(listTime):
		case <-ctx.Done():
			return
		}
	}
}

// acquire returns the connection to a server, which it starts if necessary, and the
// time limit of a call. The caller must call release.
func (p *Pool) acquire(ctx context.Context, s *server) (*conn, time.Duration, error) {
	for range maxAttempts {
		if err := p.wait(ctx, s); err != nil {
			return nil, 0, err
		}
		p.mu.Lock()
		c, st, err := p.useLocked(s)
		limit := s.config.RequestTimeout()
		p.mu.Unlock()
		if c != nil || err != nil {
			return c, limit, err
		}
		select {
		case <-st.done:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		if st.err != nil {
			return nil, 0, st.err
		}
	}
	return nil, 0, fmt.Errorf("MCP server %s ends as soon as it is started", s.name)
}

// wait waits until a server that failed may be started again. It returns an error if
// the server is paused.
func (p *Pool) wait(ctx context.Context, s *server) error {
	p.mu.Lock()
	left, failures, last := time.Until(s.next), s.failures, s.err
	p.mu.Unlock()
	switch {
	case left <= 0:
		return nil
	case errors.Is(last, ErrNeedsAuth):
		return last
	case failures >= maxFailures:
		return fmt.Errorf("MCP server %s is paused for %v, because it failed %d times in a row. %w", s.name,
			left.Round(time.Second), failures, last)
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// useLocked begins a call if the server runs. Otherwise it returns the attempt to
// start it.
func (p *Pool) useLocked(s *server) (*conn, *start, error) {
	select {
	case <-s.gone:
		return nil, nil, fmt.Errorf("MCP server %s is not configured any more", s.name)
	default:
	}
	switch {
	case p.closed:
		return nil, nil, fmt.Errorf("MCP server %s: %w", s.name, errClosed)
	case s.conn != nil && s.conn.broken():
		return nil, &start{done: s.conn.noted}, nil
	case s.conn != nil:
		s.calls++
		if s.timer != nil {
			s.timer.Stop()
		}
		return s.conn, nil, nil
	case s.starting == nil:
		st := &start{done: make(chan struct{})}
		s.starting = st
		p.wg.Go(func() { p.start(s, st) })
	}
	return nil, s.starting, nil
}

// release ends a call.
func (p *Pool) release(s *server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.calls--
	s.active = time.Now()
	s.free.Broadcast()
	p.restLocked(s)
}

// restLocked has a server without calls stopped after the idle time.
func (p *Pool) restLocked(s *server) {
	if s.calls > 0 || s.conn == nil || p.closed {
		return
	}
	c := s.conn
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(p.idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.conn == c && s.calls == 0 && !p.closed {
			p.detachLocked(s)
			p.wg.Go(c.stop)
		}
	})
}

// start starts a server.
func (p *Pool) start(s *server, st *start) {
	defer close(st.done)
	p.mu.Lock()
	config := s.config
	p.mu.Unlock()
	c, cat, err := p.open(p.ctx, s.name, config)
	if err == nil {
		p.learn(s.key, cat)
	}
	p.mu.Lock()
	s.starting = nil
	st.err = err
	switch {
	case err == nil:
		s.conn, s.failures, s.err, s.next, s.active = c, 0, nil, time.Time{}, time.Now()
		p.restLocked(s)
	case !errors.Is(err, errRefused):
		s.failLocked(err)
	}
	closed := p.closed
	p.mu.Unlock()
	if err != nil {
		return
	}
	select {
	case <-s.gone:
		closed = true
	default:
	}
	if closed {
		c.stop()
		return
	}
	p.wg.Go(func() { p.watch(s, c) })
}

// failLocked counts a failure.
func (s *server) failLocked(err error) {
	s.failures++
	s.err = err
	delay := pauseTime
	if s.failures < maxFailures {
		delay = backoff.Policy{Factor: 4, Jitter: 0.2}.Delay(s.failures, rand.Float64())
	}
	s.next = time.Now().Add(delay)
}

// errRefused is an error before a server was started. It does not count as a failure of
// the server.
var errRefused = errors.New("not started")

// refused is an error that is errRefused.
type refused struct{ error }

// Unwrap returns the error.
func (r refused) Unwrap() error { return r.error }

// Is reports whether target is errRefused.
func (refused) Is(target error) bool { return target == errRefused }

// open starts a server, if it may be started and there is room.
func (p *Pool) open(ctx context.Context, name string, s mcp.Server) (*conn, Catalog, error) {
	if s.Check != nil {
		if err := s.Check(); err != nil {
			return nil, Catalog{}, refused{fmt.Errorf("MCP server %s: %w", name, err)}
		}
	}
	if s.URL != "" && usesLogin(s) { // it is not asked what it will refuse
		if _, err := p.token(ctx, name, s, ""); errors.Is(err, ErrNeedsAuth) {
			return nil, Catalog{}, refused{err}
		}
	}
	if err := p.reserve(); err != nil {
		return nil, Catalog{}, refused{fmt.Errorf("MCP server %s: %w", name, err)}
	}
	c, cat, err := p.dial(ctx, name, s, func(c *conn) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.slots--
		delete(p.running, c)
	})
	if err != nil {
		return nil, Catalog{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ctx.Err() == nil {
		p.running[c] = struct{}{}
	}
	return c, cat, nil
}

// reserve makes room for a server: it stops the one that has been idle for longest.
func (p *Pool) reserve() error {
	for {
		p.mu.Lock()
		if p.slots < maxRunning {
			p.slots++
			p.mu.Unlock()
			return nil
		}
		var idle *server
		for _, s := range p.servers {
			if s.conn != nil && s.calls == 0 && (idle == nil || s.active.Before(idle.active)) {
				idle = s
			}
		}
		if idle == nil {
			p.mu.Unlock()
			return fmt.Errorf("%d servers are running, and all are busy", maxRunning)
		}
		c := p.detachLocked(idle)
		p.mu.Unlock()
		c.stop()
	}
}

// watch follows a connection until its end.
func (p *Pool) watch(s *server, c *conn) {
	for {
		select {
		case <-c.ended:
			p.lost(s, c)
			return
		case <-c.stale:
		}
		ctx, cancel := context.WithTimeout(c.ctx, mcp.ConnectTime)
		cat, err := c.list(ctx)
		cancel()
		if err == nil {
			p.learn(s.key, cat)
		} else if c.ctx.Err() == nil {
			p.o.Log.Warn("tools are not listed again", "err", c.explain(err))
		}
		select {
		case <-c.ended:
		case <-time.After(staleTime):
		}
	}
}

// lost notes the end of a connection. It is a failure unless it was detached.
func (p *Pool) lost(s *server, c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.conn == c {
		p.detachLocked(s)
		s.failLocked(c.why)
	}
	close(c.noted)
}

// check stops a server that did not answer a call if it does not answer a ping either.
func (p *Pool) check(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.wg.Go(func() {
		if !c.ping() {
			c.cancel(errSilent)
		}
	})
}

// Tools returns the tools of servers as far as they are known, sorted by name. It
// starts no server.
func (p *Pool) Tools(servers map[string]mcp.Server) []tool.Tool {
	var tools []tool.Tool
	owner := map[string]string{}
	clashes := map[string]map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		cat, ok := p.catalog(key(name, s))
		if !ok || !s.On() {
			continue
		}
		entries, names, _ := usable(name, s, cat)
		for i, e := range entries {
			lower := strings.ToLower(names[i])
			if other, taken := owner[lower]; taken {
				if clashes[name] == nil {
					clashes[name] = map[string]string{}
				}
				clashes[name][lower] = fmt.Sprintf("tool %s: server %s has a tool with the same name, %s", e.Name, other, lower)
				continue
			}
			owner[lower] = name
			tools = append(tools, p.newTool(name, s, e, lower))
		}
	}
	slices.SortFunc(tools, func(a, b tool.Tool) int { return cmp.Compare(a.Spec().Name, b.Spec().Name) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clashes = clashes
	return tools
}

// Close stops all servers and waits for their end. Calls in progress fail. If ctx ends
// before, the programs are killed.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for _, s := range p.servers {
		if s.timer != nil {
			s.timer.Stop()
		}
		s.free.Broadcast()
	}
	running := slices.Collect(maps.Keys(p.running))
	p.mu.Unlock()
	p.cancel(errClosed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var stops sync.WaitGroup
		for _, c := range running {
			stops.Go(c.stop)
		}
		stops.Wait()
		p.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range running {
		c.kill()
	}
	<-done
	return ctx.Err()
}
