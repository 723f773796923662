package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// household is a gateway whose model is a family, with its store.
type household struct {
	*family
	*Client
	g  *Gateway
	st store.Store
	t  testing.TB
}

// newHousehold starts a gateway. subagents is agents.defaults.subagents; "": the default.
func newHousehold(t testing.TB, subagents string, o Options) *household {
	t.Helper()
	h := &household{t: t, family: newFamily()}
	o.Model = h.family
	h.start(subagents, o)
	return h
}

// start starts a gateway with the model of the household.
func (h *household) start(subagents string, o Options) {
	h.t.Helper()
	if subagents != "" {
		conf := Config{}
		for name, raw := range o.Config {
			conf[name] = raw
		}
		conf["agents.defaults"] = merge(conf["agents.defaults"], `{"subagents": `+subagents+`}`)
		o.Config = conf
	}
	o.Wrap = func(s store.Store) store.Store { h.st = s; return s }
	h.g = Start(h.t, o)
	h.Client = h.g.Client()
}

// children returns all subagents.
func (h *household) children() []subagent.Child {
	h.t.Helper()
	list, err := store.Get(h.t.Context(), h.st,
		func(r store.Reader) ([]subagent.Child, error) { return r.Children().Recent(10_000) })
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// childWhere waits for the subagent with the label and the property.
func (h *household) childWhere(label string, is func(subagent.Child) bool) subagent.Child {
	h.t.Helper()
	var list []subagent.Child
	i := -1
	waittest.Until(h.t, "the subagent "+label, func() bool {
		list = h.children()
		i = slices.IndexFunc(list, func(c subagent.Child) bool { return c.Label == label && is(c) })
		return i >= 0
	})
	return list[i]
}

// rounds returns how often a test repeats a race: few times, or many if it is thorough.
func rounds(few, many int) int {
	if thorough() {
		return many
	}
	return few
}

func exists(subagent.Child) bool     { return true }
func hasEnded(c subagent.Child) bool { return !c.Open() }

// quiet waits until nothing is in progress or waits.
func (h *household) quiet() {
	h.t.Helper()
	for busy := h.busy(); busy != ""; { // as long as something changes
		last := busy
		waittest.Until(h.t, "an end of "+last, func() bool { busy = h.busy(); return busy != last })
	}
}

// busy says what is in progress or waits.
func (h *household) busy() (busy string) {
	h.t.Helper()
	err := h.st.View(h.t.Context(), func(r store.Reader) error {
		active, err1 := r.Runs().Active("")
		keys, err2 := r.Queue().Sessions()
		open, err3 := r.Children().Open("")
		if len(active)+len(keys)+len(open) > 0 {
			busy = fmt.Sprintf("runs %+v, waiting in %v, open %+v", active, keys, open)
		}
		return errors.Join(err1, err2, err3)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return busy
}

var tells = regexp.MustCompile(`^The subagent "([^"]+)" `)

// told counts, by label, the results of subagents in the transcript of a session.
func (h *household) told(key string) map[string]int {
	h.t.Helper()
	out := map[string]int{}
	for offset := 0; ; {
		var page wire.History
		h.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: key, Limit: 1000, Offset: offset}, &page)
		for _, m := range page.Messages {
			for _, found := range tells.FindAllStringSubmatch(m.Text(), -1) {
				out[found[1]]++
			}
		}
		if !page.HasMore {
			return out
		}
		offset = page.NextOffset
	}
}

// toldOnce checks that a session was told the results of the subagents with the labels
// once, and of no other one.
func (h *household) toldOnce(key string, labels ...string) {
	h.t.Helper()
	got := h.told(key)
	for _, l := range labels {
		if got[l] != 1 {
			h.t.Errorf("%s was told the result of %s %d times", key, l, got[l])
		}
		delete(got, l)
	}
	if len(got) > 0 {
		h.t.Errorf("%s was also told %v", key, got)
	}
}

// waiter is a tool that reads, and returns when gate is closed.
func waiter(name string, gate <-chan struct{}) tool.Tool {
	return reader{done{name, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		select {
		case <-gate:
			return tool.Text("went on"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}}}
}

// reader is a tool that only reads.
type reader struct{ done }

func (r reader) Spec() tool.Spec {
	return tool.Spec{Name: r.name, Description: "Wait.", Schema: json.RawMessage(`{"type":"object"}`), Effect: tool.Reads}
}

// TestSubagentFailures has subagents, their requesters and the person do things at the
// wrong time. Each result is told once or, where that is intended, not at all, and
// nothing is left to do.
func TestSubagentFailures(t *testing.T) {
	for mode, joins := range map[string]bool{
		"collect":       false,
		"followup":      false,
		"steer":         true,
		"steer-backlog": true,
		"interrupt":     false,
	} {
		t.Run("SUB-09 the requester is busy in mode "+mode, func(t *testing.T) {
			t.Parallel()
			gate := make(chan struct{})
			h := newHousehold(t, "", Options{Tools: []tool.Tool{waiter("stall", gate)}})
			h.Ask("main", "/queue "+mode)
			run := h.Send("main", task("say 1", "label", "kid")+"\nstall {}\nthen say first")
			h.childWhere("kid", hasEnded)
			close(gate)
			want := "first"
			if joins {
				want = "told kid ok"
			}
			if end := h.Await(run); end.State != wire.StateFinal || end.Text != want {
				t.Errorf("the run in progress: %s %q, want %q", end.State, end.Text, want)
			}
			if !joins {
				h.answer("told kid ok")
			}
			h.quiet()
			h.toldOnce("main", "kid")
		})
	}
	t.Run("the requester is deleted while its subagent runs", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, "", Options{})
		h.Ask("work", task("hold a\nsay 1", "label", "kid"))
		h.waitHeld(t, "a")
		h.must(wire.MethodSessionsDelete, wire.SessionsDelete{Key: "agent:main:work"}, nil)
		h.release("a")
		h.answer("told kid ok")
		h.quiet()
		h.toldOnce("main", "kid")
	})
	t.Run("the requester is deleted while a result waits for it", func(t *testing.T) {
		t.Parallel()
		gate := make(chan struct{})
		defer close(gate)
		h := newHousehold(t, "", Options{Tools: []tool.Tool{waiter("stall", gate)}})
		h.Ask("work", "/queue followup")
		h.Send("work", task("say 1", "label", "kid")+"\nstall {}")
		h.childWhere("kid", hasEnded)
		h.must(wire.MethodSessionsDelete, wire.SessionsDelete{Key: "agent:main:work"}, nil)
		h.answer("told kid ok")
		h.quiet()
		h.toldOnce("main", "kid")
	})
	t.Run("the requester is reset while its subagents run", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, `{"maxSpawnDepth": 2}`, Options{})
		h.Ask("main", task("hold a\nsay 1", "label", "kid")+"\n"+
			task(task("hold a\nsay 2", "label", "leaf")+"\nsessions_yield {}", "label", "boss"))
		h.waitHeld(t, "a")
		h.childWhere("leaf", exists)
		h.Ask("main", "/new")
		h.release("a")
		h.quiet()
		h.toldOnce("main")
		for _, c := range h.children() {
			if c.Silent != subagent.Stopped {
				t.Errorf("%s is %q: %s", c.Label, c.Silent, c.Outcome)
			}
		}
	})
	t.Run("the history of the requester is compacted while its subagent runs", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, "", Options{})
		h.Ask("main", "say something")
		h.Ask("main", task("hold a\nsay 1", "label", "kid"))
		h.waitHeld(t, "a")
		if got := h.Ask("main", "/compact"); got.State != wire.StateFinal {
			t.Errorf("compact: %s %q %s", got.State, got.Text, got.Error)
		}
		h.release("a")
		h.answer("told kid ok")
		h.quiet()
		h.toldOnce("main", "kid")
	})
	for name, f := range map[string]struct{ task, want, result string }{
		"a subagent that times out":                            {"hang", "timeout", ""},
		"a subagent whose tool panics":                         {"boom {}\nthen say survived", "ok", "survived"},
		"a subagent that answers nothing":                      {"say", "", ""},
		"a subagent whose tools ran, and that answers nothing": {"ls {}\nthen nothing", "", "AGENTS.md"},
		"a subagent whose tool does not exist":                 {"none {}\nthen say it is missing", "ok", "it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHousehold(t, "",
				Options{Tools: []tool.Tool{done{"boom", func(context.Context, tool.Call) (tool.Result, error) { panic("boom") }}}})
			more := []string{"label", "kid"}
			if f.want == "timeout" {
				more = append(more, "runTimeoutSeconds", "0.05")
			}
			h.Ask("main", task(f.task, more...))
			if got := h.answer("told "); !strings.HasPrefix(got, strings.TrimSpace("told kid "+f.want)) {
				t.Errorf("told %q", got)
			}
			h.quiet()
			h.toldOnce("main", "kid")
			if c := h.childWhere("kid", exists); !strings.Contains(c.Result, f.result) {
				t.Errorf("its result is %q", c.Result)
			}
		})
	}
	t.Run("a subagent that answers ANNOUNCE_SKIP is not told, and the turn that waits for it goes on", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, "", Options{})
		if end := h.Ask("main", task("say ANNOUNCE_SKIP", "label", "kid")+
			"\nsessions_yield {}\nthen say went on"); end.State != wire.StateFinal || end.Text != "went on" {
			t.Errorf("%s %q", end.State, end.Text)
		}
		h.quiet()
		h.toldOnce("main")
	})
	for name, end := range map[string]func(*household){
		"ends silently": func(h *household) { h.release("a") },
		"is killed": func(h *household) {
			h.must(wire.MethodTasksCancel, wire.TaskCancel{ID: string(h.childWhere("kid", exists).ID)}, nil)
			h.release("a")
		},
	} {
		t.Run("the subagent that a turn is about to wait for "+name, func(t *testing.T) {
			t.Parallel()
			var h *household
			var once sync.Once
			ready := make(chan struct{})
			h = newHousehold(t, "", Options{Step: func(step string) {
				if step == "run.suspend" {
					once.Do(func() {
						<-ready
						end(h)
						h.childWhere("kid", hasEnded)
					})
				}
			}})
			close(ready)
			if end := h.Ask("main", task("hold a\nsay ANNOUNCE_SKIP", "label", "kid")+
				"\nsessions_yield {}\nthen say went on"); end.State != wire.StateFinal || end.Text != "went on" {
				t.Errorf("%s %q", end.State, end.Text)
			}
			h.quiet()
			h.toldOnce("main")
		})
	}
	t.Run("SUB-10 a restart while subagents run, and while their turn waits for them", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			dir, gate := t.TempDir(), make(chan struct{})
			o := Options{Dir: dir, Tools: []tool.Tool{waiter("stall", gate)}}
			h := newHousehold(t, `{"maxSpawnDepth": 2}`, o)
			o.Model = h.family
			h.Ask("main", task("stall {}\nthen say 1", "label", "kid"))
			yielded := h.Send("work", task(task("stall {}\nthen say 2", "label", "leaf")+"\nsessions_yield {}", "label", "boss")+
				"\nsessions_yield {}")
			waittest.Until(t, "the subagents", func() bool {
				return h.childRequest("stall {}\nthen say 1") != nil && h.childRequest("stall {}\nthen say 2") != nil
			})
			h.g.Stop()
			h.start(`{"maxSpawnDepth": 2}`, o)
			close(gate)
			if w := h.waited(yielded); w.Status != wire.StatusOK || w.Reply == nil || w.Reply.Text != "told boss ok" {
				t.Errorf("the turn that waited: %+v", w)
			}
			h.quiet()
			h.toldOnce("main", "kid")
			h.toldOnce("work", "boss")
			h.toldOnce(string(h.childWhere("boss", exists).Session), "leaf")
		})
	})
	t.Run("SUB-27 a result for a subagent that has ended starts a turn there", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			defer close(gate)
			h := newHousehold(t, `{"maxSpawnDepth": 2}`, Options{Tools: []tool.Tool{waiter("stall", gate)}})
			h.Ask("main", task(task("hold x\nsay late", "label", "leaf")+"\nstall {}", "label", "boss", "runTimeoutSeconds",
				"5"))
			h.waitHeld(t, "x")
			if got := h.answer("told "); got != "told boss timeout" {
				t.Errorf("told %q", got)
			}
			h.release("x")
			h.childWhere("leaf", hasEnded)
			h.quiet()
			boss := string(h.childWhere("boss", exists).Session)
			h.toldOnce(boss, "leaf")
			h.toldOnce("main", "boss")
			if lines := h.lines(boss); lines[len(lines)-1] != "assistant: told leaf ok" {
				t.Errorf("the turn there ends with %q", lines[len(lines)-1])
			}
		})
	})
	t.Run("subagents that end at the same moment", func(t *testing.T) {
		t.Parallel()
		const n = 5
		for range rounds(3, 10) {
			var ends, armed atomic.Int64
			all := make(chan struct{})
			h := newHousehold(t, "", Options{Step: func(step string) {
				if step == "run.end" && armed.Load() == 1 {
					if ends.Add(1) == n {
						armed.Store(2)
						close(all) // their commits become one
					}
					<-all
				}
			}})
			var tasks, labels []string
			for i := range n {
				labels = append(labels, fmt.Sprint("kid", i))
				tasks = append(tasks, task(fmt.Sprintf("hold %d\nsay %d", i, i), "label", labels[i]))
			}
			h.Ask("main", strings.Join(tasks, "\n"))
			for i := range n {
				h.waitHeld(t, fmt.Sprint(i))
			}
			armed.Store(1)
			for i := range n {
				h.release(fmt.Sprint(i))
			}
			h.quiet()
			h.toldOnce("main", labels...)
			h.g.Stop()
		}
	})
	t.Run("many subagents that each start one", func(t *testing.T) {
		t.Parallel()
		parents, each := rounds(2, 4), rounds(8, 16)
		var now, most atomic.Int64
		var once sync.Once
		two := make(chan struct{}) // closed when two work at once
		gauge := reader{done{"gauge", func(context.Context, tool.Call) (tool.Result, error) {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == 2 {
				once.Do(func() { close(two) })
			}
			<-two
			time.Sleep(2 * time.Millisecond)
			now.Add(-1)
			return tool.Text("measured"), nil
		}}}
		h := newHousehold(t, fmt.Sprintf(`{"maxSpawnDepth": 2, "maxChildrenPerAgent": %d, "maxConcurrent": 6}`, each),
			Options{Tools: []tool.Tool{gauge}})
		want := map[string][]string{}
		var runs []string
		for p := range parents {
			var tasks []string
			for i := range each {
				id := fmt.Sprintf("%d-%d", p, i)
				want[fmt.Sprint("p", p)] = append(want[fmt.Sprint("p", p)], "boss"+id)
				tasks = append(tasks, task("hold all\ngauge {}\n"+task("gauge {}\nthen say "+id, "label", "leaf"+id),
					"label", "boss"+id))
			}
			tasks = append(tasks, task("say too many", "label", fmt.Sprint("over", p)))
			runs = append(runs, h.Send(fmt.Sprint("p", p), strings.Join(tasks, "\n")))
		}
		h.awaitAll(runs...) // all were started
		h.release("all")
		h.quiet()
		all := h.children()
		if n := len(all); n != 2*parents*each { // none of those above the limit
			t.Errorf("%d subagents", n)
		}
		if n := most.Load(); n > 6 {
			t.Errorf("%d worked at once", n)
		}
		for key, labels := range want {
			h.toldOnce(key, labels...)
		}
		for _, c := range all {
			if id, ok := strings.CutPrefix(c.Label, "boss"); ok {
				h.toldOnce(string(c.Session), "leaf"+id)
			}
			if c.Outcome != chela.OutcomeOK {
				t.Errorf("%s: %s %s", c.Label, c.Outcome, c.Error)
			}
		}
	})
	t.Run("a kill that races a subagent's starts of others leaves nothing behind", func(t *testing.T) {
		t.Parallel()
		// The kill is sent when a start begins, each time a later one.
		var starts atomic.Int64 // left until the kill is sent
		var now chan struct{}
		h := newHousehold(t, `{"maxSpawnDepth": 2, "maxChildrenPerAgent": 20}`, Options{Step: func(step string) {
			if step == "tool.start" && starts.Add(-1) == 0 {
				close(now)
			}
		}})
		n := rounds(16, 64)
		for i := range n {
			hold := fmt.Sprint("round ", i)
			lines := []string{"hold " + hold}
			for range 8 {
				lines = append(lines, task("hang"))
			}
			boss := fmt.Sprint("boss", i)
			h.Ask("main", task(strings.Join(lines, "\n"), "label", boss))
			h.waitHeld(t, hold)
			now = make(chan struct{})
			starts.Store(int64(1 + i%8))
			h.release(hold)
			waittest.For(t, "the start", now)
			h.Ask("main", "/kill "+boss)
		}
		h.quiet()
		h.toldOnce("main")
		started := 0
		for _, c := range h.children() {
			if c.Silent != subagent.Stopped {
				t.Errorf("%s is %q: %s", c.Label, c.Silent, c.Outcome)
			}
			if c.Label[0] != 'b' {
				started++
			}
		}
		if started < n/8 || thorough() && started == n*8 { // seven of every eighth boss were started before its kill
			t.Errorf("no kill came while subagents were started: %d", started)
		}
	})
	t.Run("two kills of a subagent at once", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, "", Options{})
		other := h.g.Client()
		n := rounds(5, 20)
		for i := range n {
			label := fmt.Sprint("kid", i)
			h.Ask("main", task("hang", "label", label))
			id := string(h.childWhere(label, exists).ID)
			var kills [2]wire.TaskStopped
			var both sync.WaitGroup
			for k, c := range []*Client{h.Client, other} {
				both.Go(func() { c.must(wire.MethodTasksCancel, wire.TaskCancel{ID: id}, &kills[k]) })
			}
			both.Wait()
			if !kills[0].Found || !kills[1].Found || !kills[0].Cancelled && !kills[1].Cancelled {
				t.Errorf("kills %+v", kills)
			}
		}
		h.quiet()
		h.toldOnce("main")
		m, err := store.Get(t.Context(), h.st,
			func(r store.Reader) (session.Meta, error) { return r.Sessions().Get("agent:main:main") })
		if err != nil || m.Children.Runs != n {
			t.Errorf("the usage of %d subagents was counted, %v", m.Children.Runs, err)
		}
	})
	t.Run("a message to a subagent that ends is heard or refused", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, "", Options{})
		chance := rand.New(rand.NewPCG(randomSeed(t), 0))
		heard := 0
		var labels []string
		for i := range rounds(10, 40) {
			hold, label := fmt.Sprint("steered ", i), fmt.Sprint("kid", i)
			labels = append(labels, label)
			h.Ask("main", task("hold "+hold+"\nsay 1", "label", label))
			h.waitHeld(t, hold)
			if i > 0 {
				time.AfterFunc(time.Duration(chance.IntN(4_000_000)), func() { h.release(hold) })
			}
			note := fmt.Sprintf("note %d.", i)
			end := h.Ask("main", "/steer "+label+" "+note)
			if i == 0 { // this message comes in time
				h.release(hold)
			}
			switch {
			case strings.HasPrefix(end.Text, "Sent to the subagent"):
				heard++
				h.childWhere(label, hasEnded)
				if !h.heard(note) {
					t.Errorf("%s did not hear the message", label)
				}
			// it has ended, so that its label is text
			case strings.HasPrefix(end.Text, "answer to "+label), strings.HasPrefix(end.Text, "told "+label):
			case !strings.Contains(end.Text, "has ended"):
				t.Errorf("%s: %q", label, end.Text)
			}
			h.quiet() // or the next message would join the turn that is told
		}
		h.toldOnce("main", labels...)
		if heard == 0 {
			t.Error("the first message was not heard")
		}
		if end := h.Ask("main", `subagents {"action":"steer","target":"kid0","message":"late"}`); !strings.Contains(
			end.Text, "has ended") {
			t.Errorf("after the end: %q", end.Text)
		}
	})
	t.Run("subagents whose requesters form a cycle", func(t *testing.T) {
		t.Parallel()
		h := newHousehold(t, `{"maxSpawnDepth": 3}`, Options{})
		h.Ask("main", task("hang", "label", "kid"))
		kid := h.childWhere("kid", exists)
		keys := [2]chela.SessionKey{"agent:main:subagent:one", "agent:main:subagent:two"}
		err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error { // the product does not make these rows
			var errs []error
			for i, key := range keys {
				c := kid
				c.ID, c.Session, c.Requester, c.Label = chela.RunID(fmt.Sprint("cycle", i)), key, keys[1-i], fmt.Sprint("cycle", i)
				m := session.Meta{
					Key:     key,
					ID:      fmt.Sprint("t", i),
					Agent:   "main",
					Created: time.Now(),
					Bounds:  session.Bounds{SpawnedBy: keys[1-i], Depth: 1},
				}
				errs = append(errs, tx.Children().Put(c), tx.Sessions().Put(m))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
		var stopped wire.TaskStopped
		h.must(wire.MethodTasksCancel, wire.TaskCancel{ID: "cycle0"}, &stopped)
		if !stopped.Cancelled {
			t.Errorf("cancel: %+v", stopped)
		}
		h.must(wire.MethodSessionsDelete, wire.SessionsDelete{Key: string(keys[0])}, nil)
		h.must(wire.MethodSessionsDelete, wire.SessionsDelete{Key: string(keys[1])}, nil)
		h.Ask("main", "/stop")
		h.quiet()
		for _, c := range h.children() {
			if c.Silent != subagent.Stopped {
				t.Errorf("%s is %q: %s", c.Label, c.Silent, c.Outcome)
			}
		}
	})
	t.Run("R22 a model that starts subagents for ever is ended with one message", func(t *testing.T) {
		t.Parallel()
		var serial atomic.Int64
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			n := serial.Add(1)
			return llmtest.Call(fmt.Sprint("c", n), "sessions_spawn", fmt.Sprintf(`{"task":"go on %d"}`, n))
		})
		h := &household{t: t, family: &family{Script: model}}
		h.start(`{"maxSpawnDepth": 2}`,
			Options{Model: model, Config: Config{"agents.defaults": json.RawMessage(`{"budget": {"failures": 3}}`)}})
		end := h.Ask("main", "start subagents for ever")
		if end.State != wire.StateError || !strings.Contains(end.Error, "tool calls in a row failed") {
			t.Errorf("%s: %q", end.State, end.Error)
		}
		h.quiet()
		notices := 0
		for _, ev := range end.Seen {
			var e wire.Chat
			if ev.Name == wire.EventChat && ev.Decode(&e) == nil && e.RunID == end.Run && e.ErrorMessage != "" {
				notices++
			}
		}
		if all := len(h.children()); notices != 1 || all != subagent.MaxTree {
			t.Errorf("%d messages, %d subagents", notices, all)
		}
	})
}
