package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// overrides are values that a person set for the time that the process runs, by path. They
// come after those of the command line and are in no file.
type overrides map[string]json.RawMessage

// OverrideValue is a value that is in force instead of that of the files.
type OverrideValue struct {
	Path  string
	Value json.RawMessage // with secrets redacted
}

// Overrides returns the values that were set with [Tree.Override], by path.
func (t *Tree) Overrides() []OverrideValue {
	var out []OverrideValue
	for _, path := range slices.Sorted(maps.Keys(t.opts.live)) {
		out = append(out, OverrideValue{path, t.redacted(path, t.opts.live[path])})
	}
	return out
}

// Override returns the configuration with a value in force that is not in its files, and
// stays so when they are read again. It refuses what [Tree.Draft] refuses, secrets, values
// inside of lists, and keys that take effect after a restart, because that ends the
// override.
func (t *Tree) Override(path string, value json.RawMessage) (*Tree, error) {
	steps, err := ParsePath(path)
	if err != nil || len(steps) == 0 {
		return nil, chela.Errorf(chela.CodeInvalid, "override %q: no such path", path)
	}
	path = FormatPath(steps)
	if Cold(path) || above(path) {
		return nil, chela.Errorf(chela.CodeInvalid,
			"%s takes effect after a restart, which ends overrides: change it in the configuration", path)
	}
	for i := range steps {
		if v, _ := ValueAt(t.root, steps[:i]); isList(v) {
			return nil, chela.Errorf(chela.CodeInvalid, "%s is in a list: override the whole list %s", path,
				FormatPath(steps[:i]))
		}
	}
	if _, err := decodeJSON(value); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "override %s: %w", path, err)
	}
	live := maps.Clone(t.opts.live)
	if live == nil {
		live = overrides{}
	}
	live[path] = value
	next, err := t.with(live)
	if err == nil && !bytes.Equal(t.redacted(path, value), At(value, "")) {
		return nil, chela.Errorf(chela.CodeInvalid, "the value of %s may be a secret, which cannot be overridden", path)
	}
	return next, err
}

// WithoutOverride returns the configuration without the override at a path; "": without
// all of them.
func (t *Tree) WithoutOverride(path string) (*Tree, error) {
	if path == "" {
		return t.with(nil)
	}
	steps, err := ParsePath(path)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	path = FormatPath(steps)
	if _, ok := t.opts.live[path]; !ok {
		return nil, &chela.Error{Code: chela.CodeNotFound, Message: path + " is not overridden", Err: chela.ErrNotFound}
	}
	live := maps.Clone(t.opts.live)
	delete(live, path)
	return t.with(live)
}

// with returns the configuration of the same files with other overrides.
func (t *Tree) with(live overrides) (*Tree, error) {
	next := &Tree{
		opts:    t.opts,
		path:    t.path,
		edited:  t.edited,
		files:   t.files,
		hash:    t.hash,
		broken:  t.broken,
		known:   known(),
		sources: map[string]Source{},
	}
	next.opts.live = live
	if err := next.build(t.path, Clone(t.raw)); err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "refused: %w", err)
	}
	if err := newUnknown(t, next); err != nil {
		return nil, err
	}
	return next, nil
}

// redacted returns a value as it may be shown at a path.
func (t *Tree) redacted(path string, value json.RawMessage) json.RawMessage {
	steps, err1 := ParsePath(path)
	v, err2 := decodeJSON(value)
	if err1 != nil || err2 != nil || len(steps) == 0 {
		return nil
	}
	root := map[string]any{}
	put(root, steps, v)
	return At(encode(viewer{t: t}.show(root, nil, false)), path)
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}
