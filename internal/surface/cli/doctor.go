package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// repaired is what doctor --fix did with a finding.
type repaired struct {
	Finding
	Err string `json:"error,omitempty"`
}

func (c *commands) doctor() *cobra.Command {
	var fix, alone, lint bool
	cmd := c.withJSON(c.withYes(&cobra.Command{
		Use: "doctor", Short: "Check the installation, and repair it if asked", Args: exactly(0),
		Long: "Check the installation and suggest fixes. Without --fix nothing is changed, and no engine is\n" +
			"started. The exit code is 1 if a check fails; with --lint it is 3 if there are only warnings.",
		Example: "  chela doctor\n  chela doctor --fix\n  chela doctor --lint --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if lint && fix {
				return usage(errors.New("--lint and --fix exclude each other: --lint changes nothing"))
			}
			if !fix && (alone || c.yes) {
				return usage(c.suggest(errors.New("--yes and --non-interactive are for --fix"), "doctor --fix"))
			}
			s, err := c.start()
			if err != nil {
				return err
			}
			found := c.findings(cmd.Context(), s)
			var done []repaired
			if fix {
				if done, err = c.repair(cmd.Context(), s, found, alone); err != nil {
					return err
				}
				found = c.findings(cmd.Context(), s)
			}
			return c.examined(found, done, lint)
		},
	}))
	f := cmd.Flags()
	f.BoolVar(&fix, "fix", false, "repair what can be repaired; asks first on a terminal")
	f.BoolVar(&alone, "non-interactive", false, "do not ask, like --yes")
	f.BoolVar(&lint, "lint", false, "print only what is wrong; warnings alone have the exit code 3")
	return cmd
}

// findings checks the installation.
func (c *commands) findings(ctx context.Context, s Start) []Finding {
	found := append(c.app.Check(ctx, s), c.checkService(ctx, s)...)
	return append(found, c.checkRemote(ctx, s)...)
}

// repair repairs what can be repaired.
func (c *commands) repair(ctx context.Context, s Start, found []Finding, alone bool) ([]repaired, error) {
	found = slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return !f.Fixable })
	if len(found) > 0 && !alone && !c.yes && isTerminal(c.stdin) && isTerminal(c.stderr) {
		c.printFindings(found)
		if err := c.confirm("repair "+humanize.Many(len(found), "finding")+" in "+s.State, "doctor --fix --yes"); err != nil {
			return nil, err
		}
	}
	var done []repaired
	for _, f := range found {
		r := repaired{Finding: f}
		if err := f.Repair(ctx); err != nil {
			r.Err = errorText(err)
		}
		done = append(done, r)
	}
	return done, nil
}

// examined prints findings and repairs, and returns what determines the exit code.
func (c *commands) examined(found []Finding, done []repaired, lint bool) error {
	has := func(status string) bool {
		return slices.ContainsFunc(found, func(f Finding) bool { return f.Status == status })
	}
	failed, warned := has(StatusFail), has(StatusWarn)
	if lint {
		found = slices.DeleteFunc(found, func(f Finding) bool { return f.Status == StatusOK })
	}
	out := map[string]any{"ok": !failed, "findings": found}
	if done != nil {
		out["repaired"] = done
	}
	err := c.print(out, func() {
		for _, r := range done {
			if r.Err == "" {
				fmt.Fprintf(c.stdout, "repaired %s: %s\n", r.Name, ansi.Line(r.Text))
			} else {
				fmt.Fprintf(c.stdout, "not repaired %s: %s\n", r.Name, ansi.Line(r.Err))
			}
		}
		c.printFindings(found)
		if lint && len(found) == 0 {
			fmt.Fprintln(c.stdout, "nothing is wrong")
		}
	})
	switch {
	case err != nil:
		return err
	case failed, slices.ContainsFunc(done, func(r repaired) bool { return r.Err != "" }):
		return errReported
	case lint && warned:
		return errWarned
	}
	return nil
}

func (c *commands) printFindings(found []Finding) {
	p := c.palette(c.stdout)
	marks := map[string]string{
		StatusOK:   p.Good.Paint("✓ ok"),
		StatusWarn: p.Warn.Paint("! warn"),
		StatusFail: p.Bad.Paint("✗ fail"),
	}
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
