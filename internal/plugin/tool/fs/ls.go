package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxEntries is the maximum number of entries listed.
const maxEntries = 1000

type lsArgs struct {
	Path string `json:"path"`
}

func (a lsArgs) paths() []string { return []string{a.Path} }

func newLs(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:      "ls",
		Label:     "List folder",
		Effect:    tool.Reads,
		Names:     []string{"list_dir"},
		Groups:    []string{"group:fs", tool.Reading},
		Sandboxed: tool.Inside,
		Roles:     []tool.Role{tool.TakesNotes},
		Parallel:  true,
		Aliases:   map[string]string{"dir": "path", "directory": "path"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string"}},
			"additionalProperties":false}`),
	}, ls)
}

func ls(ctx context.Context, w *workspace, a lsArgs) (tool.Result, error) {
	w, name, err := w.resolve(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	info, err := w.Root.Stat(name)
	if err != nil {
		return tool.Result{}, w.PathError(a.Path, err)
	}
	if !info.IsDir() {
		return tool.Result{}, fmt.Errorf("%s is not a folder; use read", pathpolicy.Show(a.Path))
	}
	sub, _, err := w.Enter(name + "/.")
	if err != nil {
		return tool.Result{}, w.PathError(a.Path, err)
	}
	defer func() { _ = sub.Close() }()
	f, err := sub.Open(".")
	if err != nil {
		return tool.Result{}, w.PathError(a.Path, err)
	}
	defer f.Close()
	var entries []fs.DirEntry
	total := 0
	for ctx.Err() == nil {
		batch, err := f.ReadDir(1024)
		total += len(batch)
		if free := 20*maxEntries - len(entries); free > 0 { // sort more entries than are listed
			entries = append(entries, batch[:min(free, len(batch))]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.Result{}, w.PathError(a.Path, err)
		}
	}
	if ctx.Err() != nil {
		return tool.Result{}, ctx.Err()
	}
	if total == 0 {
		return tool.Text("The folder is empty."), nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, e := range entries[:min(len(entries), maxEntries)] {
		b.WriteString(w.entry(name, e))
		b.WriteByte('\n')
	}
	if total > maxEntries {
		fmt.Fprintf(&b, "\n[%d of %d entries. Use find with a pattern to see others.]", maxEntries, total)
	}
	return tool.Text(strings.TrimSuffix(b.String(), "\n")), nil
}

// entry returns the line for an entry of a folder.
func (w *workspace) entry(dir string, e fs.DirEntry) string {
	full, name := join(dir, e.Name()), pathpolicy.Show(e.Name())
	if e.Type()&fs.ModeSymlink == 0 {
		return kind(e.Type()) + " " + name + detail(e)
	}
	target, _ := w.Root.Readlink(full)
	info, err := w.Root.Stat(full)
	switch {
	case err == nil:
		return kind(info.Mode()) + " " + name + " -> " + pathpolicy.Show(target)
	case pathpolicy.IsEscape(err):
		return "[link] " + name + " -> " + pathpolicy.Show(target) + " (leads out of the " +
			map[bool]string{true: "folder)", false: "workspace)"}[w.Outside]
	}
	return "[link] " + name + " -> " + pathpolicy.Show(target) + " (dangling)"
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "[folder]"
	case m.IsRegular():
		return "[file]"
	case m&fs.ModeSocket != 0:
		return "[socket]"
	case m&fs.ModeNamedPipe != 0:
		return "[pipe]"
	}
	return "[device]"
}

// detail returns the size of a file.
func detail(e fs.DirEntry) string {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return " (" + humanize.Bytes(info.Size()) + ")"
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
