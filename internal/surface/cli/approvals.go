package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) approvals() *cobra.Command {
	return group("approvals", "Show and decide pending approvals",
		c.approvalsList(), c.approvalsGet(), c.approvalsAllow(), c.approvalsDeny(), c.approvalsSet(),
		c.allowlist(), c.approvalsImport())
}

// withPending connects and calls f with the pending approvals.
func (c *commands) withPending(ctx context.Context, f func(*link, []wire.Approval) error) error {
	return c.withLink(ctx, func(l *link) error {
		return callOn(ctx, l, wire.MethodApprovalList, wire.None{}, func(list []wire.Approval) error { return f(l, list) })
	})
}

func (c *commands) approvalsGet() *cobra.Command {
	var rules bool
	cmd := &cobra.Command{
		Use: "get [ID]", Short: "Show a pending approval in full; ID may be omitted if there is only one",
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if rules {
				return c.withRules(cmd.Context(), func(_ *link, s wire.ExecPolicySnapshot) error { return c.printJSON(s.File) })
			}
			return c.withPending(cmd.Context(), func(l *link, list []wire.Approval) error {
				a, err := c.pickApproval(list, args)
				if err != nil && len(args) > 0 {
					if past, ok := decidedApproval(cmd.Context(), l, args[0]); ok {
						return c.print(past, func() { c.printDecided(past) })
					}
				}
				if err != nil {
					return err
				}
				return c.print(a, func() { c.printApproval(a) })
			})
		},
	}
	cmd.Flags().BoolVar(&rules, "rules", false, "show the command rules instead, in the format that set reads")
	return c.withJSON(cmd)
}

// pickApproval returns the approval with the id in args, or, without an id, the
// only one.
func (c *commands) pickApproval(list []wire.Approval, args []string) (wire.Approval, error) {
	switch {
	case len(args) == 0 && len(list) == 0:
		return wire.Approval{}, errors.New("no approval is pending")
	case len(args) == 0 && len(list) == 1:
		return list[0], nil
	case len(args) == 0:
		return wire.Approval{}, c.suggest(fmt.Errorf("%d approvals are pending; choose one by its id", len(list)),
			"approvals list")
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
		return wire.Approval{}, c.suggest(fmt.Errorf("no approval %s is pending", args[0]), "approvals list")
	case 1:
		return found[0], nil
	}
	return wire.Approval{}, c.suggest(fmt.Errorf("%d approval ids begin with %s", len(found), args[0]), "approvals list")
}

// decidedApproval returns an approval that is no longer pending.
func decidedApproval(ctx context.Context, l *link, id string) (wire.ApprovalSnapshot, bool) {
	var f wire.ApprovalFound
	err := l.Call(ctx, wire.MethodAnyApprovalGet, wire.ApprovalID{ID: id}, &f)
	return f.Approval, err == nil && f.Approval.Status != wire.ApprovalPending
}

func (c *commands) approvalsAllow() *cobra.Command {
	var always, session bool
	cmd := &cobra.Command{
		Use: "allow [ID]", Short: "Allow a pending action once", Args: between(0, 1),
		Long: "Allow a pending action once. Without ID, it is shown first and must be confirmed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withPending(cmd.Context(), func(l *link, list []wire.Approval) error {
				a, err := c.pickApproval(list, args)
				if err != nil {
					return c.explainDecided(cmd.Context(), l, args, err)
				}
				if len(args) == 0 { // it may not be the one that the person saw in the list
					c.printApproval(a)
					if err := c.confirm("allow this", "approvals allow "+a.ID); err != nil {
						return err
					}
				}
				switch {
				case (always || session) && a.Request.Once:
					return c.suggest(errors.New("this action can only be allowed once"), "approvals allow "+a.ID)
				case always:
					return c.decide(cmd.Context(), l, a.ID, wire.AllowAlways)
				case session:
					return c.decide(cmd.Context(), l, a.ID, wire.AllowSession)
				}
				return c.decide(cmd.Context(), l, a.ID, wire.AllowOnce)
			})
		},
	}
	cmd.Flags().BoolVar(&always, "always", false, "also allow the same action of this agent in the future")
	cmd.Flags().BoolVar(&session, "session", false, "also allow the same action for the rest of this session")
	cmd.MarkFlagsMutuallyExclusive("always", "session")
	return c.withYes(cmd)
}

func (c *commands) approvalsDeny() *cobra.Command {
	return &cobra.Command{Use: "deny [ID]", Short: "Deny a pending action", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withPending(cmd.Context(), func(l *link, list []wire.Approval) error {
				a, err := c.pickApproval(list, args)
				if err != nil {
					return c.explainDecided(cmd.Context(), l, args, err)
				}
				return c.decide(cmd.Context(), l, a.ID, wire.Deny)
			})
		}}
}

func (c *commands) decide(ctx context.Context, l *link, id, decision string) error {
	if err := l.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "%s %s\n", decision, id)
	return nil
}

// explainDecided replaces err, for an approval that is no longer pending, by an
// error that says how it was decided.
func (c *commands) explainDecided(ctx context.Context, l *link, args []string, err error) error {
	if len(args) == 0 {
		return err
	}
	if past, ok := decidedApproval(ctx, l, args[0]); ok {
		return c.suggest(fmt.Errorf("approval %s is not pending: %s, %s", past.ID, approvalOutcome(past),
			ago(past.Resolved.Time())), "approvals list --all")
	}
	return err
}

// approvalOutcome describes the state of an approval, and who decided it.
func approvalOutcome(s wire.ApprovalSnapshot) string {
	by := ""
	if s.Resolver != nil && s.Resolver.ID != "" {
		by = " by " + ansi.Truncate(ansi.Line(s.Resolver.ID), 24)
	}
	switch s.Status {
	case wire.ApprovalPending:
		return "pending, expires in " + humanize.Span(time.Until(s.Expires.Time()))
	case wire.ApprovalAllowed:
		switch {
		case s.Extent == wire.ExtentSession:
			return "allowed for its session" + by
		case s.Extent == wire.ExtentRevoked:
			return "allowed" + by + ", revoked since"
		}
		return map[string]string{wire.AllowOnce: "allowed once", wire.AllowAlways: "allowed always"}[s.Decision] + by
	case wire.ApprovalDenied:
		if s.Resolver != nil && s.Resolver.Kind == "system" {
			return "denied, because nobody could be asked"
		}
		return "denied" + by
	case wire.ApprovalExpired:
		return "expired"
	}
	return "withdrawn"
}

func (c *commands) approvalsList() *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List pending approvals", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withPending(cmd.Context(), func(l *link, list []wire.Approval) error {
				switch {
				case all:
					return c.approvalsListAll(cmd.Context(), l, list, limit)
				case c.json:
					return c.printJSON(list)
				case len(list) == 0:
					fmt.Fprintln(c.stdout, "there are no pending approvals")
					return nil
				}
				rows := [][]string{{"ID", "TOOL", "SESSION", "REQUESTED", "ACTION"}}
				for _, a := range list {
					rows = append(rows, []string{a.ID, a.Request.Tool, ansi.Line(a.Request.SessionKey), ago(a.Created.Time()),
						firstLine(a.Request.Command)})
				}
				c.printTable(rows)
				fmt.Fprintln(c.stderr, "details: "+c.commandLine("approvals get ID"))
				return nil
			})
		}}
	cmd.Flags().BoolVar(&all, "all", false, "also list decided approvals, newest first")
	cmd.Flags().IntVar(&limit, "limit", 20, "with --all, list at most `N` decided approvals")
	return c.withJSON(cmd)
}

// approvalsListAll prints the pending and the decided approvals.
func (c *commands) approvalsListAll(ctx context.Context, l *link, list []wire.Approval, limit int) error {
	var past wire.ApprovalHistory
	if err := l.Call(ctx, wire.MethodApprovalHistory, wire.ApprovalHistoryGet{Limit: limit}, &past); err != nil {
		return err
	}
	if c.json {
		return c.printJSON(map[string]any{"pending": list, "decided": past.Items})
	}
	if len(list)+len(past.Items) == 0 {
		fmt.Fprintln(c.stdout, "there are no approvals")
		return nil
	}
	rows := [][]string{{"ID", "SESSION", "REQUESTED", "STATE", "ACTION"}}
	for _, a := range list {
		state := approvalOutcome(wire.ApprovalSnapshot{Status: wire.ApprovalPending, Expires: a.Expires})
		rows = append(rows, []string{a.ID, ansi.Line(a.Request.SessionKey), ago(a.Created.Time()), state,
			firstLine(a.Request.Command)})
	}
	for _, s := range past.Items {
		session := ""
		if s.Source != nil {
			session = ansi.Line(s.Source.Session)
		}
		rows = append(rows, []string{s.ID, session, ago(s.Created.Time()), approvalOutcome(s), firstLine(s.Shown.Command)})
	}
	c.printTable(rows)
	return nil
}

// firstLine returns the first line of an action, for lists only.
func firstLine(command string) string {
	first, _, more := strings.Cut(command, "\n")
	if more {
		first += " …"
	}
	return ansi.Truncate(ansi.Line(first), 60)
}

// printApproval prints a pending approval in full, so that the decision is an
// informed one.
func (c *commands) printApproval(a wire.Approval) {
	r := a.Request
	fmt.Fprintf(c.stdout, "%s: %s, session %s\n", a.ID, r.Tool, ansi.Line(r.SessionKey))
	c.printPlan(r.Reason, r.Command)
	fmt.Fprintf(c.stdout, "\nexpires in %s\n", humanize.Span(time.Until(a.Expires.Time())))
}

// printDecided prints an approval that was decided.
func (c *commands) printDecided(s wire.ApprovalSnapshot) {
	fmt.Fprint(c.stdout, s.ID)
	if s.Source != nil {
		fmt.Fprint(c.stdout, ": session "+ansi.Line(s.Source.Session))
	}
	fmt.Fprintln(c.stdout)
	c.printPlan(s.Shown.Warning, s.Shown.Command)
	fmt.Fprintf(c.stdout, "\n%s, %s\n", approvalOutcome(s), ago(s.Resolved.Time()))
}

// printPlan prints the reason for an approval and the complete action.
func (c *commands) printPlan(reason, command string) {
	if reason != "" {
		fmt.Fprintln(c.stdout, ansi.Line(reason))
	}
	fmt.Fprintln(c.stdout)
	for line := range strings.Lines(command) {
		fmt.Fprintln(c.stdout, "  "+ansi.Clean(strings.TrimRight(line, "\n")))
	}
}
