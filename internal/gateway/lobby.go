package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Lobby serves a listener before the gateway is up, for those who come too
// early. Then the same listener is the gateway's. Use [NewLobby].
type Lobby struct {
	l     net.Listener
	conns chan net.Conn
	gone  chan struct{} // closed when nothing more is accepted
	why   error         // set before gone is closed
	shut  chan struct{} // closed by Close
	early http.Server
	first *turn
	wg    sync.WaitGroup
}

// turn is the listener as one of its two servers sees it.
type turn struct {
	*Lobby
	once sync.Once
	over chan struct{}
}

// grace is how long who comes early waits for the gateway, which mostly is up
// by then, before the lobby answers.
const grace = 50 * time.Millisecond

// NewLobby begins to serve l with a handler.
func NewLobby(l net.Listener, log *slog.Logger, early http.Handler) *Lobby {
	b := &Lobby{l: l, conns: make(chan net.Conn), gone: make(chan struct{}), shut: make(chan struct{})}
	b.first = b.turn()
	b.early = http.Server{
		Handler: early, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	b.wg.Go(b.accept)
	b.wg.Go(func() {
		select {
		case <-time.After(grace):
			_ = b.early.Serve(b.first) // it ends with its turn
		case <-b.first.over:
		}
	})
	return b
}

// accept hands out connections to whose turn it is.
func (b *Lobby) accept() {
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

func (b *Lobby) turn() *turn { return &turn{Lobby: b, over: make(chan struct{})} }

// Next ends the first server when it has answered, and returns the listener for
// the second one.
func (b *Lobby) Next() net.Listener {
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

// Addr returns the address of the listener.
func (b *Lobby) Addr() net.Addr { return b.l.Addr() }

// Close closes the listener and waits for who is still served.
func (b *Lobby) Close() {
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
