package json5

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// patch replaces src[from:to].
type patch struct {
	from, to int
	text     string
}

// apply returns src with the patches, which do not overlap.
func apply(src []byte, patches ...patch) []byte {
	slices.SortStableFunc(patches, func(a, b patch) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, p := range patches {
		out = append(append(out, src[at:p.from]...), p.text...)
		at = p.to
	}
	return append(out, src[at:]...)
}

// Set returns the source with the value at a path set. The value is JSON.
// Objects that are missing on the way are made, an array takes one element
// more at its end, and a null in the way is replaced; anything else in the way
// is an error.
func (d *Document) Set(path []string, value []byte) ([]byte, error) {
	if !json.Valid(value) {
		return nil, fmt.Errorf("set %s: the new value is no JSON", strings.Join(path, "."))
	}
	n := d.Root
	for i, step := range path {
		if n.Kind == Null {
			return checked(d.replace(n, wrap(path[i:], value)))
		}
		if n.Kind != Object && n.Kind != Array {
			return nil, fmt.Errorf("set %s: there is a %s at %q", strings.Join(path, "."), n.Kind, strings.Join(path[:i], "."))
		}
		slot := n.find(step)
		if slot >= 0 {
			n = n.Slots[slot].Value
			continue
		}
		if at, ok := index(step); n.Kind == Array && (!ok || at != len(n.Slots)) {
			return nil, fmt.Errorf("set %s: %q is no element of the array, which has %d", strings.Join(path, "."), step, len(n.Slots))
		}
		return checked(d.insert(n, step, wrap(path[i+1:], value)))
	}
	return checked(d.replace(n, value))
}

// checked returns src when it can be read: an edit may pass the bounds.
func checked(src []byte) ([]byte, error) {
	_, err := Parse(src)
	return src, err
}

// Unset returns the source without the value at a path, and whether there was
// one. Comments beside it stay.
func (d *Document) Unset(path []string) ([]byte, bool) {
	if len(path) == 0 {
		return d.src, false
	}
	n := d.Get(path[:len(path)-1]...)
	if n == nil {
		return d.src, false
	}
	at := n.find(path[len(path)-1])
	if at < 0 {
		return d.src, false
	}
	var patches []patch
	last := len(n.Slots) - 1
	for i, s := range n.Slots {
		if i != at && (n.Kind != Object || s.Key != n.Slots[at].Key) {
			continue
		}
		patches = append(patches, d.cut(s)...)
		// The new last slot keeps no comma when the old one had none.
		if i == last && i > 0 && s.Comma < 0 && len(patches) == 1 {
			c := n.Slots[i-1].Comma
			patches = append(patches, patch{c, c + 1, ""})
		}
	}
	return apply(d.src, patches...), true
}

// cut returns the patches that remove a slot with its comma, and its lines
// when nothing else stands in them.
func (d *Document) cut(s Slot) []patch {
	from, to := s.Pos, s.Value.End
	var comma []patch
	switch {
	case s.Comma < 0:
	case len(bytes.TrimSpace(d.src[to:s.Comma])) == 0:
		to = s.Comma + 1
	default: // a comment stands between
		comma = []patch{{s.Comma, s.Comma + 1, ""}}
	}
	start := d.lineStart(from)
	end := to
	for end < len(d.src) && (d.src[end] == ' ' || d.src[end] == '\t' || d.src[end] == '\r') {
		end++
	}
	alone := start > 0 && len(bytes.TrimSpace(d.src[start:from])) == 0
	if alone && comma == nil && end < len(d.src) && d.src[end] == '\n' {
		from, to = start, end+1
	} else if !alone && s.Comma < 0 { // {a: 1, b: 2} without b is {a: 1}
		from = start + len(bytes.TrimRight(d.src[start:from], " \t"))
	} else if !alone && comma == nil && end < len(d.src) && d.src[end] != '\n' {
		to = end // and without a is {b: 2}
	}
	return append(comma, patch{from, to, ""})
}

// lineStart returns the offset at which off's line begins.
func (d *Document) lineStart(off int) int { return bytes.LastIndexByte(d.src[:off], '\n') + 1 }

// wrap returns value inside objects for the steps.
func wrap(steps []string, value []byte) []byte {
	for _, step := range slices.Backward(steps) {
		b := append(appendString([]byte("{"), step, '"'), ':')
		value = append(append(b, value...), '}')
	}
	return value
}

// replace puts a new value in n's place.
func (d *Document) replace(n *Node, value []byte) []byte {
	st := d.styleOf(n)
	return apply(d.src, patch{n.Pos, n.End, st.render(value, d.indentAt(n.Pos))})
}

// insert adds a slot at the end of n.
func (d *Document) insert(n *Node, key string, value []byte) []byte {
	st := d.styleOf(n)
	base := d.indentAt(n.Pos)
	inner := base + st.unit
	multi := bytes.IndexByte(d.src[n.Pos:n.End], '\n') >= 0
	if len(n.Slots) > 0 {
		last := n.Slots[len(n.Slots)-1]
		if line := d.lineStart(last.Pos); multi && len(bytes.TrimSpace(d.src[line:last.Pos])) == 0 {
			inner = string(d.src[line:last.Pos])
		}
	}
	text := st.render(value, inner)
	if n.Kind == Object {
		text = st.key(key) + ": " + text
	}
	if len(n.Slots) == 0 {
		return d.fill(n, text, base, inner, multi || n == d.Root, st)
	}
	last := n.Slots[len(n.Slots)-1]
	at, tail := last.Value.End, ""
	var patches []patch
	if last.Comma >= 0 {
		at, tail = last.Comma+1, ","
	} else {
		patches = []patch{{at, at, ","}}
	}
	if !multi {
		return apply(d.src, append(patches, patch{at, at, " " + text + tail})...)
	}
	at = d.afterComment(at)
	return apply(d.src, append(patches, patch{at, at, st.newline + inner + text + tail})...)
}

// fill puts the first slot into n.
func (d *Document) fill(n *Node, text, base, inner string, multi bool, st style) []byte {
	body := d.src[n.Pos+1 : n.End-1]
	if len(bytes.TrimSpace(body)) > 0 { // comments
		at := n.Pos + 1 + len(bytes.TrimRight(body, " \t\r\n"))
		return apply(d.src, patch{at, n.End - 1, st.newline + inner + text + st.newline + base})
	}
	if !multi {
		return apply(d.src, patch{n.Pos + 1, n.End - 1, text})
	}
	return apply(d.src, patch{n.Pos + 1, n.End - 1, st.newline + inner + text + st.newline + base})
}

// afterComment returns the end of the comments that follow off in its line.
func (d *Document) afterComment(off int) int {
	for i := off; i+1 < len(d.src); {
		rest := d.src[i:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t':
			i++
		case rest[0] == '/' && rest[1] == '/':
			return i + lineComment(rest)
		case rest[0] == '/' && rest[1] == '*':
			n := blockComment(rest)
			if n < 0 || bytes.IndexByte(rest[:n], '\n') >= 0 {
				return off
			}
			i += n
			off = i
		default:
			return off
		}
	}
	return off
}

// indentAt returns the white space that off's line begins with.
func (d *Document) indentAt(off int) string {
	line := d.src[d.lineStart(off):off]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// style is how a person writes.
type style struct {
	newline string
	unit    string // indentation of one level
	bare    bool   // keys without quotes
	keyQ    byte   // quote of keys
	textQ   byte   // quote of strings
}

// styleOf finds the style around n: that of its own slots, else that of the
// whole document.
func (d *Document) styleOf(n *Node) style {
	st := style{newline: "\n", unit: "  ", keyQ: '"', textQ: '"'}
	if bytes.Contains(d.src, []byte("\r\n")) {
		st.newline = "\r\n"
	}
	if len(d.Root.Slots) > 0 {
		if ind := d.indentAt(d.Root.Slots[0].Pos); ind != "" && d.lineStart(d.Root.Pos) != d.lineStart(d.Root.Slots[0].Pos) {
			st.unit = ind
		}
	}
	for _, m := range []*Node{d.Root, n} {
		if m.Kind == Object && len(m.Slots) > 0 {
			c := d.src[m.Slots[0].Pos]
			st.bare = c != '"' && c != '\''
			if c == '\'' {
				st.keyQ = c
			}
		}
	}
	if q := d.firstQuote(n); q != 0 {
		st.textQ = q
	} else if q := d.firstQuote(d.Root); q != 0 {
		st.textQ = q
	}
	return st
}

// firstQuote returns the quote of the first string in n, 0 when there is none.
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

// key returns a key as the person would write it.
func (st style) key(k string) string {
	if st.bare && isIdent(k) {
		return k
	}
	return string(appendString(nil, k, st.keyQ))
}

func isIdent(k string) bool {
	for i, r := range k {
		if !(isIdentStart(r) || i > 0 && isIdentPart(r)) {
			return false
		}
	}
	return k != ""
}

// render returns a JSON value as the person would write it, on several lines
// when it is an object or array that holds something.
func (st style) render(value []byte, indent string) string {
	d, err := Parse(value)
	if err != nil { // deeper than this package reads; valid as it is
		return string(value)
	}
	var b strings.Builder
	st.write(&b, d.Root, indent)
	return b.String()
}

func (st style) write(b *strings.Builder, n *Node, indent string) {
	switch {
	case n.Kind == String:
		b.Write(appendString(nil, n.Text, st.textQ))
		return
	case len(n.Slots) == 0:
		out, _ := appendJSON(nil, n)
		b.Write(out)
		return
	}
	brackets := "{}"
	if n.Kind == Array {
		brackets = "[]"
	}
	b.WriteByte(brackets[0])
	for i, s := range n.Slots {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(st.newline + indent + st.unit)
		if n.Kind == Object {
			b.WriteString(st.key(s.Key) + ": ")
		}
		st.write(b, s.Value, indent+st.unit)
	}
	b.WriteString(st.newline + indent)
	b.WriteByte(brackets[1])
}
