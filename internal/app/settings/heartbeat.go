package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
)

// Heartbeats returns the settings of the heartbeats of all agents. If agents have a
// section of their own, only they have an interval; else only the default agent has one,
// while its HEARTBEAT.md has content if agents.defaults has no section either. zone is the
// person's time zone.
func (o *Settings) Heartbeats(zone *time.Location) []heartbeat.Settings {
	ids := o.Roster()
	own := slices.ContainsFunc(ids, func(id chela.AgentID) bool { a, _ := o.Agents.find(id); return a.Heartbeat != nil })
	main := o.DefaultAgent()
	var out []heartbeat.Settings
	for _, id := range ids {
		a, _ := o.Agents.find(id)
		s := section(a.Heartbeat).Or(section(o.Agent.Heartbeat)).Settings(id, zone)
		if own && a.Heartbeat == nil || !own && id != main {
			s.Every = 0
		}
		s.NeedsFile = !own && o.Agent.Heartbeat == nil
		out = append(out, s)
	}
	return out
}

// Heartbeat returns the settings of the heartbeats of an agent.
func (o *Settings) Heartbeat(id chela.AgentID) heartbeat.Settings {
	a, _ := o.Agents.find(id)
	return section(a.Heartbeat).Or(section(o.Agent.Heartbeat)).Settings(id, time.UTC)
}

func section(c *heartbeat.Config) heartbeat.Config {
	if c == nil {
		return heartbeat.Config{}
	}
	return *c
}

// checkHeartbeats returns the errors in the settings of heartbeats.
func (o *Settings) checkHeartbeats() []error {
	errs := []error{section(o.Agent.Heartbeat).Check("agents.defaults.heartbeat")}
	for id, a := range o.Agents.Entries {
		errs = append(errs, section(a.Heartbeat).Check(entry(id)+".heartbeat"))
	}
	for i, a := range o.Agents.List {
		errs = append(errs, section(a.Heartbeat).Check(fmt.Sprintf("agents.list[%d].heartbeat", i)))
	}
	return errs
}

// HeartbeatVisibility returns what the account of an address shows of heartbeats.
func (o *Settings) HeartbeatVisibility(a chela.Address) heartbeat.Visibility {
	c := o.Channels[a.Channel]
	var account struct {
		Heartbeat heartbeat.Visibility `json:"heartbeat"`
	}
	if raw := c.Accounts[string(a.Account)]; raw != nil {
		_ = json.Unmarshal(raw, &account) // the channel reports the error
	}
	return account.Heartbeat.Or(c.Heartbeat).Or(o.Channels[channelDefaults].Heartbeat)
}

// channelDefaults is the name of the section for all channels.
const channelDefaults = "defaults"

// IsOwnerChat reports whether an address is a direct chat with a person who may change
// settings: one that is listed by id, or an owner. Guests are neither.
func (o *Settings) IsOwnerChat(a chela.Address) bool {
	if a.Peer.Kind != chela.Direct || a.Local() {
		return false
	}
	return slices.Contains(o.Senders()[a.Channel], a.Peer.ID) ||
		lists(o.Slash.Owners, chela.ChannelSender{Channel: a.Channel, ID: a.Peer.ID})
}
