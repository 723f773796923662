package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// skillProposals returns the commands below `skills proposals`.
func (c *commands) skillProposals() *cobra.Command {
	return group("proposals", "Decide about skills that the assistant proposes",
		c.proposalsList(), c.proposalsShow(), c.proposalsApply(), c.proposalsReject(), c.proposalsRollback())
}

func (c *commands) proposalsList() *cobra.Command {
	var p wire.ProposalDescribe
	cmd := &cobra.Command{Use: "list", Short: "List proposals, newest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l wire.SkillProposals
			if err := c.call(cmd.Context(), wire.MethodProposalsDescribe, p, &l); err != nil {
				return err
			}
			return c.print(l, func() {
				if len(l.Proposals) == 0 {
					fmt.Fprintln(c.stdout, "there are no proposals")
					return
				}
				table := [][]string{{"ID", "STATUS", "KIND", "SKILL", "AGE", "DESCRIPTION"}}
				for _, p := range l.Proposals {
					table = append(table, []string{
						p.ID, p.Status, p.Kind, ansi.Line(p.Name), humanize.Span(time.Since(p.CreatedAt.Time())),
						ansi.Line(humanize.Truncate(p.Description, 60)),
					})
				}
				c.printTable(table)
			})
		}}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "only those of the agent `ID`")
	return c.withJSON(cmd)
}

// findProposal returns a proposal with its files.
func (c *commands) findProposal(ctx context.Context, id string) (p wire.SkillProposal, err error) {
	var l wire.SkillProposals
	if err := c.call(ctx, wire.MethodProposalsDescribe, wire.ProposalDescribe{ID: id}, &l); err != nil {
		return p, err
	}
	if len(l.Proposals) != 1 {
		return p, fmt.Errorf("the gateway answered with %d proposals", len(l.Proposals))
	}
	return l.Proposals[0], nil
}

func (c *commands) proposalsShow() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "show ID", Short: "Show a proposal with its files, findings and history",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.findProposal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return c.print(p, func() {
				c.printRow("id", p.ID)
				c.printRow("skill", ansi.Line(p.Name)+" ("+p.Kind+")")
				c.printRow("status", p.Status)
				c.printRow("agent", ansi.Line(p.AgentID))
				c.printRow("by", p.By)
				if p.Reason != "" {
					c.printRow("reason", ansi.Line(p.Reason))
				}
				for _, f := range p.Findings {
					c.printRow(f.Severity, ansi.Line(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Text)))
				}
				for _, e := range p.Events {
					c.printRow(e.At.Time().Local().Format("2006-01-02 15:04"),
						ansi.Line(strings.TrimSpace(e.Status+" by "+e.By+" "+e.Note)))
				}
				for _, f := range p.Files {
					fmt.Fprintf(c.stdout, "\n=== %s\n", ansi.Line(f.Path))
					for line := range strings.Lines(f.Content) {
						fmt.Fprintln(c.stdout, ansi.Line(strings.TrimRight(line, "\r\n")))
					}
				}
			})
		}})
}

func (c *commands) proposalsApply() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "apply ID",
		Short: "Make a proposal the skill, unless the skill has changed since or the scanner finds something critical",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.findProposal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var out wire.ProposalApplied
			if err := c.call(cmd.Context(), wire.MethodProposalsApply, wire.ProposalDecision{ID: p.ID, Hash: p.Hash},
				&out); err != nil {
				return err
			}
			return c.print(out, func() { c.printProposalState(p, out.Record.Status) })
		},
	})
}

func (c *commands) proposalsReject() *cobra.Command {
	var in wire.ProposalDecision
	cmd := &cobra.Command{Use: "reject ID", Short: "Reject a proposal", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := c.findProposal(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			in.ID, in.Hash = p.ID, p.Hash
			var out wire.ProposalRecord
			if err := c.call(cmd.Context(), wire.MethodProposalsReject, in, &out); err != nil {
				return err
			}
			return c.print(out, func() { c.printProposalState(p, out.Status) })
		}}
	cmd.Flags().StringVar(&in.Reason, "reason", "", "`TEXT` for the history")
	return c.withJSON(cmd)
}

func (c *commands) proposalsRollback() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "rollback ID", Short: "Put back what an applied proposal replaced",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			var out wire.SkillProposal
			if err := c.call(cmd.Context(), wire.MethodProposalsRollback, wire.ProposalRef{ID: args[0]}, &out); err != nil {
				return err
			}
			return c.print(out, func() { c.printProposalState(out, out.Status) })
		}})
}

// printProposalState says what became of a proposal.
func (c *commands) printProposalState(p wire.SkillProposal, status string) {
	fmt.Fprintf(c.stdout, "the proposal %s of the skill %s is %s\n", p.ID, ansi.Line(p.Name), status)
}
