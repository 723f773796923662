package chelatest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/plan"
	"github.com/chela-ai/chela/wire"
)

// Two states of a plan.
const (
	firstPlan  = `plan {"steps":[{"id":"read","title":"read the code","state":"in_progress"},{"id":"fix","title":"fix it","after":["read"]}]}`
	secondPlan = `plan {"steps":[{"id":"read","title":"read the code","state":"completed"},{"id":"fix","title":"fix it","state":"in_progress","after":["read"]}]}`
	lastPlan   = `plan {"steps":[{"id":"read","title":"read the code","state":"completed"},{"id":"fix","title":"fix it","state":"completed","after":["read"]}]}`
)

// own returns the requests that are not those of subagents.
func (f *family) own() []*llm.Request {
	return slices.DeleteFunc(f.Requests(),
		func(r *llm.Request) bool { return strings.Contains(systemOf(r), "# Subagent Context") })
}

// note returns the note of the last request, and checks that its system prompt is that of
// the first request.
func (f *family) note(t testing.TB) string {
	t.Helper()
	all := f.own()
	first, last := all[0], all[len(all)-1]
	if len(last.System) != 2 || !last.System[0].Cache || last.System[1].Cache || systemOf(last) != systemOf(first) {
		t.Errorf("the system prompt changed, or its first part is not the only cached one: %d blocks", len(last.System))
	}
	return last.Note
}

// planOf returns the plan in an event; nil if the event is another one.
func planOf(t testing.TB, e wire.Event) *wire.Plan {
	t.Helper()
	var a wire.Agent
	if e.Name != wire.EventAgent || e.Decode(&a) != nil || a.Stream != wire.StreamPlan {
		return nil
	}
	p := new(wire.Plan)
	if err := json.Unmarshal(a.Data, p); err != nil {
		t.Fatal(err)
	}
	p.UpdatedAt = 0
	return p
}

func TestPlan(t *testing.T) {
	t.Run("the model writes it, and clients are told of each change", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: newFamily()})
		c := g.Client()
		var seen []*wire.Plan
		for _, text := range []string{firstPlan, firstPlan, secondPlan} {
			end := c.Ask("main", text)
			for _, e := range end.Seen {
				if p := planOf(t, e); p != nil {
					seen = append(seen, p)
				}
			}
		}
		planned := func(title, read, fix string) *wire.Plan {
			return &wire.Plan{Phase: "update", Title: title, Steps: []wire.PlanStep{
				{ID: "read", Step: "read the code", Status: read},
				{ID: "fix", Step: "fix it", Status: fix, After: []string{"read"}},
			}}
		}
		want := []*wire.Plan{planned("plan 0/2", "in_progress", "pending"), planned("plan 1/2", "completed", "in_progress")}
		if d := cmp.Diff(want, seen); d != "" {
			t.Errorf("events -want +got:\n%s", d)
		}
		var h wire.History
		var d wire.SessionDescribed
		c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
		c.must(wire.MethodSessionsDescribe, wire.SessionsDescribe{Key: "main"}, &d)
		for _, p := range []*wire.Plan{h.Plan, d.Session.Plan} {
			if p != nil {
				p.UpdatedAt = 0
			}
			if d := cmp.Diff(want[1], p); d != "" {
				t.Errorf("on loading -want +got:\n%s", d)
			}
		}
	})
	t.Run("other clients see, replace and remove it as the progress card of the session", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: newFamily()})
		c := g.Client()
		card := func(want ...wire.ProgressStep) *wire.ProgressCard {
			t.Helper()
			var f wire.ProgressFound
			c.must(wire.MethodProgressGet, wire.ProgressGet{SessionKey: "main"}, &f)
			if f.Card == nil {
				f.Card = &wire.ProgressCard{}
			}
			if d := cmp.Diff(want, f.Card.Steps); d != "" {
				t.Errorf("card -want +got:\n%s", d)
			}
			return f.Card
		}
		changed := func() (p wire.ProgressChanged) {
			t.Helper()
			if err := c.nextEvent(wire.EventProgressChanged).Decode(&p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		card()
		c.Send("main",
			`plan {"steps":[{"title":"read"},{"title":"write","state":"failed"},{"title":"sleep","state":"cancelled"}]}`)
		revision := changed().Revision
		first := card(wire.ProgressStep{Step: "read", Status: "pending"}, wire.ProgressStep{Step: "write (failed)",
			Status: "completed"}, wire.ProgressStep{Step: "sleep (cancelled)", Status: "completed"})
		if revision == nil || first.Revision != *revision || first.SessionKey != "agent:main:main" || first.UpdatedAt == 0 {
			t.Errorf("card %+v, event with revision %v", first, revision)
		}
		put := func(p wire.ProgressPut) *wire.ProgressCard {
			t.Helper()
			var f wire.ProgressFound
			p.SessionKey = "main"
			c.must(wire.MethodProgressPut, p, &f)
			return f.Card
		}
		if got := put(wire.ProgressPut{ExpectedRevision: first.Revision - 1}); got == nil || got.Revision != first.Revision {
			t.Errorf("another plan than the expected one was replaced: %+v", got)
		}
		put(wire.ProgressPut{ExpectedRevision: first.Revision,
			Plan: []wire.ProgressStep{{Step: "ours", Status: "in_progress"}}})
		second := card(wire.ProgressStep{Step: "ours", Status: "in_progress"})
		if e := changed(); e.Revision == nil || *e.Revision != second.Revision {
			t.Errorf("event %+v", e)
		}
		var asked wire.ProgressRefreshed
		c.must(wire.MethodProgressRefresh, wire.ProgressRefresh{SessionKey: "main", IdempotencyKey: "refresh"}, &asked)
		if end := c.Await("refresh"); asked.Status != "accepted" || asked.RunID != "refresh" ||
			asked.Revision != second.Revision || end.State != wire.StateFinal {
			t.Errorf("asked %+v, ended %+v", asked, end)
		}
		if got := put(wire.ProgressPut{ExpectedRevision: second.Revision}); got != nil || changed().Revision != nil {
			t.Errorf("the plan was not removed: %+v", got)
		}
		card()
		reader := g.with(wire.ScopeRead)
		for method, p := range map[string]any{
			wire.MethodProgressPut:     wire.ProgressPut{SessionKey: "main"},
			wire.MethodProgressRefresh: wire.ProgressRefresh{SessionKey: "main", IdempotencyKey: "x"},
		} {
			if err := reader.Call(t.Context(), method, p, nil); err == nil {
				t.Errorf("%s: permitted without the scope write", method)
			}
		}
		if err := c.Call(t.Context(), wire.MethodProgressRefresh, wire.ProgressRefresh{SessionKey: "main",
			IdempotencyKey: "y"}, nil); err == nil || !strings.Contains(err.Error(), "has no plan") {
			t.Errorf("refresh without a plan: %v", err)
		}
	})
	t.Run("what is wrong with it is said, and changes nothing", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: newFamily()})
		c := g.Client()
		c.Ask("main", firstPlan)
		for args, want := range map[string]string{
			`{"steps":[{"id":"a","title":"A","after":["z"]}]}`:                                      `depends on \"z\", but the plan has no step with that id`,
			`{"steps":[{"id":"a","title":"A","after":["b"]},{"id":"b","title":"B","after":["a"]}]}`: `form a cycle: a → b → a`,
			`{"steps":[{"id":"a","title":"A","state":"finished"}]}`:                                 `pending`,
			`{"steps":[` + strings.TrimSuffix(strings.Repeat(`{"title":"x"},`, 51), ",") + `]}`:     `50`,
		} {
			if end := c.Ask("main", "plan "+args); !strings.Contains(end.Text, want) {
				t.Errorf("%.80s: %s", args, end.Text)
			}
		}
		var h wire.History
		if c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h); h.Plan == nil ||
			h.Plan.Steps[0].ID != "read" {
			t.Errorf("the plan is %+v", h.Plan)
		}
	})
	t.Run("its open steps are in the note, until it is finished or the conversation ends", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f})
		c := g.Client()
		c.Ask("main", "say hello")
		if got := f.note(t); strings.Contains(got, "## Plan") {
			t.Errorf("without a plan: %s", got)
		}
		c.Ask("main", firstPlan)
		c.Ask("main", secondPlan)
		c.Ask("main", "say hello")
		got := f.note(t)
		if !strings.Contains(got, "## Plan\n\nYour plan in this session (1 of 2 steps are done).") ||
			!strings.Contains(got, "\n- fix: fix it (in_progress)") || strings.Contains(got, "- read") {
			t.Errorf("with a plan: %s", got)
		}
		c.Ask("main", lastPlan)
		c.Ask("main", "say hello")
		if got := f.note(t); strings.Contains(got, "## Plan") {
			t.Errorf("with a finished plan: %s", got)
		}
		c.Ask("main", firstPlan)
		c.Ask("main", "/new")
		c.Ask("main", "say hello")
		if got := f.note(t); strings.Contains(got, "## Plan") {
			t.Errorf("in a new conversation: %s", got)
		}
		var h wire.History
		if c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h); h.Plan != nil {
			t.Errorf("the new conversation has the plan %+v", h.Plan)
		}
	})
	t.Run("a plan that a run wrote is in its note after its history was cut", func(t *testing.T) {
		t.Parallel()
		_, args, _ := strings.Cut(firstPlan, " ")
		model := llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two"), llmtest.Call("c", "plan", args),
			llmtest.Status(400, "prompt is too long: 250000 tokens"), llmtest.Say("done"))
		c := Start(t, Options{Model: model}).Client()
		for _, text := range []string{"first", "second", "third"} {
			c.Ask("main", text)
		}
		all := model.Requests()
		if len(all) != 5 || strings.Contains(all[3].Note, "## Plan") ||
			!strings.Contains(all[4].Note, "- fix: fix it (pending, after read)") {
			t.Errorf("%d requests; the last note is %s", len(all), all[len(all)-1].Note)
		}
	})
	t.Run("a run that is over cannot write it", func(t *testing.T) {
		t.Parallel()
		var rows store.Store
		g := Start(t, Options{Model: newFamily(), Wrap: func(s store.Store) store.Store { rows = s; return s }})
		c := g.Client()
		ended := c.Ask("main", firstPlan).Run
		tools, err := plan.Configured(nil, plan.Options{Store: rows, Publish: func(chela.Event) {}})
		if err != nil || len(tools) != 1 {
			t.Fatal(tools, err)
		}
		_, args, _ := strings.Cut(secondPlan, " ")
		if _, err = tools[0].Run(t.Context(), tool.Call{Session: "agent:main:main", Run: chela.RunID(ended),
			Args: json.RawMessage(args)}); chela.CodeOf(err) != chela.CodeConflict {
			t.Errorf("the error is %v", err)
		}
		var h wire.History
		if c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h); h.Plan == nil ||
			h.Plan.Title != "plan 0/2" {
			t.Errorf("the plan is %+v", h.Plan)
		}
	})
	t.Run("subagents have a plan of their own", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f})
		c := g.Client()
		c.Ask("main", firstPlan)
		c.Ask("main", task(`plan {"steps":[{"id":"own","title":"my own step"}]}`, "label", "leaf"))
		c.answer("told leaf ok")
		var h wire.History
		if c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h); h.Plan == nil ||
			h.Plan.Steps[0].ID != "read" {
			t.Errorf("the plan of the requester is %+v", h.Plan)
		}
		for _, r := range f.Requests() {
			if strings.Contains(systemOf(r), "# Subagent Context") &&
				strings.Contains(r.Note, "## Plan\n\nYour plan in this session (0 of 2") {
				t.Error("the subagent is told the plan of its requester")
			}
		}
	})
	t.Run("it can be switched off, and denied by both of its names", func(t *testing.T) {
		t.Parallel()
		for _, config := range []string{`{"updatePlan": false}`, `{"deny": ["plan"]}`, `{"deny": ["update_plan"]}`} {
			f := newFamily()
			c := Start(t, Options{Model: f, Config: Config{"tools": json.RawMessage(config)}}).Client()
			c.Ask("main", "say hello")
			if slices.Contains(toolNames(f.Requests()[0]), "plan") {
				t.Errorf("%s: the tool is offered", config)
			}
		}
	})
}

// openSubagents is the section of the prompt about the open subagents.
var openSubagents = regexp.MustCompile(`## Subagents\n\nYou have started these subagents, .*\n- "watcher", running, since \d{4}-\d\d-\d\d \d\d:\d\d UTC: agent:main:subagent:[-0-9a-f]{36}\n</session-state>$`)

// What is open is told to the model even if the messages about it are no longer sent to it.
func TestOpenWork(t *testing.T) { bubble(t, openWork) }

func openWork(t *testing.T) {
	f := newFamily()
	o := Options{Model: f, Dir: t.TempDir()}
	g := Start(t, o)
	c := g.Client()
	c.Ask("main", "say hello")
	if got := f.note(t); strings.Contains(got, "## Subagents") {
		t.Errorf("without subagents: %s", got)
	}
	c.Ask("main", firstPlan+"\n"+task("hang", "label", "watcher"))
	waittest.Until(t, "the subagent", func() bool { return f.childRequest("hang") != nil })
	check := func(at, message string) {
		t.Helper()
		c.Ask("main", message)
		all := f.own()
		last := all[len(all)-1]
		if got := f.note(t); !openSubagents.MatchString(got) ||
			!strings.Contains(got, "- fix: fix it (pending, after read)") {
			t.Errorf("%s: %s", at, got)
		}
		spawned := slices.ContainsFunc(last.Messages, func(m *llm.Message) bool {
			return slices.ContainsFunc(m.Calls(), func(k llm.ToolCall) bool { return k.Name == "sessions_spawn" })
		})
		if cut := at != "at first"; spawned == cut {
			t.Errorf("%s: the call that started the subagent is in the messages: %v", at, spawned)
		}
	}
	check("at first", "say still here")
	check("after a model refused a prompt that is too long", "overflow\nsay "+strings.Repeat("long ", 1000))
	for range 5 {
		c.Ask("main", "say one more turn, "+strings.Repeat("long ", 400))
	}
	var out wire.SessionCompacted
	if c.must(wire.MethodSessionsCompact, wire.SessionKey{Key: "main"}, &out); !out.Compacted {
		t.Fatalf("not compacted: %s", out.Reason)
	}
	check("after a compaction", "say still here")
	g.Stop()
	g = Start(t, o)
	c = g.Client()
	check("after a restart", "say still here")
	c.Ask("main", `subagents {"action":"kill","target":"watcher"}`)
	c.Ask("main", "say hello")
	if got := f.note(t); strings.Contains(got, "## Subagents") {
		t.Errorf("after its end: %s", got)
	}
}
