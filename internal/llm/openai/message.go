package openai

import (
	"bytes"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
)

const (
	maxID    = 40       // characters of a call's id
	shortID  = 9        // where that is the rule
	maxImage = 15 << 20 // bytes; in base 64 the service takes 20 MB
)

// Messages that stand for what a history lacks.
const (
	opening      = `{"content":"(The conversation begins.)","role":"user"}`
	continuation = `{"content":"(Continue.)","role":"user"}`
	noOutput     = "(no output)"
)

// encoder encodes messages.
type encoder struct {
	provider string
	images   bool // the model takes them
	quirks   quirks
}

// key names the encoding of e for llm.Message.Memo.
func (e encoder) key() string {
	k := "openai " + e.provider
	if !e.images {
		k += " without images"
	}
	return k
}

// add appends the messages and the end of the request; what would be empty is
// left out. Images of results follow, in a message of the user, the last result
// of their turn. The last text of the user bears the marker, if there is one. It
// reports whether there is a message.
func (e encoder) add(b *dialect.Body, msgs []*llm.Message, marker string) bool {
	key := e.key()
	marked := -1
	if marker != "" {
		marked = lastText(msgs)
	}
	var images [][]byte // of results, waiting for the turn's end
	var last llm.Role
	put := func(role llm.Role, enc []byte) {
		if last != "" {
			b.AddString(",")
		}
		b.Add(enc)
		last = role
	}
	flush := func() {
		if len(images) > 0 {
			put(llm.RoleUser, imageMessage(images))
			images = nil
		}
	}
	for i, m := range msgs {
		enc := m.Memo(key, func() []byte { return e.message(m) })
		if len(enc) == 0 {
			continue
		}
		if i == marked {
			enc = markText(enc, marker)
		}
		if m.Role != llm.RoleTool {
			flush()
		} else if hasImage(m) {
			var parts []byte
			enc, parts, _ = bytes.Cut(enc, separator)
			if len(parts) > 0 {
				images = append(images, parts)
			}
		}
		if last == "" && m.Role != llm.RoleUser {
			put(llm.RoleUser, []byte(opening))
		}
		put(m.Role, enc)
	}
	flush()
	if last == llm.RoleAssistant {
		put(llm.RoleUser, []byte(continuation))
	}
	b.AddString("]}")
	return last != ""
}

// lastText returns where the last message of the user is that is text only; -1
// for none.
func lastText(msgs []*llm.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if m := msgs[i]; m.Role == llm.RoleUser && !hasImage(m) && m.PlainText() != "" {
			return i
		}
	}
	return -1
}

// Around the text in a message of the user that is text only.
const (
	beforeText = `{"content":`
	behindText = `,"role":"user"}`
)

// markText puts a cache marker to such a message.
func markText(enc []byte, marker string) []byte {
	text := enc[len(beforeText) : len(enc)-len(behindText)]
	return slices.Concat(
		[]byte(beforeText+`[{"text":`), text, []byte(`,"type":"text"`+marker+"}]"+behindText))
}

// separator stands, in what is kept of a result with images, between its
// message and its images. JSON holds no such byte.
var separator = []byte{0}

func hasImage(m *llm.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Kind == llm.PartImage {
			return true
		}
	}
	return false
}

// imageMessage returns a message of the user with the images of results.
func imageMessage(images [][]byte) []byte {
	b := []byte(`{"content":[{"text":"Images of the tool results above:","type":"text"}`)
	for _, parts := range images {
		b = append(append(b, ','), parts...)
	}
	return append(b, `],"role":"user"}`...)
}

// message returns m in the service's form; nothing when it would be empty.
func (e encoder) message(m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleTool:
		return e.result(m)
	case llm.RoleAssistant:
		return e.answer(m)
	}
	return e.user(m)
}

// text returns the texts of m, with a note for each image that is not sent.
func (e encoder) text(m *llm.Message) string {
	var texts []string
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText && p.Text != "":
			texts = append(texts, p.Text)
		case p.Kind == llm.PartImage && e.refuses(p) != "":
			texts = append(texts, dialect.ImageNote(p, e.refuses(p)))
		}
	}
	return strings.Join(texts, "\n\n")
}

// refuses returns why an image is not sent; "" when it is.
func (e encoder) refuses(p *llm.Part) string {
	_, ok := dialect.ImageType(p.MIME)
	switch {
	case !e.images:
		return "this model takes no images"
	case !ok:
		return "this type is not taken"
	case len(p.Data) == 0 || len(p.Data) > maxImage:
		return "this size is not taken"
	}
	return ""
}

// user keeps to a plain string where it can: not every server knows parts.
func (e encoder) user(m *llm.Message) []byte {
	images := e.appendImages(nil, m)
	text := e.text(m)
	if len(images) == 0 {
		if text == "" {
			return nil
		}
		return append(dialect.AppendString([]byte(beforeText), text), behindText...)
	}
	b := []byte(`{"content":[`)
	if text != "" {
		b = append(dialect.AppendString(append(b, `{"text":`...), text), `,"type":"text"},`...)
	}
	return append(append(b, images...), `],"role":"user"}`...)
}

// appendImages appends the images of m as parts, separated by commas.
func (e encoder) appendImages(b []byte, m *llm.Message) []byte {
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != llm.PartImage || e.refuses(p) != "" {
			continue
		}
		if len(b) > 0 {
			b = append(b, ',')
		}
		mime, _ := dialect.ImageType(p.MIME)
		b = append(append(append(b, `{"image_url":{"url":"data:`...), mime...), ";base64,"...)
		b = append(dialect.AppendBase64(b, p.Data), `"},"type":"image_url"}`...)
	}
	return b
}

func (e encoder) result(m *llm.Message) []byte {
	text := e.text(m)
	images := e.appendImages(nil, m)
	switch {
	case text == "" && len(images) > 0:
		text = "(image, see below)"
	case text == "":
		text = noOutput
	}
	b := dialect.AppendString([]byte(`{"content":`), text)
	b = dialect.AppendString(append(b, `,"role":"tool","tool_call_id":`...), e.callID(m.CallID))
	b = append(b, '}')
	if len(images) > 0 {
		b = append(append(b, separator...), images...)
	}
	return b
}

func (e encoder) answer(m *llm.Message) []byte {
	text, calls := e.text(m), m.Calls()
	if text == "" && len(calls) == 0 {
		return nil
	}
	b := []byte(`{"content":`)
	if text == "" {
		b = append(b, "null"...)
	} else {
		b = dialect.AppendString(b, text)
	}
	if thought := e.thought(m); thought != "" && len(calls) > 0 {
		b = dialect.AppendString(append(b, `,"reasoning_content":`...), thought)
	}
	b = append(b, `,"role":"assistant"`...)
	for i := range calls {
		c := &calls[i]
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = dialect.AppendString(append(b, `{"function":{"arguments":`...), string(dialect.Args(c)))
		b = dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(c.Name))
		b = dialect.AppendString(append(b, `},"id":`...), e.callID(c.ID))
		b = append(b, `,"type":"function"}`...)
	}
	if len(calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// thought returns the thinking of m for hosts that want it back.
func (e encoder) thought(m *llm.Message) string {
	if !e.quirks.reasoning || m.Provider != e.provider {
		return ""
	}
	var b strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == llm.PartThinking {
			b.WriteString(m.Parts[i].Text)
		}
	}
	return b.String()
}

func (e encoder) callID(id string) string {
	if e.quirks.mistral {
		return dialect.ShortID(id, shortID)
	}
	return dialect.CallID(id, maxID)
}
