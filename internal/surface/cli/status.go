package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) status() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show the model, active runs and pending work",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				var channels wire.ChannelsStatus
				if err := l.Call(cmd.Context(), wire.MethodChannelsStatus, wire.ChannelsGet{}, &channels); err != nil {
					return err
				}
				return queryOn(cmd.Context(), l, wire.MethodStatus, wire.None{},
					func(s wire.Status) { c.printStatus(s, l.Hello(), channels) })
			})
		}})
}

func (c *commands) printStatus(s wire.Status, h wire.Hello, channels wire.ChannelsStatus) {
	d := s.Sessions.Defaults
	model := strings.Trim(d.Provider+"/"+d.Model, "/")
	if d.Reason != "" {
		model += " (" + d.Reason + ")"
	}
	c.printRow("chela", s.Version+", up "+humanize.Span(time.Duration(s.UptimeMs)*time.Millisecond))
	c.printRow("model", model)
	if h.Snapshot.StateDir != "" {
		c.printRow("state", h.Snapshot.StateDir)
	}
	c.printRow("sessions", fmt.Sprint(s.Sessions.Count))
	c.printRow("runs", fmt.Sprint(len(s.Runs)))
	for _, r := range s.Runs {
		c.printRow("", fmt.Sprintf("%s %s, started %s", r.SessionKey, r.State, ago(r.StartedAt.Time())))
	}
	c.printRow("pending", humanize.Many(s.Queued, "message")+", "+humanize.Many(s.Approvals, "approval")+", "+
		humanize.Many(s.Undelivered, "delivery"))
	title := "channels"
	for _, name := range channels.Order {
		for _, a := range channels.Accounts[name] {
			which := name
			if len(channels.Accounts[name]) > 1 {
				which += "/" + a.ID
			}
			c.printRow(title, which+": "+accountState(a))
			title = ""
		}
	}
	c.printRow("memory", humanize.Bytes(int64(s.Memory)))
}

func (c *commands) version() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "version", Short: "Show the version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error {
			return c.print(map[string]any{"version": c.app.Version, "protocol": wire.Version},
				func() { fmt.Fprintln(c.stdout, "chela "+c.app.Version) })
		}})
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
