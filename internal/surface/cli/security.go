package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Weakness is one security weakness found by [App.Audit].
type Weakness struct {
	ID       string `json:"checkId"`
	Severity string `json:"severity"` // SeverityCritical, SeverityWarn, SeverityInfo
	Text     string `json:"title"`
	Hint     string `json:"remediation,omitempty"`
	Fixed    bool   `json:"fixed,omitempty"` // found and fixed
}

// Severities of a [Weakness].
const (
	SeverityCritical = "critical"
	SeverityWarn     = "warn"
	SeverityInfo     = "info"
)

func (c *commands) security() *cobra.Command {
	return group("security", "Check for security weaknesses", c.securityAudit())
}

func (c *commands) securityAudit() *cobra.Command {
	var fix bool
	cmd := &cobra.Command{
		Use: "audit", Short: "List security weaknesses of this installation",
		Long: "List security weaknesses of this installation. With --fix, file modes that are too\npermissive are tightened; nothing else is changed.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			found, err := c.app.Audit(cmd.Context(), s, fix)
			if err != nil {
				return err
			}
			return c.print(map[string]any{"summary": summary(found), "findings": found}, func() { c.printWeaknesses(found) })
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "tighten file modes")
	return c.withJSON(cmd)
}

// summary counts the weaknesses that are not fixed, by severity.
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
	p := c.palette(c.stdout)
	marks := map[string]string{
		SeverityCritical: p.Bad.Paint("✗ critical"), SeverityWarn: p.Warn.Paint("! warn    "),
		SeverityInfo: p.Dim.Paint("· info    "),
	}
	for _, w := range found {
		mark := marks[w.Severity]
		if w.Fixed {
			mark = p.Good.Paint("✓ fixed   ")
		}
		fmt.Fprintf(c.stdout, "%s  %s\n            %s\n", mark, w.ID, ansi.Line(w.Text))
		if w.Hint != "" && !w.Fixed {
			fmt.Fprintf(c.stdout, "            %s\n", p.Dim.Paint(ansi.Line(w.Hint)))
		}
	}
	n := summary(found)
	fmt.Fprintf(c.stdout, "%d critical, %s, %s\n", n[SeverityCritical], humanize.Many(n[SeverityWarn], "warning"),
		humanize.Many(n[SeverityInfo], "note"))
}
