package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
)

// Draft is a change of the files that is not written yet. The configuration
// that it makes can be loaded; whether the program can work with it, its parts
// say.
type Draft struct {
	was     *Tree
	tree    *Tree
	changed map[string][]byte // texts, by file
}

// Tree returns the configuration as it will be.
func (d *Draft) Tree() *Tree { return d.tree }

// Empty reports whether nothing changes.
func (d *Draft) Empty() bool { return len(d.changed) == 0 }

// Write writes the files and returns the configuration with them. It fails with
// [chela.CodeConflict] when somebody else wrote to one since the draft was made.
func (d *Draft) Write() (*Tree, error) {
	t := d.tree
	if d.was.Now().hash != d.was.hash {
		return nil, errChanged
	}
	for _, file := range slices.Sorted(maps.Keys(d.changed)) {
		if err := replace(file, d.changed[file]); err != nil {
			return nil, err
		}
	}
	return t.opts.Load(t.path)
}

// errChanged says that somebody else was faster.
var errChanged = chela.Errorf(chela.CodeConflict, "the configuration was changed since it was read")

// Now reads the files again. When they cannot be used, [Tree.Broken] says why,
// and a [Tree.Rewrite] is all that can be done with what is returned.
func (t *Tree) Now() *Tree {
	now, err := t.Again()
	if err == nil {
		return now
	}
	text, _ := os.ReadFile(t.path)
	sum := sha256.Sum256(text)
	return &Tree{opts: t.opts, path: t.path, known: t.known, files: t.files, hash: hex.EncodeToString(sum[:]), broken: err}
}

// Again reads the files again, and fails when they cannot be used.
func (t *Tree) Again() (*Tree, error) {
	o := t.opts
	o.LastGood = ""
	now, err := o.load(t.path, t.path, nil)
	if err == nil {
		now.opts = t.opts
	}
	return now, err
}

// Draft prepares changes, of which t is the state before. The result is refused
// as [Tree.Edit] says.
func (t *Tree) Draft(edits ...Edit) (*Draft, error) {
	if t.broken != nil {
		return nil, broken(t.broken)
	}
	changed := map[string][]byte{}
	for _, e := range edits {
		if err := t.apply(changed, e); err != nil {
			return nil, err
		}
	}
	return t.drafted(changed)
}

// broken says that a file must be mended first.
func broken(err error) error {
	return chela.Errorf(chela.CodeInvalid, "the configuration is broken and must be mended first: %w", err)
}

// drafted returns the draft with the texts of files, those that are as before
// left out.
func (t *Tree) drafted(changed map[string][]byte) (*Draft, error) {
	for file, text := range changed {
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
			delete(changed, file)
		}
	}
	o := t.opts
	o.LastGood = ""
	next, err := o.load(t.path, t.path, changed)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	if t.broken == nil {
		if err := newUnknown(t, next); err != nil {
			return nil, err
		}
	}
	next.opts = t.opts
	return &Draft{was: t, tree: next, changed: changed}, nil
}

// Rewrite prepares what makes the configuration say what a whole new text says.
// Where a file exists, only what differs is changed in it, so that comments,
// includes and secrets that the text's writer was not shown stay. Of a broken
// one the text takes the place as it is.
func (t *Tree) Rewrite(text []byte) (*Draft, error) {
	v, err := decodeObject(text)
	if err != nil {
		return nil, err
	}
	if v, err = t.restore(v, nil); err != nil {
		return nil, err
	}
	if t.broken != nil || !t.Exists() {
		return t.fresh(text)
	}
	return t.becoming(v)
}

// fresh prepares the whole text of a file.
func (t *Tree) fresh(text []byte) (*Draft, error) {
	file, err := filepath.Abs(t.path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return t.drafted(map[string][]byte{file: text})
}

// decodeObject reads the text of a configuration.
func decodeObject(text []byte) (any, error) {
	v, err := decode(text)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, chela.Errorf(chela.CodeInvalid, "want an object, not %s", describe(v))
	}
	return v, nil
}

// becoming prepares what makes the configuration say v, in which nothing is
// hidden.
func (t *Tree) becoming(v any) (*Draft, error) {
	changed := map[string][]byte{}
	for _, e := range edits(t.raw, v, nil) {
		if err := t.write(changed, e.steps, e.value); err != nil {
			return nil, err
		}
	}
	return t.drafted(changed)
}

// edit is an [Edit] that is sound.
type edit struct {
	steps []string
	value json.RawMessage
}

// edits returns the smallest changes that make now become want, in the order in
// which they can be made.
func edits(now, want any, path []string) []edit {
	switch w := want.(type) {
	case map[string]any:
		n, ok := now.(map[string]any)
		if !ok {
			break
		}
		var out []edit
		for _, k := range sortedKeys(w) {
			if old, ok := n[k]; ok {
				out = append(out, edits(old, w[k], join(path, k))...)
			} else {
				out = append(out, edit{join(path, k), encode(w[k])})
			}
		}
		for _, k := range sortedKeys(n) {
			if _, ok := w[k]; !ok {
				out = append(out, edit{join(path, k), nil})
			}
		}
		return out
	case []any:
		if n, ok := now.([]any); ok {
			if out, ok := editsOfArray(n, w, path); ok {
				return out
			}
		}
	}
	if bytes.Equal(encode(now), encode(want)) {
		return nil
	}
	return []edit{{path, encode(want)}}
}

// editsOfArray changes elements in their places, and adds or removes some; false
// when that is not all that it takes.
func editsOfArray(now, want []any, path []string) ([]edit, bool) {
	var out []edit
	same := func(a, b any) bool {
		if id := idOf(a); id != "" {
			return id == idOf(b)
		}
		return bytes.Equal(encode(a), encode(b))
	}
	at := 0 // in want
	var gone []edit
	for i, old := range now {
		if at < len(want) && (same(old, want[at]) || len(now) == len(want)) {
			out = append(out, edits(old, want[at], join(path, itoa(i)))...)
			at++
			continue
		}
		gone = append(gone, edit{join(path, itoa(i)), nil})
	}
	if len(gone) > 0 && at < len(want) {
		return nil, false
	}
	slices.Reverse(gone)
	for i := at; i < len(want); i++ {
		out = append(out, edit{join(path, itoa(i)), encode(want[i])})
	}
	return append(out, gone...), true
}
