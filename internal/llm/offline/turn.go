package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/llm"
)

// result is what a tool call gave.
type result struct {
	call llm.ToolCall
	text string
	bad  bool // it failed, or there is none
}

// exchange is a person's message and what followed until the next one.
type exchange struct {
	text   string
	news   []string   // what Chela itself told
	rounds [][]result // of tool calls
	reply  string     // the assistant's last text
}

// turn is a conversation with a message to answer.
type turn struct {
	exchange
	past  []exchange // before, oldest first
	told  bool       // the assistant said before that it is no language model
	tools map[string]bool
	zone  *time.Location
	now   time.Time
	count int // messages, for the ids of calls
	lang  lang
}

// Marks of messages that no person wrote.
const (
	newsMark   = "[System] "
	eventsMark = "[System events"
	limitMark  = "The limit of tool calls for this turn"
)

// newTurn reads a conversation.
func newTurn(messages []*llm.Message) *turn {
	t := &turn{count: len(messages)}
	var at exchange
	closed := false // at has a final text: the next user message begins an exchange
	results := map[string]*llm.Message{}
	for _, m := range messages {
		if m.Role == llm.RoleTool {
			results[m.CallID] = m
		}
	}
	for _, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			text := m.PlainText()
			if strings.HasPrefix(text, limitMark) {
				continue
			}
			if closed || len(at.rounds) > 0 {
				t.past, at, closed = append(t.past, at), exchange{}, false
			}
			at.hear(text)
		case llm.RoleAssistant:
			calls := m.Calls()
			if len(calls) > 0 {
				at.rounds = append(at.rounds, answers(calls, results))
			}
			if text := m.PlainText(); text != "" {
				at.reply = text
				t.told = t.told || m.Provider == Name
			}
			closed = len(calls) == 0
		}
	}
	t.exchange = at
	t.lang = langOf(at.text)
	return t
}

// hear adds a message to what was said.
func (e *exchange) hear(text string) {
	switch {
	case strings.HasPrefix(text, newsMark):
		e.news = append(e.news, strings.TrimPrefix(text, newsMark))
	case strings.HasPrefix(text, eventsMark):
	case e.text == "":
		e.text = text
	default:
		e.text += "\n" + text
	}
}

// answers pairs calls with their results.
func answers(calls []llm.ToolCall, results map[string]*llm.Message) []result {
	out := make([]result, len(calls))
	for i, c := range calls {
		out[i] = result{call: c, bad: true, text: "there is no result"}
		if m := results[c.ID]; m != nil {
			out[i].text, out[i].bad = strings.TrimRight(m.PlainText(), "\n"), m.IsError
			if m.IsError {
				out[i].text = reason(out[i].text)
			}
		}
	}
	return out
}

// reason is why a call went wrong, for a person: of an error in the form that
// models are given, what it says.
func reason(text string) string {
	var e struct{ Error string }
	if json.Unmarshal([]byte(text), &e) == nil && e.Error != "" {
		return e.Error
	}
	return text
}

// arg returns a text argument of a call.
func (r result) arg(name string) string {
	var m map[string]any
	if json.Unmarshal(r.call.Args, &m) != nil {
		return ""
	}
	s, _ := m[name].(string)
	return s
}

// waits reports whether the call waits for a person.
func (r result) waits() bool { return strings.HasPrefix(r.text, "waiting for approval") }

// run returns the reply or the next calls.
func (t *turn) run(g *grammar) (string, []llm.ToolCall) {
	if strings.TrimSpace(t.text) == "" {
		if len(t.news) > 0 {
			return strings.Join(t.news, "\n\n"), nil
		}
		return t.say(unknownText), nil
	}
	p := plan(g, t, t.text)
	round := 0
	for i, group := range p {
		for {
			calls, owners := t.next(group, round < len(t.rounds))
			if len(calls) == 0 {
				break
			}
			if round == len(t.rounds) {
				return "", calls
			}
			for j, res := range t.rounds[round] {
				if j < len(owners) {
					s := owners[j]
					s.done = append(s.done, res)
					s.fresh = append(s.fresh, res)
				}
			}
			round++
		}
		if i+1 < len(p) && failed(group) {
			return t.reply(p[:i+1]) + "\n\n" + t.say(restText), nil
		}
	}
	if len(p) == 1 && len(p[0]) == 1 && p[0][0].intent == "help" {
		return t.help(g), nil
	}
	return t.reply(p), nil
}

// failed reports whether a step went wrong, so that what builds on it is left.
func failed(group []*step) bool {
	for _, s := range group {
		if s.lacks != "" || s.answer == "" && len(s.done) == 0 {
			return true
		}
		for _, r := range s.done {
			if !s.optional(r) && (r.bad || r.waits()) {
				return true
			}
		}
	}
	return false
}

// next returns the next calls of a group, and which step each belongs to. Calls
// that were made already need no tool to be offered now.
func (t *turn) next(group []*step, made bool) ([]llm.ToolCall, []*step) {
	var calls []llm.ToolCall
	var owners []*step
	for _, s := range group {
		for _, c := range s.next(t, made) {
			calls = append(calls, llm.ToolCall{ID: fmt.Sprintf("offline_%d_%d", t.count, len(calls)+1), Name: c.tool, Args: encode(c.args)})
			owners = append(owners, s)
		}
	}
	return calls, owners
}

// encode returns arguments as JSON.
func encode(args map[string]any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(args) != nil { // texts and numbers: it does not fail
		return json.RawMessage("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}

// reply says what the steps gave.
func (t *turn) reply(p [][]*step) string {
	var parts []string
	for _, group := range p {
		for _, s := range group {
			if text := strings.TrimSpace(s.reply(t)); text != "" {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, "\n\n")
}

// lastPath returns the file that was spoken of last.
func (t *turn) lastPath() string {
	for i := len(t.past) - 1; i >= 0; i-- {
		rounds := t.past[i].rounds
		for j := len(rounds) - 1; j >= 0; j-- {
			for k := len(rounds[j]) - 1; k >= 0; k-- {
				if p := rounds[j][k].arg("path"); p != "" && rounds[j][k].call.Name != "grep" && rounds[j][k].call.Name != "find" {
					return p
				}
			}
		}
	}
	return ""
}

// last returns the newest earlier result that ok takes.
func (t *turn) last(ok func(result) bool) (result, bool) {
	for i := len(t.past) - 1; i >= 0; i-- {
		rounds := t.past[i].rounds
		for j := len(rounds) - 1; j >= 0; j-- {
			for k := len(rounds[j]) - 1; k >= 0; k-- {
				if r := rounds[j][k]; !r.bad && ok(r) {
					return r, true
				}
			}
		}
	}
	return result{}, false
}
