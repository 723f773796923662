package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

type patchArgs struct {
	Input string `json:"input"`
}

func (a patchArgs) paths() []string {
	sections, err := parsePatch(a.Input)
	if err != nil {
		return nil // the whole patch is refused
	}
	var out []string
	for _, s := range sections {
		if out = append(out, s.path); s.to != "" {
			out = append(out, s.to)
		}
	}
	return out
}

func newPatch(o Options) tool.Tool {
	return newTool(o, tool.Spec{
		Name:      "apply_patch",
		Label:     "Patch files",
		Effect:    tool.Writes,
		Groups:    []string{"group:fs"},
		With:      "write",
		Sandboxed: tool.Inside,
		InRuns:    true,
		Roles:     []tool.Role{tool.PatchesFiles},
		Title:     patchTitle,
		Aliases:   map[string]string{"patch": "input", "diff": "input", "text": "input"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"input":{"type":"string","minLength":1}},
			"required":["input"],"additionalProperties":false}`),
	}, patch)
}

// patchTitle returns the title of a call: the names of the files.
func patchTitle(args json.RawMessage) string {
	var a patchArgs
	_ = json.Unmarshal(args, &a) // a model sent it: a field may have another type
	var files []string
	for line := range strings.Lines(a.Input) {
		for _, op := range [...]string{addFile, updateFile, deleteFile, moveTo} {
			if file, ok := strings.CutPrefix(line, op); ok {
				files = append(files, strings.TrimSpace(file))
			}
		}
	}
	return strings.Join(files, ", ")
}

// patch computes the new content of all files, and writes them if everything
// fits.
func patch(ctx context.Context, w *workspace, a patchArgs) (tool.Result, error) {
	sections, err := parsePatch(a.Input)
	if err != nil {
		return tool.Result{}, err
	}
	t := &tree{w: w, files: map[string]*file{}}
	unlock, err := t.lock(ctx, sections)
	if err != nil {
		return tool.Result{}, err
	}
	defer unlock()
	for _, s := range sections {
		if err := t.apply(s); err != nil {
			return tool.Result{}, fmt.Errorf("%w; nothing was changed", err)
		}
	}
	return t.write(ctx)
}

// tree holds the files as changed by a patch.
type tree struct {
	w     *workspace
	files map[string]*file // by path
	order []*file
}

// file is a file changed by a patch.
type file struct {
	path, name string
	w          *workspace  // folder through which it is accessed
	info       fs.FileInfo // existing file; nil: none
	before     []byte
	text       plainFile // before
	after      []byte
	deleted    bool
	from       *file // file that was moved here; nil: none
}

// lock waits until no other change of the files of a patch is in progress.
func (t *tree) lock(ctx context.Context, sections []section) (unlock func(), err error) {
	var targets []string
	for _, s := range sections {
		for _, path := range [...]string{s.path, s.to} {
			if path == "" {
				continue
			}
			w, name, err := t.w.target(path)
			if err != nil {
				return nil, fmt.Errorf("%w; nothing was changed", err)
			}
			targets = append(targets, w.keys(name)...)
		}
	}
	return t.w.journal.Lock(ctx, targets...)
}

// get returns a file in its current state.
func (t *tree) get(path string) (*file, error) {
	w, name, err := t.w.target(path)
	if err != nil {
		return nil, err
	}
	key := filepath.Join(w.Path, name)
	if f := t.files[key]; f != nil {
		return f, nil
	}
	f := &file{path: path, name: name, w: w, deleted: true}
	if f.info, err = w.existing(path, name); err != nil {
		return nil, err
	}
	if f.info != nil {
		if f.before, f.info, err = w.readForEdit(path, name); err != nil {
			return nil, err
		}
		if f.text, err = openText(path, name, f.before); err != nil {
			return nil, err
		}
		f.after, f.deleted = f.text.text, false
	} else {
		f.text = plainFile{path: path, name: name}
	}
	t.files[key] = f
	t.order = append(t.order, f)
	return f, nil
}

// apply applies one section.
func (t *tree) apply(s section) error {
	f, err := t.get(s.path)
	switch {
	case err != nil:
		return err
	case s.op == addFile && !f.deleted:
		return fmt.Errorf("%s already exists; update it", pathpolicy.Show(s.path))
	case s.op != addFile && f.deleted:
		return fmt.Errorf("%s does not exist", pathpolicy.Show(s.path))
	}
	switch s.op {
	case addFile:
		f.deleted, f.after = false, nil
		if len(s.text) > 0 {
			f.after = []byte(strings.Join(s.text, "\n") + "\n")
		}
		return nil
	case deleteFile:
		if t.w.IsLink(s.path) {
			return fmt.Errorf("%s is a symbolic link; use exec to delete it", pathpolicy.Show(s.path))
		}
		f.deleted = true
		return nil
	}
	out, err := apply(string(f.after), f.text.hunks(s.hunks))
	if err != nil {
		return fmt.Errorf("%s: %w", pathpolicy.Show(s.path), err)
	}
	if s.to == "" {
		f.after = []byte(out)
		return nil
	}
	to, err := t.get(s.to)
	switch {
	case err != nil:
		return err
	case !to.deleted:
		return fmt.Errorf("%s already exists; %s cannot be moved there", pathpolicy.Show(s.to), pathpolicy.Show(s.path))
	}
	to.after, to.deleted, to.from = []byte(out), false, f
	to.text.charset, to.text.text = f.text.charset, f.text.text
	f.deleted = true
	return nil
}

// write writes the files one after another. Deletions come last.
func (t *tree) write(ctx context.Context) (tool.Result, error) {
	for _, f := range t.order { // before the first write
		if !f.deleted {
			var err error
			if f.after, err = f.text.encode(f.after); err != nil {
				return tool.Result{}, err
			}
		}
		if err := f.w.unchanged(f.path, f.name, f.info); err != nil {
			return tool.Result{}, fmt.Errorf("%w; nothing was changed", err)
		}
	}
	var files []*file
	var edits []journal.Edit
	for _, deleted := range [...]bool{false, true} {
		for _, f := range t.order {
			if f.deleted == deleted && f.changed() {
				files, edits = append(files, f), append(edits, f.edit())
			}
		}
	}
	if len(files) == 0 {
		return tool.Text("The patch changes nothing."), nil
	}
	var done []string
	err := t.w.record(ctx, edits, func(i int) error {
		line, err := files[i].write()
		if err == nil {
			done = append(done, line)
		}
		return err
	})
	if err != nil {
		return tool.Result{}, t.partialError(done, err)
	}
	return tool.Text("Done:\n" + strings.Join(done, "\n")), nil
}

// partialError adds to an error the changes that were made before it.
func (t *tree) partialError(done []string, err error) error {
	if len(done) == 0 {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("%w; these changes were made before:\n%s", err, strings.Join(done, "\n"))
}

// changed reports whether the patch changes the file.
func (f *file) changed() bool {
	if f.info == nil {
		return !f.deleted // otherwise it is added and deleted in the same patch
	}
	return f.deleted || !bytes.Equal(f.after, f.before)
}

// perm returns the permissions of the file if it is new.
func (f *file) perm() fs.FileMode {
	if f.from != nil && f.from.info != nil {
		return f.from.info.Mode().Perm()
	}
	return 0o644
}

// edit returns the change of the file, for the journal.
func (f *file) edit() journal.Edit {
	e := f.w.edit(f.name, content(f.before, f.info), f.after, f.perm())
	if f.deleted {
		e.After = journal.Content{}
	}
	if f.from != nil && f.info == nil {
		e.From = f.from.w.real(f.from.name)
	}
	return e
}

// write writes or deletes the file, which the patch changes, and returns a line that
// describes the change.
func (f *file) write() (string, error) {
	w := f.w
	if f.deleted {
		dir, base, err := w.Enter(f.name)
		if err == nil {
			err = errors.Join(dir.Remove(base), dir.Close())
		}
		if err != nil {
			return "", w.PathError(f.path, err)
		}
		return "D " + pathpolicy.Show(f.path), nil
	}
	line := "A " + pathpolicy.Show(f.path)
	switch {
	case f.info != nil:
		line = "M " + pathpolicy.Show(f.path)
	case f.from != nil:
		line += " (from " + pathpolicy.Show(f.from.path) + ")"
	}
	return line, w.write(f.path, f.name, f.after, f.perm())
}

// hunks returns changes with the characters that they mean, see typed.
func (f *plainFile) hunks(in []hunk) []hunk {
	out := slices.Clone(in)
	for i := range out {
		out[i].context, out[i].lines = f.typed(out[i].context), slices.Clone(out[i].lines)
		for j := range out[i].lines {
			out[i].lines[j].text = f.typed(out[i].lines[j].text)
		}
	}
	return out
}
