package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) sandbox() *cobra.Command {
	return group("sandbox", "Show and test where commands run", c.sandboxStatus(), c.sandboxExplain(),
		c.sandboxTest(), c.sandboxRecreate())
}

// sandboxFlags adds the flags that select a session.
func sandboxFlags(cmd *cobra.Command, agent, session *string) {
	cmd.Flags().StringVar(agent, "agent", "", "for the agent `ID`")
	cmd.Flags().StringVar(session, "session", "", "for the session `KEY` (default main)")
}

func (c *commands) sandboxStatus() *cobra.Command {
	var p wire.SandboxGet
	cmd := &cobra.Command{Use: "status",
		Short: "Show whether commands can be confined on this host, and if not, what mends it", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.SandboxStatus
			if err := c.call(cmd.Context(), wire.MethodSandboxStatus, p, &s); err != nil {
				return err
			}
			return c.print(s, func() {
				for _, l := range s.Backends {
					c.printLevel(l)
				}
				sandboxed := sandboxedSessions(s.Mode)
				fmt.Fprintf(c.stdout, "sandboxed sessions of agent %s: %s\n  agents.defaults.sandbox.mode is %s\n",
					ansi.Line(s.AgentID), sandboxed, ansi.Line(s.Mode))
				if sandboxed == "none" {
					fmt.Fprintln(c.stdout, "  commands that nobody was asked about run confined if the sandbox is complete")
				}
			})
		}}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "for the agent `ID`")
	return c.withJSON(cmd)
}

// sandboxedSessions says which sessions a mode puts into a sandbox.
func sandboxedSessions(mode string) string {
	switch mode {
	case "all":
		return "all"
	case "non-main":
		return "all but the main session"
	}
	return "none"
}

// printLevel prints how well a backend confines commands.
func (c *commands) printLevel(l wire.SandboxLevel) {
	state := "complete"
	if !l.Complete {
		state = "not available"
	}
	fmt.Fprintf(c.stdout, "%s: %s (level %s)\n", ansi.Line(l.Backend), state, ansi.Line(l.Level))
	if l.Reason != "" {
		fmt.Fprintf(c.stdout, "  why: %s\n", ansi.Line(l.Reason))
	}
	if l.Hint != "" {
		fmt.Fprintf(c.stdout, "  try: %s\n", ansi.Line(l.Hint))
	}
}

func (c *commands) sandboxExplain() *cobra.Command {
	var p wire.SandboxGet
	cmd := &cobra.Command{Use: "explain",
		Short: "Show whether a session is sandboxed, which tools it has, and who may leave the sandbox", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var e wire.SandboxExplained
			if err := c.call(cmd.Context(), wire.MethodSandboxExplain, p, &e); err != nil {
				return err
			}
			return c.print(e, func() { c.printSandbox(e) })
		}}
	sandboxFlags(cmd, &p.AgentID, &p.SessionKey)
	return c.withJSON(cmd)
}

func (c *commands) printSandbox(e wire.SandboxExplained) {
	verdict := "is not sandboxed"
	if e.Sandboxed {
		verdict = "is sandboxed"
	}
	fmt.Fprintf(c.stdout, "session %s %s (mode %s, scope %s, workspace access %s)\n", ansi.Line(e.SessionKey), verdict,
		e.Mode, e.Scope, e.Access)
	c.printLevel(e.Level)
	if e.Workspace != "" {
		fmt.Fprintf(c.stdout, "folder: %s\n", ansi.Line(e.Workspace))
	}
	if e.Container != "" {
		fmt.Fprintf(c.stdout, "container: %s, working directory %s\n", ansi.Line(e.Container), ansi.Line(e.Workdir))
	}
	c.printTable([][]string{
		{"TOOLS", "FROM", "NAMES"},
		{"allowed", ansi.Line(e.Tools.Sources.Allow), ansi.Line(strings.Join(e.Tools.Allow, ", "))},
		{"denied", ansi.Line(e.Tools.Sources.Deny), ansi.Line(strings.Join(e.Tools.Deny, ", "))},
	})
	may := "you may leave the sandbox"
	if !e.Elevated.Allowed {
		may = "you may not leave the sandbox: " + e.Elevated.Reason
	}
	fmt.Fprintf(c.stdout, "elevated: %s; %s\n", ansi.Line(e.Elevated.Level), ansi.Line(may))
	for _, g := range e.Elevated.Gates {
		fmt.Fprintf(c.stdout, "  %s: %s\n", ansi.Line(g.Key), ansi.Line(fmt.Sprint(g.Value)))
	}
}

func (c *commands) sandboxTest() *cobra.Command {
	var p wire.SandboxGet
	cmd := &cobra.Command{Use: "test", Short: "Try what a confined command must not be able to do", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r wire.SandboxTest
			if err := c.call(cmd.Context(), wire.MethodSandboxTest, p, &r); err != nil {
				return err
			}
			err := c.print(r, func() {
				palette := c.palette(c.stdout)
				for _, e := range r.Effects {
					mark := palette.Good.Paint("✓ held")
					if !e.Held {
						mark = palette.Bad.Paint("✗ open")
					}
					fmt.Fprintf(c.stdout, "%s  %s\n", mark, ansi.Line(e.Name))
				}
				c.printLevel(r.SandboxLevel)
			})
			if err == nil && !r.Complete {
				err = errReported
			}
			return err
		}}
	sandboxFlags(cmd, &p.AgentID, &p.SessionKey)
	return c.withJSON(cmd)
}

func (c *commands) sandboxRecreate() *cobra.Command {
	var p wire.SandboxRecreate
	cmd := &cobra.Command{Use: "recreate",
		Short: "Remove what is kept for sandboxes, so that the next command starts in a new one", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r wire.SandboxRecreated
			if err := c.call(cmd.Context(), wire.MethodSandboxRecreate, p, &r); err != nil {
				return err
			}
			return c.print(r, func() {
				for _, name := range r.Names {
					fmt.Fprintf(c.stdout, "removed: %s\n", ansi.Line(name))
				}
				for _, name := range r.Busy {
					fmt.Fprintf(c.stdout, "kept, because commands run in it: %s\n", ansi.Line(name))
				}
				if len(r.Names)+len(r.Busy) == 0 {
					fmt.Fprintln(c.stdout, "nothing was kept")
				}
			})
		}}
	cmd.Flags().BoolVar(&p.All, "all", false, "those of all sessions")
	sandboxFlags(cmd, &p.AgentID, &p.SessionKey)
	return c.withJSON(cmd)
}
