package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// Dir is a folder through which files are reached: the workspace; or, for tools
// that may leave it, a folder outside.
type Dir struct {
	Root    *os.Root
	Path    string
	Outside bool // it is not the workspace

	way  *way                   // leads to other folders; nil: nothing does
	hide func(name string) bool // what is private in it; nil: nothing
}

// Close closes the workspace, and what was reached from it.
func (d *Dir) Close() {
	_ = d.Root.Close() // it was only a way to files
	if d.way != nil {
		for _, root := range d.way.roots {
			_ = root.Close() // the same
		}
	}
}

// Hides reports whether what is in the folder under that name is private, where
// the folder is not. A search passes over it.
func (d *Dir) Hides(name string) bool { return d.hide != nil && d.hide(name) }

// IsLink reports whether a path is itself a symbolic link.
func (d *Dir) IsLink(path string) bool {
	var info fs.FileInfo
	var err error
	if d.way != nil {
		info, err = os.Lstat(d.way.abs(path))
	} else {
		var name string
		if name, err = d.name(path); err == nil {
			info, err = d.Root.Lstat(name)
		}
	}
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// At returns the folder through which a path is reached, and its name there.
func (d *Dir) At(path string) (*Dir, string, error) {
	if d.way == nil {
		name, err := d.name(path)
		return d, name, err
	}
	p, err := d.way.resolve(path)
	switch {
	case err != nil:
		return nil, "", err
	case !p.inside:
		return d.way.open(p)
	}
	if name, err := d.name(path); err == nil {
		return d, name, nil
	}
	return d, p.rel, nil // it comes back through a link
}

// Shown is a name as it is told: of another folder's, the whole path.
func (d *Dir) Shown(name string) string {
	if d.Outside {
		name = filepath.Join(d.Path, name)
	}
	return Show(name)
}

// name returns the path as a name under the root: a path is relative to the
// workspace, or absolute inside it.
func (d *Dir) name(path string) (string, error) {
	if path == "" {
		return ".", nil
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %s holds a NUL byte", Show(path))
	}
	rel := path
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", d.Escape(path)
		}
		rel = filepath.Join(home, path[1:])
	}
	if filepath.IsAbs(rel) {
		var ok bool
		if rel, ok = d.under(filepath.Clean(rel)); !ok {
			return "", d.Escape(path)
		}
	}
	rel = filepath.Clean(rel)
	if !filepath.IsLocal(rel) {
		return "", d.Escape(path)
	}
	return rel, nil
}

// under returns an absolute path relative to the workspace, also when one of
// the two is written through a symbolic link.
func (d *Dir) under(path string) (string, bool) {
	dirs := []string{d.Path}
	if real, err := filepath.EvalSymlinks(d.Path); err == nil && real != d.Path {
		dirs = append(dirs, real)
	}
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// Escape says that a path leads out, in words for the model.
func (d *Dir) Escape(path string) error {
	if d.Outside {
		return fmt.Errorf("%s leads out of its folder by a link; name the file that it leads to", Show(path))
	}
	return fmt.Errorf("%s is outside the workspace %s; the file tools stay inside it (for other places use exec)", Show(path), d.Path)
}

// Fault says what went wrong with a path, in words for the model.
func (d *Dir) Fault(path string, err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", Show(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", Show(path))
	case Escapes(err):
		return d.Escape(path)
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", Show(path), pe.Err)
	}
	return fmt.Errorf("%s: %w", Show(path), err)
}

// Escapes reports whether a root refused to be left.
func Escapes(err error) bool {
	pe, ok := errors.AsType[*fs.PathError](err)
	return ok && pe.Err.Error() == "path escapes from parent"
}

// Real returns the name with its symbolic links resolved, so that what is
// written replaces the file and not a link to it. The last part need not
// exist. A link that leads out stays for the root to refuse.
func (d *Dir) Real(name string) string {
	done, todo := ".", name
	for range 64 {
		first, rest, more := strings.Cut(filepath.ToSlash(todo), "/")
		next := filepath.Join(done, first)
		if target, err := d.Root.Readlink(next); err == nil && !filepath.IsAbs(target) {
			todo = filepath.Join(target, rest)
			continue
		}
		if !more {
			return next
		}
		done, todo = next, rest
	}
	return name
}

// Show writes a path so that it is one line and no more than it seems.
func Show(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}
