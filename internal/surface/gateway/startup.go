package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/wire"
)

// StartupListener serves a listener while the gateway starts and then hands it
// over to the gateway. Use [NewStartupListener].
type StartupListener struct {
	l net.Listener
	// conns has no room: a connection waits there until one of the two servers takes it. So
	// a client that connects in the grace, or during the handover, is served a moment later
	// rather than refused.
	conns   chan net.Conn
	ended   chan struct{} // closed when accepting has ended
	err     error         // set before ended is closed
	closing chan struct{} // closed by Close
	startup http.Server
	first   *handover
	wg      sync.WaitGroup
}

// handover is the listener as seen by one of its two servers.
type handover struct {
	*StartupListener
	once sync.Once
	done chan struct{}
}

// startupGrace is how long early clients wait for the gateway to start before
// they get an answer.
const startupGrace = 50 * time.Millisecond

// NewStartupListener starts to serve l with a handler.
func NewStartupListener(l net.Listener, log *slog.Logger, early http.Handler) *StartupListener {
	b := &StartupListener{l: l, conns: make(chan net.Conn), ended: make(chan struct{}), closing: make(chan struct{})}
	b.first = b.newHandover()
	b.startup = http.Server{
		Handler: early, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	b.wg.Go(b.accept)
	b.wg.Go(func() {
		select {
		case <-time.After(startupGrace):
			_ = b.startup.Serve(b.first) // ends at the handover
		case <-b.first.done:
		}
	})
	return b
}

// accept distributes connections to the current server.
func (b *StartupListener) accept() {
	defer close(b.ended)
	for {
		c, err := b.l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				b.err = err
				return
			}
			time.Sleep(5 * time.Millisecond) // too many open files
			continue
		}
		select {
		case b.conns <- c:
		case <-b.closing:
			c.Close()
		}
	}
}

func (b *StartupListener) newHandover() *handover {
	return &handover{StartupListener: b, done: make(chan struct{})}
}

// Handover stops the startup server after its current requests and returns the
// listener for the gateway.
func (b *StartupListener) Handover() net.Listener {
	t := b.newHandover()
	b.first.Close()
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if b.startup.Shutdown(ctx) != nil {
			b.startup.Close()
		}
	})
	return t
}

// Addr returns the address of the listener.
func (b *StartupListener) Addr() net.Addr { return b.l.Addr() }

// Close closes the listener and waits for the startup server.
func (b *StartupListener) Close() {
	b.l.Close()
	close(b.closing)
	b.first.Close()
	b.startup.Close()
	b.wg.Wait()
}

// Accept waits for a connection.
func (t *handover) Accept() (net.Conn, error) {
	// The select below chooses at random. After the handover, the startup server must not
	// take a connection any more.
	select {
	case <-t.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.ended:
		return nil, t.err
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// Close ends the use by this server. The listener stays open.
func (t *handover) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}

// Starting returns a handler that refuses clients because the gateway is still
// starting: they retry. owner returns the gateway that this one waits for, as its
// standby; "" or nil: none.
func Starting(owner func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return // Accept has answered
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithTimeout(r.Context(), handshakeTimeout)
		defer cancel()
		ws.SetReadLimit(wire.MaxHandshake)
		hello, err := wire.EncodeEvent(wire.EventChallenge, wire.Challenge{Nonce: rand.Text(), Time: wire.At(time.Now())})
		if err != nil || ws.Write(ctx, websocket.MessageText, hello) != nil {
			return
		}
		_, b, err := ws.Read(ctx)
		if err != nil {
			return
		}
		req, _ := wire.ParseRequest(b) // any request gets the same answer
		no, reason := wire.Errorf(wire.Unavailable,
			"gateway starting; retry shortly").With(map[string]string{"reason": "startup-sidecars"}), "gateway starting"
		no.Retryable, no.RetryAfterMs = true, 500
		if owner != nil && owner() != "" { // not retryable: it may take for ever
			no, reason = wire.Errorf(wire.Unavailable, "standby: %s serves",
				owner()).With(map[string]string{"reason": wire.ReasonStandby, "owner": owner()}), "standby"
		}
		if b, err = wire.EncodeResponse(cmp.Or(req.ID, "invalid"), nil, no); err == nil {
			err = ws.Write(ctx, websocket.MessageText, b)
		}
		if err == nil {
			ws.Close(wire.CloseStarting, reason)
		}
	})
}
