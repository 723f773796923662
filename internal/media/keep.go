package media

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/llm"
)

// Bounds of what is kept. Those of pictures are OpenClaw's.
const (
	MaxPicture = 6 << 20    // bytes
	MaxPixels  = 25_000_000 // of a picture
	MaxFile    = 20 << 20   // bytes of a file of the person's that is taken in
)

// Judge returns the type of content, which is told by the content and not by
// what was claimed. An error says why it is not taken.
func Judge(data []byte, claimed string) (kind string, err error) {
	info, err := Probe(data)
	switch {
	case err == nil && len(data) > MaxPicture:
		return info.Type, fmt.Errorf("a picture of %s; at most %s", figure.Bytes(int64(len(data))), figure.Bytes(MaxPicture))
	case err == nil && info.Pixels() > MaxPixels:
		return info.Type, fmt.Errorf("a picture of %d × %d pixels; at most %d million", info.Width, info.Height, MaxPixels/1_000_000)
	case err == nil:
		return info.Type, nil
	case !errors.Is(err, ErrNotPicture):
		return info.Type, err
	}
	kind, _, _ = strings.Cut(http.DetectContentType(data), ";")
	claimed, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(claimed)), ";")
	vague := kind == "application/octet-stream" || kind == "text/plain" || kind == "application/zip"
	if vague && claimed != "" && !strings.HasPrefix(claimed, "image/") {
		kind = claimed
	}
	return kind, nil
}

// Keep keeps the content of an attachment and returns the attachment with a
// reference in its place. A *[chela.Error] of [chela.CodeInvalid] says that the
// content is not taken.
func (f *Files) Keep(m chela.Media) (chela.Media, error) {
	if m.Ref != "" || len(m.Data) == 0 {
		return m, nil
	}
	kind, err := Judge(m.Data, m.Type)
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

// KeepPart is Keep for a part of a message. What is no picture, or cannot be
// kept, becomes a note.
func (f *Files) KeepPart(p llm.Part) llm.Part {
	if p.Kind != llm.PartImage || p.Ref != "" {
		return p
	}
	_, err := Probe(p.Data)
	var m chela.Media
	if err == nil {
		m, err = f.Keep(chela.Media{Type: p.MIME, Data: p.Data})
	}
	if err != nil {
		return llm.Text(fmt.Sprintf("[image, %s: left out: %v]", figure.Bytes(int64(len(p.Data))), err))
	}
	return Part(m)
}

// Load returns the attachment with its content.
func (f *Files) Load(m chela.Media) (chela.Media, error) {
	if m.Ref == "" {
		return m, nil
	}
	data, err := f.Read(m.Ref)
	m.Data, m.Ref, m.Bytes = data, "", 0
	return m, err
}

// Part returns an attachment that is a picture as a part of a message.
func Part(m chela.Media) llm.Part {
	return llm.Part{Kind: llm.PartImage, MIME: m.Type, Data: m.Data, Ref: m.Ref, Bytes: m.Bytes}
}

// Fill returns the message with the content of its pictures in the place of the
// references; the message itself when it has none. Those that are gone stay
// references.
func (f *Files) Fill(m *llm.Message) *llm.Message {
	return fill(m, func(p *llm.Part) ([]byte, string, error) {
		data, err := f.Read(p.Ref)
		return data, p.MIME, err
	})
}

// Show is Fill for people: pictures of more than so many bytes are shown smaller,
// and stay references where that is not enough.
func (f *Files) Show(m *llm.Message, most int) *llm.Message {
	return fill(m, func(p *llm.Part) ([]byte, string, error) {
		if p.Bytes <= most {
			data, err := f.Read(p.Ref)
			return data, p.MIME, err
		}
		data, kind, err := f.Fitted(p.Ref)
		if len(data) > most {
			return nil, "", nil
		}
		return data, kind, err
	})
}

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
