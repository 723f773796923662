// Package cursor reads JSON without reflection, as far as it is as plain as nearly
// all of it is: what services stream, and what tools say they take. What is not
// plain, or no JSON, makes it fail, and is left to encoding/json.
package cursor

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// JSON is a place in a text.
//
//	for c.Enter('{'); c.More('}'); {
//		switch string(c.Key()) {
//		case "text":
//			s = c.Text()
//		default:
//			c.Skip()
//		}
//	}
//	if c.Done() { … }
type JSON struct {
	data  []byte
	off   int
	depth int
	first bool // nothing of the object or list was read yet
	fail  bool
}

// New returns a cursor at the beginning of data.
func New(data []byte) JSON { return JSON{data: data} }

// Done reports whether everything was read and plain.
func (c *JSON) Done() bool {
	c.space()
	return !c.fail && c.off == len(c.data)
}

// Fail says that the caller can do nothing with what was read.
func (c *JSON) Fail() { c.fail = true }

func (c *JSON) space() {
	for c.off < len(c.data) && (c.data[c.off] == ' ' || c.data[c.off] == '\n' || c.data[c.off] == '\t' || c.data[c.off] == '\r') {
		c.off++
	}
}

// eat takes one character, if it is the next.
func (c *JSON) eat(b byte) bool {
	c.space()
	if c.off < len(c.data) && c.data[c.off] == b {
		c.off++
		return true
	}
	return false
}

// maxDepth bounds what is in one another.
const maxDepth = 32

// Enter takes the beginning of an object or a list.
func (c *JSON) Enter(open byte) {
	c.depth++
	if !c.eat(open) || c.depth > maxDepth {
		c.fail = true
	}
	c.first = true
}

// More reports whether a member follows, or takes the end.
func (c *JSON) More(end byte) bool {
	if c.fail {
		return false
	}
	if c.eat(end) {
		c.first = false
		c.depth--
		return false
	}
	if !c.first && !c.eat(',') {
		c.fail = true
	}
	c.first = false
	return !c.fail
}

// Key takes the name of a member, for a struct's field. Names in which case
// could matter are not plain.
func (c *JSON) Key() []byte {
	raw := c.Name()
	for _, b := range raw {
		if b >= 'A' && b <= 'Z' || b >= utf8.RuneSelf {
			c.fail = true
		}
	}
	return raw
}

// Name takes the name of a member of any kind.
func (c *JSON) Name() []byte {
	raw, plain := c.quoted()
	if !plain || !c.eat(':') {
		c.fail = true
	}
	return raw
}

// Next returns the first character of what is next; 0: nothing is.
func (c *JSON) Next() byte {
	c.space()
	if c.fail || c.off == len(c.data) {
		return 0
	}
	return c.data[c.off]
}

// quoted takes a string and returns what is between its quotes; plain says that
// this is its text.
func (c *JSON) quoted() (raw []byte, plain bool) {
	if c.fail || !c.eat('"') {
		c.fail = true
		return nil, false
	}
	plain = true
	for i := c.off; i < len(c.data); i++ {
		switch b := c.data[i]; {
		case b == '"':
			raw = c.data[c.off:i]
			c.off = i + 1
			return raw, plain
		case b == '\\':
			plain = false
			i++
		case b < ' ':
			c.fail = true
			return nil, false
		case b >= utf8.RuneSelf && plain:
			r, n := utf8.DecodeRune(c.data[i:])
			plain = r != utf8.RuneError || n > 1
			i += n - 1
		}
	}
	c.fail = true
	return nil, false
}

// Text takes a string.
func (c *JSON) Text() string {
	c.space()
	from := c.off
	raw, plain := c.quoted()
	if plain || c.fail {
		return string(raw)
	}
	var s string
	if json.Unmarshal(c.data[from:c.off], &s) != nil {
		c.fail = true
	}
	return s
}

// Null takes null, if it is the next.
func (c *JSON) Null() bool { return c.word("null") }

func (c *JSON) word(w string) bool {
	c.space()
	if len(c.data)-c.off < len(w) || string(c.data[c.off:c.off+len(w)]) != w {
		return false
	}
	c.off += len(w)
	return true
}

// Int takes a number without sign, point and exponent.
func (c *JSON) Int() int {
	c.space()
	from, n := c.off, 0
	for c.off < len(c.data) && c.data[c.off] >= '0' && c.data[c.off] <= '9' {
		n = n*10 + int(c.data[c.off]-'0')
		c.off++
	}
	if digits := c.off - from; digits == 0 || digits > 9 || digits > 1 && c.data[from] == '0' {
		c.fail = true
	}
	return n
}

// Skip takes a value of any kind.
func (c *JSON) Skip() {
	c.space()
	if c.fail || c.off == len(c.data) {
		c.fail = true
		return
	}
	switch b := c.data[c.off]; {
	case b == '"':
		c.skipText()
	case b == '{':
		for c.Enter('{'); c.More('}'); {
			c.Key()
			c.Skip()
		}
	case b == '[':
		for c.Enter('['); c.More(']'); {
			c.Skip()
		}
	case !c.word("null") && !c.word("true") && !c.word("false"):
		c.number()
	}
}

// Raw takes a value of any kind and returns a copy of it as it is written.
func (c *JSON) Raw() []byte {
	c.space()
	from := c.off
	c.Skip()
	return slices.Clone(c.data[from:c.off])
}

func (c *JSON) skipText() {
	from := c.off
	if _, plain := c.quoted(); !plain && !c.fail {
		c.fail = !json.Valid(c.data[from:c.off])
	}
}

func (c *JSON) number() {
	from := c.off
	for c.off < len(c.data) {
		b := c.data[c.off]
		if !(b >= '0' && b <= '9' || b == '-' || b == '+' || b == '.' || b == 'e' || b == 'E') {
			break
		}
		c.off++
	}
	if c.off == from || !json.Valid(c.data[from:c.off]) {
		c.fail = true
	}
}
