package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Program is a hook outside of this process. It gets its event and gives its answer
// as JSON.
type Program struct {
	Name     string
	Priority int
	Timeout  time.Duration // 0: that of the point
	Tools    []string      // only for events of these tools; nil: all
	// Conversation permits events with the content of conversations, Prompt changes of
	// the system prompt.
	Conversation, Prompt bool
	Func                 func(ctx context.Context, event []byte) (answer []byte, err error)
}

// event is how an event is presented to a program: the events of a typed point as
// they are, with the point's name; those of the internal family as {type, action,
// sessionKey, timestamp, messages, context}.
type event struct {
	point  string
	kind   string // of the internal family; empty: the event of a typed point
	action string
	only   bool // only events with the action
}

// family are the events of the internal family with the points that they belong to.
// The events command:ACTION have the action of the event itself.
var family = [...]event{
	{"command", "command", "", false},
	{"command", "command", "new", true},
	{"command", "command", "reset", true},
	{"command", "command", "stop", true},
	{"session_end", "session", "auto-reset", true},
	{"before_compaction", "session", "compact:before", false},
	{"after_compaction", "session", "compact:after", false},
	{"session:patch", "session", "patch", false},
	{"agent:bootstrap", "agent", "bootstrap", false},
	{"gateway_start", "gateway", "startup", false},
	{"gateway_stop", "gateway", "shutdown", false},
	{"gateway:pre-restart", "gateway", "pre-restart", false},
	{"message_received", "message", "received", false},
	{"message:transcribed", "message", "transcribed", false},
	{"message:preprocessed", "message", "preprocessed", false},
	{"message_sent", "message", "sent", false},
}

// Names returns the names of the events that programs can use: those of the internal
// family, then the typed points.
func (p *Points) Names() []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, e := range family {
		add(e.kind)
		add(e.name())
	}
	for _, pt := range p.list {
		if !strings.Contains(pt.Name(), ":") {
			add(pt.Name())
		}
	}
	return names
}

func (e event) name() string {
	if e.action == "" {
		return e.kind
	}
	return e.kind + ":" + e.action
}

// events returns what a name stands for. A family name stands for all of its events.
func (p *Points) events(name string) []event {
	var out []event
	for _, e := range family {
		if e.name() == name || e.kind == name && !(e.only && e.kind == "command") {
			out = append(out, e)
		}
	}
	if len(out) > 0 {
		return out
	}
	if slices.ContainsFunc(p.list, func(pt Point) bool { return pt.Name() == name }) {
		return []event{{point: name}}
	}
	return nil
}

// Program adds a program as a hook of the event with the name. The error says why
// it cannot be one.
func (p *Points) Program(name string, h Program) error {
	events := p.events(name)
	if len(events) == 0 {
		return fmt.Errorf("unknown event %q", name)
	}
	for _, e := range events {
		i := slices.IndexFunc(p.list, func(pt Point) bool { return pt.Name() == e.point })
		d := p.list[i].details()
		switch {
		case d.content && !h.Conversation:
			return fmt.Errorf("event %s has the content of conversations: allow it with allowConversationAccess", name)
		case d.prompt && !h.Prompt:
			return fmt.Errorf("event %s changes the system prompt: allow it with allowPromptInjection", name)
		}
	}
	for _, e := range events {
		i := slices.IndexFunc(p.list, func(pt Point) bool { return pt.Name() == e.point })
		p.list[i].addProgram(h, e)
	}
	return nil
}

func (d *Deciding[E, R]) addProgram(h Program, ev event) {
	d.Add(Hook[E, R]{Name: h.Name, Priority: h.Priority, Timeout: h.Timeout, Func: programFunc[E, R](&d.info, h, ev)})
}

func (o *Observing[E, R]) addProgram(h Program, ev event) {
	o.Add(Hook[E, R]{Name: h.Name, Priority: h.Priority, Timeout: h.Timeout, Func: programFunc[E, R](&o.info, h, ev)})
}

// programFunc returns the function of a hook that passes events to a program.
func programFunc[E, R any](i *info, h Program, ev event) func(context.Context, E) (R, error) {
	return func(ctx context.Context, e E) (answer R, err error) {
		if !h.wants(any(e)) || !ev.wants(any(e)) {
			return answer, nil
		}
		in, err := ev.encode(any(e))
		if err != nil {
			return answer, err
		}
		out, err := h.Func(ctx, in)
		if err != nil {
			return answer, err
		}
		strange, err := decodeAnswer(out, ev.kind != "", &answer)
		if strange != "" {
			i.log.Warn("hook answered something that is ignored", "point", i.name, "hook", h.Name, "problem", strange)
		}
		return answer, err
	}
}

// wants reports whether the program is for the tool of an event.
func (h *Program) wants(e any) bool {
	t, ok := e.(interface{ tool() string })
	return !ok || h.Tools == nil || slices.Contains(h.Tools, t.tool()) || slices.Contains(h.Tools, "*")
}

func (c Call) tool() string              { return c.Tool }
func (e ToolResultPersist) tool() string { return e.Tool }
func (e ResolveExecEnv) tool() string    { return e.Tool }

// wants reports whether the event has the action.
func (v event) wants(e any) bool {
	switch e := e.(type) {
	case Command:
		return !v.only || e.Name == v.action
	case SessionEnd:
		return !v.only || e.Reason == EndIdle || e.Reason == EndDaily
	}
	return true
}

// MaxAnswer is the maximum size of an answer in bytes.
const MaxAnswer = 1 << 20

// encode returns an event for a program.
func (v event) encode(e any) ([]byte, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode the event: %w", err)
	}
	if v.kind == "" {
		head := `{"hook":"` + v.point + `"`
		if len(body) > 2 {
			head += ","
		}
		return append([]byte(head), body[1:]...), nil
	}
	at := time.Now()
	action := v.action
	var key any
	if c, ok := e.(Command); ok {
		action = c.Name
		if !c.Time.IsZero() {
			at = c.Time
		}
	}
	if c, ok := e.(interface{ at() Context }); ok {
		key = c.at().Session
	}
	return json.Marshal(map[string]any{
		"type":       v.kind,
		"action":     action,
		"sessionKey": key,
		"timestamp":  at.UTC().Format(time.RFC3339Nano),
		"messages":   []string{},
		"context":    json.RawMessage(body),
	})
}

func (c Context) at() Context { return c }

// decodeAnswer decodes the answer of a program. An empty answer is no decision.
// strange describes members that have no meaning.
func decodeAnswer(out []byte, internal bool, into any) (strange string, err error) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 || string(out) == "null" {
		return "", nil
	}
	if len(out) > MaxAnswer {
		return "", fmt.Errorf("the answer has more than %d bytes", MaxAnswer)
	}
	if out[0] != '{' {
		return "", errors.New("the answer is not a JSON object")
	}
	if err := json.Unmarshal(out, into); err != nil {
		return "", fmt.Errorf("decode the answer: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(out, &members); err != nil {
		return "", fmt.Errorf("decode the answer: %w", err)
	}
	if internal { // the event itself, changed, is an answer too
		if c := members["context"]; len(c) > 0 {
			if err := json.Unmarshal(c, into); err != nil {
				return "", fmt.Errorf("decode the context of the answer: %w", err)
			}
		}
		return "", nil
	}
	known := fields(into)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) }) {
			return fmt.Sprintf("unknown member %q", name), nil
		}
	}
	return "", nil
}
