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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Authenticator identifies a client that answered the challenge. An error,
// preferably a *wire.Error, refuses it.
type Authenticator func(context.Context, access.Attempt) (access.Grant, error)

// Trust returns an Authenticator for listeners that only the owner can reach: a
// pipe within the process, or a socket in a private directory. Clients act as
// p, restricted to the scopes they request.
func Trust(p chela.Principal) Authenticator {
	return func(_ context.Context, a access.Attempt) (access.Grant, error) {
		return access.Grant{Principal: Narrow(p, a.Connect.Scopes), Method: p.Credential, Mode: p.Credential}, nil
	}
}

// Narrow returns p restricted to the requested scopes; nil requests all.
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

// Options configures a Server. Log, Methods and Bus are required.
type Options struct {
	Log     *slog.Logger
	Version string
	Methods rpc.Set
	Bus     *bus.Bus

	// Health returns the health for the hello.
	Health func(context.Context) (wire.Health, error)
	// Defaults returns the session a client shows first.
	Defaults func() wire.SessionDefaults
	// Session returns a session's row for sessions.changed; nil if the
	// session does not exist.
	Session func(context.Context, chela.SessionKey) (*wire.Session, error)

	// Joined is called when a device connects in the role of a node. send sends it an
	// event and does not block. The returned function is called when the connection has
	// ended. nil: nobody is told.
	Joined func(device string, send func(event string, payload any)) (left func())

	// Pages gives connections the address of the canvas; nil: there is none.
	Pages Pages

	// Tasks returns the tasks that an event may have changed; nil: none.
	Tasks func(context.Context, chela.Event) ([]wire.Task, error)

	// Show loads the pictures of messages.
	Show wireview.Show

	// Models returns the models for clients that request them in connect;
	// nil: not offered.
	Models func(context.Context, wire.ModelsScope) (wire.ModelsList, error)

	ConfigPath string // sent to connections with admin scope
	StateDir   string // sent to connections with admin scope

	MaxBuffered int           // bytes queued per connection; 0: wire.MaxBuffered
	Merge       time.Duration // how long deltas are merged; 0: 50 ms
}

// Pages gives connections the address of the canvas.
type Pages interface {
	// Open returns the address for a new connection, which reached the gateway at base; "":
	// there is none. device is the id of the client's device, if it has one.
	Open(conn, device, base string) string
	// Close ends what Open gave.
	Close(conn string)
}

// Merge is how long deltas are merged after the first one.
const Merge = 50 * time.Millisecond

// Server serves clients. Use [New].
type Server struct {
	o      Options
	bootID string // of this start: cursors and connections of another one are unknown here
	start  time.Time

	ctx    context.Context // parent of all connections
	stop   context.CancelFunc
	cancel func() // unsubscribes from the bus
	wg     sync.WaitGroup

	pending atomic.Int64 // connections without a hello
	calls   atomic.Int64 // in progress

	// mu is held while an event is queued for all, so that every connection gets the
	// events in the order of the replay log. Locks are taken in this order: that of a
	// stream, mu, and then those of subscribers, send queues, streams.mu and changes.mu,
	// which are not held while another one is taken.
	mu      sync.Mutex
	closing bool
	https   []*http.Server
	conns   []*conn // replaced on change, so that it can be read without the lock
	version int64   // of the presence list; clients compare it with that of an event
	replay  replayLog

	streams  streams
	changes  changes
	tasks    tasks
	presence presence
	health   healthMonitor
}

// New returns a Server that observes the bus. Shutdown ends it.
func New(o Options) *Server {
	if o.MaxBuffered == 0 {
		o.MaxBuffered = wire.MaxBuffered
	}
	if o.Merge == 0 {
		o.Merge = Merge
	}
	s := &Server{o: o, bootID: rand.Text(), start: time.Now()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.streams.init(s)
	s.changes.init(s)
	s.tasks.init(s)
	s.presence.init(s)
	s.cancel = o.Bus.Subscribe(s.observe)
	s.wg.Go(s.tick)
	s.wg.Go(s.changes.run)
	s.wg.Go(s.tasks.run)
	s.wg.Go(s.presence.run)
	s.wg.Go(func() { s.health.run(s) })
	return s
}

// Serve serves HTTP requests on l until l is closed or the server is shut down,
// and then returns nil. It may be called for several listeners.
//
// The time limits hold for plain HTTP only: net/http removes them when a connection is upgraded,
// and the handshake and the pings have their own.
func (s *Server) Serve(l net.Listener, handler http.Handler) error {
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errors.Join(chela.ErrClosed, l.Close())
	}
	s.https = append(s.https, h)
	s.mu.Unlock()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve clients on %s: %w", l.Addr(), err)
	}
	return nil
}

// connKey is the key of a request's net.Conn in its context. The WebSocket library does not give
// the connection away, but [out.cut] needs it.
type connKey struct{}

// maxPending limits the connections without a hello.
const maxPending = 512

// Upgrade returns a handler that upgrades requests to client connections,
// authenticated by auth. The caller must have checked the request's origin,
// unless no browser can reach the listener. The listener must be served by
// [Server.Serve].
func (s *Server) Upgrade(auth Authenticator) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.accept(w, r, auth) })
}

// accept upgrades a request. The connection gets its own goroutines, so that
// the memory of the request is released.
func (s *Server) accept(w http.ResponseWriter, r *http.Request, auth Authenticator) {
	if s.pending.Add(1) > maxPending {
		s.pending.Add(-1)
		http.Error(w, "too many pending connections", http.StatusServiceUnavailable)
		return
	}
	pending := sync.OnceFunc(func() { s.pending.Add(-1) })
	to := newSink()
	// The guard has checked the origin; see [Server.Upgrade]. The check of the library knows
	// neither proxies nor the configuration.
	ws, err := websocket.Accept(hijacker{w, to}, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		pending()
		s.o.Log.Debug("websocket upgrade failed", "err", err)
		return // Accept has answered
	}
	c := newConn(s, ws, to, r.Context().Value(connKey{}).(net.Conn))
	c.from = access.FromContext(r.Context())
	c.base = baseOf(r, c.from)
	s.mu.Lock()
	// Shutdown sets closing before it waits for wg, so that no goroutine is added to it
	// afterwards.
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

// baseOf returns the address at which a client reached the gateway, as the client writes it.
func baseOf(r *http.Request, from access.Source) string {
	if !from.Addr.IsValid() || r.Host == "" { // in this process, or by a socket
		return ""
	}
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if from.Proxied {
		if r.Header.Get("X-Forwarded-Proto") == "https" {
			scheme = "https"
		}
		if h := r.Header.Get("X-Forwarded-Host"); h != "" && !strings.ContainsAny(h, "/\\@,? #") {
			host = h
		}
	}
	return scheme + "://" + host
}

// join sends the hello and adds the connection. The client receives the missed
// events after the hello, then everything published from now on. leave is the
// opposite.
//
// It holds mu from the choice of the missed events to the entry in conns, so that no event falls
// between them. The cursor of the hello is behind the missed events: a client that resumes keeps
// its own one until it has read them.
func (s *Server) join(c *conn, id string, hello wire.Hello, resume *wire.Resume) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	var missed []*retained
	if c.resumable {
		hello.Cursor = s.replay.pos
		if resume != nil {
			missed, hello.Resumed = s.resumeLocked(c, *resume)
		}
	}
	c.send(c.response(id, hello, nil))
	for _, k := range missed {
		c.push(k.encode(), true, k.pos)
	}
	s.version++
	s.conns = append(slices.Clip(s.conns), c)
	c.joined()
	s.presence.changed()
	return true
}

// leave removes a connection that ended. It does nothing for one that another connection has
// resumed, or that never joined.
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
	if c.left != nil {
		c.left()
	}
	s.presence.changed()
	if c.resumable && !c.dropped.Load() {
		s.replay.disconnect(c.subscriber, time.Now())
	}
}

// expire removes retained events and subscribers that are no longer needed.
func (s *Server) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replay.expire(now)
	if len(s.replay.disconnected) == 0 && !slices.ContainsFunc(s.conns, func(c *conn) bool { return c.resumable }) {
		s.replay.clear()
	}
}

// forgetRun removes a run that ended from all subscribers.
func (s *Server) forgetRun(id chela.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.forgetRun(id)
	}
	for _, d := range s.replay.disconnected {
		d.forgetRun(id)
	}
}

// hasAudience reports whether anyone connected or resumable is in the audience. Callers ask
// before they read the store for an event that nobody would get.
func (s *Server) hasAudience(to audience) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.conns, func(c *conn) bool { return to(c.subscriber) }) || s.replay.needed(to, nil)
}

// connected returns the connections after their hello. The slice must not be
// changed.
func (s *Server) connected() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns
}

// tick sends a tick to all connections and probes them.
func (s *Server) tick() {
	t := time.NewTicker(wire.TickInterval)
	defer t.Stop()
	for {
		select {
		case now := <-t.C:
			s.expire(now)
			for _, c := range s.connected() {
				c.probe()
			}
			s.broadcastTransient(true, wire.EventTick, wire.Tick{Time: wire.At(now)})
		case <-s.ctx.Done():
			return
		}
	}
}

// Drop closes the connections of a revoked credential. last, which may be nil, is
// called when no further request of theirs is executed, and before they are
// closed: one of them may be owed an answer.
func (s *Server) Drop(credential string, last func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replay.disconnected = slices.DeleteFunc(s.replay.disconnected,
		func(d disconnected) bool { return d.who.Credential == credential })
	var dropped []*conn
	for _, c := range s.conns {
		if c.who.Credential == credential {
			c.dropped.Store(true)
			dropped = append(dropped, c)
		}
	}
	if last != nil {
		last()
	}
	for _, c := range dropped {
		c.drop()
	}
}

// Connected reports whether a client with the credential is connected in a
// role; "": in any role.
func (s *Server) Connected(credential, role string) bool {
	return slices.ContainsFunc(s.connected(), func(c *conn) bool {
		return c.who.Credential == credential && (role == "" || c.role == role)
	})
}

// Broadcast sends an event to all clients with the scope.
func (s *Server) Broadcast(scope chela.Scope, name string, payload any) {
	s.broadcast(func(v *subscriber) bool { return v.who.May(scope) }, false, name, func() any { return payload })
}

// MethodInfos describes the methods.
func (s *Server) MethodInfos() []rpc.MethodInfo { return s.o.Methods.Infos() }

// Clients returns the number of connected clients.
func (s *Server) Clients() int { return len(s.connected()) }

// callGrace limits the wait for calls in progress when the server stops.
const callGrace = 200 * time.Millisecond

// waitForCalls waits for the calls in progress. It does not wait for long: a call may wait for
// the end of a run.
func (s *Server) waitForCalls(ctx context.Context) {
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for end := time.After(callGrace); s.calls.Load() > 0; {
		select {
		case <-poll.C:
		case <-end:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Shutdown announces the shutdown to the clients, closes their connections
// after the queued frames are written, and waits until they have ended. When
// ctx ends it drops them.
//
// The order is that of what a client reads: the rest of the text, the answers to its calls, and
// last the shutdown. A connection in the handshake is not in conns; it ends with s.ctx.
func (s *Server) Shutdown(ctx context.Context, why wire.Shutdown) error {
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
	s.waitForCalls(ctx)
	s.broadcastTransient(false, wire.EventShutdown, why)
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
		return errors.New("stop clients: connections did not end in time")
	}
}
