package offline

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Name is the name of the provider.
const Name = "offline"

// Provider is the built-in assistant. It is safe for concurrent use.
type Provider struct{ rows []row }

// New returns the assistant.
func New() *Provider { return &Provider{rows: table()} }

// deltaSize is the number of characters per text event.
const deltaSize = 24

// Stream implements [llm.Provider].
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.stream(ctx, r, time.Now())
}

// stream answers a request at a time.
func (p *Provider) stream(ctx context.Context, r *llm.Request, now time.Time) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		send := func(e llm.Event) bool {
			if err := ctx.Err(); err != nil {
				yield(llm.Event{}, err)
				return false
			}
			return yield(e, nil)
		}
		text, calls, unable := p.answer(r, now)
		m := &llm.Message{Role: llm.RoleAssistant, Provider: Name, Model: r.Model, Stop: llm.StopEnd}
		if unable {
			m.Stop = llm.StopUnable
		}
		if text != "" {
			m.Parts = append(m.Parts, llm.Text(text))
		}
		for piece := range slices.Chunk([]rune(text), deltaSize) {
			if !send(llm.Event{Kind: llm.TextDelta, Text: string(piece)}) {
				return
			}
		}
		for i, c := range calls {
			m.Stop = llm.StopTools
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartCall, Call: &c})
			if !send(llm.Event{Kind: llm.CallStart, Index: i, Call: &llm.ToolCall{ID: c.ID, Name: c.Name}}) ||
				!send(llm.Event{Kind: llm.CallDelta, Index: i, Text: string(c.Args)}) {
				return
			}
		}
		send(llm.Event{Kind: llm.Done, Message: m, Usage: usage(r, m)})
	}
}

// usage estimates the tokens of a call.
func usage(r *llm.Request, m *llm.Message) llm.Usage {
	in := 0
	for _, b := range r.System {
		in += len(b.Text)
	}
	for _, msg := range r.Messages {
		in += size(msg)
	}
	return llm.Usage{Input: int64(in+3) / 4, Output: int64(size(m)+3) / 4, Estimated: true}
}

func size(m *llm.Message) int {
	n := len(m.PlainText())
	for _, c := range m.Calls() {
		n += len(c.Name) + len(c.Args)
	}
	return n
}

// answer returns the reply, or the calls to make, at a time. unable: the reply says that
// not everything that was asked could be done.
func (p *Provider) answer(r *llm.Request, now time.Time) (text string, calls []llm.ToolCall, unable bool) {
	if text, ok := summary(r); ok {
		return text, nil, false
	}
	t := newTurn(p.rows, r, now)
	text, calls = t.run()
	if calls != nil {
		return "", calls, false
	}
	if !t.disclosed {
		text = t.localize(disclosureText) + "\n\n" + text
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil, t.unable
}
