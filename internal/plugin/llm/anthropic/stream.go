package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// event is an event of a stream, of any type.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Block struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		Thinking   string `json:"thinking"`
		Signature  string `json:"signature"`
		JSON       string `json:"partial_json"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage             `json:"usage"`
	Error dialect.ErrorBody `json:"error"`
}

// usage is the token usage of the service. input_tokens excludes tokens read
// from or written to the cache.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`

	Speed dialect.Speed `json:"speed"` // fast, standard
}

// decoder decodes one stream.
type decoder struct {
	// By index, the position of a block in the answer.
	pieces map[int]*dialect.Piece
	inputs map[int]json.RawMessage // of calls whose start contains the arguments; deltas replace them
}

// Complete implements dialect.Decoder. An answer with a stop reason, which follows
// all blocks, is complete, even without message_stop.
func (d *decoder) Complete(a *dialect.Answer) bool { return a.Stop != "" }

// Decode implements dialect.Decoder.
func (d *decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("invalid event: %w", err)
	}
	switch e.Type {
	case "message_start":
		a.Model = cmp.Or(a.Model, e.Message.Model)
		e.Message.Usage.addTo(a)
	case "content_block_start":
		return false, d.start(&e, a)
	case "content_block_delta":
		return false, d.delta(&e, a)
	case "content_block_stop":
		return false, d.stop(e.Index, a)
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.Stop = stopReason(e.Delta.StopReason)
		}
		e.Usage.addTo(a)
	case "message_stop":
		return true, nil
	case "error":
		return false, e.Error.Err()
	}
	return false, nil // ping, or an unknown event
}

func stopReason(s string) llm.StopReason {
	switch s {
	case "max_tokens", "model_context_window_exceeded":
		return llm.StopLength
	case "tool_use":
		return llm.StopTools
	case "refusal":
		return llm.StopRefusal
	}
	return llm.StopEnd // end_turn, stop_sequence, pause_turn
}

// addTo adds the nonzero counts to the answer. The service reports them twice,
// and some services only at the end.
func (u usage) addTo(a *dialect.Answer) {
	a.Usage.Input = cmp.Or(u.Input, a.Usage.Input)
	a.Usage.Output = cmp.Or(u.Output, a.Usage.Output)
	a.Usage.CacheRead = cmp.Or(u.CacheRead, a.Usage.CacheRead)
	a.Usage.CacheWrite = cmp.Or(u.CacheWrite, a.Usage.CacheWrite)
	if u.Speed != "" {
		a.Fast = u.Speed == "fast"
	}
	a.Reported = a.Reported || a.Usage != (llm.Usage{})
}

func (d *decoder) start(e *event, a *dialect.Answer) error {
	if d.pieces[e.Index] != nil {
		return nil // duplicate start
	}
	var kind llm.PartKind
	switch e.Block.Type {
	case "text":
		kind = llm.PartText
	case "thinking", "redacted_thinking":
		kind = llm.PartThinking
	case "tool_use":
		kind = llm.PartCall
	default:
		return nil // unknown block
	}
	p, err := d.begin(e.Index, kind, a)
	if err != nil {
		return err
	}
	p.Sign(e.Block.Signature)
	p.Redacted = e.Block.Data
	if kind != llm.PartCall {
		return a.Add(p, e.Block.Text+e.Block.Thinking)
	}
	p.ID, p.Name = e.Block.ID, e.Block.Name
	if in := string(e.Block.Input); in != "" && in != "{}" && in != "null" {
		if d.inputs == nil {
			d.inputs = map[int]json.RawMessage{}
		}
		d.inputs[e.Index] = e.Block.Input
	}
	return a.Start(p)
}

func (d *decoder) begin(index int, kind llm.PartKind, a *dialect.Answer) (*dialect.Piece, error) {
	p, err := a.Begin(kind)
	if err != nil {
		return nil, err
	}
	if d.pieces == nil {
		d.pieces = map[int]*dialect.Piece{}
	}
	d.pieces[index] = p
	return p, nil
}

func (d *decoder) delta(e *event, a *dialect.Answer) error {
	var kind llm.PartKind
	switch e.Delta.Type {
	case "text_delta":
		kind = llm.PartText
	case "thinking_delta", "signature_delta":
		kind = llm.PartThinking
	case "input_json_delta":
		kind = llm.PartCall
	default:
		return nil
	}
	p := d.pieces[e.Index]
	switch {
	case p == nil && kind == llm.PartCall:
		return nil // unknown block
	case p == nil:
		var err error
		if p, err = d.begin(e.Index, kind, a); err != nil {
			return err
		}
	case p.Kind != kind:
		return fmt.Errorf("invalid event: %s for a block of kind %s", e.Delta.Type, p.Kind)
	}
	p.Sign(e.Delta.Signature)
	return a.Add(p, e.Delta.Text+e.Delta.Thinking+e.Delta.JSON)
}

// stop adds the arguments from the start of a call, if no others were received.
func (d *decoder) stop(index int, a *dialect.Answer) error {
	p, in := d.pieces[index], d.inputs[index]
	if p == nil || in == nil || p.Len() > 0 {
		return nil
	}
	return a.Add(p, string(in))
}
