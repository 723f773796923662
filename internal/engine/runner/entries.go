package runner

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
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
// model reads them: events for the next run in one list, what was said in the chat in
// another one, the summary of dropped messages, then the other items, each after what the
// client says was said before it.
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
	if list := overheard(items); list != "" {
		add(llm.User(llm.OverheardHeading + list)).Origin = chela.Origin{Kind: chela.OriginSystem}
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
		if said := it.Inbound.Earlier; said != "" {
			add(llm.User(llm.EarlierHeading + "\n" + said)).Origin = chela.Origin{Kind: chela.OriginSystem}
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
		if it.Inbound.Overheard {
			continue
		}
		if it.Next && it.Skipped > 0 {
			fmt.Fprintf(&b, "\n- (%d earlier events were dropped)", it.Skipped)
		}
		if it.Next {
			b.WriteString("\n- " + it.Inbound.Text)
		}
	}
	return b.String()
}

// overheard returns the list of the messages of a chat that did not address the agent.
func overheard(items []queue.Item) string {
	var b strings.Builder
	for _, it := range items {
		if !it.Inbound.Overheard {
			continue
		}
		text := attachedTo(it.Inbound.Media).text(quoted(it.Inbound))
		b.WriteString("\n" + said(it.Inbound.Sender) + strings.ReplaceAll(text, "\n", "\n  "))
	}
	return b.String()
}

// said returns the name of a sender before what they said.
func said(s chela.Sender) string {
	if s.Name == "" {
		return ""
	}
	return "[" + oneLine(s.Name, 64) + "] "
}

// quoted returns the text of a message after what it quotes and whose message it
// forwards.
func quoted(in chela.Inbound) string {
	text := in.Text
	if in.Forwarded != "" {
		text = "[forwarded from " + oneLine(in.Forwarded, 64) + "]\n" + text
	}
	if q := in.Quote; q.Text != "" {
		text = fmt.Sprintf("[replying to %s%s]\n%s", said(q.Sender), oneLine(q.Text, 500), text)
	}
	return text
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
// with the sender's name. What was read in attachments follows the text; attachments
// that the model cannot read are described.
func userMessage(in chela.Inbound) *llm.Message {
	a := attachedTo(in.Media)
	text := a.text(quoted(in))
	if in.Address.Peer.Kind != "" && in.Address.Peer.Kind != chela.Direct {
		text = said(in.Sender) + text
	}
	m := &llm.Message{Role: llm.RoleUser, Parts: a.pictures}
	if text != "" || len(m.Parts) == 0 {
		m.Parts = append(m.Parts, llm.Text(text))
	}
	return m
}
