// Package atomicfile replaces files atomically: readers, and programs that run
// after a crash or power loss, find either the old content or the new.
package atomicfile

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// tempPrefix is the beginning of the names of files that are not complete yet.
const tempPrefix = ".tmp-"

// IsTemp reports whether a name is that of a file that is being written. Such a file stays
// when the process is killed.
func IsTemp(name string) bool {
	rest, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(rest) == len(rand.Text()) && strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

// Write replaces the file at path with data and returns when the data is on
// disk. An existing file keeps its mode; a new file gets perm, or 0600 if perm
// is 0. If path is a symbolic link, its target is replaced.
func Write(path string, data []byte, perm fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = root.Close() }()
	return WriteIn(root, filepath.Base(path), data, perm)
}

// WriteIn is like [Write] for a name inside root. If the name is a symbolic
// link, the link itself is replaced.
func WriteIn(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	return writeIn(root, name, data, perm, func(string) error { return nil })
}

// WriteSoonIn is like [WriteIn] for a new file, but does not wait until it is on disk. After
// a power failure, it may be empty or damaged.
func WriteSoonIn(root *os.Root, name string, data []byte, perm fs.FileMode) (err error) {
	temp := filepath.Join(filepath.Dir(name), tempPrefix+rand.Text())
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	if err := root.WriteFile(temp, data, cmp.Or(perm, 0o600)); err != nil {
		return err
	}
	return root.Rename(temp, name)
}

// writeIn calls before with the name of each step. Tests return an error from
// it to simulate a crash.
func writeIn(root *os.Root, name string, data []byte, perm fs.FileMode, before func(step string) error) error {
	perm = cmp.Or(perm, 0o600)
	old, err := root.Lstat(name)
	exists := err == nil && old.Mode().IsRegular()
	if exists {
		perm = old.Mode().Perm()
	}
	return place(root, name, perm, before, func(f *os.File) error {
		if exists && runtime.GOOS != "windows" { // OpenFile applied the umask
			if err := f.Chmod(perm); err != nil {
				return err
			}
		}
		if err := before("write"); err != nil {
			return err
		}
		_, err := f.Write(data)
		return err
	})
}

// CreateIn creates a file inside root with what write writes, and returns when it is on
// disk. The file appears when it is complete; until then its content is in a file whose
// name begins with .tmp-. If the name exists, the error wraps fs.ErrExist.
func CreateIn(root *os.Root, name string, perm fs.FileMode, write func(io.Writer) error) error {
	return createIn(root, name, perm, write, func(string) error { return nil })
}

func createIn(root *os.Root, name string, perm fs.FileMode, write func(io.Writer) error,
	before func(step string) error) error {
	check := func(step string) error {
		if err := before(step); err != nil || step != "create" && step != "rename" {
			return err
		}
		if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(err, fs.ErrExist)
		}
		return nil
	}
	return place(root, name, cmp.Or(perm, 0o600), check, func(f *os.File) error {
		if err := before("write"); err != nil {
			return err
		}
		return write(f)
	})
}

// SymlinkIn makes a symbolic link inside root that leads to a target, which need not exist.
// If the name is a file or a link, it is replaced, atomically.
func SymlinkIn(root *os.Root, name, target string) error {
	dir := filepath.Dir(name)
	temp := filepath.Join(dir, tempPrefix+rand.Text())
	err := root.Symlink(target, temp)
	if err == nil {
		if err = root.Rename(temp, name); err != nil {
			_ = root.Remove(temp)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return syncDir(root, dir)
}

// place writes a temporary file and renames it to name.
func place(root *os.Root, name string, perm fs.FileMode, before func(step string) error,
	write func(*os.File) error) (err error) {
	dir := filepath.Dir(name)
	temp := filepath.Join(dir, tempPrefix+rand.Text())
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	if err := before("create"); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = before("sync")
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := before("rename"); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return err
	}
	if err := before("sync directory"); err != nil {
		return err
	}
	return syncDir(root, dir)
}

// syncDir makes the rename durable. It does nothing on Windows, and ignores
// file systems that do not support it.
func syncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// Create creates an empty file that only its owner can read. If the file
// exists, it returns fs.ErrExist.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Rename syncs the file temp, which another program wrote, and renames it to
// path.
func Rename(temp, path string) error {
	if err := sync(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer root.Close()
	return syncDir(root, ".")
}

func sync(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
