package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) tasks() *cobra.Command {
	return group("tasks", "List and control work in the background, and answers that were not delivered", c.tasksList(),
		c.tasksShow(), c.tasksCancel(), c.tasksRetry(), c.tasksDismiss())
}

// taskStates lists the values of --status.
const taskStates = wire.TaskQueued + ", " + wire.TaskRunning + ", " + wire.TaskCompleted + ", " + wire.TaskFailed +
	", " + wire.TaskCancelled + " or " + wire.TaskTimedOut

func (c *commands) tasksList() *cobra.Command {
	p := wire.TasksList{Turns: true}
	var status []string
	cmd := &cobra.Command{Use: "list", Short: "List tasks, newest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.Status = status
			var page wire.TasksPage
			if err := c.call(cmd.Context(), wire.MethodTasksList, p, &page); err != nil {
				return err
			}
			return c.print(page, func() { c.printTasks(page) })
		}}
	f := cmd.Flags()
	f.StringSliceVar(&status, "status", nil, "only those in the `STATE` "+taskStates)
	f.StringVar(&p.AgentID, "agent", "", "only those of the agent `ID`")
	f.StringVar(&p.SessionKey, "session", "", "only those of the session `KEY`")
	f.IntVar(&p.Limit, "limit", 0, "at most `N` tasks (default 100)")
	return c.withJSON(cmd)
}

func (c *commands) printTasks(page wire.TasksPage) {
	if len(page.Tasks) == 0 {
		fmt.Fprintln(c.stdout, "there are no tasks")
		return
	}
	table := [][]string{{"ID", "KIND", "STATUS", "DELIVERY", "AGE", "TITLE"}}
	for _, t := range page.Tasks {
		table = append(table, []string{
			ansi.Line(t.ID), ansi.Line(t.Kind), ansi.Line(t.Status), deliveryOf(t),
			humanize.Span(time.Since(t.CreatedAt.Time())), ansi.Line(humanize.Truncate(t.Title, 60)),
		})
	}
	c.printTable(table)
	if page.Next != "" {
		fmt.Fprintln(c.stderr, "there are more; raise --limit")
	}
}

// deliveryOf returns what became of the result of a task.
func deliveryOf(t wire.Task) string {
	switch t.Delivery {
	case wire.DeliveryNotApplicable:
		return "-"
	case wire.DeliveryFailed:
		return "blocked"
	case wire.DeliveryQueued:
		return "queued"
	}
	return ansi.Line(t.Delivery)
}

func (c *commands) tasksShow() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "show ID", Short: "Show a task with what was asked for, and its result",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			var f wire.TaskFound
			if err := c.call(cmd.Context(), wire.MethodTasksGet, wire.TaskGet{ID: args[0]}, &f); err != nil {
				if _, ok := errors.AsType[*wire.Error](err); ok {
					err = withHint(err, c.commandLine("tasks list"))
				}
				return err
			}
			return c.print(f, func() { c.printTask(f.Task) })
		}})
}

func (c *commands) printTask(t wire.Task) {
	c.printRow("task", t.ID)
	c.printRow("kind", t.Kind)
	c.printRow("title", t.Title)
	c.printRow("status", t.Status)
	c.printRow("delivery", deliveryOf(t))
	for _, row := range []struct{ name, text string }{
		{"error", t.Error}, {"session", t.ChildSessionKey}, {"for", t.SessionKey}, {"parent", t.ParentTaskID},
	} {
		if row.text != "" {
			c.printRow(row.name, row.text)
		}
	}
	for _, at := range []struct {
		name string
		time wire.Millis
	}{{"created", t.CreatedAt}, {"started", t.StartedAt}, {"ended", t.EndedAt}} {
		if at.time != 0 {
			c.printRow(at.name, at.time.Time().Format(time.DateTime))
		}
	}
	for _, part := range []struct{ name, text string }{{"asked", t.Prompt}, {"result", t.Result}} {
		if text := strings.TrimSpace(part.text); text != "" {
			fmt.Fprintf(c.stdout, "\n%s\n%s\n", c.palette(c.stdout).Dim.Paint(part.name), ansi.Clean(text))
		}
	}
	if t.Delivery == wire.DeliveryFailed {
		fmt.Fprintf(c.stderr, "hint: %s\n", c.commandLine("tasks retry "+ansi.Line(t.ID)))
	}
}

func (c *commands) tasksCancel() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "cancel ID", Short: "Stop a task and all work that was started from it",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			var s wire.TaskStopped
			if err := c.call(cmd.Context(), wire.MethodTasksCancel, wire.TaskCancel{ID: args[0]}, &s); err != nil {
				return err
			}
			err := c.print(s, func() {
				if s.Cancelled {
					fmt.Fprintf(c.stdout, "cancelled %s\n", ansi.Line(args[0]))
				}
			})
			switch {
			case err != nil || s.Cancelled:
				return err
			case !s.Found:
				return withHint(errors.New(ansi.Line(s.Reason)), c.commandLine("tasks list"))
			}
			return errors.New(ansi.Line(s.Reason))
		}})
}

func (c *commands) tasksRetry() *cobra.Command {
	return c.recoverTasks("retry ID [ID]...", "Send answers again that were not delivered",
		wire.MethodTasksRetry, "sending again")
}

func (c *commands) tasksDismiss() *cobra.Command {
	return c.recoverTasks("dismiss ID [ID]...", "Give up the delivery of answers; the results are kept",
		wire.MethodTasksDismiss, "dismissed")
}

// recoverTasks returns a command that changes the delivery of tasks.
func (c *commands) recoverTasks(use, short, method, done string) *cobra.Command {
	return c.withJSON(&cobra.Command{Use: use, Short: short, Args: between(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r wire.TasksRecovered
			if err := c.call(cmd.Context(), method, wire.TaskIDs{IDs: args}, &r); err != nil {
				return err
			}
			failed := false
			err := c.print(r, func() {
				for _, t := range r.Results {
					switch {
					case !t.OK:
						fmt.Fprintf(c.stderr, "%s: %s\n", ansi.Line(t.ID), ansi.Line(t.Reason))
					case t.DuplicateRisk:
						fmt.Fprintf(c.stdout, "%s %s; it may arrive twice\n", done, ansi.Line(t.ID))
					default:
						fmt.Fprintf(c.stdout, "%s %s\n", done, ansi.Line(t.ID))
					}
				}
			})
			for _, t := range r.Results {
				failed = failed || !t.OK
			}
			if err == nil && failed {
				err = errReported
			}
			return err
		}})
}
