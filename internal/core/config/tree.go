package config

import (
	"bytes"
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

	"github.com/chela-ai/chela/internal/core/shell"
)

// Options says how a configuration is loaded. The zero Options uses the environment
// of the process and has no last good file.
type Options struct {
	Env func(string) string // nil: os.Getenv
	// file that [Tree.SaveLastGood] writes, used when the configuration is invalid; empty: none
	LastGood  string
	Overrides map[string]json.RawMessage // by path; from the command line

	live overrides // see [Tree.Override]
	bare bool      // leave out the environment variables of keys
}

// Load reads a configuration. A missing or empty file is an empty configuration,
// but it is invalid when the last good file shows that there was one. When the file is invalid
// and there is a last good file, Load returns the tree of that file, and its
// [Tree.Broken] returns the error.
func (o Options) Load(path string) (*Tree, error) {
	t, err := o.Read(path)
	if err == nil || o.LastGood == "" {
		return t, err
	}
	return o.withEnv().previous(path, err)
}

// Read is [Options.Load] that fails when the file is invalid.
func (o Options) Read(path string) (*Tree, error) { return o.withEnv().load(path, path, nil) }

// ReadText is [Options.Read] with the text of the file, which is not read and need not
// exist.
func (o Options) ReadText(path string, text []byte) (*Tree, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return o.withEnv().load(path, path, map[string][]byte{path: text})
}

func (o Options) withEnv() Options {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	return o
}

// previous returns the configuration of the last good file, which is used instead of
// one that cannot be used because of err. If there is none, it returns err.
func (o Options) previous(path string, err error) (*Tree, error) {
	if _, gerr := o.lastGood(path); gerr != nil {
		return nil, err
	}
	good, gerr := o.load(path, o.LastGood, nil)
	if gerr != nil {
		return nil, err
	}
	good.broken = err
	return good, nil
}

// Previous returns the last good configuration, to be used instead of t with which the
// program could not start because of err. It returns err if there is none, or if it is
// the same.
func (t *Tree) Previous(err error) (*Tree, error) {
	if t.opts.LastGood == "" || t.broken != nil {
		return nil, err
	}
	good, perr := t.opts.previous(t.path, err)
	if perr != nil || len(good.Changes(t)) == 0 {
		return nil, err
	}
	good.failed = t.hash
	return good, nil
}

// Failed reports whether t is used instead of another configuration, with which the
// program could not start.
func (t *Tree) Failed(other *Tree) bool { return t.failed != "" && t.failed == other.hash }

// Tree is a configuration. It is immutable and safe for concurrent use.
type Tree struct {
	opts      Options
	path      string
	edited    map[string][]byte
	files     []string
	hash      string
	raw       any            // the file with its includes, before substitution
	root      map[string]any // the effective configuration
	known     *node
	sources   map[string]Source // by path, where it is not FromFile
	unused    []string
	unguarded []Problem
	issues    []Problem
	broken    error
	failed    string // hash of the configuration instead of which it is used, see Previous
}

// load reads the configuration for path from file. The texts in edited are used
// instead of the files.
func (o Options) load(path, file string, edited map[string][]byte) (*Tree, error) {
	t := &Tree{opts: o, path: path, edited: edited, known: known(), sources: map[string]Source{}}
	raw, err := t.read(file)
	if err != nil {
		return nil, t.unusable(file, Problem{Message: err.Error(), Fatal: true})
	}
	if err := t.build(file, raw); err != nil {
		return nil, err
	}
	return t, nil
}

// build makes the effective configuration from that of a file.
func (t *Tree) build(file string, raw any) error {
	root, ok := raw.(map[string]any)
	if !ok {
		return t.unusable(file, Problem{Message: "want an object, not " + describe(raw), Fatal: true})
	}
	t.raw = Clone(raw)
	t.root = t.substituted(root)
	if err := t.layers(); err != nil {
		return t.unusable(file, Problem{Message: err.Error(), Fatal: true})
	}
	c := &checker{hidden: func(path string) bool { return t.sources[path] == FromEnv }}
	c.walk(t.root, t.known, nil)
	t.issues = append(t.issues, c.problems...)
	warnInexact(t.root, nil, func(p Problem) { t.issues = append(t.issues, p) })
	t.unused, t.unguarded = c.unused, c.unguarded
	if slices.ContainsFunc(t.issues, func(p Problem) bool { return p.Fatal }) {
		return t.unusable(file, t.issues...)
	}
	return nil
}

// warnInexact reports the numbers that programs may round when they change the
// configuration.
func warnInexact(v any, path []string, report func(Problem)) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			warnInexact(v[k], join(path, k), report)
		}
	case []any:
		for i, e := range v {
			warnInexact(e, join(path, itoa(i)), report)
		}
	case json.Number:
		if !exact(v) {
			report(Problem{Path: FormatPath(path),
				Message: "put this number in quotes: it has more digits than many programs keep when they change the configuration"})
		}
	}
}

// unusable returns the error about a file that cannot be used.
func (t *Tree) unusable(file string, problems ...Problem) error {
	return &Error{File: file, Problems: problems, Files: t.files}
}

// Validate returns all problems of a configuration. It can be loaded when none of
// them is fatal.
func (o Options) Validate(path string) []Problem {
	t, err := o.Read(path)
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
	r := &reader{edited: t.edited, sum: sha256.New(), root: t.dir()}
	v, err := r.file(abs, nil)
	t.files, t.hash = r.files, hex.EncodeToString(r.sum.Sum(nil))
	if missing := errors.Is(err, fs.ErrNotExist) && len(r.files) == 0; missing || errors.Is(err, errBlank) {
		t.files = []string{abs}
		state := "is empty"
		if missing {
			state = "is missing"
		}
		return map[string]any{}, t.emptied(file, state)
	}
	return v, err
}

// emptied returns the error about a file without content, or without existence, when there
// was a configuration; nil: there was none, so that the defaults apply.
func (t *Tree) emptied(file, state string) error {
	good := t.opts.LastGood
	if good == "" {
		return nil
	}
	if file == good {
		return errBlank
	}
	if b, err := t.opts.lastGood(t.path); errors.Is(err, fs.ErrNotExist) || string(bytes.TrimSpace(b)) == "{}" {
		return nil
	}
	return fmt.Errorf(
		"the file %s, but there was a configuration. To get it back: cp %s %s; to begin with the defaults: echo '{}' > %s",
		state, shell.Quote(good), shell.Quote(file), shell.Quote(file))
}

// dir returns the directory whose files may be included, without symbolic links.
func (t *Tree) dir() string {
	dir := filepath.Dir(t.path)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
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
		t.issues = append(t.issues,
			Problem{Path: FormatPath(path), Message: "the variable " + name + " is not set; its name is used as the value"})
	}
	from := func(path []string) { t.sources[FormatPath(path)] = FromEnv }
	return substitute(root, nil, env, missing, from).(map[string]any)
}

// layers applies the environment variables of keys, and the overrides.
func (t *Tree) layers() error {
	for _, k := range table() {
		if k.Env == "" || t.opts.bare {
			continue
		}
		if v := Variable(t.opts.Env, k.Env); v != "" {
			put(t.root, strings.Split(k.Path, "."), v)
			t.sources[k.Path] = FromEnv
		}
	}
	return errors.Join(t.override(t.opts.Overrides), t.override(t.opts.live))
}

// override puts values in force.
func (t *Tree) override(values map[string]json.RawMessage) error {
	for _, path := range slices.Sorted(maps.Keys(values)) { // so that an object comes before its members
		value := values[path]
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

// put sets a value and makes the objects above it.
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

// Section returns the effective value at a path; nil: it is not set. It contains no
// defaults, because the parts of the program have their own. Durations and sizes of
// known keys are numbers.
func (t *Tree) Section(path string) json.RawMessage {
	steps, err := ParsePath(path)
	if err != nil {
		return nil
	}
	v, ok := ValueAt(t.root, steps)
	if !ok || v == nil {
		return nil
	}
	return encode(v)
}

// Texts returns the value at a path that is a text or a list of texts; nil: there is none.
func (t *Tree) Texts(path string) []string {
	var one string
	raw := t.Section(path)
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var list []string
	_ = json.Unmarshal(raw, &list) // the configuration is valid
	return list
}

// At returns the value at a path of a JSON text; nil: there is none.
func At(text json.RawMessage, path string) json.RawMessage {
	steps, err1 := ParsePath(path)
	v, err2 := decodeJSON(text)
	if err1 != nil || err2 != nil {
		return nil
	}
	if v, ok := ValueAt(v, steps); ok {
		return encode(v)
	}
	return nil
}

// ValueAt returns the value at a path in a value as JSON is decoded. A step into a list is
// the number of an element.
func ValueAt(v any, path []string) (any, bool) {
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

// encode returns v as JSON. A value that was decoded can always be encoded.
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

// Own returns all files that the configuration was read from, also those that
// could not be used. The first need not exist.
func (t *Tree) Own() []string {
	own := append([]string{t.path}, t.files...)
	if e, ok := errors.AsType[*Error](t.broken); ok {
		own = append(own, e.Files...)
	}
	return own
}

// Hash identifies the texts of the files.
func (t *Tree) Hash() string { return t.hash }

// Warnings returns the problems that are not fatal.
func (t *Tree) Warnings() []Problem { return slices.Clone(t.issues) }

// Unused returns the paths of known keys that are set but not used by this build,
// without those of [Tree.Unguarded].
func (t *Tree) Unused() []string { return slices.Clone(t.unused) }

// Unguarded returns the security keys that are set but not used by this build.
// People must be warned about them, because they may rely on them.
func (t *Tree) Unguarded() []Problem { return slices.Clone(t.unguarded) }

// Broken returns why the file is invalid, so that the last good configuration is
// used instead; nil: the file is valid.
func (t *Tree) Broken() error { return t.broken }

// Clone returns a deep copy of a value as JSON is decoded.
func Clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = Clone(e)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, e := range v {
			l[i] = Clone(e)
		}
		return l
	}
	return v
}
