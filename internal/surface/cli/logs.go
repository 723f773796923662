package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) logs() *cobra.Command {
	var follow, asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "logs", Short: "Show the gateway log", Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		s, err := c.start()
		if err != nil {
			return err
		}
		t := logfile.NewTail(filepath.Join(s.State, "logs", "chela.log"), func(line []byte) { c.printLog(line, asJSON) })
		defer t.Close()
		n, err := t.Last(limit)
		if err != nil {
			return err
		}
		if n == 0 && limit > 0 {
			fmt.Fprintln(c.stderr, "there are no log entries")
		}
		if !follow {
			return nil
		}
		return t.Follow(cmd.Context())
	}}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "keep printing new lines")
	f.IntVarP(&limit, "limit", "n", 200, "show the last `N` lines")
	f.BoolVar(&asJSON, "json", false, "print lines as stored")
	return cmd
}

// printLog prints a line of the log.
func (c *commands) printLog(line []byte, asJSON bool) {
	if asJSON {
		fmt.Fprintln(c.stdout, ansi.Line(string(line)))
		return
	}
	fmt.Fprintln(c.stdout, LogLine(line, c.palette(c.stdout), false))
}
