package offline

import (
	"context"
	"iter"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/llm"
)

// Name is the provider's name; Model is its only model.
const (
	Name  = "offline"
	Model = "assistant"
)

// Provider is the built-in assistant.
type Provider struct {
	now     func() time.Time
	grammar func() *grammar // compiled when it is needed first
}

var _ llm.Provider = (*Provider)(nil)

// New returns the assistant.
func New() *Provider {
	return &Provider{now: time.Now, grammar: sync.OnceValue(compile)}
}

// Models returns what the provider offers.
func (p *Provider) Models() []llm.Model {
	return []llm.Model{{Provider: Name, ID: Model, Name: "Built-in assistant (no language model)", Context: 200_000, Price: &llm.Price{}}}
}

// deltaSize is how much text one event carries, in characters.
const deltaSize = 24

// Stream implements [llm.Provider].
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Event{}, err)
			return
		}
		text, calls := p.answer(r)
		m := &llm.Message{Role: llm.RoleAssistant, Provider: Name, Model: r.Model, Stop: llm.StopEnd}
		if text != "" {
			m.Parts = append(m.Parts, llm.Text(text))
		}
		for piece := range pieces(text) {
			if err := ctx.Err(); err != nil {
				yield(llm.Event{}, err)
				return
			}
			if !yield(llm.Event{Kind: llm.TextDelta, Text: piece}, nil) {
				return
			}
		}
		for i := range calls {
			m.Stop = llm.StopTools
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartCall, Call: &calls[i]})
			if !yield(llm.Event{Kind: llm.CallStart, Index: i, Call: &llm.ToolCall{ID: calls[i].ID, Name: calls[i].Name}}, nil) ||
				!yield(llm.Event{Kind: llm.CallDelta, Index: i, Text: string(calls[i].Args)}, nil) {
				return
			}
		}
		yield(llm.Event{Kind: llm.Done, Message: m, Usage: usage(r, m)}, nil)
	}
}

// pieces cuts a text for streaming, at blanks where there are some.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end, n := len(text), 0
			for i, r := range text {
				if n++; n > deltaSize || n > deltaSize/2 && unicode.IsSpace(r) {
					end = i
					break
				}
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
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
	n := 0
	for i := range m.Parts {
		n += len(m.Parts[i].Text)
		if c := m.Parts[i].Call; c != nil {
			n += len(c.Name) + len(c.Args)
		}
	}
	return n
}

// answer returns what to say, or the calls to make.
func (p *Provider) answer(r *llm.Request) (string, []llm.ToolCall) {
	t := newTurn(r.Messages)
	t.tools = map[string]bool{}
	for _, spec := range r.Tools {
		t.tools[spec.Name] = true
	}
	t.zone = zone(r.System)
	t.now = p.now()
	text, calls := t.run(p.grammar())
	if text == "" {
		return "", calls
	}
	return t.disclosure() + text, nil
}

// zone returns the person's time zone as the system prompt tells it.
func zone(system []llm.Block) *time.Location {
	for _, b := range system {
		_, rest, ok := strings.Cut(b.Text, "Time zone: ")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "\n")
		if loc, err := time.LoadLocation(strings.TrimSpace(name)); err == nil {
			return loc
		}
	}
	return time.Local
}

// clip returns at most n characters of s.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n]) + "…"
}
