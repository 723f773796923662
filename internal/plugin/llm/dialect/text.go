package dialect

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/chela-ai/chela/internal/core/llm"
)

// AppendString appends s as a JSON string with minimal escapes. Invalid UTF-8
// becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error says that there is invalid UTF-8
	return dst
}

// Comma appends a comma unless b is empty.
func Comma(b []byte) []byte {
	if len(b) > 0 {
		return append(b, ',')
	}
	return b
}

// System returns the system prompt as one text, without blank blocks.
func System(blocks []llm.Block) string {
	var texts []string
	for _, s := range blocks {
		if strings.TrimSpace(s.Text) != "" {
			texts = append(texts, s.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// Args returns the arguments of a call as a compact object. Other values are
// wrapped in an object, because every service requires one. Invalid UTF-8 and
// unpaired surrogates, which some services reject, become U+FFFD.
func Args(c *llm.ToolCall) []byte {
	raw, err := jsontext.AppendFormat(nil, bytes.TrimSpace(c.Args),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(false))
	switch {
	case err != nil:
		return []byte("{}")
	case raw[0] == '{':
		return raw
	}
	return append(append([]byte(`{"value":`), raw...), '}')
}

// Thinking returns the thinking of m as text.
func Thinking(m *llm.Message) string {
	var b strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == llm.PartThinking {
			b.WriteString(m.Parts[i].Text)
		}
	}
	return b.String()
}
