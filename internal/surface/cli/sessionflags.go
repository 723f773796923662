package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// sessionFlags are the flags that select an agent and one of its sessions.
type sessionFlags struct {
	agent   string // "": the agent of the session, or the default agent
	session string
}

// addSessionFlags adds --agent and --session to a command.
func (c *commands) addSessionFlags(cmd *cobra.Command, p *sessionFlags) {
	cmd.Flags().StringVar(&p.agent, "agent", "", "agent `ID`, see chela agents list")
	cmd.Flags().StringVar(&p.session, "session", chela.MainKey, "session `KEY`")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgent) // fails only for an unknown flag
}

// key returns the full key of the selected session, and checks that its agent
// exists.
func (p sessionFlags) key(ctx context.Context, c *commands, l *link) (string, error) {
	def := l.Hello().Snapshot.Defaults.Agent
	if p.agent != "" && !chela.ValidAgentID(p.agent) {
		return "", usage(c.suggest(fmt.Errorf("invalid agent id %q", p.agent), "agents list"))
	}
	name, err := sessionKey(l.Hello(), p.session)
	if err != nil {
		return "", err
	}
	if p.agent != "" {
		key, err := chela.ParseSessionKey(p.session, chela.AgentID(p.agent))
		if err != nil {
			return "", usage(err)
		}
		if key.Agent() != chela.AgentID(p.agent) {
			return "", usage(withHint(fmt.Errorf("session %s does not belong to agent %s", key, p.agent), "--session "+
				string(key)+" without --agent"))
		}
		name = string(key)
	}
	if id := chela.SessionKey(name).Agent(); string(id) != def {
		var identity wire.AgentIdentity
		if err := l.Call(ctx, wire.MethodAgentIdentity, wire.AgentIdentityGet{AgentID: string(id)}, &identity); err != nil {
			return "", err
		}
	}
	return name, nil
}

// completeAgent completes the id of a configured agent.
func (c *commands) completeAgent(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	first := []string{string(chela.DefaultAgent)}
	t, err := c.tree()
	if err != nil {
		return first, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	var agents struct {
		Entries map[string]json.RawMessage
		List    []struct{ ID string }
	}
	if raw := t.Section("agents"); raw != nil && json.Unmarshal(raw, &agents) == nil {
		for _, a := range agents.List {
			ids = append(ids, a.ID)
		}
		ids = slices.AppendSeq(ids, maps.Keys(agents.Entries))
	}
	slices.Sort(ids)
	others := slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == first[0] })
	return append(first, others...), cobra.ShellCompDirectiveNoFileComp
}

// sessionKey returns the full key of the session with the given name.
func sessionKey(h wire.Hello, name string) (string, error) {
	agent := chela.DefaultAgent
	if a := h.Snapshot.Defaults.Agent; a != "" {
		agent = chela.AgentID(a)
	}
	key, err := chela.ParseSessionKey(name, agent)
	if err != nil {
		return "", usage(withHint(err, "--session main"))
	}
	return string(key), nil
}
