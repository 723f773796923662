package json5

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// patch replaces src[from:to].
type patch struct {
	from, to int
	text     string
}

// apply returns src with the patches applied. Their removed ranges may overlap.
func apply(src []byte, patches ...patch) []byte {
	slices.SortStableFunc(patches, func(a, b patch) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, p := range patches {
		out = append(append(out, src[at:max(at, p.from)]...), p.text...)
		at = max(at, p.to)
	}
	return append(out, src[at:]...)
}

// Set returns the source with the JSON value set at the path. It creates
// missing objects, appends to an array if the index equals its length, and
// replaces a null on the path. Any other value on the path is an error.
func (d *Document) Set(path []string, value []byte) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("set %s: "+format, append([]any{strings.Join(path, ".")}, args...)...)
	}
	if !json.Valid(value) {
		return fail("the new value is not valid JSON")
	}
	v, err := Parse(value)
	if err != nil { // exceeds the limits of this package
		return fail("%w", err)
	}
	n := d.Root
	for i, step := range path {
		if n.Kind == Null {
			return checked(d.replace(n, wrap(path[i:], v.Root)))
		}
		if n.Kind != Object && n.Kind != Array {
			return fail("the value at %q is a %s", strings.Join(path[:i], "."), n.Kind)
		}
		if slot := n.find(step); slot >= 0 {
			n = n.Slots[slot].Value
			continue
		}
		if at, ok := index(step); n.Kind == Array && (!ok || at != len(n.Slots)) {
			return fail("index %q is out of range: the array has %d elements", step, len(n.Slots))
		}
		return checked(d.insert(n, step, wrap(path[i+1:], v.Root)))
	}
	return checked(d.replace(n, v.Root))
}

// checked returns src if it can be parsed: an edit may exceed the limits.
func checked(src []byte) ([]byte, error) {
	_, err := Parse(src)
	return src, err
}

// Unset returns the source without the value at the path, and whether there was
// one. Comments next to it remain.
func (d *Document) Unset(path []string) ([]byte, bool) {
	if len(path) == 0 {
		return d.src, false
	}
	n := d.Get(path[:len(path)-1]...)
	at := n.find(path[len(path)-1])
	if at < 0 {
		return d.src, false
	}
	var patches []patch
	for i, s := range n.Slots {
		if i != at && (n.Kind != Object || s.Key != n.Slots[at].Key) {
			continue
		}
		patches = append(patches, d.cut(s)...)
		// The new last slot has no trailing comma if the old one had none.
		if i > 0 && i == len(n.Slots)-1 && s.Comma < 0 && len(patches) == 1 {
			c := n.Slots[i-1].Comma
			patches = append(patches, patch{c, c + 1, ""})
		}
	}
	return apply(d.src, patches...), true
}

// cut returns the patches that remove a slot with its comma. Lines that contain
// nothing else are removed too.
func (d *Document) cut(s Slot) []patch {
	from, to := s.Pos, s.Value.End
	var comma []patch
	if s.Comma >= 0 && len(bytes.TrimSpace(d.src[to:s.Comma])) == 0 {
		to = s.Comma + 1
	} else if s.Comma >= 0 { // there is a comment in between
		comma = []patch{{s.Comma, s.Comma + 1, ""}}
	}
	start := d.lineStart(from)
	end := len(d.src) - len(bytes.TrimLeft(d.src[to:], " \t\r"))
	ownLines := start > 0 && len(bytes.TrimSpace(d.src[start:from])) == 0
	if ownLines && comma == nil && end < len(d.src) && d.src[end] == '\n' {
		from, to = start, end+1
	} else if !ownLines && s.Comma < 0 { // {a: 1, b: 2} without b becomes {a: 1}
		from = start + len(bytes.TrimRight(d.src[start:from], " \t"))
	} else if !ownLines && comma == nil && end < len(d.src) && d.src[end] != '\n' {
		to = end // and without a becomes {b: 2}
	}
	return append(comma, patch{from, to, ""})
}

// lineStart returns the offset of the beginning of off's line.
func (d *Document) lineStart(off int) int { return bytes.LastIndexByte(d.src[:off], '\n') + 1 }

// wrap nests n in an object for each step.
func wrap(steps []string, n *Node) *Node {
	for _, step := range slices.Backward(steps) {
		n = &Node{Kind: Object, Slots: []Slot{{Key: step, Value: n}}}
	}
	return n
}

// replace replaces n by a new value.
func (d *Document) replace(n, value *Node) []byte {
	text := d.styleOf(n).append(nil, value, d.indentAt(n.Pos))
	return apply(d.src, patch{n.Pos, n.End, string(text)})
}

// insert adds a slot at the end of n.
func (d *Document) insert(n *Node, key string, value *Node) []byte {
	st := d.styleOf(n)
	base := d.indentAt(n.Pos)
	inner := base + st.unit
	lines := bytes.IndexByte(d.src[n.Pos:n.End], '\n') >= 0
	var last Slot
	if len(n.Slots) > 0 {
		last = n.Slots[len(n.Slots)-1]
		if indent := d.indentAt(last.Pos); lines && d.lineStart(last.Pos)+len(indent) == last.Pos {
			inner = indent
		}
	}
	var b []byte
	if n.Kind == Object {
		b = st.appendKey(b, key)
	}
	text := string(st.append(b, value, inner))
	if len(n.Slots) == 0 {
		at, end := n.Pos+1, n.End-1
		if comments := bytes.TrimRightFunc(d.src[at:end], isBlank); lines || n == d.Root || len(comments) > 0 {
			at += len(comments)
			text = st.newline + inner + text + st.newline + base
		}
		return apply(d.src, patch{at, end, text})
	}
	at := last.Value.End
	comma := patch{at, at, ","}
	if last.Comma >= 0 {
		at, comma = last.Comma+1, patch{}
		text += ","
	}
	if lines {
		at, text = d.afterComment(at), st.newline+inner+text
	} else {
		text = " " + text
	}
	return apply(d.src, comma, patch{at, at, text})
}

// afterComment returns the end of the comments that follow off on its line.
func (d *Document) afterComment(off int) int {
	for {
		rest := bytes.TrimLeft(d.src[off:], " \t")
		at := len(d.src) - len(rest)
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			return at + lineComment(rest)
		case bytes.HasPrefix(rest, []byte("/*")) && !bytes.Contains(rest[:blockComment(rest)], []byte("\n")):
			off = at + blockComment(rest)
		default:
			return off
		}
	}
}

// indentAt returns the indentation of off's line.
func (d *Document) indentAt(off int) string {
	line := d.src[d.lineStart(off):off]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// styleOf returns the style of n's slots, or else of the document.
func (d *Document) styleOf(n *Node) style {
	st := style{newline: "\n", unit: "  ", colon: ": ", keyQ: '"', textQ: '"'}
	if bytes.Contains(d.src, []byte("\r\n")) {
		st.newline = "\r\n"
	}
	for _, m := range []*Node{d.Root, n} {
		if m.Kind == Object && len(m.Slots) > 0 {
			c := d.src[m.Slots[0].Pos]
			st.bare = c != '"' && c != '\''
			if c == '\'' {
				st.keyQ = c
			}
		}
		if q := d.firstQuote(m); q != 0 {
			st.textQ = q
		}
	}
	if slots := d.Root.Slots; len(slots) > 0 && d.lineStart(slots[0].Pos) > d.Root.Pos {
		st.unit = cmp.Or(d.indentAt(slots[0].Pos), st.unit)
	}
	return st
}

// firstQuote returns the quote of the first string in n, or 0.
func (d *Document) firstQuote(n *Node) byte {
	if n.Kind == String {
		return d.src[n.Pos]
	}
	for _, s := range n.Slots {
		if q := d.firstQuote(s.Value); q != 0 {
			return q
		}
	}
	return 0
}

// isIdent reports whether a key can be written without quotes.
func isIdent(k string) bool {
	first, _ := utf8.DecodeRuneInString(k)
	return isIdentStart(first) && !strings.ContainsFunc(k, func(r rune) bool { return !isIdentPart(r) })
}
