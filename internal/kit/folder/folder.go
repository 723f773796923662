// Package folder reads, hashes, copies and unpacks folders whose content is not
// trusted. All functions accept regular files and folders only, never follow a link,
// and stop at the [Limits].
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
	"unicode/utf8"
)

// Limits is the maximum size of a folder.
type Limits struct {
	Files int   // regular files; the folders in it are counted separately
	Bytes int64 // of all files
}

func (l Limits) exceeded() error {
	return fmt.Errorf("it has more than %d files or %d bytes", l.Files, l.Bytes)
}

// walk calls f for each folder and file in a folder, in lexical order, with its path in
// it. The folder itself is ".". Other files than regular ones are an error.
func walk(root *os.Root, l Limits, f func(path string, info fs.FileInfo) error) error {
	files, folders, size := 0, 0, int64(0)
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case !utf8.ValidString(path):
			return fmt.Errorf("the name %q is not UTF-8", path)
		case info.IsDir():
			folders++
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		default:
			files, size = files+1, size+info.Size()
		}
		if files > l.Files || folders > l.Files+1 || size > l.Bytes {
			return l.exceeded()
		}
		return f(path, info)
	})
}

// open opens a file that walk found, which must not have been replaced since.
func open(root *os.Root, path string, info fs.FileInfo) (*os.File, error) {
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(now, info) {
		err = fmt.Errorf("%s was replaced while it was read", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Hash returns the hash of the names, permissions to execute and contents of a folder's
// files, in hexadecimal. Folders without files do not count.
func Hash(dir string, l Limits) (string, error) {
	return HashFiles(dir, l, func(string, [sha256.Size]byte) {})
}

// HashFiles is Hash. It calls f with the path and the hash of the content of each file.
func HashFiles(dir string, l Limits, f func(path string, content [sha256.Size]byte)) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum, left := sha256.New(), l.Bytes
	err = walk(root, l, func(path string, info fs.FileInfo) error {
		if info.IsDir() {
			return nil
		}
		in, err := open(root, path, info)
		if err != nil {
			return err
		}
		defer in.Close()
		own := sha256.New()
		n, err := io.Copy(own, io.LimitReader(in, left+1))
		if left -= n; err != nil {
			return err
		}
		if left < 0 {
			return l.exceeded()
		}
		content := [sha256.Size]byte(own.Sum(nil))
		f(path, content)
		head, err := json.Marshal([]any{path, info.Mode()&0o111 != 0, hex.EncodeToString(content[:])})
		_, _ = sum.Write(head) // a hash never fails
		return err
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// settled is the age from which on the change time of a file tells later changes.
const settled = 2 * time.Second

// Stamp returns a text that changes when a file or folder in a folder is changed,
// without reading the files. It is empty if that cannot be told: the system keeps no
// change times, or something was changed in the last seconds.
func Stamp(dir string, l Limits) (string, error) {
	return stamp(dir, l, time.Now().Add(-settled))
}

// stamp returns the stamp of a folder in which nothing was changed since a time.
func stamp(dir string, l Limits, since time.Time) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sum, known := sha256.New(), true
	err = walk(root, l, func(path string, info fs.FileInfo) error {
		changed, ok := changeTime(info)
		known = known && ok && changed.Before(since)
		head, err := json.Marshal([]any{path, info.Mode(), info.Size(), info.ModTime().UnixNano(), changed.UnixNano()})
		_, _ = sum.Write(head) // a hash never fails
		return err
	})
	if err != nil || !known {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// Copy copies a folder to a new folder, and writes all files to the disk. Of the
// permissions, the owner's to execute are kept.
func Copy(from, to string, l Limits) error {
	in, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer in.Close()
	t, err := newTarget(to, l)
	if err != nil {
		return err
	}
	defer t.root.Close()
	err = walk(in, l, func(path string, info fs.FileInfo) error {
		if info.IsDir() {
			if path == "." {
				return nil
			}
			return t.root.Mkdir(path, 0o700)
		}
		f, err := open(in, path, info)
		if err != nil {
			return err
		}
		defer f.Close()
		return t.file(path, f, info.Mode())
	})
	if err != nil {
		return err
	}
	return syncDirs(to)
}

// target is a new folder that is filled.
type target struct {
	root   *os.Root
	limits Limits
	left   int64 // bytes
}

func newTarget(dir string, l Limits) (*target, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &target{root: root, limits: l, left: l.Bytes}, nil
}

// file writes a file to the disk.
func (t *target) file(path string, content io.Reader, mode fs.FileMode) error {
	out, err := t.root.OpenFile(filepath.FromSlash(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600|mode&0o100)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(content, t.left+1))
	if t.left -= n; t.left < 0 && err == nil {
		err = t.limits.exceeded()
	}
	if err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Sync(), out.Close())
}

// syncDirs makes the entries of a folder and of the folders in it durable.
func syncDirs(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); !errors.Is(err, syscall.EINVAL) { // some file systems cannot sync folders
			return err
		}
		return nil
	})
}
