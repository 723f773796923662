package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Problem is an error or a warning about the configuration.
type Problem struct {
	Path    string `json:"path,omitempty"` // of the key; empty: the whole configuration
	Message string `json:"message"`
	Fatal   bool   `json:"fatal"`             // the configuration cannot be used
	Unknown bool   `json:"unknown,omitempty"` // the key is unknown
}

// String returns "path: message".
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Error says why a configuration cannot be used.
type Error struct {
	File     string
	Problems []Problem // at least one is fatal
	Files    []string  // that were read: the file and its includes
}

// Error returns the file and the fatal problems, one per line.
func (e *Error) Error() string {
	var lines []string
	for _, p := range e.Problems {
		if p.Fatal {
			// the error about a file that cannot be read begins with its name
			lines = append(lines, strings.TrimPrefix(p.String(), e.File+": "))
		}
	}
	return fmt.Sprintf("configuration %s: %s", e.File, strings.Join(lines, "\n"))
}

// checker checks a tree against the known keys.
type checker struct {
	hidden    func(path string) bool // reports whether the value at a path must not be shown
	problems  []Problem
	unused    []string
	unguarded []Problem
}

// walk checks v at path and returns it in the form that Key.check returns.
func (c *checker) walk(v any, n *node, path []string) any {
	if v == nil {
		return nil
	}
	if n.key != nil {
		if !n.key.Used() {
			c.recordUnused(n.key, FormatPath(path))
		}
		checked, ok := n.key.check(v)
		if !ok {
			c.add(Problem{Path: FormatPath(path), Message: fmt.Sprintf("want %s, not %s", n.key.want(), c.describe(v, n, path)),
				Fatal: true})
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

// recordUnused records an unused key, unless a key above it was recorded. A security
// key is recorded in any case, unless it is below another one.
func (c *checker) recordUnused(k *Key, path string) {
	if n := len(c.unguarded); n > 0 && below(path, c.unguarded[n-1].Path) {
		return
	}
	if k.Guards != "" {
		c.unguarded = append(c.unguarded,
			Problem{Path: path, Message: "has no effect in this version: it does not " + k.Guards})
		return
	}
	if n := len(c.unused); n == 0 || !below(path, c.unused[n-1]) {
		c.unused = append(c.unused, path)
	}
}

// below reports whether path is below parent.
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
		case n.key != nil && n.key.Kind == Secret && slices.Contains(refKeys[:], k):
		case next != nil:
			if v[k] = c.walk(v[k], next, join(path, k)); v[k] == nil {
				delete(v, k) // null stands for the default
			}
		default:
			c.add(Problem{Path: FormatPath(join(path, k)), Message: "unknown key" + suggest(k, n, path), Unknown: true})
		}
	}
}

// refKeys are the keys of a reference to a secret, see secret.Ref.
var refKeys = [...]string{"id", "provider", "source"}

func (c *checker) add(p Problem) { c.problems = append(c.problems, p) }

// describe describes v. A value that may be a secret is not quoted.
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

// describe describes v for an error.
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

// suggest returns the known key that is most similar to an unknown one.
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
