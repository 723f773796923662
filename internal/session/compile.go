package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
)

// Texts that stand for what a transcript lacks.
const (
	unknownText  = "interrupted: the outcome is unknown"
	noOutputText = "(no output)"
	openingText  = "[The conversation begins here.]"
)

// Compile returns the list that a model is sent for the entries. It is pure
// and total, and the list is valid for every provider:
//
//   - it begins with a message of the user;
//   - each call has exactly one result, directly behind the message that made
//     it, in the order of the calls; a missing one is an error result;
//   - no two calls have the same id, and no part is empty.
//
// A list may end with a message of the assistant: a request needs one of the
// user, or results, behind it. Messages that need no repair are the entries'
// own pointers.
func Compile(entries []Entry) []*llm.Message {
	var t Transcript
	t.Append(entries...)
	return t.Messages()
}

// Transcript is entries on their way to [Compile]'s list, for a conversation
// that grows: appending costs what is appended, and what was repaired once
// stays the same pointer. The zero Transcript is empty. It is safe for
// concurrent use.
type Transcript struct {
	mu      sync.Mutex
	blocks  []*block
	byCall  map[string]*block // the last block that made a call of that id, as the model wrote it
	ids     map[string]int    // ids of calls in the list → the number that a like one gets next
	opening *llm.Message
	first   int64 // Seq of the first entry that is sent
	last    int64 // Seq of the last entry that was appended
	size    int
}

// block is a message of the user or the assistant, with the results of its calls.
type block struct {
	seq     int64
	msg     *llm.Message
	calls   []llm.ToolCall // of msg, as they are sent
	wire    []string       // their ids as the model wrote them
	results []*llm.Message // by call; nil: none yet
	lost    []*llm.Message // by call: what stands for a missing result
}

// Append adds entries, which come in the order of the transcript.
func (t *Transcript) Append(entries ...Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range entries {
		t.appendLocked(&entries[i])
	}
}

// Last returns the Seq of the last entry.
func (t *Transcript) Last() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Size estimates the memory that the transcript holds, in bytes. A message
// counts twice: for itself, and for the encoding that it will keep.
func (t *Transcript) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// Messages returns the list. The caller may append to it.
func (t *Transcript) Messages() []*llm.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*llm.Message, 0, 2*len(t.blocks)+1)
	for _, b := range t.blocks {
		if b.seq < t.first {
			continue
		}
		if len(list) == 0 && b.msg.Role != llm.RoleUser {
			list = append(list, t.openingLocked())
		}
		list = append(list, b.msg)
		for i, r := range b.results {
			if r == nil {
				r = b.missing(i)
			}
			list = append(list, r)
		}
	}
	return list
}

func (t *Transcript) appendLocked(e *Entry) {
	t.last = max(t.last, e.Seq)
	switch {
	case e.Kind == KindCut:
		t.cutLocked(e)
	case e.Kind != KindMessage || e.Message == nil:
	case e.Message.Role == llm.RoleTool:
		t.resultLocked(e.Message)
	default:
		t.messageLocked(e)
	}
}

// cutLocked notes a cut; the last one decides. Thinking from before it is not
// sent any more: its signatures belong to a prompt that no longer exists. The
// turn that is in progress keeps it, because providers want it back with the
// results.
func (t *Transcript) cutLocked(e *Entry) {
	t.first = e.First
	done := len(t.blocks)
	if done > 0 && len(t.blocks[done-1].calls) > 0 {
		for done > 0 && t.blocks[done-1].msg.Role != llm.RoleUser {
			done--
		}
	}
	for _, b := range t.blocks[:done] {
		if hasThinking(b.msg) {
			b.msg = withParts(b.msg, slices.DeleteFunc(slices.Clone(b.msg.Parts), isThinking))
		}
	}
}

// resultLocked gives a result to the last call of its id. One that answers
// nothing, or something that is answered, is left out.
func (t *Transcript) resultLocked(m *llm.Message) {
	b := t.byCall[m.CallID]
	if b == nil {
		return
	}
	i := slices.Index(b.wire, m.CallID)
	if b.results[i] != nil {
		return
	}
	parts := keep(m.Parts, func(p *llm.Part) bool { return isText(p) || isImage(p) })
	if len(parts) == 0 {
		parts = []llm.Part{llm.Text(noOutputText)}
	}
	if !same(parts, m.Parts) {
		m = withParts(m, parts)
	}
	if c := b.calls[i]; m.CallID != c.ID || m.ToolName != c.Name {
		m = withParts(m, m.Parts)
		m.CallID, m.ToolName = c.ID, c.Name
	}
	b.results[i] = m
	t.size += 2 * m.Size()
}

// messageLocked adds a block for a message of the user or the assistant.
func (t *Transcript) messageLocked(e *Entry) {
	m := e.Message
	b := &block{seq: e.Seq}
	switch m.Role {
	case llm.RoleUser:
		b.msg = cleanUser(m)
	case llm.RoleAssistant:
		b.msg = t.cleanAssistant(m, e.Partial, b)
	}
	if b.msg == nil {
		return
	}
	t.blocks = append(t.blocks, b)
	t.size += 2 * b.msg.Size()
	for _, id := range b.wire {
		if t.byCall == nil {
			t.byCall = make(map[string]*block)
		}
		t.byCall[id] = b
	}
}

func (t *Transcript) openingLocked() *llm.Message {
	if t.opening == nil {
		t.opening = llm.User(openingText)
	}
	return t.opening
}

// missing returns what stands for the result of call i, which is not known.
func (b *block) missing(i int) *llm.Message {
	if b.lost == nil {
		b.lost = make([]*llm.Message, len(b.calls))
	}
	if b.lost[i] == nil {
		b.lost[i] = &llm.Message{
			Role: llm.RoleTool, CallID: b.calls[i].ID, ToolName: b.calls[i].Name, IsError: true,
			Parts: []llm.Part{llm.Text(unknownText)},
		}
	}
	return b.lost[i]
}

// cleanUser returns m without empty and foreign parts; nil when none is left.
func cleanUser(m *llm.Message) *llm.Message {
	parts := keep(m.Parts, func(p *llm.Part) bool { return isText(p) || isImage(p) })
	switch {
	case len(parts) == 0:
		return nil
	case same(parts, m.Parts):
		return m
	}
	return withParts(m, parts)
}

// cleanAssistant returns m as it can be sent, with its calls noted in b; nil
// when nothing can. An answer that was cut off keeps its text only.
func (t *Transcript) cleanAssistant(m *llm.Message, partial bool, b *block) *llm.Message {
	partial = partial || m.Stop == llm.StopAborted
	seen := make(map[string]bool)
	said := false
	parts := keep(m.Parts, func(p *llm.Part) bool {
		ok := !partial && p.Kind == llm.PartThinking
		switch p.Kind {
		case llm.PartText:
			ok = isText(p)
			said = said || ok
		case llm.PartCall:
			ok = !partial && p.Call != nil && p.Call.Name != "" && !seen[p.Call.ID]
			if ok {
				seen[p.Call.ID] = true
				said = true
			}
		}
		return ok
	})
	if !said {
		return nil
	}
	changed := !same(parts, m.Parts)
	for i := range parts {
		if parts[i].Kind != llm.PartCall {
			continue
		}
		wire := parts[i].Call
		call := llm.ToolCall{ID: t.unused(wire.ID), Name: wire.Name, Args: wire.Args, Raw: wire.Raw}
		if !isObject(call.Args) {
			call.Args = json.RawMessage("{}")
		}
		if call.ID != wire.ID || !bytes.Equal(call.Args, wire.Args) {
			if !changed {
				parts, changed = slices.Clone(parts), true
			}
			parts[i].Call = &call
		}
		b.calls = append(b.calls, call)
		b.wire = append(b.wire, wire.ID)
	}
	b.results = make([]*llm.Message, len(b.calls))
	if !changed {
		return m
	}
	return withParts(m, parts)
}

// unused returns id, or, when an earlier call has it, a like one that is free.
func (t *Transcript) unused(id string) string {
	if t.ids == nil {
		t.ids = make(map[string]int)
	}
	if id == "" {
		id = "call"
	}
	free := id
	for t.ids[free] > 0 {
		t.ids[id]++
		free = id + "-" + strconv.Itoa(t.ids[id])
	}
	t.ids[free] = 1
	return free
}

// keep returns the parts that ok allows: the same slice when those are all.
func keep(parts []llm.Part, ok func(*llm.Part) bool) []llm.Part {
	var kept []llm.Part
	dropped := false
	for i := range parts {
		switch fine := ok(&parts[i]); {
		case !fine && !dropped:
			kept, dropped = slices.Clone(parts[:i]), true
		case fine && dropped:
			kept = append(kept, parts[i])
		}
	}
	if !dropped {
		return parts
	}
	return kept
}

// same reports whether keep dropped nothing: whether a and b are one slice.
func same(a, b []llm.Part) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// withParts returns a copy of m, without its kept encoding, that has the parts.
func withParts(m *llm.Message, parts []llm.Part) *llm.Message {
	return &llm.Message{
		Role: m.Role, Parts: parts, Provider: m.Provider, Model: m.Model, Stop: m.Stop,
		CallID: m.CallID, ToolName: m.ToolName, IsError: m.IsError,
	}
}

func isText(p *llm.Part) bool    { return p.Kind == llm.PartText && strings.TrimSpace(p.Text) != "" }
func isImage(p *llm.Part) bool   { return p.Kind == llm.PartImage && p.Size() > 0 && p.MIME != "" }
func isThinking(p llm.Part) bool { return p.Kind == llm.PartThinking }
func hasThinking(m *llm.Message) bool {
	return slices.ContainsFunc(m.Parts, isThinking)
}

// isObject reports whether b is a JSON object.
func isObject(b json.RawMessage) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}
