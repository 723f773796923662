package dialect

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
)

// unescapeArgs decodes HTML entities in the strings of arguments. Invalid JSON
// is returned unchanged.
func unescapeArgs(args json.RawMessage) json.RawMessage {
	if !bytes.ContainsRune(args, '&') && !bytes.Contains(args, []byte(`\u0026`)) {
		return args
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return args
	}
	if _, err := d.Token(); err != io.EOF {
		return args
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(unescape(v)) != nil {
		return args
	}
	return bytes.TrimSpace(b.Bytes())
}

func unescape(v any) any {
	switch v := v.(type) {
	case string:
		return html.UnescapeString(v)
	case []any:
		for i := range v {
			v[i] = unescape(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = unescape(v[k])
		}
	}
	return v
}
