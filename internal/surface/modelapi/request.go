package modelapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// request is what a client asks for, in whatever form.
type request struct {
	model    string
	stream   bool
	usage    bool     // a stream ends with the usage
	user     string   // selects a session that continues; "": none
	previous string   // id of the answer whose session continues; "": none
	system   []string // instructions
	earlier  []turn   // before the message
	text     string   // of the message
	media    []chela.Media
}

// turn is one message of a conversation that the client keeps.
type turn struct {
	who, text string
	own       bool // it is of the assistant
}

// history returns the earlier messages as text for the model.
func (r *request) history() string {
	var b strings.Builder
	for i, t := range r.earlier {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t.who + ": " + strings.ReplaceAll(t.text, "\n", "\n  "))
	}
	return b.String()
}

// invalid returns the fault of a request that the client must change.
func invalid(param, format string, args ...any) error {
	return &fault{status: http.StatusBadRequest, param: param, text: fmt.Sprintf(format, args...)}
}

// decode decodes the body of a request.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return invalid(t.Field, "%s has the wrong type: %s", cmp.Or(t.Field, "the body"), t.Value)
	}
	if err != nil {
		return invalid("", "the body is not valid JSON: %v", err)
	}
	return nil
}

// refuse returns an error if a request asks for something that would change its answer and
// that the assistant does not do.
func refuse(asked map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] {
			return invalid(name, "%s is not supported: %s", name, reasons[name])
		}
	}
	return nil
}

// reasons says why a member of a request is refused.
var reasons = map[string]string{
	"n":                  "the assistant gives one answer",
	"audio":              "answers are text",
	"modalities":         "answers are text",
	"logprobs":           "the assistant is more than one call of a model",
	"top_logprobs":       "the assistant is more than one call of a model",
	"tools":              "the assistant uses its own tools; leave it out, or set tool_choice to none",
	"functions":          "the assistant uses its own tools; leave it out",
	"mcp_servers":        "the assistant uses its own servers; see: chela mcp --help",
	"response_format":    "answers are text; ask for JSON in the message",
	"text.format":        "answers are text; ask for JSON in the message",
	"output_config":      "answers are text; ask for JSON in the message",
	"stop":               "the assistant decides where its answer ends",
	"stop_sequences":     "the assistant decides where its answer ends",
	"background":         "wait for the answer; it is also in the session",
	"conversation":       "continue with previous_response_id or user",
	"prompt":             "there are no stored prompts",
	"web_search_options": "the assistant uses its own tools; leave it out",
}

// given reports whether a member is present and not null, false, 0, empty or one of the
// values, as JSON.
func given(raw json.RawMessage, except ...string) bool {
	raw = bytes.TrimSpace(raw)
	switch s := string(raw); s {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return false
	default:
		return !slices.Contains(except, s)
	}
}

// kindOf returns the member type of an object, or the value itself if it is a string.
func kindOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &o) // "": neither
	return o.Type
}

// message is a message of a conversation as a client sends it.
type message struct {
	Role    string  `json:"role"`
	Name    string  `json:"name"`
	Content content `json:"content"`
}

// content is text, or a list of parts.
type content []part

// UnmarshalJSON accepts a string, a list of parts, or null.
func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		*c = content{{leaf: leaf{Type: "text", Text: text}}}
		return nil
	}
	return json.Unmarshal(b, (*[]part)(c))
}

// leaf is a part of a message. The members are those of all forms; Type says which count.
type leaf struct {
	Type     string  `json:"type"`
	Text     string  `json:"text"`
	Refusal  string  `json:"refusal"`
	ImageURL link    `json:"image_url"`
	File     *file   `json:"file"`
	Source   *source `json:"source"`
	Title    string  `json:"title"`
	file             // of an input_file
	Name     string  `json:"name"` // of a tool_use

	Input json.RawMessage `json:"input"`
}

// part is a leaf, or the result of a tool, which contains leaves.
type part struct {
	leaf
	Content json.RawMessage `json:"content"`
}

// file is the content of a file, or where it is.
type file struct {
	ID   string `json:"file_id"`
	URL  string `json:"file_url"`
	Data string `json:"file_data"`
	Name string `json:"filename"`
}

// source is the content of an image or a document, or where it is.
type source struct {
	Type     string `json:"type"` // base64, url, text, file
	Media    string `json:"media_type"`
	Data     string `json:"data"`
	URL      string `json:"url"`
	Filename string `json:"filename"`
}

// link is a URL, or an object with one.
type link string

// UnmarshalJSON accepts a string, or an object with the member url.
func (l *link) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(l))
	}
	var o struct {
		URL string `json:"url"`
	}
	err := json.Unmarshal(b, &o)
	*l = link(o.URL)
	return err
}

// read returns the text of the content and what is attached to it. Attachments of a message
// that is not the last one are only mentioned.
func (c content) read(last bool) (text string, files []chela.Media, err error) {
	var texts []string
	for _, p := range c {
		if p.Type == "tool_result" {
			s, err := p.result()
			if err != nil {
				return "", nil, err
			}
			texts = append(texts, s)
			continue
		}
		m, err := p.attachment(last)
		switch {
		case err != nil:
			return "", nil, err
		case m != nil && last:
			files = append(files, *m)
			continue
		case m != nil:
			texts = append(texts, "["+cmp.Or(m.Name, m.Type)+"]")
			continue
		}
		s, err := p.words()
		if err != nil {
			return "", nil, err
		}
		texts = append(texts, s)
	}
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	return strings.TrimSpace(strings.Join(texts, "\n")), files, nil
}

// words returns the text of a part.
func (p *leaf) words() (string, error) {
	switch p.Type {
	case "text", "input_text", "output_text", "":
		return p.Text, nil
	case "refusal":
		return p.Refusal, nil
	case "tool_use":
		return "[called " + p.Name + " with " + string(p.Input) + "]", nil
	case "thinking", "redacted_thinking", "reasoning":
		return "", nil
	case "input_audio":
		return "", invalid("messages", "audio is not supported: send text, images or files")
	}
	return "", invalid("messages", "parts of the type %q are not supported: send text, images or files", clip(p.Type))
}

// result returns the result of a tool as text.
func (p *part) result() (string, error) {
	var inside struct {
		Content leaves `json:"content"`
	}
	if err := decode(append(append([]byte(`{"content":`), cmp.Or(string(p.Content), "null")...), '}'),
		&inside); err != nil {
		return "", err
	}
	var texts []string
	for _, l := range inside.Content {
		s := "[" + l.Type + "]"
		if l.Type == "text" {
			s = l.Text
		}
		texts = append(texts, s)
	}
	return "[result of a tool] " + strings.Join(texts, "\n"), nil
}

// leaves is text, or a list of leaves.
type leaves []leaf

// UnmarshalJSON accepts a string, a list of leaves, or null.
func (l *leaves) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		*l = leaves{{Type: "text"}}
		return json.Unmarshal(b, &(*l)[0].Text)
	}
	return json.Unmarshal(b, (*[]leaf)(l))
}

// attachment returns the image or file of a part; nil: it is none. Only that of the last
// message has content.
func (p *leaf) attachment(last bool) (*chela.Media, error) {
	var from string // where the content is instead; "": in data
	var data, kind, name string
	image := false
	switch p.Type {
	case "image_url", "input_image", "image":
		image = true
		switch s := p.Source; {
		case s != nil && s.Type == "base64":
			data, kind = s.Data, s.Media
		case s != nil:
			from = cmp.Or(s.URL, s.Type)
		case strings.HasPrefix(string(p.ImageURL), "data:"):
			data = string(p.ImageURL)
		default:
			from = cmp.Or(string(p.ImageURL), p.file.ID, "nothing")
		}
	case "file", "input_file", "document":
		f := p.file
		if p.File != nil {
			f = *p.File
		}
		name, data, from = cmp.Or(f.Name, p.Title), f.Data, cmp.Or(f.ID, f.URL)
		switch s := p.Source; {
		case s == nil:
		case s.Type == "text":
			return &chela.Media{Name: cmp.Or(name, s.Filename, "document.txt"), Type: cmp.Or(s.Media, "text/plain"),
				Data: []byte(s.Data)}, nil
		case s.Type == "base64":
			name, data, kind = cmp.Or(name, s.Filename), s.Data, s.Media
		default:
			from = cmp.Or(s.URL, s.Type)
		}
		name = cmp.Or(name, "file")
	default:
		return nil, nil
	}
	if !last {
		return &chela.Media{Name: name, Type: "image"}, nil
	}
	what := "file"
	if image {
		what = "image"
	}
	if data == "" {
		return nil, invalid("messages",
			"the %s is not in the request (%s): send its content in base64, in a data: URL or as the form of the request says",
			what, clip(from))
	}
	m, err := contentOf(data, kind)
	if err != nil {
		return nil, invalid("messages", "the %s cannot be read: %v", what, err)
	}
	m.Name = name
	if image {
		if _, err := media.Probe(m.Data); err != nil {
			return nil, invalid("messages", "the image cannot be read: %v", err)
		}
	}
	return m, nil
}

// contentOf decodes base64, which may be in a data: URL.
func contentOf(data, kind string) (*chela.Media, error) {
	if rest, ok := strings.CutPrefix(data, "data:"); ok {
		head, body, ok := strings.Cut(rest, ",")
		claimed, encoded := strings.CutSuffix(head, ";base64")
		if !ok || !encoded {
			return nil, errors.New("want a URL such as data:image/png;base64,iVBOR…")
		}
		claimed, _, _ = strings.Cut(claimed, ";")
		data, kind = body, cmp.Or(kind, claimed)
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(b) == 0 {
		return nil, errors.New("its content is not in base64")
	}
	return &chela.Media{Type: cmp.Or(kind, http.DetectContentType(b)), Data: b}, nil
}

// clip shortens a text of a client for an error.
func clip(s string) string { return humanize.Truncate(s, 80) }

// converse distributes the messages of a conversation: instructions, the message to answer,
// which is the last one, and what was said before.
func (r *request) converse(list []message) error {
	last := len(list) - 1
	for last >= 0 && isInstruction(list[last].Role) {
		last--
	}
	if last < 0 {
		return invalid("messages", "there is no message with the role user")
	}
	for i, m := range list {
		text, files, err := m.Content.read(i == last)
		if err != nil {
			return err
		}
		if isInstruction(m.Role) {
			if len(files) > 0 {
				return invalid("messages", "instructions are text")
			}
			r.system = append(r.system, text)
			continue
		}
		who := ""
		switch m.Role {
		case "user":
			who = cmp.Or(oneLine(m.Name), "User")
		case "assistant":
			who = "Assistant"
		case "tool", "function":
			who = strings.TrimSpace("Tool " + oneLine(m.Name))
		default:
			return invalid("messages", "the role %q does not exist: want user, assistant, system, developer or tool",
				clip(m.Role))
		}
		switch {
		case i < last && text != "":
			r.earlier = append(r.earlier, turn{who, text, m.Role == "assistant"})
		case i < last:
		case m.Role == "assistant":
			return invalid("messages",
				"the last message must be one of the user: the assistant does not continue its own answer")
		case m.Role != "user":
			r.text = who + ": " + text
		default:
			r.text, r.media = text, files
		}
	}
	if r.text == "" && len(r.media) == 0 {
		return invalid("messages", "the last message is empty")
	}
	return nil
}

func isInstruction(role string) bool { return role == "system" || role == "developer" }

// oneLine returns a name that a client gave on one line.
func oneLine(s string) string { return clip(humanize.OneLine(s)) }
