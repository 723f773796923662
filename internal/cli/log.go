package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// maxLog is the size from which a log file is begun anew; that many older files
// are kept.
const (
	maxLog  = 8 << 20
	oldLogs = 5
)

// logger returns the engine's log: a file in the state directory, so that it
// does not disturb a conversation.
func (c *console) logger(state string) (*slog.Logger, error) {
	file, err := c.logHandler(state)
	if err != nil {
		return nil, err
	}
	return slog.New(file), nil
}

func (c *console) logHandler(state string) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, usageError{hinted{fmt.Errorf("--log-level %s: unknown level", c.logLevel), "--log-level debug, info, warn or error"}}
	}
	f := &logFile{path: filepath.Join(state, "logs", "chela.log")}
	return slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level}), nil
}

// logFile is a log that comes into being with its first line, so that commands
// that have nothing to say leave no trace.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

// Write appends a line.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && l.size > maxLog {
		l.file.Close()
		l.file = nil
	}
	if l.file == nil {
		if err := l.openLocked(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

func (l *logFile) openLocked() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(l.path); err == nil && info.Size() > maxLog {
		for n := oldLogs - 1; n > 0; n-- {
			if err := os.Rename(fmt.Sprintf("%s.%d", l.path, n), fmt.Sprintf("%s.%d", l.path, n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		if err := os.Rename(l.path, l.path+".1"); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}
