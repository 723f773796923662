package app

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
)

// standby is the state of a gateway that waits for the database of another one. Its port
// and its socket say which one serves. It is safe for concurrent use.
type standby struct {
	log    *slog.Logger
	state  string                   // directory of the socket; "": there is none
	socket *gateway.StartupListener // nil: it is not open; used only by who opens the store

	mu   sync.Mutex
	last string // what is waited for; "": nothing
}

// wait is standard.StoreOptions.Standby.
func (s *standby) wait(owner string, err error) {
	if err != nil {
		owner = "the database cannot be reached; no gateway"
	}
	s.mu.Lock()
	changed := s.last != owner
	s.last = owner
	s.mu.Unlock()
	switch {
	case !changed:
		return
	case err != nil:
		s.log.Warn("standby: the database cannot be reached; trying again", "err", err)
	default:
		s.log.Info("standby: another gateway serves", "owner", owner)
	}
	s.listen()
}

// listen answers commands that ask for the gateway of the state directory.
func (s *standby) listen() {
	if s.state == "" || s.socket != nil {
		return
	}
	l, err := statedir.Listen(s.state)
	if err != nil {
		s.log.Warn("standby: commands get no answer", "err", err)
		return
	}
	s.socket = gateway.NewStartupListener(l, s.log, gateway.Starting(s.owner))
}

// end ends the wait.
func (s *standby) end() {
	if s.socket != nil {
		s.socket.Close()
		s.socket = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != "" {
		s.log.Info("standby ends")
	}
	s.last = ""
}

// owner returns who serves; "": nobody is waited for.
func (s *standby) owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *standby) stage() httpapi.Stage {
	if s.owner() != "" {
		return httpapi.Standby
	}
	return httpapi.Starting
}

// held returns a function that reports whether the engine certainly has its database; nil:
// no other process can take it over.
func (e *Engine) held() func() bool {
	if o, ok := e.db.(standard.Owned); ok {
		return o.Held
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// lostTime is how long an engine takes to stop that does not have its database any more.
const lostTime = time.Second

// watchOwnership makes the gateway start again, as a standby, when another one has taken
// over the database.
func (e *Engine) watchOwnership(ctx context.Context, db standard.Owned) error {
	select {
	case <-db.Lost():
		e.o.Log.Error("this gateway has lost its database; it becomes a standby")
		e.restartAfter(0)
	case <-ctx.Done():
	}
	return nil
}
