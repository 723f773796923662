package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// bound is the result of bind and unbind.
type bound struct {
	Agent   string   `json:"agentId"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Skipped []string `json:"skipped,omitempty"` // were present, or absent, already
}

// bindingArgs are the arguments of bind and unbind.
type bindingArgs struct {
	agent    string
	channels []string
	peer     string
	guild    string
	team     string
	roles    []string
}

func (c *commands) agentsBind() *cobra.Command {
	var in bindingArgs
	cmd := &cobra.Command{
		Use:               "bind [AGENT] [CHANNEL]...",
		Short:             "Have an agent answer messages of channels",
		Args:              between(0, 100),
		ValidArgsFunction: c.completeAgent,
		Example:           "  chela agents bind ops telegram                # the default account; telegram:* for all accounts\n  chela agents bind ops telegram --peer group:-1001",
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := in.matches(cmd, args)
			if err != nil {
				return err
			}
			var out bound
			err = c.changeBy(cmd.Context(), func(section func(string) json.RawMessage) ([]config.Edit, error) {
				out = bound{Agent: in.agent}
				all, err := bindingsIn(section)
				if err != nil {
					return nil, err
				}
				return bind(&out, all, matches)
			})
			if err != nil {
				return c.unknownAgent(err, in.agent)
			}
			return c.printBound(out)
		},
	}
	in.flags(c, cmd)
	return c.withJSON(cmd)
}

func (c *commands) agentsUnbind() *cobra.Command {
	var in bindingArgs
	var every bool
	cmd := &cobra.Command{
		Use:               "unbind [AGENT] [CHANNEL]...",
		Short:             "Remove bindings of an agent",
		Args:              between(0, 100),
		ValidArgsFunction: c.completeAgent,
		Example:           "  chela agents unbind ops telegram --peer group:-1001\n  chela agents unbind ops --all",
		RunE: func(cmd *cobra.Command, args []string) error {
			matches, err := in.matches(cmd, args)
			if err != nil && !(every && errors.Is(err, errNoChannel)) {
				return err
			}
			if f := cmd.Flags(); every && (err == nil || f.Changed("peer") || f.Changed("guild") || f.Changed("team") ||
				f.Changed("role")) {
				return usage(withHint(errors.New("--all removes every binding"), cmd.CommandPath()+" "+in.agent+" --all"))
			}
			var out bound
			err = c.changeBy(cmd.Context(), func(section func(string) json.RawMessage) ([]config.Edit, error) {
				out = bound{Agent: in.agent}
				all, err := bindingsIn(section)
				if err != nil {
					return nil, err
				}
				return unbind(&out, all, matches), nil
			})
			if err != nil {
				return err
			}
			return c.printBound(out)
		},
	}
	in.flags(c, cmd)
	cmd.Flags().BoolVar(&every, "all", false, "remove all bindings of the agent")
	return c.withJSON(cmd)
}

func (c *commands) agentsBindings() *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:               "bindings [AGENT]",
		Short:             "List which agent answers messages of which channels",
		Args:              between(0, 1),
		ValidArgsFunction: c.completeAgent,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				agent = args[0]
			}
			all, err := c.bindings()
			if err != nil {
				return err
			}
			if agent != "" {
				all = slices.DeleteFunc(all, func(b route.Binding) bool { return b.Agent.ID() != chela.AgentIDOf(agent) })
			}
			if all == nil {
				all = []route.Binding{}
			}
			return c.print(all, func() {
				if len(all) == 0 {
					fmt.Fprintln(c.stdout, "there are no bindings")
					return
				}
				rows := [][]string{{"AGENT", "BINDING"}}
				for _, b := range all {
					rows = append(rows, []string{ansi.Line(string(b.Agent)), ansi.Line(b.Match.String())})
				}
				c.printTable(rows)
			})
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "only those of this agent `ID`")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgent) // fails only for an unknown flag
	return c.withJSON(cmd)
}

// bindings returns the bindings of the configuration that are used for routing.
func (c *commands) bindings() ([]route.Binding, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	all, err := bindingsIn(t.Section)
	return slices.DeleteFunc(all, func(b route.Binding) bool { return !b.Routes() }), err
}

// bindingsIn returns the bindings in a configuration.
func bindingsIn(section func(string) json.RawMessage) (all []route.Binding, err error) {
	if raw := section("bindings"); raw != nil {
		if err = json.Unmarshal(raw, &all); err != nil {
			err = fmt.Errorf("bindings: %w", err)
		}
	}
	return all, err
}

// flags adds the flags of bind and unbind.
func (in *bindingArgs) flags(c *commands, cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&in.agent, "agent", "", "agent `ID`, instead of the first argument")
	f.StringArrayVar(&in.channels, "bind", nil, "`CHANNEL[:ACCOUNT]`, like an argument")
	f.StringVar(&in.peer, "peer", "",
		"only the conversation `KIND:ID`: direct, group or channel, and its id on the platform or *")
	f.StringVar(&in.guild, "guild", "", "only conversations of the server with this `ID`")
	f.StringVar(&in.team, "team", "", "only conversations of the workspace with this `ID`")
	f.StringArrayVar(&in.roles, "role", nil, "only senders with the role with this `ID`, or another one that is named")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.completeAgent) // fails only for an unknown flag
}

// errNoChannel reports that bind or unbind was called without a channel.
var errNoChannel = errors.New("no channel")

// matches returns what the arguments of bind or unbind describe, and sets in.agent.
func (in *bindingArgs) matches(cmd *cobra.Command, args []string) ([]route.Match, error) {
	if in.agent == "" && len(args) > 0 {
		in.agent, args = args[0], args[1:]
	}
	if in.agent == "" {
		return nil, usage(withHint(errors.New("no agent"), cmd.CommandPath()+" AGENT CHANNEL"))
	}
	if id := chela.AgentIDOf(in.agent); id != "" {
		in.agent = string(id)
	}
	base := route.Match{Guild: route.ID(in.guild), Team: route.ID(in.team)}
	for _, r := range in.roles {
		base.Roles = append(base.Roles, route.ID(r))
	}
	if in.peer != "" {
		kind, id, ok := strings.Cut(in.peer, ":")
		if !ok || id == "" {
			return nil, usage(withHint(fmt.Errorf("invalid peer %q", in.peer), "--peer group:ID"))
		}
		base.Peer = &route.Peer{Kind: chela.PeerKind(kind), ID: route.ID(id)}
	}
	var out []route.Match
	for _, s := range append(args, in.channels...) {
		m := base
		channel, account, _ := strings.Cut(s, ":")
		m.Channel, m.Account = channel, route.ID(account)
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, usage(withHint(errNoChannel, cmd.CommandPath()+" "+in.agent+" CHANNEL"))
	}
	return out, nil
}

// bind returns the edits that add bindings of out.Agent to all. It fails if another
// agent has one of them.
func bind(out *bound, all []route.Binding, matches []route.Match) ([]config.Edit, error) {
	var added []route.Binding
	for _, m := range matches {
		at := slices.IndexFunc(all, func(b route.Binding) bool { return b.Routes() && b.Match.Equal(m) })
		switch {
		case at >= 0 && all[at].Agent.ID() != chela.AgentIDOf(out.Agent):
			other := string(all[at].Agent)
			return nil, withHint(fmt.Errorf("%s is bound to the agent %q", m, other), "chela agents unbind "+
				other+" "+m.String())
		case at >= 0:
			out.Skipped = append(out.Skipped, m.String())
		default:
			b := route.Binding{Agent: route.Name(out.Agent), Match: m}
			all, added = append(all, b), append(added, b)
			out.Added = append(out.Added, m.String())
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	before := len(all) - len(added)
	if before == 0 {
		e, err := edit("bindings", added)
		return []config.Edit{e}, err
	}
	var edits []config.Edit
	for i, b := range added {
		e, err := edit(fmt.Sprintf("bindings[%d]", before+i), b)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return edits, nil
}

// unbind returns the edits that remove bindings of out.Agent from all; without matches,
// all of them.
func unbind(out *bound, all []route.Binding, matches []route.Match) []config.Edit {
	var edits []config.Edit
	for i, b := range slices.Backward(all) { // so that the indexes of the others stay valid
		if b.Routes() && b.Agent.ID() == chela.AgentIDOf(out.Agent) &&
			(matches == nil || slices.ContainsFunc(matches, b.Match.Equal)) {
			edits = append(edits, config.Edit{Path: fmt.Sprintf("bindings[%d]", i)})
			out.Removed = append(out.Removed, b.Match.String())
		}
	}
	for _, m := range matches {
		if !slices.Contains(out.Removed, m.String()) {
			out.Skipped = append(out.Skipped, m.String())
		}
	}
	slices.Reverse(out.Removed)
	return edits
}

// edit returns the edit that sets a value.
func edit(path string, value any) (config.Edit, error) {
	b, err := json.Marshal(value)
	return config.Edit{Path: path, Value: b}, err
}

// printBound prints what bind or unbind did.
func (c *commands) printBound(out bound) error {
	return c.print(out, func() {
		for _, m := range out.Added {
			fmt.Fprintf(c.stdout, "%s answers %s\n", out.Agent, ansi.Line(m))
		}
		for _, m := range out.Removed {
			fmt.Fprintf(c.stdout, "%s no longer answers %s\n", out.Agent, ansi.Line(m))
		}
		for _, m := range out.Skipped {
			fmt.Fprintf(c.stdout, "unchanged: %s\n", ansi.Line(m))
		}
	})
}
