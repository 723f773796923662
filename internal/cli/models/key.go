package models

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// probe says which keys work.
func (c commands) probe(ctx context.Context, s wire.ModelsStatus) error {
	rows := [][]string{{"TRIED", "", "TIME", ""}}
	for _, p := range s.Providers {
		if !p.Ready {
			continue
		}
		var out wire.ModelsProbed
		if err := c.Call(ctx, wire.MethodModelsProbe, wire.ModelsProbe{Provider: p.ID}, &out); err != nil {
			return err
		}
		for _, r := range out.Results {
			took := ""
			if r.Latency != nil {
				took = fmt.Sprintf("%d ms", *r.Latency)
			}
			rows = append(rows, []string{r.Label, r.Status, took, ansi.Truncate(ansi.Line(r.Error), 80)})
		}
	}
	fmt.Fprintln(c.Out)
	c.Table(rows)
	return nil
}

func (c commands) logout() *cobra.Command {
	return &cobra.Command{
		Use: "logout PROVIDER[:NAME]", Short: "Forget the keys that were kept for a provider, or one of them", Args: console.Exactly(1),
		Long: "Forget the keys that were kept for a provider, or one of them. A key in the\n" +
			"configuration or in a variable of the environment stays.",
		Example: "  chela models auth logout groq\n  chela models auth logout groq:work",
		RunE: func(cmd *cobra.Command, args []string) error {
			var in wire.ModelsLogout
			if in.Provider, _, _ = strings.Cut(args[0], ":"); in.Provider != args[0] {
				in.Keys = []string{args[0]}
			}
			var out wire.ModelsLoggedOut
			if err := c.Call(cmd.Context(), wire.MethodModelsLogout, in, &out); err != nil {
				return err
			}
			if out.Warning != "" {
				fmt.Fprintln(c.Err, ansi.Line(out.Warning))
			}
			if len(out.Removed) == 0 {
				fmt.Fprintln(c.Err, "no key of "+in.Provider+" was kept")
				return nil
			}
			fmt.Fprintln(c.Err, "forgot "+strings.Join(out.Removed, ", "))
			return nil
		},
	}
}
