package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		t := logTail{path: filepath.Join(s.State, "logs", "chela.log"), show: func(line []byte) { c.printLog(line, asJSON) }}
		defer t.close()
		if err := t.last(limit); err != nil {
			return err
		}
		if !follow {
			return nil
		}
		return t.follow(cmd.Context())
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

// logTail reads a log file to its end, and what is written after.
type logTail struct {
	path string
	show func([]byte)
	file *os.File
	part []byte // of a line
}

func (t *logTail) close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

// last shows the newest n lines. A log that is not there has none.
func (t *logTail) last(n int) error {
	f, err := os.Open(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	t.file = f
	var lines [][]byte
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.part = line // its end is to come
			break
		}
		if lines = append(lines, bytes.TrimSuffix(line, []byte("\n"))); len(lines) > n {
			lines = lines[1:]
		}
	}
	for _, line := range lines {
		t.show(line)
	}
	return nil
}

// follow shows lines as they are written, until ctx ends. A file that is begun
// anew is gone on with after what was left of the old one.
func (t *logTail) follow(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := t.turn(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// turn shows what is new in the file, and leaves it when it was rotated away.
func (t *logTail) turn() error {
	rotated := t.rotated()
	if err := t.more(); err != nil || !rotated {
		return err
	}
	t.close()
	return t.more()
}

// more shows the lines that are there now.
func (t *logTail) more() error {
	if t.file == nil {
		f, err := os.Open(t.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("logs: %w", err)
		}
		t.file, t.part = f, nil
	}
	b, err := io.ReadAll(t.file)
	if err != nil {
		return fmt.Errorf("logs: %w", err)
	}
	t.part = append(t.part, b...)
	for {
		line, rest, whole := bytes.Cut(t.part, []byte("\n"))
		if !whole {
			return nil
		}
		t.show(line)
		t.part = rest
	}
}

// rotated reports whether the path names another file now.
func (t *logTail) rotated() bool {
	if t.file == nil {
		return false
	}
	open, err := t.file.Stat()
	if err != nil {
		return true
	}
	now, err := os.Stat(t.path)
	return err == nil && !os.SameFile(open, now)
}
