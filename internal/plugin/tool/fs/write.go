package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
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
		Groups: []string{"group:fs"}, Sandboxed: tool.Inside, Roles: []tool.Role{tool.WritesFiles, tool.TakesNotes},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"path":{"type":"string","minLength":1},
			"content":{"type":"string"}},
			"required":["path","content"],"additionalProperties":false}`),
	}, write)
}

func write(ctx context.Context, w *workspace, a writeArgs) (tool.Result, error) {
	w, name, err := w.target(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	unlock, err := w.journal.Lock(ctx, w.keys(name)...)
	if err != nil {
		return tool.Result{}, err
	}
	defer unlock()
	had, err := w.existing(a.Path, name)
	if err != nil {
		return tool.Result{}, err
	}
	before, err := w.before(a.Path, name, had)
	if err != nil {
		return tool.Result{}, err
	}
	data, err := w.encoded(a, name, had)
	if err != nil {
		return tool.Result{}, err
	}
	verb, note := "Created", ""
	if had != nil {
		verb = "Replaced"
	}
	if before.Large > 0 {
		note = fmt.Sprintf(" Its earlier content (%s) is not kept, so that this cannot be undone.",
			humanize.Bytes(before.Large))
	}
	e := w.edit(name, before, data, 0o644)
	if err := w.record(ctx, []journal.Edit{e}, func(int) error { return w.write(a.Path, name, data, 0o644) }); err != nil {
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("%s %s (%s).%s", verb, pathpolicy.Show(a.Path), humanize.Bytes(int64(len(data))), note)),
		nil
}

// encoded returns the content that a call writes, in the encoding of the file that it
// replaces. had is the file's state; nil: it does not exist.
func (w *workspace) encoded(a writeArgs, name string, had fs.FileInfo) ([]byte, error) {
	var raw []byte
	if had != nil && had.Size() <= maxEdit {
		var err error
		if raw, _, err = w.readForEdit(a.Path, name); err != nil {
			raw = nil // it may be replaced, but not read
		}
	}
	plain, err := openText(a.Path, name, raw)
	if err != nil {
		return nil, err
	}
	return plain.encode([]byte(plain.typed(a.Content)))
}

// write writes a file and the folders that it is in. The caller holds its [workspace.keys].
func (w *workspace) write(path, name string, data []byte, perm fs.FileMode) error {
	// an earlier part of the call, or another call, may have changed that
	if err := w.checkRepository(path, name); err != nil {
		return err
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := w.Root.MkdirAll(dir, 0o755); err != nil {
			return w.PathError(path, err)
		}
	}
	dir, base, err := w.Enter(name)
	if err != nil {
		return w.PathError(path, err)
	}
	defer func() { _ = dir.Close() }()
	if err := atomicfile.WriteIn(dir, base, data, perm); err != nil {
		return w.PathError(path, err)
	}
	return nil
}

// unchanged returns an error if a file changed since it had this state. nil means
// that it did not exist.
func (w *workspace) unchanged(path, name string, had fs.FileInfo) error {
	now, err := w.Root.Lstat(name)
	switch {
	case had == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case had != nil && err == nil && now.ModTime().Equal(had.ModTime()) && now.Size() == had.Size():
		return nil
	}
	return fmt.Errorf("%s was changed by another program in the meantime; read it again", pathpolicy.Show(path))
}

// existing returns the current state of a file that is to be written, or nil
// if there is none.
func (w *workspace) existing(path, name string) (fs.FileInfo, error) {
	info, err := w.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, w.PathError(path, err)
	case info.Mode()&fs.ModeSymlink != 0: // links that may be followed are resolved already
		return nil, w.EscapeError(path)
	}
	if err := pathpolicy.CheckFile(path, info); err != nil {
		return nil, err
	}
	return info, nil
}

// target returns the location of a file that may be written. Files of a
// version control system are refused, because its commands would execute some
// of them.
func (w *workspace) target(path string) (*workspace, string, error) {
	w, name, err := w.resolve(path)
	if err != nil {
		return nil, "", err
	}
	name = w.ResolveLinks(name)
	whole := name
	if w.Outside {
		whole = filepath.Join(w.Path, name)
	}
	for part := range strings.SplitSeq(filepath.ToSlash(whole), "/") {
		if part = strings.ToLower(strings.Map(pathpolicy.Visible, part)); part == ".git" || part == "git~1" {
			return nil, "", fmt.Errorf("%s is inside .git, which file tools do not write; use git through exec",
				pathpolicy.Show(path))
		}
	}
	if part := pathpolicy.RunsIn(name); part != "" && !w.asked && !w.Outside {
		return nil, "",
			fmt.Errorf("%s makes other programs run what is in it, and nobody can be asked here; exec with host gateway asks the person", pathpolicy.Show(part))
	}
	if err := w.checkRepository(path, name); err != nil {
		return nil, "", err
	}
	if w.fixed && !w.Outside && pathpolicy.Self(name) {
		return nil, "",
			fmt.Errorf("%s belongs to the assistant itself: only its owner can have it changed, or a person in a direct chat",
				pathpolicy.Show(path))
	}
	return w, name, nil
}

// checkRepository returns an error if a file is in a repository of Git without a working
// tree, or if it would make a folder one.
func (w *workspace) checkRepository(path, name string) error {
	dir := pathpolicy.RepositoryOf(w.Root, name)
	if dir == "" {
		return nil
	}
	return fmt.Errorf(
		"with %s, Git takes %s for a repository without a working tree, which file tools do not write; use git through exec",
		pathpolicy.Show(path), w.ShowName(dir))
}

// keys returns what is locked while a file is written: the file, and the folders that it may
// make a repository of Git together with files of other calls.
func (w *workspace) keys(name string) []string {
	out := []string{w.real(name)}
	for _, dir := range pathpolicy.RepositoryParts(name) {
		out = append(out, w.real(dir))
	}
	return out
}
