package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) logs() *cobra.Command {
	var follow, asJSON bool
	var limit int
	cmd := &cobra.Command{Use: "logs", Short: "Show the gateway log", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.start()
			if err != nil {
				return err
			}
			if r, err := c.remote(s); err != nil || r != nil {
				if err != nil {
					return err
				}
				return c.remoteLogs(cmd.Context(), limit, follow, asJSON)
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

// stored returns a line of logs.tail as it is stored: without the property message, which is
// there for other clients.
func stored(line string) []byte {
	var v struct{ Message json.RawMessage }
	if json.Unmarshal([]byte(line), &v) == nil && v.Message != nil {
		if rest, ok := strings.CutPrefix(line, `{"message":`+string(v.Message)+","); ok {
			return []byte("{" + rest)
		}
	}
	return []byte(line)
}

// logPause is the time between two questions for new lines of a log on another machine.
const logPause = time.Second

// remoteLogs prints the log of a gateway on another machine.
func (c *commands) remoteLogs(ctx context.Context, limit int, follow, asJSON bool) error {
	return c.withLink(ctx, func(l *link) error {
		p := wire.LogsTail{Limit: max(1, limit)}
		for first := true; ; first = false {
			var t wire.LogTail
			if err := l.Call(ctx, wire.MethodLogsTail, p, &t); err != nil {
				return err
			}
			lines := t.Lines
			if first {
				lines = lines[max(0, len(lines)-limit):]
				if len(lines) == 0 && limit > 0 {
					fmt.Fprintln(c.stderr, "there are no log entries")
				}
			}
			for _, line := range lines {
				c.printLog(stored(line), asJSON)
			}
			if !follow {
				return nil
			}
			p = wire.LogsTail{Cursor: &t.Cursor}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(logPause):
			}
		}
	})
}
