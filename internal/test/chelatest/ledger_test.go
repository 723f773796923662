//go:build unix

package chelatest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/engine/agent"
	"github.com/chela-ai/chela/wire"
)

var callPattern = regexp.MustCompile(`call_\d+_\d+_\d+`)

// ledger records what is seen outside of the engines that are killed: the messages
// that were offered and accepted, the requests that reached the model, the effects of
// the tools, and the answers. It reports a fault as soon as it sees one.
type ledger struct {
	t       testing.TB
	file    string // the tools append the ids of their calls to it
	changed chan struct{}

	mu       sync.Mutex
	engine   int // number of the running engine
	messages []*ledgerMessage
	calls    map[string]*ledgerCall

	moved chan struct{} // is closed when a message is accepted or free changes
	free  bool          // no answer is held back

	repeated, resumed, planned, unknown, abandoned int // to see that a test did what it is for
	asked, decided, steered, interrupted, ended    int // to see that kills came between
	families                                       familyCounts
}

// ledgerMessage is a message, with its number as index in the ledger.
type ledgerMessage struct {
	text     string
	session  string
	channel  bool // of the platform; else of a client
	accepted bool // it was acknowledged
	engine   int  // that asked the model last
	offers   int
	asked    int
	kills    int    // of engines, before its outcome was known
	finals   int    // final events
	parts    int    // delivered by the platform
	outcome  string // the answer, or why there is none; "": not known
	seen     bool   // it was in a transcript
	follower int    // the message that steers or interrupts the run of this one; 0: none
	stopped  int    // the engine that stopped waiting for the answer, plus 1; 0: none
	ended    int    // the engine that said the outcome "ended"
	base     int    // the message whose run this one steers or interrupts, plus 1; 0: none
	spawned  string // the call that starts the subagent whose task this is; "": a message of a person
	answered bool   // the subagent's model gave an answer
	lost     bool   // the turn that took the result was given up, before the model was asked
}

// ledgerCall is a call that the model requested.
type ledgerCall struct {
	n       int      // the message
	name    string   // of the tool
	child   int      // the task of the subagent that it starts, plus 1; 0: none
	session string   // key of that subagent's session, according to the result
	acts    bool     // it has an effect
	kills   []string // steps before which an engine was killed before the result was known
	begun   bool     // the call could have started at one of them
	planned bool     // it was about to start at one of them
	result  string

	approval string // the id of the approval that the call needs
	offered  bool   // the decision was sent
	offers   int    // how often
	decided  bool   // the decision was acknowledged
	heard    bool   // the model was told about the end of the command in the background
	lost     bool   // the turn that took that was given up, before the model was asked
}

const (
	killsAside  = 3  // kills after which the run of a message lets others go first
	killsEnough = 10 // kills before which no message may be given up
)

// Results of calls.
const (
	callRan        = "ran"
	callUnknown    = "unknown"
	callDenied     = "denied"
	callBackground = "background"
	callAbandoned  = "abandoned"
	callSkipped    = "skipped" // for a result of a subagent that steered the run
)

// denied reports whether the person denies the call of a message.
func denied(n int) bool { return n%4 == 0 }

func newLedger(t testing.TB, file string) *ledger {
	return &ledger{
		t:        t,
		file:     file,
		changed:  make(chan struct{}, 1),
		moved:    make(chan struct{}),
		calls:    map[string]*ledgerCall{},
		families: familyCounts{heard: map[string]bool{}, untold: map[string]bool{}, steps: map[string]int{}},
	}
}

func (l *ledger) fault(format string, args ...any) {
	l.t.Helper()
	l.t.Errorf(format, args...)
}

// add adds a message, and returns its number.
func (l *ledger) add(kind, session string, channel bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.messages)
	l.messages = append(l.messages, &ledgerMessage{text: fmt.Sprint(kind, " ", n), session: session, channel: channel})
	return n
}

// pair adds a message and one that steers or interrupts its run.
func (l *ledger) pair(kind, session string) int {
	n := l.add("base", session, false)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages[n].follower = len(l.messages)
	l.messages = append(l.messages,
		&ledgerMessage{text: fmt.Sprint(kind, " ", len(l.messages)), session: session, base: n + 1})
	return n
}

// hold holds the answer to a message back until the one that is to steer its run is
// accepted, or until the one that is to interrupt it has done so.
func (l *ledger) hold(ctx context.Context, r modelRequest) {
	for engine := 0; ; {
		l.mu.Lock()
		if engine == 0 {
			engine = l.engine + 1
		}
		moved, wait := l.moved, false
		if r.n < len(l.messages) && l.messages[r.n].follower > 0 && !l.free {
			f := l.messages[l.messages[r.n].follower]
			wait = !f.accepted || strings.HasPrefix(f.text, "interrupt")
		}
		l.mu.Unlock()
		if !wait {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			l.mu.Lock()
			defer l.mu.Unlock()
			m := l.messages[r.n]
			m.stopped = engine
			if f := l.messages[m.follower]; strings.HasPrefix(f.text, "interrupt") && f.asked > 0 && f.engine == l.engine {
				l.interrupted++ // the request of the other run came first
			}
			return
		}
	}
}

// release sets whether answers are held back.
func (l *ledger) release(free bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = free
	l.moveLocked()
}

func (l *ledger) moveLocked() {
	close(l.moved)
	l.moved = make(chan struct{})
}

// offer records that the engine is sent a message, and returns the text.
func (l *ledger) offer(n int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.messages[n]
	if m.accepted {
		l.fault("the test offered message %d again", n)
	}
	if m.offers++; m.asked > 0 {
		l.repeated++
	}
	return m.text
}

// accept records that the engine has acknowledged a message.
func (l *ledger) accept(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages[n].accepted = true
	l.moveLocked()
}

// request records a request that reached the model, and the calls in its answer.
func (l *ledger) request(r modelRequest, made []modelCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range r.users {
		if n >= len(l.messages) || l.messages[n].offers == 0 {
			l.fault("the model was sent message %d, which nobody sent", n)
			return
		}
		if slices.Contains(r.users[:i], n) {
			l.fault("message %d is in the transcript twice", n)
		}
		l.messages[n].seen = true
	}
	for i, id := range r.events {
		c := l.calls[id]
		if c == nil || !strings.HasPrefix(l.messages[c.n].text, "background") {
			l.fault("the model was told that the command of %s has ended, which it did not start", id)
			return
		}
		if slices.Contains(r.events[:i], id) {
			l.fault("the model was told twice in a transcript that the command of %s has ended", id)
		}
		if !c.heard {
			l.ended++
			l.signal()
		}
		c.heard = true
	}
	if len(r.users) == 0 && r.heard == "" {
		l.fault("the model was sent no message")
		return
	}
	l.announced(r)
	if r.heard != "" || len(r.news) > 0 && r.done[r.n] {
		for _, id := range r.calls {
			l.told(r.n, id, r.results[id])
		}
		return
	}
	m := l.messages[r.n]
	if m.base > 0 && m.asked == 0 {
		switch b := l.messages[m.base-1]; {
		case strings.HasPrefix(m.text, "steer") && b.asked > 0 && b.kills < killsAside && !r.done[m.base-1]:
			l.steered++
		case strings.HasPrefix(m.text, "interrupt") && b.stopped == l.engine+1:
			l.interrupted++
		}
	}
	report := strings.Contains(m.outcome, "given up") // perhaps to a session whose message was not answered
	if report && len(r.events) > 0 {
		return
	}
	// A request that was canceled because its run was interrupted may come late.
	late := m.follower > 0 && m.outcome == "ended" && m.ended == l.engine
	if m.outcome != "" && !late && !(report && len(r.told) > 0) {
		l.fault("the model was asked message %d again after the outcome %q", r.n, m.outcome)
	}
	if m.asked++; m.asked > 1 && m.engine != l.engine {
		if l.resumed++; m.spawned != "" {
			l.families.resumed++
		}
	}
	m.engine = l.engine
	for _, id := range r.calls {
		l.told(r.n, id, r.results[id])
	}
	m.answered = len(made) == 0
	for _, call := range made {
		if l.calls[call.id] == nil {
			l.calls[call.id] = &ledgerCall{n: r.n, acts: call.name == "exec"}
		}
		l.calls[call.id].name = call.name
	}
}

// told records the result of a call in a request.
func (l *ledger) told(asked int, id, text string) {
	c := l.calls[id]
	if c == nil {
		l.fault("the transcript has the call %s, which the model did not request", id)
		return
	}
	result := text
	switch {
	case strings.Contains(text, "outcome is unknown"):
		result = callUnknown
	case strings.Contains(text, "given up") && l.messages[c.n].kills >= killsEnough:
		result = callAbandoned
	case l.families.started > 0 && strings.HasPrefix(text, agent.OvertakenText):
		result = callSkipped
	case c.name == "sessions_spawn" || c.name == "sessions_yield":
		result = l.started(id, c, text)
	case l.messages[c.n].follower > 0: // it may be skipped or stopped for the next message
	case strings.HasPrefix(l.messages[c.n].text, "ask") && denied(c.n):
		if result = callDenied; !strings.Contains(text, "not run: denied") || !c.offered {
			l.fault("the result of %s, which was denied or not decided, is %q", id, text)
		}
	case strings.HasPrefix(l.messages[c.n].text, "ask") && !c.offered:
		l.fault("the result of %s, which was not decided, is %q", id, text)
	case strings.HasPrefix(l.messages[c.n].text, "background") && strings.Contains(text, "in the background"):
		result = callBackground
	case c.acts && strings.Contains(text, id), !c.acts && strings.Contains(text, "milk"):
		result = callRan
	case strings.Contains(l.messages[c.n].outcome, "given up"):
	default:
		l.fault("the result of %s is %q", id, text)
	}
	switch {
	case c.result == result:
		return
	case c.result != "":
		l.fault("the result of %s was %q and is %q", id, c.result, result)
	// else the message may have been given up
	case result == callUnknown && !c.begun && l.messages[c.n].kills < killsEnough:
		l.fault("message %d: the result of %s (%s) is %q, although it had not started at the kills before %q", asked, id,
			l.messages[c.n].text, text, c.kills)
	}
	switch c.result = result; {
	case result == callUnknown:
		l.unknown++
	case c.planned:
		l.planned++
	}
	l.signal()
}

func (l *ledger) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// approval records that the engine asks for an approval, and returns the decision of
// the person and the id of the call. ok is false if nothing is to be decided.
func (l *ledger) approval(a wire.Approval) (decision string, id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id = callPattern.FindString(a.Request.Command)
	c := l.calls[id]
	switch {
	case c == nil || !strings.HasPrefix(l.messages[c.n].text, "ask"):
		l.fault("an approval of %q, which no call needs", a.Request.Command)
		return "", "", false
	case c.approval != "" && c.approval != a.ID:
		l.fault("the approval of %s is requested twice", id)
	case c.decided:
		l.fault("the approval of %s is pending again", id)
	case c.approval == "":
		l.asked++
	}
	c.approval = a.ID
	if denied(c.n) {
		return wire.Deny, id, true
	}
	return wire.AllowOnce, id, true
}

// decision records that the decision about a call was sent, or acknowledged.
func (l *ledger) decision(id string, acknowledged bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	if !acknowledged {
		c.offers++
	}
	if c.offered = true; acknowledged && !c.decided {
		c.decided = true
		l.decided++
	}
}

// refused records that a decision about a call was refused.
func (l *ledger) refused(id string, err *wire.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	if c.offers > 1 && strings.Contains(err.Message, "owner decided") { // the first time, on a connection that ended
		if !c.decided {
			c.decided = true
			l.decided++
		}
		return
	}
	if m := l.messages[c.n]; !strings.Contains(err.Message, "withdrawn") || m.kills < killsEnough {
		l.fault("the decision about %s was refused after %d kills: %v", id, m.kills, err)
	}
	c.offered = false // the message was given up
}

// running returns a call whose command in the background has not been reported.
func (l *ledger) running() (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, c := range l.calls {
		if c.result == callBackground && !c.heard && !c.lost {
			return id, true
		}
	}
	return "", false
}

// heard reports whether the model was told about the end of a call's command in the
// background.
func (l *ledger) heard(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id].heard
}

// lose records that the turn that was to tell the end of a call's command, or the result of
// its subagent, was given up. It returns true.
func (l *ledger) lose(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[id]
	if c.child > 0 {
		l.messages[c.child-1].lost = true
	} else {
		c.lost = true
	}
	return true
}

// end records the last event of a message: its answer, or why there is none.
func (l *ledger) end(n int, answer, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.messages[n]
	if m.finals++; m.finals > 1 {
		l.fault("message %d was answered by %d final events", n, m.finals)
	}
	if !m.channel && m.follower == 0 && m.base == 0 {
		l.decide(n, answer, why)
	}
}

// waited records what the engine says about a message that has ended.
func (l *ledger) waited(n int, w wire.AgentWaited) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := ""
	if w.Reply != nil {
		answer = w.Reply.Text
	}
	switch m := l.messages[n]; {
	case m.follower > 0 && (answer == fmt.Sprint("done ", n) || answer == fmt.Sprint("done ", m.follower) ||
		w.Stop == "rpc"):
		m.outcome, m.ended = "ended", l.engine
	case m.follower > 0 && strings.Contains(w.Error, "given up") && m.kills < killsEnough,
		m.base > 0 && strings.Contains(w.Error, "given up") && m.kills < killsEnough &&
			l.messages[m.base-1].kills < killsEnough:
		l.fault("message %d failed after %d kills: %s", n, m.kills, w.Error)
	case (m.follower > 0 || m.base > 0) && strings.Contains(w.Error, "given up"):
		m.outcome = w.Error
		l.abandoned++
	default:
		l.decide(n, answer, w.Error)
	}
}

// deliver records a message that was sent to the person on the platform. Each message
// of the person is answered by one, in order, except that one whose run was interrupted
// several times lets others go first.
func (l *ledger) deliver(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := slices.IndexFunc(l.messages, func(m *ledgerMessage) bool {
		aside := m.kills >= killsAside && strings.HasPrefix(text, "done ") && text != "done "+strings.Fields(m.text)[1]
		return m.channel && m.parts == 0 && !aside
	})
	if n < 0 || l.messages[n].offers == 0 {
		l.fault("delivered %q, with every message of the platform answered", text)
		return
	}
	l.messages[n].parts++
	if strings.Contains(text, "given up") {
		l.decide(n, "", text)
	} else {
		l.decide(n, text, "")
	}
	l.signal()
}

// decide records the outcome of a message.
func (l *ledger) decide(n int, answer, why string) {
	m := l.messages[n]
	outcome := answer
	if why != "" {
		outcome = why
		if !strings.Contains(why, "given up") || m.kills < killsEnough {
			l.fault("message %d failed after %d kills: %s", n, m.kills, why)
		}
		if m.outcome == "" {
			l.abandoned++
		}
		// a result joined the turn at its end
	} else if answer != fmt.Sprint("done ", n) && !strings.HasPrefix(answer, "heard call_") {
		l.fault("message %d was answered %q", n, answer)
	}
	if m.outcome != "" && m.outcome != outcome {
		l.fault("message %d: %q, and before %q", n, outcome, m.outcome)
	}
	m.outcome = outcome
}

// killed records that the engine died: before a step, or, without one, at any time.
// In a single session at most one call is in progress, and a step of a run shows
// whether it could have started. Deliveries go on at the same time as runs.
func (l *ledger) killed(step string, single bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine++
	l.families.steps[step]++
	for _, m := range l.messages {
		if m.offers > 0 && m.outcome == "" {
			m.kills++
		}
		if m.spawned != "" && m.outcome == "" {
			by := l.calls[m.spawned]
			l.families.killed(by, m, l.messages[by.n].outcome == "")
		}
	}
	ran := l.effects()
	for id, c := range l.calls {
		if c.result != "" {
			continue
		}
		if strings.HasPrefix(l.messages[c.n].text, "ask") && (!c.offered || denied(c.n)) {
			c.kills = append(c.kills, step)
			continue // it may not start
		}
		c.kills = append(c.kills, step)
		if ran[id] > 0 || !single || step == "" || step == "tool.run" || strings.HasPrefix(step, "channel.") {
			c.begun = c.acts
		}
		c.planned = c.planned || step == "tool.start" && !c.begun
	}
}

// open returns the numbers of the messages without an outcome: those that were
// accepted, and, with said, also those of the platform that were not.
func (l *ledger) open(said bool) (list []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, m := range l.messages {
		if m.outcome == "" && m.spawned == "" && (m.accepted || m.channel && said) {
			list = append(list, n)
		}
	}
	return list
}

// unaccepted returns the numbers of the messages that were not acknowledged.
func (l *ledger) unaccepted() (list []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, m := range l.messages {
		if !m.accepted {
			list = append(list, n)
		}
	}
	return list
}

// sessionOf returns the session of a call.
func (l *ledger) sessionOf(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.messages[l.calls[id].n].session
}

// sessions returns the sessions of all messages. The platform has that of the key main.
func (l *ledger) sessions() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.messages {
		if m.session != "" && !slices.Contains(keys, m.session) {
			keys = append(keys, m.session)
		}
	}
	return keys
}

func (l *ledger) message(n int) ledgerMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.messages[n]
}

// covers reports whether the kills made everything happen that the ledger judges.
func (l *ledger) covers(work workload) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch work {
	case mixedWork:
		return l.resumed > 0 && l.unknown > 0 && l.asked > 0 && l.decided > 0 && l.steered > 0 &&
			l.interrupted > 0 && l.ended > 0
	case familyWork:
		f := l.families
		return l.unknown > 0 && f.resumed > 0 && f.starting > 0 && f.working > 0 && f.owing > 0 && f.steered > 0
	}
	return l.repeated > 0 && l.resumed > 0 && l.unknown > 0 && (l.planned > 0 || work != oneSession)
}

// effects counts the effects of each call.
func (l *ledger) effects() map[string]int {
	out := map[string]int{}
	b, err := os.ReadFile(l.file)
	if err != nil && !os.IsNotExist(err) {
		l.fault("effects: %v", err)
	}
	for id := range strings.FieldsSeq(string(b)) {
		out[id]++
	}
	return out
}

// check compares the account of all messages after all work is done with the histories
// that the engine shows.
func (l *ledger) check(h shown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	users, answers := h.users, h.answers
	for n, m := range l.messages {
		if m.spawned != "" {
			l.checkChild(n, h)
			continue
		}
		failed := strings.Contains(m.outcome, "given up")
		if !m.accepted || m.outcome == "" {
			l.fault("message %d (%s): accepted %v, outcome %q", n, m.text, m.accepted, m.outcome)
		}
		if users[n] != 1 {
			l.fault("message %d (%s) is in the history %d times", n, m.text, users[n])
		}
		// A run may be interrupted before it asks the model; then the next one sends its message.
		unsent := failed || m.follower > 0 && strings.Contains(l.messages[m.follower].outcome, "given up")
		if !m.seen && !unsent {
			l.fault("the model was not sent message %d (%s): %+v", n, m.text, *m)
		}
		if want := 1; !failed && m.follower == 0 && (answers[n] != want || m.asked == 0) || answers[n] > want {
			l.fault("message %d (%s): the model was asked %d times, and its answer is in the history %d times", n,
				m.text, m.asked, answers[n])
		}
	}
	for id := range l.families.untold {
		if !h.lost[id] {
			l.fault("the subagent with task %d ended before its own of %s", l.calls[id].n, id)
		}
	}
	effects := l.effects()
	for id, n := range effects {
		c := l.calls[id]
		switch {
		case c == nil:
			l.fault("an effect of %s, which the model did not request", id)
		case n > 1:
			l.fault("%s had its effect %d times", id, n)
		case c.result == "" && !strings.Contains(l.messages[c.n].outcome, "given up") &&
			!(l.messages[c.n].spawned != "" && h.givenUp[l.messages[c.n].session]):
			l.fault("%s had an effect, but the model was not told a result", id)
		}
	}
	for id, c := range l.calls {
		if c.acts && c.result == callRan && effects[id] != 1 {
			l.fault("the model was told that %s ran, but it had its effect %d times", id, effects[id])
		}
		if n := effects[id]; n > 0 &&
			(c.result == callDenied || c.result == callSkipped || c.result == callAbandoned && !c.begun) {
			l.fault("%s was %s, but it had its effect %d times", id, c.result, n)
		}
		if c.result == callBackground && (h.events[id] != 1 || !c.heard && !h.lost[id]) {
			l.fault("the end of the command of %s is in the history %d times; the model was told: %t", id, h.events[id], c.heard)
		}
		if c.approval != "" && !c.offered && !strings.Contains(l.messages[c.n].outcome, "given up") {
			l.fault("the approval of %s was not decided, and its result is %q", id, c.result)
		}
		if c.decided && c.result == "" && !strings.Contains(l.messages[c.n].outcome, "given up") {
			l.fault("the decided call %s has no result", id)
		}
	}
	l.t.Logf("%d approvals requested and %d decided, %d runs steered and %d interrupted, %d reports from the background",
		l.asked, l.decided, l.steered, l.interrupted, l.ended)
	if f := l.families; f.started > 0 {
		l.t.Logf("%d subagents, %d results told, %d of them to a run in progress; kills found %d subagents being started, %d at work and %d not yet told; %d were resumed, %d failed",
			f.started, f.told, f.steered, f.starting, f.working, f.owing, f.resumed, f.failed)
	}
	l.t.Logf("%d messages, %d offered again after the model was asked, %d runs resumed, %d planned calls carried out after a kill, %d calls of %d unknown, %d messages given up, %d effects",
		len(l.messages), l.repeated, l.resumed, l.planned, l.unknown, len(l.calls), l.abandoned, len(effects))
}
