// Package metronome is a service with configuration, for tests of the registry.
package metronome

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/service"
)

// Log records what the services do. The zero Log is ready.
type Log struct {
	mu     sync.Mutex
	events []string
}

func (l *Log) record(event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// Events returns what the services have done, in order.
func (l *Log) Events() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// options is a service's section.
type options struct {
	Tempo string `json:"tempo"`
	Live  bool   `json:"live"` // another tempo is applied without a restart
}

// New returns a service.
func New(name string, raw json.RawMessage, log *Log) (service.Service, error) {
	m := &metronome{name: name, log: log}
	if raw != nil {
		if err := json.Unmarshal(raw, &m.options); err != nil {
			return nil, err
		}
	}
	return m, nil
}

type metronome struct {
	options
	name string
	log  *Log
}

// Run implements service.Service.
func (m *metronome) Run(ctx context.Context) error {
	m.log.record("start " + m.name + " " + m.Tempo)
	<-ctx.Done()
	m.log.record("stop " + m.name)
	return nil
}

// Reload implements service.Reloader.
func (m *metronome) Reload(raw json.RawMessage) (bool, error) {
	var o options
	if err := json.Unmarshal(raw, &o); err != nil || !o.Live {
		return false, err
	}
	m.log.record("reload " + m.name + " " + o.Tempo)
	return true, nil
}
