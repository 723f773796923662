package schema

import (
	"encoding/json"
	"regexp/syntax"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Plain reports whether a tool's definition is a plain schema, as [Object]
// returns it. Plain schemas have only objects, arrays and single values with
// limits, like those of most tools, and no references or unions. Every validator
// can use them.
func Plain(definition json.RawMessage) bool {
	plain, _ := inspect(definition)
	return plain
}

// maxPlain is the maximum size of a plain definition in bytes.
const maxPlain = 64 << 10

// inspect reports whether a definition is plain, and whether it is also common:
// most services accept it unchanged.
func inspect(definition json.RawMessage) (plain, common bool) {
	if len(definition) > maxPlain || !jsontext.Value(definition).IsValid() { // names may not be repeated
		return false, false
	}
	m, asIs, err := decode(definition)
	if err != nil || !asIs || m["type"] != "object" {
		return false, false
	}
	i := inspector{plain: true, common: m["properties"] != nil && m["enum"] == nil}
	i.schema(m, maxDepth)
	return i.plain, i.plain && i.common
}

// inspector walks a schema.
type inspector struct{ plain, common bool }

func (i *inspector) schema(v any, levels int) {
	m, ok := v.(node)
	if !ok || levels == 0 {
		i.plain = false
		return
	}
	for keyword, v := range m {
		i.plain = i.plain && i.keyword(keyword, v, levels-1)
	}
	if kinds, isList := m["type"].([]any); isList {
		for _, k := range kinds {
			i.common = i.common && k != "null" && k != "array"
		}
	}
	i.common = i.common && (m["type"] != "array" || m["items"] != nil)
}

// keyword inspects the value of a keyword. It reports whether both may be in a
// plain schema.
func (i *inspector) keyword(keyword string, v any, levels int) bool {
	text, isText := v.(string)
	switch keyword {
	case "type":
		return typesOf(node{"type": v}) != nil
	case "title", "description":
		return isText
	case "deprecated":
		_, isBool := v.(bool)
		i.common = i.common && v != true
		return isBool
	case "pattern":
		_, err := syntax.Parse(text, syntax.Perl)
		return isText && err == nil
	case "required", "enum":
		list, isList := v.([]any)
		return isList && len(names(list)) == len(list) && (keyword == "required" || len(list) > 0)
	case "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems":
		number, _ := v.(json.Number)
		_, err := strconv.ParseUint(number.String(), 10, 30)
		return err == nil
	case "properties":
		properties, isObject := v.(node)
		for name, p := range properties {
			i.common = i.common && isPlainName(name)
			i.schema(p, levels)
		}
		return isObject && i.plain
	case "additionalProperties":
		if _, isBool := v.(bool); isBool {
			return true
		}
		fallthrough
	case "items":
		i.schema(v, levels)
		return i.plain
	}
	return false
}

// isPlainName reports whether all services accept the name of an argument.
func isPlainName(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_') {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}
