package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// turn is a conversation whose last message is to be answered.
type turn struct {
	rows      []row
	tools     map[string]bool
	count     int        // number of messages, for the ids of calls
	text      string     // the user's last message
	notices   []string   // messages from Chela itself
	rounds    [][]result // tool calls since then
	disclosed bool       // an earlier reply said that this is not a language model
	path      string     // the file that "it" refers to
	chinese   bool
}

// newTurn reads a conversation.
func newTurn(rows []row, r *llm.Request) *turn {
	t := &turn{rows: rows, count: len(r.Messages), tools: map[string]bool{}}
	for _, spec := range r.Tools {
		t.tools[spec.Name] = true
	}
	for _, b := range r.System { // only the main assistant introduces itself
		t.disclosed = t.disclosed || strings.Contains(b.Text, subagent.Heading)
	}
	open, path, earlier := true, "", "" // not open: the next message starts another exchange
	working := false                    // calls were made that are not answered with a text yet
	for _, m := range r.Messages {
		text := m.PlainText()
		switch notice, isNotice := strings.CutPrefix(text, llm.EventPrefix); m.Role {
		case llm.RoleUser:
			if text == llm.LimitText {
				continue
			}
			if !open && !(isNotice && working) {
				earlier = cmp.Or(t.text, earlier)
				t.text, t.notices, t.rounds, t.path, open = "", nil, nil, path, true
			}
			if isNotice {
				t.notices = append(t.notices, notice)
			} else if !strings.HasPrefix(text, llm.EventsHeading) {
				t.text = strings.TrimPrefix(t.text+"\n"+text, "\n")
			}
		case llm.RoleAssistant:
			open, working = false, len(m.Calls()) > 0
			t.disclosed = t.disclosed || text != "" && m.Provider == Name
			if m.Provider != Name && m.Provider != "" {
				continue // another model's calls do not follow our plan
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
			t.setResult(m)
		}
	}
	t.chinese = isChinese(t.text) || t.text == "" && isChinese(earlier)
	return t
}

// report returns the reply to messages from Chela itself.
func (t *turn) report() string {
	var out []string
	for _, notice := range t.notices {
		a, ok := subagent.ParseAnnouncement(notice)
		switch {
		case !ok:
			out = append(out, notice)
		case a.Status == "ok":
			out = append(out, t.localize(reportText, a.Label, a.Result))
		default:
			out = append(out, t.localize(reportFailedText, a.Label, a.Status, a.Result))
		}
	}
	return strings.Join(out, "\n\n")
}

// topic returns the file that "it" refers to after a call.
func topic(c llm.ToolCall) string {
	p := result{call: c}.arg("path")
	if p == memoryFile || !slices.Contains([]string{"read", "write", "edit"}, c.Name) {
		return ""
	}
	return p
}

// result is the result of a tool call.
type result struct {
	call   llm.ToolCall
	text   string
	failed bool // the call failed or has no result
}

// setResult stores the result of a call. It reduces an error to the part that
// is meant for people.
func (t *turn) setResult(m *llm.Message) {
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
				round[i].text, round[i].failed = text, m.IsError
			}
		}
	}
}

// arg returns a text argument of a call.
func (r result) arg(name string) string {
	var m map[string]any
	_ = json.Unmarshal(r.call.Args, &m) // an invalid object has no arguments
	s, _ := m[name].(string)
	return s
}

func (r result) needsApproval() bool { return strings.HasPrefix(r.text, llm.WaitingPrefix) }
func (r result) isMissing() bool     { return r.failed && strings.Contains(r.text, "does not exist") }

// commandError returns how a command failed, or "".
func (r result) commandError() string {
	if r.call.Name != "exec" {
		return ""
	}
	return strings.Trim(exitFailure().FindString(r.text), "[]")
}

// step is one thing to do, with its results so far.
type step struct {
	row          *row
	answer       string                         // reply that needs no call
	asks         bool                           // answer asks for missing information
	calls        []llm.ToolCall                 // next calls
	then         func(result) []llm.ToolCall    // returns the calls that follow the first result
	allowMissing bool                           // a missing file is not a failure
	render       func(t *turn, r result) string // formats a result; nil: show
	missingTool  string                         // required tool that is not available
	done         []result
}

// callStep returns a step with one call. Arguments are given as pairs; a name
// that begins with ? is optional. If another argument is empty, the step has no
// call, because information is missing.
func callStep(tool string, pairs ...any) *step {
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
	_ = e.Encode(args) // strings and booleans: it cannot fail
	return &step{calls: []llm.ToolCall{{Name: tool, Args: bytes.TrimSpace(b.Bytes())}}}
}

// failed reports whether a step failed, which stops the plan.
func (s *step) failed() bool {
	return s.missingTool != "" || s.asks || slices.ContainsFunc(s.done, func(r result) bool {
		return r.needsApproval() || r.failed && !(s.allowMissing && r.isMissing()) || r.commandError() != ""
	})
}

// readOnly reports whether a step changes nothing.
func (s *step) readOnly() bool {
	return len(s.calls) > 0 && s.then == nil && slices.Contains([]string{"read", "ls", "grep", "find", "session_status"}, s.calls[0].Name)
}

// run returns the reply or the next calls. It replays the rounds made so far
// against the plan.
func (t *turn) run() (string, []llm.ToolCall) {
	if strings.TrimSpace(t.text) == "" && len(t.notices) > 0 {
		return t.report(), nil
	}
	var said []string
	plan := t.plan(t.text)
	for i, group := range plan {
		for calls := t.nextCalls(group); calls != nil; calls = t.nextCalls(group) {
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
			said = append(said, t.localize(restText))
			break
		}
	}
	if news := t.report(); news != "" {
		said = append(said, news)
	}
	return strings.Join(said, "\n\n"), nil
}

// nextCalls returns the next calls of a group. It returns nil if there are
// none, or if one needs a tool that is not available; rounds that were made
// need none.
func (t *turn) nextCalls(group []*step) []llm.ToolCall {
	var out []llm.ToolCall
	for _, s := range group {
		for _, c := range s.calls {
			if c.Name == "web_fetch" && !t.tools[c.Name] && t.tools["exec"] {
				c = callStep("exec", "command", "curl -sSL --max-time 20 -- '"+strings.ReplaceAll(result{call: c}.arg("url"), "'", `'\''`)+"'").calls[0]
			}
			if !t.tools[c.Name] && len(t.rounds) == 0 {
				s.missingTool = c.Name
				return nil
			}
			c.ID = fmt.Sprintf("offline_%d_%d", t.count, len(out)+1)
			out = append(out, c)
		}
	}
	return out
}

// Longer requests, in bytes, and requests with more parts are treated as
// documents.
const maxRequest, maxParts = 8 << 10, 20

// plan returns the steps of a request, in consecutive groups. The steps of a
// group, which are read-only, run in parallel.
func (t *turn) plan(text string) [][]*step {
	if len(text) > maxRequest {
		text = ""
	}
	c, path := markEntities(text), t.path
	whole := t.parse(c)
	if whole != nil && (whole.row.wholeMessage || whole.row.freeText) {
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
			steps = []*step{{answer: t.localize(partText, clip(part.expand(part.text), 200))}}
		}
		for i, s := range steps {
			if n := len(groups) - 1; i > 0 && s.readOnly() && groups[n][0].readOnly() {
				groups[n] = append(groups[n], s)
				continue
			}
			groups = append(groups, []*step{s})
		}
	}
	if groups == nil {
		return [][]*step{{cmp.Or(whole, &step{answer: t.suggestions(unknownText)})}}
	}
	return groups
}

// steps plans a part of a request: as several steps if each piece of it is a
// request, and otherwise as one.
func (t *turn) steps(c clause) []*step {
	path := t.path
	s := t.parse(c)
	after := t.path
	t.path = path
	var steps []*step
	for _, piece := range c.split(weakSplit()) {
		next := t.parse(piece)
		if next == nil || next.asks || next.row.wholeMessage {
			steps = nil
			break
		}
		steps = append(steps, next)
	}
	if s != nil && (len(steps) < 2 || s.row.freeText || s.row.freeTextUnquoted && len(c.all(quoteMark)) == 0) {
		steps, t.path = []*step{s}, after
	}
	return steps
}
