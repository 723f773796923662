package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// chunk is a line of a stream.
type chunk struct {
	Message struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
		Calls    []struct {
			ID       string `json:"id"` // newer servers give one
			Function struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done   bool               `json:"done"`
	Reason string             `json:"done_reason"`
	Prompt int64              `json:"prompt_eval_count"`
	Answer int64              `json:"eval_count"`
	Error  *dialect.ErrorBody `json:"error"`
}

// decoder decodes one stream.
type decoder struct{}

// Complete implements dialect.Decoder. An answer ends with a line that says so.
func (decoder) Complete(*dialect.Answer) bool { return false }

// Decode implements dialect.Decoder.
func (decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("invalid line: %w", err)
	}
	if c.Error != nil {
		return false, c.Error.Err()
	}
	if err := add(a, llm.PartThinking, c.Message.Thinking); err != nil {
		return false, err
	}
	if err := add(a, llm.PartText, c.Message.Content); err != nil {
		return false, err
	}
	for _, call := range c.Message.Calls {
		p, err := a.Begin(llm.PartCall)
		if err != nil {
			return false, err
		}
		p.ID, p.Name = call.ID, call.Function.Name
		if err := a.Start(p); err != nil {
			return false, err
		}
		if args := string(call.Function.Args); args != "null" {
			if err := a.Add(p, args); err != nil {
				return false, err
			}
		}
	}
	if c.Prompt != 0 || c.Answer != 0 {
		a.Count(c.Prompt, 0, c.Answer)
	}
	if c.Done && c.Reason == "length" {
		a.Stop = llm.StopLength
	}
	return c.Done, nil
}

func add(a *dialect.Answer, kind llm.PartKind, text string) error {
	if text == "" {
		return nil
	}
	p, err := a.Last(kind)
	if err != nil {
		return err
	}
	return a.Add(p, text)
}
