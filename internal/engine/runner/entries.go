package runner

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// resultEntry returns the entry of a tool result that Chela itself writes.
func resultEntry(id chela.RunID, k session.Call, text string, isError bool, now time.Time) *session.Entry {
	return &session.Entry{
		ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: id,
		Message: &llm.Message{
			Role: llm.RoleTool, CallID: k.Wire.ID, ToolName: k.Wire.Name,
			Parts: []llm.Part{llm.Text(text)}, IsError: isError,
		},
	}
}

// inputEntries returns the entries of items that join a run, in the order in which the
// model reads them: events for the next run in one list, the summary of dropped
// messages, then the other items.
func inputEntries(items []queue.Item, summary string, id chela.RunID, now time.Time) []*session.Entry {
	var out []*session.Entry
	add := func(m *llm.Message) *session.Entry {
		e := &session.Entry{ID: uuid.NewString(), Kind: session.KindMessage, Time: now, Run: id, Message: m}
		out = append(out, e)
		return e
	}
	if list := nextEvents(items); list != "" {
		add(llm.User(llm.EventsHeading + list)).Origin = chela.Origin{Kind: chela.OriginSystem}
	}
	if summary != "" {
		add(llm.User(summary))
	}
	for _, it := range items {
		if it.Next {
			continue
		}
		if it.Kind == queue.Event {
			text := it.Inbound.Text
			if it.Skipped > 0 {
				text = fmt.Sprintf("(%s before this were dropped.) %s", humanize.Many(it.Skipped, "event"), text)
			}
			e := add(llm.User(llm.EventPrefix + text))
			e.Origin = originOf(it)
			e.Origin.Kind = cmp.Or(e.Origin.Kind, chela.OriginSystem)
			continue
		}
		e := add(userMessage(it.Inbound))
		e.Origin = originOf(it)
		e.Sender, e.ItemID = it.Inbound.Sender, it.ID
		if !it.Inbound.Time.IsZero() {
			e.Time = it.Inbound.Time
		}
	}
	return out
}

// nextEvents returns the list of the events that waited for a run.
func nextEvents(items []queue.Item) string {
	var b strings.Builder
	for _, it := range items {
		if it.Next && it.Skipped > 0 {
			fmt.Fprintf(&b, "\n- (%d earlier events were dropped)", it.Skipped)
		}
		if it.Next {
			b.WriteString("\n- " + it.Inbound.Text)
		}
	}
	return b.String()
}

// originOf returns the item's origin, with the address that it was written at.
func originOf(it queue.Item) chela.Origin {
	o := it.Origin
	if o.Address == (chela.Address{}) && !it.Inbound.Address.Local() {
		o.Address = it.Inbound.Address
	}
	return o
}

// userMessage returns a person's message for the model. In groups the text begins
// with the sender's name. Attachments that the model cannot read are described.
func userMessage(in chela.Inbound) *llm.Message {
	text := in.Text
	if in.Address.Peer.Kind != "" && in.Address.Peer.Kind != chela.Direct && in.Sender.Name != "" {
		text = "[" + oneLine(in.Sender.Name, 64) + "] " + text
	}
	m := &llm.Message{Role: llm.RoleUser}
	for _, a := range in.Media {
		if strings.HasPrefix(a.Type, "image/") && a.Lost == "" {
			m.Parts = append(m.Parts, media.Part(a))
		} else {
			text += fmt.Sprintf("\n[attachment %s, %s, %d bytes: %s]", oneLine(a.Name, 100), oneLine(a.Type, 60), a.Size(), cmp.Or(oneLine(a.Lost, 200), "not readable here"))
		}
	}
	if text != "" || len(m.Parts) == 0 {
		m.Parts = append(m.Parts, llm.Text(text))
	}
	return m
}
