// Package channels implements the method that reports the state of the
// messaging accounts.
package channels

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the method.
type Options struct {
	// States returns the state of each channel by name.
	States func() map[string]wire.ChannelState
}

// account is the id of a channel's only account.
const account = "default"

// Methods returns the method.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodChannelsStatus, wire.RoleOperator, chela.ScopeRead, o.status).Ignoring("probe", "timeoutMs"),
	}
}

func (o Options) status(_ context.Context, _ rpc.Peer, in wire.ChannelsGet) (wire.ChannelsStatus, error) {
	out := wire.ChannelsStatus{
		Time: wire.At(time.Now()), Order: []string{}, Labels: map[string]string{}, Channels: map[string]wire.ChannelState{},
		Accounts: map[string][]wire.ChannelAccount{}, Defaults: map[string]string{},
	}
	states := o.States()
	for _, name := range slices.Sorted(maps.Keys(states)) {
		if in.Channel != "" && in.Channel != name {
			continue
		}
		s := states[name]
		out.Order = append(out.Order, name)
		out.Labels[name] = wireview.Label(name)
		out.Channels[name] = s
		out.Accounts[name] = []wire.ChannelAccount{{ID: account, Enabled: true, Configured: s.Configured, Running: s.Running, Error: s.Error}}
		out.Defaults[name] = account
	}
	return out, nil
}
