package gemini

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	maxID    = 64
	maxImage = 14 << 20 // bytes; a whole request has at most 20 MB, with base64
)

// Parts that complete a history.
const (
	opening      = `{"text":"(The conversation begins.)"}`
	continuation = `{"text":"(Continue.)"}`
)

// unsigned is the signature of a call that another model made, as the documentation of the
// service names it.
const unsigned = "skip_thought_signature_validator"

// encoder encodes messages as lists of parts.
type encoder struct {
	provider string
	model    string
	images   bool // the model supports images
}

// key returns the name of the encoding for llm.Message.Memo. Signatures are of one model.
func (e encoder) key() string {
	k := "gemini " + e.provider + "/" + e.model
	if !e.images {
		k += " without images"
	}
	return k
}

// speaker is the one of a content.
type speaker int

const (
	nobody  speaker = iota
	user            // of the role user
	results         // results of calls, of the role user: they follow the calls alone
	model           // of the role model
)

// add appends the contents and the end of the request. Consecutive messages of one speaker
// become one content. It reports whether there is a message.
func (e encoder) add(b *dialect.Body, msgs []*llm.Message, note string) bool {
	key, last := e.key(), nobody
	turn := func(s speaker) {
		if last != nobody {
			b.AddString(closing(last) + ",")
		}
		b.AddString(`{"parts":[`)
		last = s
	}
	b.AddString("[")
	for _, m := range msgs {
		enc := m.Memo(key, func() []byte { return e.message(m) })
		if len(enc) == 0 {
			continue
		}
		who := user
		switch m.Role {
		case llm.RoleAssistant:
			who = model
		case llm.RoleTool:
			who = results
		}
		if last == nobody && who != user {
			turn(user)
			b.AddString(opening)
		}
		if who == last {
			b.AddString(",")
		} else {
			turn(who)
		}
		b.Add(enc)
	}
	if last == nobody {
		return false
	}
	if last == model {
		turn(user)
		b.AddString(continuation)
	}
	if text := appendText(nil, note); text != nil {
		if last == user {
			b.AddString(",")
		} else {
			turn(user)
		}
		b.Add(text)
	}
	b.AddString(closing(last) + "]}")
	return true
}

// closing returns the end of a content.
func closing(s speaker) string {
	if s == model {
		return `],"role":"model"}`
	}
	return `],"role":"user"}`
}

// message returns the parts of m, separated by commas.
func (e encoder) message(m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleTool:
		return e.result(m)
	case llm.RoleAssistant:
		return e.answer(m)
	}
	return e.appendContent(nil, m)
}

// appendContent appends text and images.
func (e encoder) appendContent(b []byte, m *llm.Message) []byte {
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case llm.PartText:
			b = appendText(b, p.Text)
		case llm.PartImage:
			b = e.appendImage(b, p)
		}
	}
	return b
}

// result encodes the result of a call, which is an object. Its images follow.
func (e encoder) result(m *llm.Message) []byte {
	var texts []string
	images := &llm.Message{}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText:
			texts = append(texts, p.Text)
		case p.Kind == llm.PartImage:
			images.Parts = append(images.Parts, *p)
		}
	}
	b := dialect.AppendString([]byte(`{"functionResponse":{"id":`), dialect.CallID(m.CallID, maxID))
	b = dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(m.ToolName))
	if m.IsError {
		b = append(b, `,"response":{"error":`...)
	} else {
		b = append(b, `,"response":{"output":`...)
	}
	b = append(dialect.AppendString(b, strings.Join(texts, "\n\n")), `}}}`...)
	return e.appendContent(b, images)
}

// answer encodes what the model said and called. The service does not need to get its
// thoughts back, only their signatures, which are with the calls.
func (e encoder) answer(m *llm.Message) []byte {
	own := m.Provider == e.provider && m.Model == e.model
	var b []byte
	called := false
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText:
			b = appendText(b, p.Text)
		case p.Kind == llm.PartCall && p.Call != nil:
			b = append(append(dialect.Comma(b), `{"functionCall":{"args":`...), dialect.Args(p.Call)...)
			b = dialect.AppendString(append(b, `,"id":`...), dialect.CallID(p.Call.ID, maxID))
			b = append(dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(p.Call.Name)), '}')
			switch {
			case own && p.Signature != "":
				b = dialect.AppendString(append(b, `,"thoughtSignature":`...), p.Signature)
			case !called && hasLevels(e.model): // it has to be at the first call
				b = append(b, `,"thoughtSignature":"`+unsigned+`"`...)
			}
			b = append(b, '}')
			called = true
		}
	}
	return b
}

// appendText appends a text, unless it is one that the service refuses as empty.
func appendText(b []byte, text string) []byte {
	if strings.TrimSpace(text) == "" {
		return b
	}
	return append(dialect.AppendString(append(dialect.Comma(b), `{"text":`...), text), '}')
}

func (e encoder) appendImage(b []byte, p *llm.Part) []byte {
	mime, _ := dialect.ImageType(p.MIME)
	why := dialect.OmitImage(p, e.images, maxImage)
	if why == "" && mime == "image/gif" {
		why = "unsupported image type"
	}
	if why != "" {
		return appendText(b, dialect.ImageNote(p, why))
	}
	b = dialect.AppendBase64(append(dialect.Comma(b), `{"inlineData":{"data":"`...), p.Data)
	return append(dialect.AppendString(append(b, `","mimeType":`...), mime), `}}`...)
}
