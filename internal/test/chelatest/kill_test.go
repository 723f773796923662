//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// steps are the points of a run and a delivery before which the process is killed.
// run.resume follows a step that interrupts a run.
var steps = [...]string{
	"run.begin", "run.execute", "model.reserve", "model.reserved", "model.end", "tool.start", "tool.run", "run.resume", "tool.end", "run.end", "run.ended",
	"channel.send", "channel.sent",
}

// mixedSteps are those of runs that wait for a person, and are steered or interrupted.
var mixedSteps = [...]string{
	"approval.ask", "run.suspend", "approval.decide", "run.resume", "run.execute", "run.steer", "tool.start", "tool.run", "tool.end", "run.end",
}

// TestKill kills engines 200 times (or CHELA_TEST_KILLS times) while they have work,
// and lets the last one finish. A ledger outside of the engines decides. The drivers
// of the third kind ask a person, leave commands in the background, and steer and
// interrupt runs.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	cycles, seed := killCycles(t, 200)
	drivers := max(3, cycles/100)
	for i := range drivers {
		work := [...]workload{oneSession, severalSessions, mixedWork}[i%3]
		name := map[workload]string{
			oneSession: "before each step, one session", severalSessions: "at any time, several sessions",
			mixedWork: "at any time, with approvals, commands in the background, and runs that are steered and interrupted",
		}[work]
		t.Run("REC-05 killed "+name+": no accepted message lost, none answered twice, no effect twice", func(t *testing.T) {
			t.Parallel()
			drive(t, rand.New(rand.NewPCG(seed, uint64(i))), work, cycles/drivers, cycles >= 200)
		})
	}
}

// killCycles returns the number of kills, and the seed. With the race detector, which
// looks for something else and makes each start several times slower, there are fewer.
func killCycles(t *testing.T, cycles int) (int, uint64) {
	t.Helper()
	if s := os.Getenv(cyclesEnv); s != "" {
		var err error
		if cycles, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	} else if raced {
		cycles /= 4
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, cycles)
	return cycles, seed
}

// drive kills engines a number of times, and checks the ledger. enough is set if the
// kills have to make everything happen that the ledger judges.
func drive(t *testing.T, rnd *rand.Rand, work workload, cycles int, enough bool) *ledger {
	d := newDriver(t, rnd, work)
	for k := range cycles {
		if d.cycle(k); t.Failed() {
			return d.l
		}
	}
	d.finish()
	if enough && !raced && !d.l.covers(work) { // with the race detector, engines get less far until they are killed
		t.Error("the kills missed a case")
	}
	return d.l
}

// workload is what the engines of a driver do.
type workload int

const (
	oneSession      workload = iota // one session, killed before steps
	severalSessions                 // killed at any time
	mixedWork                       // with approvals, commands in the background, steering and interrupting; a session for each
	familyWork                      // with subagents
)

// driver sends messages to engines and kills them.
type driver struct {
	t      *testing.T
	dir    string
	rnd    *rand.Rand
	work   workload
	l      *ledger
	p      *platform
	serial int    // of sessions
	step   string // before which the engine is killed, for familyWork; "": any time
	url    string // of the platform
}

func newDriver(t *testing.T, rnd *rand.Rand, work workload) *driver {
	d := &driver{t: t, dir: t.TempDir(), rnd: rnd, work: work}
	workspace := filepath.Join(d.dir, "workspace")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "notes.txt"), []byte("milk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.l = newLedger(t, filepath.Join(workspace, "effects.txt"))
	d.p = newPlatform(d.l, rand.New(rand.NewPCG(rnd.Uint64(), 0)))
	srv := httptest.NewServer(d.p)
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	d.url = srv.URL
	c := serveModel(t, &toolModel{wait: d.l.hold, seen: d.l.request, child: d.l.child})
	c["channels"] = json.RawMessage(`{"platform": {"allowFrom": ["p"]}}`)
	c["models"] = json.RawMessage(strings.Replace(string(c["models"]), `"contextWindow"`, `"cost": {"input": 1, "output": 5}, "contextWindow"`, 1))
	c["budget"] = json.RawMessage(`{"usdPerDay": 1000000}`) // so that money is reserved for each call
	if work == familyWork {
		c["agents.defaults"] = merge(c["agents.defaults"], `{"subagents": {"maxSpawnDepth": 2, "maxChildrenPerAgent": 20}}`)
		c["messages"] = json.RawMessage(`{"queue": {"mode": "steer", "cap": 10000}}`) // for the results of subagents
	}
	c["agents"] = json.RawMessage(`{"defaults": ` + string(c["agents.defaults"]) + `, "list": [{"id": "main", "default": true},
		{"id": "asker", "workspace": ` + strconv.Quote(workspace) + `, "tools": {"exec": {"mode": "ask"}}}]}`)
	writeConfig(t, d.dir, c)
	return d
}

// cycle starts an engine, sends it messages, and kills it. Some engines have to
// finish all accepted messages first, without another message.
func (d *driver) cycle(k int) {
	step, first := "", ""
	d.step = ""
	if d.work == oneSession {
		name := steps[k%len(steps)]
		if strings.HasPrefix(name, "channel.") && d.rnd.IntN(3) > 0 {
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
	p := spawn(d.t, d.dir, first, childPlatform+"="+d.url)
	died := make(chan struct{})
	go func() { p.Wait(); close(died) }()
	kill := func() { p.Process.Kill(); <-died }
	defer p.in.Close()
	if settles {
		if !d.settle() {
			kill()
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
	case <-died:
	case <-ctx.Done():
		name = ""
		kill()
	}
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
		for m.channel && m.outcome == "" {
			select {
			case <-d.l.changed:
			case <-c.Done():
				return false
			case <-ctx.Done():
				return false
			}
			m = d.l.message(n)
		}
		if m.channel {
			continue
		}
		var w wire.AgentWaited
		err := c.Call(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: "m" + strconv.Itoa(n), TimeoutMs: 30_000}, &w)
		if err != nil || w.Status == wire.StatusTimeout {
			return false
		}
		d.l.waited(n, w)
	}
	return true
}

// awaitBackground waits until the model has been told about the end of every command in the
// background.
func (d *driver) awaitBackground(ctx context.Context, c *client.Client) bool {
	for {
		id, ok := d.l.running()
		if !ok {
			return true
		}
		select {
		case <-d.l.changed:
		case <-c.Done():
			return false
		case <-ctx.Done():
			h, err := c.History(d.t.Context(), d.l.sessionOf(id), 20)
			d.l.fault("the model was not told that the command of %s has ended: %+v, %v", id, h.Messages, err)
			return false
		}
	}
}

// settle waits until the engine has finished every accepted message. It sends
// nothing, so that nothing else makes the engine look for work.
func (d *driver) settle() (ok bool) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	d.l.release(true)
	d.connect(ctx, true, func(c *client.Client) {
		ok = d.await(ctx, c, false) && d.awaitBackground(ctx, c) && d.awaitFamilies(ctx, c)
		if ok && d.work == familyWork {
			d.idle(ctx, c)
			d.answered(ctx, c)
		}
	})
	if !ok {
		for _, n := range d.l.open(false) {
			d.l.fault("message %d was accepted, but the next engine did not finish it: %+v", n, d.l.message(n))
		}
	}
	return ok
}

// finish lets an engine finish everything and checks the ledger.
func (d *driver) finish() {
	d.p.hold(true)
	p := spawn(d.t, d.dir, "", childPlatform+"="+d.url)
	if !d.settle() {
		p.kill()
		return
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), 60*time.Second)
	defer cancel()
	d.p.update(func() { d.p.held, d.p.exact = false, true })
	d.connect(ctx, true, func(c *client.Client) {
		for _, n := range d.clients(d.l.unaccepted()) {
			d.offer(ctx, c, n, false)
		}
		d.await(ctx, c, true)
		d.awaitBackground(ctx, c)
		d.awaitFamilies(ctx, c)
		if d.work == familyWork {
			d.idle(ctx, c)
			d.answered(ctx, c)
		}
		d.l.check(d.history(ctx, c))
		d.checkMoney(ctx, c)
	})
	p.stop(d.t)
}

// checkMoney compares the budget with the stored usage: what is not reserved for calls
// that a kill interrupted was used.
func (d *driver) checkMoney(ctx context.Context, c *client.Client) {
	var used wire.UsageReport
	var b wire.BudgetStatus
	if err := errors.Join(c.Call(ctx, wire.MethodUsageCost, wire.UsageCost{Mode: "gateway", Days: 1}, &used), c.Call(ctx, wire.MethodBudgetStatus, wire.BudgetGet{}, &b)); err != nil {
		d.t.Errorf("usage: %v", err)
		return
	}
	if len(b.Budgets) != 1 || b.Budgets[0].Spent == 0 || math.Abs(b.Budgets[0].Spent-used.Totals.Cost) > 1e-6 {
		d.t.Errorf("budget %+v, used %v", b.Budgets, used.Totals.Cost)
	}
	d.t.Logf("$%.4f are spent, and $%.4f reserved for calls that a kill interrupted", b.Budgets[0].Spent, b.Budgets[0].Held)
}

// shown is how often the histories that the engine shows have something.
type shown struct {
	users, answers map[int]int     // messages, or tasks of subagents, and their answers
	told           map[string]int  // results of subagents, by the id of the call that started it
	givenUp        map[string]bool // sessions with a turn that was given up
}

// history counts what the engine shows.
func (d *driver) history(ctx context.Context, c *client.Client) shown {
	s := shown{map[int]int{}, map[int]int{}, map[string]int{}, map[string]bool{}}
	for _, session := range d.l.sessions() {
		for offset := 0; ; {
			var h wire.History
			err := c.Call(ctx, wire.MethodChatHistory, wire.ChatHistory{SessionKey: session, Limit: 1000, Offset: offset}, &h)
			if err != nil {
				d.t.Fatal(err)
			}
			for _, m := range h.Messages {
				for _, found := range toldPattern.FindAllStringSubmatch(m.Text(), -1) {
					s.told[found[1]]++
				}
				if m.Role == wire.RoleSystem && strings.Contains(m.Text(), "given up") {
					s.givenUp[session] = true
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
			if !h.HasMore {
				break
			}
			offset = h.NextOffset
		}
	}
	return s
}
