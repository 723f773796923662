// Package approvals is the commands by which a person decides about what waits.
package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the command approvals with those below it.
func Commands(k *console.Console) *cobra.Command {
	c := commands{k}
	return console.Group("approvals", "Decide about what waits for a person",
		c.list(), c.get(), c.decide("allow"), c.decide("deny"))
}

type commands struct{ *console.Console }

// waiting connects and calls f with what waits for a decision.
func (c commands) waiting(ctx context.Context, f func(*client.Client, []wire.Approval) error) error {
	return c.Dial(ctx, func(l *client.Client) error {
		var list []wire.Approval
		if err := l.Call(ctx, wire.MethodApprovalList, wire.None{}, &list); err != nil {
			return err
		}
		return f(l, list)
	})
}

func (c commands) list() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List what waits for a decision", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.waiting(cmd.Context(), func(_ *client.Client, list []wire.Approval) error {
			switch {
			case asJSON:
				return c.JSON(list)
			case len(list) == 0:
				fmt.Fprintln(c.Out, "Nothing waits for a decision.")
				return nil
			}
			rows := [][]string{{"ID", "TOOL", "SESSION", "ASKED", "FOR"}}
			for _, a := range list {
				first, _, more := strings.Cut(a.Request.Command, "\n")
				if more {
					first += " …"
				}
				rows = append(rows, []string{
					a.ID, a.Request.Tool, ansi.Line(a.Request.SessionKey), console.Ago(a.Created.Time()), ansi.Truncate(ansi.Line(first), 60),
				})
			}
			c.Table(rows)
			fmt.Fprintln(c.Err, "the whole of one: "+c.Command("approvals get ID"))
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) get() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get [ID]", Short: "Show the whole of what waits; without ID, when one thing waits, that", Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.waiting(cmd.Context(), func(_ *client.Client, list []wire.Approval) error {
				a, err := c.meant(list, args)
				if err != nil {
					return err
				}
				if asJSON {
					return c.JSON(a)
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
func (c commands) printApproval(a wire.Approval) {
	r := a.Request
	fmt.Fprintf(c.Out, "%s of %s, in %s\n", a.ID, r.Tool, ansi.Line(r.SessionKey))
	if r.Reason != "" {
		fmt.Fprintln(c.Out, ansi.Line(r.Reason))
	}
	fmt.Fprintln(c.Out)
	for line := range strings.Lines(r.Command) {
		fmt.Fprintln(c.Out, "  "+ansi.Line(strings.TrimRight(line, "\n")))
	}
	fmt.Fprintf(c.Out, "\nexpires in %s\n", time.Until(a.Expires.Time()).Round(time.Second))
}

// meant returns the request that is meant: the one with the id, or the only one.
func (c commands) meant(list []wire.Approval, args []string) (wire.Approval, error) {
	switch {
	case len(list) == 0:
		return wire.Approval{}, errors.New("nothing waits for a decision")
	case len(args) == 0 && len(list) == 1:
		return list[0], nil
	case len(args) == 0:
		return wire.Approval{}, c.Hint(fmt.Errorf("%d requests wait; which one?", len(list)), "approvals list")
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
		return wire.Approval{}, c.Hint(fmt.Errorf("no request %s waits", args[0]), "approvals list")
	}
	return found[0], nil
}

// approvalsDecide is allow or deny.
func (c commands) decide(verb string) *cobra.Command {
	var always bool
	cmd := &cobra.Command{Use: verb + " [ID]", Args: console.Between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.waiting(cmd.Context(), func(l *client.Client, list []wire.Approval) error {
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
			fmt.Fprintf(c.Out, "%s %s\n", p.Decision, a.ID)
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
