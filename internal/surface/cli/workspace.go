package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) workspace() *cobra.Command {
	return group("workspace", "Show and restore what the assistant changed in its files", c.workspaceLog(),
		c.workspaceDiff(), c.workspaceRestore())
}

func (c *commands) workspaceLog() *cobra.Command {
	var p wire.WorkspaceLog
	cmd := &cobra.Command{Use: "log [PATH]", Short: "List changes, newest first", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				p.Path = args[0]
			}
			return query(cmd.Context(), c, wire.MethodWorkspaceLog, p, func(l wire.WorkspaceChanges) {
				rows := [][]string{{"CHANGE", "TIME", "ACTION", "LINES", "BY", "PATH"}}
				for _, ch := range l.Changes {
					if ch.Action == wire.ChangeSeen && p.Path == "" && !p.All {
						continue
					}
					rows = append(rows, []string{
						changeID(ch), ch.Time.Time().Local().Format("2006-01-02 15:04"), actionOf(ch), linesOf(ch),
						changedBy(ch), ansi.Line(ch.Path),
					})
				}
				if len(rows) == 1 && l.Next == 0 {
					fmt.Fprintln(c.stdout, "no changes are recorded")
					return
				}
				c.printTable(rows)
				if l.Next > 0 {
					fmt.Fprintln(c.stderr, "there are more; raise --limit")
				}
			})
		}}
	f := cmd.Flags()
	f.StringVar(&p.AgentID, "agent", "", "of the agent `ID`")
	f.StringVar(&p.Since, "since", "", "since a `TIME`: 14:00, 2h or 2026-11-24")
	f.BoolVar(&p.All, "all", false, "also settings, jobs and files outside of the workspace")
	f.IntVar(&p.Limit, "limit", 0, "at most `N` changes (default 50)")
	return c.withJSON(cmd)
}

// changeID returns the beginning of the id of a change, which names it.
func changeID(ch wire.Change) string {
	const n = 8
	return ansi.Line(ch.ID[:min(n, len(ch.ID))])
}

// actionOf returns what a change did.
func actionOf(ch wire.Change) string {
	switch {
	case ch.State == "failed":
		return "not made"
	case ch.State != "done":
		return ansi.Line(ch.State)
	case ch.UndoneBy != "":
		return ansi.Line(ch.Action) + ", undone"
	}
	return ansi.Line(ch.Action)
}

// linesOf returns the size of a change.
func linesOf(ch wire.Change) string {
	if ch.Binary || ch.Action == wire.ChangeSeen {
		return "-"
	}
	return fmt.Sprintf("+%d -%d", ch.Added, ch.Removed)
}

// changedBy returns what made a change, in a few words.
func changedBy(ch wire.Change) string {
	by := ch.Tool
	switch {
	case ch.Action == wire.ChangeSeen:
		return "-"
	case by == "" && ch.RunID != "":
		by = "a command, or you"
	case by == "":
		by = "you, or another program"
	}
	if ch.Untrusted != "" {
		by += " (untrusted)"
	}
	return ansi.Line(by)
}

// fileArgument returns a file as the gateway finds it: one that exists relative to the
// current folder is meant there only if its path says so.
func (c *commands) fileArgument(path string) (string, error) {
	if strings.HasPrefix(path, "."+string(filepath.Separator)) ||
		strings.HasPrefix(path, ".."+string(filepath.Separator)) {
		return c.gatewayPath(path)
	}
	return path, nil
}

// isChange reports whether an argument is the id of a change, or the beginning of one,
// rather than a path.
func isChange(s string) bool {
	if len(s) < 4 || len(s) > 36 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef-") == ""
}

func (c *commands) workspaceDiff() *cobra.Command {
	var p wire.WorkspaceDiff
	cmd := &cobra.Command{
		Use: "diff CHANGE|PATH", Short: "Show what a change did, or the newest change of a file", Args: exactly(1),
		Long: "Show the difference that a change made. For a path, that is its newest change.\nA path is relative to the workspace, unless it is absolute or begins with ./",
		RunE: func(cmd *cobra.Command, args []string) error {
			if isChange(args[0]) {
				p.Change = args[0]
			} else {
				var err error
				if p.Path, err = c.fileArgument(args[0]); err != nil {
					return err
				}
			}
			return query(cmd.Context(), c, wire.MethodWorkspaceDiff, p, func(d wire.WorkspaceDifference) {
				fmt.Fprintf(c.stdout, "%s %s %s by %s\n", changeID(d.Change),
					d.Change.Time.Time().Local().Format("2006-01-02 15:04"), actionOf(d.Change), changedBy(d.Change))
				fmt.Fprint(c.stdout, ansi.Clean(d.Text))
			})
		},
	}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "of the agent `ID`")
	return c.withJSON(cmd)
}

func (c *commands) workspaceRestore() *cobra.Command {
	var p wire.WorkspaceRestore
	var at string
	cmd := &cobra.Command{
		Use: "restore CHANGE|PATH", Short: "Restore an earlier version of a file", Args: exactly(1),
		Long:    "Restore a file as a change left it, or as it was at a time. The present version is\nrecorded, too, so that it can be restored.",
		Example: "  chela workspace restore MEMORY.md --at 14:00\n  chela workspace restore 1f3a9c02",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case isChange(args[0]) && at == "":
				p.Change = args[0]
			case at == "":
				return usage(withHint(errors.New("missing --at"), cmd.CommandPath()+" "+shell.Quote(args[0])+" --at 14:00"))
			default:
				var err error
				if p.Path, err = c.fileArgument(args[0]); err != nil {
					return err
				}
				if isChange(at) {
					p.Change = at
				} else {
					p.Time = at
				}
			}
			return query(cmd.Context(), c, wire.MethodWorkspaceRestore, p, func(r wire.WorkspaceRestored) {
				switch {
				case !r.Changed:
					fmt.Fprintf(c.stdout, "%s is so already\n", ansi.Line(r.Path))
				case r.Deleted:
					fmt.Fprintf(c.stdout, "deleted %s, which did not exist then\n", ansi.Line(r.Path))
				default:
					fmt.Fprintf(c.stdout, "restored %s\n", ansi.Line(r.Path))
				}
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.AgentID, "agent", "", "of the agent `ID`")
	f.StringVar(&at, "at", "", "as a `CHANGE` left it, or as it was at a TIME: 14:00, 2h or 2026-11-24")
	f.BoolVar(&p.Before, "before", false, "as it was before the change")
	return c.withJSON(cmd)
}

func (c *commands) undo() *cobra.Command {
	var p wire.UndoPlan
	var of sessionFlags
	cmd := &cobra.Command{
		Use: "undo [N]", Short: "Take back what the last turn, or the last N turns, changed", Args: between(0, 1),
		Long:    "Take back changes of files, settings and jobs. The plan is shown first. Commands and\nmessages cannot be undone.",
		Example: "  chela undo\n  chela undo 3 --session main\n  chela undo --agent shop\n  chela undo --since 14:00",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if _, err := fmt.Sscanf(args[0], "%d", &p.Turns); err != nil || p.Turns < 1 {
					return usage(fmt.Errorf("%q is not a number of turns", args[0]))
				}
			}
			return c.withLink(cmd.Context(), func(l *link) (err error) {
				if cmd.Flags().Changed("agent") || cmd.Flags().Changed("session") {
					if p.SessionKey, err = of.key(cmd.Context(), c, l); err != nil {
						return err
					}
				}
				return l.undo(cmd.Context(), p)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&of.agent, "agent", "", "only what was changed in the main session of the agent `ID`, or in its --session")
	f.StringVar(&of.session, "session", "", "only what was changed in the session `KEY`")
	f.StringVar(&p.Since, "since", "", "everything since a `TIME`: 14:00, 2h or 2026-11-24")
	f.BoolVar(&p.Undo, "undo", false, "take back the last undo")
	return c.withYes(c.withJSON(cmd))
}

// undo shows the plan of an undo, and carries it out after a yes.
func (l *link) undo(ctx context.Context, p wire.UndoPlan) error {
	c := l.c
	var plan wire.UndoPlanned
	if err := l.Call(ctx, wire.MethodUndoPlan, p, &plan); err != nil {
		return err
	}
	if plan.Hash == "" || c.json && !c.yes {
		return c.print(plan, func() { fmt.Fprintln(c.stdout, ansi.Clean(plan.Text)) })
	}
	if !c.json {
		fmt.Fprintln(c.stdout, ansi.Clean(plan.Text))
	}
	if err := c.confirm("carry this out", "undo --yes"); err != nil {
		return err
	}
	var done wire.UndoApplied
	if err := l.Call(ctx, wire.MethodUndoApply, wire.UndoApply{Hash: plan.Hash}, &done); err != nil {
		return err
	}
	return c.print(done, func() { fmt.Fprintln(c.stdout, ansi.Clean(done.Text)) })
}
