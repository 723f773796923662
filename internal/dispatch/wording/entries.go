package wording

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/media"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
)

// Result is a tool result that Chela itself writes.
func Result(id chela.RunID, k session.Call, text string, now time.Time) *session.Entry {
	return &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: id,
		Message: &llm.Message{
			Role: llm.RoleTool, CallID: k.Wire.ID, ToolName: k.Wire.Name,
			Parts: []llm.Part{llm.Text(text)}, IsError: !strings.HasPrefix(text, "waiting for approval"),
		},
	}
}

// Entries makes of items, system events and dropped texts what the model is
// to read, in that order of reading: news first, the person's words last.
func Entries(items []queue.Item, notices []string, summary string, id chela.RunID, now time.Time) []*session.Entry {
	var out []*session.Entry
	add := func(m *llm.Message) *session.Entry {
		e := &session.Entry{ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: id, Message: m}
		out = append(out, e)
		return e
	}
	if len(notices) > 0 {
		add(llm.User("[System events since the last turn]\n- " + strings.Join(notices, "\n- ")))
	}
	if summary != "" {
		add(llm.User(summary))
	}
	for _, it := range items {
		if it.Kind == queue.System {
			add(llm.User("[System] " + it.Inbound.Text))
			continue
		}
		e := add(messageOf(it.Inbound))
		e.Sender, e.ItemID = it.Inbound.Sender, it.ID
		if !it.Inbound.Time.IsZero() {
			e.Time = it.Inbound.Time
		}
	}
	return out
}

// messageOf is a person's message as the model reads it. In groups the text
// carries the sender's name; what cannot be shown to a model is named.
func messageOf(in chela.Inbound) *llm.Message {
	text := in.Text
	if in.Address.Peer.Kind != "" && in.Address.Peer.Kind != chela.Direct && in.Sender.Name != "" {
		text = "[" + Line(in.Sender.Name, 64) + "] " + text
	}
	m := &llm.Message{Role: llm.RoleUser}
	for _, a := range in.Media {
		if strings.HasPrefix(a.Type, "image/") && a.Lost == "" {
			m.Parts = append(m.Parts, media.Part(a))
		} else {
			text += fmt.Sprintf("\n[attachment %s, %s, %d bytes: %s]", Line(a.Name, 100), Line(a.Type, 60), a.Size(), cmp.Or(Line(a.Lost, 200), "not readable here"))
		}
	}
	if text != "" || len(m.Parts) == 0 {
		m.Parts = append(m.Parts, llm.Text(text))
	}
	return m
}
