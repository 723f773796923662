package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Kind is the type of a key's value.
type Kind int

// The kinds.
const (
	Any     Kind = iota // any value; keys below it are not checked
	Text                // a string
	Secret              // a string, or {source, id}; never shown
	Bool                // true or false
	Int                 // a whole number
	Number              // a number
	Seconds             // a number of seconds, or "5m"
	Millis              // a number of milliseconds, or "1.5s"
	Bytes               // a number of bytes, or "10mb"
	Texts               // an array of strings, or one string
	List                // an array
	Object              // an object
	Model               // "provider/model", or {primary, fallbacks}
)

// String describes the kind for people.
func (k Kind) String() string {
	return [...]string{
		"anything", "a string", "a string or {source, id}", "true or false", "a whole number", "a number",
		`a number of seconds or a duration such as "5m"`, `a number of milliseconds or a duration such as "1.5s"`,
		`a number of bytes or a size such as "10mb"`, "an array of strings", "an array", "an object",
		`a string such as "anthropic/claude-sonnet-4-5" or an object with primary and fallbacks`,
	}[min(max(k, 0), Model)]
}

// Key describes a known key.
type Key struct {
	Path    string   // * stands for any name, [] for each element
	Kind    Kind     // of its value
	Default string   // as JSON; empty: none
	Values  []string // the allowed strings; nil: any
	Env     string   // its environment variable without the prefix CHELA_ or OPENCLAW_; empty: none
	Idle    bool     // its value is checked and preserved, but not used by this build
	Guards  string   // for a security key that is not used: what it does not do, such as "keep sessions apart"
	Doc     string   // one line; empty: a key of OpenClaw that is preserved, but not used by this build
}

// Used reports whether this build reads the key.
func (k Key) Used() bool { return k.Doc != "" && !k.Idle }

// node is a node of the tree of known keys.
type node struct {
	key  *Key // nil: an object that only contains other keys
	kids map[string]*node
	wild *node // any name
	elem *node // each element
}

// known returns the tree of the known keys, which is built once and not changed.
var known = sync.OnceValue(func() *node {
	root := &node{}
	keys := table()
	for i := range keys {
		at := root
		for _, step := range strings.Split(keys[i].Path, ".") {
			name, elem := strings.CutSuffix(step, "[]")
			at = at.child(name)
			if elem {
				if at.elem == nil {
					at.elem = &node{}
				}
				at = at.elem
			}
		}
		at.key = &keys[i]
	}
	agents := root.child("agents")
	agents.child("entries").wild = agents.child("list").elem
	return root
})

func (n *node) child(name string) *node {
	if name == "*" {
		if n.wild == nil {
			n.wild = &node{}
		}
		return n.wild
	}
	if n.kids == nil {
		n.kids = map[string]*node{}
	}
	if n.kids[name] == nil {
		n.kids[name] = &node{}
	}
	return n.kids[name]
}

// at returns the node at a path; nil: unknown. Below a key of kind Any it returns
// the node of that key.
func (n *node) at(path []string) *node {
	for _, step := range path {
		switch {
		case n.free():
			return n
		case n.kids[step] != nil:
			n = n.kids[step]
		case n.elem != nil && isIndex(step):
			n = n.elem
		case n.wild != nil:
			n = n.wild
		default:
			return nil
		}
	}
	return n
}

// free reports whether any keys are allowed below n.
func (n *node) free() bool {
	return n.kids == nil && n.wild == nil && n.elem == nil &&
		(n.key == nil || n.key.Kind == Any || n.key.Kind == Object || n.key.Kind == List)
}

func isIndex(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}

// check returns v in the form that the parts of the program read, with durations and
// sizes as numbers, and reports whether it is a valid value of k.
func (k *Key) check(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return k.checkText(v)
	case json.Number:
		f, err := v.Float64()
		switch {
		case err != nil || math.Abs(f) >= 1<<53:
			return v, k.Kind == Any
		case k.Kind == Any || k.Kind == Number:
			return v, true
		case k.Kind == Int:
			return whole(f), f == math.Trunc(f)
		case k.Kind == Seconds || k.Kind == Millis || k.Kind == Bytes:
			return whole(f), f >= 0
		}
	case bool:
		return v, k.Kind == Bool || k.Kind == Any || slices.Contains(k.Values, strconv.FormatBool(v))
	case []any:
		if k.Kind == Texts {
			return v, !slices.ContainsFunc(v, func(e any) bool { return !isText(e) })
		}
		return v, k.Kind == List || k.Kind == Any
	case map[string]any:
		return v, k.Kind == Object || k.Kind == Model || k.Kind == Secret || k.Kind == Any
	}
	return v, k.Kind == Any
}

// whole rounds a number up to an integer, because the parts of the program read
// whole seconds and bytes.
func whole(f float64) json.Number { return json.Number(strconv.FormatFloat(math.Ceil(f), 'f', -1, 64)) }

// isText reports whether v is allowed as an element of Texts. Numbers are, because
// ids of accounts are often written as numbers.
func isText(v any) bool {
	switch v.(type) {
	case string, json.Number:
		return true
	}
	return false
}

func (k *Key) checkText(s string) (any, bool) {
	switch k.Kind {
	case Any, Secret, Model:
		return s, true
	case Text:
		return s, k.Values == nil || slices.Contains(k.Values, s)
	case Texts:
		return []any{s}, true
	case Seconds, Millis:
		d, err := humanize.ParseDuration(s)
		if err != nil {
			return s, unresolved(s)
		}
		unit := time.Second
		if k.Kind == Millis {
			unit = time.Millisecond
		}
		return whole(float64(d) / float64(unit)), true
	case Bytes:
		n, err := ParseSize(s)
		if err != nil {
			return s, unresolved(s)
		}
		return json.Number(strconv.FormatInt(n, 10)), true
	case Int, Number:
		// the value of a variable is a string
		if n, ok := k.check(json.Number(s)); ok && json.Valid([]byte(s)) {
			return n, true
		}
	case Bool:
		if s == "true" || s == "false" {
			return s == "true", true
		}
	}
	return s, unresolved(s)
}

// want describes the values of k, for an error.
func (k *Key) want() string {
	if k.Values != nil {
		return "one of " + strings.Join(k.Values, ", ")
	}
	return k.Kind.String()
}

// ParseSize parses a number of bytes: "512", "64k", "10mb", "1.5 GiB". Units are
// powers of 1024.
func ParseSize(s string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	t = strings.TrimSuffix(strings.TrimSuffix(t, "b"), "i")
	factor := 1.0
	if n := len(t); n > 0 {
		if i := strings.IndexByte("kmgt", t[n-1]); i >= 0 {
			factor, t = math.Pow(1024, float64(i+1)), t[:n-1]
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(t), 64)
	if err != nil || f < 0 || f*factor > 1<<60 || math.IsNaN(f) {
		return 0, fmt.Errorf("size %q: want a number and a unit, for example 10mb", s)
	}
	return int64(f * factor), nil
}
