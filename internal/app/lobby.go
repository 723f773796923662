package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/httpapi"
)

// lobby serves the port before the engine is up: it tells that the gateway is
// starting. Then the same listener is the gateway's.
type lobby struct {
	l     net.Listener
	conns chan net.Conn
	gone  chan struct{} // closed when nothing more is accepted
	why   error         // set before gone is closed
	shut  chan struct{} // closed by close
	early http.Server
	first *turn
	wg    sync.WaitGroup
}

// turn is the listener as one of its two servers sees it.
type turn struct {
	*lobby
	once sync.Once
	over chan struct{}
}

// newLobby begins to serve l.
func newLobby(l net.Listener, log *slog.Logger, door *access.Door, started time.Time) *lobby {
	b := &lobby{l: l, conns: make(chan net.Conn), gone: make(chan struct{}), shut: make(chan struct{})}
	b.first = b.turn()
	b.early = http.Server{
		Handler: httpapi.New(httpapi.Options{
			Log: log, Door: door, Upgrade: gateway.Starting(), Started: started,
			Stage: func() httpapi.Stage { return httpapi.Starting },
		}),
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	b.wg.Go(b.accept)
	b.wg.Go(func() { _ = b.early.Serve(b.first) }) // it ends with its turn
	return b
}

// accept hands out connections to whose turn it is.
func (b *lobby) accept() {
	defer close(b.gone)
	for {
		c, err := b.l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				b.why = err
				return
			}
			time.Sleep(5 * time.Millisecond) // too many files are open
			continue
		}
		select {
		case b.conns <- c:
		case <-b.shut:
			c.Close()
		}
	}
}

func (b *lobby) turn() *turn { return &turn{lobby: b, over: make(chan struct{})} }

// next ends the first server when it has answered, and returns the listener for
// the second one.
func (b *lobby) next() net.Listener {
	t := b.turn()
	b.first.Close()
	b.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if b.early.Shutdown(ctx) != nil {
			b.early.Close()
		}
	})
	return t
}

// close closes the port.
func (b *lobby) close() {
	b.l.Close()
	close(b.shut)
	b.first.Close()
	b.early.Close()
	b.wg.Wait()
}

// Accept waits for a connection.
func (t *turn) Accept() (net.Conn, error) {
	select {
	case <-t.over:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.gone:
		return nil, t.why
	case <-t.over:
		return nil, net.ErrClosed
	}
}

// Close ends the turn; the listener is the lobby's.
func (t *turn) Close() error {
	t.once.Do(func() { close(t.over) })
	return nil
}

// Addr returns the listener's address.
func (t *turn) Addr() net.Addr { return t.l.Addr() }
