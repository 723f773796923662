package openclaw

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Limits of a folder.
const (
	maxFiles = 50_000
	maxBytes = 8 << 30
	maxDepth = 32
)

// File is a regular file of a folder.
type File struct {
	Rel  string // path in the folder, with slashes
	Name string // path in the state folder, with slashes
	Size int64
	Mode fs.FileMode
}

// Files returns the regular files in a folder of the state folder, in the order of their
// paths, without those in folders named in without. Links and devices are left out and
// reported.
func (h *Home) Files(dir string, without ...string) []File {
	var all []File
	var size int64
	err := fs.WalkDir(h.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				h.problem(name, err)
			}
			return nil
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		if e.IsDir() {
			if rel != "" && slices.Contains(without, e.Name()) {
				return fs.SkipDir
			}
			if strings.Count(rel, "/") > maxDepth {
				h.problem(name, errors.New("too many folders inside of each other"))
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			what := "neither a file nor a folder"
			if e.Type()&fs.ModeSymlink != 0 {
				what = "a symbolic link, which is not followed"
			}
			h.problem(name, errors.New(what))
			return nil
		}
		info, err := e.Info()
		if err != nil {
			h.problem(name, err)
			return nil
		}
		if len(all) >= maxFiles || size+info.Size() > maxBytes {
			h.problem(dir, fmt.Errorf("more than %d files or %d bytes; the others are left out", maxFiles, int64(maxBytes)))
			return fs.SkipAll
		}
		size += info.Size()
		all = append(all, File{rel, name, info.Size(), info.Mode().Perm()})
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.problem(dir, err)
	}
	return all
}

// Open opens a regular file.
func (h *Home) Open(name string) (*os.File, error) {
	info, err := h.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return h.root.Open(name)
}

// Copy writes the content of a file to w.
func (h *Home) Copy(w io.Writer, name string) error {
	f, err := h.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// IsDir reports whether there is a folder with a name that is no link.
func (h *Home) IsDir(name string) bool {
	info, err := h.root.Lstat(name)
	return err == nil && info.IsDir()
}

// LinkOf returns where a symbolic link leads to; "": there is no link with the name.
func (h *Home) LinkOf(name string) string {
	to, err := h.root.Readlink(name)
	if err != nil {
		return ""
	}
	return to
}

// IsFile reports whether there is a regular file with a name.
func (h *Home) IsFile(name string) bool {
	info, err := h.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// Skills returns the folders of the skills in a folder.
func (h *Home) Skills(dir string) []string {
	var all []string
	for _, e := range h.list(dir) {
		name := path.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			h.problem(name, errors.New("a symbolic link, which is not followed"))
		case e.IsDir() && h.IsFile(path.Join(name, "SKILL.md")):
			all = append(all, name)
		}
	}
	return all
}
