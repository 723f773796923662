package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
)

// ImageType returns the type of an image as services take it, and whether they
// do.
func ImageType(mime string) (string, bool) {
	mime, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(mime)), ";")
	switch mime {
	case "image/jpg":
		return "image/jpeg", true
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return mime, true
	}
	return mime, false
}

// ImageNote is the text that stands for an image that is not sent. One that is
// kept stays within reach: the note names it as the image tool takes it.
func ImageNote(p *llm.Part, why string) string {
	name := "image"
	if p.Ref != "" {
		name = "image media:" + p.Ref
	}
	return fmt.Sprintf("[%s, %s, %d bytes: %s]", name, p.MIME, p.Size(), why)
}

// AppendBase64 appends data in base 64.
func AppendBase64(dst, data []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, data)
}

// Images is where a service gets the images that messages refer to, and what it
// has refused. The zero Images has none.
type Images struct {
	// Load returns the content of an image and its type.
	Load func(ref string) (data []byte, mime string, err error)
	// Seen reports whether a model takes images; nil: all do.
	Seen func(model string) bool

	mu      sync.Mutex
	refused map[string]string // by model and reference: why
}

// maxRefused bounds what is remembered.
const maxRefused = 1024

// fill returns the request with the content of the images that it refers to, so
// that it is in memory for one call only. A model that takes none is told the
// references.
func (im *Images) fill(r *llm.Request) *llm.Request {
	return mapImages(r, func(p llm.Part) llm.Part {
		if p.Ref == "" || len(p.Data) > 0 {
			return p
		}
		if im.Seen != nil && !im.Seen(r.Model) {
			return llm.Text(ImageNote(&p, "this model takes no images; the image tool can look at it"))
		}
		if why, ok := im.why(r.Model, p.Ref); ok {
			return llm.Text(ImageNote(&p, why))
		}
		if im.Load == nil {
			return llm.Text(ImageNote(&p, "it cannot be had here"))
		}
		data, mime, err := im.Load(p.Ref)
		if err != nil || len(data) == 0 {
			return llm.Text(ImageNote(&p, "its file is gone or damaged"))
		}
		p.Data, p.MIME = data, mime
		return p
	})
}

// mapImages returns the request with f of each image that is sent in it; the
// request itself when none changed.
func mapImages(r *llm.Request, f func(llm.Part) llm.Part) *llm.Request {
	out := *r
	out.Messages = nil
	for i, m := range r.Messages {
		changed := mapMessage(m, f)
		if changed == nil {
			continue
		}
		if out.Messages == nil {
			out.Messages = append(out.Messages, r.Messages...)
		}
		out.Messages[i] = changed
	}
	if out.Messages == nil {
		return r
	}
	return &out
}

// mapMessage is mapImages for a message; nil: none changed.
func mapMessage(m *llm.Message, f func(llm.Part) llm.Part) *llm.Message {
	if m.Role == llm.RoleAssistant {
		return nil
	}
	var parts []llm.Part
	for i := range m.Parts {
		if m.Parts[i].Kind != llm.PartImage {
			continue
		}
		p := f(m.Parts[i])
		if p.Kind == llm.PartImage && len(p.Data) == len(m.Parts[i].Data) {
			continue
		}
		if parts == nil {
			parts = append(parts, m.Parts...)
		}
		parts[i] = p
	}
	if parts == nil {
		return nil
	}
	return &llm.Message{Role: m.Role, Parts: parts, CallID: m.CallID, ToolName: m.ToolName, IsError: m.IsError}
}

func (im *Images) why(model, ref string) (string, bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	why, ok := im.refused[model+" "+ref]
	return why, ok
}

// without returns the request without the image for which the service refused
// it, and what the person is to be told; nil when it was refused for something
// else. An image that is kept is not sent to that model again.
func (im *Images) without(r *llm.Request, body *Body, e *llm.Error) (again *llm.Request, note string) {
	if e == nil || e.Class != llm.ClassFormat || e.Status == 0 || !strings.Contains(strings.ToLower(e.Message), "image") {
		return nil, ""
	}
	at := culprit(r, body, e.Message)
	if at < 0 {
		return nil, ""
	}
	n, why := -1, "the service refused it: "+e.Message
	again = mapImages(r, func(p llm.Part) llm.Part {
		if n++; n != at {
			return p
		}
		im.remember(r.Model, p.Ref, why)
		return llm.Text(ImageNote(&p, why))
	})
	return again, "an image was not seen: " + why
}

func (im *Images) remember(model, ref, why string) {
	if ref == "" {
		return
	}
	im.mu.Lock()
	defer im.mu.Unlock()
	if im.refused == nil || len(im.refused) >= maxRefused {
		im.refused = make(map[string]string)
	}
	im.refused[model+" "+ref] = why
}

// culprit returns which image of the request is meant by the words of a service:
// the one at the place that they name, or else the last one, which was not there
// when the service answered before; -1 for none.
func culprit(r *llm.Request, body *Body, words string) int {
	var images []bool // whether they were sent
	mapImages(r, func(p llm.Part) llm.Part {
		_, ok := ImageType(p.MIME)
		images = append(images, ok && len(p.Data) > 0)
		return p
	})
	nth := placed(body, words)
	last := -1
	for i, sent := range images {
		if !sent {
			continue
		}
		if last = i; nth == 0 {
			return i
		}
		nth--
	}
	return last
}

// placed returns how many images stand in the body before the place that the
// words name, as messages.2.content.0 or messages[2].content[0]; -1: they name
// none.
func placed(body *Body, words string) int {
	_, path, ok := strings.Cut(words, "messages")
	if !ok {
		return -1
	}
	path, _, _ = strings.Cut(path, " ")
	var sent struct {
		Messages []any `json:"messages"`
	}
	if json.Unmarshal(body.Bytes(), &sent) != nil {
		return -1
	}
	n, list := 0, sent.Messages
	for _, word := range strings.FieldsFunc(path, func(c rune) bool { return strings.ContainsRune(".[]:", c) }) {
		at, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		if at < 0 || at >= len(list) {
			return -1
		}
		for _, before := range list[:at] {
			n += imagesIn(before)
		}
		here, ok := list[at].(map[string]any)
		if !ok {
			return -1
		}
		if isImage(here) {
			return n
		}
		list, _ = here["content"].([]any)
	}
	return -1
}

func isImage(block map[string]any) bool {
	return block["type"] == "image" || block["type"] == "image_url"
}

// imagesIn counts the images in a piece of a request.
func imagesIn(v any) int {
	m, ok := v.(map[string]any)
	if !ok {
		return 0
	}
	if isImage(m) {
		return 1
	}
	n := 0
	list, _ := m["content"].([]any)
	for _, part := range list {
		n += imagesIn(part)
	}
	return n
}
