package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// says is a model that answers with its name.
type says struct {
	name string
	asks chan struct{} // gets a value for each request; nil: it does not
	may  chan struct{} // the answer waits for this; nil: it does not
}

func (s says) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if s.asks != nil {
			s.asks <- struct{}{}
			select {
			case <-s.may:
			case <-ctx.Done():
				yield(llm.Event{}, ctx.Err())
				return
			}
		}
		m := &llm.Message{
			Role:     llm.RoleAssistant,
			Parts:    []llm.Part{llm.Text("I am " + s.name)},
			Provider: s.name,
			Model:    "m",
			Stop:     llm.StopEnd,
		}
		yield(llm.Event{Kind: llm.Done, Message: m}, nil)
	}
}

// tuned is an engine whose configuration is changed while it runs.
type tuned struct {
	*Engine
	t    *testing.T
	c    *client.Client
	log  lines
	path string
	n    int
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const tuning = `{
  // who answers
  agents: { defaults: { model: "one/m", skipBootstrap: true } },
  models: { providers: {
    one: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "sk-canary-one", models: [{ id: "m" }] },
    two: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "sk-canary-two", models: [{ id: "m" }] }, // the other
  } },
  messages: { queue: { mode: "followup", debounceMs: 0 } },
}
`

// tune starts an engine, with a port unless listen is nil.
func tune(t *testing.T, text string, listen *endpoint.Listen, more ...says) *tuned {
	t.Helper()
	e := &tuned{t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log: %s", e.log.String())
		}
	})
	o := on(t, nil, nil)
	e.path = filepath.Join(o.State, "chela.json")
	write(t, e.path, text)
	tree, err := config.Options{LastGood: filepath.Join(o.State, "last-good")}.Load(e.path)
	if err != nil {
		t.Fatal(err)
	}
	o.Config, o.ConfigPath, o.NoProbe, o.NoSocket, o.Listen = tree, e.path, true, true, listen
	o.Log = slog.New(slog.NewTextHandler(&e.log, nil))
	o.Providers = map[string]llm.Provider{"one": says{name: "one"}, "two": says{name: "two"}}
	for _, s := range more {
		o.Providers[s.name] = s
	}
	if e.Engine, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	if e.c, err = client.Dial(t.Context(), client.Options{Dial: e.Dial}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.c.Close() })
	return e
}

func (e *tuned) call(method string, params, result any) error {
	return e.c.Call(e.t.Context(), method, params, result)
}

func (e *tuned) must(method string, params, result any) {
	e.t.Helper()
	if err := e.call(method, params, result); err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
}

// send sends a message and returns its run.
func (e *tuned) send(session string) string {
	e.t.Helper()
	e.n++
	id := "run-" + session + "-" + strconv.Itoa(e.n)
	e.must("chat.send", map[string]any{"sessionKey": session, "message": "hello", "idempotencyKey": id}, nil)
	return id
}

// wait waits for the end of a run and returns the last answer in the session.
func (e *tuned) wait(session, id string) string {
	e.t.Helper()
	e.must("agent.wait", map[string]any{"runId": id, "timeoutMs": waittest.Limit.Milliseconds()}, nil)
	var raw json.RawMessage
	e.must("chat.history", map[string]any{"sessionKey": session, "limit": 1}, &raw)
	_, last, _ := strings.Cut(string(raw), "I am ")
	name, _, _ := strings.Cut(last, `"`)
	return name
}

func (e *tuned) ask(session string) string { e.t.Helper(); return e.wait(session, e.send(session)) }

// snapshot returns the configuration as clients see it.
func (e *tuned) snapshot() (s wire.ConfigSnapshot) {
	e.t.Helper()
	e.must(wire.MethodConfigGet, nil, &s)
	return s
}

// model returns the default model.
func (e *tuned) model() string { ref, _ := e.now().Models.Default(); return ref.String() }

func TestConfigWrites(t *testing.T) {
	t.Parallel()
	e := tune(t, tuning, nil)
	file := func() string { b, _ := os.ReadFile(e.path); return string(b) }
	patch := func(raw string, more ...string) (out wire.ConfigWritten, err error) {
		err = e.call(wire.MethodConfigPatch, wire.ConfigPatch{Raw: raw, BaseHash: e.snapshot().Hash, ReplacePaths: more},
			&out)
		return out, err
	}
	t.Run("a patch takes effect for the next run and preserves comments", func(t *testing.T) {
		if got := e.ask("main"); got != "one" {
			t.Fatalf("%q answers", got)
		}
		out, err := patch(`{agents: {defaults: {model: "two/m"}}}`)
		if err != nil || !out.OK || out.Restart || !slices.Equal(out.Changed, []string{"agents.defaults.model"}) ||
			out.Hash != e.snapshot().Hash {
			t.Fatalf("%+v, %v", out, err)
		}
		if want := strings.Replace(tuning, "one/m", "two/m", 1); file() != want {
			t.Errorf("the file is\n%s", file())
		}
		if got := e.ask("main"); got != "two" {
			t.Errorf("%q answers", got)
		}
	})
	t.Run("a client writes the text that it was shown, and secrets are preserved", func(t *testing.T) {
		s := e.snapshot()
		if strings.Contains(s.Raw, "canary") {
			t.Fatalf("shown: %s", s.Raw)
		}
		var out wire.ConfigWritten
		e.must(wire.MethodConfigSet, wire.ConfigSet{Raw: strings.Replace(s.Raw, "two/m", "one/m", 1), BaseHash: s.Hash}, &out)
		if file() != tuning || out.Noop {
			t.Errorf("%+v, the file is\n%s", out, file())
		}
		e.must(wire.MethodConfigApply, wire.ConfigApply{Raw: e.snapshot().Raw, BaseHash: out.Hash, Note: "nothing"}, &out)
		if !out.Noop || file() != tuning {
			t.Errorf("the same again: %+v\n%s", out, file())
		}
	})
	t.Run("CF-11 a stale base is a conflict", func(t *testing.T) {
		old := e.snapshot().Hash
		if _, err := patch(`{messages: {responseUsage: "tokens"}}`); err != nil {
			t.Fatal(err)
		}
		now := file()
		for _, base := range []string{old, ""} {
			err := e.call(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{messages: null}`, BaseHash: base}, nil)
			if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.InvalidRequest ||
				!strings.Contains(we.Message, "re-run config.get and retry") {
				t.Errorf("base %q: %v", base, err)
			}
		}
		if file() != now {
			t.Error("the file was written")
		}
	})
	t.Run("CF-12 an array loses elements only with replacePaths", func(t *testing.T) {
		if _, err := patch(`{tools: {deny: ["exec", "write"]}}`); err != nil {
			t.Fatal(err)
		}
		if _, err := patch(`{tools: {deny: ["exec"]}}`); err == nil || !strings.Contains(err.Error(), "tools.deny") {
			t.Errorf("%v, want a refusal with its path", err)
		}
		if _, err := patch(`{tools: {deny: ["exec"]}}`, "tools.deny"); err != nil {
			t.Error(err)
		}
		if got := e.now().Settings.Tools.Deny; !slices.Equal(got, []string{"exec"}) {
			t.Errorf("deny %v", got)
		}
	})
	t.Run("EVOLVE-01 an unusable configuration is refused and not written", func(t *testing.T) {
		before, p := file(), e.now()
		for raw, want := range map[string]string{
			`{gatway: {}}`: "gatway",
			`{agents: {defaults: {userTimezone: "Mars/Base"}}}`: "userTimezone",
			`{agents: {defaults: {maxConcurrent: "x"}}}`:        "maxConcurrent",
			`{agents: {defaults: {model: ["x"]}}}`:              "model",

			`{models: {providers: {one: {headers: {X: "[redacted]"}}}}}`: "[redacted]",
			`{`:  "",
			`[]`: "want an object",
		} {
			if _, err := patch(raw); err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: %v", raw, err)
			}
		}
		if file() != before || e.now() != p {
			t.Errorf("it changed: %s", file())
		}
	})
}

// bubble runs a subtest whose time is simulated.
func bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, f)
	})
}

func TestReload(t *testing.T) {
	t.Parallel()
	bubble(t, "CF-06 an edit by hand takes effect in less than two seconds, except for runs in progress",
		func(t *testing.T) {
			slow := says{"one", make(chan struct{}), make(chan struct{})}
			e := tune(t, tuning, nil, slow)
			id := e.send("main")
			<-slow.asks
			begun := time.Now()
			write(t, e.path, strings.Replace(tuning, "one/m", "two/m", 1))
			waittest.Until(t, "an effect of the edit", func() bool { return e.model() == "two/m" })
			if took := time.Since(begun); took >= 2*time.Second {
				t.Errorf("after %s", took)
			}
			if got := e.ask("agent:main:other"); got != "two" {
				t.Errorf("%q answers in another session", got)
			}
			close(slow.may)
			if got := e.wait("main", id); got != "one" {
				t.Errorf("the run that was in progress is answered by %q", got)
			}
			if got := e.ask("main"); got != "two" {
				t.Errorf("%q answers the next one", got)
			}
		})
	bubble(t, "CF-10 a broken file changes nothing and is reported once, and a repaired one is used", func(t *testing.T) {
		e := tune(t, tuning, nil)
		for _, broken := range []string{"{broken", "{broken",
			strings.Replace(tuning, "one/m", "two/m\", userTimezone: \"Mars/Base", 1)} {
			write(t, e.path, broken)
			time.Sleep(3 * time.Second) // it is noticed within two
			if got := e.ask("main"); got != "one" {
				t.Errorf("%q answers", got)
			}
		}
		if said := e.log.String(); !strings.Contains(said, "userTimezone") || strings.Count(said, "want a colon") != 1 ||
			!strings.Contains(said, "line 1, column") || !strings.Contains(said, "chela config validate") {
			t.Errorf("the log: %s", said)
		}
		write(t, e.path, strings.Replace(tuning, "one/m", "two/m", 1))
		waittest.Until(t, "the use of the repaired file", func() bool { return e.model() == "two/m" })
		if got := e.ask("main"); got != "two" {
			t.Errorf("%q answers", got)
		}
	})
	bubble(t, "a client repairs a broken file", func(t *testing.T) {
		e := tune(t, tuning, nil)
		write(t, e.path, "{broken")
		s := e.snapshot()
		if s.Valid || s.Hash == "" {
			t.Fatalf("%+v", s)
		}
		if err := e.call(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{compat: "chela"}`, BaseHash: s.Hash}, nil); err ==
			nil || !strings.Contains(err.Error(), "repaired first") {
			t.Errorf("a patch of a broken file: %v", err)
		}
		text := strings.Replace(tuning, "one/m", "two/m", 1)
		e.must(wire.MethodConfigSet, wire.ConfigSet{Raw: text, BaseHash: s.Hash}, nil)
		if b, _ := os.ReadFile(e.path); string(b) != text || e.model() != "two/m" {
			t.Errorf("%s answers with\n%s", e.model(), b)
		}
	})
	bubble(t, "an emptied file changes nothing, and what a change allows is said", func(t *testing.T) {
		with := strings.Replace(tuning, "messages:", `tools: { deny: ["exec"] }, messages:`, 1)
		e := tune(t, with, nil)
		if err := e.tree().SaveLastGood(); err != nil {
			t.Fatal(err)
		}
		write(t, e.path, "")
		e.reread(t.Context())
		if !slices.Equal(e.now().Settings.Tools.Deny, []string{"exec"}) ||
			!strings.Contains(e.log.String(), "the file is empty") {
			t.Errorf("denied are %q", e.now().Settings.Tools.Deny)
		}
		if s := e.snapshot(); s.Valid {
			t.Error("clients are told that it is valid")
		}
		write(t, e.path, tuning)
		e.reread(t.Context())
		if said := e.log.String(); len(e.now().Settings.Tools.Deny) > 0 ||
			!strings.Contains(said, `msg="the configuration allows more than before"`) ||
			!strings.Contains(said, "keys=tools.deny") {
			t.Errorf("denied are %q", e.now().Settings.Tools.Deny)
		}
	})
	t.Run("an engine that started with the last good file uses the repaired one", func(t *testing.T) {
		t.Parallel()
		s := home(t, tuning)
		write(t, s.LastGood, strings.Replace(tuning, "one/m", "two/m", 1))
		write(t, s.Config, "{broken")
		e, ok := begun(t, s).(*Engine)
		if !ok {
			t.Fatal("not an engine")
		}
		w := &tuned{Engine: e, t: t}
		if got := w.model(); got != "two/m" {
			t.Fatalf("%s answers", got)
		}
		write(t, s.Config, tuning)
		waittest.Until(t, "the use of the repaired file", func() bool { return w.model() == "one/m" })
	})
	t.Run("CF-07 the mode decides how an edit is applied", func(t *testing.T) {
		t.Parallel()
		edited := strings.Replace(tuning, "one/m", "two/m", 1)
		for _, want := range []struct {
			mode, port string // after the edit; the port was 1, and needs a restart
			model      string
			starts     bool
			said       string
		}{
			{"off", "2", "one/m", false, "gateway.reload.mode is off"},
			{"hot", "2", "two/m", false, "take effect after a restart"},
			{"hybrid", "2", "two/m", true, "configuration changed"}, {"restart", "2", "two/m", true, "configuration changed"},
			{"hot", "1", "two/m", false, "configuration changed"}, {"hybrid", "1", "two/m", false, "configuration changed"},
			{"restart", "1", "two/m", true, "configuration changed"},
		} {
			with := func(text, port string) string {
				return strings.Replace(text, "messages:", `gateway: { mode: "local", port: `+port+`, reload: { mode: "`+want.mode+
					`", debounceMs: 20 } }, messages:`, 1)
			}
			e := tune(t, with(tuning, "1"), &endpoint.Listen{Port: -1})
			write(t, e.path, with(edited, want.port))
			t.Run(want.mode+" with port "+want.port, func(t *testing.T) { // all wait together
				t.Parallel()
				waittest.Until(t, "a line of the log with "+want.said,
					func() bool { return strings.Contains(e.log.String(), want.said) })
				if got := e.model(); got != want.model {
					t.Errorf("%s answers, want %s", got, want.model)
				}
				good, err := os.ReadFile(filepath.Join(e.o.State, "last-good"))
				// What needs a restart is good after the restart.
				if kept := strings.Contains(string(good), `"two/m"`); kept != (want.model == "two/m" && want.port == "1") {
					t.Errorf("the edit is kept as the last good configuration: %v, %v", kept, err)
				}
				if want.starts {
					waittest.For(t, "the request to restart", e.RestartRequested())
					return
				}
				select {
				case <-e.RestartRequested():
					t.Error("it restarts")
				case <-time.After(2 * restartDelay):
				}
			})
		}
	})
	t.Run("a configuration with which the gateway would not start is refused", func(t *testing.T) {
		t.Parallel()
		e := tune(t, tuning, &endpoint.Listen{Port: -1})
		err := e.call(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{gateway: {bind: "lan"}}`, BaseHash: e.snapshot().Hash},
			nil)
		if err == nil || !strings.Contains(err.Error(), "refusing to listen") {
			t.Errorf("%v", err)
		}
		for raw, want := range map[string]string{
			`{gateway: {port: 70000}}`:                                               "gateway.port: 70000 is not a valid port number",
			`{gateway: {controlUi: {root: "/nowhere/ui"}}}`:                          "gateway.controlUi.root: open /nowhere/ui",
			`{gateway: {auth: {mode: "password"}}}`:                                  "gateway.auth.password is not set",
			`{session: {reset: {mode: "daily", atHour: 99}}}`:                        "session.reset.atHour: 99, want an hour from 0 to 23",
			`{agents: {defaults: {model: "nope/x"}}}`:                                `agents.defaults.model: unknown provider "nope"`,
			`{agents: {defaults: {model: {fallbacks: ["nope/x"]}}}}`:                 "nope",
			`{models: {providers: {one: {baseUrl: ""}}}}`:                            "models.providers.one.baseUrl is empty",
			`{models: {providers: {one: {api: "telepathy"}}}}`:                       `telepathy`,
			`{models: {providers: {one: {headers: {"A b": "c"}}}}}`:                  `models.providers.one.headers: "A b" cannot be sent as an HTTP header`,
			`{models: {providers: {one: {apiKey: "file:key"}}}}`:                     "models.providers.one.apiKey: file:key: want an absolute path",
			`{models: {providers: {one: {models: [{id: " "}]}}}}`:                    "has no id",
			`{models: {providers: {one: {models: [{id: "m", contextWindow: -5}]}}}}`: "models.providers.one.models: m has -5 tokens",
			`{agents: {defaults: {workspace: "/dev/null/nothing"}}}`:                 "not a",
			`{budget: {usdPerDay: 0}}`:                                               "budget.usdPerDay: 0 does not limit anything",
			`{agents: {defaults: {budget: {toolCalls: 0}}}}`:                         "agents.defaults.budget.toolCalls: 0 does not limit anything",
			`{agents: {defaults: {contextTokens: 12}}}`:                              "agents.defaults.contextTokens: 12 tokens are too few for a run; want at least 16000",
			`{agents: {defaults: {model: "offline/x"}}}`:                             `agents.defaults.model: offline has no model "x"`,
			`{agents: {entries: {ops: {model: "nope/x"}}}}`:                          `agents.entries.ops.model: unknown provider "nope"`,
			`{agents: {defaults: {heartbeat: {model: "nope/x"}}}}`:                   `agents.defaults.heartbeat.model: unknown provider "nope"`,
		} {
			err := e.call(wire.MethodConfigPatch, wire.ConfigPatch{Raw: raw, BaseHash: e.snapshot().Hash}, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", raw, err, want)
			}
			whole := strings.Replace(tuning, "{", "{"+strings.TrimSuffix(strings.TrimPrefix(raw, "{"), "}")+",", 1)
			if strings.Contains(raw, "agents") || strings.Contains(raw, "models") {
				continue // it would be there twice
			}
			if err := e.call(wire.MethodConfigSet, wire.ConfigSet{Raw: whole, BaseHash: e.snapshot().Hash}, nil); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("config.set %s: %v, want %s", raw, err, want)
			}
		}
		if err := e.call(wire.MethodConfigSet, wire.ConfigSet{Raw: strings.Replace(tuning, "one/m", "nope/x", 1),
			BaseHash: e.snapshot().Hash}, nil); err == nil || !strings.Contains(err.Error(), `unknown provider "nope"`) {
			t.Errorf("config.set with an unknown provider: %v", err)
		}
		if b, _ := os.ReadFile(e.path); string(b) != tuning {
			t.Errorf("the file is\n%s", b)
		}
		var out wire.ConfigWritten
		e.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{gateway: {port: 5}}`, BaseHash: e.snapshot().Hash}, &out)
		if !out.Restart || !out.Starts || !slices.Equal(out.Cold, []string{"gateway.port"}) {
			t.Errorf("%+v", out)
		}
	})
}

func TestRoster(t *testing.T) {
	t.Parallel()
	e := tune(t, tuning, nil)
	var made wire.AgentCreated
	e.must(wire.MethodAgentsCreate, wire.AgentCreate{Name: "Ops Crab", Model: "two/m", Emoji: "🔧"}, &made)
	if made.AgentID != "ops-crab" || made.Workspace != filepath.Join(e.o.State, "workspace-ops-crab") ||
		made.Model != "two/m" {
		t.Fatalf("%+v", made)
	}
	if one, two := e.ask("main"), e.ask("agent:ops-crab:main"); one != "one" || two != "two" {
		t.Errorf("main is answered by %q, the new one by %q", one, two)
	}
	var files wire.AgentFileGot
	e.must(wire.MethodAgentsFilesSet, wire.AgentFileSet{AgentID: "ops-crab", Name: "SOUL.md", Content: "Be dry."}, nil)
	e.must(wire.MethodAgentsFilesGet, wire.AgentFileGet{AgentID: "ops-crab", Name: "IDENTITY.md"}, &files)
	if files.File.Content == nil || !strings.Contains(*files.File.Content, "**Name:** Ops Crab") {
		t.Errorf("IDENTITY.md: %+v", files.File)
	}
	e.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{agents: {entries: {"ops-crab": {identity: {name: "Older"}}}}}`,
		BaseHash: e.snapshot().Hash}, nil)
	var updated wire.AgentUpdated
	e.must(wire.MethodAgentsUpdate,
		wire.AgentUpdate{AgentID: "Ops-Crab", Name: "Ops Two", Model: wire.Optional[string]{Set: true}}, &updated)
	if !updated.OK || updated.AgentID != "ops-crab" {
		t.Errorf("%+v", updated)
	}
	e.must(wire.MethodAgentsFilesGet, wire.AgentFileGet{AgentID: "ops-crab", Name: "IDENTITY.md"}, &files)
	if files.File.Content == nil || !strings.Contains(*files.File.Content, "**Name:** Ops Two") {
		t.Errorf("IDENTITY.md: %+v", files.File)
	}
	var list wire.AgentsList
	e.must(wire.MethodAgentsList, nil, &list)
	if len(list.Agents) != 2 || list.Agents[1].Name != "Ops Two" || list.Agents[1].Identity.Emoji != "🔧" ||
		list.Agents[1].Model.Primary != "one/m" || list.Ownership == "sole" {
		t.Errorf("%+v", list)
	}
	for _, tt := range []struct {
		method string
		params any
		want   string
	}{
		{wire.MethodAgentsCreate, wire.AgentCreate{Name: "ops crab"}, `agent "ops-crab" already exists`},
		{wire.MethodAgentsCreate, wire.AgentCreate{Name: "Main"}, `agent "main" already exists`},
		{wire.MethodAgentsCreate, wire.AgentCreate{Name: "螃蟹"}, "no letter"},
		{wire.MethodAgentsCreate, wire.AgentCreate{Name: "x", Model: "mock/"}, "model"},
		{wire.MethodAgentsUpdate, wire.AgentUpdate{AgentID: "nope", Name: "x"}, `agent "nope" not found`},
		{wire.MethodAgentsDelete, wire.AgentDelete{AgentID: "nope"}, `agent "nope" not found`},
		{wire.MethodAgentsDelete, wire.AgentDelete{AgentID: "main"}, "cannot be deleted"},
	} {
		if err := e.call(tt.method, tt.params, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want %q", tt.method, tt.params, err, tt.want)
		}
	}
	var gone wire.AgentDeleted
	e.must(wire.MethodAgentsDelete, wire.AgentDelete{AgentID: "ops-crab"}, &gone)
	if len(gone.Removed) != 1 || gone.Removed[0].Method != "trash" || len(gone.Failed) != 0 {
		t.Errorf("%+v", gone)
	}
	if kept, _ := filepath.Glob(filepath.Join(e.o.State, "trash", "ops-crab-*", "SOUL.md")); len(kept) != 1 {
		t.Errorf("the workspace is not in the trash: %v", kept)
	}
	if err := e.call("chat.send", map[string]any{
		"sessionKey":     "agent:ops-crab:main",
		"message":        "hello",
		"idempotencyKey": "late",
	}, nil); err == nil {
		t.Error("an agent that is no more is written to")
	}
	outside := t.TempDir()
	e.must(wire.MethodAgentsCreate, wire.AgentCreate{Name: "guest", Workspace: outside}, nil)
	e.must(wire.MethodAgentsDelete, wire.AgentDelete{AgentID: "guest"}, &gone)
	if _, err := os.Stat(filepath.Join(outside, "IDENTITY.md")); err != nil || len(gone.Failed) != 1 {
		t.Errorf("a workspace of the user: %v, %+v", err, gone)
	}
}
