package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/spelling"
)

// Problem is something that a person should know of the configuration.
type Problem struct {
	Path    string // of the key; empty: the whole
	Message string
	Fatal   bool // the configuration is not used
	Unknown bool // the key is unknown
}

// String returns "path: message".
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Error is a configuration that cannot be used.
type Error struct {
	File     string
	Problems []Problem // at least one is fatal
}

// Error names the file once, and returns the fatal problems, one a line.
func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		if p.Fatal {
			lines = append(lines, strings.TrimPrefix(p.String(), e.File+": ")) // where a file cannot be read its name stands first
		}
	}
	return fmt.Sprintf("configuration %s: %s", e.File, strings.Join(lines, "\n"))
}

// checker holds a tree against the known keys.
type checker struct {
	hidden    func(path string) bool // whether the value at a path is not to be shown
	problems  []Problem
	unused    []string
	unguarded []Problem
}

// walk checks v at path and returns it in the form that the parts read.
func (c *checker) walk(v any, n *node, path []string) any {
	if v == nil {
		return nil
	}
	if n.key != nil {
		if !n.key.Used() {
			c.leave(n.key, FormatPath(path))
		}
		checked, ok := n.key.check(v)
		if !ok {
			c.add(Problem{Path: FormatPath(path), Message: fmt.Sprintf("want %s, not %s", n.key.want(), c.describe(v, n, path)), Fatal: true})
			return v
		}
		v = checked
	} else if !n.free() {
		if _, ok := v.(map[string]any); !ok {
			c.add(Problem{Path: FormatPath(path), Message: "want an object, not " + c.describe(v, n, path), Fatal: true})
			return v
		}
	}
	if n.free() {
		return v
	}
	switch v := v.(type) {
	case []any:
		for i := range v {
			if n.elem != nil {
				v[i] = c.walk(v[i], n.elem, join(path, strconv.Itoa(i)))
			}
		}
	case map[string]any:
		c.members(v, n, path)
	}
	return v
}

// leave notes an unused key, unless the one that it stands below is noted. One
// that guards something is noted also below one that does not.
func (c *checker) leave(k *Key, path string) {
	if n := len(c.unguarded); n > 0 && below(path, c.unguarded[n-1].Path) {
		return
	}
	if k.Guards != "" {
		c.unguarded = append(c.unguarded, Problem{Path: path, Message: "has no effect in this version: it does not " + k.Guards})
		return
	}
	if n := len(c.unused); n == 0 || !below(path, c.unused[n-1]) {
		c.unused = append(c.unused, path)
	}
}

// below reports whether path is one below parent.
func below(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest[0] == '.' || rest[0] == '[')
}

func (c *checker) members(v map[string]any, n *node, path []string) {
	for _, k := range sortedKeys(v) {
		next := n.kids[k]
		if next == nil {
			next = n.wild
		}
		switch {
		case next != nil:
			if v[k] = c.walk(v[k], next, join(path, k)); v[k] == nil {
				delete(v, k) // null: the default
			}
		default:
			c.add(Problem{Path: FormatPath(join(path, k)), Message: "unknown key" + suggest(k, n, path), Unknown: true})
		}
	}
}

func (c *checker) add(p Problem) { c.problems = append(c.problems, p) }

// describe says what v is. What may be a secret is not quoted.
func (c *checker) describe(v any, n *node, path []string) string {
	if n.key != nil && n.key.Kind == Secret || namedSecret(path) || c.hidden(FormatPath(path)) {
		switch v.(type) {
		case string:
			return "a string"
		case json.Number:
			return "a number"
		}
	}
	return describe(v)
}

// describe says what v is.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		if r := []rune(v); len(r) > 60 {
			v = string(r[:60]) + "…"
		}
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case nil:
		return "null"
	}
	return fmt.Sprint(v)
}

// suggest names the known key that is most like an unknown one.
func suggest(name string, n *node, path []string) string {
	best, at := "", len(name)/3+2
	for _, k := range slices.Sorted(maps.Keys(n.kids)) {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(k)); d < at {
			best, at = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", FormatPath(join(path, best)))
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

func itoa(i int) string { return strconv.Itoa(i) }
