package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

type responsesRequest struct {
	Model        string            `json:"model"`
	Stream       bool              `json:"stream"`
	Instructions *string           `json:"instructions"`
	Input        []json.RawMessage `json:"input"`
	MaxOutput    *int              `json:"max_output_tokens"`
	Temperature  *float64          `json:"temperature"`
	TopP         *float64          `json:"top_p"`
	Reasoning    *struct {
		Effort  *string `json:"effort"`
		Summary *string `json:"summary"`
	} `json:"reasoning"`
	Tools      *[]responsesTool `json:"tools"`
	ToolChoice json.RawMessage  `json:"tool_choice"`
	Text       json.RawMessage  `json:"text"`

	responsesOnly
}

// responsesOnly are fields that only OpenAI's own host accepts.
type responsesOnly struct {
	Store    *bool    `json:"store"`
	Include  []string `json:"include"`
	Tier     *string  `json:"service_tier"`
	CacheKey *string  `json:"prompt_cache_key"`
}

type responsesTool struct {
	Type string `json:"type"`
	function
}

// responsesItem is an item of the input, of any type.
type responsesItem struct {
	Type      string           `json:"type"`
	Role      string           `json:"role"`
	Content   json.RawMessage  `json:"content"`
	ID        string           `json:"id"`
	CallID    string           `json:"call_id"`
	Name      string           `json:"name"`
	Arguments *string          `json:"arguments"`
	Output    json.RawMessage  `json:"output"`
	Encrypted *string          `json:"encrypted_content"`
	Summary   *[]responsesPart `json:"summary"`
}

type responsesPart struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Image  string `json:"image_url"`
	Detail string `json:"detail"`
}

// Responses returns why the Responses API would reject the body of a request. It also
// rejects what our dialect must not send: unknown fields, requests without streaming, and
// those that the service would store.
func Responses(body []byte) error {
	r, err := validResponses(body)
	if err != nil {
		return err
	}
	switch {
	case r.Store == nil || *r.Store:
		return errors.New("store: want false")
	case r.Tier != nil && !slices.Contains([]string{"auto", "default", "flex", "priority"}, *r.Tier):
		return &Refusal{"service_tier", "invalid value: " + *r.Tier}
	case r.CacheKey != nil && len(*r.CacheKey) > 64:
		return &Refusal{"prompt_cache_key", "string too long"}
	}
	return nil
}

// ResponsesCompatible is like Responses, for another server with the format.
func ResponsesCompatible(body []byte) error {
	r, err := validResponses(body)
	if err != nil {
		return err
	}
	if field := unknownField(r.responsesOnly, nil); field != "" {
		return fmt.Errorf("PROV-10: a field that only OpenAI's own host knows: %s", field)
	}
	return nil
}

func validResponses(body []byte) (*responsesRequest, error) {
	r := &responsesRequest{}
	if err := strict(body, r); err != nil {
		return nil, err
	}
	switch {
	case r.Model == "":
		return nil, errors.New("model: missing")
	case !r.Stream:
		return nil, errors.New("stream: want true")
	case r.Instructions != nil && *r.Instructions == "":
		return nil, errors.New("instructions: empty: leave the field out")
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return nil, errors.New("temperature: want 0 to 2")
	case r.MaxOutput != nil && *r.MaxOutput < 16:
		return nil, &Refusal{"max_output_tokens", "integer below minimum value. Expected a value >= 16"}
	}
	if w := r.Reasoning; w != nil {
		switch {
		case w.Effort != nil &&
			!slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}, *w.Effort):
			return nil, &Refusal{"reasoning.effort", "unsupported value: " + *w.Effort}
		case w.Summary != nil && !slices.Contains([]string{"auto", "concise", "detailed"}, *w.Summary):
			return nil, &Refusal{"reasoning.summary", "unsupported value: " + *w.Summary}
		}
	}
	if err := r.tools(); err != nil {
		return nil, err
	}
	return r, r.items()
}

func (r *responsesRequest) tools() error {
	if r.Tools == nil {
		return nil
	}
	list := make([]openaiTool, len(*r.Tools))
	for i, t := range *r.Tools {
		list[i] = openaiTool{t.Type, t.function}
	}
	return validTools(&list)
}

func (r *responsesRequest) items() error {
	p := Pairs{}
	thought := "" // id of a thought that nothing followed yet
	for i, raw := range r.Input {
		var in responsesItem
		err := strict(raw, &in)
		if err == nil {
			err = in.valid(&p)
		}
		if err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
		follows := in.Type == "reasoning" || in.Type == "function_call" || in.Role == "assistant"
		if thought != "" && !follows {
			return fmt.Errorf("item %q of type 'reasoning' was provided without its required following item", thought)
		}
		if thought = ""; in.Type == "reasoning" {
			thought = in.ID
		}
	}
	switch {
	case len(r.Input) == 0:
		return errors.New("input: empty")
	case thought != "":
		return fmt.Errorf("item %q of type 'reasoning' was provided without its required following item", thought)
	case len(p.Open) > 0:
		return fmt.Errorf("no tool output found for function call %s", strings.Join(p.Open, ", "))
	}
	return nil
}

func (in *responsesItem) valid(p *Pairs) error {
	switch in.Type {
	case "", "message":
		if !slices.Contains([]string{"user", "assistant"}, in.Role) {
			return fmt.Errorf("role %q", in.Role)
		}
		return validContent(in.Content, in.Role == "user")
	case "reasoning":
		if in.ID == "" || in.Summary == nil || in.Encrypted == nil || *in.Encrypted == "" {
			return errors.New("reasoning: want an id, a summary and, where nothing is stored, the encrypted content")
		}
		for _, s := range *in.Summary {
			if s.Type != "summary_text" || s.Text == "" {
				return fmt.Errorf("summary: part of type %q, or empty", s.Type)
			}
		}
		return nil
	case "function_call":
		return in.call(p)
	case "function_call_output":
		if err := validContent(in.Output, true); err != nil {
			return err
		}
		return p.Result(in.CallID)
	}
	return fmt.Errorf("type %q", in.Type)
}

func (in *responsesItem) call(p *Pairs) error {
	if in.CallID == "" || len(in.CallID) > 64 || in.Arguments == nil {
		return fmt.Errorf("function_call: call_id %q: want 1 to 64 characters, and arguments", in.CallID)
	}
	if err := toolName(in.Name, 64); err != nil {
		return fmt.Errorf("function_call: %w", err)
	}
	if err := validArguments(*in.Arguments); err != nil {
		return fmt.Errorf("function_call: %w", err)
	}
	return p.Call(in.CallID)
}

// validContent checks content: a string that is not empty, or a list of parts.
func validContent(raw json.RawMessage, images bool) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || s == "" {
			return errors.New("content: empty")
		}
		return nil
	}
	var parts []responsesPart
	if err := strict(raw, &parts); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	if len(parts) == 0 {
		return errors.New("content: empty")
	}
	for _, c := range parts {
		switch {
		case c.Type == "input_text" && c.Text != "":
		case c.Type == "input_image" && images:
			if err := validImageURL(c.Image); err != nil {
				return err
			}
		default:
			return fmt.Errorf("content: part of type %q, or empty", c.Type)
		}
	}
	return nil
}
