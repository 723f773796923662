package fs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
)

// maxEntries is how many entries of a folder are listed.
const maxEntries = 1000

type lsArgs struct {
	Path string `json:"path"`
}

func (a lsArgs) paths() []string { return []string{a.Path} }

func newLs(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:     "ls",
		Label:    "List folder",
		Effect:   tool.Reads,
		Parallel: true,
		Aliases:  map[string]string{"dir": "path", "directory": "path"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string","description":"folder to list (default: the workspace)"}},
			"additionalProperties":false}`),
	}, ls)
}

func ls(ctx context.Context, w *workspace, a lsArgs) (tool.Result, error) {
	w, name, err := w.at(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	info, err := w.Root.Stat(name)
	if err != nil {
		return tool.Result{}, w.Fault(a.Path, err)
	}
	if !info.IsDir() {
		return tool.Result{}, fmt.Errorf("%s is not a folder; use read", reach.Show(a.Path))
	}
	sub, err := w.Root.OpenRoot(name)
	if err != nil {
		return tool.Result{}, w.Fault(a.Path, err)
	}
	defer func() { _ = sub.Close() }()
	f, err := sub.Open(".")
	if err != nil {
		return tool.Result{}, w.Fault(a.Path, err)
	}
	defer f.Close()
	var entries []fs.DirEntry
	total := 0
	for ctx.Err() == nil {
		batch, err := f.ReadDir(1024)
		total += len(batch)
		if room := 20*maxEntries - len(entries); room > 0 { // enough to sort before the cut
			entries = append(entries, batch[:min(room, len(batch))]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return tool.Result{}, w.Fault(a.Path, err)
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
		fmt.Fprintf(&b, "\n[%d of %d entries. Use find with a pattern for the others.]", maxEntries, total)
	}
	return tool.Text(strings.TrimSuffix(b.String(), "\n")), nil
}

// entry writes a line for an entry of a folder.
func (w *workspace) entry(dir string, e fs.DirEntry) string {
	full, name := join(dir, e.Name()), reach.Show(e.Name())
	if e.Type()&fs.ModeSymlink == 0 {
		return kind(e.Type()) + " " + name + detail(e)
	}
	target, _ := w.Root.Readlink(full)
	info, err := w.Root.Stat(full)
	switch {
	case err == nil:
		return kind(info.Mode()) + " " + name + " -> " + reach.Show(target)
	case reach.Escapes(err):
		return "[link] " + name + " -> " + reach.Show(target) + " (leads out of the " + map[bool]string{true: "folder)", false: "workspace)"}[w.Outside]
	}
	return "[link] " + name + " -> " + reach.Show(target) + " (dangling)"
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

// detail is the size of a file.
func detail(e fs.DirEntry) string {
	info, err := e.Info()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return " (" + figure.Bytes(info.Size()) + ")"
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}
