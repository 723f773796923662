//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// steps are the points of a run and a delivery before which the process is killed.
// run.resume follows a step that interrupts a run.
var steps = [...]string{
	"run.begin", "run.execute", "model.reserve", "model.reserved", "model.end", "tool.start", "tool.run", "run.resume",
	"tool.end", "run.end", "run.ended",
	"channel.send", "channel.sent",
}

// mixedSteps are those of runs that wait for a person, and are steered or interrupted.
var mixedSteps = [...]string{
	"approval.ask", "run.suspend", "approval.decide", "run.resume", "run.execute", "run.steer", "tool.start",
	"tool.run", "tool.end", "run.end",
}

// TestKill kills engines while they have work, and lets the last one finish: three times
// before each step, and some more at any time; with CHELA_TEST_KILLS that often in all. A
// ledger outside of the engines decides. The drivers of the third kind ask a person, leave
// commands in the background, and steer and interrupt runs.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	each := [...]int{oneSession: 3 * len(steps), severalSessions: 16, mixedWork: 24}
	if raced { // it looks for something else, and makes each start several times slower
		each = [...]int{oneSession: len(steps), severalSessions: 6, mixedWork: 10}
	}
	drivers := len(each)
	if thorough() {
		cycles := killCount(t, 0)
		drivers = max(drivers, cycles/100)
		each = [...]int{cycles / drivers, cycles / drivers, cycles / drivers}
	}
	seed := randomSeed(t)
	for i := range drivers {
		work := workload(i % len(each))
		name := map[workload]string{
			oneSession: "before each step, one session", severalSessions: "at any time, several sessions",
			mixedWork: "at any time, with approvals, commands in the background, and runs that are steered and interrupted",
		}[work]
		t.Run("REC-05 killed "+name+": no accepted message lost, none answered twice, no effect twice", func(t *testing.T) {
			t.Parallel()
			drive(t, rand.New(rand.NewPCG(seed, uint64(i))), work, each[work])
		})
	}
}

// drive kills engines a number of times, and checks the ledger. In a thorough run, the
// kills have to make everything happen that the ledger judges.
func drive(t *testing.T, rnd *rand.Rand, work workload, cycles int) *ledger {
	d := newDriver(t, rnd, work)
	for k := range cycles {
		if d.cycle(k); t.Failed() {
			return d.l
		}
	}
	d.finish()
	// with the race detector, engines get less far until they are killed
	if thorough() && cycles >= 60 && !raced && !d.l.covers(work) {
		t.Error("the kills missed a case")
	}
	return d.l
}

// workload is what the engines of a driver do.
type workload int

const (
	oneSession      workload = iota // one session, killed before steps
	severalSessions                 // killed at any time
	// with approvals, commands in the background, steering and interrupting; a session for each
	mixedWork
	familyWork // with subagents
)

// driver sends messages to engines and kills them.
type driver struct {
	t      *testing.T
	dir    string
	rnd    *rand.Rand
	work   workload
	l      *ledger
	p      *platform
	model  *toolModel
	conf   Config    // without the model server
	begun  time.Time // of the test
	serial int       // of sessions
	step   string    // before which the engine is killed, for familyWork; "": any time
}

func newDriver(t *testing.T, rnd *rand.Rand, work workload) *driver {
	d := &driver{t: t, dir: t.TempDir(), rnd: rnd, work: work, begun: time.Now()}
	workspace := filepath.Join(d.dir, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "notes.txt"), []byte("milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.l = newLedger(t, filepath.Join(workspace, "effects.txt"))
	d.p = newPlatform(d.l, rand.New(rand.NewPCG(rnd.Uint64(), 0)))
	d.model = &toolModel{wait: d.l.hold, seen: d.l.request, child: d.l.child}
	c := toolModelConfig(modelURL)
	c["channels"] = json.RawMessage(`{"platform": {"allowFrom": ["p"]}}`)
	c["models"] = json.RawMessage(strings.Replace(string(c["models"]), `"contextWindow"`,
		`"cost": {"input": 1, "output": 5}, "contextWindow"`, 1))
	c["budget"] = json.RawMessage(`{"usdPerDay": 1000000}`) // so that money is reserved for each call
	if work == familyWork {
		c["agents.defaults"] = merge(c["agents.defaults"], `{"subagents": {"maxSpawnDepth": 2, "maxChildrenPerAgent": 20}}`)
		c["messages"] = json.RawMessage(`{"queue": {"mode": "steer", "cap": 10000}}`) // for the results of subagents
	}
	c["agents"] = json.RawMessage(`{"defaults": ` + string(c["agents.defaults"]) +
		`, "list": [{"id": "main", "default": true},
		{"id": "asker", "workspace": ` + strconv.Quote(workspace) + `, "tools": {"exec": {"mode": "ask"}}}]}`)
	d.conf = c
	return d
}

// modelURL stands for the URL of the model server, which each engine has for itself.
const modelURL = "http://model.invalid"

// running is an engine of a driver, with the servers that only it talks to.
type running struct {
	*subprocess
	died    chan struct{} // closed when the process has ended
	servers []*httptest.Server
}

// spawn starts an engine.
func (d *driver) spawn(step string) *running {
	model, platform := httptest.NewServer(d.model), httptest.NewServer(d.p)
	c := maps.Clone(d.conf)
	c["models"] = json.RawMessage(strings.Replace(string(c["models"]), modelURL, model.URL, 1))
	writeConfig(d.t, d.dir, c)
	e := &running{
		subprocess: spawn(d.t, d.dir, step, childPlatform+"="+platform.URL),
		died:       make(chan struct{}), servers: []*httptest.Server{model, platform},
	}
	go func() { _ = e.Wait(); close(e.died) }()
	d.t.Cleanup(e.kill)
	return e
}

// kill kills the engine, if it is alive. Everything that it has said is recorded then, and
// nothing more of it comes: the next engine must not be mistaken for it.
func (e *running) kill() {
	_ = e.Process.Kill()
	<-e.died
	_ = e.in.Close()
	for _, srv := range e.servers {
		srv.CloseClientConnections()
		srv.Close() // waits for the handlers
	}
	e.servers = nil
}

// cycle starts an engine, sends it messages, and kills it. Some engines have to
// finish all accepted messages first, without another message.
func (d *driver) cycle(k int) {
	step, first := "", ""
	d.step = ""
	if d.work == oneSession {
		name := steps[k%len(steps)]
		if thorough() && strings.HasPrefix(name, "channel.") && d.rnd.IntN(3) > 0 {
			name = "tool.start" // a delivery is repeated only after a pause, which takes time
		}
		step = name + ":" + strconv.Itoa(1+d.rnd.IntN(2))
		if name == "run.resume" {
			step = name + ":1" // it is interrupted once
		}
		first = step
	}
	if d.work == mixedWork && d.rnd.IntN(2) == 0 {
		step = mixedSteps[d.rnd.IntN(len(mixedSteps))] + ":" + strconv.Itoa(1+d.rnd.IntN(3))
		first = step
	}
	if d.work == familyWork && k%2 == 0 {
		d.step = familySteps[k/2%len(familySteps)]
		step = d.step + ":" + strconv.Itoa(1+d.rnd.IntN(familyReach(d.step)))
		first = step
	}
	settles := d.rnd.IntN(2) == 0
	if strings.HasPrefix(step, "run.resume:") {
		settles = false
	}
	if settles {
		first = ""
		d.p.hold(true)
	}
	p := d.spawn(first)
	if settles {
		if !d.settle() {
			p.kill()
			return
		}
		if step != "" {
			p.arm(d.t, step)
		}
		d.p.hold(false)
	}
	after := time.Second // killed by the step, or idle
	switch {
	case d.work == familyWork && step != "":
		after = 2 * time.Second
	case d.work != oneSession && step != "":
		after = 200 * time.Millisecond
	case d.work != oneSession:
		after = time.Duration(1+d.rnd.IntN(60)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), after)
	defer cancel()
	d.l.release(false)
	d.connect(ctx, false, func(c *client.Client) {
		for range d.messages() {
			d.send(ctx, c)
		}
		if d.await(ctx, c, true) && d.awaitFamilies(ctx, c) {
			cancel() // the step was not reached
		}
	})
	name, _, _ := strings.Cut(step, ":")
	select {
	case <-p.died:
	case <-ctx.Done():
		name = ""
	}
	p.kill()
	d.l.killed(name, d.work == oneSession)
}

// messages returns how many messages an engine is sent.
func (d *driver) messages() int {
	switch {
	case d.work == familyWork && d.step == "run.steer":
		return 3
	case d.work == familyWork: // it is several turns
		return 1
	}
	return 4
}

// decide decides about the approvals that are pending and those that are requested, until
// the connection ends. Unless all is set, it leaves some for the next engine.
func (d *driver) decide(ctx context.Context, c *client.Client, requested <-chan struct{}, rnd *rand.Rand, all bool) {
	for {
		var list []wire.Approval
		if c.Call(ctx, wire.MethodApprovalList, nil, &list) != nil {
			return
		}
		for _, a := range list {
			decision, id, ok := d.l.approval(a)
			if !ok || !all && rnd.IntN(3) == 0 {
				continue
			}
			d.l.decision(id, false)
			err := c.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: a.ID, Decision: decision}, nil)
			if we, ok := errors.AsType[*wire.Error](err); ok {
				d.l.refused(id, we)
				continue
			}
			if err != nil {
				return
			}
			d.l.decision(id, true)
		}
		select {
		case <-requested:
		case <-c.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// connect runs f with a client that records the ends of runs, until all events are
// recorded.
func (d *driver) connect(ctx context.Context, all bool, f func(*client.Client)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := client.Dial(ctx, client.Options{Dial: dial(d.dir), Once: true})
	if err != nil {
		return // the engine was killed at its start
	}
	var recording sync.WaitGroup
	requested := make(chan struct{}, 1)
	if d.work == mixedWork {
		rnd := rand.New(rand.NewPCG(d.rnd.Uint64(), 0))
		recording.Go(func() { d.decide(ctx, c, requested, rnd, all) })
	}
	recording.Go(func() {
		for e := range c.Events() {
			var chat wire.Chat
			if e.Name == wire.EventApprovalRequested {
				select {
				case requested <- struct{}{}:
				default:
				}
			}
			if e.Name == wire.EventChat && e.Decode(&chat) == nil && chat.State != wire.StateDelta {
				d.ended(chat)
			}
		}
	})
	f(c)
	c.Close()
	recording.Wait()
}

// ended records the last event of a run. The runs of the platform's messages are
// known by their answers only; a failure is delivered.
func (d *driver) ended(chat wire.Chat) {
	text := ""
	if chat.Message != nil {
		text = chat.Message.Text()
	}
	var n int
	if _, err := fmt.Sscanf(chat.RunID, "m%d", &n); err != nil || "m"+strconv.Itoa(n) != chat.RunID {
		found := donePattern.FindStringSubmatch(text)
		switch {
		case d.work == mixedWork, d.work == familyWork, found == nil && strings.Contains(chat.ErrorMessage, "given up"):
			return // a run that began with a report, or that of a subagent
		case found == nil:
			d.l.fault("run %s ended: %s %q", chat.RunID, chat.ErrorMessage, text)
			return
		}
		n, _ = strconv.Atoi(found[1])
	}
	d.l.end(n, text, chat.ErrorMessage)
}

// send offers a message: a new one, or one that was not acknowledged.
func (d *driver) send(ctx context.Context, c *client.Client) {
	if again := d.clients(d.l.unaccepted()); len(again) > 0 && d.rnd.IntN(2) == 0 {
		d.offer(ctx, c, again[d.rnd.IntN(len(again))], false)
		return
	}
	switch d.work {
	case mixedWork:
		d.sendMixed(ctx, c)
		return
	case familyWork:
		d.sendFamily(ctx, c)
		return
	}
	kind := [...]string{"plain", "read", "effect", "effect", "pair"}[d.rnd.IntN(5)]
	if d.rnd.IntN(3) == 0 {
		d.p.say(d.l.add(kind, "agent:main:main", true))
		return
	}
	session := "agent:main:main"
	if d.work != oneSession {
		session = "agent:main:s" + strconv.Itoa(d.rnd.IntN(3))
	}
	d.offer(ctx, c, d.l.add(kind, session, false), d.rnd.IntN(4) == 0)
}

// sendMixed offers a message in a session of its own, and perhaps one that follows it.
func (d *driver) sendMixed(ctx context.Context, c *client.Client) {
	d.serial++
	session := "agent:main:x" + strconv.Itoa(d.serial)
	switch kind := [...]string{"ask", "ask", "background", "steer", "interrupt", "effect"}[d.rnd.IntN(6)]; kind {
	case "steer", "interrupt":
		n := d.l.pair(kind, session)
		d.offer(ctx, c, n, false)
		d.offer(ctx, c, n+1, false)
	case "ask":
		d.offer(ctx, c, d.l.add(kind, "agent:asker:x"+strconv.Itoa(d.serial), false), d.rnd.IntN(4) == 0)
	default:
		d.offer(ctx, c, d.l.add(kind, session, false), d.rnd.IntN(4) == 0)
	}
}

// clients returns the messages that clients send.
func (d *driver) clients(list []int) (out []int) {
	for _, n := range list {
		if !d.l.message(n).channel {
			out = append(out, n)
		}
	}
	return out
}

// offer sends a message of a client. If lost is set, its acknowledgement is not
// received.
func (d *driver) offer(ctx context.Context, c *client.Client, n int, lost bool) {
	m := d.l.message(n)
	if m.base > 0 && !d.l.message(m.base-1).accepted {
		return // its turn comes
	}
	mode := ""
	if d.work == familyWork {
		mode = "followup"
	}
	if m.base > 0 {
		mode, _, _ = strings.Cut(m.text, " ")
	}
	err := c.Call(ctx, wire.MethodChatSend, wire.ChatSend{
		SessionKey: m.session, Message: d.l.offer(n), IdempotencyKey: "m" + strconv.Itoa(n), QueueMode: mode,
	}, nil)
	if we, ok := errors.AsType[*wire.Error](err); ok {
		d.l.fault("message %d was refused: %v", n, we)
	}
	if err == nil && !lost {
		d.l.accept(n)
	}
}

// await waits for the outcome of the accepted messages, with said also of those of the
// platform that were not, and reports whether all have one.
func (d *driver) await(ctx context.Context, c *client.Client, said bool) bool {
	for _, n := range d.l.open(said) {
		m := d.l.message(n)
		ok, late := d.wait(ctx, c, func() bool {
			if m.channel {
				return d.l.message(n).outcome != ""
			}
			var w wire.AgentWaited
			err := c.Call(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: "m" + strconv.Itoa(n), TimeoutMs: 1000}, &w)
			if err != nil || w.Status == wire.StatusTimeout {
				return false
			}
			d.l.waited(n, w)
			return true
		})
		if late {
			d.l.fault("message %d was accepted, but the next engine did not finish it: %+v", n, d.l.message(n))
		}
		if !ok {
			return false
		}
	}
	return true
}

// wait waits until f reports true, and then does so, too. It reports false when the
// connection or ctx ends. late is set if it has waited in vain for too long, which only a
// defect explains.
func (d *driver) wait(ctx context.Context, c *client.Client, f func() bool) (ok, late bool) {
	for begin := time.Now(); !f(); {
		select {
		case <-d.l.changed:
		case <-time.After(10 * time.Millisecond): // not everything is signaled
		case <-c.Done():
			return false, false
		case <-ctx.Done():
			return false, false
		}
		if time.Since(begin) > waittest.Limit {
			return false, true
		}
	}
	return true, false
}

// awaitBackground waits until the model has been told about the end of every command in the
// background, or the turn that was to tell it was given up.
func (d *driver) awaitBackground(ctx context.Context, c *client.Client) bool {
	for {
		id, ok := d.l.running()
		if !ok {
			return true
		}
		session := d.l.sessionOf(id)
		ok, late := d.wait(ctx, c, func() bool {
			if d.l.heard(id) {
				return true
			}
			h, err := d.transcript(ctx, c, session)
			return err == nil && h.lost(eventPattern, id) && d.l.lose(id)
		})
		if late {
			h, err := d.transcript(ctx, c, session)
			d.l.fault("the model was not told that the command of %s has ended: %+v, %v", id, h, err)
		}
		if !ok {
			return false
		}
	}
}

// settle waits until the engine has finished every accepted message. It sends
// nothing, so that nothing else makes the engine look for work.
func (d *driver) settle() bool {
	d.l.release(true)
	return d.patiently(d.settled)
}

// settled waits until everything is finished that was accepted.
func (d *driver) settled(ctx context.Context, c *client.Client) bool {
	ok := d.await(ctx, c, false) && d.awaitBackground(ctx, c) && d.awaitFamilies(ctx, c)
	return ok && (d.work != familyWork || d.idle(ctx, c) && d.answered(ctx, c))
}

// patiently connects until f succeeds, or there is a fault. A machine that is very busy may
// lose a connection.
func (d *driver) patiently(f func(context.Context, *client.Client) bool) (ok bool) {
	for begin := time.Now(); !ok && !d.t.Failed(); time.Sleep(10 * time.Millisecond) {
		d.connect(d.t.Context(), true, func(c *client.Client) { ok = f(d.t.Context(), c) })
		if !ok && time.Since(begin) > waittest.Limit {
			d.l.fault("the engine does not keep a connection")
		}
	}
	return ok && !d.t.Failed()
}

// finish lets an engine finish everything and checks the ledger.
func (d *driver) finish() {
	d.p.hold(true)
	p := d.spawn("")
	if !d.settle() {
		return
	}
	d.p.update(func() { d.p.held, d.p.exact = false, true })
	ok := d.patiently(func(ctx context.Context, c *client.Client) bool {
		for _, n := range d.clients(d.l.unaccepted()) {
			d.offer(ctx, c, n, false)
		}
		if !d.await(ctx, c, true) || !d.settled(ctx, c) {
			return false
		}
		h, err := d.history(ctx, c)
		if err != nil {
			return false
		}
		d.l.check(h)
		d.checkMoney(ctx, c)
		return true
	})
	if !ok {
		return
	}
	_ = p.in.Close()
	if <-p.died; p.ProcessState.ExitCode() != 0 {
		d.t.Errorf("the engine did not stop gracefully: %s", p.ProcessState)
	}
}

// checkMoney compares the budget with the stored usage: what is not reserved for calls
// that a kill interrupted was used.
func (d *driver) checkMoney(ctx context.Context, c *client.Client) {
	var used wire.UsageReport
	var b wire.BudgetStatus
	if err := errors.Join(c.Call(ctx, wire.MethodUsageCost, wire.UsageCost{Mode: "gateway", Days: 1}, &used),
		c.Call(ctx, wire.MethodBudgetStatus, wire.BudgetGet{}, &b)); err != nil {
		d.t.Errorf("usage: %v", err)
		return
	}
	if time.Now().UTC().YearDay() != d.begun.UTC().YearDay() {
		return // the budget is that of a new day
	}
	if len(b.Budgets) != 1 || b.Budgets[0].Spent == 0 || math.Abs(b.Budgets[0].Spent-used.Totals.Cost) > 1e-6 {
		d.t.Errorf("budget %+v, used %v", b.Budgets, used.Totals.Cost)
	}
	d.t.Logf("$%.4f are spent, and $%.4f reserved for calls that a kill interrupted",
		b.Budgets[0].Spent, b.Budgets[0].Held)
}

// shown is how often the histories that the engine shows have something.
type shown struct {
	users, answers map[int]int     // messages, or tasks of subagents, and their answers
	told           map[string]int  // results of subagents, by the id of the call that started it
	events         map[string]int  // ends of commands in the background, by the id of the call
	lost           map[string]bool // those of told and events that belong to a turn that was given up
	givenUp        map[string]bool // sessions with a turn that was given up
}

// history counts what the engine shows.
func (d *driver) history(ctx context.Context, c *client.Client) (shown, error) {
	s := shown{map[int]int{}, map[int]int{}, map[string]int{}, map[string]int{}, map[string]bool{}, map[string]bool{}}
	for _, session := range d.l.sessions() {
		all, err := d.transcript(ctx, c, session)
		if err != nil {
			return s, err
		}
		s.givenUp[session] = len(all.givenUp()) > 0
		for run, resumed := range all.givenUp() {
			if resumed < killsEnough-1 {
				d.l.fault("run %s in %s was given up after it was resumed %d times: %+v", run, session, resumed, all)
			}
		}
		for _, m := range all {
			for pattern, count := range map[*regexp.Regexp]map[string]int{toldPattern: s.told, eventPattern: s.events} {
				for _, found := range pattern.FindAllStringSubmatch(m.Text(), -1) {
					count[found[1]]++
					s.lost[found[1]] = s.lost[found[1]] || all.lost(pattern, found[1])
				}
			}
			pattern, count := messagePattern, s.users
			if m.Role == wire.RoleAssistant {
				pattern, count = donePattern, s.answers
			}
			for _, found := range pattern.FindAllStringSubmatch(m.Text(), -1) {
				n, err := strconv.Atoi(found[len(found)-1])
				if err == nil && (m.Role == wire.RoleUser || m.Role == wire.RoleAssistant) {
					count[n]++
				}
			}
		}
	}
	return s, nil
}

// transcript is what the engine shows of a session, one page after another.
type transcript []wire.Message

// transcript reads what the engine shows of a session.
func (d *driver) transcript(ctx context.Context, c *client.Client, session string) (all transcript, err error) {
	for h := (wire.History{HasMore: true}); h.HasMore; {
		offset := h.NextOffset
		h = wire.History{}
		if err := c.Call(ctx, wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: 1000, Offset: offset},
			&h); err != nil {
			return all, err
		}
		all = append(all, h.Messages...)
	}
	return all, nil
}

// givenUp returns the runs that were given up, and how often each was resumed before.
func (all transcript) givenUp() map[string]int {
	runs := map[string]int{}
	for _, m := range all {
		if m.Role != wire.RoleSystem || m.Meta.Kind != "notice" || !strings.Contains(m.Text(), "it was given up") ||
			toldPattern.MatchString(m.Text()) {
			continue
		}
		runs[m.Meta.RunID] = 0
		for _, other := range all {
			if other.Meta.RunID == m.Meta.RunID && other.Role == wire.RoleSystem &&
				strings.Contains(other.Text(), "interrupted by a restart; resuming") {
				runs[m.Meta.RunID]++
			}
		}
	}
	return runs
}

// lost reports whether the run that has taken what the pattern finds for a call was given
// up. Then it is in the history, and perhaps the model was not asked after it.
func (all transcript) lost(pattern *regexp.Regexp, id string) bool {
	gone := all.givenUp()
	return slices.ContainsFunc(all, func(m wire.Message) bool {
		_, given := gone[m.Meta.RunID]
		return given && slices.ContainsFunc(pattern.FindAllStringSubmatch(m.Text(), -1), func(found []string) bool {
			return found[1] == id
		})
	})
}
