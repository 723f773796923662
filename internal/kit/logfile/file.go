// Package logfile writes a log file with rotation and reads one while it is
// written.
package logfile

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// MaxSize is the default size at which a log file is rotated. maxOld rotated
// files are retained.
const (
	MaxSize = 8 << 20
	maxOld  = 5
)

// File is a log file that is created by its first line, so that commands
// without output leave no file.
type File struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// New returns the log at path, which is rotated when it exceeds max bytes; 0:
// MaxSize.
func New(path string, max int64) *File { return &File{path: path, max: cmp.Or(max, MaxSize)} }

// Write appends a line.
func (f *File) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil && f.size > f.max {
		f.file.Close()
		f.file = nil
	}
	if f.file == nil {
		if err := f.openLocked(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	return n, err
}

func (f *File) openLocked() error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(f.path); err == nil && info.Size() > f.max {
		for n := maxOld - 1; n > 0; n-- {
			if err := os.Rename(name(f.path, n), name(f.path, n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		if err := os.Rename(f.path, name(f.path, 1)); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	f.file, f.size = file, info.Size()
	return nil
}

// name returns the name of the log at path after n rotations.
func name(path string, n int) string {
	if n == 0 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}
