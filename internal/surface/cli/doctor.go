package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) doctor() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "doctor", Short: "Check the installation and suggest fixes",
		Long: "Check the installation and suggest fixes. Nothing is changed, and no engine is\n" +
			"started. The exit code is 1 if a check fails.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			found := append(c.app.Check(cmd.Context(), s), c.checkService(cmd.Context(), s)...)
			found = append(found, c.checkRemote(cmd.Context(), s)...)
			failed := slices.ContainsFunc(found, func(f Finding) bool { return f.Status == StatusFail })
			err = c.print(map[string]any{"ok": !failed, "findings": found}, func() { c.printFindings(found) })
			if err == nil && failed {
				err = errReported
			}
			return err
		},
	})
}

func (c *commands) printFindings(found []Finding) {
	p := c.palette(c.stdout)
	marks := map[string]string{StatusOK: p.Good.Paint("✓ ok"), StatusWarn: p.Warn.Paint("! warn"), StatusFail: p.Bad.Paint("✗ fail")}
	var rows [][]string
	for _, f := range found {
		rows = append(rows, []string{marks[f.Status], f.Name, ansi.Line(f.Text)})
		if f.Hint != "" {
			rows = append(rows, []string{"", "", p.Dim.Paint(ansi.Line(f.Hint))})
		}
	}
	for _, line := range slices.Concat(table(rows, columns(c.stdout))...) {
		fmt.Fprintln(c.stdout, line)
	}
}
