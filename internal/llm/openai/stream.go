package openai

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
)

// chunk is an event of a stream, or a whole answer of a server that does not
// stream.
type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Index   int     `json:"index"`
		Delta   delta   `json:"delta"`
		Message delta   `json:"message"`
		Finish  *string `json:"finish_reason"`
		Usage   *usage  `json:"usage"` // some servers put it here
	} `json:"choices"`
	Usage *usage             `json:"usage"`
	Error *dialect.ErrorBody `json:"error"`
}

type delta struct {
	Content          content `json:"content"`
	Refusal          string  `json:"refusal"`
	ReasoningContent content `json:"reasoning_content"`
	Reasoning        content `json:"reasoning"`
	Calls            []call  `json:"tool_calls"`
}

type call struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// content is text: a string, or in some servers a list of parts.
type content string

// UnmarshalJSON takes both forms.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*c += content(p.Text)
		}
		return nil
	}
	return json.Unmarshal(b, (*string)(c))
}

// arguments are JSON in a string, or in some servers the object itself.
type arguments string

// UnmarshalJSON takes both forms.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		*a = arguments(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

// usage is tokens as the service counts them: the prompt is with what came
// from the cache.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached   int64 `json:"cached_tokens"`           // Moonshot
}

// decoder reads one stream.
type decoder struct {
	calls    map[int]*dialect.Piece
	last     *dialect.Piece // the call of the last delta
	finished bool
}

// Complete implements dialect.Decoder: an answer that said why it stopped is
// whole, also without [DONE].
func (d *decoder) Complete(*dialect.Answer) bool { return d.finished }

// Decode implements dialect.Decoder.
func (d *decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	if string(data) == "[DONE]" {
		return d.finished || !a.Empty(), nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("an event makes no sense: %w", err)
	}
	if c.Error != nil && (c.Error.Message != "" || c.Error.Type != "") {
		return false, c.Error.Err()
	}
	if a.Model == "" {
		a.Model = c.Model
	}
	count(c.Usage, a)
	for i := range c.Choices {
		o := &c.Choices[i]
		if o.Index != 0 {
			continue // a second answer, which nobody asked for
		}
		count(o.Usage, a)
		for _, m := range []*delta{&o.Delta, &o.Message} {
			if err := d.delta(m, a); err != nil {
				return false, err
			}
		}
		if o.Finish != nil && *o.Finish != "" {
			if *o.Finish == "error" {
				return false, &llm.Error{Class: llm.ClassNetwork, Message: "the service ended its answer with an error"}
			}
			d.finished = true
			a.Stop = stopReason(*o.Finish)
		}
	}
	return false, nil
}

func stopReason(s string) llm.StopReason {
	switch s {
	case "length":
		return llm.StopLength
	case "tool_calls", "function_call":
		return llm.StopTools
	case "content_filter":
		return llm.StopRefusal
	}
	return llm.StopEnd // stop, and other words for it
}

// count takes what u says; the last one counts.
func count(u *usage, a *dialect.Answer) {
	if u == nil || *u == (usage{}) {
		return
	}
	cached := max(u.Details.Cached, u.CacheHit, u.Cached)
	a.Usage = llm.Usage{Input: u.Prompt, Output: u.Completion}
	if cached > 0 && cached <= u.Prompt {
		a.Usage.Input, a.Usage.CacheRead = u.Prompt-cached, cached
	}
	a.Counted = true
}

func (d *decoder) delta(m *delta, a *dialect.Answer) error {
	thought := string(m.ReasoningContent)
	if thought == "" {
		thought = string(m.Reasoning)
	}
	if err := say(a, llm.PartThinking, thought); err != nil {
		return err
	}
	if err := say(a, llm.PartText, string(m.Content)+m.Refusal); err != nil {
		return err
	}
	for i := range m.Calls {
		if err := d.call(&m.Calls[i], a); err != nil {
			return err
		}
	}
	return nil
}

func say(a *dialect.Answer, kind llm.PartKind, text string) error {
	if text == "" {
		return nil
	}
	p, err := a.Last(kind)
	if err != nil {
		return err
	}
	return a.Add(p, text)
}

// call takes a delta of a call. Servers that leave the index out give whole
// calls, each with an id, or go on with the last one.
func (d *decoder) call(c *call, a *dialect.Answer) error {
	p, err := d.find(c, a)
	if err != nil {
		return err
	}
	d.last = p
	if p.ID == "" {
		p.ID = c.ID
	}
	if p.Name == "" {
		p.Name = c.Function.Name
	}
	if p.Name != "" {
		if err := a.Start(p); err != nil {
			return err
		}
	}
	return a.Add(p, string(c.Function.Arguments))
}

// find returns the piece that a delta belongs to.
func (d *decoder) find(c *call, a *dialect.Answer) (*dialect.Piece, error) {
	if c.Index == nil {
		if d.last != nil && (c.ID == "" && c.Function.Name == "" || c.ID != "" && c.ID == d.last.ID) {
			return d.last, nil
		}
		return a.Begin(llm.PartCall)
	}
	if p := d.calls[*c.Index]; p != nil {
		// Servers that number every call 0 tell them apart by their ids.
		if c.ID == "" || p.ID == "" || c.ID == p.ID || c.Function.Name == "" {
			return p, nil
		}
	}
	p, err := a.Begin(llm.PartCall)
	if err != nil {
		return nil, err
	}
	if d.calls == nil {
		d.calls = map[int]*dialect.Piece{}
	}
	d.calls[*c.Index] = p
	return p, nil
}
