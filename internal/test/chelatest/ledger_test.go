//go:build unix

package chelatest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/wire"
)

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

	repeated, resumed, planned, unknown, abandoned int // to see that a test did what it is for
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
}

// ledgerCall is a call that the model requested.
type ledgerCall struct {
	n       int      // the message
	acts    bool     // it has an effect
	kills   []string // steps before which an engine was killed before the result was known
	begun   bool     // the call could have started at one of them
	planned bool     // it was about to start at one of them
	result  string
}

const (
	callRan     = "ran"
	callUnknown = "unknown"
)

func newLedger(t testing.TB, file string) *ledger {
	return &ledger{t: t, file: file, changed: make(chan struct{}, 1), calls: map[string]*ledgerCall{}}
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
}

// request records a request that reached the model, and the calls in its answer.
func (l *ledger) request(r modelRequest, ids []string) {
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
	}
	if len(r.users) == 0 {
		l.fault("the model was sent no message")
		return
	}
	m := l.messages[r.n]
	if m.outcome != "" {
		l.fault("the model was asked message %d again after the outcome %q", r.n, m.outcome)
	}
	if m.asked++; m.asked > 1 && m.engine != l.engine {
		l.resumed++
	}
	m.engine = l.engine
	for _, id := range r.calls {
		l.told(r.n, id, r.results[id])
	}
	for _, id := range ids {
		l.calls[id] = &ledgerCall{n: r.n, acts: r.kind != "read"}
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
	case result == callUnknown && !c.begun && l.messages[c.n].kills < 3: // else the message may have been given up
		l.fault("message %d: the result of %s (%s) is %q, although it had not started at the kills before %q", asked, id, l.messages[c.n].text, text, c.kills)
	}
	switch c.result = result; {
	case result == callUnknown:
		l.unknown++
	case c.planned:
		l.planned++
	}
}

// end records the last event of a message: its answer, or why there is none.
func (l *ledger) end(n int, answer, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.messages[n]
	if m.finals++; m.finals > 1 {
		l.fault("message %d was answered by %d final events", n, m.finals)
	}
	if !m.channel {
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
	l.decide(n, answer, w.Error)
}

// deliver records a message that was sent to the person on the platform. Each message
// of the person is answered by one, in order.
func (l *ledger) deliver(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := slices.IndexFunc(l.messages, func(m *ledgerMessage) bool { return m.channel && m.parts == 0 })
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
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// decide records the outcome of a message.
func (l *ledger) decide(n int, answer, why string) {
	m := l.messages[n]
	outcome := answer
	if why != "" {
		outcome = why
		if !strings.Contains(why, "given up") || m.kills < 3 {
			l.fault("message %d failed after %d kills: %s", n, m.kills, why)
		}
		if m.outcome == "" {
			l.abandoned++
		}
	} else if answer != fmt.Sprint("done ", n) {
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
	for _, m := range l.messages {
		if m.offers > 0 && m.outcome == "" {
			m.kills++
		}
	}
	ran := l.effects()
	for id, c := range l.calls {
		if c.result != "" {
			continue
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
		if m.outcome == "" && (m.accepted || m.channel && said) {
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

func (l *ledger) message(n int) ledgerMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.messages[n]
}

// covers reports whether the kills made everything happen that the ledger judges.
func (l *ledger) covers(single bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.repeated > 0 && l.resumed > 0 && l.unknown > 0 && (l.planned > 0 || !single)
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

// check compares the account of all messages after all work is done. history has the
// messages of persons and the answers that the engine shows.
func (l *ledger) check(users, answers map[int]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, m := range l.messages {
		failed := strings.Contains(m.outcome, "given up")
		if !m.accepted || m.outcome == "" {
			l.fault("message %d (%s): accepted %v, outcome %q", n, m.text, m.accepted, m.outcome)
		}
		if users[n] != 1 {
			l.fault("message %d (%s) is in the history %d times", n, m.text, users[n])
		}
		if want := 1; !failed && (answers[n] != want || m.asked == 0) || answers[n] > want {
			l.fault("message %d (%s): the model was asked %d times, and its answer is in the history %d times", n, m.text, m.asked, answers[n])
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
		case c.result == "" && !strings.Contains(l.messages[c.n].outcome, "given up"):
			l.fault("%s had an effect, but the model was not told a result", id)
		}
	}
	for id, c := range l.calls {
		if c.acts && c.result == callRan && effects[id] != 1 {
			l.fault("the model was told that %s ran, but it had its effect %d times", id, effects[id])
		}
	}
	l.t.Logf("%d messages, %d offered again after the model was asked, %d runs resumed, %d planned calls carried out after a kill, %d calls of %d unknown, %d messages given up, %d effects",
		len(l.messages), l.repeated, l.resumed, l.planned, l.unknown, len(l.calls), l.abandoned, len(effects))
}
