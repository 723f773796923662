package logfile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Tail reads a log file to its end and follows it.
type Tail struct {
	path string
	show func([]byte)
	file *os.File
	part []byte // of an incomplete line
}

// NewTail returns a reader of the log at path, which need not exist. It calls
// show with each line.
func NewTail(path string, show func([]byte)) *Tail { return &Tail{path: path, show: show} }

// Close closes the file.
func (t *Tail) Close() {
	if t.file != nil {
		t.file.Close()
		t.file = nil
	}
}

// Last shows the newest n lines and returns how many there were, 0 if the log
// does not exist.
func (t *Tail) Last(n int) (int, error) {
	f, err := os.Open(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	t.file = f
	var lines [][]byte
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.part = line // incomplete
			break
		}
		if lines = append(lines, bytes.TrimSuffix(line, []byte("\n"))); len(lines) > n {
			lines = lines[1:]
		}
	}
	for _, line := range lines {
		t.show(line)
	}
	return len(lines), nil
}

// Follow shows lines as they are written, until ctx ends. After a rotation it
// finishes the old file and continues with the new one.
func (t *Tail) Follow(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := t.poll(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// poll shows the new lines and closes the file after a rotation.
func (t *Tail) poll() error {
	rotated := t.rotated()
	if err := t.more(); err != nil || !rotated {
		return err
	}
	t.Close()
	return t.more()
}

// more shows the complete lines that are available.
func (t *Tail) more() error {
	if t.file == nil {
		f, err := os.Open(t.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		t.file, t.part = f, nil
	}
	b, err := io.ReadAll(t.file)
	if err != nil {
		return fmt.Errorf("log: %w", err)
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
func (t *Tail) rotated() bool {
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
