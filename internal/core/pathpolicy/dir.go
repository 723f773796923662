package pathpolicy

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

// Dir is a folder through which files are accessed: the workspace or, for
// tools that may leave it, a folder outside.
type Dir struct {
	Root    *os.Root
	Path    string
	Outside bool // not the workspace

	resolver *resolver                        // finds other folders; nil: paths stay in this one
	hidden   func(name string) bool           // reports private names; nil: none is
	unshared func(name string) bool           // reports names that only private calls use; nil: none is
	hostPath func(path string) (string, bool) // finds a file by its path in a container; nil: none has one
	library  func() []string                  // see Rule.Library
	opened   []*os.Root                       // folders of the library
}

// Close closes the folder and the folders that were opened through it.
func (d *Dir) Close() {
	_ = d.Root.Close() // it was only used to open files
	for _, root := range d.opened {
		_ = root.Close() // as above
	}
	if d.resolver != nil {
		for _, root := range d.resolver.roots {
			_ = root.Close() // as above
		}
	}
}

// Hides reports whether the file of that name is private although the folder
// is not. Searches skip it.
func (d *Dir) Hides(name string) bool { return d.refusal(name, name) != nil }

// refusal returns why the file of a name, which has no links, is not used; nil: it may be.
func (d *Dir) refusal(name, path string) error {
	switch {
	case d.unshared != nil && d.unshared(name):
		return unsharedError(path)
	case d.hidden != nil && d.hidden(name):
		return refusedError(path)
	}
	return nil
}

// IsLink reports whether the path itself is a symbolic link.
func (d *Dir) IsLink(path string) bool {
	var info fs.FileInfo
	var err error
	if d.resolver != nil {
		info, err = os.Lstat(d.resolver.abs(path))
	} else {
		var name string
		if name, err = d.name(path); err == nil {
			info, err = d.Root.Lstat(name)
		}
	}
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// Resolve returns the folder through which a path is accessed, and the file's
// name in it.
func (d *Dir) Resolve(path string) (*Dir, string, error) {
	if d.resolver == nil {
		name, err := d.name(path)
		if err != nil {
			if at, rest, ok := d.inLibrary(path); ok {
				return at, rest, nil
			}
		}
		if err == nil && (d.hidden != nil || d.unshared != nil) {
			name = d.ResolveLinks(name)
			err = d.refusal(name, path)
		}
		return d, name, err
	}
	loc, err := d.resolver.locate(path)
	switch {
	case err != nil:
		return nil, "", err
	case !loc.inside:
		return d.resolver.open(loc)
	}
	return d, loc.rel, nil
}

// inLibrary returns the folder of the library that a path is in, and the name in it.
func (d *Dir) inLibrary(path string) (*Dir, string, bool) {
	if d.library == nil || !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, "", false
	}
	path = filepath.Clean(path)
	for _, dir := range d.library() {
		if !Inside(path, dir) {
			continue
		}
		root, err := openDir(Real(dir))
		if err != nil {
			return nil, "", false
		}
		d.opened = append(d.opened, root)
		rel, err := filepath.Rel(dir, path)
		return &Dir{Root: root, Path: dir, Outside: true}, rel, err == nil
	}
	return nil, "", false
}

// strict reports whether the names in the folder were checked and have no
// links, so that a link on the way is a change by another program.
func (d *Dir) strict() bool { return d.Outside || d.hidden != nil || d.unshared != nil }

// Enter opens the folder that a name is in and returns it with the last element
// of the name. It follows links only if what they lead to need not be checked.
// The caller closes the folder.
func (d *Dir) Enter(name string) (*os.Root, string, error) {
	dir, base := filepath.Split(name)
	dir = filepath.Clean(dir)
	if !d.strict() {
		root, err := d.Root.OpenRoot(dir)
		return root, base, err
	}
	if err := d.refusal(name, name); err != nil {
		return nil, "", err
	}
	root, err := d.Root.OpenRoot(".")
	if err == nil && dir != "." {
		root, err = descend(root, dir)
	}
	return root, base, err
}

// ShowName returns a name for display: the whole path if the folder is
// outside the workspace.
func (d *Dir) ShowName(name string) string {
	if d.Outside {
		name = filepath.Join(d.Path, name)
	}
	return Show(name)
}

// name returns the path as a name under the root. The path is relative to the
// workspace, or absolute and inside it.
func (d *Dir) name(path string) (string, error) {
	if path == "" {
		return ".", nil
	}
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path %s contains a NUL byte", Show(path))
	}
	rel := path
	if d.hostPath != nil {
		if host, ok := d.hostPath(path); ok {
			rel = host
		}
	}
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", d.EscapeError(path)
		}
		rel = filepath.Join(home, path[1:])
	}
	if filepath.IsAbs(rel) {
		var ok bool
		if rel, ok = d.under(filepath.Clean(rel)); !ok {
			return "", d.EscapeError(path)
		}
	}
	rel = filepath.Clean(rel)
	if !filepath.IsLocal(rel) {
		return "", d.EscapeError(path)
	}
	return rel, nil
}

// under returns an absolute path relative to the workspace. Either of them
// may contain symbolic links.
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

// EscapeError returns the error for a path that leads out, phrased for the
// model.
func (d *Dir) EscapeError(path string) error {
	if d.Outside {
		return fmt.Errorf("%s is a link that leads out of its folder; name the file it points to instead", Show(path))
	}
	return fmt.Errorf("%s is outside the workspace %s; the file tools work only inside it (use exec for other files)",
		Show(path), d.Path)
}

// PathError wraps an error about a path, phrased for the model.
func (d *Dir) PathError(path string, err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", Show(path))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", Show(path))
	case IsEscape(err):
		return d.EscapeError(path)
	case errors.As(err, &pe):
		return fmt.Errorf("%s: %w", Show(path), pe.Err)
	}
	return fmt.Errorf("%s: %w", Show(path), err)
}

// IsEscape reports whether err is an os.Root's refusal to leave its folder.
func IsEscape(err error) bool {
	pe, ok := errors.AsType[*fs.PathError](err)
	return ok && pe.Err.Error() == "path escapes from parent"
}

// ResolveLinks returns the name with its symbolic links resolved, so that
// writing replaces the file and not a link to it. The last element need not
// exist. A link that leads out is left for the root to refuse.
func (d *Dir) ResolveLinks(name string) string {
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

// Show returns a path for display, on one line. A path with unprintable
// characters is quoted.
func Show(path string) string {
	for _, r := range path {
		if !unicode.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	return path
}

// OpenFile opens a regular file for reading. It never blocks: the file type
// is checked before and after opening.
func (d *Dir) OpenFile(path, name string) (*os.File, fs.FileInfo, error) {
	root := d.Root
	if d.strict() {
		var err error
		if root, name, err = d.Enter(name); err != nil {
			return nil, nil, d.PathError(path, err)
		}
		defer root.Close()
	}
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, d.PathError(path, err)
	}
	if err := checkRegular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, d.PathError(path, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = CheckFile(path, info)
	}
	if err == nil && d.strict() { // the path had no links when it was resolved
		if now, lerr := root.Lstat(name); lerr != nil || !os.SameFile(now, info) {
			err = fmt.Errorf("%s was changed by another program in the meantime", Show(path))
		}
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
	return fmt.Errorf("%s has more than one name (hard links), and another may be outside the workspace; use exec for it",
		Show(path))
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
// name: .env, .env.local and prod.env do, .env.example and example.env do not.
func Secret(name string) bool {
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(name)), "~")
	if stem, ok := strings.CutSuffix(base, ".env"); ok && stem != "" {
		return !isExample("." + stem)
	}
	return (base == ".env" || base == ".envrc" || strings.HasPrefix(base, ".env.")) && !isExample(base)
}

// isExample reports whether the last part of a name says that it is only an example.
func isExample(name string) bool {
	switch filepath.Ext(name) {
	case ".example", ".sample", ".template", ".dist", ".md":
		return true
	}
	return false
}
