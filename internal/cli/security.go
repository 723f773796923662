package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// Weakness is something that makes an installation easier to take over.
type Weakness struct {
	ID       string `json:"checkId"`
	Severity string `json:"severity"` // SeverityCritical, SeverityWarn, SeverityInfo
	Text     string `json:"title"`
	Hint     string `json:"remediation,omitempty"`
	Fixed    bool   `json:"fixed,omitempty"` // it was there, and is not any more
}

// How serious a [Weakness] is.
const (
	SeverityCritical = "critical"
	SeverityWarn     = "warn"
	SeverityInfo     = "info"
)

func (c *commands) security() *cobra.Command {
	return console.Group("security", "Look for weaknesses", c.securityAudit())
}

func (c *commands) securityAudit() *cobra.Command {
	var asJSON, fix bool
	cmd := &cobra.Command{
		Use: "audit", Short: "List what makes this installation easier to take over",
		Long: "List what makes this installation easier to take over. With --fix, modes of files\nthat are too wide are narrowed; nothing else is changed.",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.app.Audit == nil {
				return errors.New("this build cannot audit an installation")
			}
			s, err := c.start()
			if err != nil {
				return err
			}
			found, err := c.app.Audit(cmd.Context(), s, fix)
			if err != nil {
				return err
			}
			if asJSON {
				return c.JSON(map[string]any{"summary": summary(found), "findings": found})
			}
			c.printWeaknesses(found)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&fix, "fix", false, "narrow the modes of files")
	return cmd
}

// summary counts what is not fixed, by severity.
func summary(found []Weakness) map[string]int {
	n := map[string]int{SeverityCritical: 0, SeverityWarn: 0, SeverityInfo: 0}
	for _, w := range found {
		if !w.Fixed {
			n[w.Severity]++
		}
	}
	return n
}

func (c *commands) printWeaknesses(found []Weakness) {
	p := c.Palette(c.Out)
	marks := map[string]string{
		SeverityCritical: p.Bad.Paint("✗ critical"), SeverityWarn: p.Warn.Paint("! warn    "), SeverityInfo: p.Dim.Paint("· info    "),
	}
	for _, w := range found {
		mark := marks[w.Severity]
		if w.Fixed {
			mark = p.Good.Paint("✓ fixed   ")
		}
		fmt.Fprintf(c.Out, "%s  %s\n            %s\n", mark, w.ID, ansi.Line(w.Text))
		if w.Hint != "" && !w.Fixed {
			fmt.Fprintf(c.Out, "            %s\n", p.Dim.Paint(ansi.Line(w.Hint)))
		}
	}
	n := summary(found)
	fmt.Fprintf(c.Out, "%d critical, %d warnings, %d notes\n", n[SeverityCritical], n[SeverityWarn], n[SeverityInfo])
}
