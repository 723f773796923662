package session

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Texts that replace missing messages and results.
const (
	unknownText  = "interrupted: the outcome is unknown"
	leftOutText  = "the call has ended, but its result is left out: the service of the model refused it as invalid"
	noOutputText = "(no output)"
	openingText  = "[The conversation begins here.]"
)

// Compile returns the message list that is sent to a model for the entries. It is a
// pure function that accepts any entries. The list is valid for every provider:
//
//   - it begins with a user message;
//   - each call has exactly one result, directly after the message with the call, in
//     the order of the calls; a missing result is replaced by an error result;
//   - no two calls have the same id, and no part is empty.
//
// Entries that a KindVoid entry refers to, directly or by their run, are omitted,
// wherever in the transcript the KindVoid entry is. A voided cut has no effect, except
// that thinking parts before it stay omitted. The message of a cut, which has a summary
// of what is not sent any more, is the first message. What a KindPrune entry names is
// sent in a shorter form from then on, also if the entry or its run is voided, because
// that does not restore the provider's cache.
//
// The list may end with an assistant message; the caller then has to append a user
// message or results. Messages that need no repair are not copied.
func Compile(entries []Entry) []*llm.Message {
	var t Transcript
	t.Append(entries...)
	return t.Messages()
}

// Transcript is an incremental [Compile] for a growing conversation. The cost of Append
// depends only on the new entries, and the pointers to repaired messages stay the same.
// The zero Transcript is empty. It is safe for concurrent use.
type Transcript struct {
	mu      sync.Mutex
	blocks  []*block
	byCall  map[string]*block // id of a call as the model wrote it → the last block with such a call
	ids     map[string]int    // id of a call in the list → the number appended to its last duplicate
	opening *llm.Message
	cuts    []cut
	voided  map[Ref]bool
	last    int64 // Seq of the last appended entry
	size    int
}

// cut is an entry of KindCut.
type cut struct {
	source
	first int64        // Seq of the first entry that is still sent
	msg   *llm.Message // replaces the entries before it; nil: nothing does
}

// source identifies the entry from which a message in the list was made.
type source struct {
	id  string
	run chela.RunID
	seq int64
}

// block is a user or assistant message, with the results of its calls.
type block struct {
	source
	msg     *llm.Message
	calls   []llm.ToolCall // of msg, as sent
	wire    []string       // ids of the calls as the model wrote them
	results []*llm.Message // by index of the call; nil: none yet
	sources []source       // of the results
	missing []*llm.Message // by index of the call: replacements of missing results, made on demand
}

// Append adds entries in the order of the transcript.
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

// Size returns the estimated memory use of the transcript in bytes. A message counts
// twice: for itself, and for its cached encoding.
func (t *Transcript) Size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// Messages returns the message list. The caller may append to it.
func (t *Transcript) Messages() []*llm.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*llm.Message, 0, 2*len(t.blocks)+1)
	t.eachLocked(func(_ source, m *llm.Message) { list = append(list, m) })
	return list
}

// Sent returns the message list with the entries that the messages were made from.
func (t *Transcript) Sent() []Sent {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]Sent, 0, 2*len(t.blocks)+1)
	t.eachLocked(func(s source, m *llm.Message) { list = append(list, Sent{s.seq, s.run, m}) })
	return list
}

// eachLocked calls f for each message of the list, with the entry that it was made from.
func (t *Transcript) eachLocked(f func(source, *llm.Message)) {
	first, summary := t.firstLocked()
	begun := summary != nil
	if begun {
		f(source{}, summary)
	}
	for _, b := range t.blocks {
		if b.seq < first || t.voidLocked(b.source) {
			continue
		}
		if !begun && b.msg.Role != llm.RoleUser {
			f(source{}, t.openingLocked())
		}
		begun = true
		f(b.source, b.msg)
		for i, r := range b.results {
			from := b.sources[i]
			switch {
			case r == nil:
				r, from = b.missingResult(i, unknownText), source{run: b.run}
			case t.voidLocked(from):
				r, from = b.missingResult(i, leftOutText), source{run: b.run}
			}
			f(from, r)
		}
	}
}

func (t *Transcript) appendLocked(e *Entry) {
	t.last = max(t.last, e.Seq)
	switch {
	case e.Kind == KindCut:
		t.cutLocked(e)
	case e.Kind == KindVoid && e.Voids != Ref{}:
		if t.voided == nil {
			t.voided = make(map[Ref]bool)
		}
		t.voided[e.Voids] = true
	case e.Kind == KindPrune && e.Prune != nil:
		t.pruneLocked(e.Prune)
	case !e.sent():
	case e.Message.Role == llm.RoleTool:
		t.resultLocked(e.Message, source{e.ID, e.Run, e.Seq})
	default:
		t.messageLocked(e)
	}
}

// voidLocked reports whether an entry was voided, by itself or with its run.
func (t *Transcript) voidLocked(s source) bool {
	return len(t.voided) > 0 && (t.voided[Ref{Entry: s.id}] || s.run != "" && t.voided[Ref{Run: s.run}])
}

// firstLocked returns the Seq of the first entry that is sent, and the message before
// it, according to the last cut that was not voided.
func (t *Transcript) firstLocked() (int64, *llm.Message) {
	for _, c := range slices.Backward(t.cuts) {
		if !t.voidLocked(c.source) {
			return c.first, c.msg
		}
	}
	return 0, nil
}

// cutLocked adds a cut. It removes the thinking parts of earlier messages, because their
// signatures belong to a prompt that no longer exists. The turn in progress keeps its
// thinking parts, because providers require them together with the results.
func (t *Transcript) cutLocked(e *Entry) {
	c := cut{source{e.ID, e.Run, e.Seq}, e.First, nil}
	if m := e.Message; m != nil && m.Role == llm.RoleUser {
		if c.msg = cleanUser(m); c.msg != nil {
			t.size += 2 * c.msg.Size()
		}
	}
	t.cuts = append(t.cuts, c)
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

// resultLocked assigns a result to the last call with its id. It ignores the result if
// there is no such call or if the call already has a result.
func (t *Transcript) resultLocked(m *llm.Message, from source) {
	b := t.byCall[m.CallID]
	if b == nil {
		return
	}
	i := slices.Index(b.wire, m.CallID)
	if b.results[i] != nil {
		return
	}
	parts := filterParts(m.Parts, func(p *llm.Part) bool { return isText(p) || isImage(p) })
	if len(parts) == 0 {
		parts = []llm.Part{llm.Text(noOutputText)}
	}
	if !sameParts(parts, m.Parts) {
		m = withParts(m, parts)
	}
	if c := b.calls[i]; m.CallID != c.ID || m.ToolName != c.Name {
		m = withParts(m, m.Parts)
		m.CallID, m.ToolName = c.ID, c.Name
	}
	b.results[i], b.sources[i] = m, from
	t.size += 2 * m.Size()
}

// messageLocked adds a block for a user or assistant message.
func (t *Transcript) messageLocked(e *Entry) {
	m := e.Message
	b := &block{source: source{e.ID, e.Run, e.Seq}}
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

// missingResult returns the message that replaces the result of call i.
func (b *block) missingResult(i int, text string) *llm.Message {
	if b.missing == nil {
		b.missing = make([]*llm.Message, len(b.calls))
	}
	if m := b.missing[i]; m == nil || m.PlainText() != text {
		b.missing[i] = &llm.Message{
			Role: llm.RoleTool, CallID: b.calls[i].ID, ToolName: b.calls[i].Name, IsError: true,
			Parts: []llm.Part{llm.Text(text)},
		}
	}
	return b.missing[i]
}

// cleanUser returns m without empty parts and parts of other kinds than text and image,
// or nil if no part remains.
func cleanUser(m *llm.Message) *llm.Message {
	parts := filterParts(m.Parts, func(p *llm.Part) bool { return isText(p) || isImage(p) })
	switch {
	case len(parts) == 0:
		return nil
	case sameParts(parts, m.Parts):
		return m
	}
	return withParts(m, parts)
}

// cleanAssistant returns m without the parts that cannot be sent, or nil if neither text
// nor a call remains. It records the calls in b. Only the text of a partial answer is
// kept.
func (t *Transcript) cleanAssistant(m *llm.Message, partial bool, b *block) *llm.Message {
	partial = partial || m.Stop == llm.StopAborted
	seen := make(map[string]bool)
	hasContent := false
	parts := filterParts(m.Parts, func(p *llm.Part) bool {
		ok := !partial && p.Kind == llm.PartThinking
		switch p.Kind {
		case llm.PartText:
			ok = isText(p)
			hasContent = hasContent || ok
		case llm.PartCall:
			ok = !partial && p.Call != nil && p.Call.Name != "" && !seen[p.Call.ID]
			if ok {
				seen[p.Call.ID] = true
				hasContent = true
			}
		}
		return ok
	})
	if !hasContent {
		return nil
	}
	changed := !sameParts(parts, m.Parts)
	for i := range parts {
		if parts[i].Kind != llm.PartCall {
			continue
		}
		wire := parts[i].Call
		if old := t.byCall[wire.ID]; old != nil && t.voidLocked(old.source) {
			delete(t.ids, old.calls[slices.Index(old.wire, wire.ID)].ID)
		}
		call := llm.ToolCall{ID: t.uniqueID(wire.ID), Name: wire.Name, Args: wire.Args, Raw: wire.Raw}
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
	b.results, b.sources = make([]*llm.Message, len(b.calls)), make([]source, len(b.calls))
	if !changed {
		return m
	}
	return withParts(m, parts)
}

// uniqueID returns id, with a numeric suffix if an earlier call that is sent has the same id.
func (t *Transcript) uniqueID(id string) string {
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

// filterParts returns the parts for which ok returns true. It returns the same slice if
// no part is removed.
func filterParts(parts []llm.Part, ok func(*llm.Part) bool) []llm.Part {
	var kept []llm.Part
	dropped := false
	for i := range parts {
		switch keep := ok(&parts[i]); {
		case !keep && !dropped:
			kept, dropped = slices.Clone(parts[:i]), true
		case keep && dropped:
			kept = append(kept, parts[i])
		}
	}
	if !dropped {
		return parts
	}
	return kept
}

// sameParts reports whether a and b are the same slice.
func sameParts(a, b []llm.Part) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// withParts returns a copy of m with the given parts and without the cached encoding.
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
