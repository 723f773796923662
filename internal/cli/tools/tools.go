// Package tools is the commands that show which tools there are, and why, and
// which were called.
package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the command tools with those below it.
func Commands(k *console.Console) *cobra.Command {
	c := commands{k}
	return console.Group("tools", "Show which tools there are, which rule says so, and which were called", c.list(), c.explain(), c.audit())
}

type commands struct{ *console.Console }

// conversation adds the flags that describe a conversation.
func conversation(cmd *cobra.Command, p *wire.ToolsExplainGet) {
	f := cmd.Flags()
	f.StringVar(&p.AgentID, "agent", "", "of the agent `ID`")
	f.StringVar(&p.SessionKey, "session", "", "in the session `KEY` (default main)")
	f.StringVar(&p.Model, "model", "", "when `PROVIDER/MODEL` answers")
	f.StringVar(&p.Sender, "sender", "", "when `CHANNEL:ID` writes")
	f.BoolVar(&p.Sandboxed, "sandboxed", false, "in a sandbox")
	f.IntVar(&p.Depth, "subagent", 0, "for a subagent of depth `N`")
	f.IntVar(&p.MaxDepth, "max-depth", 0, "when subagents may have children down to depth `N` (default 1)")
}

func (c commands) list() *cobra.Command {
	var p wire.ToolsExplainGet
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the tools, and what keeps some from being offered", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.explained(cmd.Context(), p, asJSON, func(e wire.ToolsExplained) {
			rows := [][]string{{"TOOL", "OFFERED", "DOES"}}
			for _, t := range e.Tools {
				offered := "yes"
				if !t.Offered {
					offered = "no: " + rule(t.By, t.Key)
				}
				rows = append(rows, []string{t.Name, offered, ansi.Truncate(ansi.Line(t.Summary), 70)})
			}
			c.Table(rows)
		})
	}}
	conversation(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) explain() *cobra.Command {
	var p wire.ToolsExplainGet
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Say which rule decides about a tool",
		Long: "Say which rule decides about a tool. The rules are shown in the order in which\nthey are asked; what one removed no later one brings back.",
		Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			return c.explained(cmd.Context(), p, asJSON, func(e wire.ToolsExplained) {
				for _, t := range e.Tools {
					c.printTool(e, t)
				}
			})
		},
	}
	conversation(cmd, &p)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explained asks for the explanation and shows it; what is wrong with the
// configuration is said on standard error.
func (c commands) explained(ctx context.Context, p wire.ToolsExplainGet, asJSON bool, show func(wire.ToolsExplained)) error {
	var e wire.ToolsExplained
	if err := c.Call(ctx, wire.MethodToolsExplain, p, &e); err != nil {
		return err
	}
	for _, w := range e.Warnings {
		fmt.Fprintln(c.Err, "warning: "+ansi.Line(w))
	}
	if asJSON {
		return c.JSON(e)
	}
	show(e)
	return nil
}

func (c commands) printTool(e wire.ToolsExplained, t wire.ToolExplained) {
	verdict := "is offered"
	if !t.Offered {
		verdict = "is not offered"
	}
	fmt.Fprintf(c.Out, "%s %s (agent %s, %s)\n", t.Name, verdict, e.AgentID, e.Model)
	if len(t.Steps) == 0 {
		fmt.Fprintln(c.Out, "no rule says anything about tools")
		return
	}
	rows := [][]string{{"RULE", "SAYS", "BECAUSE OF"}}
	for _, s := range t.Steps {
		says, why := "keeps it", "nothing there is against it"
		switch {
		case !s.Keeps && s.Pattern == "":
			says, why = "removes it", "it is not among those allowed"
		case !s.Keeps:
			says, why = "removes it", ansi.Line(s.Pattern)+" is denied"
		case s.Pattern != "":
			why = ansi.Line(s.Pattern) + " is allowed"
		}
		rows = append(rows, []string{rule(s.Label, s.Key), says, why})
	}
	c.Table(rows)
}

// rule names a rule and the key that it comes from.
func rule(label, key string) string {
	if key == "" {
		return label
	}
	return strings.TrimSpace(label + " (" + ansi.Line(key) + ")")
}
