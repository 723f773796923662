package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

type openaiRequest struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	MaxTokens     *int            `json:"max_tokens"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	Stop          json.RawMessage `json:"stop"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	StreamOptions *struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools    *[]openaiTool   `json:"tools"`
	Messages []openaiMessage `json:"messages"`

	openaiOnly
	otherServices
}

// otherServices are fields that only services other than OpenAI know.
type otherServices struct {
	Reasoning *struct {
		Effort  string `json:"effort"`
		Enabled *bool  `json:"enabled"`
	} `json:"reasoning"`
	Thinking *struct {
		Type string `json:"type"`
	} `json:"thinking"`
	Template map[string]any `json:"chat_template_kwargs"`
}

// openaiOnly are fields that only OpenAI, and services that declare them,
// accept.
type openaiOnly struct {
	Store        *bool           `json:"store"`
	Tier         *string         `json:"service_tier"`
	CacheKey     *string         `json:"prompt_cache_key"`
	CacheKeep    *string         `json:"prompt_cache_retention"`
	Effort       *string         `json:"reasoning_effort"`
	MaxTokensNew *int            `json:"max_completion_tokens"`
	Parallel     *bool           `json:"parallel_tool_calls"`
	Metadata     json.RawMessage `json:"metadata"`
}

type openaiTool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type openaiMessage struct {
	Role    string          `json:"role"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Calls   *[]openaiCall   `json:"tool_calls"`
	Thought *string         `json:"reasoning_content"`
	Details json.RawMessage `json:"reasoning_details"`
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openaiPart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image *struct {
		URL    string `json:"url"`
		Detail string `json:"detail"`
	} `json:"image_url"`
	Cache *cacheControl `json:"cache_control"`
}

// OpenAI returns why the Chat Completions API would reject the body of a
// request. It also rejects what our dialect must not send: unknown fields, and
// requests without streaming.
func OpenAI(body []byte) error {
	r, err := validOpenAI(body)
	if err != nil {
		return err
	}
	if r.Tier != nil && !slices.Contains([]string{"auto", "default", "flex", "priority", "fast"}, *r.Tier) {
		return &Refusal{"service_tier", "invalid value: " + *r.Tier}
	}
	return r.foreign(nil)
}

// Compatible is like OpenAI, for an unknown compatible server.
func Compatible(body []byte) error {
	r, err := validOpenAI(body)
	if err != nil {
		return err
	}
	if r.Messages[0].Role == "developer" {
		return errors.New("PROV-10: role developer")
	}
	if field := unknownField(r.openaiOnly, nil); field != "" {
		return fmt.Errorf("PROV-10: a field that only OpenAI's own host knows: %s", field)
	}
	return r.foreign(nil)
}

// foreign returns an error for a nonstandard field that is not in takes.
func (r *openaiRequest) foreign(takes []string) error {
	if field := unknownField(r.otherServices, takes); field != "" {
		return &Refusal{field, "extra inputs are not permitted"}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for field, is := range map[string]bool{
			"reasoning_content": m.Thought != nil, "reasoning_details": m.Details != nil,
			"cache_control": strings.Contains(string(m.Content), `"cache_control":{`), "name": m.Name != "",
		} {
			if is && !slices.Contains(takes, "messages."+field) {
				return &Refusal{fmt.Sprintf("messages.%d.%s", i, field), "is unsupported"}
			}
		}
	}
	return nil
}

// unknownField returns the name of a field of v that is set and not in takes,
// or "".
func unknownField(v any, takes []string) string {
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		name := r.Type().Field(i).Tag.Get("json")
		if !r.Field(i).IsZero() && !slices.Contains(takes, name) {
			return name
		}
	}
	return ""
}

// Refusal is an error that names the rejected field.
type Refusal struct{ Field, Message string }

// Error returns "field: message".
func (r *Refusal) Error() string { return r.Field + ": " + r.Message }

func validOpenAI(body []byte) (*openaiRequest, error) {
	r := &openaiRequest{}
	if err := strict(body, r); err != nil {
		return nil, err
	}
	switch {
	case r.Model == "":
		return nil, errors.New("model: missing")
	case !r.Stream:
		return nil, errors.New("stream: want true")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return nil, errors.New("temperature: want 0 to 2")
	case r.MaxTokens != nil && *r.MaxTokens < 1, r.MaxTokensNew != nil && *r.MaxTokensNew < 1:
		return nil, errors.New("max_tokens: want at least 1")
	}
	if err := validTools(r.Tools); err != nil {
		return nil, err
	}
	return r, r.messages()
}

// validTools checks tools, which may be missing, but not none.
func validTools(tools *[]openaiTool) error {
	if tools == nil {
		return nil
	}
	if len(*tools) == 0 {
		return errors.New("tools: empty: leave the field out")
	}
	names := map[string]bool{}
	for _, t := range *tools {
		name := t.Function.Name
		if err := toolName(name, 64); err != nil || names[name] || t.Type != "function" {
			return fmt.Errorf("tools: %s %q duplicate or invalid: %w", t.Type, name, err)
		}
		names[name] = true
		if err := wireSchema(t.Function.Parameters); err != nil {
			return fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return nil
}

func (r *openaiRequest) messages() error {
	msgs := r.Messages
	p := Pairs{}
	first := true
	for i := range msgs {
		m := &msgs[i]
		system := m.Role == "system" || m.Role == "developer"
		if system && i > 0 {
			return fmt.Errorf("messages.%d: role %s: want it first or not at all", i, m.Role)
		}
		if !system && first && m.Role != "user" {
			return fmt.Errorf("messages.%d: role %s: want user", i, m.Role)
		}
		first = first && system
		if err := m.valid(&p); err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if first {
		return errors.New("messages: none of the user")
	}
	if len(p.Open) > 0 {
		return fmt.Errorf("messages: calls without result at the end: %s", strings.Join(p.Open, ", "))
	}
	if msgs[len(msgs)-1].Role == "assistant" {
		return errors.New("messages: the last one is the assistant's")
	}
	return nil
}

func (m *openaiMessage) valid(p *Pairs) error {
	if m.Role != "tool" && len(p.Open) > 0 {
		return fmt.Errorf("role %s: calls without result: %s", m.Role, strings.Join(p.Open, ", "))
	}
	if m.Role != "tool" && m.CallID != "" || m.Role != "assistant" && m.Calls != nil {
		return fmt.Errorf("role %s: tool_call_id or tool_calls", m.Role)
	}
	switch m.Role {
	case "system", "developer":
		return m.userContent()
	case "tool":
		if err := m.text(); err != nil {
			return err
		}
		return p.Result(m.CallID)
	case "user":
		return m.userContent()
	case "assistant":
		return m.assistant(p)
	}
	return fmt.Errorf("role %q", m.Role)
}

// text checks that the content is a nonempty string.
func (m *openaiMessage) text() error {
	var s string
	if err := json.Unmarshal(m.Content, &s); err != nil {
		return fmt.Errorf("role %s: content: %w", m.Role, err)
	}
	if s == "" {
		return fmt.Errorf("role %s: content: empty", m.Role)
	}
	return nil
}

func (m *openaiMessage) userContent() error {
	if len(m.Content) > 0 && m.Content[0] == '"' {
		return m.text()
	}
	var parts []openaiPart
	if err := strict(m.Content, &parts); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	if len(parts) == 0 {
		return errors.New("content: empty")
	}
	for _, c := range parts {
		switch {
		case c.Type == "text" && c.Text != "":
		case c.Type == "image_url" && c.Image != nil:
			if err := validImageURL(c.Image.URL); err != nil {
				return err
			}
		default:
			return fmt.Errorf("content: part of type %q, or empty", c.Type)
		}
	}
	return nil
}

// validImageURL checks the address of an image, which contains it.
func validImageURL(address string) error {
	media, data, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(address, "data:") {
		return errors.New("image_url: want a data URI")
	}
	return validImage(media, data)
}

func (m *openaiMessage) assistant(p *Pairs) error {
	if m.Calls == nil {
		return m.text()
	}
	if len(*m.Calls) == 0 {
		return errors.New("tool_calls: empty: leave the field out")
	}
	if c := string(m.Content); c != "null" && c != "" && c != `""` {
		if err := m.text(); err != nil {
			return err
		}
	}
	for _, c := range *m.Calls {
		if c.ID == "" || len(c.ID) > 40 || c.Type != "function" {
			return fmt.Errorf("tool_calls: id %q, type %q: want at most 40 characters, and function", c.ID, c.Type)
		}
		if err := toolName(c.Function.Name, 64); err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		if err := validArguments(c.Function.Arguments); err != nil {
			return fmt.Errorf("tool_calls: %w", err)
		}
		if err := p.Call(c.ID); err != nil {
			return err
		}
	}
	return nil
}

// validArguments checks the arguments of a call.
func validArguments(text string) error {
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &args); err != nil || args == nil {
		return fmt.Errorf("arguments %q: want an object", text)
	}
	return nil
}
