package json5

import (
	"bytes"
	"strconv"
	"strings"
)

// Kind is the type of a value.
type Kind int

// Kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the JSON name of the kind: "null", "boolean", "object" and so
// on.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[min(max(k, 0), 5)]
}

// Node is a value in a document.
type Node struct {
	Kind  Kind
	Pos   int    // first byte of the value
	End   int    // byte after the value
	Text  string // decoded string; JSON form of a number, or Infinity, -Infinity, NaN; otherwise as in JSON
	Slots []Slot // members of an object, elements of an array
}

// Slot is a member of an object or an element of an array.
type Slot struct {
	Key   string // of a member
	Pos   int    // first byte of the key, or of the value in an array
	Value *Node
	Comma int // offset of the following comma, or -1
}

// Document is a source with its syntax tree. It is immutable: edits return a
// new source.
type Document struct {
	src     []byte
	Root    *Node
	nonJSON *Node // first number without a JSON form, or nil
}

// Parse parses a source that contains exactly one value. The error is an
// *[Error]. The source must not be modified afterwards.
func Parse(src []byte) (d *Document, err error) {
	if len(src) > MaxSize {
		return nil, errorAt(nil, 0, "%d bytes, at most %d", len(src), MaxSize)
	}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, errorAt(nil, 0, "the text is UTF-16; save it as UTF-8")
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			d, err = nil, r
		default:
			panic(r)
		}
	}()
	s := &scanner{src: src}
	s.blanks()
	root := s.value()
	s.blanks()
	if r, n := s.rune(); n > 0 {
		s.fail(s.pos, "%q after the end of the value", r)
	}
	return &Document{src: src, Root: root, nonJSON: s.nonJSON}, nil
}

// value reads a value.
func (s *scanner) value() *Node {
	n := &Node{Pos: s.pos}
	r, size := s.rune()
	switch {
	case size == 0:
		s.fail(s.pos, "the source ends where a value is expected")
	case r == '{':
		n.Kind, n.Slots = Object, s.slots('}', s.key)
	case r == '[':
		n.Kind, n.Slots = Array, s.slots(']', nil)
	case r == '"' || r == '\'':
		n.Kind, n.Text = String, s.quoted()
	case r == '+' || r == '-' || r == '.' || r >= '0' && r <= '9' || r == 'I' || r == 'N':
		n.Kind, n.Text = Number, s.number()
		if s.nonJSON == nil && strings.ContainsAny(n.Text, "IN") {
			s.nonJSON = n
		}
	default:
		n.Kind, n.Text = s.word()
	}
	n.End = s.pos
	return n
}

// word reads true, false or null.
func (s *scanner) word() (Kind, string) {
	start := s.pos
	switch word := s.ident(); word {
	case "true", "false":
		return Bool, word
	case "null":
		return Null, word
	case "":
		r, _ := s.rune()
		s.fail(start, "%q where a value is expected", r)
	default:
		s.fail(start, "%q is not a value; text needs quotes", word)
	}
	return Null, ""
}

// slots reads the members or elements between brackets.
func (s *scanner) slots(closing byte, key func() string) []Slot {
	start := s.pos
	if s.depth++; s.depth > MaxDepth {
		s.fail(start, "nested deeper than %d", MaxDepth)
	}
	defer func() { s.depth-- }()
	s.pos++
	var slots []Slot
	for {
		s.blanks()
		if s.peek(0) == closing {
			s.pos++
			return slots
		}
		if s.pos >= len(s.src) {
			s.fail(start, "this %q is never closed", s.src[start])
		}
		if n := len(slots); n > 0 && slots[n-1].Comma < 0 {
			r, _ := s.rune()
			s.fail(s.pos, "%q where a comma or %q is expected", r, closing)
		}
		slot := Slot{Pos: s.pos, Comma: -1}
		if key != nil {
			slot.Key = key()
		}
		slot.Value = s.value()
		s.blanks()
		if s.peek(0) == ',' {
			slot.Comma = s.pos
			s.pos++
		}
		slots = append(slots, slot)
	}
}

// key reads a member's key with its colon.
func (s *scanner) key() string {
	var k string
	start := s.pos
	if c := s.peek(0); c == '"' || c == '\'' {
		k = s.quoted()
	} else if k = s.ident(); k == "" {
		r, _ := s.rune()
		s.fail(start, "%q where a key is expected", r)
	}
	s.blanks()
	if s.peek(0) != ':' {
		s.fail(s.pos, "want a colon after the key %q", k)
	}
	s.pos++
	s.blanks()
	return k
}

// Get returns the value at a path of keys and decimal array indexes, or nil.
func (d *Document) Get(path ...string) *Node {
	n := d.Root
	for _, step := range path {
		i := n.find(step)
		if i < 0 {
			return nil
		}
		n = n.Slots[i].Value
	}
	return n
}

// find returns the index of the slot that a path step names, or -1.
func (n *Node) find(step string) int {
	switch {
	case n == nil:
	case n.Kind == Object:
		for i := len(n.Slots) - 1; i >= 0; i-- {
			if n.Slots[i].Key == step {
				return i
			}
		}
	case n.Kind == Array:
		if i, ok := index(step); ok && i < len(n.Slots) {
			return i
		}
	}
	return -1
}

// index parses an array index.
func index(step string) (int, bool) {
	i, err := strconv.Atoi(step)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == step
}
