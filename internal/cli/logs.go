package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/logfile"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/lines"
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

// printLog shows a line of the log.
func (c *console) printLog(line []byte, asJSON bool) {
	if asJSON {
		fmt.Fprintln(c.out, ansi.Line(string(line)))
		return
	}
	fmt.Fprintln(c.out, lines.Log(line, c.palette(c.out), false))
}
