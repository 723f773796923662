package schema

import (
	"encoding/json"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/cursor"
)

// Plain reports whether a tool's definition is a schema, as [Object] returns it,
// that every validator can use, which is then known without making one: objects,
// lists and single values with bounds, as most tools have. A reference or a union
// is not plain.
func Plain(definition json.RawMessage) bool {
	plain, _ := look(definition)
	return plain
}

// maxPlain bounds what is called plain, in bytes.
const maxPlain = 64 << 10

// look reports whether a definition is plain, and whether it is common, too: most
// services take it as it is.
func look(definition json.RawMessage) (plain, common bool) {
	if len(definition) > maxPlain || !utf8.Valid(definition) {
		return false, false
	}
	l := looker{JSON: cursor.New(definition), common: true}
	top := l.schema()
	return l.Done() && top.kind == "object", l.common && top.properties && !top.enum
}

// looker reads a schema, and fails where it is not plain.
type looker struct {
	cursor.JSON
	common bool
}

// seen is what there is in a schema.
type seen struct {
	kind                    string // its type; "": none, or several
	properties, items, enum bool
}

func (l *looker) schema() (s seen) {
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

// types takes a type, which it returns, or a list of types.
func (l *looker) types() string {
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

func (l *looker) kind() string {
	k := l.Text()
	if !isType(k) {
		l.Fail()
	}
	return k
}

func (l *looker) text() {
	if l.Next() != '"' {
		l.Fail()
	}
	l.Skip()
}

// texts takes a list of texts and returns how many there are.
func (l *looker) texts() int {
	n := 0
	for l.Enter('['); l.More(']'); n++ {
		l.text()
	}
	return n
}

// isPlainName reports whether all services take the name of an argument.
func isPlainName(name []byte) bool {
	for _, b := range name {
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_') {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxName
}
