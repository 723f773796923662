package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/route"
)

// Routing returns the routing rules. name returns the name of a channel from one of its
// names.
func (o *Settings) Routing(name func(string) string) *route.Table {
	t := &route.Table{
		Default: o.DefaultAgent(), Strict: o.NoDefault(), DMScope: o.Session.DMScope,
		Links: route.Links(o.Session.Links), Accounts: map[string]chela.AccountID{}, Bindings: slices.Clone(o.Bindings),
	}
	for i := range t.Bindings {
		t.Bindings[i].Match.Channel = name(t.Bindings[i].Match.Channel)
	}
	for channel, c := range o.Channels {
		t.Accounts[name(channel)] = c.defaultAccount()
	}
	return t
}

// defaultAccount returns the account for bindings that name none: the configured one,
// else "default", else the first one in alphabetical order.
func (c Channel) defaultAccount() chela.AccountID {
	if c.Default != "" {
		return c.Default
	}
	if _, ok := c.Accounts[string(route.DefaultAccount)]; !ok && len(c.Accounts) > 0 {
		return chela.AccountID(slices.Min(slices.Collect(maps.Keys(c.Accounts))))
	}
	return route.DefaultAccount
}

// DefaultAgent returns the agent for messages without a binding: the first one that
// is marked as the default, else main.
func (o *Settings) DefaultAgent() chela.AgentID {
	for _, id := range o.Roster() {
		if a, _ := o.Agents.find(id); a.Default {
			return id
		}
	}
	return chela.DefaultAgent
}

// NoDefault reports whether agents.list contains several agents, of which none is the
// default or main. Messages of channels that match no binding are then refused,
// because the list does not say which agent answers them.
func (o *Settings) NoDefault() bool {
	ids := map[chela.AgentID]bool{}
	for _, a := range o.Agents.List {
		ids[a.named()] = true
	}
	return len(ids) > 1 && !o.Agents.has(o.DefaultAgent())
}

// SetDefault is a command that makes an agent the default; see [Settings.NoDefault].
const SetDefault = "chela config set agents.list[0].default true"

// checkBindings returns the errors in the bindings.
func (o *Settings) checkBindings() error {
	var errs []error
	for i, b := range o.Bindings {
		errs = append(errs, b.Check(fmt.Sprintf("bindings[%d]", i), o.Has))
	}
	return errors.Join(errs...)
}
