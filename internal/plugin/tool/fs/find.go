package fs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

const (
	defaultFound = 200
	maxFound     = 2000
)

type findArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Limit   int    `json:"limit"`
}

func (a findArgs) paths() []string { return []string{a.Path} }

func newFind(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:   "find",
		Label:  "Find files",
		Effect: tool.Reads,
		Groups: []string{"group:fs", tool.Reading}, Sandboxed: tool.Inside,
		Parallel: true,
		Aliases:  map[string]string{"glob": "pattern", "name": "pattern", "dir": "path", "directory": "path"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"pattern":{"type":"string","minLength":1},
			"path":{"type":"string"},
			"limit":{"type":"integer","minimum":1,"maximum":2000,"description":"default 200"}},
			"required":["pattern"],"additionalProperties":false}`),
	}, find)
}

func find(ctx context.Context, w *workspace, a findArgs) (tool.Result, error) {
	match, err := glob(a.Pattern)
	if err != nil {
		return tool.Result{}, err
	}
	limit := min(cmp.Or(max(a.Limit, 0), defaultFound), maxFound)
	var b strings.Builder
	n := 0
	w, start, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	err = w.walk(ctx, a.Path, start, func(name, rel string, e fs.DirEntry) error {
		if !match(rel) {
			return nil
		}
		if n == limit {
			return errStop
		}
		n++
		b.WriteString(w.ShowName(name))
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
		return nil
	})
	more := errors.Is(err, errStop)
	if err != nil && !more {
		return tool.Result{}, err
	}
	if n == 0 {
		return tool.Text("Nothing matches " + pathpolicy.Show(a.Pattern) + "." + w.skippedNote()), nil
	}
	if more {
		fmt.Fprintf(&b, "\n[The first %d; there are more. Use a narrower pattern or a higher limit.]", n)
	}
	return tool.Text(strings.TrimSuffix(b.String(), "\n") + w.skippedNote()), nil
}

// errStop ends a walk that has found enough.
var errStop = errors.New("stop")

// glob returns a function that reports whether a path, relative to the start
// of the search, matches the pattern. A pattern without a slash matches
// names.
func glob(pattern string) (func(rel string) bool, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	if !doublestar.ValidatePattern(pattern) {
		return nil, fmt.Errorf("pattern %s is not a glob", pathpolicy.Show(pattern))
	}
	if !strings.Contains(pattern, "/") {
		return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, path.Base(rel)) }, nil
	}
	return func(rel string) bool { return doublestar.MatchUnvalidated(pattern, rel) }, nil
}

// walk calls f for everything under a path, in the order of names, with the
// name in the workspace and the path relative to the start. It does not
// follow links, and skips .git, private files and files that cannot be read.
func (w *workspace) walk(ctx context.Context, p, start string, f func(name, rel string, e fs.DirEntry) error) error {
	info, err := w.Root.Stat(start)
	if err != nil {
		return w.PathError(p, err)
	}
	if !info.IsDir() {
		return f(start, path.Base(start), fs.FileInfoToDirEntry(info))
	}
	return fs.WalkDir(w.Root.FS(), w.ResolveLinks(start), func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // skip folders that cannot be read
		}
		if e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		rel := strings.TrimPrefix(name, w.ResolveLinks(start)+"/")
		if rel == "." || name == w.ResolveLinks(start) {
			return nil
		}
		if w.Hides(name) {
			w.hidden++
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return f(name, rel, e)
	})
}

// skippedNote reports the private files that a search skipped.
func (w *workspace) skippedNote() string {
	if w.hidden == 0 {
		return ""
	}
	return fmt.Sprintf("\n\n[%d private files or folders were skipped; give one as the path to search it.]", w.hidden)
}
