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

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/tool"
)

type patchArgs struct {
	Input string `json:"input"`
}

func (a patchArgs) paths() []string {
	sections, err := parsePatch(a.Input)
	if err != nil {
		return nil // it is refused as a whole
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

// patch works out what all files become, and writes them when everything fits.
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

// tree is files as a patch leaves them.
type tree struct {
	w     *workspace
	files map[string]*file // by path
	order []*file
}

// file is one of them.
type file struct {
	path, name string
	w          *workspace  // through which it is reached
	had        fs.FileInfo // what is there now; nil: nothing
	was        []byte
	is         []byte
	gone       bool
	from       *file // it was moved
}

// get returns a file as it is so far.
func (t *tree) get(path string) (*file, error) {
	w, name, err := t.w.target(path)
	if err != nil {
		return nil, err
	}
	key := filepath.Join(w.Path, name)
	if f := t.files[key]; f != nil {
		return f, nil
	}
	f := &file{path: path, name: name, w: w, gone: true}
	if f.had, err = w.replaceable(path, name); err != nil {
		return nil, err
	}
	if f.had != nil {
		if f.was, f.had, err = w.slurp(path, name); err != nil {
			return nil, err
		}
		f.is, f.gone = f.was, false
	}
	t.files[key] = f
	t.order = append(t.order, f)
	return f, nil
}

// apply works out one section.
func (t *tree) apply(s section) error {
	f, err := t.get(s.path)
	switch {
	case err != nil:
		return err
	case s.op == addFile && !f.gone:
		return fmt.Errorf("%s exists already; update it", reach.Show(s.path))
	case s.op != addFile && f.gone:
		return fmt.Errorf("%s does not exist", reach.Show(s.path))
	}
	switch s.op {
	case addFile:
		f.gone, f.is = false, nil
		if len(s.text) > 0 {
			f.is = []byte(strings.Join(s.text, "\n") + "\n")
		}
		return nil
	case deleteFile:
		if t.w.IsLink(s.path) {
			return fmt.Errorf("%s is a symbolic link; use exec to delete it", reach.Show(s.path))
		}
		f.gone = true
		return nil
	}
	out, err := apply(string(f.is), s.hunks)
	if err != nil {
		return fmt.Errorf("%s: %w", reach.Show(s.path), err)
	}
	if s.to == "" {
		f.is = []byte(out)
		return nil
	}
	to, err := t.get(s.to)
	switch {
	case err != nil:
		return err
	case !to.gone:
		return fmt.Errorf("%s exists already; %s cannot be moved there", reach.Show(s.to), reach.Show(s.path))
	}
	to.is, to.gone, to.from = []byte(out), false, f
	f.gone = true
	return nil
}

// write writes the files, one after another: the new and the changed first.
func (t *tree) write() (tool.Result, error) {
	for _, f := range t.order { // before the first is written
		if err := f.unchanged(); err != nil {
			return tool.Result{}, fmt.Errorf("%w; nothing was changed", err)
		}
	}
	var done []string
	for _, gone := range [...]bool{false, true} {
		for _, f := range t.order {
			if f.gone != gone {
				continue
			}
			line, err := f.leave()
			if err != nil {
				return tool.Result{}, t.partly(done, err)
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

// partly says what was done before something went wrong.
func (t *tree) partly(done []string, err error) error {
	if len(done) == 0 {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return fmt.Errorf("%w; what was done before:\n%s", err, strings.Join(done, "\n"))
}

// unchanged returns an error when a file is not what was read.
func (f *file) unchanged() error {
	now, err := f.w.Root.Lstat(f.name)
	switch {
	case f.had == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case f.had != nil && err == nil && now.ModTime().Equal(f.had.ModTime()) && now.Size() == f.had.Size():
		return nil
	}
	return fmt.Errorf("%s was changed by something else meanwhile; read it again", reach.Show(f.path))
}

// leave makes one file what it is to be, and says what that was.
func (f *file) leave() (string, error) {
	w := f.w
	switch {
	case f.gone && f.had == nil: // it came and went
		return "", nil
	case f.gone:
		if err := w.Root.Remove(f.name); err != nil {
			return "", w.Fault(f.path, err)
		}
		return "D " + reach.Show(f.path), nil
	case f.had != nil && bytes.Equal(f.is, f.was):
		return "", nil
	}
	perm, line := fs.FileMode(0o644), "A "+reach.Show(f.path)
	switch {
	case f.had != nil:
		line = "M " + reach.Show(f.path)
	case f.from != nil:
		line += " (from " + reach.Show(f.from.path) + ")"
		if f.from.had != nil {
			perm = f.from.had.Mode().Perm()
		}
	}
	if dir := filepath.Dir(f.name); dir != "." {
		if err := w.Root.MkdirAll(dir, 0o755); err != nil {
			return "", w.Fault(f.path, err)
		}
	}
	if err := atomicfile.WriteIn(w.Root, f.name, f.is, perm); err != nil {
		return "", w.Fault(f.path, err)
	}
	return line, nil
}
