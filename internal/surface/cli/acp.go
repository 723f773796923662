package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/acp"
)

func (c *commands) acp() *cobra.Command {
	f := sessionFlags{}
	cmd := &cobra.Command{
		Use: "acp", Short: "Let an editor talk to the assistant over the Agent Client Protocol", Args: exactly(0),
		Long: "Speak the Agent Client Protocol on standard input and output. An editor such as Zed starts\n" +
			"this command; each of its conversations is a session of its own, unless --session names one.",
		Example: "  chela acp --agent shop\n  chela acp --session main",
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.editor(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.agent, "agent", "",
		"agent `ID`; default: the one whose workspace the editor's folder is in, or the default agent")
	cmd.Flags().StringVar(&f.session, "session", "", "session `KEY` of all conversations")
	return cmd
}

func (c *commands) editor(ctx context.Context, f sessionFlags) error {
	return c.withLink(ctx, func(l *link) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		o := acp.Options{Client: l.Client, In: c.stdin, Out: c.stdout, Log: s.Log, Version: c.app.Version, Agent: f.agent}
		chosen := f
		if chosen.session == "" {
			chosen.session = chela.MainKey
		}
		key, err := chosen.key(ctx, c, l) // it checks that the agent exists
		if err != nil {
			return err
		}
		if f.session != "" {
			o.Session = key
		}
		return acp.Serve(ctx, o)
	})
}
