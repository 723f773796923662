package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) memory() *cobra.Command {
	return group("memory", "Search and show what an agent remembers: its notes", c.memoryStatus(), c.memoryList(),
		c.memorySearch(), c.memoryShow(), c.memoryWhy(), c.memoryIndex(), c.memoryForget())
}

func (c *commands) memoryStatus() *cobra.Command {
	var p wire.MemoryProbe
	cmd := &cobra.Command{Use: "status", Short: "Show the state of the index", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.MemoryStatus
			if err := c.call(cmd.Context(), wire.MethodMemoryStatus, p, &s); err != nil {
				return err
			}
			return c.print(s, func() { c.printMemoryStatus(s) })
		}}
	cmd.Flags().BoolVar(&p.Deep, "deep", false, "also try the embedding provider")
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "the notes of the agent `ID` (default: the default agent)")
	return c.withJSON(cmd)
}

func (c *commands) printMemoryStatus(s wire.MemoryStatus) {
	c.printRow("agent", s.AgentID)
	c.printRow("workspace", s.Workspace)
	search := "by words; no embedding provider is used"
	if s.Provider != "none" {
		search = "by words and by meaning (" + s.Embedding.Model + ")"
	}
	c.printRow("search", search)
	switch e := s.Embedding; {
	case e.Error != "":
		c.printRow("provider", "it does not work: "+e.Error)
	case e.Checked:
		c.printRow("provider", "it answers")
	}
	if s.Indexing != nil {
		c.printRow("indexing", fmt.Sprintf("%d of %d notes", s.Indexing.Done, s.Indexing.Total))
		return
	}
	c.printRow("notes", fmt.Sprintf("%d (%s), %d chunks", s.Index.Files, humanize.Bytes(s.Index.Bytes), s.Index.Chunks))
	if e := s.Embedding; e.Ready+e.Waiting > 0 {
		c.printRow("vectors", fmt.Sprintf("%d of %d chunks", e.Ready, e.Ready+e.Waiting))
	}
	c.printRow("index", humanize.Bytes(s.Index.Size))
	for _, f := range s.Index.Skipped {
		c.printRow("skipped", f.Path+": "+f.Reason)
	}
}

func (c *commands) memoryList() *cobra.Command {
	var p wire.MemoryAgent
	cmd := &cobra.Command{Use: "list", Short: "List the notes", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l wire.MemoryFiles
			if err := c.call(cmd.Context(), wire.MethodMemoryList, p, &l); err != nil {
				return err
			}
			return c.print(l, func() {
				if len(l.Files) == 0 {
					fmt.Fprintf(c.stdout, "there are no notes in %s\n", ansi.Line(l.Workspace))
					return
				}
				table := [][]string{{"NOTE", "SIZE", "CHANGED", "CHUNKS", "REMARK"}}
				for _, f := range l.Files {
					remark := ""
					switch {
					case f.Skipped != "":
						remark = "not searched: " + f.Skipped
					case f.Untrusted:
						remark = "imported"
					case f.Source != "memory":
						remark = f.Source
					}
					table = append(table, []string{ansi.Line(f.Path), humanize.Bytes(f.Size),
						f.Changed.Time().Local().Format("2006-01-02 15:04"), strconv.Itoa(f.Chunks), ansi.Line(remark)})
				}
				c.printTable(table)
			})
		}}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "the notes of the agent `ID` (default: the default agent)")
	return c.withJSON(cmd)
}

func (c *commands) memorySearch() *cobra.Command {
	var p wire.MemorySearch
	cmd := &cobra.Command{Use: "search WORD [WORD]...", Short: "Search the notes", Args: between(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Query = strings.Join(args, " ")
			var r wire.MemoryHits
			if err := c.call(cmd.Context(), wire.MethodMemorySearch, p, &r); err != nil {
				return err
			}
			return c.print(r, func() { c.printHits(r) })
		}}
	f := cmd.Flags()
	f.StringVar(&p.AgentID, "agent", "", "the notes of the agent `ID` (default: the default agent)")
	f.IntVar(&p.MaxResults, "max-results", 0, "at most `N` passages (default: that of the configuration, or 6)")
	f.Float64Var(&p.MinScore, "min-score", 0,
		"only passages with the score `S` or more, from 0 to 1 (default: that of the configuration, or 0.35)")
	return c.withJSON(cmd)
}

func (c *commands) printHits(r wire.MemoryHits) {
	if len(r.Results) == 0 {
		fmt.Fprintln(c.stdout, "no note answers that")
		return
	}
	dim := c.palette(c.stdout).Dim
	for i, h := range r.Results {
		if i > 0 {
			fmt.Fprintln(c.stdout)
		}
		about := fmt.Sprintf("score %.2f, changed %s", h.Score, h.Changed.Time().Local().Format(time.DateOnly))
		if h.Untrusted {
			about += ", imported"
		}
		fmt.Fprintf(c.stdout, "%s:%d-%d  %s\n%s\n", ansi.Line(h.Path), h.First, h.Last,
			dim.Paint(about), ansi.Clean(h.Snippet))
	}
}

func (c *commands) memoryShow() *cobra.Command {
	var p wire.MemoryGet
	cmd := &cobra.Command{Use: "show PATH[:FROM[-TO]]", Short: "Show lines of a note", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Path, p.From, p.Lines = lineRange(args[0])
			var t wire.MemoryText
			if err := c.call(cmd.Context(), wire.MethodMemoryGet, p, &t); err != nil {
				return c.suggest(err, "memory list")
			}
			return c.print(t, func() {
				for i, line := range strings.Split(t.Text, "\n") {
					fmt.Fprintf(c.stdout, "%s %s\n", c.palette(c.stdout).Dim.Paint(fmt.Sprintf("%5d", t.First+i)), ansi.Line(line))
				}
				if t.Last < t.Total {
					fmt.Fprintf(c.stderr, "lines %d to %d of %d; the next ones: %s\n", t.First, t.Last, t.Total,
						c.commandLine(fmt.Sprintf("memory show %s:%d", ansi.Line(t.Path), t.Last+1)))
				}
			})
		}}
	cmd.Flags().StringVar(&p.AgentID, "agent", "", "the notes of the agent `ID` (default: the default agent)")
	return c.withJSON(cmd)
}

// lineRange splits PATH:FROM-TO, PATH:FROM or PATH into the path, the first line and the
// number of lines; 0: not given.
func lineRange(s string) (path string, from, n int) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return s, 0, 0
	}
	first, last, both := strings.Cut(s[i+1:], "-")
	from, err := strconv.Atoi(first)
	if err != nil || from < 1 {
		return s, 0, 0
	}
	if !both {
		return s[:i], from, 0
	}
	to, err := strconv.Atoi(last)
	if err != nil || to < from {
		return s, 0, 0
	}
	return s[:i], from, to - from + 1
}

func (c *commands) memoryIndex() *cobra.Command {
	var p wire.MemoryIndex
	cmd := &cobra.Command{Use: "index", Short: "Update the index of the notes, or rebuild it", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s wire.MemoryStatus
			err := c.withLink(cmd.Context(), func(l *link) error {
				ctx, end := context.WithCancel(cmd.Context())
				shown := make(chan struct{})
				go func() {
					defer close(shown)
					c.followIndexing(ctx, l, p.AgentID)
				}()
				err := l.Call(ctx, wire.MethodMemoryIndex, p, &s)
				end()
				<-shown
				return err
			})
			if err != nil {
				return err
			}
			return c.print(s, func() { c.printMemoryStatus(s) })
		}}
	f := cmd.Flags()
	f.BoolVar(&p.Force, "force", false, "delete the index and rebuild it")
	f.StringVar(&p.AgentID, "agent", "", "the notes of the agent `ID` (default: the default agent)")
	return c.withJSON(cmd)
}

// progressEvery is how often the progress of indexing is looked at.
const progressEvery = 500 * time.Millisecond

// followIndexing prints the progress of indexing until ctx ends.
func (c *commands) followIndexing(ctx context.Context, l *link, agent string) {
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	last := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		var s wire.MemoryStatus
		if l.Call(ctx, wire.MethodMemoryStatus, wire.MemoryProbe{AgentID: agent}, &s) == nil && s.Indexing != nil &&
			s.Indexing.Done != last {
			last = s.Indexing.Done
			fmt.Fprintf(c.stderr, "read %d of %d notes\n", s.Indexing.Done, s.Indexing.Total)
		}
	}
}
