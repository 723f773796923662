package responses

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// event is an event of a stream, of any type.
type event struct {
	Type     string   `json:"type"`
	Output   int      `json:"output_index"`
	Summary  int      `json:"summary_index"`
	Delta    text     `json:"delta"`
	Item     item     `json:"item"`
	Response response `json:"response"`

	// An error: in an object, or as members of the event.
	Error   *dialect.ErrorBody `json:"error"`
	Code    any                `json:"code"`
	Message json.RawMessage    `json:"message"`
}

// text is a string. Values of other types, which new events may have, are empty.
type text string

// UnmarshalJSON ignores what is not a string.
func (s *text) UnmarshalJSON(b []byte) error {
	_ = json.Unmarshal(b, (*string)(s))
	return nil
}

// item is a part of an answer.
type item struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []said `json:"content"` // of a message
	Summary   []said `json:"summary"` // of a thought
}

type said struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

type response struct {
	Model      string             `json:"model"`
	Usage      *usage             `json:"usage"`
	Tier       dialect.Speed      `json:"service_tier"` // that answers
	Error      *dialect.ErrorBody `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// usage is the token usage of the service. The input includes tokens from the cache.
type usage struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Details struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// decoder decodes one stream.
type decoder struct {
	// By output_index, the position of an item in the answer.
	pieces  map[int]*dialect.Piece
	done    map[int]bool // the item is complete
	summary map[int]int  // last part of a thought's summary

	refused  bool // the model declined, in a text of its own kind
	finished bool // the last event has arrived
}

// Complete implements dialect.Decoder. Only the last event says that no item follows.
func (d *decoder) Complete(*dialect.Answer) bool { return d.finished }

// Decode implements dialect.Decoder.
func (d *decoder) Decode(data []byte, a *dialect.Answer) (bool, error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, fmt.Errorf("invalid event: %w", err)
	}
	switch e.Type {
	case "response.created":
		a.Model = cmp.Or(a.Model, e.Response.Model)
	case "response.output_item.added":
		_, err := d.piece(e.Output, &e.Item, a)
		return false, err
	case "response.output_text.delta":
		return false, d.add(e.Output, llm.PartText, string(e.Delta), a)
	case "response.refusal.delta":
		d.refused = true
		return false, d.add(e.Output, llm.PartText, string(e.Delta), a)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return false, d.think(&e, a)
	case "response.function_call_arguments.delta":
		return false, d.add(e.Output, llm.PartCall, string(e.Delta), a)
	case "response.output_item.done":
		return false, d.complete(&e, a)
	case "response.completed", "response.incomplete":
		d.end(&e.Response, a)
		return true, nil
	case "response.failed":
		if e.Response.Error == nil {
			return false, &llm.Error{Class: llm.ClassNetwork, Message: "the service ended its answer with an error"}
		}
		return false, e.Response.Error.Err()
	case "error":
		if e.Error == nil {
			e.Error = &dialect.ErrorBody{Code: e.Code, Message: message(e.Message)}
		}
		return false, e.Error.Err()
	}
	return false, nil // an event that adds nothing, or an unknown one
}

// message returns the text of an error; "": there is none.
func message(raw json.RawMessage) string {
	var s text
	_ = json.Unmarshal(raw, &s) // text accepts all values
	return string(s)
}

// kinds are the kinds of the parts that items become.
var kinds = map[string]llm.PartKind{
	"message":       llm.PartText,
	"reasoning":     llm.PartThinking,
	"function_call": llm.PartCall,
}

// piece returns the piece of an item, which it begins if it is new; nil: it is of an
// unknown type.
func (d *decoder) piece(index int, in *item, a *dialect.Answer) (*dialect.Piece, error) {
	kind, known := kinds[in.Type]
	if p := d.pieces[index]; p != nil || !known {
		return p, nil
	}
	p, err := d.begin(index, kind, a)
	if err != nil || kind != llm.PartCall {
		return p, err
	}
	p.ID, p.Name = cmp.Or(in.CallID, in.ID), in.Name
	return p, a.Start(p)
}

func (d *decoder) begin(index int, kind llm.PartKind, a *dialect.Answer) (*dialect.Piece, error) {
	p, err := a.Begin(kind)
	if err != nil {
		return nil, err
	}
	if d.pieces == nil {
		d.pieces, d.done, d.summary = map[int]*dialect.Piece{}, map[int]bool{}, map[int]int{}
	}
	d.pieces[index] = p
	return p, nil
}

// add adds a delta to an item. One of which no event said what it is becomes what the delta
// is for; a call cannot, without its name.
func (d *decoder) add(index int, kind llm.PartKind, delta string, a *dialect.Answer) error {
	p := d.pieces[index]
	switch {
	case p == nil && kind == llm.PartCall:
		return nil
	case p == nil:
		var err error
		if p, err = d.begin(index, kind, a); err != nil {
			return err
		}
	case p.Kind != kind:
		return fmt.Errorf("invalid event: text of kind %s for an item of kind %s", kind, p.Kind)
	}
	return a.Add(p, delta)
}

// think adds a delta of a thought. The parts of its summary are paragraphs.
func (d *decoder) think(e *event, a *dialect.Answer) error {
	if d.pieces[e.Output] != nil && e.Summary > d.summary[e.Output] {
		d.summary[e.Output] = e.Summary
		if err := d.add(e.Output, llm.PartThinking, "\n\n", a); err != nil {
			return err
		}
	}
	return d.add(e.Output, llm.PartThinking, string(e.Delta), a)
}

// complete adds what only the end of an item says: its text, if there were no deltas, and
// the encrypted form of a thought.
func (d *decoder) complete(e *event, a *dialect.Answer) error {
	p, err := d.piece(e.Output, &e.Item, a)
	if err != nil || p == nil || d.done[e.Output] {
		return err
	}
	d.done[e.Output] = true
	if p.Kind == llm.PartThinking {
		p.Sign(sign(e.Item.ID, e.Item.Encrypted))
	}
	if p.Len() > 0 {
		return nil
	}
	rest := e.Item.Arguments
	for i, s := range append(e.Item.Content, e.Item.Summary...) {
		if i > 0 && p.Kind == llm.PartThinking {
			rest += "\n\n"
		}
		rest += s.Text + s.Refusal
		d.refused = d.refused || s.Refusal != ""
	}
	return a.Add(p, rest)
}

// end adds what the last event says.
func (d *decoder) end(r *response, a *dialect.Answer) {
	d.finished = true
	a.Model = cmp.Or(a.Model, r.Model)
	if r.Tier != "" {
		a.Fast = r.Tier == "priority" || r.Tier == "fast"
	}
	if u := r.Usage; u != nil && *u != (usage{}) {
		a.Count(u.Input, u.Details.Cached, u.Output)
	}
	switch {
	case r.Incomplete != nil && r.Incomplete.Reason == "content_filter", d.refused:
		a.Stop = llm.StopRefusal
	case r.Incomplete != nil:
		a.Stop = llm.StopLength
	}
}
