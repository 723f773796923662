package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/logfile"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/lines"
)

func (c *commands) logs() *cobra.Command {
	var follow, asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "logs", Short: "Show the log of the gateway", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
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
			fmt.Fprintln(c.Err, "Nothing is logged yet.")
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
func (c *commands) printLog(line []byte, asJSON bool) {
	if asJSON {
		fmt.Fprintln(c.Out, ansi.Line(string(line)))
		return
	}
	fmt.Fprintln(c.Out, lines.Log(line, c.Palette(c.Out), false))
}
