package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	maxID    = 40       // characters of a call id
	maxImage = 15 << 20 // bytes; the service accepts 20 MB in base64
)

// Messages that complete a history.
const (
	opening      = `{"content":"(The conversation begins.)","role":"user"}`
	continuation = `{"content":"(Continue.)","role":"user"}`
	bridge       = `{"content":"(Noted.)","role":"assistant"}`
	noOutput     = "(no output)"
)

// encoder encodes messages.
type encoder struct {
	provider string
	images   bool // the model supports images
	quirks   *quirks
}

// key returns the name of the encoding for llm.Message.Memo.
func (e encoder) key() string {
	k := "openai " + e.provider
	q := e.quirks
	for _, w := range [...]struct {
		is   bool
		word string
	}{{!e.images, " without images"}, {q.resultName, " named"}, {q.thinkingField != "", " " + q.thinkingField},
		{q.empty != "", " " + q.empty}} {
		if w.is {
			k += w.word
		}
	}
	return k + strconv.Itoa(int(q.demands)) + q.blank + strconv.Itoa(q.callID)
}

// add appends the nonempty messages and the end of the request. Images of tool
// results follow the last result of their turn, in a user message. The last
// user text gets the cache marker, if there is one. The note, if there is one, is the
// last message. add reports whether there is a message.
func (e encoder) add(b *dialect.Body, msgs []*llm.Message, marker, note string) bool {
	t := turns{body: b, quirks: e.quirks}
	key := e.key()
	marked := -1
	if marker != "" {
		marked = lastText(msgs)
	}
	for i, m := range msgs {
		enc := m.Memo(key, func() []byte { return e.message(m) })
		if len(enc) == 0 {
			continue
		}
		if i == marked {
			enc = markText(enc, marker)
		}
		t.add(m, enc)
	}
	t.flush()
	if t.last == llm.RoleAssistant {
		t.put(llm.RoleUser, []byte(continuation))
	}
	if note != "" && t.last != "" {
		t.put(llm.RoleUser, append(dialect.AppendString([]byte(contentStart), note), behindText...))
	}
	t.write()
	b.AddString("]}")
	return t.last != ""
}

// turns writes encoded messages in an order that the service accepts. It delays each message by
// one, since only the next one decides whether it is merged.
type turns struct {
	body   *dialect.Body
	quirks *quirks

	images  [][]byte // of results, until the end of the turn: nothing may stand between the results
	last    llm.Role // role of the last message
	calls   bool     // the last message has tool calls
	pending []byte   // the last message, not written yet because the next one may be merged into it
	started bool     // a message was written
}

func (t *turns) add(m *llm.Message, enc []byte) {
	if m.Role != llm.RoleTool {
		t.flush()
	} else if hasImage(m) {
		var parts []byte
		enc, parts, _ = bytes.Cut(enc, separator)
		if len(parts) > 0 {
			t.images = append(t.images, parts)
		}
	}
	if t.last == "" && m.Role != llm.RoleUser {
		t.put(llm.RoleUser, []byte(opening))
	}
	t.put(m.Role, enc)
	t.calls = m.Role == llm.RoleAssistant && len(m.Calls()) > 0
}

// flush writes the images of the results of a turn.
func (t *turns) flush() {
	if len(t.images) > 0 {
		t.put(llm.RoleUser, imageMessage(t.images))
		t.images = nil
	}
}

// put writes a message or merges it with the last one.
func (t *turns) put(role llm.Role, enc []byte) {
	switch {
	case t.quirks.bridge && role == llm.RoleUser && t.last == llm.RoleTool:
		t.write()
		t.pending, t.last = []byte(bridge), llm.RoleAssistant
	case t.quirks.merge && role == t.last && role != llm.RoleTool && !t.calls:
		if joined, ok := join(t.pending, enc); ok {
			t.pending = joined
			return
		}
	}
	t.write()
	t.pending, t.last, t.calls = enc, role, false
}

// write writes the pending message.
func (t *turns) write() {
	if t.pending == nil {
		return
	}
	if t.started {
		t.body.AddString(",")
	}
	t.body.Add(t.pending)
	t.pending, t.started = nil, true
}

// contentStart is the beginning of most messages.
const contentStart = `{"content":`

// join merges two messages of the same role. The fields after the content are
// those of b. It reports whether it succeeded. It works on the encodings, so that merging needs
// no message to be encoded again.
func join(a, b []byte) ([]byte, bool) {
	head, _, ok := parts(a)
	more, tail, also := parts(b)
	switch {
	case !ok || !also || head[0] == 'n':
		return nil, false
	case more[0] == 'n' || len(more) == len(`""`):
		return slices.Concat([]byte(contentStart), head, tail), true
	case head[0] == '"' && more[0] == '"':
		return slices.Concat([]byte(contentStart), head[:len(head)-1], []byte(`\n\n`), more[1:], tail), true
	}
	return slices.Concat([]byte(contentStart+"["), asParts(head), []byte(","), asParts(more), []byte("]"), tail), true
}

// parts splits an encoded message into its content and the rest.
func parts(enc []byte) (content, rest []byte, ok bool) {
	body, ok := bytes.CutPrefix(enc, []byte(contentStart))
	if !ok {
		return nil, nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, nil, false
	}
	return raw, body[d.InputOffset():], true
}

// asParts returns the content as parts, without the brackets.
func asParts(content []byte) []byte {
	if content[0] == '[' {
		return content[1 : len(content)-1]
	}
	return slices.Concat([]byte(`{"text":`), content, []byte(`,"type":"text"}`))
}

// lastText returns the index of the last user message with only text, or -1.
func lastText(msgs []*llm.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if m := msgs[i]; m.Role == llm.RoleUser && !hasImage(m) && m.PlainText() != "" {
			return i
		}
	}
	return -1
}

// behindText is the end of a user message with text.
const behindText = `,"role":"user"}`

// markText adds a cache marker to such a message.
func markText(enc []byte, marker string) []byte {
	text := enc[len(contentStart) : len(enc)-len(behindText)]
	return slices.Concat(
		[]byte(contentStart+`[{"text":`), text, []byte(`,"type":"text"`+marker+"}]"+behindText))
}

// separator separates the message and the images in the stored encoding of a
// result with images. JSON cannot contain this byte.
var separator = []byte{0}

func hasImage(m *llm.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Kind == llm.PartImage {
			return true
		}
	}
	return false
}

// imageMessage returns a user message with the images of results.
func imageMessage(images [][]byte) []byte {
	b := []byte(`{"content":[{"text":"Images of the tool results above:","type":"text"}`)
	for _, parts := range images {
		b = append(append(b, ','), parts...)
	}
	return append(b, `],"role":"user"}`...)
}

// message returns the encoding of m, or nothing if it would be empty.
func (e encoder) message(m *llm.Message) []byte {
	switch m.Role {
	case llm.RoleTool:
		return e.result(m)
	case llm.RoleAssistant:
		return e.answer(m)
	}
	return e.user(m)
}

// text returns the text of m, with a note for each image that is not sent.
func (e encoder) text(m *llm.Message) string {
	var texts []string
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == llm.PartText && p.Text != "":
			texts = append(texts, p.Text)
		case p.Kind == llm.PartImage && e.omitted(p) != "":
			texts = append(texts, dialect.ImageNote(p, e.omitted(p)))
		}
	}
	return strings.Join(texts, "\n\n")
}

// omitted returns why an image is not sent, or "".
func (e encoder) omitted(p *llm.Part) string { return dialect.OmitImage(p, e.images, maxImage) }

// user encodes a user message. It uses a plain string if possible, because some
// servers do not support parts.
func (e encoder) user(m *llm.Message) []byte {
	images := e.appendImages(nil, m)
	text := e.text(m)
	if len(images) == 0 {
		if text == "" {
			return nil
		}
		return append(dialect.AppendString([]byte(contentStart), text), behindText...)
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
		if p.Kind != llm.PartImage || e.omitted(p) != "" {
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
	b := dialect.AppendString([]byte(contentStart), text)
	if e.quirks.resultName {
		b = dialect.AppendString(append(b, `,"name":`...), dialect.ToolName(m.ToolName))
	}
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
	b := []byte(contentStart)
	if text == "" {
		b = append(b, cmp.Or(e.quirks.empty, "null")...)
	} else {
		b = dialect.AppendString(b, text)
	}
	b = e.appendThought(b, m, len(calls) > 0)
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

// appendThought appends the field with the thinking of m, for services that
// require it.
func (e encoder) appendThought(b []byte, m *llm.Message, calls bool) []byte {
	q := e.quirks
	own := m.Provider == e.provider
	switch {
	case q.thinkingField == details:
		if own {
			return appendDetails(b, m)
		}
	case q.thinkingField != "" && (calls || q.demands == ofAll):
		var text string
		if own {
			text = dialect.Thinking(m)
		}
		if text != "" || q.demands != ofNone {
			return dialect.AppendString(append(b, `,"`+q.thinkingField+`":`...), cmp.Or(text, q.blank))
		}
	}
	return b
}

func (e encoder) callID(id string) string {
	if n := e.quirks.callID; n > 0 {
		return dialect.ShortID(id, n)
	}
	return dialect.CallID(id, maxID)
}

// replays reports whether the last assistant message, if it has calls, has the
// thinking that led to them.
func (e encoder) replays(msgs []*llm.Message) bool {
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		if m.Role == llm.RoleAssistant && len(m.Calls()) > 0 {
			return m.Provider == e.provider && len(appendDetails(nil, m)) > 0
		}
		if m.Role == llm.RoleAssistant {
			return true
		}
	}
	return true
}
