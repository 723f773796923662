// Package atomicfile replaces files whole: a reader, and whoever looks after a
// crash or a power loss, finds the old content or the new, never a part.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write replaces the file at path with data and returns when that is on disk.
// A file that exists keeps its mode; a new one gets perm (0: 0600). A symbolic
// link is followed: what it names is replaced, not the link.
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

// WriteIn is [Write] for a name under root, which it cannot leave. A symbolic
// link in the last place of the name is replaced itself.
func WriteIn(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	return writeIn(root, name, data, perm, func(string) error { return nil })
}

// writeIn calls reach before each step; an error from it is a crash there.
func writeIn(root *os.Root, name string, data []byte, perm fs.FileMode, reach func(step string) error) (err error) {
	if perm == 0 {
		perm = 0o600
	}
	old, err := root.Lstat(name)
	exists := err == nil && old.Mode().IsRegular()
	if exists {
		perm = old.Mode().Perm()
	}
	dir := filepath.Dir(name)
	temp := filepath.Join(dir, ".tmp-"+rand.Text())
	defer func() {
		if err != nil {
			_ = root.Remove(temp)
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	if err := reach("create"); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if err := fill(f, data, perm, exists, reach); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := reach("rename"); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return err
	}
	if err := reach("sync directory"); err != nil {
		return err
	}
	return syncDir(root, dir)
}

func fill(f *os.File, data []byte, perm fs.FileMode, exists bool, reach func(string) error) error {
	if exists && runtime.GOOS != "windows" { // the umask has no say about a mode that is kept
		if err := f.Chmod(perm); err != nil {
			return err
		}
	}
	if err := reach("write"); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := reach("sync"); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes the rename durable. Windows has no such call, and some file
// systems refuse it.
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
