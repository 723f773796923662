package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// family is a model for a session and its subagents. A message of a person, or the task
// of a subagent, is a list of lines:
//
//	TOOL JSON   calls the tool; successive lines are calls of one answer
//	hold NAME   answers after release(NAME)
//	hang        never answers
//	overflow    fails once because the prompt is too long
//	say TEXT    answers with the text, which is also the answer if nothing else is left
//
// A new result of a subagent is answered with "told " and the labels and states of all
// results that came at once.
type family struct {
	*llmtest.Script
	mu    sync.Mutex
	holds map[string]chan struct{}
	held  map[string]chan struct{} // closed when the model holds
	// merge has the model wait for the other subagents when it gets a result, and then
	// answer with "merged " and all results.
	merge bool

	overflowed bool
}

var announced = regexp.MustCompile(`The subagent "([^"]+)".*?\(status: (\w+)\)`)

func newFamily() *family {
	f := &family{holds: map[string]chan struct{}{}, held: map[string]chan struct{}{}}
	serial := 0
	f.Script = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		var news []string
		i := len(r.Messages) - 1
		for ; i >= 0 && r.Messages[i].Role == llm.RoleUser; i-- {
			for _, m := range announced.FindAllStringSubmatch(r.Messages[i].PlainText(), -1) {
				news = append(news, m[1]+" "+m[2])
			}
		}
		if len(news) > 0 {
			slices.Sort(news)
			if f.merge {
				return merged(r)
			}
			return llmtest.Say("told " + strings.Join(news, ", "))
		}
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleTool {
			for i >= 0 && r.Messages[i].Role != llm.RoleUser {
				i--
			}
			if strings.Contains(r.Messages[i].PlainText(), "then nothing") {
				return llmtest.Say("")
			}
			if _, text, ok := strings.Cut(r.Messages[i].PlainText(), "then say "); ok {
				return llmtest.Say(text)
			}
			return llmtest.Say("results: " + last.PlainText())
		}
		var calls []llm.ToolCall
		for line := range strings.Lines(last.PlainText()) {
			verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case strings.HasPrefix(rest, "{"):
				f.mu.Lock()
				serial++
				calls = append(calls, llm.ToolCall{ID: fmt.Sprint("c", serial), Name: verb, Args: json.RawMessage(rest)})
				f.mu.Unlock()
			case verb == "hold":
				f.hold(rest)
			case verb == "hang":
				return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}
			case verb == "overflow":
				f.mu.Lock()
				again := f.overflowed
				f.overflowed = true
				f.mu.Unlock()
				if !again {
					return llmtest.Status(400, "prompt is too long: 250000 tokens")
				}
			case verb == "say":
				return llmtest.Say(rest)
			}
		}
		if len(calls) > 0 {
			return llmtest.Calls(calls...)
		}
		return llmtest.Say("answer to " + last.PlainText())
	})
	return f
}

var resultBlock = regexp.MustCompile(`(?s)<result>\n(.*?)\n</result>`)

// merged returns the answer of a model that reports when the last result is there.
func merged(r *llm.Request) llmtest.Step {
	last := r.Messages[len(r.Messages)-1].PlainText()
	if strings.Contains(last, "still running") {
		return llmtest.Call(fmt.Sprint("y", len(r.Messages)), "sessions_yield", "{}")
	}
	var all []string
	for _, m := range r.Messages {
		for _, b := range resultBlock.FindAllStringSubmatch(m.PlainText(), -1) {
			all = append(all, b[1])
		}
	}
	slices.Sort(all)
	return llmtest.Say("merged " + strings.Join(all, ", "))
}

func (f *family) gate(m map[string]chan struct{}, name string) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m[name] == nil {
		m[name] = make(chan struct{})
	}
	return m[name]
}

func (f *family) hold(name string) {
	held := f.gate(f.held, name)
	select {
	case <-held:
	default:
		close(held)
	}
	<-f.gate(f.holds, name)
}

// release lets the model answer where it holds, or will hold.
func (f *family) release(name string) { close(f.gate(f.holds, name)) }

// waitHeld waits until the model holds.
func (f *family) waitHeld(t testing.TB, name string) {
	t.Helper()
	waittest.For(t, "the model holds at "+name, f.gate(f.held, name))
}

// task returns a line that calls sessions_spawn.
func task(text string, more ...string) string {
	args := map[string]any{"task": text}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
		if more[i] == "runTimeoutSeconds" {
			args[more[i]] = json.Number(more[i+1])
		}
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return "sessions_spawn " + string(b)
}

// systemOf returns the system prompt of a request.
func systemOf(r *llm.Request) string {
	var b strings.Builder
	for _, s := range r.System {
		b.WriteString(s.Text)
	}
	return b.String()
}

// childRequest returns the first request of the subagent with the task.
func (f *family) childRequest(task string) *llm.Request {
	for _, r := range f.Requests() {
		if strings.Contains(systemOf(r), "# Subagent Context") && r.Messages[0].PlainText() == task {
			return r
		}
	}
	return nil
}

// toolNames returns the names of the tools in a request, sorted.
func toolNames(r *llm.Request) (names []string) {
	for _, s := range r.Tools {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

func TestSubagents(t *testing.T) {
	start := func(t *testing.T, config string, tools ...tool.Tool) (*family, *Client, *Gateway) {
		t.Helper()
		f := newFamily()
		c := Config{}
		if config != "" {
			c["agents.defaults"] = json.RawMessage(`{"subagents": ` + config + `}`)
		}
		g := Start(t, Options{Model: f, Config: c, Tools: tools})
		return f, g.Client(), g
	}
	t.Run("SUB-01 a spawn returns while the subagent runs", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		end := c.Ask("main", task("hold a\nsay done", "label", "one"))
		f.waitHeld(t, "a")
		if !strings.Contains(end.Text, `"status":"accepted"`) || !strings.Contains(end.Text, `"runId":"`) ||
			!strings.Contains(end.Text, `"childSessionKey":"agent:main:subagent:`) {
			t.Errorf("answer %q", end.Text)
		}
		f.release("a")
		if got := c.answer("told"); got != "told one ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-02 results that come together are told in one answer", func(t *testing.T) {
		t.Parallel()
		_, c, _ := start(t, "")
		c.Ask("main", task("say 1", "label", "a")+"\n"+task("say 2", "label", "b")+"\n"+task("say 3", "label", "c"))
		told := map[string]bool{}
		for len(told) < 3 {
			for part := range strings.SplitSeq(strings.TrimPrefix(c.answer("told "), "told "), ", ") {
				if told[part] {
					t.Errorf("%s was told twice", part)
				}
				told[part] = true
			}
		}
	})
	t.Run("SUB-18 the result of a spawn has the number of those that run", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		c.Ask("main", task("hold a\nsay 1"))
		c.Ask("main", task("hold b\nsay 2"))
		end := c.Ask("main", task("hold c\nsay 3"))
		if !strings.Contains(end.Text, `"running":3`) || !strings.Contains(end.Text, `"label":"Task 3"`) {
			t.Errorf("third: %q", end.Text)
		}
		f.release("a")
		c.answer("told Task 1 ok")
		end = c.Ask("main", task("hold d\nsay 4"))
		if !strings.Contains(end.Text, `"running":3`) || !strings.Contains(end.Text, `"label":"Task 4"`) {
			t.Errorf("fourth: %q", end.Text)
		}
		for _, n := range []string{"b", "c", "d"} {
			f.release(n)
		}
	})
	t.Run("SUB-04 too many subagents are refused", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, `{"maxChildrenPerAgent": 2}`)
		c.Ask("main", task("hold a")+"\n"+task("hold a"))
		end := c.Ask("main", task("say 3"))
		if !strings.Contains(end.Text, "2 subagents of this session are running, and at most 2 may") {
			t.Errorf("answer %q", end.Text)
		}
		f.release("a")
	})
	t.Run("SUB-03 only sessions above the greatest depth may spawn", func(t *testing.T) {
		t.Parallel()
		for max, tools := range map[string][2]bool{"1": {false, false}, "2": {true, false}} {
			f, c, _ := start(t, `{"maxSpawnDepth": `+max+`}`)
			leaf := task("say leaf")
			middle := task(leaf)
			c.Ask("main", middle)
			c.answer("told Task 1 ok")
			has := func(task string) bool {
				r := f.childRequest(task)
				return r != nil && slices.ContainsFunc(r.Tools, func(s llm.ToolSpec) bool { return s.Name == "sessions_spawn" })
			}
			if got := [2]bool{has(leaf), has("say leaf")}; got != tools {
				t.Errorf("maximum %s: the tool is offered at depths 1, 2: %v, want %v", max, got, tools)
			}
			if max == "1" { // the call was forged
				if got := f.childRequest("say leaf"); got != nil {
					t.Error("a forged call started a subagent")
				}
			}
		}
	})
	t.Run("SUB-05 the width of the lane limits how many run", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, `{"maxConcurrent": 2}`)
		names := []string{"a", "b", "c", "d"}
		var tasks []string
		for _, n := range names {
			tasks = append(tasks, task("hold "+n))
		}
		c.Ask("main", strings.Join(tasks, "\n"))
		running := func() (n int) {
			for _, name := range names {
				if f.childRequest("hold "+name) != nil {
					n++
				}
			}
			return n
		}
		waittest.Until(t, "two subagents", func() bool { return running() >= 2 })
		c.Ask("main", "say something") // as much time as a turn takes
		if n := running(); n != 2 {
			t.Errorf("%d run", n)
		}
		for _, n := range names {
			f.release(n)
		}
		told := 0
		for told < 4 {
			told += strings.Count(c.answer("told "), "Task ")
		}
	})
	t.Run("SUB-14 nothing is posted for ANNOUNCE_SKIP", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		c.Ask("main", task("say ANNOUNCE_SKIP", "label", "silent")+"\n"+task("hold b\nsay 2", "label", "b"))
		list := func() string { return c.Ask("main", `subagents {"action":"list"}`).Text }
		waittest.Until(t, "the end of the silent subagent", func() bool {
			return strings.Contains(list(), `"label":"silent","task":"say ANNOUNCE_SKIP","status":"done"`)
		})
		f.release("b")
		if got := c.answer("told "); got != "told b ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-08 a time limit is announced", func(t *testing.T) {
		t.Parallel()
		_, c, _ := start(t, "")
		c.Ask("main", task("hang", "label", "slow", "runTimeoutSeconds", "0.05"))
		if got := c.answer("told "); got != "told slow timeout" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-15 the prompt of a subagent has its rules, task and context, and no SOUL.md", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		c.Ask("main", task("say hi", "label", "greeter"))
		c.answer("told greeter ok")
		got := systemOf(f.childRequest("say hi"))
		for _, want := range []string{
			"# Subagent Context", "started by the main agent", "Your task: say hi", "1. Stay focused", "2. Complete the task",
			"3. Start nothing on your own", "4. Be ephemeral",
			"5. Rely on push-based completion", "6. If an output was truncated", "Label: greeter",
			"Requester session: agent:main:main", "Requester channel: local",
			"Your session: agent:main:subagent:", "### AGENTS.md",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in the prompt", want)
			}
		}
		if strings.Contains(got, "### SOUL.md") || strings.Contains(got, "### USER.md") {
			t.Error("the prompt has the files about the person or the persona")
		}
	})
	t.Run("SUB-21 the paragraph about starting subagents depends on the depth", func(t *testing.T) {
		t.Parallel()
		for _, tc := range []struct {
			max             string
			middle, nothing string
		}{{"1", "", ""}, {"2", "You CAN start subagents", "You are a leaf and CANNOT"}} {
			f, c, _ := start(t, `{"maxSpawnDepth": `+tc.max+`}`)
			work := "say middle"
			if tc.max == "2" {
				work = task("say leaf")
			}
			c.Ask("main", task(work))
			c.answer("told Task 1 ok")
			check := func(task, want string) {
				got := systemOf(f.childRequest(task))
				if has := strings.Contains(got, "## Starting subagents"); has != (want != "") || !strings.Contains(got, want) {
					t.Errorf("maximum %s, task %q: want %q in %s", tc.max, task, want, got)
				}
			}
			check(work, tc.middle)
			if tc.max == "2" {
				check("say leaf", tc.nothing)
			}
		}
	})
	t.Run("SUB-19 a failure is announced like a success", func(t *testing.T) {
		t.Parallel()
		_, c, _ := start(t, "")
		c.Ask("main", task("say x", "label", "bad", "model", "mock/unknown"))
		if got := c.answer("told "); got != "told bad ok" { // an unknown model is replaced by the default
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-06 the end of an orchestrator ends its subagents", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, `{"maxSpawnDepth": 2}`)
		c.Ask("main", task(task("hold x", "label", "leaf 1")+"\n"+task("hold y", "label", "leaf 2"), "label", "boss"))
		f.waitHeld(t, "x")
		f.waitHeld(t, "y")
		end := c.Ask("main", `subagents {"action":"kill","target":"boss"}`)
		if !strings.Contains(end.Text, `"killed":3,"labels":["boss","leaf 1","leaf 2"]`) {
			t.Errorf("answer %q", end.Text)
		}
		f.release("x")
		f.release("y")
		c.Ask("main", task("say later", "label", "later"))
		if got := c.answer("told "); got != "told later ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("STEER-04 a stop ends the subagents, which do not announce", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, `{"maxSpawnDepth": 2}`)
		c.Ask("main", task("hang", "label", "a")+"\n"+task(task("hang", "label", "c")+"\nsessions_yield {}", "label", "b"))
		waittest.Until(t, "the subagents", func() bool {
			return f.childRequest("hang") != nil && f.childRequest(task("hang", "label", "c")+"\nsessions_yield {}") != nil
		})
		c.Ask("main", "/stop")
		list := c.Ask("main", `subagents {"action":"list"}`).Text
		if strings.Count(list, `"status":"killed"`) != 2 || !strings.Contains(list, `"active":[]`) {
			t.Errorf("after the stop: %s", list)
		}
		c.Ask("main", task("say later", "label", "later"))
		if got := c.answer("told "); got != "told later ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("L3 a stop also ends subagents of one that has ended, and what that does since", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				last := r.Messages[len(r.Messages)-1]
				switch text := r.Messages[0].PlainText(); {
				case strings.Contains(last.PlainText(), `The subagent "boss"`):
					return llmtest.Say("told")
				case last.Role == llm.RoleTool && text == "go":
					return llmtest.Say("started")
				case text == "go":
					return llmtest.Call("c1", "sessions_spawn", `{"task":"lead","label":"boss","runTimeoutSeconds":5}`)
				case text == "lead" && len(r.Messages) == 1:
					return llmtest.Calls(llmtest.ToolCall("c2", "sessions_spawn", `{"task":"hang","label":"one"}`),
						llmtest.ToolCall("c3", "sessions_spawn", `{"task":"short","label":"two","runTimeoutSeconds":20}`))
				}
				return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangBody}}
			})
			var st store.Store
			g := Start(t, Options{
				Model: model, Config: Config{"agents.defaults": json.RawMessage(`{"subagents": {"maxSpawnDepth": 2}}`)},
				Wrap: func(s store.Store) store.Store { st = s; return s },
			})
			c := g.Client()
			defer func() { c.Close(); g.Stop() }()
			c.Ask("main", "go")
			// the boss reaches its time limit, and its session then works on the result of the second one
			time.Sleep(time.Minute)
			open := func() (labels []string, working int) {
				t.Helper()
				err := st.View(t.Context(), func(r store.Reader) error {
					children, err := r.Children().Open("")
					for _, c := range children {
						labels = append(labels, c.Label)
					}
					active, err2 := r.Runs().Active("")
					working = len(active)
					return errors.Join(err, err2)
				})
				if err != nil {
					t.Fatal(err)
				}
				return labels, working
			}
			if labels, n := open(); !slices.Equal(labels, []string{"one"}) || n != 2 {
				t.Fatalf("open before the stop: %v, %d runs", labels, n)
			}
			c.Ask("main", "/stop")
			synctest.Wait()
			if labels, n := open(); len(labels) > 0 || n > 0 {
				t.Errorf("open after the stop: %v, %d runs", labels, n)
			}
		})
	})
	t.Run("sessions_yield waits for the results, which the same turn reports", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		id := c.Send("main", task("hold a\nsay 1", "label", "a")+"\nsessions_yield {}")
		f.waitHeld(t, "a")
		f.release("a")
		end := c.Await(id)
		if end.State != "final" || end.Text != "told a ok" {
			t.Errorf("%s: %q", end.State, end.Text)
		}
		if end := c.Ask("main", "sessions_yield {}"); !strings.Contains(end.Text, "nothing to wait for") {
			t.Errorf("without subagents: %q", end.Text)
		}
	})
	t.Run("SUB-30 SEED-11 types of the workspace are listed in one line, and used in any case", func(t *testing.T) {
		t.Parallel()
		f, c, g := start(t, "")
		dir := filepath.Join(g.Dir, "workspace", "agents")
		write := func(name, text string) {
			t.Helper()
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err !=
				nil {
				t.Fatal(err)
			}
		}
		write("critic.md",
			"---\nname: critic\ndescription: says what is weak\ntools: read, sessions_spawn\n---\nFIRST BODY\n")
		end := c.Ask("main", task("say x", "agentType", "pilot"))
		if !strings.Contains(end.Text, `there is no agent type \"pilot\"; there are critic, explore, general, plan`) {
			t.Errorf("unknown type: %q", end.Text)
		}
		main := systemOf(f.Requests()[0])
		if !strings.Contains(main, "\n- agentType critic: says what is weak\n") || strings.Contains(main, "BODY") {
			t.Errorf("the prompt of the main session:\n%s", main)
		}
		write("critic.md",
			"---\nname: critic\ndescription: says what is weak\ntools: read, sessions_spawn\n---\nSECOND BODY\n")
		c.Ask("main", task("say criticized", "agentType", "CRITIC", "label", "c"))
		c.answer("told c ok")
		r := f.childRequest("say criticized")
		if got := systemOf(r); !strings.Contains(got, "SECOND BODY") {
			t.Errorf("the prompt of the subagent:\n%s", got)
		}
		if got := toolNames(r); !slices.Equal(got, []string{"read"}) {
			t.Errorf("tools %v", got)
		}
	})
	t.Run("files that define no type are named with the line", func(t *testing.T) {
		t.Parallel()
		f, c, g := start(t, "")
		dir := filepath.Join(g.Dir, "workspace", "agents")
		for name, text := range map[string]string{
			"critic.md": "--- \nname: critic\ndescription: for reviews: text and code\n---",
			"other.md":  "---\nname: Critic\ndescription: d\n---\n",
			"pilot.md":  "---\nname: pilot\ndescription: [\n---\n",
			"none.md":   "---\ndescription: d\ntools: reed, wrote\n---\n",
			"some.md":   "---\ndescription: d\ntools: read, wrote\n---\n",
			"odd.md":    "---\ndescription: d\nmodel: nonesuch/x\n---\n",
		} {
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err !=
				nil {
				t.Fatal(err)
			}
		}
		end := c.Ask("main", task("say x", "agentType", "pilot"))
		if !strings.Contains(end.Text, `the agent type \"pilot\" cannot be used: agents/pilot.md: front matter: line 3: `) {
			t.Errorf("a type that is not valid: %q", end.Text)
		}
		if end := c.Ask("main", task("say x", "agentType", "none")); !strings.Contains(end.Text,
			"agents/none.md: no tool is named reed, wrote") {
			t.Errorf("a type none of whose tools exists: %q", end.Text)
		}
		main := systemOf(f.Requests()[0])
		if !strings.Contains(main, "\n- agentType critic: for reviews: text and code\n") || strings.Contains(main, "pilot") {
			t.Errorf("the prompt of the main session:\n%s", main)
		}
		list := c.Ask("main", "/agents").Text
		for _, want := range []string{"- agents/other.md: the name critic is taken by agents/critic.md",
			"- agents/pilot.md: front matter: line 3: ",
			"- agents/none.md: no tool is named reed, wrote", "- agents/some.md: no tool is named wrote",
			"- agents/odd.md: the configured model is used: "} {
			if !strings.Contains(list, want) {
				t.Errorf("no %q in /agents: %s", want, list)
			}
		}
	})
	t.Run("SEED-08 an explorer has no tools that write, and its commands only look", func(t *testing.T) {
		t.Parallel()
		f := newFamily()
		g := Start(t, Options{Model: f, Config: Config{"tools": json.RawMessage(`{"exec": {"mode": "full"}}`)}})
		c := g.Client()
		text := `exec {"command":"touch made.txt"}` + "\n" + `exec {"command":"pwd"}` + "\n" +
			`write {"path":"w.txt","content":"x"}`
		c.Ask("main", task(text, "agentType", "Explore", "label", "e"))
		c.answer("told e ok")
		names := toolNames(f.childRequest(text))
		for _, n := range []string{"write", "edit", "apply_patch", "process", "sessions_spawn", "message"} {
			if slices.Contains(names, n) {
				t.Errorf("it has %s", n)
			}
		}
		if !slices.Contains(names, "read") || !slices.Contains(names, "grep") || !slices.Contains(names, "exec") {
			t.Errorf("tools %v", names)
		}
		var results []string
		for _, r := range f.Requests() {
			if r.Messages[0].PlainText() == text {
				results = nil
				for _, m := range r.Messages {
					if m.Role == llm.RoleTool {
						results = append(results, m.PlainText())
					}
				}
			}
		}
		if len(results) != 3 || !strings.Contains(results[0], "this subagent only reads") ||
			!strings.Contains(results[1], "workspace") || !strings.Contains(results[2], "there is no tool") {
			t.Errorf("results %q", results)
		}
		for _, name := range []string{"made.txt", "w.txt"} {
			if _, err := os.Stat(filepath.Join(g.Dir, "workspace", name)); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
	t.Run("LOOP-22 a subagent has its own limit of tool rounds", func(t *testing.T) {
		t.Parallel()
		rounds := map[bool]int{}
		var mu sync.Mutex
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			child := strings.Contains(systemOf(r), "# Subagent Context")
			if text := r.Messages[len(r.Messages)-1].PlainText(); strings.Contains(text, "The subagent ") {
				return llmtest.Say("told " + text)
			}
			if len(r.Tools) == 0 {
				return llmtest.Say(fmt.Sprintf("closing, child %t", child))
			}
			mu.Lock()
			defer mu.Unlock()
			rounds[child]++
			if !child && rounds[child] == 1 {
				return llmtest.Call("s", "sessions_spawn", `{"task":"for ever"}`)
			}
			return llmtest.Call(fmt.Sprint("c", n), "ls", fmt.Sprintf(`{"path":".","limit":%d}`, n+1))
		})
		c := Start(t,
			Options{Model: model,
				Config: Config{
					"agents.defaults": json.RawMessage(`{"maxToolRounds": 10, "subagents": {"maxToolRounds": 15}}`)}}).Client()
		end := c.Ask("main", "go")
		if end.Text != "closing, child false" {
			t.Errorf("main: %q", end.Text)
		}
		if got := c.answer("told "); !strings.Contains(got, "closing, child true") {
			t.Errorf("announced %q", got)
		}
		if rounds[false] != 10 || rounds[true] != 15 {
			t.Errorf("rounds of the main run and of the subagent: %d, %d", rounds[false], rounds[true])
		}
	})
	t.Run("LANE-11 an orchestrator that waits does not hold the only place of its lane", func(t *testing.T) {
		t.Parallel()
		_, c, _ := start(t, `{"maxSpawnDepth": 2, "maxConcurrent": 1}`)
		c.Ask("main", task(task("say leaf", "label", "leaf")+"\nsessions_yield {}", "label", "boss"))
		if got := c.answer("told boss"); got != "told boss ok" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("SUB-25 the result of the last tool is announced if there is no text", func(t *testing.T) {
		t.Parallel()
		f, c, _ := start(t, "")
		c.Ask("main", task("ls {}\nthen nothing", "label", "quiet"))
		c.answer("told quiet error")
		found := false
		for _, r := range f.Requests() {
			found = found || strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "AGENTS.md")
		}
		if !found {
			t.Error("the announcement does not have the result of the tool")
		}
	})
	t.Run("what a subagent used is counted for the session that started it", func(t *testing.T) {
		t.Parallel()
		_, c, _ := start(t, `{"maxSpawnDepth": 2}`)
		if got := c.Ask("main", "/status").Text; strings.Contains(got, "subagent:") {
			t.Errorf("before: %q", got)
		}
		c.Ask("main", task(task("say leaf"), "label", "boss"))
		c.answer("told boss ok")
		got := c.Ask("main", "/status").Text
		if !strings.Contains(got, "2 subagents: in ") {
			t.Errorf("after: %q", got)
		}
	})
	t.Run("SUB-32 the limit of time is the configured one, that of the call, or none", func(t *testing.T) {
		t.Parallel()
		var st store.Store
		c := Start(t, Options{
			Model: newFamily(), Config: Config{"agents.defaults": json.RawMessage(`{"subagents": {"runTimeoutSeconds": 900}}`)},
			Wrap: func(s store.Store) store.Store { st = s; return s },
		}).Client()
		c.Ask("main", task("say 1", "label", "default")+"\n"+task("say 2", "label", "five", "runTimeoutSeconds", "5")+"\n"+
			task("say 3", "label", "none", "runTimeoutSeconds", "0"))
		list, err := store.Get(t.Context(), st,
			func(r store.Reader) ([]subagent.Child, error) { return r.Children().Recent(9) })
		if err != nil || len(list) != 3 {
			t.Fatalf("%d subagents, %v", len(list), err)
		}
		for _, child := range list {
			if want := map[string]time.Duration{
				"default": 900 * time.Second,
				"five":    5 * time.Second,
				"none":    0,
			}[child.Label]; child.Timeout != want {
				t.Errorf("%s: %s, want %s", child.Label, child.Timeout, want)
			}
		}
	})
	t.Run("a child of another agent needs permission", func(t *testing.T) {
		t.Parallel()
		conf := func(allow string) Config {
			return Config{"agents.defaults": json.RawMessage(`{"subagents": {` + allow + `}}`),
				"agents.list": json.RawMessage(`[{"id": "ops"}]`)}
		}
		for allow, want := range map[string]string{
			"":                       "SUB-13 may not be used",
			`"allowAgents": ["ops"]`: "accepted",
			`"allowAgents": ["*"]`:   "accepted",
			`"requireAgentId": true, "allowAgents": ["*"]`: "accepted",
		} {
			c := Start(t, Options{Model: newFamily(), Config: conf(allow)}).Client()
			if end := c.Ask("main", task("say x", "agentId", "nobody")); !strings.Contains(end.Text,
				`there is no agent \"nobody\"`) {
				t.Errorf("an unknown agent: %q", end.Text)
			}
			if strings.Contains(allow, "require") {
				if end := c.Ask("main", task("say x")); !strings.Contains(end.Text, "agentId is required") {
					t.Errorf("%s, without an agent: %q", allow, end.Text)
				}
			}
			end := c.Ask("main", task("say x", "agentId", "ops"))
			if !strings.Contains(end.Text, strings.TrimPrefix(want, "SUB-13 ")) {
				t.Errorf("%s: %q, want %s", allow, end.Text, want)
			}
			if want == "accepted" && !strings.Contains(end.Text, `"childSessionKey":"agent:ops:subagent:`) {
				t.Errorf("%s: %q", allow, end.Text)
			}
		}
	})
	t.Run("SUB-31 results that were asked for from two chats of a busy session get two turns", func(t *testing.T) {
		t.Parallel()
		gate, f, chat := make(chan struct{}), newFamily(), new(channeltest.Fake)
		g := Start(t, Options{
			Model: f, Tools: []tool.Tool{waiter("stall", gate)}, Channels: map[string]channel.Channel{"fake": chat.Plain()},
			Config: Config{
				"channels": json.RawMessage(`{"fake": {"allowFrom": ["p", "q"]}}`),
				"messages": json.RawMessage(`{"queue": {"mode": "collect", "debounceMs": 0}}`),
			},
		})
		c := g.Client()
		in := func(peer string) chela.Address {
			return chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: peer}}
		}
		serial := 0
		say := func(peer, text string) {
			t.Helper()
			serial++
			err := chat.Say(t.Context(),
				chela.Inbound{ID: fmt.Sprint(serial), Address: in(peer), Sender: chela.Sender{ID: peer}, Text: text})
			if err != nil {
				t.Fatal(err)
			}
		}
		texts := func(peer string, n int) []string {
			t.Helper()
			waittest.Until(t, fmt.Sprint(n, " messages in the chat of ", peer),
				func() bool { return len(chat.Texts(in(peer))) >= n })
			return chat.Texts(in(peer))
		}
		say("p", task("hold x\nsay 1", "label", "x1")+"\n"+task("hold x\nsay 2", "label", "x2"))
		texts("p", 1)
		say("q", task("hold y\nsay 3", "label", "y1"))
		texts("q", 1)
		say("p", "stall {}\nthen say not busy any more")
		f.waitHeld(t, "x")
		f.waitHeld(t, "y")
		f.release("x")
		f.release("y")
		for _, label := range []string{"x1", "x2", "y1"} {
			c.taskWhere("completed", labeled(label, wire.TaskCompleted))
		}
		close(gate)
		if got := texts("p", 3)[1:]; !slices.Equal(got, []string{"not busy any more", "told x1 ok, x2 ok"}) {
			t.Errorf("the first chat shows %q", got)
		}
		if got := texts("q", 2)[1:]; !slices.Equal(got, []string{"told y1 ok"}) {
			t.Errorf("the second chat shows %q", got)
		}
	})
	t.Run("SUB-07 a message reaches a subagent that runs, which is announced once", func(t *testing.T) {
		t.Parallel()
		gate := make(chan struct{})
		started := make(chan struct{})
		f, c, _ := start(t, "", blocking("stall", started, gate))
		c.Ask("main", task("stall {}\nthen say finished", "label", "worker"))
		<-started
		if end := c.Ask("main",
			`subagents {"action":"steer","target":"worker","message":"use metric units"}`); !strings.Contains(end.Text,
			`"status":"accepted"`) {
			t.Errorf("answer %q", end.Text)
		}
		close(gate)
		if got := c.answer("told "); got != "told worker ok" {
			t.Errorf("told %q", got)
		}
		heard := false
		for _, r := range f.Requests() {
			heard = heard || strings.Contains(systemOf(r), "# Subagent Context") &&
				strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "Message from your requester: use metric units")
		}
		if !heard {
			t.Error("the subagent did not get the message")
		}
		if end := c.Ask("main", `subagents {"action":"steer","target":"worker","message":"too late"}`); !strings.Contains(
			end.Text, `"worker\" has ended (ok)`) && !strings.Contains(end.Text, `has ended`) {
			t.Errorf("a message to a subagent that has ended: %q", end.Text)
		}
	})
}

// blocking is a tool that reads, signals started and returns when gate is closed.
func blocking(name string, started, gate chan struct{}) tool.Tool {
	return blockingTool{name, started, gate}
}

type blockingTool struct {
	name          string
	started, gate chan struct{}
}

func (b blockingTool) Spec() tool.Spec {
	return tool.Spec{Name: b.name, Description: "Wait.", Schema: json.RawMessage(`{"type":"object"}`)}
}

func (b blockingTool) Run(ctx context.Context, _ tool.Call) (tool.Result, error) {
	close(b.started)
	select {
	case <-b.gate:
		return tool.Text("went on"), nil
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
}
