package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) tools() *cobra.Command {
	return group("tools", "Show tools, the rules that apply to them, and past calls", c.toolsList(),
		c.toolsExplain(), c.toolsAudit())
}

// conversationFlags adds the flags that select the conversation that the rules
// are evaluated for.
func conversationFlags(cmd *cobra.Command, p *wire.ToolsExplainGet) {
	f := cmd.Flags()
	f.StringVar(&p.AgentID, "agent", "", "for the agent `ID`")
	f.StringVar(&p.SessionKey, "session", "", "for the session `KEY` (default main)")
	f.StringVar(&p.Model, "model", "", "for the model `PROVIDER/MODEL`")
	f.StringVar(&p.Sender, "sender", "", "for messages from `CHANNEL:ID`")
	f.BoolVar(&p.Sandboxed, "sandboxed", false, "for a sandboxed session")
	f.IntVar(&p.Depth, "subagent", 0, "for a subagent at depth `N`")
	f.IntVar(&p.MaxDepth, "max-depth", 0,
		"assume that subagents are allowed down to depth `N` (default: the configured one)")
	f.StringVar(&p.Type, "type", "", "for a subagent of the type `NAME`; implies --subagent 1")
}

func (c *commands) toolsList() *cobra.Command {
	var p wire.ToolsExplainGet
	cmd := &cobra.Command{Use: "list", Short: "List the tools, and the rules that remove some of them", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.explainTools(cmd.Context(), p, func(e wire.ToolsExplained) {
				rows := [][]string{{"TOOL", "AVAILABLE", "DESCRIPTION"}}
				for _, t := range e.Tools {
					available := "yes"
					if !t.Allowed {
						available = "no: " + ruleName(t.By, t.Key)
					}
					rows = append(rows, []string{t.Name, available, ansi.Truncate(ansi.Line(t.Summary), 70)})
				}
				c.printTable(rows)
			})
		}}
	conversationFlags(cmd, &p)
	return c.withJSON(cmd)
}

func (c *commands) toolsExplain() *cobra.Command {
	var p wire.ToolsExplainGet
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Show which rules apply to a tool",
		Long: "Show which rules apply to a tool, in the order in which they are evaluated. A later\nrule cannot restore a tool that an earlier one removed.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Name = args[0]
			return c.explainTools(cmd.Context(), p, func(e wire.ToolsExplained) {
				for _, t := range e.Tools {
					c.printTool(e, t)
				}
				if e.ReadOnly {
					fmt.Fprintln(c.stdout, "This type of subagent only reads: a call that could change something is refused.")
				}
			})
		},
	}
	conversationFlags(cmd, &p)
	return c.withJSON(cmd)
}

// explainTools asks the gateway which rules apply and calls show with the
// result. Configuration warnings go to standard error.
func (c *commands) explainTools(ctx context.Context, p wire.ToolsExplainGet, show func(wire.ToolsExplained)) error {
	var e wire.ToolsExplained
	if err := c.call(ctx, wire.MethodToolsExplain, p, &e); err != nil {
		return err
	}
	for _, w := range e.Warnings {
		fmt.Fprintln(c.stderr, "warning: "+ansi.Line(w))
	}
	return c.print(e, func() { show(e) })
}

func (c *commands) printTool(e wire.ToolsExplained, t wire.ToolExplained) {
	verdict := "is available"
	if !t.Allowed {
		verdict = "is not available"
	}
	fmt.Fprintf(c.stdout, "%s %s (agent %s, %s)\n", t.Name, verdict, e.AgentID, e.Model)
	if len(t.Steps) == 0 {
		fmt.Fprintln(c.stdout, "no rules apply to tools")
		return
	}
	rows := [][]string{{"RULE", "EFFECT", "REASON"}}
	for _, s := range t.Steps {
		effect, reason := "keeps it", "not denied"
		switch {
		case !s.Allows && s.Pattern == "":
			effect, reason = "removes it", "not in the list of allowed tools"
		case !s.Allows:
			effect, reason = "removes it", ansi.Line(s.Pattern)+" is denied"
		case s.Pattern != "":
			reason = ansi.Line(s.Pattern) + " is allowed"
		}
		rows = append(rows, []string{ruleName(s.Label, s.Key), effect, reason})
	}
	c.printTable(rows)
}

// ruleName returns the name of a rule and its configuration key.
func ruleName(label, key string) string {
	if key == "" {
		return label
	}
	return strings.TrimSpace(label + " (" + ansi.Line(key) + ")")
}
