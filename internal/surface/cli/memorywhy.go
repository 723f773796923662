package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// memoryWhy is memory why: where the assistant knows something from.
func (c *commands) memoryWhy() *cobra.Command {
	var p wire.MemoryWhy
	cmd := &cobra.Command{
		Use: "why PATH:LINE|WORD [WORD]...", Short: "Show where a line of a note comes from", Args: between(1, 100),
		Long:    "Show which change introduced a line that is still there: when, by which tool, in which\nsession and for whom, and whether it can be trusted. Words find lines in the notes.",
		Example: "  chela memory why MEMORY.md:12\n  chela memory why router password",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.whyArguments(&p, args); err != nil {
				return err
			}
			return query(cmd.Context(), c, wire.MethodMemoryWhy, p, func(s wire.MemorySources) {
				if len(s.Lines) == 0 {
					fmt.Fprintln(c.stdout, "no line of the notes has these words")
				}
				for _, l := range s.Lines {
					fmt.Fprintf(c.stdout, "%s:%d: %s\n    %s\n", ansi.Line(l.Path), l.Line, ansi.Line(l.Text), whenAndHow(l.Change))
					if l.Change != nil && l.Change.Untrusted != "" {
						fmt.Fprintf(c.stdout, "    not trusted: %s\n", ansi.Line(l.Change.Untrusted))
					}
				}
			})
		},
	}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "of the agent `ID`")
	return c.withJSON(cmd)
}

// whyArguments reads the arguments of memory why: a path with or without a line, or words.
func (c *commands) whyArguments(p *wire.MemoryWhy, args []string) error {
	p.Words = strings.Join(args, " ")
	if len(args) > 1 {
		return nil
	}
	path, line, found := cutLast(args[0], ":")
	n, err := strconv.Atoi(line)
	if !found || err != nil || n < 1 {
		path, n = args[0], 0
	}
	if !strings.ContainsAny(path, `./\`) {
		return nil
	}
	p.Words, p.Line = "", n
	p.Path, err = c.fileArgument(path)
	return err
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// memoryWhyTime is how times are shown by memory why.
const memoryWhyTime = "2006-01-02 15:04"

// whenAndHow describes a change in one line.
func whenAndHow(ch *wire.Change) string {
	if ch == nil {
		return "older than what is recorded"
	}
	if ch.Action == wire.ChangeSeen {
		return "was there when it was first recorded, " + ch.Time.Time().Local().Format(memoryWhyTime)
	}
	text := ch.Time.Time().Local().Format(memoryWhyTime) + " by " + strings.TrimSuffix(changedBy(*ch), " (untrusted)")
	if ch.SessionKey != "" {
		text += ", in " + ch.SessionKey
	}
	switch {
	case ch.Origin == "person" && ch.By != "":
		text += ", after a message of " + ch.By
	case ch.Origin != "":
		text += ", in a run of kind " + ch.Origin
	case ch.By != "":
		text += ", for " + ch.By
	}
	if ch.CallID != "" {
		text += ", call " + ch.CallID
	}
	return ansi.Line(text)
}
