package history

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Limits of the files of a workspace.
const (
	maxFiles = 20_000  // whose contents are kept
	maxSeen  = 200_000 // names that are looked at
)

// tree is what is known about the files of a workspace: those that make the assistant
// (see [part]), and all others except private ones and what is in the folders of [skips].
//
// Where the system tells which files change (see [watch]), a look costs what has changed.
// Elsewhere it compares sizes and times of all files, as Git does.
type tree struct {
	dir   string
	files map[string]stamp
	first bool // there are no records yet
	many  int  // from so many files on, changes are watched

	above map[string]bool // folders with files that are known; nil: not listed yet

	watch *watch // nil: changes are not reported
	bytes int64  // of the contents that are kept
	count int    // of these files
}

// stamp is the state of a file when it was compared with its last record. The zero stamp
// is that of a file that does not exist.
type stamp struct {
	size     int64
	modified time.Time
	inode    inode
	kept     bool // its content is, or would be: it is not too large, and there are not too many files
}

func (s stamp) there() bool { return s != stamp{} }

// same reports whether a file has not changed.
func (s stamp) same(now stamp) bool {
	return s.there() == now.there() && s.size == now.size && s.modified.Equal(now.modified) &&
		(s.inode == inode{} || s.inode == now.inode)
}

// close ends the watch.
func (t *tree) close() {
	if t != nil && t.watch != nil {
		t.watch.close()
		t.watch = nil
	}
}

// changed returns the files that may have changed since the last look, as they are now. The
// contents of at most size bytes are kept.
func (t *tree) changed(size int64) map[string]stamp {
	t.above = nil
	if t.watch != nil {
		if paths, folders, ok := t.watch.read(); ok {
			return t.reported(paths, folders, size)
		}
		t.close()
	}
	if t.bytes, t.count = 0, 0; len(t.files) >= t.many {
		t.watch = newWatch(t.dir)
	}
	now := map[string]stamp{}
	t.list(now, size)
	if t.watch != nil && !t.watch.complete() {
		t.close()
	}
	out := map[string]stamp{}
	for path, s := range now {
		if !t.files[path].same(s) {
			out[path] = s
		}
	}
	for path := range t.files {
		if _, ok := now[path]; !ok {
			out[path] = stamp{}
		}
	}
	for path, s := range now { // a limit may be reached earlier or later now
		if old, ok := t.files[path]; ok && old.same(s) && old.kept == s.kept && old.inode != s.inode {
			t.files[path] = s
		}
	}
	return out
}

// reported returns the reported files and those in new folders.
func (t *tree) reported(paths, folders []string, size int64) map[string]stamp {
	now := map[string]stamp{}
	for _, path := range paths {
		now[path] = stamp{}
		info, err := os.Lstat(path)
		if err == nil && t.wants(path) {
			t.add(now, path, fs.FileInfoToDirEntry(info), size)
		}
	}
	for _, dir := range folders {
		if !strings.HasPrefix(filepath.Base(dir), ".") || !inParts(t.dir, filepath.Dir(dir)) {
			t.walk(now, dir, size)
		}
	}
	maps.DeleteFunc(now,
		func(path string, s stamp) bool { return t.files[path].same(s) && t.files[path].there() == s.there() })
	return now
}

// accept notes the state of files that were compared.
func (t *tree) accept(changed map[string]stamp) {
	for path, s := range changed {
		old := t.files[path]
		if t.files[path] = s; !s.there() {
			delete(t.files, path)
			if t.watch != nil && old.kept { // otherwise they are counted again
				t.bytes, t.count = t.bytes-old.size, t.count-1
			}
		}
	}
	t.first = false
}

// parts are the folders of a workspace that make the assistant.
var parts = [...]string{"memory", "skills", filepath.Join(".agents", "skills")}

// part reports whether a path is that of a file that makes the assistant.
func part(dir, path string) bool {
	if filepath.Dir(path) == dir {
		return strings.EqualFold(filepath.Ext(path), ".md")
	}
	return inParts(dir, path)
}

func inParts(dir, path string) bool {
	return slices.ContainsFunc(parts[:],
		func(name string) bool { return pathpolicy.Inside(path, filepath.Join(dir, name)) })
}

// work reports whether a path is that of another file of the workspace, whose changes by
// commands can be undone.
func work(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) || pathpolicy.HasPrivate(rel) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(filepath.Dir(rel), string(filepath.Separator)), skips)
}

// skips reports whether a folder of that name is left out: it is a repository's, or what is
// in it was installed or made by a program that can do so again.
func skips(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "__pycache__", "venv", ".venv",
		".tox", ".nox", ".cache",
		".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".next", ".nuxt", ".svelte-kit", ".parcel-cache",
		".turbo", ".terraform",
		".direnv", ".yarn", ".pnpm-store", "lost+found":
		return true
	}
	return false
}

// output reports whether a folder of that name holds what a build makes, if Git ignores it.
func output(name string) bool {
	switch name {
	case "build", "dist", "out", "target", "bin", "obj", "coverage", "_build":
		return true
	}
	return false
}

// maxIgnore is the number of bytes of a .gitignore that are read.
const maxIgnore = 64 << 10

// ignores reports whether the .gitignore of a folder names another one in it.
func ignores(dir, name string) bool {
	info, err := os.Lstat(filepath.Join(dir, ".gitignore"))
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnore {
		return false
	}
	data, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if strings.Trim(strings.TrimSpace(line), "/") == name {
			return true
		}
	}
	return false
}

// leaves reports whether a folder is left out. One with files that are known stays: what is
// put into it, or beside it, later does not take their way back.
func (t *tree) leaves(path string) bool {
	dir, name := filepath.Split(path)
	if skips(name) || pathpolicy.Private(name) {
		return true
	}
	if _, err := os.Lstat(filepath.Join(path, "CACHEDIR.TAG")); err == nil {
		return !t.holds(path)
	}
	return output(name) && (ignores(dir, name) || ignores(t.dir, name)) && !t.holds(path)
}

// holds reports whether files in a folder are known.
func (t *tree) holds(dir string) bool {
	if t.above == nil {
		t.above = map[string]bool{}
		for path := range t.files {
			for path = filepath.Dir(path); !t.above[path] && len(path) > len(t.dir); path = filepath.Dir(path) {
				t.above[path] = true
			}
		}
	}
	return t.above[dir]
}

// wants reports whether a file in a folder that is not left out is looked at.
func (t *tree) wants(path string) bool {
	return part(t.dir, path) || !pathpolicy.Private(filepath.Base(path))
}

// list adds the files that make the assistant, and then the others.
func (t *tree) list(now map[string]stamp, size int64) {
	t.assistant(now, size)
	t.walk(now, t.dir, size)
}

// assistant adds the files that make the assistant.
func (t *tree) assistant(now map[string]stamp, size int64) {
	if t.watch != nil {
		t.watch.add(t.dir)
	}
	top, _ := os.ReadDir(t.dir) // a workspace that does not exist yet has no files
	for _, e := range top {
		if path := filepath.Join(t.dir, e.Name()); part(t.dir, path) {
			t.add(now, path, e, size)
		}
	}
	for _, name := range parts {
		root := filepath.Join(t.dir, name)
		info, err := os.Lstat(root)
		switch {
		case err != nil:
		case pathpolicy.Real(root) != root:
			t.add(now, root, fs.FileInfoToDirEntry(info), size)
		default:
			t.walk(now, root, size)
		}
	}
}

// walk adds the files in a folder. Links are among them, and not followed.
func (t *tree) walk(now map[string]stamp, root string, size int64) {
	inside := inParts(t.dir, root)
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case len(now) > maxSeen:
			return fs.SkipAll
		case err != nil:
			return fs.SkipDir
		// what is being installed or was replaced, or a repository
		case e.IsDir() && path != root && inside && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case e.IsDir() && path != t.dir && !inside && inParts(t.dir, path):
			if root != t.dir { // otherwise they have been listed
				t.walk(now, path, size)
			}
			return fs.SkipDir
		case e.IsDir() && path != t.dir && !inside && t.leaves(path):
			return fs.SkipDir
		case e.IsDir():
			if t.watch != nil {
				t.watch.add(path)
			}
			return nil
		case !inside && (!t.wants(path) || filepath.Dir(path) == t.dir && part(t.dir, path)):
			return nil
		}
		t.add(now, path, e, size)
		return nil
	})
}

// add adds a file.
func (t *tree) add(now map[string]stamp, path string, e fs.DirEntry, size int64) {
	if !listed(e) || atomicfile.IsTemp(e.Name()) || !utf8.ValidString(path) {
		return
	}
	info, err := e.Info()
	if err != nil {
		return
	}
	s := stamp{size: info.Size(), modified: info.ModTime(), inode: inodeOf(info)}
	before, again := now[path]
	if !again && t.watch != nil && t.watch.done {
		before = t.files[path]
	}
	if before.kept { // it is counted
		t.bytes, t.count = t.bytes-before.size, t.count-1
	}
	if s.kept = s.size <= journal.MaxContent && t.count < maxFiles && t.bytes+s.size <= size; s.kept {
		t.bytes, t.count = t.bytes+s.size, t.count+1
	}
	now[path] = s
}

// listed reports whether the history has the content of a file: of regular files and links.
func listed(e fs.DirEntry) bool { return e.Type().IsRegular() || e.Type() == fs.ModeSymlink }
