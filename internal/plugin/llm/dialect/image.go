package dialect

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/llm"
)

// ImageType returns the normalized type of an image and whether services
// support it.
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

// SupportsImages reports whether a model supports images. An unknown model is
// assumed to.
func SupportsImages(m llm.Model) bool { return m.ID == "" || m.Images }

// OmitImage returns the reason for which an image cannot be sent, or "". images
// reports whether the model supports images; limit is the maximum size in bytes.
func OmitImage(p *llm.Part, images bool, limit int) string {
	_, ok := ImageType(p.MIME)
	switch {
	case !images:
		return "this model does not support images"
	case !ok:
		return "unsupported image type"
	case len(p.Data) == 0 || len(p.Data) > limit:
		return "unsupported image size"
	}
	return ""
}

// ImageNote returns the text that replaces an image that is not sent. It
// contains the reference of a stored image, which the image tool accepts.
func ImageNote(p *llm.Part, why string) string {
	name := "image"
	if p.Ref != "" {
		name = "image media:" + p.Ref
	}
	return fmt.Sprintf("[%s, %s, %d bytes: %s]", name, p.MIME, p.Size(), why)
}

// AppendBase64 appends data in base64.
func AppendBase64(dst, data []byte) []byte {
	return base64.StdEncoding.AppendEncode(dst, data)
}

// Images loads the images that messages refer to and remembers which ones a
// service refused. The zero Images has none.
type Images struct {
	// Load returns the content of an image and its type.
	Load func(ref string) (data []byte, mime string, err error)
	// Vision reports whether a model supports images. Nil means that all do.
	Vision func(model string) bool

	mu      sync.Mutex
	refused map[string]string // reason by model and reference
}

// maxRefused is the maximum number of remembered refusals.
const maxRefused = 1024

// fill returns the request with the content of referenced images, which is then
// in memory only during the call. For a model without image support they become
// notes.
func (im *Images) fill(r *llm.Request) *llm.Request {
	return mapImages(r, func(p llm.Part) llm.Part {
		if p.Ref == "" || len(p.Data) > 0 {
			return p
		}
		if im.Vision != nil && !im.Vision(r.Model) {
			return llm.Text(ImageNote(&p, "this model does not support images; use the image tool to see it"))
		}
		if why, ok := im.refusal(r.Model, p.Ref); ok {
			return llm.Text(ImageNote(&p, why))
		}
		if im.Load == nil {
			return llm.Text(ImageNote(&p, "it is not available here"))
		}
		data, mime, err := im.Load(p.Ref)
		if err != nil || len(data) == 0 {
			return llm.Text(ImageNote(&p, "its file is missing or damaged"))
		}
		p.Data, p.MIME = data, mime
		return p
	})
}

// mapImages returns the request with f applied to each image that is sent. If
// nothing changed, it returns r.
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

// mapMessage is mapImages for a message. It returns nil if nothing changed.
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

func (im *Images) refusal(model, ref string) (string, bool) {
	im.mu.Lock()
	defer im.mu.Unlock()
	why, ok := im.refused[model+" "+ref]
	return why, ok
}

// without returns the request without the image that the service refused, and a
// note for the user. It returns nil if the error has another cause. A refused
// stored image is not sent to that model again.
func (im *Images) without(r *llm.Request, body *Body, e *llm.Error) (retry *llm.Request, note string) {
	if e == nil || e.Class != llm.ClassFormat || e.Status == 0 || !strings.Contains(strings.ToLower(e.Message), "image") {
		return nil, ""
	}
	at := refusedImage(r, body, e.Message)
	if at < 0 {
		return nil, ""
	}
	n, why := -1, "the service refused it: "+e.Message
	retry = mapImages(r, func(p llm.Part) llm.Part {
		if n++; n != at {
			return p
		}
		im.remember(r.Model, p.Ref, why)
		return llm.Text(ImageNote(&p, why))
	})
	return retry, "an image was left out: " + why
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

// refusedImage returns the index of the image that an error message refers to: the one at the
// named position, or else the last one, which is the most recent. It returns -1 if there is none.
// A position is one of the service's format, so that the images before it are counted in the
// body.
func refusedImage(r *llm.Request, body *Body, words string) int {
	var images []bool // whether each was sent
	mapImages(r, func(p llm.Part) llm.Part {
		_, ok := ImageType(p.MIME)
		images = append(images, ok && len(p.Data) > 0)
		return p
	})
	nth := imagesBefore(body, words)
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

// imagesBefore returns the number of images in the body before the position
// that the error message names, as messages.2.content.0 or
// messages[2].content[0], or -1 if it names none.
func imagesBefore(body *Body, words string) int {
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

// imagesIn counts the images in a part of a request.
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
