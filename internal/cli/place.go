package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/wire"
)

// place is where a person talks: an agent, and a session of it.
type place struct {
	agent   string // "": that of the session, or the default one
	session string
}

// placeFlags adds the flags that say where.
func (c *commands) placeFlags(cmd *cobra.Command, p *place) {
	cmd.Flags().StringVar(&p.agent, "agent", "", "the agent `ID`; chela agents list shows them")
	cmd.Flags().StringVar(&p.session, "session", chela.MainKey, "the session `KEY`")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgent) // the flag is there
}

// key returns the whole key of the session that is meant, of an agent that
// there is.
func (p place) key(ctx context.Context, c *commands, l *link) (string, error) {
	def := l.Hello().Snapshot.Defaults.Agent
	if p.agent != "" && !chela.ValidAgentID(p.agent) {
		return "", console.Usage(c.Hint(fmt.Errorf("%q is not the id of an agent", p.agent), "agents list"))
	}
	name, err := console.SessionKey(l.Hello(), p.session)
	if err != nil {
		return "", err
	}
	if p.agent != "" {
		key, err := chela.ParseSessionKey(p.session, chela.AgentID(p.agent))
		if err != nil {
			return "", console.Usage(err)
		}
		if key.Agent() != chela.AgentID(p.agent) {
			return "", console.Usage(console.Hint(fmt.Errorf("session %s is not of the agent %s", key, p.agent), "--session "+string(key)+" alone"))
		}
		name = string(key)
	}
	if id := chela.SessionKey(name).Agent(); string(id) != def {
		var there wire.AgentIdentity
		if err := l.Call(ctx, wire.MethodAgentIdentity, wire.AgentIdentityGet{AgentID: string(id)}, &there); err != nil {
			return "", err
		}
	}
	return name, nil
}

// completeAgent completes the id of an agent that the configuration names.
func (c *commands) completeAgent(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	ids := []string{string(chela.DefaultAgent)}
	t, err := c.tree()
	if err != nil {
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	var agents struct {
		Entries map[string]json.RawMessage
		List    []struct{ ID string }
	}
	if raw := t.Section("agents"); raw != nil && json.Unmarshal(raw, &agents) == nil {
		for _, a := range agents.List {
			ids = append(ids, a.ID)
		}
		ids = append(ids, slices.Sorted(maps.Keys(agents.Entries))...)
	}
	slices.Sort(ids[1:])
	return slices.Compact(ids), cobra.ShellCompDirectiveNoFileComp
}
