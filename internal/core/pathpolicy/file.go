package pathpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// OpenFile opens a regular file for reading. It never blocks: the file type
// is checked before and after opening.
func (d *Dir) OpenFile(path, name string) (*os.File, fs.FileInfo, error) {
	info, err := d.Root.Stat(name)
	if err != nil {
		return nil, nil, d.PathError(path, err)
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := d.Root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, d.PathError(path, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = CheckFile(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// CheckFile returns an error if the file may not be read or written because
// it is not a regular file or has more than one name.
func CheckFile(path string, info fs.FileInfo) error {
	if err := checkRegular(path, info); err != nil || Links(info) < 2 {
		return err
	}
	return fmt.Errorf("%s has more than one name (hard links), and another may be outside the workspace; use exec for it", Show(path))
}

// checkRegular returns an error if the file is not a regular file.
func checkRegular(path string, info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%s is a folder; use ls", Show(path))
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is a named pipe, not a file", Show(path))
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("%s is a socket, not a file", Show(path))
	}
	return fmt.Errorf("%s is a device, not a file", Show(path))
}

// Secret reports whether a file is expected to hold secrets, judging by its
// name: .env and .env.local do, .env.example does not.
func Secret(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	if base != ".env" && base != ".envrc" && !strings.HasPrefix(base, ".env.") {
		return false
	}
	switch filepath.Ext(base) {
	case ".example", ".sample", ".template", ".dist", ".md":
		return false
	}
	return true
}
