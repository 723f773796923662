package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/internal/surface/tui/markdown"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) sessions() *cobra.Command {
	return group("sessions", "List, show, export, import, reset and delete sessions",
		c.sessionsList(), c.sessionsShow(), c.sessionsExport(), c.sessionsExportTrajectory(), c.sessionsImport(),
		c.sessionsReset(), c.sessionsDelete())
}

func (c *commands) sessionsList() *cobra.Command {
	var p wire.SessionsList
	cmd := &cobra.Command{Use: "list", Short: "List sessions, newest first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list wire.SessionList
			if err := c.call(cmd.Context(), wire.MethodSessionsList, p, &list); err != nil {
				return err
			}
			return c.print(list.Sessions, func() { c.printSessions(list, p.Search) })
		}}
	cmd.Flags().IntVar(&p.Limit, "limit", 50, "list at most `N` sessions")
	cmd.Flags().StringVar(&p.Search, "search", "", "list only sessions with `TEXT` in key, label or title")
	return c.withJSON(cmd)
}

func (c *commands) printSessions(list wire.SessionList, search string) {
	switch {
	case len(list.Sessions) == 0 && search != "":
		fmt.Fprintln(c.stdout, "no session has that text in its key, label or title")
		return
	case len(list.Sessions) == 0:
		fmt.Fprintln(c.stdout, "there are no sessions")
		return
	}
	rows := [][]string{{"KEY", "ACTIVE", "CONTEXT", "COST", "TITLE"}}
	for _, s := range list.Sessions {
		cost := "?"
		if s.Cost != nil {
			cost = fmt.Sprintf("$%.4f", *s.Cost)
		}
		rows = append(rows, []string{ansi.Line(s.Key), ago(s.UpdatedAt.Time()), humanize.Count(s.TotalTokens), cost,
			ansi.Truncate(ansi.Line(cmp.Or(s.Label, s.Title, s.Preview)), 60)})
	}
	c.printTable(rows)
	if list.HasMore {
		fmt.Fprintf(c.stdout, "and %d more\n", list.Total-list.Count)
	}
}

func (c *commands) sessionsShow() *cobra.Command {
	var limit int
	cmd := &cobra.Command{Use: "show KEY", Short: "Show the conversation of a session", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], func(l *link, key string) error {
				h, err := l.History(cmd.Context(), key, limit)
				if err != nil {
					return err
				}
				return c.print(h, func() { c.printHistory(h) })
			})
		}}
	cmd.Flags().IntVar(&limit, "limit", 200, "show the newest `N` messages")
	return c.withJSON(cmd)
}

func (c *commands) printHistory(h wire.History) {
	p := c.palette(c.stdout)
	if h.HasMore {
		fmt.Fprintln(c.stdout, p.Dim.Paint(fmt.Sprintf("… %d earlier entries", h.Total-len(h.Messages))))
	}
	for _, m := range h.Messages {
		text := attach.Text(m)
		switch m.Role {
		case wire.RoleUser:
			fmt.Fprintf(c.stdout, "%s %s\n\n", p.Accent.Paint("❯"), ansi.Clean(text))
		case wire.RoleAssistant:
			c.printAssistant(m.Content, text)
		case wire.RoleSystem:
			fmt.Fprintln(c.stdout, p.Dim.Paint(ansi.Clean(text)))
		}
	}
}

// historyWidth is the width of a printed conversation in columns.
const historyWidth = 100

func (c *commands) printAssistant(content []wire.Content, text string) {
	p := c.palette(c.stdout)
	for _, k := range content {
		if k.Type == wire.ContentCall {
			fmt.Fprintln(c.stdout, p.Dim.Paint("· "+ansi.Truncate(ansi.Line(k.Name+" "+string(k.Arguments)), historyWidth)))
		}
	}
	if text != "" {
		fmt.Fprintf(c.stdout, "%s\n\n", markdown.Render(text, markdown.Options{Width: historyWidth, Styles: p}))
	}
}

// withSession connects and calls f with the full key of an existing session.
func (c *commands) withSession(ctx context.Context, name string, f func(l *link, key string) error) error {
	return c.withLink(ctx, func(l *link) error {
		key, err := sessionKey(l.Hello(), name)
		if err != nil {
			return err
		}
		var d wire.SessionDescribed
		if err := l.Call(ctx, wire.MethodSessionsDescribe, wire.SessionKey{Key: key}, &d); err != nil {
			return err
		}
		if d.Session == nil {
			return c.suggest(fmt.Errorf("session %s does not exist", key), "sessions list")
		}
		return f(l, key)
	})
}

func (c *commands) sessionsExport() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use: "export KEY", Short: "Write the transcript of a session as JSON lines or as an HTML page",
		Long: "Write the transcript of a session.\n\n" +
			"jsonl is OpenClaw's format, one JSON object per line; chela sessions import reads it.\n" +
			"html is one page for reading, with the system prompt, the tools and the whole transcript.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "jsonl" && format != "html" {
				return c.suggest(fmt.Errorf("export: no format %q: use jsonl or html", format), "sessions export "+
					shell.Quote(args[0])+" --format html")
			}
			return c.exportSession(cmd, args[0], format, out)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT` of the file: jsonl or html")
	return cmd
}

func (c *commands) sessionsExportTrajectory() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "export-trajectory KEY", Short: "Write a session for an error report or an evaluation",
		Long: "Write a session as JSON lines for an error report or an evaluation: the transcript, the\n" +
			"system prompt, the tools, and a summary of each model request, run and tool call. Known\n" +
			"secrets are removed; the messages are not. Read the file before you send it to somebody.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.exportSession(cmd, args[0], "trajectory", out) },
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	return cmd
}

// exportSession writes a session to a file that does not exist; "": to standard output.
func (c *commands) exportSession(cmd *cobra.Command, name, format, out string) error {
	return c.withSession(cmd.Context(), name, func(l *link, key string) error {
		var e wire.SessionExported
		if err := l.Call(cmd.Context(), wire.MethodSessionsExport, wire.SessionsExport{Key: key, Format: format},
			&e); err != nil {
			return err
		}
		text := e.JSONL + e.HTML // one of them
		if out == "" {
			_, err := fmt.Fprint(c.stdout, text)
			return err
		}
		if _, err := os.Lstat(out); err == nil {
			return c.suggest(fmt.Errorf("%s already exists", out), "sessions "+cmd.Name()+" "+shell.Quote(name)+" --output FILE")
		}
		if err := atomicfile.Write(out, []byte(text), 0o600); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		fmt.Fprintln(c.stdout, out)
		return nil
	})
}

// maxImport is the maximum size of a transcript, which must fit into one frame
// when it is encoded.
const maxImport = wire.MaxPayload / 2

func (c *commands) sessionsImport() *cobra.Command {
	var in wire.SessionsImport
	cmd := &cobra.Command{
		Use: "import FILE|FOLDER", Short: "Create sessions from exported transcripts",
		Long: "Create a session from a transcript that chela or OpenClaw exported. FILE contains JSON\n" +
			"lines; - is standard input. FOLDER is one of OpenClaw's folders of sessions: each transcript\n" +
			"gets the key that sessions.json gives it, or, if that file is damaged or does not name it,\n" +
			"recovered-ID. The model cannot tell an imported message from a real one: import only\n" +
			"transcripts that you trust. Costs are not counted again.",
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				if in.Key != "" {
					return fmt.Errorf("import: --session names one session, but %s is a folder", args[0])
				}
				return c.importFolder(cmd.Context(), args[0], in.AgentID)
			}
			text, err := c.readFile(args[0], maxImport)
			if err != nil {
				return fmt.Errorf("import: %w", err)
			}
			in.JSONL = string(text)
			err = query(cmd.Context(), c, wire.MethodSessionsImport, in, func(out wire.SessionImported) {
				fmt.Fprintf(c.stdout, "%s: imported %s\n", out.Key, humanize.Many(out.Entries, "entry"))
				c.printSkipped(out)
			})
			if err != nil && !errors.Is(err, errReported) {
				err = fmt.Errorf("%s: %w", args[0], err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&in.Key, "session", "",
		"`KEY` of the new session, which must not exist (default: a generated key)")
	cmd.Flags().StringVar(&in.AgentID, "agent", "", "`ID` of the agent that gets the session")
	return cmd
}

func (c *commands) sessionsReset() *cobra.Command {
	return &cobra.Command{Use: "reset KEY", Short: "Start a session over; the old transcript is kept", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], func(l *link, key string) error {
				return queryOn(cmd.Context(), l, wire.MethodSessionsReset, wire.SessionsReset{Key: key, Reason: "reset"},
					func(r wire.SessionReset) {
						fmt.Fprintf(c.stdout, "reset %s (new session id %s)\n", r.Key, r.Entry.SessionID)
					})
			})
		}}
}

func (c *commands) sessionsDelete() *cobra.Command {
	return c.withYes(&cobra.Command{Use: "delete KEY", Short: "Delete a session and its transcripts", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withSession(cmd.Context(), args[0], func(l *link, key string) error {
				if err := c.confirm("delete "+key, "sessions delete "+shell.Quote(args[0])+" --yes"); err != nil {
					return err
				}
				return queryOn(cmd.Context(), l, wire.MethodSessionsDelete, wire.SessionKey{Key: key}, func(d wire.SessionDeleted) {
					fmt.Fprintln(c.stdout, "deleted "+d.Key)
				})
			})
		}})
}
