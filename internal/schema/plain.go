package schema

import (
	"encoding/json"
	"regexp/syntax"
	"strconv"
)

// Plain reports whether a tool's definition is a schema, as [Object] returns it,
// that every validator can use, which is then known without making one: objects,
// lists and single values with bounds, as most tools have. A reference or a union
// is not plain.
func Plain(definition json.RawMessage) bool {
	m, asIs, err := decode(definition)
	return err == nil && asIs && len(m) > 0 && plain(m)
}

func plain(s any) bool {
	m, ok := s.(node)
	if !ok {
		return false
	}
	for k, v := range m {
		ok := false
		switch k {
		case "type":
			ok = len(typesOf(m)) > 0
		case "pattern":
			p, is := v.(string)
			_, err := syntax.Parse(p, syntax.Perl)
			ok = is && err == nil
		case "title", "description":
			_, ok = v.(string)
		case "required":
			ok = isNames(v)
		case "enum":
			_, ok = v.([]any)
		case "minimum", "maximum":
			n, _ := v.(json.Number)
			_, err := n.Float64()
			ok = err == nil
		case "minLength", "maxLength", "minItems", "maxItems":
			n, _ := v.(json.Number)
			_, err := strconv.ParseUint(n.String(), 10, 31)
			ok = err == nil
		case "properties":
			ok = plainEach(v)
		case "items":
			ok = plain(v)
		case "additionalProperties":
			_, is := v.(bool)
			ok = is || plain(v)
		}
		if !ok {
			return false
		}
	}
	return true
}

// plainEach reports whether all members are plain.
func plainEach(v any) bool {
	m, ok := v.(node)
	for _, s := range m {
		ok = ok && plain(s)
	}
	return ok
}
