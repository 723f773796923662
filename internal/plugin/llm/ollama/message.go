package ollama

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const maxImage = 15 << 20 // bytes

// Messages that complete a history.
const (
	opening      = `{"content":"(The conversation begins.)","role":"user"}`
	continuation = `{"content":"(Continue.)","role":"user"}`
	noOutput     = "(no output)"
)

// encoder encodes messages.
type encoder struct {
	provider string
	images   bool // the model supports images
}

// add appends the messages, the note and the end of the request. It reports whether there is
// a message.
func (e encoder) add(b *dialect.Body, msgs []*llm.Message, note string) bool {
	key := "ollama " + e.provider
	if !e.images {
		key += " without images"
	}
	var last llm.Role
	put := func(role llm.Role, enc []byte) {
		if last != "" {
			b.AddString(",")
		}
		b.Add(enc)
		last = role
	}
	for _, m := range msgs {
		enc := m.Memo(key, func() []byte { return e.message(m) })
		if len(enc) == 0 {
			continue
		}
		if last == "" && m.Role != llm.RoleUser {
			put(llm.RoleUser, []byte(opening))
		}
		put(m.Role, enc)
	}
	if last == llm.RoleAssistant { // the server would take it for the beginning of the answer
		put(llm.RoleUser, []byte(continuation))
	}
	if note != "" && last != "" {
		put(llm.RoleUser, append(dialect.AppendString([]byte(`{"content":`), note), `,"role":"user"}`...))
	}
	b.AddString("]}")
	return last != ""
}

// message returns the encoding of m, or nothing if it would be empty.
func (e encoder) message(m *llm.Message) []byte {
	text, images := e.content(m)
	calls := m.Calls()
	switch {
	case m.Role == llm.RoleTool && text == "":
		text = noOutput
	case text == "" && images == nil && len(calls) == 0:
		return nil
	}
	b := dialect.AppendString([]byte(`{"content":`), text)
	if images != nil {
		b = append(append(append(b, `,"images":[`...), images...), ']')
	}
	switch m.Role {
	case llm.RoleTool:
		return append(dialect.AppendString(append(b, `,"role":"tool","tool_name":`...), dialect.ToolName(m.ToolName)), '}')
	case llm.RoleUser:
		return append(b, `,"role":"user"}`...)
	}
	b = append(b, `,"role":"assistant"`...)
	if thought := dialect.Thinking(m); len(calls) > 0 && thought != "" && m.Provider == e.provider {
		b = dialect.AppendString(append(b, `,"thinking":`...), thought) // it led to the calls
	}
	for i := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(append(b, `{"function":{"arguments":`...), dialect.Args(&calls[i])...)
		b = append(dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(calls[i].Name)), `}}`...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// content returns the text of m, with a note for each image that is not sent, and the
// images, separated by commas.
func (e encoder) content(m *llm.Message) (string, []byte) {
	var texts []string
	var images []byte
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText && p.Text != "":
			texts = append(texts, p.Text)
		case p.Kind == llm.PartImage:
			if why := dialect.OmitImage(p, e.images, maxImage); why != "" {
				texts = append(texts, dialect.ImageNote(p, why))
				continue
			}
			if images != nil {
				images = append(images, ',')
			}
			images = append(dialect.AppendBase64(append(images, '"'), p.Data), '"')
		}
	}
	return strings.Join(texts, "\n\n"), images
}
