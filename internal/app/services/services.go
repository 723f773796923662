// Package services starts and stops the background parts of an engine.
package services

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/service"
)

// Supervisor runs services. They are started in the order in which they were
// added and stopped in the opposite order, each when the later ones have
// returned. It is safe for concurrent use.
type Supervisor struct {
	log *slog.Logger
	ctx context.Context // values for the services; it does not end

	change  sync.Mutex // held while services are started and replaced; guards the following
	running []*running // in the order in which they were started
	stopped bool       // no service is started any more, so that running stays as it is

	mu     sync.Mutex
	failed map[string]error // with which Run returned, by name; a new start removes it
}

// running is a service of a Supervisor.
type running struct {
	name    string
	raw     json.RawMessage // the section that it has
	service service.Service // nil: it is off
	cancel  context.CancelFunc
	done    chan struct{} // closed when Run has returned
}

// New returns a Supervisor without services. Their contexts have the values of
// ctx and do not end with it.
func New(ctx context.Context, log *slog.Logger) *Supervisor {
	return &Supervisor{log: log, ctx: context.WithoutCancel(ctx), failed: map[string]error{}}
}

// Start adds a service without configuration and starts it.
func (s *Supervisor) Start(name string, run service.Func) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.stopped {
		return
	}
	r := &running{name: name, service: run}
	s.running = append(s.running, r)
	s.start(r)
}

// Maker makes a service from its section of the configuration.
type Maker struct {
	Name    string
	Section string // path; "": none
	New     func(raw json.RawMessage) (service.Service, error)
}

// Plan is services that were made for a configuration and are not started.
type Plan struct{ made []*running }

// Prepare makes the services whose section differs from that of the running one,
// without starting them. section returns the JSON at a path of the configuration.
func (s *Supervisor) Prepare(makers []Maker, section func(path string) json.RawMessage) (*Plan, error) {
	s.change.Lock()
	defer s.change.Unlock()
	p := &Plan{}
	for _, m := range makers {
		var raw json.RawMessage
		if m.Section != "" {
			raw = section(m.Section)
		}
		if old := s.find(m.Name); old != nil && bytes.Equal(old.raw, raw) {
			continue
		}
		made, err := m.New(raw)
		if err != nil {
			return nil, fmt.Errorf("configuration, %s: %w", m.Section, err)
		}
		p.made = append(p.made, &running{name: m.Name, raw: raw, service: made})
	}
	return p, nil
}

// Apply starts the services of a plan. A service that runs already is offered the
// new section; unless it applies it, it is stopped and replaced.
// A service that is replaced keeps its place in the order. Its end is waited for without a
// limit, so that two of a kind never run at once.
func (s *Supervisor) Apply(p *Plan) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.stopped {
		return
	}
	for _, next := range p.made {
		old := s.find(next.name)
		switch {
		case old == nil:
			s.running = append(s.running, next)
			s.start(next)
		case s.reload(old, next):
			old.raw = next.raw
		default:
			s.stop(context.Background(), old)
			old.raw, old.service = next.raw, next.service
			s.start(old)
		}
	}
}

// reload reports whether a running service applied the section of next.
func (s *Supervisor) reload(old, next *running) bool {
	r, ok := old.service.(service.Reloader)
	if !ok || next.service == nil || old.ended() {
		return false
	}
	applied, err := r.Reload(next.raw)
	if err != nil {
		s.log.Warn("service refused its new configuration; restarting it", "service", old.name, "err", err)
		return false
	}
	return applied
}

func (s *Supervisor) find(name string) *running {
	if i := slices.IndexFunc(s.running, func(r *running) bool { return r.name == name }); i >= 0 {
		return s.running[i]
	}
	return nil
}

// start calls Run on a goroutine of its own.
func (s *Supervisor) start(r *running) {
	ctx, cancel := context.WithCancel(s.ctx)
	r.cancel, r.done = cancel, make(chan struct{})
	s.fail(r.name, nil)
	run, done := r.service, r.done
	if run == nil {
		close(done)
		return
	}
	go func() {
		defer close(done)
		err := run.Run(ctx)
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) &&
			!errors.Is(err, http.ErrServerClosed) {
			s.log.Error("service failed", "service", r.name, "err", err)
			s.fail(r.name, err)
		}
	}()
}

// ended reports whether Run has returned.
func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// stop ends a service, and reports whether it returned before ctx ended.
func (s *Supervisor) stop(ctx context.Context, r *running) bool {
	r.cancel()
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		return r.ended()
	}
}

// Cancel ends the contexts of all services without waiting for them.
func (s *Supervisor) Cancel() {
	s.change.Lock()
	defer s.change.Unlock()
	for _, r := range s.running {
		r.cancel()
	}
}

// Stop stops all services, the last one first, and reports whether all of them
// returned before ctx ended.
func (s *Supervisor) Stop(ctx context.Context) bool {
	s.change.Lock()
	s.stopped = true
	s.change.Unlock() // a service may be changing the services, and be waited for
	all := true
	for _, r := range slices.Backward(s.running) {
		all = s.stop(ctx, r) && all
	}
	return all
}

func (s *Supervisor) fail(name string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failed, name)
	if err != nil {
		s.failed[name] = err
	}
}

// Failed returns the services that ended with an error, by name.
func (s *Supervisor) Failed() map[string]error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.failed)
}
