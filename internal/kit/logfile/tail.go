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

// Follow shows lines as they are written, until ctx ends. After rotations it
// finishes the old file and continues with those after it.
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

// poll shows the new lines of the open file and of those that followed it.
func (t *Tail) poll() error {
	for {
		next, err := t.next() // first, because a file with a successor is complete
		if err != nil {
			return err
		}
		if err := t.more(); err != nil || next == nil {
			if next != nil {
				next.Close()
			}
			return err
		}
		t.Close()
		t.file, t.part = next, nil
	}
}

// next opens the file that follows the open one; nil: there is none yet.
func (t *Tail) next() (*os.File, error) {
	n := t.age()
	for n != 0 {
		f, err := os.Open(name(t.path, max(n-1, 0)))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		now := t.age()
		if now == n {
			return f, nil
		}
		f.Close() // the files were rotated in the meantime
		n = now
	}
	return nil, nil
}

// age returns how often the open file was rotated; -1: it is no longer
// retained, or no file is open.
func (t *Tail) age() int {
	if t.file == nil {
		return -1
	}
	open, err := t.file.Stat()
	for n := 0; n <= maxOld && err == nil; n++ {
		if now, err := os.Stat(name(t.path, n)); err == nil && os.SameFile(open, now) {
			return n
		}
	}
	return -1
}

// more shows the complete lines of the open file.
func (t *Tail) more() error {
	if t.file == nil {
		return nil
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
