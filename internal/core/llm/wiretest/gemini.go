package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction"`
	Tools    *[]struct {
		Functions []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig json.RawMessage `json:"toolConfig"`
	Safety     json.RawMessage `json:"safetySettings"`
	Cached     string          `json:"cachedContent"`
	Settings   *struct {
		MaxTokens   *int            `json:"maxOutputTokens"`
		Temperature *float64        `json:"temperature"`
		TopP        *float64        `json:"topP"`
		Stop        []string        `json:"stopSequences"`
		Thinking    *geminiThinking `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiThinking struct {
	Include bool    `json:"includeThoughts"`
	Budget  *int    `json:"thinkingBudget"`
	Level   *string `json:"thinkingLevel"`
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text   *string `json:"text"`
	Inline *struct {
		MIME string `json:"mimeType"`
		Data string `json:"data"`
	} `json:"inlineData"`
	Call *struct {
		ID   string                     `json:"id"`
		Name string                     `json:"name"`
		Args map[string]json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Result *struct {
		ID       string                     `json:"id"`
		Name     string                     `json:"name"`
		Response map[string]json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Signature string `json:"thoughtSignature"`
}

// Gemini returns why the Gemini API would reject the body of a request to a model. It also
// rejects what our dialect must not send: unknown fields, and turns of one role that could be
// one.
func Gemini(model string, body []byte) error {
	var r geminiRequest
	if err := strict(body, &r); err != nil {
		return err
	}
	if err := r.settings(model); err != nil {
		return err
	}
	if err := r.tools(); err != nil {
		return err
	}
	if r.System != nil {
		if len(r.System.Parts) == 0 {
			return errors.New("systemInstruction: no parts: leave the field out")
		}
		for _, p := range r.System.Parts {
			if p.Text == nil || strings.TrimSpace(*p.Text) == "" {
				return errors.New("systemInstruction: want text")
			}
		}
	}
	return r.contents(strings.Contains(model, "gemini-3"))
}

func (r *geminiRequest) settings(model string) error {
	if r.Settings == nil {
		return nil
	}
	if n := r.Settings.MaxTokens; n != nil && *n < 1 {
		return errors.New("maxOutputTokens: want at least 1")
	}
	t := r.Settings.Thinking
	switch {
	case t == nil:
	case t.Budget != nil && t.Level != nil:
		return errors.New("you can only set only one of thinking budget and thinking level")
	case t.Level != nil && !strings.Contains(model, "gemini-3"):
		return errors.New("thinking level is not supported for this model")
	case t.Budget != nil && *t.Budget == 0 && strings.Contains(model, "pro"):
		return errors.New("budget 0 is invalid. This model only works in thinking mode")
	case t.Budget != nil && (*t.Budget < -1 || *t.Budget > 32768):
		return errors.New("the thinking budget is out of bounds")
	}
	return nil
}

func (r *geminiRequest) tools() error {
	if r.Tools == nil {
		return nil
	}
	if len(*r.Tools) != 1 || len((*r.Tools)[0].Functions) == 0 {
		return errors.New("tools: want one list of functions, or leave the field out")
	}
	names := map[string]bool{}
	for _, f := range (*r.Tools)[0].Functions {
		if err := toolName(f.Name, 64); err != nil || names[f.Name] {
			return fmt.Errorf("tools: %q duplicate or invalid: %w", f.Name, err)
		}
		names[f.Name] = true
		if f.Parameters == nil {
			continue
		}
		if err := geminiSchema(f.Parameters, true); err != nil {
			return fmt.Errorf("tool %s: %w", f.Name, err)
		}
	}
	return nil
}

// geminiSchema checks the keywords of a schema. An object has properties at the top.
func geminiSchema(raw json.RawMessage, top bool) error {
	var s struct {
		Type        string                     `json:"type"`
		Title       string                     `json:"title"`
		Description string                     `json:"description"`
		Default     json.RawMessage            `json:"default"`
		Nullable    bool                       `json:"nullable"`
		Enum        []json.RawMessage          `json:"enum"`
		Required    []string                   `json:"required"`
		Items       json.RawMessage            `json:"items"`
		Properties  map[string]json.RawMessage `json:"properties"`
	}
	if err := strict(raw, &s); err != nil {
		return fmt.Errorf("schema: invalid JSON payload received: %w", err)
	}
	switch {
	case top && !strings.EqualFold(s.Type, "object"): // the service's own library writes OBJECT
		return fmt.Errorf("schema: type %q: want object", s.Type)
	case top && len(s.Properties) == 0:
		return errors.New("schema: parameters.properties: should be non-empty for OBJECT type")
	}
	if s.Items != nil {
		if err := geminiSchema(s.Items, false); err != nil {
			return err
		}
	}
	for _, p := range s.Properties {
		if err := geminiSchema(p, false); err != nil {
			return err
		}
	}
	return nil
}

func (r *geminiRequest) contents(signed bool) error {
	p := Pairs{}
	before := ""
	for i := range r.Contents {
		c := &r.Contents[i]
		kind, err := c.valid(&p, signed)
		switch {
		case err != nil:
			return fmt.Errorf("contents[%d]: %w", i, err)
		case before == "" && kind != "user":
			return errors.New("please ensure that the conversation begins with a user turn")
		case kind == before, kind == "results" && before != "model":
			return fmt.Errorf("contents[%d]: turns do not alternate: %s after %s", i, kind, before)
		}
		before = kind
	}
	switch {
	case before == "":
		return errors.New("contents is not specified")
	case before == "model":
		return errors.New("please ensure that the last turn is of the user")
	case len(p.Open) > 0:
		return errors.New("the number of function response parts is not equal to the number of function call parts")
	}
	return nil
}

// valid checks a content and returns whose it is: user, results or model.
func (c *geminiContent) valid(p *Pairs, signed bool) (kind string, err error) {
	if c.Role != "user" && c.Role != "model" {
		return "", errors.New("please use a valid role: user, model")
	}
	if len(c.Parts) == 0 {
		return "", errors.New("parts must not be empty")
	}
	kind = c.Role
	if c.Parts[0].Result != nil {
		kind = "results"
	}
	if len(p.Open) > 0 && kind != "results" {
		return "", errors.New("a function call turn must be followed by its function responses")
	}
	calls := 0
	for i := range c.Parts {
		part := &c.Parts[i]
		if part.Call != nil {
			if signed && calls == 0 && part.Signature == "" {
				return "", fmt.Errorf("function call %s is missing a thought_signature", part.Call.Name)
			}
			calls++
		}
		if err := part.valid(kind, p); err != nil {
			return "", err
		}
	}
	return kind, nil
}

func (part *geminiPart) valid(kind string, p *Pairs) error {
	switch {
	case part.Text != nil:
		if strings.TrimSpace(*part.Text) == "" {
			return errors.New("unable to submit request because it has an empty text parameter")
		}
	case part.Inline != nil:
		if kind == "model" || part.Inline.MIME == "image/gif" {
			return fmt.Errorf("unsupported MIME type: %s", part.Inline.MIME)
		}
		return validImage(part.Inline.MIME, part.Inline.Data)
	case part.Call != nil:
		if kind != "model" || part.Call.Args == nil {
			return errors.New("functionCall of a user, or without args")
		}
		if err := toolName(part.Call.Name, 64); err != nil {
			return err
		}
		return p.Call(part.Call.ID)
	case part.Result != nil:
		if kind != "results" || part.Result.Response == nil || part.Result.Name == "" {
			return errors.New("functionResponse without calls before it, or without a name or response")
		}
		return p.Result(part.Result.ID)
	default:
		return errors.New("a part without data")
	}
	return nil
}
