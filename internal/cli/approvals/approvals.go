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
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the command approvals with those below it.
func Commands(k *console.Console) *cobra.Command {
	c := commands{k}
	return console.Group("approvals", "Decide about what waits for a person",
		c.list(), c.get(), c.allow(), c.deny(), c.set(), c.allowlist(), c.bring())
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

func (c commands) get() *cobra.Command {
	var asJSON, rules bool
	cmd := &cobra.Command{
		Use: "get [ID]", Short: "Show the whole of what waits; without ID, when one thing waits, that", Args: console.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules {
				return c.rules(cmd.Context(), func(_ *client.Client, s wire.ExecPolicySnapshot) error { return c.JSON(s.File) })
			}
			return c.waiting(cmd.Context(), func(l *client.Client, list []wire.Approval) error {
				a, err := c.meant(list, args)
				if err != nil && len(args) > 0 {
					if past, ok := decided(cmd.Context(), l, args[0]); ok {
						return c.showPast(past, asJSON)
					}
				}
				if err != nil {
					return err
				}
				if asJSON {
					return c.JSON(a)
				}
				c.show(a)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&rules, "rules", false, "the rules about commands instead, as set takes them")
	return cmd
}

// meant returns the request that is meant: the one with the id, or the only one.
func (c commands) meant(list []wire.Approval, args []string) (wire.Approval, error) {
	switch {
	case len(args) == 0 && len(list) == 0:
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
	switch len(found) {
	case 0:
		return wire.Approval{}, c.Hint(fmt.Errorf("no request %s waits", args[0]), "approvals list")
	case 1:
		return found[0], nil
	}
	return wire.Approval{}, c.Hint(fmt.Errorf("%d requests begin with %s", len(found), args[0]), "approvals list")
}

// decided returns a request that was decided before.
func decided(ctx context.Context, l *client.Client, id string) (wire.ApprovalSnapshot, bool) {
	var f wire.ApprovalFound
	err := l.Call(ctx, wire.MethodAnyApprovalGet, wire.ApprovalID{ID: id}, &f)
	return f.Approval, err == nil && f.Approval.Status != wire.ApprovalPending
}

func (c commands) allow() *cobra.Command {
	var always, yes bool
	cmd := &cobra.Command{
		Use: "allow [ID]", Short: "Allow what waits, once", Args: console.Between(0, 1),
		Long: "Allow what waits, once. Without ID it is shown first, and a person is asked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.waiting(cmd.Context(), func(l *client.Client, list []wire.Approval) error {
				a, err := c.meant(list, args)
				if err != nil {
					return c.late(cmd.Context(), l, args, err)
				}
				if len(args) == 0 { // another one than was looked at may wait now
					c.show(a)
					if !yes {
						if err := c.Confirm("allow it", "approvals allow "+a.ID); err != nil {
							return err
						}
					}
				}
				switch {
				case always && a.Request.Once:
					return c.Hint(errors.New("this can be allowed once, and not always"), "approvals allow "+a.ID)
				case always:
					return c.decide(cmd.Context(), l, a.ID, wire.AllowAlways)
				}
				return c.decide(cmd.Context(), l, a.ID, wire.AllowOnce)
			})
		},
	}
	cmd.Flags().BoolVar(&always, "always", false, "and the same again for that agent")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c commands) deny() *cobra.Command {
	return &cobra.Command{Use: "deny [ID]", Short: "Refuse what waits", Args: console.Between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.waiting(cmd.Context(), func(l *client.Client, list []wire.Approval) error {
			a, err := c.meant(list, args)
			if err != nil {
				return c.late(cmd.Context(), l, args, err)
			}
			return c.decide(cmd.Context(), l, a.ID, wire.Deny)
		})
	}}
}

func (c commands) decide(ctx context.Context, l *client.Client, id, decision string) error {
	if err := l.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "%s %s\n", decision, id)
	return nil
}

// late says of a request that does not wait any more what became of it.
func (c commands) late(ctx context.Context, l *client.Client, args []string, err error) error {
	if len(args) == 0 {
		return err
	}
	if past, ok := decided(ctx, l, args[0]); ok {
		return c.Hint(fmt.Errorf("request %s does not wait: %s, %s", past.ID, outcome(past), console.Ago(past.Resolved.Time())), "approvals list --all")
	}
	return err
}

// outcome says what became of a request, and by whom.
func outcome(s wire.ApprovalSnapshot) string {
	by := ""
	if s.Resolver != nil && s.Resolver.ID != "" {
		by = " by " + ansi.Truncate(ansi.Line(s.Resolver.ID), 24)
	}
	switch s.Status {
	case wire.ApprovalPending:
		return "waits, for " + figure.Span(time.Until(s.Expires.Time()))
	case wire.ApprovalAllowed:
		return map[string]string{wire.AllowOnce: "allowed once", wire.AllowAlways: "allowed always"}[s.Decision] + by
	case wire.ApprovalDenied:
		return "denied" + by
	case wire.ApprovalExpired:
		return "expired"
	}
	return "withdrawn"
}
