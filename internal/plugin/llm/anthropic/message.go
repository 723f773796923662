package anthropic

import (
	"bytes"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// maxImage is the maximum size of an image: 5 MB in base64.
const maxImage = 5 << 20 / 4 * 3

const maxID = 128 // characters of a call id

// JSON between the content blocks.
const (
	openTurn     = `{"content":[`
	closeUser    = `],"role":"user"}`
	closeAnswer  = `],"role":"assistant"}`
	opening      = `{"text":"(The conversation begins.)","type":"text"}`
	continuation = `{"text":"(Continue.)","type":"text"}`
)

// encoder encodes messages as lists of content blocks.
type encoder struct {
	provider string
	images   bool // the model supports images
}

// encode returns the content blocks of each message, or nothing for an empty
// message.
func (e encoder) encode(msgs []*llm.Message) [][]byte {
	key := "anthropic " + e.provider
	if !e.images {
		key += " without images"
	}
	enc := make([][]byte, len(msgs))
	for i, m := range msgs {
		enc[i] = m.Memo(key, func() []byte { return e.message(m) })
	}
	return enc
}

// addMessages appends the list of messages. Consecutive messages of one role
// become one message of the service. It reports whether there is any.
//
// One cache marker is behind the last message, and one where the previous request of
// the run ended: the service looks for a cached prefix only a few blocks before a marker,
// and one round of tools can be longer. The note is behind the markers.
func addMessages(b *dialect.Body, msgs []*llm.Message, enc [][]byte, marker, note string) bool {
	earlier := previousEnd(msgs, enc)
	b.AddString("[")
	begun, user := false, false
	turn := func(asUser bool) {
		switch {
		case begun && user:
			b.AddString(closeUser + ",")
		case begun:
			b.AddString(closeAnswer + ",")
		}
		b.AddString(openTurn)
		begun, user = true, asUser
	}
	for i, m := range msgs {
		isUser := m.Role != llm.RoleAssistant
		switch {
		case len(enc[i]) == 0:
			continue
		case !begun && !isUser:
			turn(true)
			b.AddString(opening)
			turn(false)
		case !begun || isUser != user:
			turn(isUser)
		default:
			b.AddString(",")
		}
		b.Add(enc[i])
		if i == earlier && marker != "" {
			b.Trim(1)
			b.AddString(marker + "}")
		}
	}
	if !begun {
		return false
	}
	if !user { // newer models, and thinking, do not support a final assistant message
		turn(true)
		b.AddString(continuation)
	}
	if marker != "" {
		b.Trim(1)
		b.AddString(marker + "}")
	}
	if note != "" {
		b.AddString(",")
		b.Add(appendText(nil, note))
	}
	b.AddString(closeUser + "]}")
	return true
}

// previousEnd returns the index of the last message before the last assistant message;
// -1: there is none. A request that ended with it was probably sent.
func previousEnd(msgs []*llm.Message, enc [][]byte) int {
	answered := false
	for i := len(msgs) - 1; i >= 0; i-- {
		switch {
		case len(enc[i]) == 0:
		case msgs[i].Role == llm.RoleAssistant:
			answered = true
		case answered:
			return i
		}
	}
	return -1
}

// message returns the content blocks of m, separated by commas.
func (e encoder) message(m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleTool:
		return e.result(m)
	case llm.RoleAssistant:
		return e.answer(m)
	}
	return e.content(m.Parts)
}

// content encodes text and images.
func (e encoder) content(parts []llm.Part) []byte {
	var b []byte
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case llm.PartText:
			b = appendText(b, p.Text)
		case llm.PartImage:
			b = e.appendImage(b, p)
		}
	}
	return b
}

func (e encoder) result(m *llm.Message) []byte {
	b := []byte{'{'}
	content := e.content(m.Parts)
	if len(content) > 0 {
		b = append(append(append(b, `"content":[`...), content...), `],`...)
	}
	// A result with is_error may contain only text.
	if m.IsError && !bytes.Contains(content, []byte(imageEnd)) {
		b = append(b, `"is_error":true,`...)
	}
	b = dialect.AppendString(append(b, `"tool_use_id":`...), dialect.CallID(m.CallID, maxID))
	return append(b, `,"type":"tool_result"}`...)
}

func (e encoder) answer(m *llm.Message) []byte {
	parts := m.Parts
	for n := len(parts); n > 0 && (parts[n-1].Kind == llm.PartThinking || blank(&parts[n-1])); n-- {
		parts = parts[:n-1] // an assistant message must not end with thinking
	}
	var b []byte
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Kind == llm.PartText:
			b = appendText(b, p.Text)
		case p.Kind == llm.PartThinking && m.Provider == e.provider:
			b = appendThinking(b, p)
		case p.Kind == llm.PartCall && p.Call != nil:
			b = dialect.AppendString(append(dialect.Comma(b), `{"id":`...), dialect.CallID(p.Call.ID, maxID))
			b = append(append(b, `,"input":`...), dialect.Args(p.Call)...)
			b = dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(p.Call.Name))
			b = append(b, `,"type":"tool_use"}`...)
		}
	}
	return b
}

// blank reports whether p is text that the service rejects as empty.
func blank(p *llm.Part) bool { return p.Kind == llm.PartText && strings.TrimSpace(p.Text) == "" }

func appendText(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	b = dialect.AppendString(append(dialect.Comma(b), `{"text":`...), text)
	return append(b, `,"type":"text"}`...)
}

// Only thinking blocks begin with these.
const (
	thinkingStart = `{"signature":`
	redactedStart = `{"data":`
)

func appendThinking(b []byte, p *llm.Part) []byte {
	switch {
	case p.Redacted != "":
		b = dialect.AppendString(append(dialect.Comma(b), redactedStart...), p.Redacted)
		return append(b, `,"type":"redacted_thinking"}`...)
	case p.Signature != "":
		b = dialect.AppendString(append(dialect.Comma(b), thinkingStart...), p.Signature)
		b = dialect.AppendString(append(b, `,"thinking":`...), p.Text)
		return append(b, `,"type":"thinking"}`...)
	}
	return b
}

// imageEnd is the end of an image block. It cannot occur in text, whose quotes
// are escaped.
const imageEnd = `,"type":"image"}`

func (e encoder) appendImage(b []byte, p *llm.Part) []byte {
	if why := dialect.OmitImage(p, e.images, maxImage); why != "" {
		return appendText(b, dialect.ImageNote(p, why))
	}
	mime, _ := dialect.ImageType(p.MIME)
	b = dialect.AppendBase64(append(dialect.Comma(b), `{"source":{"data":"`...), p.Data)
	b = dialect.AppendString(append(b, `","media_type":`...), mime)
	return append(append(b, `,"type":"base64"}`...), imageEnd...)
}
