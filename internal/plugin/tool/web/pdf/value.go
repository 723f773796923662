package pdf

import (
	"bytes"
	"strconv"
)

// The values are nil, bool, float64 and these types.
type (
	name    string
	text    string // the bytes of a string
	array   []any
	dict    map[name]any
	ref     int // the number of an object
	keyword string
)

const maxDepth = 64 // nesting depth of arrays and dictionaries

// parser parses values.
type parser struct {
	data []byte
	at   int
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool { return bytes.IndexByte([]byte("()<>[]{}/%"), c) >= 0 }

func (p *parser) skip() {
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '%':
			for p.at < len(p.data) && p.data[p.at] != '\n' && p.data[p.at] != '\r' {
				p.at++
			}
		case isSpace(c):
			p.at++
		default:
			return
		}
	}
}

// next returns the next value. If refs is false, as in page content, "1 0 R"
// is parsed as three values. ok is false at the end.
func (p *parser) next(refs bool) (v any, ok bool) { return p.value(refs, 0) }

func (p *parser) value(refs bool, depth int) (any, bool) {
	p.skip()
	if p.at >= len(p.data) || depth > maxDepth {
		p.at = len(p.data)
		return nil, false
	}
	rest := p.data[p.at:]
	switch c := rest[0]; {
	case c == '/':
		p.at++
		return p.name(), true
	case c == '(':
		p.at++
		return p.literal(), true
	case bytes.HasPrefix(rest, []byte("<<")):
		p.at += 2
		return p.dict(refs, depth), true
	case c == '<':
		p.at++
		return p.hex(), true
	case c == '[':
		p.at++
		var a array
		for {
			v, ok := p.value(refs, depth+1)
			if k, end := v.(keyword); !ok || end && k == "]" {
				return a, true
			}
			a = append(a, v)
		}
	case isDelimiter(c):
		n := 1
		if bytes.HasPrefix(rest, []byte(">>")) {
			n = 2
		}
		p.at += n
		return keyword(rest[:n]), true
	}
	return p.word(refs), true
}

func (p *parser) dict(refs bool, depth int) dict {
	d := dict{}
	for {
		k, ok := p.value(refs, depth+1)
		if word, end := k.(keyword); !ok || end && word == ">>" {
			return d
		}
		key, isName := k.(name)
		if !isName {
			continue
		}
		v, ok := p.value(refs, depth+1)
		if word, end := v.(keyword); !ok || end && word == ">>" {
			return d
		}
		d[key] = v
	}
}

// token returns the characters up to the next space or delimiter.
func (p *parser) token() []byte {
	from := p.at
	for p.at < len(p.data) && !isSpace(p.data[p.at]) && !isDelimiter(p.data[p.at]) {
		p.at++
	}
	return p.data[from:p.at]
}

func (p *parser) name() name {
	t := p.token()
	if bytes.IndexByte(t, '#') < 0 {
		return name(t)
	}
	var out []byte
	for i := 0; i < len(t); i++ {
		if t[i] == '#' && i+2 < len(t) {
			if n, err := strconv.ParseUint(string(t[i+1:i+3]), 16, 8); err == nil {
				out, i = append(out, byte(n)), i+2
				continue
			}
		}
		out = append(out, t[i])
	}
	return name(out)
}

// word reads a number, a reference or a keyword.
func (p *parser) word(refs bool) any {
	t := p.token()
	n, err := strconv.ParseFloat(string(t), 64)
	if err != nil || len(t) > 32 {
		switch string(t) {
		case "true", "false", "null":
			return nil // nothing depends on a truth value
		}
		return keyword(t)
	}
	if !refs || n < 0 || n != float64(int32(n)) {
		return n
	}
	after := *p
	after.skip()
	generation := after.token()
	after.skip()
	if len(generation) > 0 && len(generation) <= 5 && bytes.Trim(generation, "0123456789") == nil &&
		string(after.token()) == "R" {
		p.at = after.at
		return ref(n)
	}
	return n
}

func (p *parser) hex() text {
	var out []byte
	high, half := 0, false
	for p.at < len(p.data) {
		c := p.data[p.at]
		p.at++
		if c == '>' {
			break
		}
		n, err := strconv.ParseUint(string(c), 16, 8)
		switch {
		case err != nil:
		case half:
			out, half = append(out, byte(high<<4|int(n))), false
		default:
			high, half = int(n), true
		}
	}
	if half {
		out = append(out, byte(high<<4))
	}
	return text(out)
}

// literal reads a string in parentheses.
func (p *parser) literal() text {
	var out []byte
	for open := 1; p.at < len(p.data); {
		c := p.data[p.at]
		p.at++
		switch c {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				return text(out)
			}
		case '\\':
			out = p.escape(out)
			continue
		}
		out = append(out, c)
	}
	return text(out)
}

func (p *parser) escape(out []byte) []byte {
	if p.at >= len(p.data) {
		return out
	}
	c := p.data[p.at]
	p.at++
	switch c {
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case '\r':
		if p.at < len(p.data) && p.data[p.at] == '\n' {
			p.at++
		}
		return out
	case '\n':
		return out
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := int(c - '0')
		for i := 0; i < 2 && p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '7'; i++ {
			n = n<<3 | int(p.data[p.at]-'0')
			p.at++
		}
		c = byte(n)
	}
	return append(out, c)
}
