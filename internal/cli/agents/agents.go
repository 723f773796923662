// Package agents is the commands by which a person says which agents there are.
package agents

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the commands.
func Commands(k *console.Console) *cobra.Command {
	c := commands{k}
	return console.Group("agents", "Say which agents there are, and who they are", c.list(), c.add(), c.identity(), c.delete())
}

type commands struct{ *console.Console }

func (c commands) list() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the agents", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		var l wire.AgentsList
		if err := c.Call(cmd.Context(), wire.MethodAgentsList, wire.None{}, &l); err != nil {
			return err
		}
		if asJSON {
			return c.JSON(l)
		}
		rows := [][]string{{"AGENT", "NAME", "MODEL", "WORKSPACE"}}
		for _, a := range l.Agents {
			name := a.Name
			if a.Identity != nil && a.Identity.Emoji != "" {
				name += " " + a.Identity.Emoji
			}
			rows = append(rows, []string{a.ID, ansi.Line(name), ansi.Line(a.Model.Primary), ansi.Line(a.Workspace)})
		}
		c.Table(rows)
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) add() *cobra.Command {
	var in wire.AgentCreate
	var asJSON bool
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Make an agent, with a workspace and sessions of its own", Args: console.Exactly(1),
		Example: "  chela agents add ops --model anthropic/claude-sonnet-4-5 --emoji 🔧\n  chela agent --agent ops -m hello",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.Name = args[0]
			var out wire.AgentCreated
			if err := c.Call(cmd.Context(), wire.MethodAgentsCreate, in, &out); err != nil {
				return err
			}
			if asJSON {
				return c.JSON(out)
			}
			fmt.Fprintf(c.Out, "%s is there; its workspace is %s\n", out.AgentID, ansi.Line(out.Workspace))
			fmt.Fprintln(c.Err, "talk to it: "+c.Command("chat --agent "+out.AgentID))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Workspace, "workspace", "", "its home folder `DIR` instead of one below the state directory")
	f.StringVar(&in.Model, "model", "", "the `MODEL` that answers instead of the one of all agents")
	f.StringVar(&in.Emoji, "emoji", "", "its sign")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) identity() *cobra.Command {
	var in wire.AgentUpdate
	var model string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "set-identity [AGENT]", Short: "Say who an agent is, and which model answers for it", Args: console.Between(0, 1),
		Example: "  chela agents set-identity ops --name 'Ops Crab' --emoji 🔧",
		RunE: func(cmd *cobra.Command, args []string) error {
			in.AgentID = cmp.Or(strings.Join(args, ""), in.AgentID, string(chela.DefaultAgent))
			if cmd.Flags().Changed("model") {
				in.Model = wire.Some(model)
			}
			if in.Name == "" && in.Emoji == "" && in.Avatar == "" && !in.Model.Set {
				return console.Usage(console.Hint(errors.New("nothing is said of the agent"), cmd.CommandPath()+" "+in.AgentID+" --name NAME"))
			}
			var out wire.AgentUpdated
			if err := c.Call(cmd.Context(), wire.MethodAgentsUpdate, in, &out); err != nil {
				return c.unknown(err, in.AgentID)
			}
			if asJSON {
				return c.JSON(out)
			}
			fmt.Fprintln(c.Out, "changed "+out.AgentID)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.AgentID, "agent", "", "the `AGENT`; main unless it is named")
	f.StringVar(&in.Name, "name", "", "its name for people")
	f.StringVar(&in.Emoji, "emoji", "", "its sign")
	f.StringVar(&in.Avatar, "avatar", "", "its picture: a file of its workspace, or an address")
	f.StringVar(&model, "model", "", "the `MODEL` that answers; empty: that of all agents")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) delete() *cobra.Command {
	var keep, force, asJSON bool
	cmd := &cobra.Command{
		Use: "delete AGENT", Short: "Delete an agent; its workspace goes into the folder trash", Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !force {
				if err := c.Confirm("delete the agent "+args[0], "agents delete "+args[0]+" --force"); err != nil {
					return err
				}
			}
			files := !keep
			var out wire.AgentDeleted
			if err := c.Call(cmd.Context(), wire.MethodAgentsDelete, wire.AgentDelete{AgentID: args[0], Files: &files}, &out); err != nil {
				return c.unknown(err, args[0])
			}
			if asJSON {
				return c.JSON(out)
			}
			fmt.Fprintln(c.Out, "deleted "+out.AgentID+"; its conversations are kept")
			for _, p := range out.Failed {
				fmt.Fprintf(c.Err, "%s stays: %s\n", ansi.Line(p.Path), ansi.Line(p.Reason))
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&keep, "keep-files", false, "leave its workspace where it is")
	f.BoolVar(&force, "force", false, "do not ask")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// unknown adds to an error about an agent that there is not what can be typed.
func (c commands) unknown(err error, id string) error {
	if strings.HasSuffix(console.Said(err), fmt.Sprintf("agent %q not found", id)) {
		return c.Hint(err, "agents list")
	}
	return err
}
