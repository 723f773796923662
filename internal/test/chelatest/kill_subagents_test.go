//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// familySteps are the points of the life of a subagent before which the process is
// killed: its requester's call, its run, the end that also announces it, and the run
// that takes the announcement.
var familySteps = [...]string{
	"tool.start", "tool.run", "tool.end", "run.begin", "run.execute", "model.end", "run.suspend", "run.end", "run.ended",
	"run.resume", "run.steer",
}

// TestKillSubagents kills engines while subagents, some of which have subagents, are
// started, work and report: four times before each step, and as often at any time; with
// CHELA_TEST_KILLS that often in all. The ledger of TestKill decides.
func TestKillSubagents(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	drivers, each := 2, 2*2*len(familySteps)
	if raced {
		each /= 2
	}
	if thorough() {
		cycles := killCount(t, 0)
		drivers = max(drivers, cycles/100)
		each = cycles / drivers
	}
	seed := randomSeed(t)
	var mu sync.Mutex
	kills := map[string]int{} // by step
	t.Cleanup(func() {
		t.Logf("kills before steps: %v", kills)
		for _, step := range familySteps {
			if kills[step] == 0 && thorough() && drivers*each >= 400 && !raced && !t.Failed() {
				t.Errorf("no kill before %s", step)
			}
		}
	})
	for i := range drivers {
		t.Run("D11 SUB-10 each call started one subagent, whose result was told once, and no effect happened twice",
			func(t *testing.T) {
				t.Parallel()
				l := drive(t, rand.New(rand.NewPCG(seed, uint64(i))), familyWork, each)
				mu.Lock()
				defer mu.Unlock()
				for step, n := range l.families.steps {
					kills[step] += n
				}
			})
	}
}

// familyReach returns how many times a message has an engine reach a step, or more.
func familyReach(step string) int {
	switch step {
	case "run.suspend", "run.steer", "run.resume":
		return 2
	}
	return 4
}

// sendFamily offers a message that starts subagents. One whose turn waits for them has a
// session of its own, because another message would replace that turn.
func (d *driver) sendFamily(ctx context.Context, c *client.Client) {
	kind := [...]string{"start", "start", "nest", "yield"}[d.rnd.IntN(4)]
	session := "agent:main:f" + strconv.Itoa(d.rnd.IntN(3))
	switch d.step {
	case "run.suspend", "run.resume":
		kind = "yield"
	case "run.steer": // a turn is in progress when a result comes
		kind, session = "start", "agent:main:f0"
	}
	if kind == "yield" {
		d.serial++
		session = "agent:main:y" + strconv.Itoa(d.serial)
	}
	d.offer(ctx, c, d.l.add(kind, session, false), d.rnd.IntN(4) == 0)
}

// awaitFamilies waits until the model has been told the result of every subagent, or the
// turn that was to tell it was given up.
func (d *driver) awaitFamilies(ctx context.Context, c *client.Client) bool {
	for {
		n, ok := d.l.owed()
		if !ok {
			return true
		}
		by, id := d.l.requester(n), d.l.message(n).spawned
		ok, late := d.wait(ctx, c, func() bool {
			if d.l.message(n).outcome != "" {
				return true
			}
			h, err := d.transcript(ctx, c, by.session)
			return err == nil && h.lost(toldPattern, id) && d.l.lose(id)
		})
		if late {
			h, err := d.transcript(ctx, c, by.session)
			d.l.fault("the result of the subagent with task %d was not told: %+v; its requester: %+v, %+v, %v", n,
				d.l.message(n), by, h, err)
		}
		if !ok {
			return false
		}
	}
}

// answered waits until the model has answered the results that it was told: the turn of
// a result that a kill interrupted is resumed, or the person is told that it was given up.
func (d *driver) answered(ctx context.Context, c *client.Client) bool {
	for _, session := range d.l.heardIn() {
		var h wire.History
		ok, late := d.wait(ctx, c, func() bool {
			h = wire.History{}
			if err := c.Call(ctx, wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: 20}, &h); err != nil {
				return false
			}
			last := slices.IndexFunc(h.Messages, func(m wire.Message) bool { return toldPattern.MatchString(m.Text()) })
			for i := last; i >= 0 && i < len(h.Messages); i++ {
				switch m := h.Messages[i]; {
				case toldPattern.MatchString(m.Text()):
					last = i
				case m.Role == wire.RoleAssistant || strings.Contains(m.Text(), "given up"):
					last = -1
				}
			}
			return last < 0
		})
		if late {
			d.l.fault("results in %s were not answered: %+v", session, h.Messages)
		}
		if !ok {
			return false
		}
	}
	return true
}

// idle waits until nothing is in progress or waits, also no result of a subagent.
func (d *driver) idle(ctx context.Context, c *client.Client) bool {
	var page wire.TasksPage
	ok, late := d.wait(ctx, c, func() bool {
		page = wire.TasksPage{}
		err := c.Call(ctx, wire.MethodTasksList, wire.TasksList{Turns: true, Limit: 500}, &page) // the newest ones
		page.Tasks = slices.DeleteFunc(page.Tasks, func(t wire.Task) bool {
			return t.Status != wire.TaskQueued && t.Status != wire.TaskRunning && t.Delivery != wire.DeliveryPending &&
				t.Delivery != wire.DeliveryQueued
		})
		return err == nil && len(page.Tasks) == 0
	})
	if late {
		d.l.fault("this is in progress although all results were told: %+v", page.Tasks)
	}
	return ok
}

// familyCounts are numbers of subagents, to see that a test did what it is for.
type familyCounts struct {
	started, told, steered, failed    int
	starting, working, owing, resumed int             // at kills
	heard                             map[string]bool // sessions that were told results
	// calls whose subagents ended, as it seems, after the one that made the call
	untold map[string]bool
	steps  map[string]int // kills before them
}

// killed counts a subagent whose result was not told when the engine was killed. open is
// set if the turn of its requester has no outcome yet.
func (f *familyCounts) killed(by *ledgerCall, m *ledgerMessage, open bool) {
	switch {
	case m.answered:
		f.owing++
	case m.asked > 0:
		f.working++
	case by.result == "" && open:
		f.starting++
	}
}

// child adds the task of the subagent that a call is to start, and returns its number.
func (l *ledger) child(n int, id, kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	task := len(l.messages)
	l.messages = append(l.messages,
		&ledgerMessage{text: fmt.Sprint(kind, " ", task), spawned: id, accepted: true, offers: 1})
	l.calls[id] = &ledgerCall{n: n, child: task + 1}
	return task
}

// started returns the result of a call that starts a subagent or waits for some.
func (l *ledger) started(id string, c *ledgerCall, text string) string {
	var out struct {
		Status  string `json:"status"`
		Session string `json:"childSessionKey"`
		Label   string `json:"label"`
	}
	err := json.Unmarshal([]byte(text), &out) // an error is text
	switch {
	case c.name == "sessions_yield" && (out.Status == "yielded" || strings.Contains(text, "nothing to wait for")):
		return callRan
	case c.name == "sessions_spawn" && err == nil && out.Status == "accepted" && out.Label == id:
		if c.result == "" {
			l.families.started++
		}
		l.childIs(c, out.Session)
		return callRan
	}
	if !strings.Contains(l.messages[c.n].outcome, "given up") {
		l.fault("the result of %s (%s) is %q", id, c.name, text)
	}
	return text
}

// childIs records the session of the subagent that a call started.
func (l *ledger) childIs(c *ledgerCall, session string) {
	if c.session != "" && c.session != session {
		l.fault("a call started two subagents, %s and %s", c.session, session)
	}
	c.session = session
	l.messages[c.child-1].session = session
}

// announced records the results of subagents in a request, and whose request it is.
func (l *ledger) announced(r modelRequest) {
	if first := l.messages[r.users[0]]; r.session != "" || first.spawned != "" {
		if first.spawned == "" || r.session == "" {
			l.fault("message %d is in the session %q", r.users[0], r.session)
			return
		}
		l.childIs(l.calls[first.spawned], r.session)
	}
	seen := map[string]bool{}
	for _, a := range r.told {
		c := l.calls[a.id]
		switch {
		case c == nil || c.child == 0:
			l.fault("the model was told the result of %s, which did not start a subagent", a.id)
			return
		case seen[a.id]:
			l.fault("the model was told the result of the subagent of %s twice", a.id)
		case r.results[a.id] == "":
			l.fault("the result of the subagent of %s was told in another session", a.id)
		}
		seen[a.id] = true
		l.families.heard[l.messages[c.n].session] = true
		l.childIs(c, a.session)
		n := c.child - 1
		m := l.messages[n]
		ok := strings.Contains(a.status, "(status: ok)")
		if m.outcome == "" {
			l.families.told++
			if !r.done[r.n] && r.ended {
				l.families.steered++
			}
			if !ok {
				l.families.failed++
			}
		}
		if ok {
			l.decide(n, a.result, "")
			l.endedAfter(n)
		} else {
			l.decide(n, "", a.status)
		}
		l.signal()
	}
}

// endedAfter checks that a subagent ended after those that it started. The turn that took
// the result of one of them may have been given up; check looks whether it was.
func (l *ledger) endedAfter(n int) {
	for id, c := range l.calls {
		if c.n == n && c.child > 0 && c.result == callRan && l.messages[c.child-1].outcome == "" {
			l.families.untold[id] = true
		}
	}
}

// heardIn returns the sessions that were told results since it was last called.
func (l *ledger) heardIn() (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.families.heard {
		keys = append(keys, key)
	}
	clear(l.families.heard)
	return keys
}

// owed returns a subagent that was started, and whose result the model was not told, and
// still has to be.
func (l *ledger) owed() (n int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, m := range l.messages {
		if m.spawned != "" && m.outcome == "" && !m.lost && (m.asked > 0 || l.calls[m.spawned].result == callRan) {
			return n, true
		}
	}
	return 0, false
}

// requester returns the message whose turn started a subagent.
func (l *ledger) requester(n int) ledgerMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.messages[l.calls[l.messages[n].spawned].n]
}

// gaveUp reports whether a turn for a message may have been given up: then it does not
// know what it started and was told, but the person, or its requester, is told that it
// failed. A result that waited for its session begins another turn there.
func (l *ledger) gaveUp(n int) bool {
	m := l.messages[n]
	return strings.Contains(m.outcome, "given up") || m.kills >= killsEnough
}

// checkChild compares the account of a subagent after all work is done.
func (l *ledger) checkChild(n int, h shown) {
	m := l.messages[n]
	c := l.calls[m.spawned]
	// then the requester may not know that it started it, nor how it ended
	gone := l.gaveUp(c.n)
	// another turn reported
	given := strings.Contains(m.outcome, "given up") || h.givenUp[m.session] ||
		m.kills >= killsEnough && strings.HasPrefix(m.outcome, "heard ")
	switch there := m.asked > 0 || h.told[m.spawned] > 0; {
	case c.result == callRan:
	case !there:
		return
	case c.result != callUnknown && c.result != "" || !gone:
		l.fault("the subagent with task %d (%s) worked, although the result of its requester's call %s is %q; message %d: %+v", n, m.text, m.spawned, c.result, c.n, l.messages[c.n])
		return
	}
	if m.outcome == "" && !h.lost[m.spawned] || h.told[m.spawned] != 1 {
		l.fault("the result of the subagent with task %d (%s), %q, is in the histories %d times; the turn that took it was given up: %t", n, m.text, m.outcome, h.told[m.spawned], h.lost[m.spawned])
	}
	if h.users[n] != 1 {
		l.fault("the task %d (%s) is in the history of its subagent %d times", n, m.text, h.users[n])
	}
	if !given && h.answers[n] != 1 || h.answers[n] > 1 {
		l.fault("task %d (%s): the model was asked %d times, and its answer is in the history %d times", n,
			m.text, m.asked, h.answers[n])
	}
}
