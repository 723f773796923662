package allowlist

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	return p, !pl.own(p.path) && !pl.own(target)
}

// Search returns the program that a path means, or the first of that name in
// PATH; "" when there is none. A directory that is not absolute ends the search:
// it would be one of the folder where the command runs.
func (pl Place) Search(name string) string {
	if filepath.IsAbs(name) {
		return located(name)
	}
	for _, dir := range pl.Path {
		if !filepath.IsAbs(dir) {
			return ""
		}
		if path := located(filepath.Join(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

// located returns the program that a path without an ending may mean; "": there
// is none.
func located(path string) string {
	for _, p := range spellings(runtime.GOOS, path, os.Getenv("PATHEXT")) {
		if executable(p) {
			return p
		}
	}
	return ""
}

// spellings returns the files that a path of a program may mean on a system, the
// first first: on Windows those with the endings of PATHEXT. Of these programs
// alone count. A batch file is read by a shell of its own, which takes its
// arguments apart anew, and a text of another kind by whatever opens it.
func spellings(goos, path, pathext string) []string {
	if goos != "windows" {
		return []string{path}
	}
	if pathext == "" {
		pathext = ".COM;.EXE"
	}
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

// executable reports whether a file may be run.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (info.Mode().Perm()&0o111 != 0 || runtime.GOOS == "windows")
}
