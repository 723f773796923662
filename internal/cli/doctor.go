package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

func (c *commands) doctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check the installation and say what to do",
		Long: "Check the installation and say what to do. Nothing is changed, and no engine is\n" +
			"started. The exit code is 1 when something is broken.",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.app.Check == nil {
				return errors.New("this build cannot check an installation")
			}
			s, err := c.start()
			if err != nil {
				return err
			}
			found := c.app.Check(cmd.Context(), s)
			failed := false
			for _, f := range found {
				failed = failed || f.Status == StatusFail
			}
			if asJSON {
				err = c.JSON(map[string]any{"ok": !failed, "findings": found})
			} else {
				c.printFindings(found)
			}
			if err == nil && failed {
				err = console.ErrReported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) printFindings(found []Finding) {
	p := c.Palette(c.Out)
	marks := map[string]string{StatusOK: p.Good.Paint("✓ ok  "), StatusWarn: p.Warn.Paint("! warn"), StatusFail: p.Bad.Paint("✗ fail")}
	for _, f := range found {
		fmt.Fprintf(c.Out, "%s  %-15s  %s\n", marks[f.Status], f.Name, ansi.Line(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(c.Out, "                         %s\n", p.Dim.Paint(ansi.Line(f.Hint)))
		}
	}
}
