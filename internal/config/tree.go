package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Options says how a configuration is loaded. The zero Options uses the
// environment of the process and knows no last good file.
type Options struct {
	Env       func(string) string        // nil: os.Getenv
	LastGood  string                     // file that [Tree.Keep] writes, used when the configuration is broken; empty: none
	Overrides map[string]json.RawMessage // by path; from the command line
	Roots     []string                   // further directories whose files may be included
}

// Load reads a configuration with the environment of the process.
func Load(path string) (*Tree, error) { return Options{}.Load(path) }

// Load reads a configuration. A missing file is an empty one. When the file
// cannot be used, the error says why; with a last good file there is no error
// but a tree whose [Tree.Broken] says why.
func (o Options) Load(path string) (*Tree, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	t, err := o.load(path, path, nil)
	if err == nil || o.LastGood == "" {
		return t, err
	}
	if _, serr := os.Stat(o.LastGood); serr != nil {
		return nil, err
	}
	good, gerr := o.load(path, o.LastGood, nil)
	if gerr != nil {
		return nil, err
	}
	good.broken = err
	return good, nil
}

// Tree is a configuration. It is immutable and safe for concurrent use.
type Tree struct {
	opts      Options
	path      string
	edited    map[string][]byte
	files     []string
	hash      string
	raw       any            // the file with its includes, as written
	root      map[string]any // what is in force
	known     *node
	sources   map[string]Source // by path, where it is not File
	unused    []string
	unguarded []Problem
	issues    []Problem
	broken    error
}

// load reads the configuration for path from file. Files in edited are taken
// from there and not from disk.
func (o Options) load(path, file string, edited map[string][]byte) (*Tree, error) {
	t := &Tree{opts: o, path: path, edited: edited, known: known(), sources: map[string]Source{}}
	raw, err := t.read(file)
	if err != nil {
		return nil, &Error{File: file, Problems: []Problem{{Message: err.Error(), Fatal: true}}}
	}
	root, ok := raw.(map[string]any)
	if !ok {
		return nil, &Error{File: file, Problems: []Problem{{Message: "want an object, not " + describe(raw), Fatal: true}}}
	}
	t.raw = clone(raw)
	t.root = t.substituted(root)
	if err := t.layers(); err != nil {
		return nil, &Error{File: file, Problems: []Problem{{Message: err.Error(), Fatal: true}}}
	}
	c := &checker{hidden: func(path string) bool { return t.sources[path] == FromEnv }}
	c.walk(t.root, t.known, nil)
	t.issues = append(t.issues, c.problems...)
	t.unused, t.unguarded = c.unused, c.unguarded
	if slices.ContainsFunc(t.issues, func(p Problem) bool { return p.Fatal }) {
		return nil, &Error{File: file, Problems: t.issues}
	}
	return t, nil
}

// Validate returns everything that is to be said of a configuration. It can be
// loaded when no problem is fatal.
func (o Options) Validate(path string) []Problem {
	o.LastGood = ""
	t, err := o.Load(path)
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problems
	}
	return append(t.Warnings(), t.Unguarded()...)
}

// read reads a file with its includes.
func (t *Tree) read(file string) (any, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	r := &reader{edited: t.edited, sum: sha256.New(), roots: t.roots()}
	v, err := r.file(abs, nil)
	t.files, t.hash = r.files, hex.EncodeToString(r.sum.Sum(nil))
	if errors.Is(err, fs.ErrNotExist) && len(r.files) == 0 {
		t.files = []string{abs}
		return map[string]any{}, nil
	}
	return v, err
}

// roots returns the directories that hold what may be included.
func (t *Tree) roots() []string {
	var roots []string
	for _, root := range append([]string{filepath.Dir(t.path)}, t.opts.Roots...) {
		abs, err := filepath.Abs(root)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		roots = append(roots, abs)
	}
	return roots
}

// substituted returns root with the variables replaced.
func (t *Tree) substituted(root map[string]any) map[string]any {
	vars := fileEnv(root)
	env := func(name string) string {
		if v := t.opts.Env(name); v != "" {
			return v
		}
		if v := vars[name]; !unresolved(v) {
			return v
		}
		return ""
	}
	missing := func(path []string, name string) {
		t.issues = append(t.issues, Problem{Path: FormatPath(path), Message: "the variable " + name + " is not set; the value is used as it is written"})
	}
	from := func(path []string) { t.sources[FormatPath(path)] = FromEnv }
	return substitute(root, nil, env, missing, from).(map[string]any)
}

// layers puts variables that stand for a key, and overrides, over the file.
func (t *Tree) layers() error {
	for i := range table {
		k := &table[i]
		if k.Env == "" {
			continue
		}
		if v := Variable(t.opts.Env, k.Env); v != "" {
			put(t.root, strings.Split(k.Path, "."), v)
			t.sources[k.Path] = FromEnv
		}
	}
	for _, path := range slices.Sorted(maps.Keys(t.opts.Overrides)) { // an object before its members
		value := t.opts.Overrides[path]
		steps, err := ParsePath(path)
		if err != nil || len(steps) == 0 {
			return fmt.Errorf("override %q: %w", path, err)
		}
		v, err := decodeJSON(value)
		if err != nil {
			return fmt.Errorf("override %q: %w", path, err)
		}
		put(t.root, steps, v)
		t.sources[FormatPath(steps)] = Override
	}
	return nil
}

// Variable returns the value of CHELA_name, else of OPENCLAW_name.
func Variable(env func(string) string, name string) string {
	if v := env("CHELA_" + name); v != "" {
		return v
	}
	return env("OPENCLAW_" + name)
}

// put sets a value, making objects on the way.
func put(m map[string]any, path []string, v any) {
	for _, step := range path[:len(path)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[step] = next
		}
		m = next
	}
	m[path[len(path)-1]] = v
}

// Section returns what is in force at a path, nil when there is nothing.
// Defaults are not part of it: a part of the program has its own options.
// Durations and sizes of known keys are numbers in it.
func (t *Tree) Section(path string) json.RawMessage {
	steps, err := ParsePath(path)
	if err != nil {
		return nil
	}
	v, ok := lookup(t.root, steps)
	if !ok || v == nil {
		return nil
	}
	return encode(v)
}

func lookup(v any, path []string) (any, bool) {
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// encode returns v as JSON; what was decoded can be encoded.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

// Path returns the configuration's file.
func (t *Tree) Path() string { return t.path }

// Files returns all files that were read, the configuration's own first.
func (t *Tree) Files() []string { return slices.Clone(t.files) }

// Hash identifies the texts of the files as they were read.
func (t *Tree) Hash() string { return t.hash }

// Warnings returns what is wrong but does not stop anything.
func (t *Tree) Warnings() []Problem { return slices.Clone(t.issues) }

// Unused returns the paths of keys that are set and known, but not used by this
// build, without those of [Tree.Unguarded].
func (t *Tree) Unused() []string { return slices.Clone(t.unused) }

// Unguarded names the keys that are set and should protect somebody, but are
// not used by this build. People must be told: they may rely on them.
func (t *Tree) Unguarded() []Problem { return slices.Clone(t.unguarded) }

// Broken returns why the file could not be used and the last good one is in
// force instead; nil when all is well.
func (t *Tree) Broken() error { return t.broken }

// clone copies what decode gave.
func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = clone(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = clone(e)
		}
		return l
	}
	return v
}
