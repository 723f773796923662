package wiretest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

type ollamaRequest struct {
	Model     string          `json:"model"`
	Stream    *bool           `json:"stream"`
	Think     json.RawMessage `json:"think"`
	KeepAlive json.RawMessage `json:"keep_alive"`
	Format    json.RawMessage `json:"format"`
	Options   struct {
		Context     *int     `json:"num_ctx"`
		Predict     *int     `json:"num_predict"`
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"top_p"`
		GPU         *int     `json:"num_gpu"`
	} `json:"options"`
	Tools    *[]openaiTool `json:"tools"`
	Messages []struct {
		Role     string   `json:"role"`
		Content  string   `json:"content"`
		Thinking string   `json:"thinking"`
		Images   []string `json:"images"`
		ToolName string   `json:"tool_name"`
		Calls    *[]struct {
			Function struct {
				Name      string                     `json:"name"`
				Arguments map[string]json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
}

// Ollama returns why a server of Ollama would reject the body of a request, or answer it
// with something else. It also rejects what our dialect must not send.
func Ollama(body []byte) error {
	var r ollamaRequest
	if err := strict(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "":
		return errors.New("model is required")
	case r.Stream == nil || !*r.Stream:
		return errors.New("stream: want true")
	case r.Think != nil && !slices.Contains([]string{"true", "false", `"low"`, `"medium"`, `"high"`}, string(r.Think)):
		return fmt.Errorf("invalid think value: %s", r.Think)
	case r.Options.Context != nil && *r.Options.Context < 1:
		return errors.New("num_ctx: want at least 1")
	}
	if err := validTools(r.Tools); err != nil {
		return err
	}
	return r.messages()
}

func (r *ollamaRequest) messages() error {
	open := 0 // calls without a result: a server matches them by their order
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != "tool" && open > 0 {
			return fmt.Errorf("messages[%d]: role %s, with %d calls without result", i, m.Role, open)
		}
		if m.Calls != nil && (m.Role != "assistant" || len(*m.Calls) == 0) {
			return fmt.Errorf("messages[%d]: tool_calls of role %s, or none", i, m.Role)
		}
		if m.Content == "" && m.Images == nil && m.Calls == nil {
			return fmt.Errorf("messages[%d]: empty", i)
		}
		for _, img := range m.Images {
			if data, err := base64.StdEncoding.DecodeString(img); err != nil || len(data) == 0 || m.Role == "assistant" {
				return fmt.Errorf("messages[%d]: invalid image", i)
			}
		}
		switch m.Role {
		case "system", "user":
		case "tool":
			if open--; open < 0 || m.ToolName == "" {
				return fmt.Errorf("messages[%d]: a result without a call, or without a tool_name", i)
			}
		case "assistant":
			if m.Calls == nil {
				continue
			}
			for _, c := range *m.Calls {
				if err := toolName(c.Function.Name, 64); err != nil || c.Function.Arguments == nil {
					return fmt.Errorf("messages[%d]: call %q without arguments, or of an invalid name: %w", i, c.Function.Name, err)
				}
				open++
			}
		default:
			return fmt.Errorf("messages[%d]: role %q", i, m.Role)
		}
		if (i == 0 || i == 1 && r.Messages[0].Role == "system") && m.Role != "system" && m.Role != "user" {
			return fmt.Errorf("messages[%d]: role %s: want user", i, m.Role)
		}
	}
	switch n := len(r.Messages); {
	case n == 0 || r.Messages[n-1].Role == "system":
		return errors.New("messages: none: the model is only loaded")
	case r.Messages[n-1].Role == "assistant":
		return errors.New("messages: the last one is the assistant's, which the model would continue")
	case open > 0:
		return errors.New("messages: calls without result")
	}
	return nil
}
