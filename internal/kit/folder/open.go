package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrNotRegular means that a file is a folder, a pipe, a socket or a device.
var ErrNotRegular = errors.New("it is not a regular file")

// Open opens a regular file in root for reading. It never waits for another program, as
// opening a pipe does. Other files are [ErrNotRegular].
func Open(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, ErrNotRegular)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return opened(name, f, err)
}

// OpenPath is Open for a path, whose links may lead anywhere.
func OpenPath(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	return opened(path, f, err)
}

// opened checks a file once more, which may have been replaced before it was opened.
func opened(name string, f *os.File, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, ErrNotRegular)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Read returns the content of a regular file in root as Open does. A file of more than n
// bytes is an error.
func Read(root *os.Root, name string, n int64) ([]byte, error) {
	f, info, err := Open(root, name)
	return content(f, info, n, err)
}

// ReadPath is Read for a path, whose links may lead anywhere.
func ReadPath(path string, n int64) ([]byte, error) {
	f, info, err := OpenPath(path)
	return content(f, info, n, err)
}

// content reads a file and closes it.
func content(f *os.File, info fs.FileInfo, n int64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > n {
		return nil, fmt.Errorf("%s has more than %d bytes", f.Name(), n)
	}
	b, err := io.ReadAll(io.LimitReader(f, n+1))
	if err == nil && int64(len(b)) > n { // it grew
		return nil, fmt.Errorf("%s has more than %d bytes", f.Name(), n)
	}
	return b, err
}

// ReadLeft reads at most the first n bytes of a file that a program left in its folder: a
// regular one, which no link leads to.
func ReadLeft(path string, n int64) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := Open(root, filepath.Base(path))
	if errors.Is(err, ErrNotRegular) {
		err = errors.New("the program left no file")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}
