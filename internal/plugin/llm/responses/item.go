package responses

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	maxID    = 64       // characters of a call id
	maxImage = 15 << 20 // bytes; the service accepts 20 MB in base64
)

const noOutput = "(no output)"

// encoder encodes messages as items.
type encoder struct {
	provider string
	model    string
	images   bool // the model supports images
	thoughts bool // what the model thought is sent back
}

// key returns the name of the encoding for llm.Message.Memo. The thoughts of a model can be
// read by that model only.
func (e encoder) key() string {
	k := "responses " + e.provider
	if e.thoughts {
		k += "/" + e.model
	}
	if !e.images {
		k += " without images"
	}
	return k
}

// add appends the items of the messages, the note, and the end of the request. It reports
// whether there is an item of a message.
func (e encoder) add(b *dialect.Body, msgs []*llm.Message, note string) bool {
	key, any := e.key(), false
	b.AddString("[")
	for _, m := range msgs {
		enc := m.Memo(key, func() []byte { return e.message(m) })
		if len(enc) == 0 {
			continue
		}
		if any {
			b.AddString(",")
		}
		b.Add(enc)
		any = true
	}
	if note != "" && any {
		b.AddString(",")
		b.Add(append(dialect.AppendString([]byte(`{"content":`), note), `,"role":"user"}`...))
	}
	b.AddString("]}")
	return any
}

// message returns the items of m, separated by commas.
func (e encoder) message(m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleTool:
		return e.result(m)
	case llm.RoleAssistant:
		return e.answer(m)
	}
	content := e.content(m)
	if content == nil {
		return nil
	}
	b := append([]byte(`{"content":`), content...)
	return append(b, `,"role":"user"}`...)
}

// content returns text and images: a string if possible, or else a list; nil: there is
// nothing.
func (e encoder) content(m *llm.Message) []byte {
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
			mime, _ := dialect.ImageType(p.MIME)
			images = append(append(append(dialect.Comma(images), `{"image_url":"data:`...), mime...), ";base64,"...)
			images = append(dialect.AppendBase64(images, p.Data), `","type":"input_image"}`...)
		}
	}
	text := strings.Join(texts, "\n\n")
	switch {
	case len(images) == 0 && text == "":
		return nil
	case len(images) == 0:
		return dialect.AppendString(nil, text)
	}
	b := []byte{'['}
	if text != "" {
		b = append(dialect.AppendString(append(b, `{"text":`...), text), `,"type":"input_text"},`...)
	}
	return append(append(b, images...), ']')
}

func (e encoder) result(m *llm.Message) []byte {
	content := e.content(m)
	if content == nil {
		content = dialect.AppendString(nil, noOutput)
	}
	b := dialect.AppendString([]byte(`{"call_id":`), dialect.CallID(m.CallID, maxID))
	b = append(append(b, `,"output":`...), content...)
	return append(b, `,"type":"function_call_output"}`...)
}

// answer encodes what the model said and called. A thought is followed by what came of it;
// otherwise it is left out, because the service would reject it.
func (e encoder) answer(m *llm.Message) []byte {
	var b, thoughts []byte
	item := func() []byte { // the items so far, to append the next one
		if len(thoughts) > 0 {
			b = append(dialect.Comma(b), thoughts...)
			thoughts = nil
		}
		return dialect.Comma(b)
	}
	own := e.thoughts && m.Provider == e.provider && m.Model == e.model
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartThinking && own:
			thoughts = appendThought(thoughts, p)
		case p.Kind == llm.PartText && strings.TrimSpace(p.Text) != "":
			b = dialect.AppendString(append(item(), `{"content":`...), p.Text)
			b = append(b, `,"role":"assistant"}`...)
		case p.Kind == llm.PartCall && p.Call != nil:
			b = dialect.AppendString(append(item(), `{"arguments":`...), string(dialect.Args(p.Call)))
			b = dialect.AppendString(append(b, `,"call_id":`...), dialect.CallID(p.Call.ID, maxID))
			b = dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(p.Call.Name))
			b = append(b, `,"type":"function_call"}`...)
		}
	}
	return b
}

// sign returns the signature of a thought: the id of its item, and its encrypted form.
func sign(id, encrypted string) string {
	if id == "" || encrypted == "" {
		return ""
	}
	return id + " " + encrypted
}

// appendThought appends the item of a thought that can be sent back.
func appendThought(b []byte, p *llm.Part) []byte {
	id, encrypted, ok := strings.Cut(p.Signature, " ")
	if !ok {
		return b
	}
	b = dialect.AppendString(append(dialect.Comma(b), `{"encrypted_content":`...), encrypted)
	b = append(dialect.AppendString(append(b, `,"id":`...), id), `,"summary":[`...)
	if p.Text != "" {
		b = append(dialect.AppendString(append(b, `{"text":`...), p.Text), `,"type":"summary_text"}`...)
	}
	return append(b, `],"type":"reasoning"}`...)
}
