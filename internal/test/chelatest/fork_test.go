package chelatest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// forkedAt is in the last message of the first request of a fork.
const forkedAt = "From here on you are a subagent"

// common returns the length of the common prefix.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestForkPrefix compares the requests of a fork with those of its requester as the
// service receives them.
func TestForkPrefix(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		t.Run("SEED-09 the first request of a fork begins with the bytes of its requester's: "+string(w), func(t *testing.T) {
			t.Parallel()
			done := make(chan struct{})
			srv := llmtest.ServerFunc(t, w, func(n int, r llmtest.ReceivedRequest) llmtest.Step {
				switch fork := bytes.Contains(r.Body, []byte(forkedAt)); {
				case fork && !bytes.Contains(r.Body, []byte("call_child")):
					return llmtest.Call("call_child", "sessions_spawn", `{"task":"one more"}`)
				case fork:
					defer close(done)
					return llmtest.Say("it is done")
				case bytes.Contains(r.Body, []byte("fork yourself")) && !bytes.Contains(r.Body, []byte("call_fork")):
					return llmtest.Calls(
						llmtest.ToolCall("call_fork", "sessions_spawn", `{"task":"count the words","label":"counter","context":"fork"}`),
						llmtest.ToolCall("call_ls", "ls", `{}`))
				}
				return llmtest.Say("noted")
			})
			url, hc := srv.Listen()
			g := Start(t, Options{HTTP: hc, Config: modelConfig(w, url)})
			c := g.Client()
			for range 4 {
				c.Ask("main", strings.Repeat("remember all of these words, please. ", 2000))
			}
			c.Ask("main", "fork yourself")
			<-done
			var parent, child, second []byte
			for _, r := range srv.Requests() {
				switch {
				case !bytes.Contains(r.Body, []byte(forkedAt)):
					if !bytes.Contains(r.Body, []byte("call_fork")) {
						parent = r.Body // the last one is that which asked for the fork
					}
				case child == nil:
					child = r.Body
				case second == nil:
					second = r.Body
				}
			}
			if n := common(parent, child); n*100 < 99*len(child) {
				t.Errorf("%d of %d bytes are common, the requester's request has %d: …%s… instead of …%s…", n, len(child),
					len(parent), child[n:min(n+100, len(child))], parent[n:min(n+100, len(parent))])
			}
			if n := bytes.Count(child, []byte(subagent.OpenCall)); n != 2 {
				t.Errorf("%d placeholders, want one for each call of the requester", n)
			}
			if !bytes.Contains(child, []byte(`## Your task\n\ncount the words"`)) {
				t.Errorf("the request does not end with the task: %s", child[len(child)-200:])
			}
			if !bytes.Contains(second, []byte("a subagent may not use this tool")) {
				t.Error("the tool that only the requester may use was not refused")
			}
		})
	}
}

func TestFork(t *testing.T) {
	// started returns a gateway whose main session has a history.
	started := func(t *testing.T, o Options) (*family, *Client, *Gateway) {
		t.Helper()
		f := newFamily()
		o.Model = f
		g := Start(t, o)
		c := g.Client()
		c.Ask("main", "say the first answer")
		c.Ask("main", "say the second answer")
		return f, c, g
	}
	// forks returns the requests of forks with the task, in order.
	forks := func(f *family, task string) (out []*llm.Request) {
		for _, r := range f.Requests() {
			if slices.ContainsFunc(r.Messages, func(m *llm.Message) bool {
				return strings.Contains(m.PlainText(), forkedAt) && strings.HasSuffix(m.PlainText(), task)
			}) {
				out = append(out, r)
			}
		}
		return out
	}
	fork := func(text string, more ...string) string { return task(text, append(more, "context", "fork")...) }

	t.Run("a fork knows the conversation, and is announced like others", func(t *testing.T) {
		t.Parallel()
		f, c, _ := started(t, Options{})
		c.Ask("main", fork("say forked", "label", "twin"))
		if got := c.answer("told "); got != "told twin ok" {
			t.Errorf("told %q", got)
		}
		all := forks(f, "say forked")
		if len(all) != 1 {
			t.Fatalf("%d requests of the fork", len(all))
		}
		var texts []string
		for _, m := range all[0].Messages {
			texts = append(texts, m.PlainText())
		}
		if all := strings.Join(texts, "\n"); !strings.Contains(all, "the first answer") ||
			!strings.Contains(all, "the second answer") {
			t.Errorf("history %q", all)
		}
	})
	t.Run("a fork is refused for another agent, model, type or thinking level", func(t *testing.T) {
		t.Parallel()
		_, c, _ := started(t, Options{Config: Config{
			"agents.defaults": json.RawMessage(`{"subagents": {"allowAgents": ["*"]}}`),
			"agents.list":     json.RawMessage(`[{"id": "ops"}]`),
			"models":          json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m"}, {"id": "other"}]}}}`),
		}})
		for _, tc := range [][3]string{
			{"agentId", "ops", "a fork has the agent of its requester"},
			{"model", "mock/other", "a fork has the model of its requester"},
			{"agentType", "explore", "leave agentType out"}, {"thinking", "high", "leave thinking out"},
		} {
			if end := c.Ask("main", fork("say x", tc[0], tc[1])); !strings.Contains(end.Text, tc[2]) ||
				!strings.Contains(end.Text, "context isolated") {
				t.Errorf("%s %s: %q", tc[0], tc[1], end.Text)
			}
		}
		if end := c.Ask("main", task("say x", "context", "all")); strings.Contains(end.Text, "accepted") {
			t.Errorf("an unknown context: %q", end.Text)
		}
	})
	t.Run("SESS-12 a subagent inherits no conversation of more than 100,000 tokens, and says so", func(t *testing.T) {
		t.Parallel()
		for limit, inherits := range map[string]bool{"": false, "150000": true, "0": true} {
			o := Options{}
			if limit != "" {
				o.Config = section("session", `{"parentForkMaxTokens": `+limit+`}`)
			}
			f, c, _ := started(t, o)
			c.Ask("main", "say it\n"+strings.Repeat("many words ", 44_000)) // 121,000 tokens
			end := c.Ask("main", fork("say x", "label", "twin"))
			if got := strings.Contains(end.Text, "begins without this conversation, because it has 12"); got == inherits {
				t.Errorf("limit %s: the result is %.400q", limit, end.Text)
			}
			if got := c.answer("told "); got != "told twin ok" {
				t.Errorf("limit %s: told %q", limit, got)
			}
			child := f.childRequest("say x")
			if inherits == (child != nil) || inherits != (len(forks(f, "say x")) > 0) {
				t.Errorf("limit %s: the subagent began without the conversation: %v", limit, child != nil)
			}
		}
	})
	t.Run("a fork of a conversation of more than 4 MB is refused", func(t *testing.T) {
		t.Parallel()
		_, c, _ := started(t, Options{Config: Config{
			"session":         json.RawMessage(`{"parentForkMaxTokens": 0}`),
			"agents.defaults": json.RawMessage(`{"compaction": {"enabled": false}}`),
		}})
		for range 5 {
			c.Ask("main", "say it\n"+strings.Repeat("many words ", 90_000))
		}
		if end := c.Ask("main", fork("say x")); !strings.Contains(end.Text, "at most 4 MB can be inherited") {
			t.Errorf("answer %.300q", end.Text)
		}
	})
	t.Run("a fork shares the sandbox of its requester", func(t *testing.T) {
		t.Parallel()
		f, c, _ := started(t,
			Options{Config: Config{
				"agents.defaults": json.RawMessage(
					`{"sandbox": {"mode": "all", "scope": "session"}, "subagents": {"maxSpawnDepth": 2}}`),
				"tools.sandbox.tools": json.RawMessage(`{"allow": ["*"]}`)}})
		c.Ask("main", fork(fork("say inside", "label", "leaf"), "label", "boss"))
		c.answer("told boss ok")
		all := forks(f, "say inside")
		if len(all) == 0 || systemOf(all[0]) != systemOf(f.Requests()[0]) {
			t.Error("the prompt differs")
		}
	})
	t.Run("a fork is refused where it would be sandboxed and its requester is not", func(t *testing.T) {
		t.Parallel()
		_, c, _ := started(t,
			Options{Config: Config{"agents.defaults": json.RawMessage(`{"sandbox": {"mode": "non-main"}}`)}})
		if end := c.Ask("main", fork("say x")); !strings.Contains(end.Text, "would work in another folder") {
			t.Errorf("answer %q", end.Text)
		}
	})
	t.Run("a fork of a fork has the same prompt and tools, and its own rights", func(t *testing.T) {
		t.Parallel()
		f, c, _ := started(t,
			Options{Config: Config{"agents.defaults": json.RawMessage(`{"subagents": {"maxSpawnDepth": 2}}`)}})
		c.Ask("main", fork(fork("subagents {\"action\":\"list\"}\nsessions_spawn {\"task\":\"too deep\"}", "label", "leaf"),
			"label", "boss"))
		c.answer("told boss ok")
		requests := f.Requests()
		first, leaf := requests[0], forks(f, `"too deep"}`)
		if len(leaf) < 2 {
			t.Fatalf("%d requests of the leaf", len(leaf))
		}
		if systemOf(leaf[0]) != systemOf(first) || !slices.Equal(toolNames(leaf[0]), toolNames(first)) ||
			leaf[0].Session != first.Session {
			t.Error("the prompt, the tools or the cache differ")
		}
		if last := leaf[1].Messages[len(leaf[1].Messages)-1].PlainText(); !strings.Contains(last,
			"a subagent may not use this tool") {
			t.Errorf("the call of the leaf: %q", last)
		}
	})
	t.Run("a fork survives a restart and the compaction of its requester", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			gate, begun := make(chan struct{}), make(chan struct{})
			o := Options{Dir: t.TempDir(), Tools: []tool.Tool{blocking("stall", begun, gate)}}
			f, c, g := started(t, o)
			c.Ask("main", fork("stall {}", "label", "twin"))
			<-begun
			var out wire.SessionCompacted
			if c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main", MaxLines: 2}, &out); !out.Compacted {
				t.Fatalf("not compacted: %s", out.Reason)
			}
			c.Close()
			g.Stop()
			close(gate)
			connected := make(chan struct{})
			o.Model, o.Tools = f, []tool.Tool{blocking("stall", make(chan struct{}), connected)}
			g = Start(t, o)
			c = g.Client()
			close(connected)
			if got := c.answer("told "); got != "told twin ok" {
				t.Errorf("told %q", got)
			}
			all := forks(f, "stall {}")
			if len(all) != 2 {
				t.Fatalf("%d requests of the fork", len(all))
			}
			before, after := all[0], all[1]
			if systemOf(before) != systemOf(after) || !slices.Equal(toolNames(before), toolNames(after)) {
				t.Error("the prompt or the tools changed")
			}
			for i, m := range before.Messages {
				if got := after.Messages[i]; got.Role != m.Role || got.PlainText() != m.PlainText() {
					t.Errorf("message %d is %q, was %q", i, got.PlainText(), m.PlainText())
				}
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("a fork whose history was cut has a prompt of its own", func(t *testing.T) {
		t.Parallel()
		f, c, _ := started(t, Options{})
		c.Ask("main", fork("say forked", "label", "twin"))
		c.answer("told ")
		var l wire.SessionList
		c.must(wire.MethodSessionsList, wire.SessionsList{}, &l)
		i := slices.IndexFunc(l.Sessions, func(s wire.Session) bool { return strings.Contains(s.Key, ":subagent:") })
		if i < 0 {
			t.Fatal("the fork is not listed")
		}
		var out wire.SessionCompacted
		if c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: l.Sessions[i].Key, MaxLines: 2},
			&out); !out.Compacted {
			t.Fatalf("not compacted: %s", out.Reason)
		}
		c.Ask(l.Sessions[i].Key, "say after the cut")
		all := f.Requests()
		last := all[len(all)-1]
		if !strings.Contains(systemOf(last), "Your task: say forked") || slices.Contains(toolNames(last), "sessions_spawn") ||
			!slices.Contains(toolNames(all[0]), "sessions_spawn") {
			t.Errorf("tools %q, prompt %s", toolNames(last), systemOf(last))
		}
	})
}
