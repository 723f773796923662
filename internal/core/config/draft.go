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

	"github.com/chela-ai/chela/internal/core/chela"
)

// Draft is a change of the files that is not written yet. The resulting
// configuration can be loaded; the parts of the program decide whether they can
// use it.
type Draft struct {
	was     *Tree
	tree    *Tree
	changed map[string][]byte // texts, by file
}

// Tree returns the resulting configuration.
func (d *Draft) Tree() *Tree { return d.tree }

// Texts returns the new texts of the files that the draft changes. The caller must not
// change them.
func (d *Draft) Texts() map[string][]byte { return d.changed }

// Replaced prepares the replacement of the texts of files, such as earlier ones.
func (t *Tree) Replaced(texts map[string][]byte) (*Draft, error) {
	if t.broken != nil {
		return nil, broken(t.broken)
	}
	return t.drafted(maps.Clone(texts))
}

// Write writes the files and returns the new configuration. It fails with
// [chela.CodeConflict] when a file has changed since the draft was made.
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

// errChanged says that the files have changed since they were read.
var errChanged = chela.Errorf(chela.CodeConflict, "the configuration was changed since it was read")

// Now reads the files again. When they are invalid, [Tree.Broken] of the result
// returns the error, and only [Tree.Rewrite] may be called on it.
func (t *Tree) Now() *Tree {
	now, err := t.Reload()
	if err == nil {
		return now
	}
	text, _ := os.ReadFile(t.path)
	sum := sha256.Sum256(text)
	return &Tree{opts: t.opts, path: t.path, known: t.known, files: t.files, hash: hex.EncodeToString(sum[:]), broken: err}
}

// Reload reads the files again. It fails when they are invalid.
func (t *Tree) Reload() (*Tree, error) { return t.opts.load(t.path, t.path, nil) }

// Draft prepares changes of t, all of them or none. It refuses a result that cannot
// be loaded, a new unknown key, a change of a value that is merged from several
// included files, and any change while the file is
// invalid. A value that is [redacted], or equal to the value of the ${NAME} in the
// file, leaves the text in the file unchanged.
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

// broken returns the error about a file that must be repaired first.
func broken(err error) error {
	return chela.Errorf(chela.CodeInvalid, "the configuration is invalid and must be repaired first: %w", err)
}

// drafted returns the draft with the new texts of files. Files whose text stays
// the same are left out. An empty text becomes that of an empty object.
func (t *Tree) drafted(changed map[string][]byte) (*Draft, error) {
	for file, text := range changed {
		if blank(text) {
			text = []byte("{}\n")
			changed[file] = text
		}
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
			delete(changed, file)
		}
	}
	files := t.opts
	files.bare = true // a variable may be set now, and not at the next start
	if _, err := files.load(t.path, t.path, changed); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	next, err := t.opts.load(t.path, t.path, changed)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	if t.broken == nil {
		if err := newUnknown(t, next); err != nil {
			return nil, err
		}
	}
	return &Draft{was: t, tree: next, changed: changed}, nil
}

// Rewrite prepares the replacement of the configuration by a new text. In a file
// that exists only the differences are changed, so that its comments, its includes
// and the secrets that clients do not see are preserved. A file that is invalid is
// replaced by the text.
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

// fresh prepares the replacement of a whole file.
func (t *Tree) fresh(text []byte) (*Draft, error) {
	file, err := filepath.Abs(t.path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return t.drafted(map[string][]byte{file: text})
}

// decodeObject decodes the text of a configuration.
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

// becoming prepares the edits that change the configuration to v, which contains no
// redacted values.
func (t *Tree) becoming(v any) (*Draft, error) {
	changed := map[string][]byte{}
	for _, e := range edits(t.raw, v, nil) {
		if err := t.write(changed, e.steps, e.value); err != nil {
			return nil, err
		}
	}
	return t.drafted(changed)
}

// edit is an [Edit] with a parsed path.
type edit struct {
	steps []string
	value json.RawMessage
}

// edits returns the smallest changes from now to want, in the order in which they
// can be applied.
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

// editsOfArray returns the changes of an array as changed, added and removed
// elements. It reports false when the difference needs more than that.
func editsOfArray(now, want []any, path []string) ([]edit, bool) {
	var out []edit
	same := func(a, b any) bool {
		if id := idOf(a); id != "" {
			return id == idOf(b)
		}
		return bytes.Equal(encode(a), encode(b))
	}
	at := 0 // in want
	var removed []edit
	for i, old := range now {
		if at < len(want) && (same(old, want[at]) || len(now) == len(want)) {
			out = append(out, edits(old, want[at], join(path, itoa(i)))...)
			at++
			continue
		}
		removed = append(removed, edit{join(path, itoa(i)), nil})
	}
	if len(removed) > 0 && at < len(want) {
		return nil, false
	}
	slices.Reverse(removed)
	for i := at; i < len(want); i++ {
		out = append(out, edit{join(path, itoa(i)), encode(want[i])})
	}
	return append(out, removed...), true
}
