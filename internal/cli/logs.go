package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/logfile"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

func (c *console) logs() *cobra.Command {
	var follow, asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "logs", Short: "Show the log of the gateway", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		t := logfile.NewTail(filepath.Join(s.State, "logs", "chela.log"), func(line []byte) { c.printLog(line, asJSON) })
		defer t.Close()
		if err := t.Last(limit); err != nil {
			return err
		}
		if !follow {
			return nil
		}
		return t.Follow(cmd.Context())
	}}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with what is written")
	f.IntVarP(&limit, "limit", "n", 200, "the newest `N` lines")
	f.BoolVar(&asJSON, "json", false, "print lines as they are stored")
	return cmd
}

// printLog shows a line: time, level, message, and the rest as key=value.
func (c *console) printLog(line []byte, asJSON bool) {
	var attrs map[string]any
	if asJSON || json.Unmarshal(line, &attrs) != nil {
		fmt.Fprintln(c.out, ansi.Line(string(line)))
		return
	}
	take := func(key string) string { s, _ := attrs[key].(string); delete(attrs, key); return s }
	at, level, msg := take("time"), take("level"), take("msg")
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = t.Local().Format("2006-01-02 15:04:05.000")
	}
	var rest []string
	for k, v := range attrs {
		rest = append(rest, fmt.Sprintf("%s=%v", k, v))
	}
	sort.Strings(rest)
	p := c.palette(c.out)
	fmt.Fprintln(c.out, p.Dim.Paint(at), fmt.Sprintf("%-5s", level), ansi.Line(msg), p.Dim.Paint(ansi.Line(strings.Join(rest, " "))))
}
