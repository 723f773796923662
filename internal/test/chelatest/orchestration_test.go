package chelatest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// tree is a gateway with a model for a session and its subagents, whose store the test
// can read.
type tree struct {
	*family
	*Client
	*Gateway
	t  *testing.T
	st store.Store
}

// newTree starts a gateway. o may have everything but a model.
func newTree(t *testing.T, o Options) *tree {
	t.Helper()
	tr := &tree{family: newFamily(), t: t}
	o.Model = tr.family
	o.Wrap = func(s store.Store) store.Store { tr.st = s; return s }
	tr.Gateway = Start(t, o)
	tr.Client = tr.Gateway.Client()
	return tr
}

// subagents is a configuration with settings of subagents.
func subagents(settings string) Config {
	return section("agents.defaults", `{"subagents": `+settings+`}`)
}

// waitEnded waits until the subagent with the label has ended, and returns its record.
func (tr *tree) waitEnded(label string) (c subagent.Child) {
	tr.t.Helper()
	waittest.Until(tr.t, "the end of the subagent "+label,
		func() bool { c = tr.child(label); return c.ID != "" && !c.Open() })
	return c
}

// settle waits until the main session has told all results: a message that is sent
// earlier would be answered together with them.
func (tr *tree) settle() {
	tr.t.Helper()
	waittest.Until(tr.t, "the end of the work of the main session", func() bool {
		busy, err := store.Get(tr.t.Context(), tr.st, func(r store.Reader) (int, error) {
			items, err1 := r.Queue().Waiting("agent:main:main")
			active, err2 := r.Runs().Active("agent:main:main")
			return len(items) + len(active), errors.Join(err1, err2)
		})
		if err != nil {
			tr.t.Fatal(err)
		}
		return busy == 0
	})
}

// child returns the record of the newest subagent with the label.
func (tr *tree) child(label string) subagent.Child {
	tr.t.Helper()
	list, err := store.Get(tr.t.Context(), tr.st,
		func(r store.Reader) ([]subagent.Child, error) { return r.Children().Recent(100) })
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, c := range list {
		if c.Label == label {
			return c
		}
	}
	return subagent.Child{}
}

// waiting returns the items that wait in the queue of a session.
func (tr *tree) waiting(key chela.SessionKey) []queue.Item {
	tr.t.Helper()
	items, err := store.Get(tr.t.Context(), tr.st,
		func(r store.Reader) ([]queue.Item, error) { return r.Queue().Waiting(key) })
	if err != nil {
		tr.t.Fatal(err)
	}
	return items
}

// results returns the results of tools in the last request of the subagent with the
// task.
func (tr *tree) results(task string) (out []string) {
	for _, r := range tr.Requests() {
		if r.Messages[0].PlainText() != task {
			continue
		}
		out = nil
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool {
				out = append(out, m.PlainText())
			}
		}
	}
	return out
}

func TestOrchestration(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"SUB-17 a leaf sees the subagents of its requester and cannot stop them":           leafLists,
		"SUB-20 role and scope are those of the depth, by key and by id, after a restart":  rolesByDepth,
		"SUB-24 the depth is the stored one, the parent's plus one, or that of the key":    depths,
		"MODEL-07 subagents use the configured model unless the spawn names one":           childModel,
		"THINK-05 subagents have the configured thinking level unless the spawn names one": childThinking,
		"SEED-04 a result starts a turn of an idle session, and waits for a busy one":      busAndQueue,
		"E2E-04 three labelled subagents, three results, one report":                       parallelResearch,
		"E2E-05 an orchestrator merges the results of three workers, and main reports":     orchestrator,
		"E2E-07 a long command ends while the chat goes on, and is reported unasked":       longJob,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t) })
	}
}

func leafLists(t *testing.T) {
	tr := newTree(t, Options{})
	look := `subagents {"action":"list"}` + "\n" + `subagents {"action":"kill","target":"worker"}` + "\n" +
		`subagents {"action":"steer","target":"worker","message":"hurry"}`
	tr.Ask("main", task("hold a\nsay done", "label", "worker"))
	tr.waitHeld(t, "a")
	tr.Ask("main", task(look, "label", "looker"))
	tr.answer("told looker ok")
	got := tr.results(look)
	if len(got) != 3 {
		t.Fatalf("results %q", got)
	}
	if !strings.Contains(got[0], `"requester":"agent:main:main"`) || !strings.Contains(got[0], `"label":"worker"`) ||
		!strings.Contains(got[0], `"status":"running"`) {
		t.Errorf("list: %s", got[0])
	}
	for _, refused := range got[1:] {
		if !strings.Contains(refused, "a leaf subagent can list the subagents of its requester, but not stop or steer them") {
			t.Errorf("refused with %q", refused)
		}
	}
	if c := tr.child("worker"); !c.Open() {
		t.Errorf("the worker is %s", c.Status())
	}
	tr.release("a")
	if got := tr.answer("told "); got != "told worker ok" {
		t.Errorf("told %q", got)
	}
}

func rolesByDepth(t *testing.T) {
	tr := newTree(t, Options{Config: subagents(`{"maxSpawnDepth": 2}`)})
	tr.Ask("main", task(task("say leaf", "label", "leaf")+"\nsessions_yield {}", "label", "boss"))
	tr.answer("told boss ok")
	boss, leaf := tr.child("boss"), tr.child("leaf")
	type standing struct {
		By, Role, Scope string
		Depth           int
	}
	check := func(when string) {
		t.Helper()
		for key, want := range map[chela.SessionKey]standing{
			"agent:main:main": {"", "", "children", 0}, // no role: the protocol has none for the main session
			boss.Session:      {"agent:main:main", "orchestrator", "children", 1},
			leaf.Session:      {string(boss.Session), "leaf", "none", 2},
		} {
			row := tr.describe(string(key))
			var found wire.SessionResolved
			tr.must(wire.MethodSessionsResolve, wire.SessionsResolve{SessionID: row.SessionID}, &found)
			for by, r := range map[string]wire.Session{"key": row, "id": tr.describe(found.Key)} {
				if got := (standing{r.SpawnedBy, r.Role, r.ControlScope, r.SpawnDepth}); got != want || r.Key != string(key) {
					t.Errorf("%s, %s by %s: %+v, want %+v", when, key, by, got, want)
				}
			}
		}
	}
	check("before")
	tr.Client.Close()
	tr.Stop()
	tr.Gateway = Start(t, Options{Dir: tr.Dir, Model: tr.family, Config: subagents(`{"maxSpawnDepth": 2}`)})
	tr.Client = tr.Gateway.Client()
	check("after a restart")
}

// depths writes sessions as other programs could have left them, and has each start a
// subagent.
func depths(t *testing.T) {
	tr := newTree(t, Options{Config: subagents(`{"maxSpawnDepth": 3}`)})
	metas := map[string]session.Meta{
		"stored":          {Key: "agent:main:s", Bounds: session.Bounds{Depth: 2, SpawnedBy: "agent:main:main"}},
		"of the parent":   {Key: "agent:main:p", Bounds: session.Bounds{SpawnedBy: "agent:main:s"}},
		"in a cycle":      {Key: "agent:main:subagent:a", Bounds: session.Bounds{SpawnedBy: "agent:main:b"}},
		"the other one":   {Key: "agent:main:b", Bounds: session.Bounds{SpawnedBy: "agent:main:subagent:a"}},
		"without a start": {Key: "agent:main:subagent:m", Bounds: session.Bounds{SpawnedBy: "agent:main:gone"}},
		"of the key":      {Key: "agent:main:subagent:x:subagent:y"},
		"of another key":  {Key: "agent:main:z"},
	}
	err := tr.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		for _, m := range metas {
			m.ID, m.Agent, m.Created = string(m.Key), "main", time.Now()
			if err := tx.Sessions().Put(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"stored":          2,
		"of the parent":   3,
		"in a cycle":      1,
		"the other one":   0,
		"without a start": 1,
		"of the key":      2,
		"of another key":  0,
	} {
		m := metas[name]
		got, err := store.Get(t.Context(), tr.st, func(r store.Reader) (int, error) {
			m, err := r.Sessions().Get(m.Key)
			if err != nil {
				return 0, err
			}
			return session.DepthIn(r.Sessions(), m)
		})
		if err != nil || got != want {
			t.Errorf("%s: depth %d, %v, want %d", name, got, err, want)
		}
		if name == "of another key" {
			continue
		}
		end := tr.Ask(string(m.Key), "/subagents spawn say done")
		row := tr.child("Task 1")
		switch {
		case want == 3 && !strings.Contains(end.Text, "a session at depth 3 cannot start subagents"):
			t.Errorf("%s: %q", name, end.Text)
		case want < 3 && (row.Requester != m.Key || tr.describe(string(row.Session)).SpawnDepth != want+1):
			t.Errorf("%s: %q, depth of the subagent %d", name, end.Text, tr.describe(string(row.Session)).SpawnDepth)
		}
	}
}

func childModel(t *testing.T) {
	conf := subagents(`{"model": {"primary": "mock/small"}}`)
	conf["models"] = json.RawMessage(
		`{"providers": {"mock": {"models": [{"id": "m"}, {"id": "small"}, {"id": "large"}]}}}`)
	tr := newTree(t, Options{Config: conf})
	tr.Ask("main", task("say 1", "label", "a")+"\n"+task("say 2", "label", "b", "model", "mock/large"))
	tr.waitEnded("a")
	tr.waitEnded("b")
	got := [3]string{tr.Requests()[0].Model, tr.childRequest("say 1").Model, tr.childRequest("say 2").Model}
	if want := [3]string{"m", "small", "large"}; got != want {
		t.Errorf("models of the session, of a subagent and of one with a model: %v, want %v", got, want)
	}
}

func childThinking(t *testing.T) {
	conf := subagents(`{"thinking": "medium"}`)
	conf["models"] = json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m", "reasoning": true}]}}}`)
	tr := newTree(t, Options{Config: conf})
	tr.Ask("main", "/think low")
	tr.Ask("main", task("say 1", "label", "a")+"\n"+task("say 2", "label", "b", "thinking", "high"))
	tr.waitEnded("a")
	tr.waitEnded("b")
	tr.settle()
	tr.Ask("main", "say again")
	all := tr.Requests()
	got := [4]llm.Level{all[0].Thinking, tr.childRequest("say 1").Thinking, tr.childRequest("say 2").Thinking,
		all[len(all)-1].Thinking}
	if want := [4]llm.Level{"low", "medium", "high", "low"}; got != want {
		t.Errorf("levels of the session, of a subagent, of one with a level, and of the session: %v, want %v", got, want)
	}
}

// busAndQueue checks that a result takes exactly one way: an idle session begins a turn
// with it, a busy one finds it in its queue.
func busAndQueue(t *testing.T) {
	tr := newTree(t, Options{Config: section("messages", `{"queue": {"mode": "collect"}}`)})
	const key = "agent:main:main"
	tr.Ask("main", task("hold idle\nsay 0", "label", "idle"))
	tr.release("idle")
	if got := tr.answer("told "); got != "told idle ok" {
		t.Errorf("told %q", got)
	}
	if got := tr.waiting(key); len(got) != 0 {
		t.Errorf("%d items wait for an idle session", len(got))
	}

	tr.Ask("main", task("hold second\nsay 2", "label", "second")+"\n"+task("hold first\nsay 1", "label", "first"))
	id := tr.Send("main", "hold busy\nsay I was busy")
	tr.waitHeld(t, "busy")
	for _, label := range []string{"first", "second"} {
		tr.release(label)
		tr.waitEnded(label)
	}
	var queued []string
	for _, it := range tr.waiting(key) {
		queued = append(queued, it.Key)
	}
	if want := []string{tr.child("first").AnnounceKey(), tr.child("second").AnnounceKey()}; !slices.Equal(queued, want) {
		t.Errorf("a busy session has %q in its queue, want %q", queued, want)
	}
	tr.release("busy")
	if end := tr.Await(id); end.Text != "I was busy" {
		t.Errorf("%s %q", end.State, end.Text)
	}
	if got := tr.answer("told "); got != "told first ok, second ok" {
		t.Errorf("told %q", got)
	}
	if got := tr.waiting(key); len(got) != 0 {
		t.Errorf("%d items wait in the end", len(got))
	}
	all := tr.Requests()
	var text strings.Builder
	for _, m := range all[len(all)-1].Messages {
		text.WriteString(m.PlainText() + "\n")
	}
	first, second := strings.Index(text.String(), `The subagent "first"`),
		strings.Index(text.String(), `The subagent "second"`)
	if first < 0 || second < first || strings.Count(text.String(), `The subagent "`) != 3 {
		t.Errorf("the model got the results at %d and %d:\n%s", first, second, text.String())
	}
}

func parallelResearch(t *testing.T) {
	tr := newTree(t, Options{})
	tr.merge = true
	id := tr.Send("main", task("hold sources\nsay 12 sources", "label", "sources")+"\n"+
		task("hold prices\nsay 40 to 60", "label", "prices")+"\n"+
		task("hold law\nsay allowed", "label", "law")+"\nsessions_yield {}")
	for _, name := range []string{"sources", "prices", "law"} { // all work at the same time
		tr.waitHeld(t, name)
	}
	for _, name := range []string{"law", "sources", "prices"} {
		tr.release(name)
		tr.waitEnded(name)
	}
	end := tr.Await(id)
	if end.State != wire.StateFinal || end.Text != "merged 12 sources, 40 to 60, allowed" {
		t.Errorf("%s: %q %s", end.State, end.Text, end.Error)
	}
	tr.Ask("main", "say good")
	all := tr.Requests()
	for _, name := range []string{"sources", "prices", "law"} {
		if n := strings.Count(requestText(all[len(all)-1]), `The subagent "`+name+`" has finished`); n != 1 {
			t.Errorf("the result of %s was told %d times", name, n)
		}
	}
	answers := 0
	for _, line := range tr.lines("main") {
		if strings.HasPrefix(line, "assistant: merged") {
			answers++
		}
	}
	if answers != 1 {
		t.Errorf("%d reports in %q", answers, tr.lines("main"))
	}
}

// requestText returns the texts of the messages of a request.
func requestText(r *llm.Request) string { return strings.Join(said(r), "\n") }

func orchestrator(t *testing.T) {
	tr := newTree(t, Options{Config: subagents(`{"maxSpawnDepth": 2}`)})
	tr.merge = true
	boss := task("hold a\nsay part one", "label", "w1") + "\n" + task("hold b\nsay part two", "label", "w2") + "\n" +
		task("hold c\nsay part three", "label", "w3") + "\nsessions_yield {}"
	tr.Ask("main", task(boss, "label", "coordinator"))
	for _, name := range []string{"a", "b", "c"} {
		tr.waitHeld(t, name)
	}
	if end := tr.Ask("main", "say free"); end.Text != "free" {
		t.Errorf("the chat is not free: %s %q", end.State, end.Text)
	}
	for _, name := range []string{"c", "a", "b"} {
		tr.release(name)
	}
	const parts = "merged part one, part three, part two"
	if got := tr.waitEnded("coordinator").Result; got != parts {
		t.Errorf("the coordinator answers %q", got)
	}
	tr.answer("merged merged part one")
	for _, label := range []string{"w1", "w2", "w3"} {
		if c := tr.child(label); c.Requester != tr.child("coordinator").Session || c.Outcome != chela.OutcomeOK {
			t.Errorf("%s: %s by %s", label, c.Outcome, c.Requester)
		}
	}
	reports := 0
	for _, line := range tr.lines("main") {
		if line == "assistant: merged "+parts {
			reports++
		}
	}
	if reports != 1 {
		t.Errorf("%d reports in %q", reports, tr.lines("main"))
	}
}

// eventModel returns a model that uses tools and repeats the events it is told.
func eventModel() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if text, ok := strings.CutPrefix(last.PlainText(), "[System] "); ok {
			return llmtest.Say("heard: " + text)
		}
		if last.Role == llm.RoleTool {
			return llmtest.Say(last.PlainText())
		}
		name, args, _ := strings.Cut(last.PlainText(), " ")
		return llmtest.Call("c"+last.PlainText()[:1]+time.Now().Format("150405.000000"), name, args)
	})
}

func longJob(t *testing.T) {
	g := Start(t, Options{Model: eventModel(), Config: full()})
	c := g.Client()
	end := c.Ask("main", `exec {"command":"until [ -e go ]; do sleep 0.01; done; echo 42 files copied","background":true}`)
	if !strings.Contains(end.Text, "still running in the background") {
		t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
	}
	if end := c.Ask("main", `ls {}`); end.State != wire.StateFinal || !strings.Contains(end.Text, "AGENTS.md") {
		t.Errorf("the chat does not go on: %s %q", end.State, end.Text)
	}
	before := len(c.lines("main"))
	if err := os.WriteFile(filepath.Join(g.Dir, "workspace", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := c.answer("heard: ")
	if !strings.Contains(got, "42 files copied") || !strings.Contains(got, "exit code 0") {
		t.Errorf("heard %q", got)
	}
	if after := c.lines("main")[before:]; len(after) == 0 || strings.HasPrefix(after[len(after)-1], "user:") {
		t.Errorf("the history goes on with %q", after)
	}
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	model := llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
		if n == 3 {
			return llmtest.Status(400, "context length exceeded: 250000 tokens")
		}
		return llmtest.Say(fmt.Sprint("answer ", n))
	})
	c := Start(t, Options{Model: model}).Client()
	for i := range 3 {
		c.Ask("main", fmt.Sprint("message ", i))
	}
	end := c.Ask("main", "the last message")
	t.Run("LOOP-09 an overflow is answered by a cut, and the same message is sent again", func(t *testing.T) {
		if end.State != wire.StateFinal || end.Text != "answer 4" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		all := model.Requests()
		if len(all) != 5 {
			t.Fatalf("%d model calls, want 5", len(all))
		}
		first, again := said(all[3]), said(all[4])
		if len(again) >= len(first) || again[len(again)-1] != "user: the last message" ||
			!slices.Equal(again, first[len(first)-len(again):]) {
			t.Errorf("sent %q, then %q", first, again)
		}
		replies, users := 0, 0
		for _, ev := range end.Seen {
			var chat wire.Chat
			if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.RunID == end.Run && chat.State != wire.StateDelta {
				replies++
			}
		}
		for _, line := range c.lines("main") {
			if line == "user: the last message" {
				users++
			}
		}
		if replies != 1 || users != 1 || !slices.Contains(c.lines("main"), "user: message 0") {
			t.Errorf("%d replies; history %q", replies, c.lines("main"))
		}
	})
	t.Run("EVT-06 a compaction event comes between the start and the end", func(t *testing.T) {
		var phases []string
		for _, l := range traceOf(t, end.Seen, end.Run).lifecycle {
			phases = append(phases, l.Phase)
		}
		if want := []string{wire.PhaseStart, wire.PhaseModel, wire.PhaseCompaction, wire.PhaseModel,
			wire.PhaseEnd}; !slices.Equal(phases, want) {
			t.Errorf("phases %q, want %q", phases, want)
		}
	})
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	t.Run("LOOP-24 the outcome of a run has its texts in order, its calls, and its usage", func(t *testing.T) {
		first := llmtest.Step{Parts: []llm.Part{
			llm.Text("I look."),
			{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c1", Name: "ls", Args: json.RawMessage(`{"path":"."}`)}},
			{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "c2", Name: "read", Args: json.RawMessage(`{"path":"none.txt"}`)}},
		}, Usage: &llm.Usage{Input: 100, Output: 10}}
		last := llmtest.Say("There is none.")
		last.Usage = &llm.Usage{Input: 200, Output: 20}
		c := Start(t, Options{Model: llmtest.NewScript(llmtest.Say("before"), first, last)}).Client()
		c.Ask("main", "hello")
		end := c.Ask("main", "what is there?")

		var texts, ids []string
		var used [2]int64
		for _, m := range c.messages("main") {
			if m.Meta.RunID != end.Run || m.Role != wire.RoleAssistant {
				continue
			}
			texts = append(texts, m.Text())
			for _, p := range m.Content {
				if p.Type == wire.ContentCall {
					ids = append(ids, p.Name+" "+p.ID)
				}
			}
			if m.Usage != nil {
				used[0], used[1] = used[0]+m.Usage.Input, used[1]+m.Usage.Output
			}
		}
		if diff := cmp.Diff([]string{"I look.", "There is none."}, texts) +
			cmp.Diff([]string{"ls c1", "read c2"}, ids); diff != "" {
			t.Error(diff)
		}
		if used != [2]int64{300, 30} {
			t.Errorf("usage %v, want 300 in and 30 out", used)
		}
		var list wire.ToolsCalls
		c.must(wire.MethodToolsCalls, wire.ToolsCallsGet{RunID: end.Run}, &list)
		slices.Reverse(list.Calls)
		var got []string
		for _, k := range list.Calls {
			got = append(got, fmt.Sprintf("%s %s %s", k.Tool, k.Args, k.Outcome))
			if k.ID == "" || k.RunID != end.Run || k.DurationMs < 0 {
				t.Errorf("record %+v", k)
			}
		}
		if diff := cmp.Diff([]string{`ls {"path":"."} ok`, `read {"path":"none.txt"} error`}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestChildCredentials(t *testing.T) {
	t.Run("SUB-28 a subagent of another agent uses that agent's keys first, then the shared ones", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			shared, own := filepath.Join(dir, "credentials"), filepath.Join(dir, "credentials", "ops")
			files := map[string]string{
				filepath.Join(shared, "anthropic.key"):       "shared-default",
				filepath.Join(shared, "anthropic.spare.key"): "shared-spare",
				filepath.Join(own, "anthropic.key"):          "ops-default", filepath.Join(own, "anthropic.team.key"): "ops-team",
			}
			for path, text := range files {
				plant(t, path, text)
			}
			first := testServices()[0]
			var asked []string // of the subagent
			var parent []string
			all, hc := network(t, func(_ string, _ int, got llmtest.ReceivedRequest) llmtest.Step {
				switch {
				case bytes.Contains(got.Body, []byte("# Subagent Context")):
					asked = append(asked, keyOf(got))
					if keyOf(got) != "shared-spare" {
						return llmtest.Status(401, "invalid key")
					}
					return llmtest.Say("done")
				case bytes.Contains(got.Body, []byte("The subagent ")):
					return llmtest.Say("told")
				case bytes.Contains(got.Body, []byte("call_spawn")):
					return llmtest.Say("started")
				}
				parent = append(parent, keyOf(got))
				return llmtest.Call("call_spawn", "sessions_spawn", `{"task":"x","agentId":"ops"}`)
			})
			conf := asks(`{"subagents": {"allowAgents": ["ops"]}}`, first.ref())
			conf["agents.list"] = json.RawMessage(`[{"id": "main"}, {"id": "ops"}]`)
			g := Start(t, Options{Dir: dir, HTTP: hc, Config: conf})
			c := g.Client()
			c.Ask("main", "go")
			if got := c.answer("told"); got != "told" {
				t.Errorf("answer %q", got)
			}
			if want := []string{"ops-default", "ops-team", "shared-spare"}; !slices.Equal(asked, want) {
				t.Errorf("the subagent used %q, want %q", asked, want)
			}
			if !slices.Equal(parent, []string{"shared-default"}) {
				t.Errorf("the session used %q", parent)
			}
			for path, want := range files {
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
			c.Close()
			g.Stop()
			all.close()
		})
	})
}
