package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/line"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/worker"
	"github.com/chela-ai/chela/wire"
)

// Authenticator decides who a client is that answered the challenge. An error,
// best a *wire.Error, refuses it.
type Authenticator func(context.Context, access.Attempt) (access.Grant, error)

// Trust returns an Authenticator for a listener that only the owner reaches: a
// pipe inside the process, or a socket in a directory of the owner's. Who
// connects is p, with no more scopes than it asked for.
func Trust(p chela.Principal) Authenticator {
	return func(_ context.Context, a access.Attempt) (access.Grant, error) {
		return access.Grant{Who: Narrow(p, a.Connect.Scopes), Method: p.Credential, Mode: p.Credential}, nil
	}
}

// Narrow returns p with those of its scopes that were asked for; with all of
// them when none were named.
func Narrow(p chela.Principal, asked []string) chela.Principal {
	if asked == nil {
		return p
	}
	scopes := []chela.Scope{}
	for _, s := range asked {
		if p.May(chela.Scope(s)) {
			scopes = append(scopes, chela.Scope(s))
		}
	}
	p.Scopes = scopes
	return p
}

// Options is what a Server works with. Log, Methods and Bus are required.
type Options struct {
	Log     *slog.Logger
	Version string
	Methods rpc.Set
	Bus     *bus.Bus

	// Health returns the state for the hello.
	Health func(context.Context) (wire.Health, error)
	// Defaults says which session a client shows first.
	Defaults func() wire.SessionDefaults
	// Session returns a session's row for sessions.changed; nil when there is
	// no such session.
	Session func(context.Context, chela.SessionKey) (*wire.Session, error)

	// Show has the pictures of messages shown.
	Show shape.Show

	// Models returns the models for a client that asks for them with its connect;
	// nil: no client is told unasked.
	Models func(context.Context, wire.ModelsScope) (wire.ModelsList, error)

	ConfigPath string // told to connections with admin scope
	StateDir   string // told to connections with admin scope

	MaxBuffered int           // bytes that wait for one connection; 0: wire.MaxBuffered
	Merge       time.Duration // how long deltas are joined; 0: 50 ms
}

// Merge is how long deltas of an answer are joined after the first one.
const Merge = 50 * time.Millisecond

// Server serves clients. Use [New].
type Server struct {
	o      Options
	bootID string
	start  time.Time

	ctx    context.Context // of all connections
	stop   context.CancelFunc
	cancel func() // ends the subscription to the bus
	wg     sync.WaitGroup

	pending atomic.Int64 // connections without a hello yet
	calls   atomic.Int64 // in progress
	scratch sync.Pool    // of *[]byte
	workers *worker.Pool // carry out requests, and write

	mu      sync.Mutex // held while an event is given to all
	closing bool
	https   []*http.Server
	conns   []*conn // replaced, never changed: ranged over without the lock
	version int64   // of the roster
	record  record
	due     []*conn // that have something to send
	joining int     // calls of together in progress: they send it

	streams  streams
	changes  changes
	presence presence
	pulse    pulse
}

// New returns a Server that observes the bus. Shutdown ends it.
func New(o Options) *Server {
	if o.MaxBuffered == 0 {
		o.MaxBuffered = wire.MaxBuffered
	}
	if o.Merge == 0 {
		o.Merge = Merge
	}
	s := &Server{o: o, bootID: rand.Text(), start: time.Now(), scratch: sync.Pool{New: newScratch}, workers: worker.New()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	context.AfterFunc(s.ctx, s.workers.Close)
	s.streams.init(s)
	s.changes.init(s)
	s.presence.init(s)
	s.cancel = o.Bus.Subscribe(s.observe)
	s.wg.Go(s.tick)
	s.wg.Go(s.changes.run)
	s.wg.Go(s.presence.run)
	s.wg.Go(func() { s.pulse.run(s) })
	return s
}

// Serve serves the requests of l with handler until l is closed or the server
// is shut down; it then returns nil. Several listeners may be served at once.
func (s *Server) Serve(l net.Listener, handler http.Handler) error {
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errors.Join(chela.ErrClosed, l.Close())
	}
	s.https = append(s.https, h)
	s.mu.Unlock()
	if err := h.Serve(line.Listener{Listener: l}); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve clients on %s: %w", l.Addr(), err)
	}
	return nil
}

type connKey struct{}

// maxPending bounds the connections that did not get their hello yet.
const maxPending = 512

// Upgrade returns the handler that makes requests connections of clients whom
// auth lets in. Origins were checked before, or the listener is one that no
// browser reaches. It works in what [Server.Serve] serves.
func (s *Server) Upgrade(auth Authenticator) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.accept(w, r, auth) })
}

// accept upgrades a request. The connection is served by goroutines of its own:
// that of the request keeps what the request needed.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, auth Authenticator) {
	if s.pending.Add(1) > maxPending {
		s.pending.Add(-1)
		http.Error(w, "too many clients connect at once", http.StatusServiceUnavailable)
		return
	}
	pending := sync.OnceFunc(func() { s.pending.Add(-1) })
	ws, err := websocket.Accept(slim{w}, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		pending()
		s.o.Log.Debug("no websocket", "err", err)
		return // Accept answered
	}
	c := newConn(s, ws, r.Context().Value(connKey{}).(*line.Line))
	c.from = access.FromContext(r.Context())
	s.mu.Lock()
	closing := s.closing
	if !closing {
		s.wg.Go(func() { c.open(auth, pending) })
	}
	s.mu.Unlock()
	if closing {
		pending()
		ws.Close(wire.CloseRestart, "service restart")
	}
}

// join sends a connection its hello and adds it: what happens after the client
// read the hello reaches it, and nothing comes before the hello but what the
// client missed. leave takes it away.
func (s *Server) join(c *conn, id string, hello wire.Hello, resume *wire.Resume) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	var missed []*kept
	if c.marks {
		hello.Cursor = s.record.pos
		if resume != nil {
			missed, hello.Resumed = s.resumeLocked(c, *resume)
		}
	}
	c.send(c.response(id, hello, nil))
	for _, k := range missed {
		c.push(k.make(), true, k.pos)
	}
	c.flush()
	s.version++
	s.conns = append(slices.Clip(s.conns), c)
	s.presence.changed()
	return true
}

// leave takes a connection away that ended.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(c)
}

func (s *Server) leaveLocked(c *conn) {
	i := slices.Index(s.conns, c)
	if i < 0 {
		return
	}
	s.version++
	s.conns = slices.Concat(s.conns[:i], s.conns[i+1:])
	s.presence.changed()
	if c.marks && !c.dropped.Load() {
		s.record.leave(c.viewer, time.Now())
	}
}

// sweep forgets what nobody comes back for.
func (s *Server) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.expire(now)
	if len(s.record.away) == 0 && !slices.ContainsFunc(s.conns, func(c *conn) bool { return c.marks }) {
		s.record.clear()
	}
}

// disown says that a run ended.
func (s *Server) disown(id chela.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.disown(id)
	}
	for _, d := range s.record.away {
		d.disown(id)
	}
}

// anyone reports whether there is somebody, or may come back, that an event is
// for.
func (s *Server) anyone(to audience) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.conns, func(c *conn) bool { return to(c.viewer) }) || s.record.wanted(to, nil)
}

// connected returns the connections that got their hello. The slice must not
// be changed.
func (s *Server) connected() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// tick tells all connections that the gateway lives, and looks whether they do.
func (s *Server) tick() {
	t := time.NewTicker(wire.TickInterval)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			s.sweep(now)
			for _, c := range s.connected() {
				c.probe()
			}
			s.passing(true, wire.EventTick, wire.Tick{Time: wire.At(now)})
		case <-s.ctx.Done():
			return
		}
	}
}

// Drop closes the connections that a credential let in, which is no longer
// good.
func (s *Server) Drop(credential string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.away = slices.DeleteFunc(s.record.away, func(d departed) bool { return d.who.Credential == credential })
	for _, c := range s.conns {
		if c.who.Credential == credential {
			c.drop()
		}
	}
}

// Connected reports whether a credential let in a client that is connected, in
// a role; "": in any.
func (s *Server) Connected(credential, role string) bool {
	return slices.ContainsFunc(s.connected(), func(c *conn) bool {
		return c.who.Credential == credential && (role == "" || c.role == role)
	})
}

// Tell sends an event to all clients that hold the scope.
func (s *Server) Tell(scope chela.Scope, name string, payload any) {
	s.broadcast(func(v *viewer) bool { return v.who.May(scope) }, false, name, func() any { return payload })
}

// Doors returns what the methods ask of who calls them.
func (s *Server) Doors() []rpc.Door { return s.o.Methods.Doors() }

// Clients returns how many clients are connected.
func (s *Server) Clients() int { return len(s.connected()) }

// Shutdown is Leave for good.
func (s *Server) Shutdown(ctx context.Context) error {
	return s.Leave(ctx, wire.Shutdown{Reason: "gateway stopping"})
}

// lastWord is how long calls in progress may take when the gateway stops: what
// they waited for may just have ended.
const lastWord = 200 * time.Millisecond

// settle waits for the calls in progress.
func (s *Server) settle(ctx context.Context) {
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for end := time.After(lastWord); s.calls.Load() > 0; {
		select {
		case <-look.C:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Leave tells clients why the gateway stops, closes their connections when they
// have read what was sent, and returns when all have ended; when ctx ends it
// cuts them off.
func (s *Server) Leave(ctx context.Context, why wire.Shutdown) error {
	s.mu.Lock()
	s.closing = true
	https, conns := s.https, s.conns
	s.https = nil
	s.mu.Unlock()
	s.cancel()
	s.streams.flush()
	for _, h := range https {
		h.Close()
	}
	s.settle(ctx)
	s.passing(false, wire.EventShutdown, why)
	for _, c := range conns {
		c.close(wire.CloseRestart, "service restart")
	}
	s.stop()
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	for _, c := range conns {
		c.cut()
	}
	select {
	case <-done:
		return nil
	case <-time.After(time.Second):
		return errors.New("stop clients: a connection does not end")
	}
}
