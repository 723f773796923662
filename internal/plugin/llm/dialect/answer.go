package dialect

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// maxPieces is the maximum number of parts of a message. Even an empty part
// uses memory.
const maxPieces = 4096

var (
	errBroken = errors.New("the caller stopped the iteration")
	errPieces = errors.New("the answer has too many parts")
)

// Answer is a message under construction. Additions are yielded immediately.
type Answer struct {
	Model    string         // as reported by the service
	Stop     llm.StopReason // "": not known yet
	Usage    llm.Usage
	Reported bool // the service reported Usage
	Fast     bool // the faster tier of the service answers: as the service reported, or else as requested

	HTMLEntities bool // arguments have &amp; for &; they are yielded at the end, when they can be decoded

	yield  func(llm.Event, error) bool
	pieces []*Piece // in the order in which they began, which is that of the message
	calls  int      // number of pieces that are calls
}

// Piece is a part under construction.
type Piece struct {
	Kind     llm.PartKind
	Redacted string
	ID, Name string // of a call

	text    []byte // or arguments of a call, as received
	sign    []byte // signature; its form is the dialect's
	index   int    // of a call, among the calls
	started bool   // CallStart was yielded
}

// Len returns the length of what p holds, in bytes.
func (p *Piece) Len() int { return len(p.text) }

// Sign appends to the signature of p.
func (p *Piece) Sign(s string) { p.sign = append(p.sign, s...) }

// Begin adds a piece.
func (a *Answer) Begin(kind llm.PartKind) (*Piece, error) {
	if len(a.pieces) >= maxPieces {
		return nil, errPieces
	}
	p := &Piece{Kind: kind}
	if kind == llm.PartCall {
		p.index = a.calls
		a.calls++
	}
	a.pieces = append(a.pieces, p)
	return p, nil
}

// Last returns the last piece if it has the kind, or a new one.
func (a *Answer) Last(kind llm.PartKind) (*Piece, error) {
	if n := len(a.pieces); n > 0 && a.pieces[n-1].Kind == kind {
		return a.pieces[n-1], nil
	}
	return a.Begin(kind)
}

// Empty reports whether there is no piece.
func (a *Answer) Empty() bool { return len(a.pieces) == 0 }

// Calls reports whether there is a tool call.
func (a *Answer) Calls() bool { return a.calls > 0 }

// Add appends text, or a part of a call's arguments, to p.
func (a *Answer) Add(p *Piece, text string) error {
	if text == "" {
		return nil
	}
	p.text = append(p.text, text...)
	switch p.Kind {
	case llm.PartText:
		return a.emit(llm.Event{Kind: llm.TextDelta, Text: text})
	case llm.PartThinking:
		return a.emit(llm.Event{Kind: llm.ThinkingDelta, Text: text})
	}
	if !p.started {
		if p.Name == "" || a.HTMLEntities {
			return nil // the name is not known yet; Start yields the text
		}
		return a.Start(p)
	}
	if a.HTMLEntities {
		return nil
	}
	return a.emit(llm.Event{Kind: llm.CallDelta, Index: p.index, Text: text})
}

// Start yields the start of a call and the arguments received before it. A
// missing or duplicate id is replaced.
func (a *Answer) Start(p *Piece) error {
	if p.started {
		return nil
	}
	p.started = true
	for _, o := range a.pieces {
		if o != p && o.Kind == llm.PartCall && o.started && o.ID == p.ID {
			p.ID = ""
		}
	}
	if p.ID == "" {
		p.ID = newID()
	}
	if p.Name == "" {
		p.Name = "unknown"
	}
	call := &llm.ToolCall{ID: p.ID, Name: p.Name}
	if err := a.emit(llm.Event{Kind: llm.CallStart, Index: p.index, Call: call}); err != nil {
		return err
	}
	if len(p.text) == 0 || a.HTMLEntities {
		return nil
	}
	return a.emit(llm.Event{Kind: llm.CallDelta, Index: p.index, Text: string(p.text)})
}

func newID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "call_" + hex.EncodeToString(b[:])
}

func (a *Answer) emit(e llm.Event) error {
	if !a.yield(e, nil) {
		return errBroken
	}
	return nil
}

// message returns the complete message.
func (a *Answer) message(provider, model string) *llm.Message {
	m := &llm.Message{Role: llm.RoleAssistant, Stop: a.Stop, Provider: provider, Model: model}
	for _, p := range a.pieces {
		text := strings.ToValidUTF8(string(p.text), "\ufffd")
		switch {
		case p.Kind == llm.PartCall:
			c := p.call(text)
			m.Parts = append(m.Parts, llm.Part{Kind: p.Kind, Call: &c, Signature: string(p.sign)})
		case p.Kind == llm.PartThinking && (text != "" || len(p.sign) > 0 || p.Redacted != ""):
			m.Parts = append(m.Parts, llm.Part{Kind: p.Kind, Text: text, Signature: string(p.sign), Redacted: p.Redacted})
		case p.Kind == llm.PartText && text != "":
			m.Parts = append(m.Parts, llm.Text(text))
		}
	}
	return m
}

// call returns the complete call. Arguments that are no JSON are in Raw: the tool call can then
// be answered with an error that shows them.
func (p *Piece) call(text string) llm.ToolCall {
	c := llm.ToolCall{ID: p.ID, Name: p.Name, Args: json.RawMessage("{}")}
	switch raw := bytes.TrimSpace([]byte(text)); {
	case len(raw) == 0:
	case json.Valid(raw):
		c.Args = raw
	default:
		c.Raw = text
	}
	return c
}

// finish yields what was held back of a call.
func (a *Answer) finish(p *Piece) error {
	if err := a.Start(p); err != nil || !a.HTMLEntities || len(p.text) == 0 {
		return err
	}
	p.text = unescapeArgs(p.text)
	return a.emit(llm.Event{Kind: llm.CallDelta, Index: p.index, Text: string(p.text)})
}

// done yields the last event. prompt is the size of the request in bytes, for
// services that report no usage.
func (a *Answer) done(provider, model string, prompt int) error {
	for _, p := range a.pieces {
		if p.Kind == llm.PartCall {
			if err := a.finish(p); err != nil {
				return err
			}
		}
	}
	if a.Stop == "" && a.hasBroken() { // the service does not say that the limit was reached
		a.Stop = llm.StopLength
	}
	if a.Calls() && (a.Stop == llm.StopEnd || a.Stop == "") {
		a.Stop = llm.StopTools
	}
	if a.Stop == llm.StopTools && !a.Calls() || a.Stop == "" {
		a.Stop = llm.StopEnd
	}
	return a.emit(llm.Event{Kind: llm.Done, Message: a.message(provider, model), Usage: a.usage(prompt)})
}

// Count stores the reported usage of a service whose prompt includes the tokens that it read
// from its cache.
func (a *Answer) Count(prompt, cached, output int64) {
	a.Usage, a.Reported = llm.Usage{Input: prompt, Output: output}, true
	if cached > 0 && cached <= prompt {
		a.Usage.Input, a.Usage.CacheRead = prompt-cached, cached
	}
}

// hasBroken reports whether the arguments of a call are not valid JSON.
func (a *Answer) hasBroken() bool {
	return slices.ContainsFunc(a.pieces,
		func(p *Piece) bool { return p.Kind == llm.PartCall && p.call(string(p.text)).Raw != "" })
}

// maxTokens is the maximum plausible number of tokens of a call.
const maxTokens = 1 << 32

// reportedUsage returns the usage that the service reported, if it is
// plausible.
func (a *Answer) reportedUsage() llm.Usage {
	u := a.Usage
	for _, n := range []int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > maxTokens {
			return llm.Usage{}
		}
	}
	if !a.Reported || u == (llm.Usage{}) {
		return llm.Usage{}
	}
	u.Fast = a.Fast
	return u
}

// usage returns the reported usage or an estimate. An estimate takes four bytes for a token.
func (a *Answer) usage(prompt int) llm.Usage {
	if u := a.reportedUsage(); u != (llm.Usage{}) {
		return u
	}
	out := 0
	for _, p := range a.pieces {
		out += len(p.text) + len(p.Name)
	}
	return llm.Usage{Input: int64(prompt+3) / 4, Output: int64(out+3) / 4, Estimated: true, Fast: a.Fast}
}
