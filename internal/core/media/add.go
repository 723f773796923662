package media

import (
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits for stored content. Those of images are the limits of OpenClaw.
const (
	MaxImage  = 6 << 20    // bytes of an image
	MaxPixels = 25_000_000 // pixels of an image
	MaxFile   = 20 << 20   // bytes of any other file
)

// DetectType returns the MIME type of data: by the content, else by the extension of
// its name, else the claimed one. It returns an error if the content is not accepted.
func DetectType(data []byte, name, claimed string) (kind string, err error) {
	info, err := Probe(data)
	switch {
	case err == nil && len(data) > MaxImage:
		return info.Type, fmt.Errorf("the image has %s; at most %s are allowed", humanize.Bytes(int64(len(data))),
			humanize.Bytes(MaxImage))
	case err == nil && info.Pixels() > MaxPixels:
		return info.Type, fmt.Errorf("the image has %d × %d pixels; at most %d million are allowed", info.Width, info.Height,
			MaxPixels/1_000_000)
	case err == nil:
		return info.Type, nil
	case !errors.Is(err, ErrNotImage):
		return info.Type, err
	}
	return typeOf(data, name, claimed), nil
}

// Store stores the content of an attachment and returns the attachment with a
// reference instead of the content. It returns a *[chela.Error] with
// [chela.CodeInvalid] if the content is not accepted.
func (f *Files) Store(m chela.Media) (chela.Media, error) {
	if m.Ref != "" || len(m.Data) == 0 {
		return m, nil
	}
	kind, err := DetectType(m.Data, m.Name, m.Type)
	m.Type = kind
	if err != nil {
		return m, chela.Errorf(chela.CodeInvalid, "attachment %q: %w", m.Name, err)
	}
	ref, err := f.Put(m.Data)
	if err != nil {
		return m, err
	}
	m.Ref, m.Bytes, m.Data = ref, len(m.Data), nil
	return m, nil
}

// Stored returns the attachment that a person or a model named as media:<ref>. It reports
// false if s isn't such a name.
func (f *Files) Stored(s string) (m chela.Media, ok bool, err error) {
	ref, ok := ParseRef(s)
	if !ok {
		return m, false, nil
	}
	data, err := f.Read(ref)
	if err != nil {
		return m, true, chela.Errorf(chela.CodeInvalid, "%s: no such file, or it was removed", s)
	}
	kind, err := DetectType(data, s, "")
	return chela.Media{Type: kind, Ref: ref, Bytes: len(data)}, true, err
}

// StorePart is like Store for the image in a part of a message. An image that is not
// valid, or cannot be stored, is replaced by a note. Other parts are returned
// unchanged.
func (f *Files) StorePart(p llm.Part) llm.Part {
	if p.Kind != llm.PartImage || p.Ref != "" {
		return p
	}
	_, err := Probe(p.Data)
	var m chela.Media
	if err == nil {
		m, err = f.Store(chela.Media{Type: p.MIME, Data: p.Data})
	}
	if err != nil {
		return llm.Text(fmt.Sprintf("[image, %s: left out: %v]", humanize.Bytes(int64(len(p.Data))), err))
	}
	return Part(m)
}

// Load returns the attachment with its content instead of the reference.
func (f *Files) Load(m chela.Media) (chela.Media, error) {
	if m.Ref == "" {
		return m, nil
	}
	data, err := f.Read(m.Ref)
	m.Data, m.Ref, m.Bytes = data, "", 0
	return m, err
}

// Part returns an image attachment as a part of a message.
func Part(m chela.Media) llm.Part {
	return llm.Part{Kind: llm.PartImage, MIME: m.Type, Data: m.Data, Ref: m.Ref, Bytes: m.Bytes}
}

// Fill returns the message with the content of its images instead of references. It
// returns m itself if nothing changes. References to missing files are left as they
// are.
func (f *Files) Fill(m *llm.Message) *llm.Message {
	return fill(m, func(p *llm.Part) ([]byte, string, error) {
		data, err := f.Read(p.Ref)
		return data, p.MIME, err
	})
}

// FillScaled is like Fill, but scales down images of more than maxBytes bytes. An
// image that is still too large stays a reference.
func (f *Files) FillScaled(m *llm.Message, maxBytes int) *llm.Message {
	return fill(m, func(p *llm.Part) ([]byte, string, error) {
		if p.Bytes <= maxBytes {
			data, err := f.Read(p.Ref)
			return data, p.MIME, err
		}
		data, kind, err := f.Scaled(p.Ref)
		if len(data) > maxBytes {
			return nil, "", nil
		}
		return data, kind, err
	})
}

// fill replaces the references to images in m by the content that load returns.
func fill(m *llm.Message, load func(*llm.Part) ([]byte, string, error)) *llm.Message {
	var parts []llm.Part
	for i := range m.Parts {
		p := m.Parts[i]
		if p.Kind != llm.PartImage || p.Ref == "" {
			continue
		}
		data, kind, err := load(&p)
		if err != nil || len(data) == 0 {
			continue
		}
		if parts == nil {
			parts = append(parts, m.Parts...)
		}
		parts[i] = llm.Image(kind, data)
	}
	if parts == nil {
		return m
	}
	return &llm.Message{
		Role: m.Role, Parts: parts, Provider: m.Provider, Model: m.Model, Stop: m.Stop,
		CallID: m.CallID, ToolName: m.ToolName, IsError: m.IsError,
	}
}
