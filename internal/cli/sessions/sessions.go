// Package sessions is the commands that list, show, export, import, reset and
// delete sessions.
package sessions

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/internal/tui/markdown"
	"github.com/chela-ai/chela/wire"
)

// Commands returns the command sessions with those below it.
func Commands(k *console.Console) *cobra.Command {
	c := commands{k}
	return console.Group("sessions", "List, show, export, import, reset and delete sessions",
		c.list(), c.show(), c.export(), c.importFile(), c.reset(), c.delete())
}

type commands struct{ *console.Console }

func (c commands) list() *cobra.Command {
	var asJSON bool
	var p wire.SessionsList
	cmd := &cobra.Command{Use: "list", Short: "List sessions, the latest first", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		var list wire.SessionList
		if err := c.Call(cmd.Context(), wire.MethodSessionsList, p, &list); err != nil {
			return err
		}
		if asJSON {
			return c.JSON(list.Sessions)
		}
		if len(list.Sessions) == 0 && p.Search != "" {
			fmt.Fprintln(c.Out, "No session has that in its key, label or title.")
			return nil
		}
		c.printSessions(list)
		return nil
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "at most `N` sessions")
	cmd.Flags().StringVar(&p.Search, "search", "", "only those with `TEXT` in key, label or title")
	return cmd
}

func (c commands) printSessions(list wire.SessionList) {
	if len(list.Sessions) == 0 {
		fmt.Fprintln(c.Out, "There are no sessions yet.")
		return
	}
	rows := [][]string{{"KEY", "ACTIVE", "CONTEXT", "COST", "TITLE"}}
	for _, s := range list.Sessions {
		cost := "?"
		if s.Cost != nil {
			cost = fmt.Sprintf("$%.4f", *s.Cost)
		}
		rows = append(rows, []string{ansi.Line(s.Key), console.Ago(s.UpdatedAt.Time()), figure.Count(s.TotalTokens), cost, ansi.Truncate(ansi.Line(cmp.Or(s.Label, s.Title, s.Preview)), 60)})
	}
	c.Table(rows)
	if list.HasMore {
		fmt.Fprintf(c.Out, "and %d more\n", list.Total-list.Count)
	}
}

func (c commands) show() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "show KEY", Short: "Show the conversation of a session", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *client.Client, key string) error {
			h, err := l.History(cmd.Context(), key, limit)
			if err != nil {
				return err
			}
			if asJSON {
				return c.JSON(h)
			}
			c.printHistory(h)
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 200, "the newest `N` messages")
	return cmd
}

func (c commands) printHistory(h wire.History) {
	p := c.Palette(c.Out)
	if h.HasMore {
		fmt.Fprintln(c.Out, p.Dim.Paint(fmt.Sprintf("… %d earlier entries", h.Total-len(h.Messages))))
	}
	for _, m := range h.Messages {
		text := attach.Text(m)
		switch m.Role {
		case wire.RoleUser:
			fmt.Fprintf(c.Out, "%s %s\n\n", p.Accent.Paint("❯"), ansi.Clean(text))
		case wire.RoleAssistant:
			c.printAnswer(m.Content, text)
		case wire.RoleSystem:
			fmt.Fprintln(c.Out, p.Dim.Paint(ansi.Clean(text)))
		}
	}
}

// width is how wide a conversation is shown.
const width = 100

func (c commands) printAnswer(content []wire.Content, text string) {
	p := c.Palette(c.Out)
	for _, k := range content {
		if k.Type == wire.ContentCall {
			fmt.Fprintln(c.Out, p.Dim.Paint("· "+ansi.Truncate(ansi.Line(k.Name+" "+string(k.Arguments)), width)))
		}
	}
	if text != "" {
		fmt.Fprintf(c.Out, "%s\n\n", markdown.Render(text, markdown.Options{Width: width, Styles: p}))
	}
}

// session connects and calls f with the whole key of an existing session.
func (c commands) session(ctx context.Context, name string, f func(l *client.Client, key string) error) error {
	return c.Dial(ctx, func(l *client.Client) error {
		key, err := console.SessionKey(l.Hello(), name)
		if err != nil {
			return err
		}
		var d wire.SessionDescribed
		if err := l.Call(ctx, wire.MethodSessionsDescribe, wire.SessionKey{Key: key}, &d); err != nil {
			return err
		}
		if d.Session == nil {
			return c.Hint(fmt.Errorf("there is no session %s", key), "sessions list")
		}
		return f(l, key)
	})
}

func (c commands) export() *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "export KEY", Short: "Write the transcript of a session as JSON lines", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *client.Client, key string) error {
			var e wire.SessionExported
			if err := l.Call(cmd.Context(), wire.MethodSessionsExport, wire.SessionKey{Key: key}, &e); err != nil {
				return err
			}
			if out == "" {
				_, err := fmt.Fprint(c.Out, e.JSONL)
				return err
			}
			if _, err := os.Lstat(out); err == nil {
				return c.Hint(fmt.Errorf("%s exists", out), "sessions export "+shell.Quote(args[0])+" --output FILE")
			}
			if err := atomicfile.Write(out, []byte(e.JSONL), 0o600); err != nil {
				return fmt.Errorf("export: %w", err)
			}
			fmt.Fprintln(c.Out, out)
			return nil
		})
	}}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

// maxImport bounds a file, which goes in one frame in which it is longer.
const maxImport = wire.MaxPayload / 2

func (c commands) importFile() *cobra.Command {
	var in wire.SessionsImport
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Begin a session with an exported transcript",
		Long: "Begin a session with a transcript that was exported here, or of OpenClaw (FILE is JSON\nlines; - is standard input). " +
			"A model takes what it says for what was said: import only\nwhat you trust. Costs are not counted again.",
		Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.transcript(args[0])
			if err != nil {
				return err
			}
			in.JSONL = text
			var out wire.SessionImported
			if err := c.Call(cmd.Context(), wire.MethodSessionsImport, in, &out); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s: entries imported: %d\n", out.Key, out.Entries)
			for _, left := range []struct {
				what string
				n    int
			}{{"lines, damaged or of a kind that is not known", out.Skipped}, {"entries, of branches that were left", out.Branched}, {"entries whose id came again", out.Doubled}} {
				if left.n > 0 {
					fmt.Fprintf(c.Err, "left out: %s: %d\n", left.what, left.n)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&in.Key, "session", "", "the `KEY` of the session that it becomes, which must not exist; without it a new one is made")
	cmd.Flags().StringVar(&in.AgentID, "agent", "", "the agent `NAME` whose session it becomes")
	return cmd
}

// transcript reads a file that is to be imported.
func (c commands) transcript(name string) (string, error) {
	in := c.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("import: %w", err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxImport+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("import: %w", err)
	case len(b) > maxImport:
		return "", fmt.Errorf("import: %s has more than %s", name, figure.Bytes(maxImport))
	}
	return string(b), nil
}

func (c commands) reset() *cobra.Command {
	return &cobra.Command{Use: "reset KEY", Short: "Begin a session anew; what was said is kept", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *client.Client, key string) error {
			var r wire.SessionReset
			if err := l.Call(cmd.Context(), wire.MethodSessionsReset, wire.SessionsReset{Key: key, Reason: "reset"}, &r); err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "%s begins anew (%s)\n", r.Key, r.Entry.SessionID)
			return nil
		})
	}}
}

func (c commands) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{Use: "delete KEY", Short: "Delete a session with what was said", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.session(cmd.Context(), args[0], func(l *client.Client, key string) error {
			if !yes {
				if err := c.Confirm("delete "+key, "sessions delete "+shell.Quote(args[0])+" --yes"); err != nil {
					return err
				}
			}
			var d wire.SessionDeleted
			if err := l.Call(cmd.Context(), wire.MethodSessionsDelete, wire.SessionKey{Key: key}, &d); err != nil {
				return err
			}
			fmt.Fprintln(c.Out, "deleted "+d.Key)
			return nil
		})
	}}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
