package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// chunk is an event of a stream, or the whole answer of a server that does not
// stream.
type chunk struct {
	Model   string        `json:"model"`
	Choices []choice      `json:"choices"`
	Usage   *usage        `json:"usage"`
	Tier    dialect.Speed `json:"service_tier"` // that answers
	Timings *timings      `json:"timings"`
	Groq    struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`

	Error *dialect.ErrorBody `json:"error"`
	// Errors of servers without an error object.
	Object  string `json:"object"` // error
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"`
}

type choice struct {
	Index   int                `json:"index"`
	Delta   delta              `json:"delta"`
	Message delta              `json:"message"`
	Finish  *string            `json:"finish_reason"`
	Usage   *usage             `json:"usage"` // in some servers
	Error   *dialect.ErrorBody `json:"error"` // in some servers
}

type delta struct {
	Content          content  `json:"content"`
	Refusal          string   `json:"refusal"`
	ReasoningContent content  `json:"reasoning_content"`
	Reasoning        content  `json:"reasoning"`
	Details          []detail `json:"reasoning_details"`
	Calls            []call   `json:"tool_calls"`
}

type call struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// content is text: a string, or in some services a list of parts, which may
// contain thinking.
type content struct{ text, thought string }

// UnmarshalJSON accepts both forms.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var parts []struct {
			Text     string  `json:"text"`
			Thinking content `json:"thinking"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			c.text += p.Text
			c.thought += p.Thinking.text
		}
		return nil
	}
	return json.Unmarshal(b, &c.text)
}

// arguments is JSON in a string, or in some servers the object itself.
type arguments string

// UnmarshalJSON accepts both forms.
func (a *arguments) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		*a = arguments(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

// usage is the token usage of the service. The prompt includes tokens from the
// cache.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached   int64 `json:"cached_tokens"`           // Moonshot
}

// timings is the usage in the format of llama.cpp, which reports the standard
// one only on request, and some builds never.
type timings struct {
	Prompt     int64 `json:"prompt_n"`
	Cached     int64 `json:"cache_n"`
	Completion int64 `json:"predicted_n"`
}

// decoder decodes one stream.
type decoder struct {
	tags     bool // thinking may be in tags
	entities bool // arguments have HTML entities

	split    tags
	details  []*partialDetail
	calls    map[int]*dialect.Piece
	last     *dialect.Piece // call of the last delta
	finished bool
}

// Complete implements dialect.Decoder. An answer with a finish reason is
// complete, even without [DONE].
func (d *decoder) Complete(*dialect.Answer) bool { return d.finished }

// Decode implements dialect.Decoder. Usage may come after the finish reason, in an event without
// choices, so that [DONE] is awaited if it comes.
func (d *decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	a.HTMLEntities = d.entities
	if string(data) == "[DONE]" {
		err := d.end(a)
		return d.finished || !a.Empty(), err
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("invalid event: %w", err)
	}
	if err := c.err(); err != nil {
		return false, err
	}
	a.Model = cmp.Or(a.Model, c.Model)
	if c.Tier != "" {
		a.Fast = c.Tier == "priority" || c.Tier == "fast"
	}
	c.count(a)
	for i := range c.Choices {
		o := &c.Choices[i]
		if o.Index != 0 {
			continue // a second answer, which was not requested
		}
		if err := d.choice(o, a); err != nil {
			return false, err
		}
	}
	return false, nil
}

// err returns the error in the event, if any.
func (c *chunk) err() error {
	e := c.Error
	if e == nil && c.Object == "error" {
		e = &dialect.ErrorBody{Type: c.Type, Code: c.Code, Message: c.Message}
	}
	if e != nil && (e.Message != "" || e.Type != "" || e.Code != nil) {
		return e.Err()
	}
	return nil
}

// choice handles a choice.
func (d *decoder) choice(o *choice, a *dialect.Answer) error {
	count(o.Usage, a)
	for _, m := range []*delta{&o.Delta, &o.Message} {
		if err := d.delta(m, a); err != nil {
			return err
		}
	}
	if o.Finish == nil || *o.Finish == "" {
		return nil
	}
	return d.finish(o, a)
}

// finish handles the finish reason of o.
func (d *decoder) finish(o *choice, a *dialect.Answer) error {
	if err := finishError(o); err != nil {
		return err
	}
	d.finished = true
	a.Stop = stopReason(*o.Finish)
	return d.end(a)
}

// finishError returns the error that the finish reason means, if any.
func finishError(o *choice) error {
	if o.Error != nil {
		return o.Error.Err()
	}
	switch *o.Finish {
	case "error", "abort", "network_error":
		return &llm.Error{Class: llm.ClassNetwork, Message: "the service ended its answer with an error"}
	case "insufficient_system_resource":
		return &llm.Error{Class: llm.ClassOverload, Message: "the service ended its answer for lack of resources"}
	}
	return nil
}

// end flushes the text at the end of the answer.
func (d *decoder) end(a *dialect.Answer) error {
	d.sign()
	return d.flush(a)
}

func stopReason(s string) llm.StopReason {
	switch strings.ToLower(s) {
	case "length", "model_length", "max_tokens", "max_output_tokens":
		return llm.StopLength
	case "tool_calls", "function_call":
		return llm.StopTools
	case "content_filter", "refusal", "safety", "sensitive", "recitation", "prohibited_content":
		return llm.StopRefusal
	}
	return llm.StopEnd // stop and synonyms
}

// count adds the usage of the event, wherever it is.
func (c *chunk) count(a *dialect.Answer) {
	count(c.Groq.Usage, a)
	count(c.Usage, a)
	if t := c.Timings; t != nil && !a.Reported && t.Prompt+t.Completion > 0 {
		a.Usage = llm.Usage{Input: t.Prompt, Output: t.Completion, CacheRead: t.Cached}
		a.Reported = true
	}
}

// count stores the usage; the last one is final.
func count(u *usage, a *dialect.Answer) {
	if u == nil || *u == (usage{}) {
		return
	}
	a.Count(u.Prompt, max(u.Details.Cached, u.CacheHit, u.Cached), u.Completion)
}

func (d *decoder) delta(m *delta, a *dialect.Answer) error {
	if err := d.think(m, a); err != nil {
		return err
	}
	if err := d.text(m.Content.text, a); err != nil {
		return err
	}
	if err := addText(a, llm.PartText, m.Refusal); err != nil {
		return err
	}
	if len(m.Calls) > 0 {
		if err := d.flush(a); err != nil {
			return err
		}
	}
	for i := range m.Calls {
		if err := d.call(&m.Calls[i], a); err != nil {
			return err
		}
	}
	return nil
}

// think handles the thinking of a delta. A router sends it twice: as details
// and as text.
func (d *decoder) think(m *delta, a *dialect.Answer) error {
	thought := cmp.Or(m.ReasoningContent.text, m.Reasoning.text)
	for i := range m.Details {
		in := &m.Details[i]
		if err := d.detail(in, a); err != nil {
			return err
		}
		if in.Text+in.Summary != "" {
			thought = ""
		}
	}
	return addText(a, llm.PartThinking, thought+m.Content.thought)
}

// text handles text that may begin with thinking.
func (d *decoder) text(s string, a *dialect.Answer) error {
	if s == "" || !d.tags {
		return addText(a, llm.PartText, s)
	}
	thought, text := d.split.take(s)
	if err := addText(a, llm.PartThinking, thought); err != nil {
		return err
	}
	return addText(a, llm.PartText, text)
}

// flush adds the pending text.
func (d *decoder) flush(a *dialect.Answer) error {
	thought, text := d.split.flush()
	if err := addText(a, llm.PartThinking, thought); err != nil {
		return err
	}
	return addText(a, llm.PartText, text)
}

func addText(a *dialect.Answer, kind llm.PartKind, text string) error {
	if text == "" {
		return nil
	}
	p, err := a.Last(kind)
	if err != nil {
		return err
	}
	return a.Add(p, text)
}

// call handles a delta of a call. Servers that omit the index send complete
// calls, each with an id, or continue the last one.
func (d *decoder) call(c *call, a *dialect.Answer) error {
	p, err := d.find(c, a)
	if err != nil {
		return err
	}
	d.last = p
	p.ID = cmp.Or(p.ID, c.ID)
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
		// Servers that use index 0 for every call distinguish them by id.
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
