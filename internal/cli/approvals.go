package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *console) approvals() *cobra.Command {
	return group("approvals", "Decide about what waits for a person",
		c.approvalsList(), c.approvalsGet(), c.approvalsDecide("allow"), c.approvalsDecide("deny"))
}

// waiting connects and calls f with what waits for a decision.
func (c *console) waiting(ctx context.Context, f func(*link, []wire.Approval) error) error {
	return c.with(ctx, func(l *link) error {
		var list []wire.Approval
		if err := l.Call(ctx, wire.MethodApprovalList, wire.None{}, &list); err != nil {
			return err
		}
		return f(l, list)
	})
}

func (c *console) approvalsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List what waits for a decision", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.waiting(cmd.Context(), func(_ *link, list []wire.Approval) error {
			switch {
			case asJSON:
				return c.printJSON(list)
			case len(list) == 0:
				fmt.Fprintln(c.out, "Nothing waits for a decision.")
				return nil
			}
			rows := [][]string{{"ID", "TOOL", "SESSION", "ASKED", "FOR"}}
			for _, a := range list {
				first, _, more := strings.Cut(a.Request.Command, "\n")
				if more {
					first += " …"
				}
				rows = append(rows, []string{
					a.ID, a.Request.Tool, ansi.Line(a.Request.SessionKey), ago(a.Created.Time()), ansi.Truncate(ansi.Line(first), 60),
				})
			}
			c.table(rows)
			fmt.Fprintln(c.err, "the whole of one: "+c.command("approvals get ID"))
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *console) approvalsGet() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get [ID]", Short: "Show the whole of what waits; without ID, when one thing waits, that", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.waiting(cmd.Context(), func(_ *link, list []wire.Approval) error {
				a, err := c.meant(list, args)
				if err != nil {
					return err
				}
				if asJSON {
					return c.printJSON(a)
				}
				c.printApproval(a)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printApproval shows all of a request: what is not shown is not decided about.
func (c *console) printApproval(a wire.Approval) {
	r := a.Request
	fmt.Fprintf(c.out, "%s of %s, in %s\n", a.ID, r.Tool, ansi.Line(r.SessionKey))
	if r.Reason != "" {
		fmt.Fprintln(c.out, ansi.Line(r.Reason))
	}
	fmt.Fprintln(c.out)
	for line := range strings.Lines(r.Command) {
		fmt.Fprintln(c.out, "  "+ansi.Line(strings.TrimRight(line, "\n")))
	}
	fmt.Fprintf(c.out, "\nexpires in %s\n", time.Until(a.Expires.Time()).Round(time.Second))
}

// meant returns the request that is meant: the one with the id, or the only one.
func (c *console) meant(list []wire.Approval, args []string) (wire.Approval, error) {
	switch {
	case len(list) == 0:
		return wire.Approval{}, errors.New("nothing waits for a decision")
	case len(args) == 0 && len(list) == 1:
		return list[0], nil
	case len(args) == 0:
		return wire.Approval{}, hinted{fmt.Errorf("%d requests wait; which one?", len(list)), c.command("approvals list")}
	}
	var found []wire.Approval
	for _, a := range list {
		if a.ID == args[0] {
			return a, nil
		}
		if strings.HasPrefix(a.ID, args[0]) {
			found = append(found, a)
		}
	}
	if len(found) != 1 {
		return wire.Approval{}, hinted{fmt.Errorf("no request %s waits", args[0]), c.command("approvals list")}
	}
	return found[0], nil
}

// approvalsDecide is allow or deny.
func (c *console) approvalsDecide(verb string) *cobra.Command {
	var always bool
	cmd := &cobra.Command{Use: verb + " [ID]", Args: between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.waiting(cmd.Context(), func(l *link, list []wire.Approval) error {
			a, err := c.meant(list, args)
			if err != nil {
				return err
			}
			p := wire.ApprovalResolve{ID: a.ID, Decision: wire.Deny}
			if verb == "allow" {
				p.Decision = wire.AllowOnce
			}
			if always {
				p.Decision = wire.AllowAlways
			}
			if err := l.Call(cmd.Context(), wire.MethodApprovalResolve, p, nil); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s %s\n", p.Decision, a.ID)
			return nil
		})
	}}
	if verb == "deny" {
		cmd.Short = "Refuse what waits"
		return cmd
	}
	cmd.Short = "Allow what waits, once"
	cmd.Flags().BoolVar(&always, "always", false, "and the same again in that session")
	return cmd
}
