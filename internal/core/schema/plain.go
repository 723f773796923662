package schema

import (
	"encoding/json"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/jsonscan"
)

// Plain reports whether a tool's definition is a plain schema, as [Object]
// returns it, without parsing it completely. Plain schemas have only objects,
// arrays and single values with limits, like those of most tools, and no
// references or unions. Every validator can use them.
func Plain(definition json.RawMessage) bool {
	plain, _ := scanPlain(definition)
	return plain
}

// maxPlain is the maximum size of a plain definition in bytes.
const maxPlain = 64 << 10

// scanPlain reports whether a definition is plain, and whether it is also
// common: most services accept it unchanged.
func scanPlain(definition json.RawMessage) (plain, common bool) {
	if len(definition) > maxPlain || !utf8.Valid(definition) {
		return false, false
	}
	l := plainScanner{Scanner: jsonscan.New(definition), common: true}
	top := l.schema()
	return l.Done() && top.kind == "object", l.common && top.properties && !top.enum
}

// plainScanner reads a schema and fails if it is not plain.
type plainScanner struct {
	jsonscan.Scanner
	common bool
}

// plainSchema is the summary of a schema.
type plainSchema struct {
	kind                    string // its type; "" for none or several
	properties, items, enum bool
}

func (l *plainScanner) schema() (s plainSchema) {
	for l.Enter('{'); l.More('}'); {
		switch string(l.Name()) {
		case "type":
			s.kind = l.types()
		case "title", "description":
			l.text()
		case "pattern":
			if _, err := syntax.Parse(l.Text(), syntax.Perl); err != nil {
				l.Fail()
			}
		case "required":
			l.texts()
		case "enum":
			s.enum = true
			if l.texts() == 0 {
				l.Fail()
			}
		case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
			l.Int()
		case "properties":
			s.properties = true
			for l.Enter('{'); l.More('}'); {
				l.common = l.common && isPlainName(l.Name())
				l.schema()
			}
		case "items":
			s.items = true
			l.schema()
		case "additionalProperties":
			if b := l.Next(); b == 't' || b == 'f' {
				l.Skip()
			} else {
				l.schema()
			}
		default:
			l.Fail()
		}
	}
	l.common = l.common && (s.kind != "array" || s.items)
	return s
}

// types reads a type, which it returns, or a list of types.
func (l *plainScanner) types() string {
	if l.Next() != '[' {
		return l.kind()
	}
	n := 0
	for l.Enter('['); l.More(']'); n++ {
		k := l.kind()
		l.common = l.common && k != "null" && k != "array"
	}
	if n == 0 {
		l.Fail()
	}
	return ""
}

func (l *plainScanner) kind() string {
	k := l.Text()
	if !isType(k) {
		l.Fail()
	}
	return k
}

func (l *plainScanner) text() {
	if l.Next() != '"' {
		l.Fail()
	}
	l.Skip()
}

// texts reads a list of strings and returns its length.
func (l *plainScanner) texts() int {
	n := 0
	for l.Enter('['); l.More(']'); n++ {
		l.text()
	}
	return n
}

// isPlainName reports whether all services accept the name of an argument.
func isPlainName(name []byte) bool {
	for _, b := range name {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_') {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxName
}
