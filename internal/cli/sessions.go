package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/markdown"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

func (c *console) sessions() *cobra.Command {
	return group("sessions", "List, show, export, reset and delete sessions",
		c.sessionsList(), c.sessionsShow(), c.sessionsExport(), c.sessionsReset(), c.sessionsDelete())
}

func (c *console) sessionsList() *cobra.Command {
	var asJSON bool
	var p wire.SessionsList
	cmd := &cobra.Command{Use: "list", Short: "List sessions, the latest first", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.with(cmd.Context(), func(l *link) error {
			var list wire.SessionList
			if err := l.Call(cmd.Context(), wire.MethodSessionsList, p, &list); err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(list.Sessions)
			}
			c.printSessions(list)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "at most `N` sessions")
	cmd.Flags().StringVar(&p.Search, "search", "", "only those with `TEXT` in key, label or title")
	return cmd
}

func (c *console) printSessions(list wire.SessionList) {
	if len(list.Sessions) == 0 {
		fmt.Fprintln(c.out, "There are no sessions yet.")
		return
	}
	rows := [][]string{{"KEY", "ACTIVE", "CONTEXT", "COST", "TITLE"}}
	for _, s := range list.Sessions {
		cost := "?"
		if s.Cost != nil {
			cost = fmt.Sprintf("$%.4f", *s.Cost)
		}
		rows = append(rows, []string{ansi.Line(s.Key), ago(s.UpdatedAt.Time()), tokens(s.TotalTokens), cost, ansi.Truncate(ansi.Line(cmp.Or(s.Label, s.Title, s.Preview)), 60)})
	}
	c.table(rows)
	if list.HasMore {
		fmt.Fprintf(c.out, "and %d more\n", list.Total-list.Count)
	}
}

// table prints rows in columns; the first row is their titles.
func (c *console) table(rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			wide[i] = max(wide[i], ansi.Width(cell))
		}
	}
	p := c.palette(c.out)
	for n, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-ansi.Width(cell)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 {
			line = p.Dim.Paint(line)
		}
		fmt.Fprintln(c.out, line)
	}
}

func (c *console) sessionsShow() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "show KEY", Short: "Show the conversation of a session", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *link, key string) error {
			h, err := l.History(cmd.Context(), key, limit)
			if err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(h)
			}
			c.printHistory(h)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 200, "the newest `N` messages")
	return cmd
}

func (c *console) printHistory(h wire.History) {
	p := c.palette(c.out)
	if h.HasMore {
		fmt.Fprintln(c.out, p.Dim.Paint(fmt.Sprintf("… %d earlier entries", h.Total-len(h.Messages))))
	}
	for _, m := range h.Messages {
		text := m.Text()
		switch m.Role {
		case wire.RoleUser:
			fmt.Fprintf(c.out, "%s %s\n\n", p.Accent.Paint("❯"), ansi.Clean(text))
		case wire.RoleAssistant:
			for _, k := range m.Content {
				if k.Type == wire.ContentCall {
					fmt.Fprintln(c.out, p.Dim.Paint("· "+ansi.Truncate(ansi.Line(k.Name+" "+string(k.Arguments)), 100)))
				}
			}
			if text != "" {
				fmt.Fprintf(c.out, "%s\n\n", markdown.Render(text, markdown.Options{Width: 100, Styles: p}))
			}
		case wire.RoleSystem:
			fmt.Fprintln(c.out, p.Dim.Paint(ansi.Clean(text)))
		}
	}
}

// session connects and calls f with the whole key of an existing session.
func (c *console) session(ctx context.Context, name string, f func(l *link, key string) error) error {
	return c.with(ctx, func(l *link) error {
		key, err := sessionKey(l.Hello(), name)
		if err != nil {
			return err
		}
		var d wire.SessionDescribed
		if err := l.Call(ctx, wire.MethodSessionsDescribe, wire.SessionKey{Key: key}, &d); err != nil {
			return err
		}
		if d.Session == nil {
			return hinted{fmt.Errorf("there is no session %s", key), c.command("sessions list")}
		}
		return f(l, key)
	})
}

func (c *console) sessionsExport() *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "export KEY", Short: "Write the transcript of a session as JSON lines", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *link, key string) error {
			var e wire.SessionExported
			if err := l.Call(cmd.Context(), wire.MethodSessionsExport, wire.SessionKey{Key: key}, &e); err != nil {
				return err
			}
			if out == "" {
				_, err := fmt.Fprint(c.out, e.JSONL)
				return err
			}
			if _, err := os.Lstat(out); err == nil {
				return hinted{fmt.Errorf("%s exists", out), c.command("sessions export " + quote(args[0]) + " --output FILE")}
			}
			if err := atomicfile.Write(out, []byte(e.JSONL), 0o600); err != nil {
				return fmt.Errorf("export: %w", err)
			}
			fmt.Fprintln(c.out, out)
			return nil
		})
	}}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

func (c *console) sessionsReset() *cobra.Command {
	return &cobra.Command{Use: "reset KEY", Short: "Begin a session anew; what was said is kept", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *link, key string) error {
			var r wire.SessionReset
			if err := l.Call(cmd.Context(), wire.MethodSessionsReset, wire.SessionsReset{Key: key, Reason: "reset"}, &r); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "%s begins anew (%s)\n", r.Key, r.Entry.SessionID)
			return nil
		})
	}}
}

func (c *console) sessionsDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{Use: "delete KEY", Short: "Delete a session with what was said", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *link, key string) error {
			if !yes {
				if err := c.confirm("delete "+key, "sessions delete "+quote(args[0])+" --yes"); err != nil {
					return err
				}
			}
			var d wire.SessionDeleted
			if err := l.Call(cmd.Context(), wire.MethodSessionsDelete, wire.SessionKey{Key: key}, &d); err != nil {
				return err
			}
			fmt.Fprintln(c.out, "deleted "+d.Key)
			return nil
		})
	}}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirm asks a person whether to go on; without one it refuses and names the
// command that does not ask.
func (c *console) confirm(what, command string) error {
	if !isTerminal(c.in) || !isTerminal(c.err) {
		return hinted{errors.New(what + ": nobody is here to confirm it"), c.command(command)}
	}
	fmt.Fprintf(c.err, "%s? [y/N] ", what)
	line := <-talk.Lines(c.in)
	if s := strings.ToLower(strings.TrimSpace(line)); s == "y" || s == "yes" {
		return nil
	}
	return errors.New("nothing was done")
}

// ago returns how long ago t was, in one unit.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// tokens returns a number of tokens in three digits.
func tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.3gk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.3gM", float64(n)/1e6)
}
