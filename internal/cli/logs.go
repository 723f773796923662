package cli

import (
	"fmt"
	"path/filepath"
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
	l, ok := logfile.Parse(line)
	if asJSON || !ok {
		fmt.Fprintln(c.out, ansi.Line(string(line)))
		return
	}
	if t, err := time.Parse(time.RFC3339Nano, l.Time); err == nil {
		l.Time = t.Local().Format("2006-01-02 15:04:05.000")
	}
	p := c.palette(c.out)
	fmt.Fprintln(c.out, p.Dim.Paint(l.Time), fmt.Sprintf("%-5s", l.Level), ansi.Line(l.Message), p.Dim.Paint(ansi.Line(l.Attrs)))
}
