// Package channels implements the methods about messaging accounts: their state, and the
// people who may write to them without being in the configuration.
package channels

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. Store is required for those about people.
type Options struct {
	Store store.Store
	// Own makes the first admitted person the owner, who may use every command, if the
	// configuration names nobody yet. It reports whether it did. Owned reports whether the
	// configuration names somebody. nil: the configuration cannot be changed.
	Own   func(ctx context.Context, id string) (bool, error)
	Owned func() bool
	// Accounts returns the configured accounts, ordered by channel and id.
	Accounts func() []channel.Account
	// Probe asks the platform of an account whether it works. ok is false if it cannot be
	// asked.
	Probe func(ctx context.Context, name string, id chela.AccountID) (ok bool, err error)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodGuestList, wire.RoleOperator, chela.ScopePairing, o.guests).Reads(),
		rpc.New(wire.MethodGuestApprove, wire.RoleOperator, chela.ScopePairing, o.approve),
		rpc.New(wire.MethodGuestDismiss, wire.RoleOperator, chela.ScopePairing, o.dismiss),
		rpc.New(wire.MethodGuestRemove, wire.RoleOperator, chela.ScopePairing, o.remove),
		rpc.New(wire.MethodChannelsStatus, wire.RoleOperator, chela.ScopeRead, o.status),
	}
}

// Limits of a probe.
const (
	probeTime    = 10 * time.Second
	maxProbeTime = time.Minute
)

func (o Options) status(ctx context.Context, _ rpc.Peer, in wire.ChannelsGet) (wire.ChannelsStatus, error) {
	out := wire.ChannelsStatus{
		Time: wire.At(time.Now()), Order: []string{}, Labels: map[string]string{}, Channels: map[string]wire.ChannelState{},
		Accounts: map[string][]wire.ChannelAccount{}, Defaults: map[string]string{},
	}
	all := o.Accounts()
	if in.Channel != "" {
		all = slices.DeleteFunc(all, func(a channel.Account) bool {
			return a.Channel != in.Channel && !slices.Contains(a.Aliases, in.Channel)
		})
	}
	probes := make([]*wire.ChannelProbe, len(all))
	if in.Probe {
		o.probe(ctx, in, all, probes)
	}
	for i, a := range all {
		s, known := out.Channels[a.Channel]
		if !known {
			s = wire.ChannelState{Configured: true, Running: true}
			out.Order = append(out.Order, a.Channel)
			out.Labels[a.Channel] = wireview.Label(a.Channel)
		}
		state := wire.ChannelAccount{
			ID:         cmp.Or(string(a.ID), "default"),
			Enabled:    true,
			Configured: true,
			Running:    a.Err == nil,
			Connected:  a.Up,
			Probe:      probes[i],
		}
		if text := problem(a.Err, probes[i]); text != "" {
			s.Running, s.Error, state.Error = false, &text, &text
		}
		out.Channels[a.Channel] = s
		out.Accounts[a.Channel] = append(out.Accounts[a.Channel], state)
		if a.Usual || out.Defaults[a.Channel] == "" {
			out.Defaults[a.Channel] = state.ID
		}
	}
	return out, nil
}

// problem returns why an account does not work; "": it does.
func problem(err error, p *wire.ChannelProbe) string {
	switch {
	case err != nil:
		return err.Error()
	case p != nil && !p.OK:
		return p.Error
	}
	return ""
}

// probe asks the platforms of the accounts, all at once.
func (o Options) probe(ctx context.Context, in wire.ChannelsGet, all []channel.Account, out []*wire.ChannelProbe) {
	limit := probeTime
	if in.Timeout > 0 {
		limit = min(time.Duration(in.Timeout)*time.Millisecond, maxProbeTime)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var wg sync.WaitGroup
	for i, a := range all {
		wg.Go(func() {
			began := time.Now()
			asked, err := o.Probe(ctx, a.Channel, a.ID)
			if !asked {
				return
			}
			p := &wire.ChannelProbe{OK: err == nil, Elapsed: time.Since(began).Milliseconds()}
			if err != nil {
				p.Error = err.Error()
			}
			out[i] = p
		})
	}
	wg.Wait()
}
