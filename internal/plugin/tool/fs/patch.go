package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

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
		Name:    "apply_patch",
		Label:   "Patch files",
		Effect:  tool.Writes,
		Aliases: map[string]string{"patch": "input", "diff": "input", "text": "input"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"input":{"type":"string","minLength":1,"description":"the patch, from *** Begin Patch to *** End Patch"}},
			"required":["input"],"additionalProperties":false}`),
	}, patch)
}

// patch computes the new content of all files, and writes them if everything
// fits.
func patch(_ context.Context, w *workspace, a patchArgs) (tool.Result, error) {
	sections, err := parsePatch(a.Input)
	if err != nil {
		return tool.Result{}, err
	}
	t := &tree{w: w, files: map[string]*file{}}
	for _, s := range sections {
		if err := t.apply(s); err != nil {
			return tool.Result{}, fmt.Errorf("%w; nothing was changed", err)
		}
	}
	return t.write()
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
	after      []byte
	deleted    bool
	from       *file // file that was moved here; nil: none
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
		f.after, f.deleted = f.before, false
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
	out, err := apply(string(f.after), s.hunks)
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
	f.deleted = true
	return nil
}

// write writes the files one after another. Deletions come last.
func (t *tree) write() (tool.Result, error) {
	for _, f := range t.order { // before the first write
		if err := f.w.unchanged(f.path, f.name, f.info); err != nil {
			return tool.Result{}, fmt.Errorf("%w; nothing was changed", err)
		}
	}
	var done []string
	for _, deleted := range [...]bool{false, true} {
		for _, f := range t.order {
			if f.deleted != deleted {
				continue
			}
			line, err := f.write()
			if err != nil {
				return tool.Result{}, t.partialError(done, err)
			}
			if line != "" {
				done = append(done, line)
			}
		}
	}
	if len(done) == 0 {
		return tool.Text("The patch changes nothing."), nil
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

// write writes or deletes the file and returns a line that describes the
// change.
func (f *file) write() (string, error) {
	w := f.w
	switch {
	case f.deleted && f.info == nil: // added and deleted in the same patch
		return "", nil
	case f.deleted:
		dir, base, err := w.Enter(f.name)
		if err == nil {
			err = errors.Join(dir.Remove(base), dir.Close())
		}
		if err != nil {
			return "", w.PathError(f.path, err)
		}
		return "D " + pathpolicy.Show(f.path), nil
	case f.info != nil && bytes.Equal(f.after, f.before):
		return "", nil
	}
	perm, line := fs.FileMode(0o644), "A "+pathpolicy.Show(f.path)
	switch {
	case f.info != nil:
		line = "M " + pathpolicy.Show(f.path)
	case f.from != nil:
		line += " (from " + pathpolicy.Show(f.from.path) + ")"
		if f.from.info != nil {
			perm = f.from.info.Mode().Perm()
		}
	}
	return line, w.write(f.path, f.name, f.after, perm)
}
