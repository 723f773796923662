package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// workspace is the directory that the tools work in; or, for those that may
// leave it, a folder outside.
type workspace struct {
	root *os.Root
	dir  string

	reach   *reach                 // leads to other folders; nil: nothing does
	outside bool                   // it is another folder
	hide    func(name string) bool // what a search passes over; nil: nothing
	hidden  int                    // that were passed over
}

func open(dir string) (*workspace, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	return &workspace{root: root, dir: dir}, nil
}

func (w *workspace) close() {
	_ = w.root.Close() // it was only a way to files
	if w.reach != nil {
		for _, root := range w.reach.roots {
			_ = root.Close() // the same
		}
	}
}

// at returns the folder through which a path is reached, and its name there.
func (w *workspace) at(path string) (*workspace, string, error) {
	if w.reach == nil {
		name, err := w.name(path)
		return w, name, err
	}
	p, err := w.reach.resolve(path)
	switch {
	case err != nil:
		return nil, "", err
	case !p.inside:
		return w.reach.open(p)
	}
	if name, err := w.name(path); err == nil {
		return w, name, nil
	}
	return w, p.rel, nil // it comes back through a link
}

// shown is a name as it is told: of another folder's, the whole path.
func (w *workspace) shown(name string) string {
	if w.outside {
		name = filepath.Join(w.dir, name)
	}
	return show(name)
}

// name returns the path as a name under the root: a path is relative to the
// workspace, or absolute inside it.
func (w *workspace) name(path string) (string, error) {
	if path == "" {
		return ".", nil
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %s holds a NUL byte", show(path))
	}
	rel := path
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", w.escape(path)
		}
		rel = filepath.Join(home, path[1:])
	}
	if filepath.IsAbs(rel) {
		var ok bool
		if rel, ok = w.under(filepath.Clean(rel)); !ok {
			return "", w.escape(path)
		}
	}
	rel = filepath.Clean(rel)
	if !filepath.IsLocal(rel) {
		return "", w.escape(path)
	}
	return rel, nil
}

// under returns an absolute path relative to the workspace, also when one of
// the two is written through a symbolic link.
func (w *workspace) under(path string) (string, bool) {
	dirs := []string{w.dir}
	if real, err := filepath.EvalSymlinks(w.dir); err == nil && real != w.dir {
		dirs = append(dirs, real)
	}
	for _, dir := range dirs {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

func (w *workspace) escape(path string) error {
	if w.outside {
		return fmt.Errorf("%s leads out of its folder by a link; name the file that it leads to", show(path))
	}
	return fmt.Errorf("%s is outside the workspace %s; the file tools stay inside it (for other places use exec)", show(path), w.dir)
}

// fault says what went wrong with a path, in words for the model.
func (w *workspace) fault(path string, err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", show(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", show(path))
	case escapes(err):
		return w.escape(path)
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", show(path), pe.Err)
	}
	return fmt.Errorf("%s: %w", show(path), err)
}

// escapes reports whether a root refused to be left.
func escapes(err error) bool {
	pe, ok := errors.AsType[*fs.PathError](err)
	return ok && pe.Err.Error() == "path escapes from parent"
}

// openFile opens a regular file for reading. It never waits: what the name
// leads to is looked at first, and again when it is open.
func (w *workspace) openFile(path, name string) (*os.File, fs.FileInfo, error) {
	info, err := w.root.Stat(name)
	if err != nil {
		return nil, nil, w.fault(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, w.fault(path, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err == nil && links(info) > 1 {
		err = manyNames(path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func manyNames(path string) error {
	return fmt.Errorf("%s has more than one name (a hard link), and the other may be outside the workspace; use exec for it", show(path))
}

// regular says why a file is none that can be read or written.
func regular(path string, info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%s is a folder; use ls", show(path))
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is a named pipe, not a file", show(path))
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("%s is a socket, not a file", show(path))
	}
	return fmt.Errorf("%s is a device, not a file", show(path))
}

// real returns the name with its symbolic links resolved, so that what is
// written replaces the file and not a link to it. The last part need not
// exist. A link that leads out stays for the root to refuse.
func (w *workspace) real(name string) string {
	done, todo := ".", name
	for range 64 {
		first, rest, more := strings.Cut(filepath.ToSlash(todo), "/")
		next := filepath.Join(done, first)
		if target, err := w.root.Readlink(next); err == nil && !filepath.IsAbs(target) {
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

// show writes a path so that it is one line and no more than it seems.
func show(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}
