// Package postbox is a channel for tests of the registry: each of its accounts is
// a fake in memory.
package postbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
)

// Platform is where the accounts are. The zero Platform is ready.
type Platform struct {
	mu     sync.Mutex
	fakes  map[string]*channeltest.Fake
	events []string
}

// Factory makes accounts on the platform.
func (p *Platform) Factory() channel.Factory {
	return channel.Factory{
		Name: "postbox", Aliases: []string{"box"}, Limits: channel.Limits{Text: 1000}, Can: (*account)(nil),
		Identity: func(raw json.RawMessage) string { o, _ := parse(raw); return o.Number },
		New: func(_ channel.Env, id string, raw json.RawMessage) (channel.Channel, error) {
			o, err := parse(raw)
			if err != nil {
				return nil, err
			}
			return &account{Fake: p.Account(id), p: p, name: id + " " + o.Number}, nil
		},
	}
}

// options is the section of an account.
type options struct {
	Number string `json:"number"`
}

func parse(raw json.RawMessage) (o options, err error) {
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, err
	}
	if o.Number == "" {
		err = errors.New("number is missing")
	}
	return o, err
}

// Account returns the chat of an account.
func (p *Platform) Account(id string) *channeltest.Fake {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fakes == nil {
		p.fakes = map[string]*channeltest.Fake{}
	}
	if p.fakes[id] == nil {
		p.fakes[id] = &channeltest.Fake{}
	}
	return p.fakes[id]
}

// Events returns which accounts were started and stopped, in order.
func (p *Platform) Events() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

func (p *Platform) record(event string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, event)
}

// account is the instance of an account.
type account struct {
	*channeltest.Fake
	p    *Platform
	name string
}

// Run implements channel.Channel.
func (a *account) Run(ctx context.Context, sink channel.Sink) error {
	a.p.record("start " + a.name)
	defer a.p.record("stop " + a.name)
	return a.Fake.Run(ctx, sink)
}
