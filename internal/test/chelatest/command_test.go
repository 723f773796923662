package chelatest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/wire"
)

func TestCommands(t *testing.T) {
	t.Run("CMD-01 a level that is set alone is acknowledged, stored and survives a restart; inside a text it applies to one run", func(t *testing.T) {
		model := echoing()
		o := Options{Dir: t.TempDir(), Model: model,
			Config: section("models", `{"providers": {"mock": {"models": [{"id": "m", "reasoning": true}]}}}`)}
		g := Start(t, o)
		c := g.Client()
		sends := func(session, text, want string, level llm.Level) {
			t.Helper()
			end := c.Ask(session, text)
			rs := model.Requests()
			if got := rs[len(rs)-1].Thinking; end.Text != "re: "+want || got != level {
				t.Errorf("%s: answer %q with the level %q, want the text %q and the level %q", text, end.Text, got, want, level)
			}
		}
		sends("main", "before", "before", llm.Off)
		if end := c.Ask("main", "/think high"); end.Text != "Thinking: high." || !isCommand(final(t, end)) ||
			len(model.Requests()) != 1 {
			t.Errorf("/think high: %q after %d requests", end.Text, len(model.Requests()))
		}
		g.Stop()
		c = Start(t, o).Client()
		if s := c.describe("main"); s.Thinking != "high" {
			t.Errorf("after a restart the level is %q", s.Thinking)
		}
		sends("main", "hi", "hi", llm.High)
		sends("main", "hello /think low", "hello", llm.Low)
		sends("main", "again", "again", llm.High)
		sends("work", "another session", "another session", llm.Off)
	})
	t.Run("CMD-03 status answers immediately during a run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := llmtest.Say("at last")
			slow.Delay = 3 * time.Minute
			model := llmtest.NewScript(slow)
			g := Start(t, Options{Model: model})
			c := g.Client()
			run := c.Send("main", "think about it")
			time.Sleep(time.Minute)
			at := time.Now()
			end := c.Ask("main", "/status")
			if took := time.Since(at); took > time.Second || !isCommand(final(t, end)) || !strings.Contains(end.Text, "mock/m") {
				t.Errorf("after %s: %q", took, end.Text)
			}
			if end := c.Await(run); end.Text != "at last" {
				t.Errorf("the run ended %s with %q", end.State, end.Text)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("STEER-03 steer in an idle session starts a turn", func(t *testing.T) {
		model := echoing()
		c := Start(t, Options{Model: model}).Client()
		if end := c.Ask("main", "/steer go left"); end.Text != "re: go left" || isCommand(final(t, end)) {
			t.Errorf("%s %q", end.State, end.Text)
		}
	})
	t.Run("THINK-02 a model without thinking rejects the level and lists the supported ones", func(t *testing.T) {
		c := Start(t, Options{Model: echoing()}).Client()
		c.Ask("main", "hi")
		end := c.Ask("main", "/think high")
		if !strings.Contains(end.Text, "mock/m does not support the thinking level high") ||
			!strings.Contains(end.Text, "off") {
			t.Errorf("answer %q", end.Text)
		}
		if s := c.describe("main"); s.Thinking == "high" {
			t.Error("the level was stored")
		}
	})
	const ofModel = `, "models": {"mock/m": {"params": {"thinking": "medium"}}}`
	for _, tt := range []struct{ name, more, own, level string }{
		{"of all agents", "", "", "low"},
		{"of the model", ofModel, "", "medium"},
		{"of the agent", ofModel, `"thinkingDefault": "low"`, "low"},
	} {
		t.Run("THINK-04 default shows the inherited level "+tt.name, func(t *testing.T) {
			model := echoing()
			c := Start(t, Options{Model: model, Config: Config{
				"agents.defaults": json.RawMessage(`{"model": "mock/m", "thinkingDefault": "low"` + tt.more + `}`),
				"agents.entries":  json.RawMessage(`{"main": {` + tt.own + `}}`),
				"models":          json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m", "reasoning": true}]}}}`),
			}}).Client()
			for _, step := range []struct{ say, answer, level string }{
				{"hello", "re: hello", tt.level},
				{"/think off", "Thinking: off.", "off"},
				{"/think high", "Thinking: high.", "high"},
				{"/think default", "Thinking: " + tt.level + " (default).", tt.level},
			} {
				if end := c.Ask("main", step.say); end.Text != step.answer {
					t.Errorf("%s: %q", step.say, end.Text)
				}
				c.Ask("main", "hi")
				rs := model.Requests()
				if got := string(rs[len(rs)-1].Thinking); got != step.level {
					t.Errorf("after %s the request has the thinking level %q, want %q", step.say, got, step.level)
				}
			}
			if s := c.describe("main"); s.Default != tt.level {
				t.Errorf("clients see the default level %q, want %q", s.Default, tt.level)
			}
			var agents wire.AgentsList
			c.must(wire.MethodAgentsList, nil, &agents)
			if got := agents.Agents[0].DefaultLevel; got != tt.level {
				t.Errorf("clients see the agent's default level %q, want %q", got, tt.level)
			}
		})
	}
	t.Run("THINK-03 verbose shows tools on a channel: on shows their labels, full also their output",
		func(t *testing.T) { think03(t, false) })
	t.Run("THINK-03 verbose is on by default", func(t *testing.T) { think03(t, true) })
}

// think03 has a person write on a channel. Verbose is on by default, or off.
func think03(t *testing.T, on bool) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("word ", 400)
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			s := llmtest.Call(fmt.Sprint("c", n), "read", `{"path":"long.txt"}`)
			if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
				s = llmtest.Say("done")
			}
			s.Delay = time.Second // notices are sent during the run
			return s
		})
		fake, conf := &channeltest.Fake{}, section("channels", `{"fake": {"allowFrom": ["p"]}}`)
		if on {
			conf["agents.defaults"] = json.RawMessage(`{"verboseDefault": "on"}`)
		}
		g := Start(t, Options{
			Model: model, Channels: map[string]channel.Channel{"fake": fake},
			Config: conf,
		})
		writeFile(t, g, "long.txt", long)
		here := chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}}
		n := 0
		say := func(text string) []string {
			before := len(fake.Texts(here))
			n++
			err := fake.Say(t.Context(),
				chela.Inbound{ID: string(rune('a' + n)), Address: here, Sender: chela.Sender{ID: "p"}, Text: text})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			return fake.Texts(here)[before:]
		}
		if on {
			if got := say("go"); len(got) != 2 || !strings.HasPrefix(got[0], "🔧 ") || got[1] != "done" {
				t.Errorf("on by default: %q", got)
			}
			say("/verbose off")
		}
		if got := say("go"); !slices.Equal(got, []string{"done"}) {
			t.Errorf("quiet: %q", got)
		}
		say("/verbose on")
		if got := say("go"); len(got) != 2 || !strings.HasPrefix(got[0], "🔧 ") ||
			strings.Contains(got[0], "word") || got[1] != "done" {
			t.Errorf("on: %q", got)
		}
		say("/verbose full")
		got := say("go")
		if len(got) != 3 || !strings.HasPrefix(got[0], "🔧 ") || !strings.Contains(got[1], "word") ||
			len(got[1]) > len(long)/2 || got[2] != "done" {
			t.Errorf("full: %q", got)
		}
		g.Stop()
	})
}

func TestUsage(t *testing.T) {
	t.Run("USAGE-01 usage that services report in their own fields is stored in common fields", func(t *testing.T) {
		told := llm.Usage{Input: 120, Output: 30, CacheRead: 500}
		var stored []wire.Usage
		for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
			say := llmtest.Say("ok")
			say.Usage = &told
			url, hc := llmtest.NewServer(t, w, say).Listen()
			c := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)}).Client()
			if end := c.Ask("main", "hi"); end.Text != "ok" {
				t.Fatalf("%s: %q", w, end.Error)
			}
			ms := c.messages("main")
			u := ms[len(ms)-1].Usage
			if u == nil {
				t.Fatalf("%s: no usage", w)
			}
			u.Cost = nil
			stored = append(stored, *u)
			s := c.describe("main")
			if s.OutputTokens != told.Output || s.CacheRead != told.CacheRead || s.TotalTokens != told.Prompt() {
				t.Errorf("%s: session %+v", w, s)
			}
		}
		if stored[0] != stored[1] || stored[0].Input != told.Input || stored[0].Output != told.Output ||
			stored[0].CacheRead != told.CacheRead {
			t.Errorf("stored %+v and %+v, reported %+v", stored[0], stored[1], told)
		}
	})
	t.Run("USAGE-07 after /usage tokens, each of three replies ends with the stored usage", func(t *testing.T) {
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			s := llmtest.Say("ok")
			s.Usage = &llm.Usage{Input: int64(100 * (n + 1)), Output: int64(n + 1), CacheRead: int64(1000 * n)}
			return s
		})
		c := Start(t, Options{Model: model}).Client()
		if end := c.Ask("main", "hi"); footer(final(t, end)) != "" {
			t.Errorf("unexpected footer: %q", footer(final(t, end)))
		}
		c.Ask("main", "/usage tokens")
		for i, shown := range []string{"in 200 · out 2 · cached 1k", "in 300 · out 3 · cached 2k",
			"in 400 · out 4 · cached 3k"} {
			got := footer(final(t, c.Ask("main", "again")))
			ms := c.messages("main")
			u := ms[len(ms)-1].Usage
			want := usage.Tokens(llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
			if got != want || got != shown {
				t.Errorf("reply %d: footer %q, stored %q, want %q", i, got, want, shown)
			}
		}
		c.Ask("main", "/usage off")
		if end := c.Ask("main", "again"); footer(final(t, end)) != "" {
			t.Errorf("footer after off: %q", footer(final(t, end)))
		}
	})
}
