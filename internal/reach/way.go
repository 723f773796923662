package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/shell"
)

// way leads to the person's files outside of a workspace.
type way struct {
	home  string // the agent's workspace
	real  string // the same without links
	judge shell.Judge
	own   []string   // Chela's own, without links
	roots []*os.Root // that were opened
}

// place is where a path leads.
type place struct {
	path    string // without links; what does not exist yet at its end
	rel     string // from the workspace, when it is inside
	inside  bool
	private bool // keys, credentials, Chela's own files
}

func (r Rule) way(dir string) (*way, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	home, _ := os.UserHomeDir() // without one nothing is in it
	w := &way{home: dir, real: real, judge: shell.Judge{Dir: dir, Workspace: real, Home: home}}
	for _, path := range r.Own {
		if path, err := follow(path); err == nil {
			w.own = append(w.own, path)
		}
	}
	return w, nil
}

// resolve says where a path leads now.
func (w *way) resolve(path string) (place, error) {
	if strings.ContainsRune(path, 0) {
		return place{}, fmt.Errorf("path %s holds a NUL byte", Show(path))
	}
	real, err := follow(w.abs(path))
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", Show(path), cause(err))
	}
	if rel, err := filepath.Rel(w.real, real); err == nil && filepath.IsLocal(rel) {
		return place{path: real, rel: rel, inside: true}, nil
	}
	if machinery(real) {
		return place{}, fmt.Errorf("%s is no place for files; use exec", Show(path))
	}
	return place{path: real, private: w.private(real)}, nil
}

// abs is the path as it is written, from the root on.
func (w *way) abs(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(w.judge.Home, path[1:])
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.home, path)
}

// private reports whether a path is not for everyone's eyes.
func (w *way) private(path string) bool {
	for _, own := range w.own {
		if rel, err := filepath.Rel(own, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return w.judge.Private(filepath.ToSlash(path))
}

// machinery reports whether a path is where a system shows itself, and not
// files.
func machinery(path string) bool {
	for _, dir := range [...]string{"/proc", "/sys", "/dev"} {
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// follow returns a path without links. What is missing at its end stays.
func follow(path string) (string, error) {
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

// open opens the folder that holds a place outside, and returns the place's
// name in it.
func (w *way) open(p place) (*Dir, string, error) {
	dir := p.path
	for above := filepath.Dir(dir); ; above = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() || above == dir {
			break
		}
		dir = above
	}
	root, err := folder(dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Show(p.path), cause(err))
	}
	w.roots = append(w.roots, root)
	name, err := filepath.Rel(dir, p.path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", Show(p.path), err)
	}
	d := &Dir{Root: root, Path: dir, Outside: true}
	if !p.private { // who may see the whole may see its parts
		d.hide = func(name string) bool {
			path := filepath.Join(dir, name)
			return machinery(path) || w.private(path)
		}
	}
	return d, name, nil
}

// folder opens a folder whose path has no links, part for part, so that a link
// that is put there meanwhile is not followed.
func folder(path string) (*os.Root, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, top), string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := step(root, part)
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// step opens a folder of a folder.
func step(root *os.Root, part string) (*os.Root, error) {
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
		err = fmt.Errorf("%s was changed by something else meanwhile", Show(part))
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// cause is an error without the path that it is about.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
