package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) memoryForget() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use: "forget WORD [WORD]...", Short: "Show what is known about a topic, and remove it everywhere",
		Long: "Shows what is known about a topic in notes, conversations, jobs, stored files and logs, and removes it after a yes.\n" +
			"A line is about the topic if it has all of its words. Use quotation marks for an exact phrase.",
		Args: between(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error {
			p := wire.MemoryForget{Topic: strings.Join(args, " ")}
			var found wire.MemoryForgotten
			if err := c.call(cmd.Context(), wire.MethodMemoryForget, p, &found); err != nil {
				return err
			}
			if dry || !slices.ContainsFunc(found.Findings, func(f wire.MemoryFinding) bool { return f.Stays == "" }) {
				return cmp.Or(c.print(found, func() { c.printForgotten(c.stdout, found) }), unsearched(found))
			}
			if !c.yes {
				c.printForgotten(c.stderr, found)
			}
			if err := c.confirm("remove this for good", "memory forget "+shell.Quote(p.Topic)+" --yes"); err != nil {
				return err
			}
			p.Remove = true
			var done wire.MemoryForgotten
			if err := c.call(cmd.Context(), wire.MethodMemoryForget, p, &done); err != nil {
				return err
			}
			return cmp.Or(c.print(done, func() { c.printForgotten(c.stdout, done) }), unsearched(done))
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would be removed")
	return c.withYes(c.withJSON(cmd))
}

// unsearched returns an error if notes could not be searched: what is in them is not forgotten.
func unsearched(f wire.MemoryForgotten) error {
	for _, x := range f.Findings {
		if x.Location == wire.FindingUnsearched {
			return fmt.Errorf("not everything was searched: %s: %s", ansi.Line(x.Name), x.Stays)
		}
	}
	return nil
}

func (c *commands) printForgotten(w io.Writer, f wire.MemoryForgotten) {
	for line := range strings.Lines(f.Text) {
		fmt.Fprintln(w, ansi.Line(strings.TrimSuffix(line, "\n")))
	}
}
