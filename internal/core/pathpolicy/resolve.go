package pathpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
)

// resolver resolves paths to files inside and outside a workspace.
type resolver struct {
	workspace string // the agent's
	real      string // the workspace without links
	judge     shell.Judge
	extra     []string   // further private paths, without links
	roots     []*os.Root // folders opened so far
}

// location is what a path resolves to.
type location struct {
	path    string // without links; its last elements may not exist yet
	rel     string // relative to the workspace, if inside
	inside  bool
	private bool // keys, credentials and the rule's private files
}

// resolve returns what a path currently leads to.
func (r *resolver) resolve(path string) (location, error) {
	if strings.ContainsRune(path, 0) {
		return location{}, fmt.Errorf("path %s contains a NUL byte", Show(path))
	}
	real, err := resolveLinks(r.abs(path))
	if err != nil {
		return location{}, fmt.Errorf("%s: %w", Show(path), cause(err))
	}
	if rel, err := filepath.Rel(r.real, real); err == nil && filepath.IsLocal(rel) {
		return location{path: real, rel: rel, inside: true}, nil
	}
	if systemDir(real) {
		return location{}, fmt.Errorf("%s is a system path, not a file; use exec", Show(path))
	}
	return location{path: real, private: r.private(real)}, nil
}

// abs returns the absolute form of a path. It does not resolve links.
func (r *resolver) abs(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(r.judge.Home, path[1:])
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.workspace, path)
}

// private reports whether a path is private.
func (r *resolver) private(path string) bool {
	for _, dir := range r.extra {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return r.judge.Private(filepath.ToSlash(path))
}

// systemDir reports whether a path is in one of the file systems by which the
// kernel exposes itself and its devices.
func systemDir(path string) bool {
	for _, dir := range [...]string{"/proc", "/sys", "/dev"} {
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// resolveLinks returns a path without links. Elements at its end that do not
// exist are kept.
func resolveLinks(path string) (string, error) {
	rest := ""
	for p := path; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		above := filepath.Dir(p)
		if !errors.Is(err, fs.ErrNotExist) || above == p {
			return "", err
		}
		rest, p = filepath.Join(filepath.Base(p), rest), above
	}
}

// open opens the folder that holds a location outside the workspace, and
// returns the location's name in it.
func (r *resolver) open(p location) (*Dir, string, error) {
	dir := p.path
	for above := filepath.Dir(dir); ; above = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() || above == dir {
			break
		}
		dir = above
	}
	root, err := openDir(dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Show(p.path), cause(err))
	}
	r.roots = append(r.roots, root)
	name, err := filepath.Rel(dir, p.path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Show(p.path), err)
	}
	d := &Dir{Root: root, Path: dir, Outside: true}
	if !p.private { // access to a private folder covers its content
		d.hidden = func(name string) bool {
			path := filepath.Join(dir, name)
			return systemDir(path) || r.private(path)
		}
	}
	return d, name, nil
}

// openDir opens a folder whose path has no links, element by element, so that
// a link created in the meantime is not followed.
func openDir(path string) (*os.Root, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, top), string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := openSubdir(root, part)
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// openSubdir opens a folder in a folder.
func openSubdir(root *os.Root, part string) (*os.Root, error) {
	before, err := root.Lstat(part)
	if err != nil {
		return nil, err
	}
	next, err := root.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s was changed by another program in the meantime", Show(part))
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// cause returns the error without the path it is about.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
