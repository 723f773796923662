package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/llm"
)

// turn is a conversation with a message to answer.
type turn struct {
	rows    []row
	tools   map[string]bool
	count   int        // messages, for the ids of calls
	text    string     // what the person said last
	news    []string   // what Chela itself told
	rounds  [][]result // of tool calls since then
	told    bool       // the assistant said before that it is no language model
	path    string     // the file that "it" stands for
	chinese bool
}

// Marks of messages that no person wrote.
const (
	newsMark   = "[System] "
	eventsMark = "[System events"
	limitMark  = "The limit of tool calls for this turn"
)

// newTurn reads a conversation.
func newTurn(rows []row, r *llm.Request) *turn {
	t := &turn{rows: rows, count: len(r.Messages), tools: map[string]bool{}}
	for _, spec := range r.Tools {
		t.tools[spec.Name] = true
	}
	open, path := true, "" // not open: the next message begins another exchange
	for _, m := range r.Messages {
		text := m.PlainText()
		switch news, isNews := strings.CutPrefix(text, newsMark); m.Role {
		case llm.RoleUser:
			if strings.HasPrefix(text, limitMark) {
				continue
			}
			if !open {
				t.text, t.news, t.rounds, t.path, open = "", nil, nil, path, true
			}
			if isNews {
				t.news = append(t.news, news)
			} else if !strings.HasPrefix(text, eventsMark) {
				t.text = strings.TrimPrefix(t.text+"\n"+text, "\n")
			}
		case llm.RoleAssistant:
			open = false
			t.told = t.told || text != "" && m.Provider == Name
			if m.Provider != Name && m.Provider != "" {
				continue // another model follows no plan of ours
			}
			var round []result
			for _, c := range m.Calls() {
				round = append(round, result{c, "there is no result", true})
				path = cmp.Or(topic(c), path)
			}
			if round != nil {
				t.rounds = append(t.rounds, round)
			}
		case llm.RoleTool:
			t.settle(m)
		}
	}
	t.chinese = isChinese(t.text)
	return t
}

// topic returns the file that a call makes "it" stand for.
func topic(c llm.ToolCall) string {
	p := result{call: c}.arg("path")
	if p == memoryFile || !slices.Contains([]string{"read", "write", "edit"}, c.Name) {
		return ""
	}
	return p
}

// result is what a tool call gave.
type result struct {
	call llm.ToolCall
	text string
	bad  bool // it failed, or there is none
}

// settle gives a call its result: of an error in the form that models are
// given, what it says to a person and not what it tells models to do.
func (t *turn) settle(m *llm.Message) {
	text := strings.TrimRight(m.PlainText(), "\n")
	var e struct{ Error string }
	if m.IsError && json.Unmarshal([]byte(text), &e) == nil && e.Error != "" {
		text = e.Error
	}
	if strings.HasPrefix(text, "not run: ") {
		text, _, _ = strings.Cut(text, ". ")
	}
	for _, round := range t.rounds {
		for i := range round {
			if round[i].call.ID == m.CallID {
				round[i].text, round[i].bad = text, m.IsError
			}
		}
	}
}

// arg returns a text argument of a call.
func (r result) arg(name string) string {
	var m map[string]any
	_ = json.Unmarshal(r.call.Args, &m) // what is no object has no arguments
	s, _ := m[name].(string)
	return s
}

// waiting begins the result of a call that waits for a person.
const waiting = "waiting for approval"

func (r result) waits() bool  { return strings.HasPrefix(r.text, waiting) }
func (r result) absent() bool { return r.bad && strings.Contains(r.text, "does not exist") }

// trouble is how a command ended that did not end well.
func (r result) trouble() string {
	if r.call.Name != "exec" {
		return ""
	}
	return strings.Trim(troubled().FindString(r.text), "[]")
}

// step is one thing to do, with what was done of it.
type step struct {
	row    *row
	answer string                         // what to say without any call
	asks   bool                           // answer asks for what is missing
	calls  []llm.ToolCall                 // to be made now
	then   func(result) []llm.ToolCall    // the calls that the first one's result leads to
	absent bool                           // a file that is not there is no failure
	render func(t *turn, r result) string // what to say of a result; nil: what the tool gave
	lacks  string                         // a tool that is not offered
	done   []result
}

// does returns a step of one call, with pairs of arguments. Those with a ? may
// be empty; when another is, the step has no call: something is missing.
func does(tool string, pairs ...any) *step {
	args := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, optional := strings.CutPrefix(pairs[i].(string), "?")
		if pairs[i+1] != "" {
			args[name] = pairs[i+1]
		} else if !optional {
			return &step{}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(args) // texts and flags: it does not fail
	return &step{calls: []llm.ToolCall{{Name: tool, Args: bytes.TrimSpace(b.Bytes())}}}
}

// failed reports whether a step went wrong, so that what follows is left.
func (s *step) failed() bool {
	return s.lacks != "" || s.asks || slices.ContainsFunc(s.done, func(r result) bool {
		return r.waits() || r.bad && !(s.absent && r.absent()) || r.trouble() != ""
	})
}

// looks reports whether a step changes nothing.
func (s *step) looks() bool {
	return len(s.calls) > 0 && s.then == nil && slices.Contains([]string{"read", "ls", "grep", "find", "session_status"}, s.calls[0].Name)
}

// run returns the reply, or the next calls: the rounds that were made are
// played back against the plan.
func (t *turn) run() (string, []llm.ToolCall) {
	if strings.TrimSpace(t.text) == "" && len(t.news) > 0 {
		return strings.Join(t.news, "\n\n"), nil
	}
	var said []string
	plan := t.plan(t.text)
	for i, group := range plan {
		for calls := t.open(group); calls != nil; calls = t.open(group) {
			if len(t.rounds) == 0 {
				return "", calls
			}
			round := t.rounds[0]
			t.rounds = t.rounds[1:]
			for _, s := range group {
				n := min(len(s.calls), len(round))
				s.done, s.calls, round = append(s.done, round[:n]...), nil, round[n:]
				if s.then != nil && n > 0 && !s.failed() {
					s.calls = s.then(s.done[0])
				}
				s.then = nil
			}
		}
		for _, s := range group {
			if text := t.reply(s); text != "" {
				said = append(said, text)
			}
		}
		if i+1 < len(plan) && slices.ContainsFunc(group, (*step).failed) {
			said = append(said, t.say(restText))
			break
		}
	}
	return strings.Join(said, "\n\n"), nil
}

// open returns the next calls of a group, nil when there are none, or when one
// needs a tool that is not offered; what was called already needs none now.
func (t *turn) open(group []*step) []llm.ToolCall {
	var out []llm.ToolCall
	for _, s := range group {
		for _, c := range s.calls {
			if c.Name == "web_fetch" && !t.tools[c.Name] && t.tools["exec"] {
				c = does("exec", "command", "curl -sSL --max-time 20 -- '"+strings.ReplaceAll(result{call: c}.arg("url"), "'", `'\''`)+"'").calls[0]
			}
			if !t.tools[c.Name] && len(t.rounds) == 0 {
				s.lacks = c.Name
				return nil
			}
			c.ID = fmt.Sprintf("offline_%d_%d", t.count, len(out)+1)
			out = append(out, c)
		}
	}
	return out
}

// Requests that are longer, in bytes, or have more parts are documents.
const maxRequest, maxParts = 8 << 10, 20

// plan makes the steps of a request, in groups that follow one another: steps
// that only look go side by side.
func (t *turn) plan(text string) [][]*step {
	if len(text) > maxRequest {
		text = ""
	}
	c, path := normal(text), t.path
	whole := t.parse(c)
	if whole != nil && (whole.row.talk || whole.row.free) {
		return [][]*step{{whole}}
	}
	t.path = path
	var groups [][]*step
	for _, part := range c.split(strongSplit()) {
		steps := t.steps(part)
		if steps == nil && groups == nil {
			break
		}
		if steps == nil {
			steps = []*step{{answer: t.say(partText, clip(part.expand(part.text), 200))}}
		}
		for i, s := range steps {
			if n := len(groups) - 1; i > 0 && s.looks() && groups[n][0].looks() {
				groups[n] = append(groups[n], s)
				continue
			}
			groups = append(groups, []*step{s})
		}
	}
	if groups == nil {
		return [][]*step{{cmp.Or(whole, &step{answer: t.few(unknownText)})}}
	}
	return groups
}

// steps plans a part of a request: as several when each piece of it is a
// request, and else as one.
func (t *turn) steps(c clause) []*step {
	path := t.path
	s := t.parse(c)
	after := t.path
	t.path = path
	var steps []*step
	for _, piece := range c.split(weakSplit()) {
		next := t.parse(piece)
		if next == nil || next.asks || next.row.talk {
			steps = nil
			break
		}
		steps = append(steps, next)
	}
	if s != nil && (len(steps) < 2 || s.row.free || s.row.open && len(c.all(quoteMark)) == 0) {
		steps, t.path = []*step{s}, after
	}
	return steps
}
