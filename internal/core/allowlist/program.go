package allowlist

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Env is the environment in which a command's programs are looked up.
type Env struct {
	Path      []string // directories of PATH, in order
	Workspace string   // the agent's folder; it may create files there
	Home      string
}

// program is the result of looking up a name.
type program struct {
	name   string // as written
	bare   bool   // it was looked up in PATH
	path   string // absolute path of the file
	target string // path without links
}

// find looks a name up as a shell does. Files inside the workspace do not
// count, because the agent could have created them.
func (pl Env) find(name string) (program, bool) {
	p := program{name: name, bare: !strings.ContainsAny(name, `/\`)}
	switch {
	case name == "" || strings.ContainsRune(name, 0):
		return p, false
	case !p.bare && !filepath.IsAbs(name):
		return p, false
	case !p.bare:
		p.path = pl.Search(filepath.Clean(name))
	default:
		p.path = pl.Search(name)
	}
	if p.path == "" {
		return p, false
	}
	target, err := filepath.EvalSymlinks(p.path)
	if err != nil {
		return p, false
	}
	p.target = target
	return p, !pl.inWorkspace(p.path) && !pl.inWorkspace(target)
}

// Outside returns the file of a program, or "" if it is not found or is in the
// workspace.
func (pl Env) Outside(name string) string {
	if p, ok := pl.find(name); ok {
		return p.path
	}
	return ""
}

// Search returns the program at an absolute path, or the first program with
// that name in PATH, or "". A relative directory in PATH ends the search: it
// would refer to the folder in which the command runs.
func (pl Env) Search(name string) string {
	if filepath.IsAbs(name) {
		return findExecutable(name)
	}
	for _, dir := range pl.Path {
		if !filepath.IsAbs(dir) {
			return ""
		}
		if path := findExecutable(filepath.Join(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

// findExecutable returns the program that a path without an extension refers
// to, or "".
func findExecutable(path string) string {
	for _, p := range candidates(runtime.GOOS, path, os.Getenv("PATHEXT")) {
		if executable(p) {
			return p
		}
	}
	return ""
}

// candidates returns the files that the path of a program may refer to on a
// system, in order of preference. On Windows these have the extensions of
// PATHEXT, but only .exe and .com count: a batch file is run by a shell that
// parses its arguments again, and other files are run by whatever program
// opens them.
func candidates(goos, path, pathext string) []string {
	if goos != "windows" {
		return []string{path}
	}
	pathext = cmp.Or(pathext, ".COM;.EXE")
	var endings []string
	for end := range strings.SplitSeq(strings.ToLower(pathext), ";") {
		if end == ".exe" || end == ".com" {
			endings = append(endings, end)
		}
	}
	if slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return []string{path}
	}
	for i, end := range endings {
		endings[i] = path + end
	}
	return endings
}

// inWorkspace reports whether a path is inside the workspace, directly or
// through links.
func (pl Env) inWorkspace(path string) bool {
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

// Never reports whether a pattern of an entry can match only programs in the workspace, which
// no entry allows.
func (pl Env) Never(pattern string) bool {
	text := expandHome(pattern, pl.Home)
	if i := strings.IndexAny(text, "*?"); i >= 0 {
		text = text[:strings.LastIndexByte(text[:i], '/')+1] + "x"
	}
	text = filepath.FromSlash(text)
	return filepath.IsAbs(text) && pl.inWorkspace(filepath.Clean(text))
}

// executable reports whether a file may be executed.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (info.Mode().Perm()&0o111 != 0 || runtime.GOOS == "windows")
}
