package pathpolicy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// resolver resolves paths to files inside and outside a workspace.
type resolver struct {
	workspace string // the agent's
	real      string // the workspace without links
	home      string
	noSecrets bool     // private names in the workspace are refused
	extra     []string // further private paths, without links
	unshared  []string // see Rule.Unshared
	library   func() []string
	roots     []*os.Root // folders opened so far
	planned   locations  // of all paths of the call; nil: it has no plan
}

// locations are what the paths of a call lead to.
type locations map[string]location

// location is what a path resolves to.
type location struct {
	path    string // without links; its last elements may not exist yet
	rel     string // relative to the workspace, if inside
	inside  bool
	private bool // keys, credentials and the rule's private files
}

// locate returns what a path leads to, according to the plan if there is one.
func (r *resolver) locate(path string) (location, error) {
	if r.planned == nil {
		return r.resolve(path)
	}
	loc, ok := r.planned[path]
	if !ok {
		return loc, fmt.Errorf("%s is not in the plan of the call", Show(path))
	}
	return loc, nil
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
	if r.isUnshared(real) {
		return location{}, unsharedError(path)
	}
	if rel, err := filepath.Rel(r.real, real); err == nil && filepath.IsLocal(rel) {
		if r.refused(real) {
			return location{}, refusedError(path)
		}
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
		return filepath.Join(r.home, path[1:])
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.workspace, path)
}

// private reports whether a path is private.
func (r *resolver) private(path string) bool {
	if r.library != nil && slices.ContainsFunc(r.library(), func(dir string) bool { return Inside(path, Real(dir)) }) {
		return false
	}
	return slices.ContainsFunc(r.extra, func(dir string) bool { return within(path, dir) }) || PrivatePath(path, r.home)
}

// refused reports whether a path in the workspace is one of the rule's private
// files, or has a private name that the rule refuses. A private folder that holds
// the workspace does not count.
func (r *resolver) refused(path string) bool {
	if rel, err := filepath.Rel(r.real, path); r.noSecrets && (err != nil || HasPrivate(rel)) {
		return true
	}
	return slices.ContainsFunc(r.extra, func(dir string) bool { return within(dir, r.real) && within(path, dir) })
}

// isUnshared reports whether a path is one of the files and folders of Rule.Unshared.
func (r *resolver) isUnshared(path string) bool {
	return slices.ContainsFunc(r.unshared, func(dir string) bool { return within(path, dir) })
}

// unsharedError is the error about a path that only private calls use.
func unsharedError(path string) error {
	return fmt.Errorf("%s: %s", Show(path), UnsharedText)
}

// UnsharedText says why a path of [Rule].Unshared is not used.
const UnsharedText = "private notes are read and changed only in a private chat with the person, and others read this one"

// refusedError is the error about a path in the workspace that is refused.
func refusedError(path string) error {
	return fmt.Errorf("%s belongs to Chela itself (its configuration or state), which tools do not use", Show(path))
}

// Inside reports whether a path is a folder or below it, judging by the names
// alone.
func Inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Exposed returns the first of some files and folders that access to a path
// would show: the path is in it, or holds it. A folder that holds the workspace
// does not count for what is in the workspace. It returns "" if there is none.
func Exposed(path, workspace string, never []string) string {
	mine := Inside(path, workspace)
	for _, n := range never {
		if Inside(path, n) && !(mine && Inside(workspace, n)) || Inside(n, path) && !mine {
			return n
		}
	}
	return ""
}

// Trail returns what a path depends on: the symbolic links on its way and, last, the
// file or folder that it leads to, which need not exist. None of them is in a
// folder that is a link. If one of them is replaced, the path leads elsewhere.
func Trail(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return []string{path}
	}
	var out []string
	top := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := top, strings.TrimPrefix(path, top)
	for links := 0; rest != ""; {
		var first string
		first, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, first)
		target, err := os.Readlink(next)
		if err != nil || links > maxLinks {
			at = next
			continue
		}
		links++
		out = append(out, next)
		if filepath.IsAbs(target) {
			at = top
		}
		rest = filepath.Join(strings.TrimPrefix(filepath.Clean(target), top), rest)
	}
	return append(out, at)
}

// Real returns what a path leads to, without links. Elements at its end need not
// exist.
func Real(path string) string {
	trail := Trail(path)
	return trail[len(trail)-1]
}

// maxLinks limits the symbolic links of a path, as the kernel does.
const maxLinks = 40

// within is Inside for file systems that do not distinguish upper and lower
// case.
func within(path, dir string) bool { return Inside(strings.ToLower(path), strings.ToLower(dir)) }

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
	for above := filepath.Dir(dir); ; above = filepath.Dir(dir) { // a link is found by openDir
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
	if len(r.unshared) > 0 {
		d.unshared = func(name string) bool { return r.isUnshared(filepath.Join(dir, name)) }
	}
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
	return descend(root, strings.TrimPrefix(path, top))
}

// descend opens a folder below another one, which it closes.
func descend(root *os.Root, name string) (*os.Root, error) {
	for part := range strings.SplitSeq(name, string(filepath.Separator)) {
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

// OpenParent opens the folder that holds a file, for an absolute path without links,
// element by element, so that a link created in the meantime is not followed. It returns
// it with the last element of the path. Folders that do not exist are made with the
// permissions perm; 0: they are an error. The caller closes the folder.
func OpenParent(path string, perm fs.FileMode) (*os.Root, string, error) {
	dir, base := filepath.Split(filepath.Clean(path))
	top := filepath.VolumeName(dir) + string(filepath.Separator)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, "", err
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(dir, top), string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := openSubdir(root, part)
		if errors.Is(err, fs.ErrNotExist) && perm != 0 {
			if err = root.Mkdir(part, perm); err == nil {
				next, err = openSubdir(root, part)
			}
		}
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, "", err
		}
		root = next
	}
	return root, base, nil
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
