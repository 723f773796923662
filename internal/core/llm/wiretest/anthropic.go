package wiretest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// strict decodes data into v and rejects unknown fields.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("data after the JSON value")
	}
	return nil
}

type anthropicRequest struct {
	Model        string          `json:"model"`
	MaxTokens    int             `json:"max_tokens"`
	Stream       bool            `json:"stream"`
	Temperature  *float64        `json:"temperature"`
	TopP         *float64        `json:"top_p"`
	TopK         *int            `json:"top_k"`
	Stop         []string        `json:"stop_sequences"`
	Metadata     json.RawMessage `json:"metadata"`
	ServiceTier  string          `json:"service_tier"`
	Speed        string          `json:"speed"`
	ToolChoice   json.RawMessage `json:"tool_choice"`
	OutputConfig json.RawMessage `json:"output_config"`
	Thinking     *struct {
		Type    string `json:"type"`
		Budget  int    `json:"budget_tokens"`
		Display string `json:"display"`
	} `json:"thinking"`
	Tools    *[]anthropicTool `json:"tools"`
	System   *[]wireBlock     `json:"system"`
	Messages []struct {
		Role    string      `json:"role"`
		Content []wireBlock `json:"content"`
	} `json:"messages"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUse   string          `json:"tool_use_id"`
	Content   []wireBlock     `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     *cacheControl   `json:"cache_control"`
	Source    *struct {
		Type  string `json:"type"`
		Media string `json:"media_type"`
		Data  string `json:"data"`
	} `json:"source"`
}

// anthropicFast are the models with a fast mode that needs no beta header.
var anthropicFast = [...]string{"claude-opus-5-5", "claude-fable-5-2", "claude-mythos-5-2"}

// AnthropicCompatible is like Anthropic, for another service with the format.
func AnthropicCompatible(body []byte) error {
	var r anthropicRequest
	if err := strict(body, &r); err != nil {
		return err
	}
	if r.Speed+r.ServiceTier != "" {
		return errors.New("PROV-10: a field that only Anthropic's own host knows: speed, service_tier")
	}
	return Anthropic(body)
}

// Anthropic returns why the Messages API would reject the body of a request. It
// also rejects what our dialect must not send: strings instead of content
// blocks, unknown fields, and requests without streaming.
func Anthropic(body []byte) error {
	var r anthropicRequest
	if err := strict(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return errors.New("model: missing")
	case r.MaxTokens < 1:
		return errors.New("max_tokens: want at least 1")
	case !r.Stream:
		return errors.New("stream: want true")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 1):
		return errors.New("temperature: want 0 to 1")
	case r.Speed != "" && r.Speed != "standard" && r.Speed != "fast":
		return errors.New("speed: want standard or fast")
	case r.Speed == "fast" && !slices.Contains(anthropicFast[:], r.Model):
		return &Refusal{"speed", "fast is not supported for " + r.Model}
	}
	for _, check := range []func() error{r.thinking, r.tools, r.system, r.messages, r.markers} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r *anthropicRequest) thinking() error {
	t := r.Thinking
	if t == nil {
		return nil
	}
	switch {
	case t.Type == "adaptive" && t.Budget == 0, t.Type == "disabled":
	case t.Type != "enabled":
		return fmt.Errorf("thinking: type %q", t.Type)
	case t.Budget < 1024 || t.Budget >= r.MaxTokens:
		return fmt.Errorf("thinking: budget_tokens %d: want 1024 to max_tokens (%d)", t.Budget, r.MaxTokens)
	}
	if t.Type != "disabled" && r.Temperature != nil {
		return errors.New("temperature: not with thinking")
	}
	return nil
}

func (r *anthropicRequest) tools() error {
	if r.Tools == nil {
		return nil
	}
	if len(*r.Tools) == 0 {
		return errors.New("tools: empty: leave the field out")
	}
	names := map[string]bool{}
	for _, t := range *r.Tools {
		if err := toolName(t.Name, 128); err != nil || names[t.Name] {
			return fmt.Errorf("tools: name %q duplicate or invalid: %w", t.Name, err)
		}
		names[t.Name] = true
		if err := wireSchema(t.Schema); err != nil {
			return fmt.Errorf("tool %s: %w", t.Name, err)
		}
	}
	return nil
}

func (r *anthropicRequest) system() error {
	if r.System == nil {
		return nil
	}
	if len(*r.System) == 0 {
		return errors.New("system: empty: leave the field out")
	}
	for i := range *r.System {
		b := &(*r.System)[i]
		if b.Type != "text" {
			return fmt.Errorf("system: block of type %q", b.Type)
		}
		if err := b.validText(); err != nil {
			return fmt.Errorf("system: %w", err)
		}
	}
	return nil
}

func (r *anthropicRequest) messages() error {
	if len(r.Messages) == 0 {
		return errors.New("messages: empty")
	}
	p := Pairs{}
	for i, m := range r.Messages {
		want := [...]string{"user", "assistant"}[i%2]
		if m.Role != want {
			return fmt.Errorf("messages.%d: role %q: want %s", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: no content", i)
		}
		check := userContent
		if m.Role == "assistant" {
			check = assistantContent
		}
		if err := check(m.Content, &p); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if len(r.Messages)%2 == 0 {
		return errors.New("messages: the last one is the assistant's")
	}
	if len(p.seen) > 0 && r.Tools == nil {
		return errors.New("tools: the history has calls, so tools must be defined")
	}
	return r.thinkingTurn()
}

// thinkingTurn checks that, with a thinking budget, the last assistant message
// begins with thinking if it has calls.
func (r *anthropicRequest) thinkingTurn() error {
	n := len(r.Messages)
	if r.Thinking == nil || r.Thinking.Type != "enabled" || n < 2 {
		return nil
	}
	last := r.Messages[n-2].Content
	if !slices.ContainsFunc(last, func(b wireBlock) bool { return b.Type == "tool_use" }) {
		return nil
	}
	if t := last[0].Type; t != "thinking" && t != "redacted_thinking" {
		return fmt.Errorf("messages.%d: expected thinking or redacted_thinking, but found %s", n-2, t)
	}
	return nil
}

func userContent(blocks []wireBlock, p *Pairs) error {
	others := false
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case "text":
			others = true
			if err := b.validText(); err != nil {
				return err
			}
		case "image":
			others = true
			if err := b.validImage(); err != nil {
				return err
			}
		case "tool_result":
			if others {
				return errors.New("tool_result behind other content")
			}
			if err := p.Result(b.ToolUse); err != nil {
				return err
			}
			if err := resultContent(b); err != nil {
				return err
			}
		default:
			return fmt.Errorf("block of type %q in a user message", b.Type)
		}
	}
	if len(p.Open) > 0 {
		return fmt.Errorf("calls without result: %s", strings.Join(p.Open, ", "))
	}
	return nil
}

func resultContent(r *wireBlock) error {
	for i := range r.Content {
		b := &r.Content[i]
		err := fmt.Errorf("block of type %q in a tool_result", b.Type)
		switch b.Type {
		case "text":
			err = b.validText()
		case "image":
			err = b.validImage()
		}
		if err != nil {
			return err
		}
		if r.IsError && b.Type != "text" {
			return errors.New("all content must be text if is_error is true")
		}
		if b.Cache != nil {
			return errors.New("cache_control inside of a tool_result")
		}
	}
	return nil
}

func assistantContent(blocks []wireBlock, p *Pairs) error {
	for i := range blocks {
		b := &blocks[i]
		var err error
		switch b.Type {
		case "text":
			err = b.validText()
		case "thinking":
			if b.Signature == "" || b.Thinking == nil {
				err = errors.New("thinking without signature or text")
			}
		case "redacted_thinking":
			if b.Data == "" {
				err = errors.New("redacted_thinking without data")
			}
		case "tool_use":
			err = b.validCall(p)
		default:
			err = fmt.Errorf("block of type %q in an assistant message", b.Type)
		}
		if err != nil {
			return err
		}
	}
	if t := blocks[len(blocks)-1].Type; t == "thinking" || t == "redacted_thinking" {
		return errors.New("an answer must not end with thinking")
	}
	return nil
}

func (b *wireBlock) validText() error {
	if b.Text == nil || strings.TrimSpace(*b.Text) == "" {
		return errors.New("text blocks must have more than white space")
	}
	return nil
}

func (b *wireBlock) validImage() error {
	if b.Source == nil || b.Source.Type != "base64" {
		return errors.New("image: want a base64 source")
	}
	return validImage(b.Source.Media, b.Source.Data)
}

// validImage checks a base64 image.
func validImage(media, data string) error {
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, media) {
		return fmt.Errorf("image: media type %q", media)
	}
	if len(data) == 0 || len(data) > 5<<20 {
		return fmt.Errorf("image: %d bytes in base 64: want 1 to 5 MB", len(data))
	}
	if _, err := base64.StdEncoding.DecodeString(data); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

func (b *wireBlock) validCall(p *Pairs) error {
	if err := toolName(b.ID, 256); err != nil {
		return fmt.Errorf("tool_use id: %w", err)
	}
	if err := toolName(b.Name, 128); err != nil {
		return fmt.Errorf("tool_use name: %w", err)
	}
	if in := bytes.TrimSpace(b.Input); len(in) == 0 || in[0] != '{' {
		return errors.New("tool_use input: want an object")
	}
	return p.Call(b.ID)
}

// toolName checks a tool name or call id.
func toolName(s string, limit int) error {
	if s == "" || len(s) > limit {
		return fmt.Errorf("%q: want 1 to %d characters", s, limit)
	}
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return fmt.Errorf("%q: want letters, digits, _ and - only", s)
		}
	}
	return nil
}

// wireSchema checks the schema of a tool.
func wireSchema(s json.RawMessage) error {
	if err := ObjectSchema(s); err != nil {
		return err
	}
	var top map[string]json.RawMessage
	_ = json.Unmarshal(s, &top) // ObjectSchema checked it
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if top[k] != nil {
			return fmt.Errorf("schema: %s at the top", k)
		}
	}
	return nil
}

// markers checks the number and positions of cache markers.
func (r *anthropicRequest) markers() error {
	n := 0
	var failed error
	mark := func(c *cacheControl, kind string) {
		if c == nil {
			return
		}
		n++
		if c.Type != "ephemeral" || c.TTL != "" && c.TTL != "5m" && c.TTL != "1h" {
			failed = fmt.Errorf("cache_control: %+v", *c)
		}
		if kind == "thinking" || kind == "redacted_thinking" {
			failed = fmt.Errorf("cache_control on a block of type %s", kind)
		}
	}
	if r.Tools != nil {
		for _, t := range *r.Tools {
			mark(t.Cache, "tool")
		}
	}
	if r.System != nil {
		for _, b := range *r.System {
			mark(b.Cache, b.Type)
		}
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			mark(b.Cache, b.Type)
		}
	}
	if n > 4 {
		return fmt.Errorf("cache_control: %d markers: at most 4", n)
	}
	return failed
}
