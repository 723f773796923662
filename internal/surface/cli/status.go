package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) status() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "status", Short: "Show the model, active runs and pending work", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.withLink(cmd.Context(), func(l *link) error {
			var s wire.Status
			if err := l.Call(cmd.Context(), wire.MethodStatus, wire.None{}, &s); err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(s)
			}
			c.printStatus(s, l.Hello())
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) printStatus(s wire.Status, h wire.Hello) {
	p := c.palette(c.stdout)
	row := func(name, text string) {
		fmt.Fprintf(c.stdout, "%s %s\n", p.Dim.Paint(fmt.Sprintf("%-10s", name)), text)
	}
	d := s.Sessions.Defaults
	model := ansi.Line(strings.Trim(d.Provider+"/"+d.Model, "/"))
	if d.Reason != "" {
		model += " (" + ansi.Line(d.Reason) + ")"
	}
	row("chela", s.Version+", up "+humanize.Span(time.Duration(s.UptimeMs)*time.Millisecond))
	row("model", model)
	if h.Snapshot.StateDir != "" {
		row("state", h.Snapshot.StateDir)
	}
	row("sessions", fmt.Sprint(s.Sessions.Count))
	row("runs", fmt.Sprint(len(s.Runs)))
	for _, r := range s.Runs {
		row("", fmt.Sprintf("%s %s, started %s", ansi.Line(r.SessionKey), r.State, ago(r.StartedAt.Time())))
	}
	row("pending", humanize.Many(s.Queued, "message")+", "+humanize.Many(s.Approvals, "approval")+", "+humanize.Many(s.Undelivered, "delivery"))
	row("memory", humanize.Bytes(int64(s.Memory)))
}

func (c *commands) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "version", Short: "Show the version", Args: exactly(0), RunE: func(*cobra.Command, []string) error {
		if asJSON {
			return c.printJSON(map[string]any{"version": c.app.Version, "protocol": wire.Version})
		}
		fmt.Fprintln(c.stdout, "chela "+c.app.Version)
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// completion writes the completion script of a shell.
func (c *commands) completion() *cobra.Command {
	shells := map[string]func(*cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(c.stdout, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(c.stdout) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(c.stdout, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(c.stdout) },
	}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Write the completion script for bash, zsh, fish or powershell",
		Example:   "  chela completion bash > ~/.local/share/bash-completion/completions/chela",
		Args:      exactly(1),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			write := shells[args[0]]
			if write == nil {
				return usage(withHint(fmt.Errorf("completion: unknown shell %q", args[0]), "chela completion bash"))
			}
			return write(cmd.Root())
		},
	}
}
