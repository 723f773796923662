package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) system() *cobra.Command {
	return group("system", "Send events to the assistant, and control its heartbeat", c.systemEvent(),
		group("heartbeat", "Control the periodic check of the agents", c.heartbeatLast(),
			c.heartbeatSet("enable", "Resume the periodic checks", true),
			c.heartbeatSet("disable", "Stop the periodic checks of all agents, also after a restart", false)))
}

func (c *commands) systemEvent() *cobra.Command {
	p := wire.Wake{}
	cmd := &cobra.Command{
		Use: "event", Short: "Send an event to the assistant, now or with its next heartbeat", Args: exactly(0),
		Example: `  chela system event --mode now --text "The backup failed"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.Text == "" {
				return usage(errors.New("--text is missing"))
			}
			var ok wire.OK
			if err := c.call(cmd.Context(), wire.MethodWake, p, &ok); err != nil {
				return err
			}
			return c.print(ok, func() {
				if p.Mode == wire.WakeNow {
					fmt.Fprintln(c.stdout, "sent; the assistant handles it now")
				} else {
					fmt.Fprintln(c.stdout, "queued for the next heartbeat or message")
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Text, "text", "", "the `TEXT` of the event")
	f.StringVar(&p.Mode, "mode", wire.WakeNext, wire.WakeNow+" or "+wire.WakeNext)
	f.StringVar(&p.SessionKey, "session-key", "", "the session `KEY` (default: the main session)")
	f.StringVar(&p.AgentID, "agent", "", "the agent `ID` whose main session gets the event")
	return c.withJSON(cmd)
}

func (c *commands) heartbeatLast() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "last", Short: "Show the outcome of the last heartbeat", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var h *wire.Heartbeat
			if err := c.call(cmd.Context(), wire.MethodLastHeartbeat, wire.None{}, &h); err != nil {
				return err
			}
			return c.print(h, func() { c.printHeartbeat(h) })
		}})
}

func (c *commands) printHeartbeat(h *wire.Heartbeat) {
	if h == nil {
		fmt.Fprintln(c.stdout, "there was no heartbeat yet")
		return
	}
	c.printRow("status", h.Status)
	c.printRow("time", ago(h.Time.Time()))
	c.printRow("agent", h.AgentID)
	for _, row := range []struct{ name, text string }{{"reason", h.Reason}, {"session", h.SessionKey},
		{"channel", h.Channel}, {"to", h.To}, {"text", h.Preview}} {
		if row.text != "" {
			c.printRow(row.name, ansi.Line(row.text))
		}
	}
}

// heartbeatSet returns the command that enables or disables heartbeats.
func (c *commands) heartbeatSet(use, short string, enabled bool) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: use, Short: short, Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var out wire.HeartbeatsSet
			if err := c.call(cmd.Context(), wire.MethodSetHeartbeats, wire.SetHeartbeats{Enabled: &enabled}, &out); err != nil {
				return err
			}
			return c.print(out, func() { fmt.Fprintf(c.stdout, "heartbeats are %sd\n", use) })
		}})
}
