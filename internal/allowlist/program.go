package allowlist

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Place is where a command would run: what its programs are looked up with.
type Place struct {
	Path      []string // directories of PATH, in order
	Workspace string   // the agent's folder, in which it may make files
	Home      string
}

// program is the file that a name stands for.
type program struct {
	name   string // as it was written
	bare   bool   // it was looked up in PATH
	path   string // where it is found, absolute
	target string // without links
}

// find looks a name up as a shell does. What is found inside the workspace is
// not found: whoever may write there could have made it.
func (pl Place) find(name string) (program, bool) {
	p := program{name: name, bare: !strings.ContainsAny(name, `/\`)}
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return p, false
	case !p.bare && !filepath.IsAbs(name):
		return p, false
	case !p.bare:
		p.path = filepath.Clean(name)
	default:
		p.path = pl.Search(name)
	}
	if p.path == "" || !Executable(p.path) {
		return p, false
	}
	target, err := filepath.EvalSymlinks(p.path)
	if err != nil {
		return p, false
	}
	p.target = target
	return p, !pl.own(p.path) && !pl.own(target)
}

// Search returns the first program of that name in PATH; "" when there is none. A
// directory that is not absolute ends the search: it would be one of the folder
// where the command runs.
func (pl Place) Search(name string) string {
	for _, dir := range pl.Path {
		if !filepath.IsAbs(dir) {
			return ""
		}
		if path := filepath.Join(dir, name); Executable(path) {
			return path
		}
	}
	return ""
}

// own reports whether a path is inside the workspace, also when the way there
// goes through links.
func (pl Place) own(path string) bool {
	if pl.Workspace == "" {
		return false
	}
	roots := []string{pl.Workspace}
	if real, err := filepath.EvalSymlinks(pl.Workspace); err == nil {
		roots = append(roots, real)
	}
	real := path
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		real = filepath.Join(dir, filepath.Base(path))
	}
	for _, root := range roots {
		for _, p := range [...]string{path, real} {
			if rel, err := filepath.Rel(root, p); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

// Executable reports whether a file may be run.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (info.Mode().Perm()&0o111 != 0 || runtime.GOOS == "windows")
}
