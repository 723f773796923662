package gemini

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// chunk is an event of a stream.
type chunk struct {
	Candidates []candidate `json:"candidates"`
	Prompt     struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *usage             `json:"usageMetadata"`
	Error *dialect.ErrorBody `json:"error"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish string `json:"finishReason"`
	Why    string `json:"finishMessage"`
}

type part struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought"` // Text is a summary of thinking
	Sign    string `json:"thoughtSignature"`
	Call    *struct {
		ID   string          `json:"id"` // not all models give one
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// usage is the token usage of the service. The prompt includes tokens from the cache; the
// answer does not include thinking.
type usage struct {
	Prompt   int64 `json:"promptTokenCount"`
	Cached   int64 `json:"cachedContentTokenCount"`
	Answer   int64 `json:"candidatesTokenCount"`
	Thoughts int64 `json:"thoughtsTokenCount"`
}

// decoder decodes one stream.
type decoder struct{ finished bool }

// Complete implements dialect.Decoder. No event is marked as the last one: a stream ends
// after the reason for which the model stopped.
func (d *decoder) Complete(*dialect.Answer) bool { return d.finished }

// Decode implements dialect.Decoder.
func (d *decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return false, fmt.Errorf("invalid event: %w", err)
	}
	if c.Error != nil {
		return false, c.Error.Err()
	}
	if u := c.Usage; u != nil && *u != (usage{}) {
		a.Count(u.Prompt, u.Cached, u.Answer+u.Thoughts)
	}
	if c.Prompt.BlockReason != "" && len(c.Candidates) == 0 { // it does not answer this at all
		d.finished, a.Stop = true, llm.StopRefusal
	}
	for i := range c.Candidates {
		o := &c.Candidates[i]
		if o.Index != 0 {
			continue // a second answer, which was not requested
		}
		for j := range o.Content.Parts {
			if err := add(&o.Content.Parts[j], a); err != nil {
				return false, err
			}
		}
		if err := d.finish(o, a); err != nil {
			return false, err
		}
	}
	return false, nil
}

// add adds a part. A call is never split.
func add(in *part, a *dialect.Answer) error {
	switch {
	case in.Call != nil:
		p, err := a.Begin(llm.PartCall)
		if err != nil {
			return err
		}
		p.ID, p.Name = in.Call.ID, in.Call.Name
		p.Sign(in.Sign)
		if err := a.Start(p); err != nil || string(in.Call.Args) == "null" {
			return err
		}
		return a.Add(p, string(in.Call.Args))
	case in.Text == "":
		return nil
	}
	kind := llm.PartText
	if in.Thought {
		kind = llm.PartThinking
	}
	p, err := a.Last(kind)
	if err != nil {
		return err
	}
	return a.Add(p, in.Text)
}

// finish handles the reason for which the model stopped, if there is one.
func (d *decoder) finish(o *candidate, a *dialect.Answer) error {
	switch o.Finish {
	case "", "FINISH_REASON_UNSPECIFIED":
		return nil
	case "STOP":
	case "MAX_TOKENS":
		a.Stop = llm.StopLength
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS",
		"MISSING_THOUGHT_SIGNATURE":
		// Asked again, the model usually does it right.
		return &llm.Error{Class: llm.ClassNetwork,
			Message: fmt.Sprintf("the model wrote no valid answer (%s) %s", o.Finish, o.Why)}
	default: // SAFETY, RECITATION, LANGUAGE, BLOCKLIST, PROHIBITED_CONTENT, SPII, OTHER and new ones
		a.Stop = llm.StopRefusal
	}
	d.finished = true
	return nil
}
