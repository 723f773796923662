package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/llm"
)

// Body is a request body in pieces. Pieces that belong to others (kept
// encodings of messages) are not copied: a long conversation costs no memory
// and no encoding when it is sent again.
type Body struct {
	pieces  [][]byte
	size    int
	scratch []byte
}

// Add appends a piece. Nobody may change it from then on.
func (b *Body) Add(piece []byte) {
	if len(piece) > 0 {
		b.pieces = append(b.pieces, piece)
		b.size += len(piece)
	}
}

// AddString appends a short piece, which is copied.
func (b *Body) AddString(s string) {
	b.scratch = append(b.scratch, s...) // what stood before it stays where it is when this grows
	b.Add(b.scratch[len(b.scratch)-len(s):])
}

// Trim takes n bytes off the end of the last piece, which has more than that.
func (b *Body) Trim(n int) {
	last := &b.pieces[len(b.pieces)-1]
	*last = (*last)[:len(*last)-n]
	b.size -= n
}

// Size returns the length in bytes.
func (b *Body) Size() int { return b.size }

// Reader returns a reader of the whole body.
func (b *Body) Reader() io.ReadCloser { return &reader{rest: b.pieces} }

// Bytes returns a copy of the whole body.
func (b *Body) Bytes() []byte { return slices.Concat(b.pieces...) }

// reader reads pieces as one.
type reader struct {
	rest [][]byte
	off  int // into rest[0]
}

func (r *reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.rest) > 0 {
		c := copy(p[n:], r.rest[0][r.off:])
		n += c
		if r.off += c; r.off == len(r.rest[0]) {
			r.rest, r.off = r.rest[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *reader) Close() error { return nil }

// Object writes the head of a request: fields in the order they are added,
// except where params say something else.
type Object struct {
	buf    []byte
	params map[string]json.RawMessage
}

// NewObject begins an object. What params (an object, or nothing) hold is
// written in the place of a field of the same name, or at the end; null leaves
// the field out. The fields that are owned cannot be replaced.
func NewObject(params json.RawMessage, owned ...string) (*Object, error) {
	o := &Object{buf: append(make([]byte, 0, 1024), '{')}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &o.params); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
		for _, name := range owned {
			delete(o.params, name)
		}
	}
	return o, nil
}

// Field adds a field; value appends its JSON.
func (o *Object) Field(name string, value func([]byte) []byte) {
	if v, ok := o.params[name]; ok {
		delete(o.params, name)
		o.raw(name, v)
		return
	}
	o.buf = value(o.name(name))
}

// raw writes a value of the params.
func (o *Object) raw(name string, v json.RawMessage) {
	if string(v) == "null" {
		return
	}
	b := bytes.NewBuffer(o.name(name))
	if json.Compact(b, v) == nil { // v was unmarshalled: it is valid
		o.buf = b.Bytes()
	}
}

func (o *Object) name(name string) []byte {
	if len(o.buf) > 1 {
		o.buf = append(o.buf, ',')
	}
	return append(AppendString(o.buf, name), ':')
}

// String adds a text field, unless s is empty.
func (o *Object) String(name, s string) {
	if s != "" {
		o.Field(name, func(b []byte) []byte { return AppendString(b, s) })
	}
}

// Int adds a number.
func (o *Object) Int(name string, n int) {
	o.Field(name, func(b []byte) []byte { return strconv.AppendInt(b, int64(n), 10) })
}

// Float adds a number.
func (o *Object) Float(name string, f float64) {
	o.Field(name, func(b []byte) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) })
}

// Raw adds a JSON value, unless it is empty.
func (o *Object) Raw(name, value string) {
	if value != "" {
		o.Field(name, func(b []byte) []byte { return append(b, value...) })
	}
}

// Open writes what is left of the params and begins the last field. Its value
// and the closing brace are the caller's. It returns the head.
func (o *Object) Open(name string) []byte {
	rest := make([]string, 0, len(o.params))
	for k := range o.params {
		rest = append(rest, k)
	}
	slices.Sort(rest)
	for _, k := range rest {
		o.raw(k, o.params[k])
	}
	return o.name(name)
}

// AppendString appends s as a JSON string. Bytes that are no UTF-8 become
// U+FFFD; nothing is escaped that need not be.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Args returns the arguments of a call as an object in one line. What is no
// object is put into one, because every service wants an object.
func Args(c *llm.ToolCall) []byte {
	raw := bytes.TrimSpace(c.Args)
	if !json.Valid(raw) {
		return []byte("{}")
	}
	if hasSurrogate(raw) || !utf8.Valid(raw) {
		raw = reencode(raw)
	}
	var b bytes.Buffer
	if raw[0] == '{' {
		_ = json.Compact(&b, raw) // it is valid
		return b.Bytes()
	}
	b.WriteString(`{"value":`)
	_ = json.Compact(&b, raw)
	b.WriteByte('}')
	return b.Bytes()
}

// hasSurrogate reports whether raw may hold half a character in \u form, which
// some services refuse.
func hasSurrogate(raw []byte) bool {
	for rest := raw; ; {
		i := bytes.Index(rest, []byte(`\u`))
		if i < 0 || len(rest) < i+3 {
			return false
		}
		if rest[i+2] == 'd' || rest[i+2] == 'D' {
			return true
		}
		rest = rest[i+2:]
	}
}

// reencode writes valid JSON anew: sorted, with U+FFFD for what is no text.
func reencode(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return []byte("{}")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}
