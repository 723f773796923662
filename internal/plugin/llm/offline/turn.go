package offline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/prompt"
	corerun "github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// turn is a conversation whose last message is to be answered.
type turn struct {
	rows      []row
	tools     map[string]bool
	count     int        // number of messages, for the ids of calls
	text      string     // the user's last message
	notices   []notice   // messages from Chela itself
	events    []notice   // texts that only a heartbeat reports
	rounds    [][]result // tool calls since then
	disclosed bool       // an earlier reply said that this is not a language model
	path      string     // the file that "it" refers to
	job       string     // the planned job that "it" refers to: its text or id
	nested    bool       // a part of a request is read
	due       bool       // the message is that of a job
	heartbeat bool       // the message is that of a heartbeat
	asked     remarks    // what was said before
	chinese   bool
	unable    bool      // the reply says that something could not be done
	now       time.Time // in the person's time zone
	zone      string    // name of the time zone; empty: it has none
	dir       string    // the workspace; empty: not known
}

// newTurn reads a conversation at a time.
func newTurn(rows []row, r *llm.Request, now time.Time) *turn {
	t := &turn{rows: rows, count: len(r.Messages), tools: map[string]bool{}}
	for _, spec := range r.Tools {
		t.tools[spec.Name] = true
	}
	for _, b := range r.System { // only the main assistant introduces itself
		t.disclosed = t.disclosed || strings.Contains(b.Text, subagent.Heading)
	}
	open, path, earlier := true, "", "" // not open: the next message starts another exchange
	var said remarks
	working := false // calls were made that are not answered with a text yet
	for _, m := range r.Messages {
		text := m.PlainText()
		switch event, isNotice := strings.CutPrefix(text, llm.EventPrefix); m.Role {
		case llm.RoleUser:
			if text == llm.LimitText {
				continue
			}
			if !open && !(isNotice && working) {
				earlier, t.heartbeat = cmp.Or(t.text, earlier), false
				t.text, t.notices, t.events, t.rounds, t.path, t.asked, open = "", nil, nil, nil, path, said, true
			}
			t.hear(text, event, isNotice)
		case llm.RoleAssistant:
			open, working = false, len(m.Calls()) > 0
			said.hearOwn(m)
			t.disclosed = t.disclosed || text != "" && m.Provider == Name
			if m.Provider != Name && m.Provider != "" {
				continue // another model's calls do not follow our plan
			}
			var round []result
			for _, c := range m.Calls() {
				round = append(round, result{c, "there is no result", true})
				path = cmp.Or(topic(c), path)
				t.job = cmp.Or(result{call: c}.job().Payload.Content(), t.job)
			}
			if round != nil {
				t.rounds = append(t.rounds, round)
			}
		case llm.RoleTool:
			t.setResult(m)
		}
	}
	t.chinese = isChinese(t.text) || t.text == "" && isChinese(earlier)
	t.setTime(r.System, now)
	t.dir = prompt.Dir(r.System)
	unasked := t.due || t.heartbeat ||
		t.text == "" && slices.ContainsFunc(t.notices, func(n notice) bool { return n.due != nil })
	t.disclosed = t.disclosed || unasked // a reminder is nothing but that
	return t
}

// notice is a message from Chela itself.
type notice struct {
	text string
	due  *job.Due // a reminder; nil: another message
}

// hear adds a user message to the turn. event is its text without the prefix of events.
func (t *turn) hear(text, event string, isNotice bool) {
	d, isDue := job.ParseDue(event)
	if isDue {
		t.job = string(d.Job)
	}
	switch {
	case isDue && d.Turn:
		text = d.Text
		t.due = t.text == ""
		t.text = strings.TrimPrefix(t.text+"\n"+text, "\n")
	case isDue:
		t.notices = append(t.notices, notice{due: &d})
	case isNotice:
		t.notices = append(t.notices, notice{text: event})
	case strings.HasPrefix(text, llm.EventsHeading):
		due := job.SplitDue(text)
		for _, d := range due {
			t.job = string(d.Job)
			t.notices = append(t.notices, notice{due: &d})
		}
		if len(due) == 0 {
			t.events = append(t.events, notice{text: strings.TrimSpace(strings.TrimPrefix(text, llm.EventsHeading))})
		}
	case strings.HasPrefix(text, llm.EarlierHeading): // it answers each message for itself
	case strings.Contains(text, "answer only "+corerun.HeartbeatOK):
		t.heartbeat = true
	default:
		if task, ok := untrusted.TaskIn(text); ok {
			text = task
		}
		t.due = false
		t.text = strings.TrimPrefix(t.text+"\n"+text, "\n")
	}
}

// setTime sets the time and the zone of the turn. The first call of a turn has the time
// in its id, so that the turn is planned as at first if it goes on later.
func (t *turn) setTime(system []llm.Block, now time.Time) {
	if len(t.rounds) > 0 {
		var count, n int
		var ms int64
		if k, err := fmt.Sscanf(t.rounds[0][0].call.ID, idForm, &count, &n, &ms); err == nil && k == 3 {
			now = time.UnixMilli(ms)
		}
	}
	loc, name, ok := prompt.Zone(system, now)
	if !ok {
		loc = time.Local
	}
	t.now, t.zone = now.Truncate(time.Millisecond).In(loc), name
}

// idForm is the form of the ids of calls: the number of messages before, that of the call
// in its round, and the time of the turn in milliseconds.
const idForm = "offline_%d_%d_%d"

// report returns the reply to messages from Chela itself.
func (t *turn) report() string {
	var out []string
	for _, n := range t.notices {
		a, ok := subagent.ParseAnnouncement(n.text)
		title, note, answer, isResult := job.ParseResult(n.text)
		switch {
		case isResult:
			out = append(out, strings.TrimSpace(t.localize(jobResultText, title, answer)+"\n\n"+note))
		case n.due != nil:
			out = append(out, dueReply(*n.due))
		case !ok:
			out = append(out, withoutNotes(untrusted.Plain(n.text)))
		case a.Status == "ok":
			out = append(out, t.localize(reportText, a.Label, a.Result))
		default:
			out = append(out, t.localize(reportFailedText, a.Label, t.tell(a.Status), a.Result))
		}
	}
	return strings.Join(out, "\n\n")
}

// dueReply returns a reminder in the language of its text.
func dueReply(d job.Due) string {
	t := turn{chinese: isChinese(d.Text)}
	text := t.localize(dueText, d.Text)
	if d.Late != "" {
		text += t.localize(lateText, d.Late)
	}
	return text
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

// number returns a numeric argument of a call; 0: it has none.
func (r result) number(name string) float64 {
	var m map[string]any
	_ = json.Unmarshal(r.call.Args, &m) // an invalid object has no arguments
	n, _ := m[name].(float64)
	return n
}

func (r result) needsApproval() bool { return strings.HasPrefix(r.text, llm.WaitingPrefix) }
func (r result) isMissing() bool     { return r.failed && strings.Contains(r.text, "does not exist") }

// commandError returns how a command failed, or "".
func (r result) commandError() string {
	if r.call.Name != "exec" {
		return ""
	}
	what, _, _ := strings.Cut(strings.Trim(exitFailure().FindString(r.text), "[]"), ";")
	return what
}

// step is one thing to do, with its results so far.
type step struct {
	row          *row
	answer       string                         // reply that needs no call
	asks         bool                           // answer asks for missing information
	unable       bool                           // answer says that it cannot be done
	left         string                         // words of the request that were not understood
	calls        []llm.ToolCall                 // next calls
	then         func(result) []llm.ToolCall    // returns the calls that follow the first result
	allowMissing bool                           // a missing file is not a failure
	hidden       bool                           // only the last result is shown
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
	return &step{calls: []llm.ToolCall{{Name: tool, Args: encode(args)}}}
}

// encode returns a value as JSON, as readable as possible.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings, numbers and booleans: it cannot fail
	return bytes.TrimSpace(b.Bytes())
}

// failed reports whether a step failed, which stops the plan.
func (s *step) failed() bool {
	return s.missingTool != "" || s.asks || slices.ContainsFunc(s.done, func(r result) bool {
		return r.needsApproval() || r.failed && !(s.allowMissing && r.isMissing()) || r.commandError() != ""
	})
}

// partly reports whether a part of the request for a step was not understood.
func (s *step) partly() bool { return s.left != "" }

// undone reports whether a step did not do what was asked.
func (s *step) undone() bool { return s.unable || s.failed() }

// readOnly reports whether a step changes nothing.
func (s *step) readOnly() bool {
	return len(s.calls) > 0 && s.then == nil &&
		slices.Contains([]string{"read", "ls", "grep", "find", "session_status"}, s.calls[0].Name)
}

// run returns the reply or the next calls. It replays the rounds made so far
// against the plan.
func (t *turn) run() (string, []llm.ToolCall) {
	switch {
	case strings.TrimSpace(t.text) != "":
	case t.heartbeat && len(t.events)+len(t.notices) > 0:
		t.notices = append(t.notices, t.events...)
		return t.report(), nil
	case len(t.notices) > 0:
		return t.report(), nil
	case t.heartbeat:
		return corerun.HeartbeatOK, nil
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
		t.unable = t.unable || slices.ContainsFunc(group, (*step).undone)
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
				c = callStep("exec", "command", "curl -sSL --max-time 20 -- '"+
					strings.ReplaceAll(result{call: c}.arg("url"), "'", `'\''`)+"'").calls[0]
			}
			if !t.tools[c.Name] && len(t.rounds) == 0 {
				s.missingTool = c.Name
				return nil
			}
			c.ID = fmt.Sprintf(idForm, t.count, len(out)+1, t.now.UnixMilli())
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
	if s := t.ifMissing(c); s != nil {
		return [][]*step{{s}}
	}
	whole := t.parse(c)
	if whole != nil && (whole.row.wholeMessage || whole.row.freeText) {
		if lines := t.lines(c); lines != nil {
			return lines
		}
		return [][]*step{{whole}}
	}
	if no := denialStart().FindString(c.stripPoliteness().text); no != "" && (whole == nil || whole.asks) {
		return [][]*step{{t.refuse(&step{left: no})}}
	}
	t.path = path
	var groups [][]*step
	for _, part := range c.split(strongSplit()) {
		steps := t.steps(part)
		if i := slices.IndexFunc(steps, (*step).partly); i >= 0 {
			return [][]*step{{steps[i]}}
		}
		if steps == nil && groups == nil {
			break
		}
		if steps == nil && limits().MatchString(part.text) {
			return [][]*step{{t.refuse(&step{left: part.named(part.text)})}}
		}
		if steps == nil {
			steps = []*step{{answer: t.localize(partText, clip(part.expand(part.text), 200)), unable: true}}
		}
		for i, s := range steps {
			if n := len(groups) - 1; i > 0 && s.readOnly() && groups[n][0].readOnly() {
				groups[n] = append(groups[n], s)
				continue
			}
			groups = append(groups, []*step{s})
		}
	}
	if no := t.refused(groups); no != nil {
		return no
	}
	if groups == nil && whole == nil && t.due {
		return [][]*step{{{answer: t.localize(undoneText, text), unable: true}}}
	}
	if groups == nil {
		return [][]*step{{cmp.Or(whole, &step{answer: t.suggestions(unknownText), unable: true})}}
	}
	return groups
}

// refused returns the plan for a request of several parts of which one cannot be done, so
// that none is; nil: all can be.
func (t *turn) refused(groups [][]*step) [][]*step {
	steps := slices.Concat(groups...)
	if len(steps) < 2 {
		return nil
	}
	for _, s := range steps {
		if s.calls == nil && (s.unable || s.asks) {
			return [][]*step{{{row: s.row, answer: s.answer + "\n\n" + t.localize(wholeText), unable: true}}}
		}
	}
	return nil
}

// lines plans several messages that were sent together, one a line. It returns nil if a
// line is not understood.
func (t *turn) lines(c clause) [][]*step {
	var groups [][]*step
	path := t.path
	for line := range strings.Lines(c.text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		s := t.parse(c.with(line))
		if s == nil || s.asks || len(groups) == maxParts {
			t.path = path
			return nil
		}
		groups = append(groups, []*step{s})
	}
	if len(groups) < 2 {
		return nil
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
	steps, partly := t.pieces(c)
	switch {
	case s == nil && steps == nil && partly != nil:
		return []*step{partly}
	case s == nil || len(steps) > 1 && s.partly():
		return steps
	case len(steps) < 2 || s.row.freeText || s.row.freeTextUnquoted && len(c.all(quoteMark)) == 0:
		t.path = after
		return []*step{s}
	}
	return steps
}

// pieces plans each piece of a part of a request. It returns nil if a piece is not
// understood, and the step of the first one that is understood in part.
func (t *turn) pieces(c clause) (steps []*step, partly *step) {
	head := ""
	for i, piece := range c.split(weakSplit()) {
		s := t.parse(piece)
		if i > 0 && !steps[0].readOnly() && anyMark().FindString(piece.text) == piece.text {
			s = nil // not a request to show it
		}
		if i == 0 && s != nil && s.row.repeats {
			head, _, _ = strings.Cut(piece.text, anyMark().FindString(piece.text))
		}
		if head != "" && (s == nil || s.partly() || s.asks) { // the verb is said once
			s = t.parse(c.with(head + piece.text))
		}
		switch {
		case s != nil && s.partly():
			return nil, s
		case s == nil, s.asks, s.row.wholeMessage:
			return nil, nil
		}
		steps = append(steps, s)
	}
	return steps, nil
}
