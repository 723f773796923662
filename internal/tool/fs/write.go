package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
)

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (a writeArgs) paths() []string { return []string{a.Path} }

func newWrite(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:   "write",
		Label:  "Write file",
		Effect: tool.Writes,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string","minLength":1,"description":"file to write"},
			"content":{"type":"string","description":"the whole content"}},
			"required":["path","content"],"additionalProperties":false}`),
	}, write)
}

func write(_ context.Context, w *workspace, a writeArgs) (tool.Result, error) {
	w, name, err := w.target(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	had, err := w.replaceable(a.Path, name)
	if err != nil {
		return tool.Result{}, err
	}
	verb := "Created"
	if had != nil {
		verb = "Replaced"
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := w.Root.MkdirAll(dir, 0o755); err != nil {
			return tool.Result{}, w.Fault(a.Path, err)
		}
	}
	if err := atomicfile.WriteIn(w.Root, name, []byte(a.Content), 0o644); err != nil {
		return tool.Result{}, w.Fault(a.Path, err)
	}
	return tool.Text(fmt.Sprintf("%s %s (%s).", verb, reach.Show(a.Path), figure.Bytes(int64(len(a.Content))))), nil
}

// replaceable returns what a file that is to be written is now; nil: nothing.
func (w *workspace) replaceable(path, name string) (fs.FileInfo, error) {
	info, err := w.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, w.Fault(path, err)
	case info.Mode()&fs.ModeSymlink != 0: // one that could be followed was
		return nil, w.Escape(path)
	}
	if err := reach.Plain(path, info); err != nil {
		return nil, err
	}
	return info, nil
}

// target returns where a file is that may be written. The store of a
// version control system is not: what is in there is run by its commands.
func (w *workspace) target(path string) (*workspace, string, error) {
	w, name, err := w.at(path)
	if err != nil {
		return nil, "", err
	}
	name = w.Real(name)
	whole := name
	if w.Outside {
		whole = filepath.Join(w.Path, name)
	}
	for part := range strings.SplitSeq(filepath.ToSlash(whole), "/") {
		if part = strings.ToLower(strings.Map(visible, part)); part == ".git" || part == "git~1" {
			return nil, "", fmt.Errorf("%s is inside .git, which is not written by file tools; use git through exec", reach.Show(path))
		}
	}
	return w, name, nil
}

// visible drops the characters that some file systems leave out of names.
func visible(r rune) rune {
	if unicode.Is(unicode.Cf, r) {
		return -1
	}
	return r
}
