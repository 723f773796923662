package system

import (
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// last returns the outcome of the last heartbeat; nil: there was none.
func (m methods) last(ctx context.Context, _ rpc.Peer, _ wire.None) (*wire.Heartbeat, error) {
	states, err := store.Get(ctx, m.o.Store,
		func(r store.Reader) ([]heartbeat.State, error) { return r.Heartbeats().States() })
	var last heartbeat.Result
	for _, s := range states {
		if s.Last.Time.After(last.Time) {
			last = s.Last
		}
	}
	if err != nil || last.Time.IsZero() {
		return nil, err
	}
	out := wireview.Heartbeat(last)
	return &out, nil
}

// set enables or disables the intervals of all agents.
func (m methods) set(ctx context.Context, _ rpc.Peer, in wire.SetHeartbeats) (wire.HeartbeatsSet, error) {
	if in.Enabled == nil {
		return wire.HeartbeatsSet{}, rpc.Invalid("must have required property 'enabled'")
	}
	err := m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		tx.Wake(store.Topic{Kind: store.TopicHeartbeat})
		return heartbeat.SetDisabled(tx, !*in.Enabled)
	})
	return wire.HeartbeatsSet{OK: err == nil, Enabled: *in.Enabled}, err
}

// heartbeats returns the settings of the agents, whose Every is 0 without ticks.
func (o Options) heartbeats(r store.Reader) (map[chela.AgentID]heartbeat.Settings, error) {
	out := map[chela.AgentID]heartbeat.Settings{}
	disabled, err := heartbeat.Disabled(r)
	if o.Heartbeats == nil || err != nil {
		return out, err
	}
	for _, s := range o.Heartbeats() {
		if disabled {
			s.Every = 0
		}
		out[s.Agent] = s
	}
	return out, nil
}

// interval returns the heartbeat of an agent.
func interval(s heartbeat.Settings) wire.AgentHeartbeatInterval {
	out := wire.AgentHeartbeatInterval{
		Enabled: s.Every > 0, Every: wireview.Every(s.Every), Prompt: s.Prompt, Target: s.Target, AckMax: s.MaxAck,
	}
	if ms := s.Every.Milliseconds(); ms > 0 {
		out.EveryMs = &ms
	}
	return out
}
