package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) agents() *cobra.Command {
	return group("agents", "Manage agents", c.agentsList(), c.agentsAdd(), c.agentsSetIdentity(), c.agentsDelete(),
		here(c.agentsBind()), here(c.agentsUnbind()), here(c.agentsBindings()))
}

func (c *commands) agentsList() *cobra.Command {
	var bindings bool
	cmd := &cobra.Command{Use: "list", Short: "List the agents", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all []route.Binding
			if bindings {
				var err error
				if all, err = c.bindings(); err != nil {
					return err
				}
			}
			return c.withLink(cmd.Context(), func(l *link) error {
				return callOn(cmd.Context(), l, wire.MethodAgentsList, wire.None{}, func(out wire.AgentsList) error {
					var v any = out
					if bindings {
						v = struct {
							wire.AgentsList
							Bindings []route.Binding `json:"bindings"`
						}{out, append([]route.Binding{}, all...)}
					}
					return c.print(v, func() { c.printAgents(out, bindings, all) })
				})
			})
		}}
	cmd.Flags().BoolVar(&bindings, "bindings", false, "also list which messages of channels the agents answer")
	return c.withJSON(cmd)
}

// printAgents prints a table of agents, with the bindings if wanted.
func (c *commands) printAgents(l wire.AgentsList, bindings bool, all []route.Binding) {
	rows := [][]string{{"AGENT", "NAME", "MODEL", "WORKSPACE"}}
	if bindings {
		rows[0] = append(rows[0], "ANSWERS")
	}
	for _, a := range l.Agents {
		name := a.Name
		if a.Identity != nil && a.Identity.Emoji != "" {
			name += " " + a.Identity.Emoji
		}
		row := []string{a.ID, ansi.Line(name), ansi.Line(a.Model.Primary), ansi.Line(a.Workspace)}
		if bindings {
			var of []string
			for _, b := range all {
				if string(b.Agent.ID()) == a.ID {
					of = append(of, b.Match.String())
				}
			}
			if a.ID == l.DefaultID {
				of = append(of, "everything else")
			}
			row = append(row, ansi.Line(strings.Join(of, ", ")))
		}
		rows = append(rows, row)
	}
	c.printTable(rows)
}

func (c *commands) agentsAdd() *cobra.Command {
	var in wire.AgentCreate
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Create an agent with its own workspace and sessions", Args: exactly(1),
		Example: "  chela agents add ops --model anthropic/claude-sonnet-4-5 --emoji 🔧\n  chela agent --agent ops -m hello",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			in.Name = args[0]
			if in.Workspace, err = c.absolute(in.Workspace); err != nil {
				return err
			}
			had := namesIn(in.Workspace)
			return query(cmd.Context(), c, wire.MethodAgentsCreate, in, func(out wire.AgentCreated) {
				fmt.Fprintf(c.stdout, "created agent %s with the workspace %s\n", out.AgentID, ansi.Line(out.Workspace))
				added := slices.DeleteFunc(namesIn(out.Workspace), func(name string) bool { return slices.Contains(had, name) })
				if len(had) > 0 && len(added) > 0 {
					fmt.Fprintf(c.stdout, "the agent keeps its own files there: %s\n", ansi.Line(strings.Join(added, ", ")))
				}
				fmt.Fprintln(c.stderr, "start a conversation: "+c.commandLine("chat --agent "+out.AgentID))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Workspace, "workspace", "", "workspace `DIR` (default: a directory in the state directory)")
	f.StringVar(&in.Model, "model", "", "`MODEL` of the agent (default: the model of all agents)")
	f.StringVar(&in.Emoji, "emoji", "", "`EMOJI` of the agent")
	return c.withJSON(cmd)
}

// namesIn returns the names in a folder; none: there is no such folder.
func namesIn(dir string) (names []string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// absolute returns a path that was typed. A relative one begins at the current folder.
func (c *commands) absolute(path string) (string, error) {
	if path == "" || path == "~" || strings.HasPrefix(path, "~/") {
		return path, nil
	}
	return c.gatewayPath(path)
}

func (c *commands) agentsSetIdentity() *cobra.Command {
	var in wire.AgentUpdate
	var model string
	cmd := &cobra.Command{
		Use: "set-identity [AGENT]", Short: "Change the name, emoji, avatar or model of an agent", Args: between(0, 1),
		Example: "  chela agents set-identity ops --name 'Ops Crab' --emoji 🔧",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.AgentID = cmp.Or(strings.Join(args, ""), in.AgentID, string(chela.DefaultAgent))
			if cmd.Flags().Changed("model") {
				in.Model = wire.Some(model)
			}
			if in.Name == "" && in.Emoji == "" && in.Avatar == "" && !in.Model.Set {
				return usage(withHint(errors.New("nothing to change"), cmd.CommandPath()+" "+in.AgentID+" --name NAME"))
			}
			err := query(cmd.Context(), c, wire.MethodAgentsUpdate, in,
				func(out wire.AgentUpdated) { fmt.Fprintln(c.stdout, "changed "+out.AgentID) })
			return c.unknownAgent(err, in.AgentID)
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.AgentID, "agent", "", "agent `ID` (default main)")
	f.StringVar(&in.Name, "name", "", "display `NAME` of the agent")
	f.StringVar(&in.Emoji, "emoji", "", "`EMOJI` of the agent")
	f.StringVar(&in.Avatar, "avatar", "", "`AVATAR` of the agent: a file in its workspace, or a URL")
	f.StringVar(&model, "model", "", "`MODEL` of the agent; empty: the model of all agents")
	return c.withJSON(cmd)
}

func (c *commands) agentsDelete() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "delete AGENT", Short: "Delete an agent and move its workspace to the trash directory", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.confirm("delete the agent "+args[0], "agents delete "+args[0]+" --force"); err != nil {
				return err
			}
			files := !keep
			in := wire.AgentDelete{AgentID: args[0], Files: &files}
			err := query(cmd.Context(), c, wire.MethodAgentsDelete, in, func(out wire.AgentDeleted) {
				fmt.Fprintln(c.stdout, "deleted "+out.AgentID+"; its conversations are kept")
				for _, p := range out.Failed {
					fmt.Fprintf(c.stderr, "%s was not moved: %s\n", ansi.Line(p.Path), ansi.Line(p.Reason))
				}
			})
			return c.unknownAgent(err, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&keep, "keep-files", false, "leave the workspace in place")
	f.BoolVar(&c.yes, "force", false, "do not ask")
	return c.withJSON(cmd)
}

// unknownAgent adds a hint to an error about an agent that does not exist.
func (c *commands) unknownAgent(err error, id string) error {
	if err == nil {
		return nil
	}
	if text := errorText(err); strings.HasSuffix(text, fmt.Sprintf("agent %q not found", id)) ||
		strings.HasSuffix(text, fmt.Sprintf("unknown agent %q", id)) {
		return c.suggest(err, "agents list")
	}
	return err
}
