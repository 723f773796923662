package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// talker is a model with a window that answers everything with "ok", and summaries as
// it is told.
type talker struct {
	window  int                                      // a longer request is refused; 0: none
	summary func(n int, r *llm.Request) llmtest.Step // of summary n; nil: goodSummary
	answer  func(r *llm.Request) llmtest.Step        // nil: ok

	mu    sync.Mutex // a compaction may run besides the test
	asked []*llm.Request
}

// summaries returns the requests for summaries until now.
func (k *talker) summaries() []*llm.Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.asked)
}

const goodSummary = "## Goal\nThe user told the assistant about several things, and the assistant said ok to all of them."

// script returns the model. Its usage is what the requests are estimated at.
func (k *talker) script() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		size := estimate.Messages(r.Messages...)
		for _, b := range r.System {
			size += estimate.Text(b.Text)
		}
		for _, t := range r.Tools {
			size += estimate.Tool(t)
		}
		var step llmtest.Step
		switch {
		case k.window > 0 && size > k.window:
			return llmtest.Status(400, fmt.Sprintf("prompt is too long: %d tokens > %d maximum", size, k.window))
		case isSummary(r):
			k.mu.Lock()
			k.asked = append(k.asked, r)
			n := len(k.asked)
			k.mu.Unlock()
			step = llmtest.Say(goodSummary)
			if k.summary != nil {
				step = k.summary(n, r)
			}
		case k.answer != nil:
			step = k.answer(r)
		default:
			step = llmtest.Say("ok")
		}
		if step.Usage == nil {
			step.Usage = &llm.Usage{Input: int64(size), Output: 10}
		}
		return step
	})
}

func isSummary(r *llm.Request) bool {
	_, _, ok := compact.IsRequest(r)
	return ok
}

// windowed is a configuration with a model of a window, and of compactions.
func windowed(window int, compaction string) Config {
	return Config{
		"models": json.RawMessage(
			fmt.Sprintf(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": %d}]}}}`, window)),
		"agents.defaults": json.RawMessage(fmt.Sprintf(`{"compaction": %s}`, compaction)),
	}
}

const noFlush = `{"memoryFlush": {"enabled": false}}`

// filler is a text of about n tokens that differs by its number.
func filler(i, n int) string {
	return fmt.Sprintf("message %d. ", i) + strings.Repeat("lorem ipsum dolor sit amet ", n*4/27)
}

// until waits until a session has a number of compactions.
func (c *Client) until(session string, n int) {
	c.t.Helper()
	settles(c.t.(*testing.T), "compactions", true, func() bool {
		_, text, _ := strings.Cut(c.Ask(session, "/status").Text, "🧹 Compactions: ")
		got := 0
		fmt.Sscan(text, &got)
		return got >= n
	})
}

// withFile returns a state directory with a file in the workspace.
func withFile(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workspace", name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	t.Run("COMPACT-01 a long conversation is compacted after a turn, and the next request begins with the summary",
		func(t *testing.T) {
			t.Parallel()
			k := &talker{window: 33_000,
				summary: func(int, *llm.Request) llmtest.Step { return llmtest.Say(goodSummary + " ORD-77-1") }}
			model := k.script()
			g := Start(t, Options{Model: model, Config: windowed(33_000, noFlush)})
			c := g.Client()
			for i := range 9 {
				if end := c.Ask("main", filler(i, 2500)+" The number of the order is ORD-77-"+fmt.Sprint(i)); end.Text != "ok" {
					t.Fatalf("%s %q", end.State, end.Error)
				}
			}
			c.until("main", 1)
			c.Ask("main", "what now?")
			all := model.Requests()
			last := all[len(all)-1]
			first := last.Messages[0].PlainText()
			if !strings.Contains(first, goodSummary) || !strings.Contains(first, "ORD-77-0") || len(first) > 4000 {
				t.Errorf("the first message is %.600q", first)
			}
			if last.Messages[len(last.Messages)-1].PlainText() != "what now?" || len(last.Messages) < 4 {
				t.Errorf("%d messages", len(last.Messages))
			}
			if lines := c.lines("main"); !strings.Contains(lines[0], "message 0") {
				t.Errorf("the history begins with %.60q", lines[0])
			}
			explained := c.Ask("main", "/compact explain").Text
			for _, want := range []string{"the context was almost full", "Summary by mock/m",
				"Exam: the summary had", "ORD-77-0"} {
				if !strings.Contains(explained, want) {
					t.Errorf("%q is missing in %s", want, explained)
				}
			}

			before := len(model.Requests())
			c.Ask("main", "/compact undo")
			g.Stop()
			k.window = 0
			c = Start(t, Options{Dir: g.Dir, Model: model, Config: windowed(300_000, noFlush)}).Client()
			c.Ask("main", "and now?")
			if got := model.Requests()[before].Messages; !strings.Contains(got[0].PlainText(), "message 0") || len(got) < 20 {
				t.Errorf("after undo, %d messages begin with %.60q", len(got), got[0].PlainText())
			}
		})
	t.Run("COMPACT-08 the hint of /compact is in the request for the summary", func(t *testing.T) {
		t.Parallel()
		k := &talker{}
		model := k.script()
		c := Start(t, Options{Model: model, Config: windowed(100_000, noFlush)}).Client()
		for i := range 4 {
			c.Ask("main", filler(i, 500))
		}
		end := c.Ask("main", "/compact Focus on API")
		if end.State != wire.StateFinal || !strings.Contains(end.Text, "🧹 Compacted") {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if len(k.summaries()) != 1 || !strings.Contains(k.summaries()[0].Messages[0].PlainText(), "Focus on API") {
			t.Errorf("%d requests for summaries", len(k.summaries()))
		}
		if got := c.Ask("main", "/compact undo").Text; !strings.Contains(got, "undone") {
			t.Errorf("undo: %q", got)
		}
		if got := c.Ask("main", "/compact undo").Text; !strings.Contains(got, "nothing to undo") {
			t.Errorf("undo: %q", got)
		}
		if got := c.Ask("main", "/compact explain").Text; !strings.Contains(got, "was not compacted") {
			t.Errorf("explain: %q", got)
		}
	})
	t.Run("COMPACT-10 after an overflow the conversation is compacted, and the same message is sent once",
		func(t *testing.T) {
			t.Parallel()
			k := &talker{window: 20_000}
			model := k.script()
			c := Start(t, Options{Model: model, Config: windowed(200_000, noFlush)}).Client()
			for i := range 4 {
				c.Ask("main", filler(i, 3000))
			}
			end := c.Ask("main", filler(4, 3000)+" the last one")
			if end.State != wire.StateFinal || end.Text != "ok" {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			users := 0
			for _, l := range c.lines("main") {
				if strings.HasPrefix(l, "user: ") && strings.Contains(l, "the last one") {
					users++
				}
			}
			if all := model.Requests(); users != 1 || !strings.Contains(all[len(all)-1].Messages[0].PlainText(), "<summary>") {
				t.Errorf("%d messages of the user", users)
			}
		})
	t.Run("a model that overflows for ever ends with one clear message", func(t *testing.T) {
		t.Parallel()
		calls := 0
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			calls++
			if isSummary(r) {
				return llmtest.Say(goodSummary)
			}
			if n < 6 {
				return llmtest.Say("ok")
			}
			return llmtest.Status(400, "prompt is too long")
		})
		c := Start(t, Options{Model: model, Config: windowed(200_000, noFlush)}).Client()
		for i := range 6 {
			c.Ask("main", filler(i, 2000))
		}
		end := c.Ask("main", "again")
		if end.State != wire.StateError || !strings.Contains(end.Error, "too long") || calls > 20 {
			t.Errorf("%s %q %s after %d calls", end.State, end.Text, end.Error, calls)
		}
	})
	t.Run("COMPACT-04 a summary that always fails is replaced by a note, and the chat goes on", func(t *testing.T) {
		t.Parallel()
		k := &talker{summary: func(int, *llm.Request) llmtest.Step { return llmtest.Status(500, "broken") }}
		model := k.script()
		c := Start(t, Options{Model: model, Config: windowed(100_000, noFlush)}).Client()
		for i := range 4 {
			c.Ask("main", filler(i, 500)+" Never call Dr. Okafor on +44 20 7946 0958.")
		}
		c.Ask("main", "/compact")
		if len(k.summaries()) > 6 {
			t.Errorf("%d calls", len(k.summaries()))
		}
		if end := c.Ask("main", "go on"); end.Text != "ok" {
			t.Errorf("%s %q", end.State, end.Error)
		}
		all := model.Requests()
		first := all[len(all)-1].Messages[0].PlainText()
		if !strings.Contains(first, "messages before this point could not be summarized") ||
			!strings.Contains(first, "+44 20 7946 0958") {
			t.Errorf("%.500q", first)
		}
	})
	for name, bad := range map[string]llmtest.Step{
		"an empty":     llmtest.Say(" "),
		"a refusing":   llmtest.Say("I'm sorry, but I can't help with that."),
		"a lying":      llmtest.Say("They discussed the weather in Norway and planned a hiking trip together."),
		"an unshorter": llmtest.Say(strings.Repeat("and then they talked about lorem ipsum ", 900)),
	} {
		t.Run("COMPACT-13 "+name+" summary is requested again", func(t *testing.T) {
			t.Parallel()
			k := &talker{summary: func(n int, _ *llm.Request) llmtest.Step {
				if n == 1 {
					return bad
				}
				return llmtest.Say(goodSummary + " The code is QX7R2M.")
			}}
			model := k.script()
			c := Start(t, Options{Model: model, Config: windowed(100_000, noFlush)}).Client()
			for i := range 4 {
				c.Ask("main", filler(i, 500)+" The code is QX7R2M, the door is D-4711, and the host web-07.example.net.")
			}
			c.Ask("main", "/compact")
			explained := c.Ask("main", "/compact explain").Text
			if len(k.summaries()) != 2 || !strings.Contains(explained, "Summary by mock/m, 2 model calls") ||
				!strings.Contains(explained, "Rejected:") {
				t.Errorf("%d calls: %s", len(k.summaries()), explained)
			}
		})
	}
	t.Run("sessions.compact returns the summary, and the cost of it is counted", func(t *testing.T) {
		t.Parallel()
		k := &talker{}
		c := Start(t, Options{Model: k.script(), Config: windowed(100_000, noFlush)}).Client()
		for i := range 4 {
			c.Ask("main", filler(i, 500))
		}
		calls := c.describe("main").InputTokens
		var out wire.SessionCompacted
		c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main"}, &out)
		if !out.Compacted || out.Result == nil || !strings.Contains(out.Result.Summary, goodSummary) ||
			out.Result.FirstKept == "" || out.Result.TokensBefore <= out.Result.TokensAfter {
			t.Errorf("%+v %+v", out, out.Result)
		}
		if now := c.describe("main").InputTokens; now <= calls {
			t.Errorf("%v input tokens, %v before", now, calls)
		}
		for range 3 {
			out = wire.SessionCompacted{}
			if c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main"}, &out); !out.Compacted {
				break
			}
		}
		if out.Compacted || !strings.Contains(out.Reason, "short already") {
			t.Errorf("again and again: %+v", out)
		}
		c.Ask("main", "one")
		c.Ask("main", "two")
		before := len(c.lines("main"))
		out = wire.SessionCompacted{}
		if c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main", MaxLines: 2}, &out); !out.Compacted {
			t.Errorf("maxLines: %+v", out)
		}
		if n := len(c.lines("main")); n < before {
			t.Errorf("%d lines of %d are left", n, before)
		}
	})
	t.Run("COMPACT-05 the rules of AGENTS.md follow the summary", func(t *testing.T) {
		t.Parallel()
		k := &talker{}
		model := k.script()
		c := Start(t,
			Options{Dir: withFile(t, "AGENTS.md", "# Me\n\n## Red Lines\nNever touch the piano.\n\n## Other\nElse.\n"),
				Model: model, Config: windowed(100_000, noFlush)}).Client()
		for i := range 4 {
			c.Ask("main", filler(i, 500))
		}
		c.Ask("main", "/compact")
		c.Ask("main", "go on")
		all := model.Requests()
		first := all[len(all)-1].Messages[0].PlainText()
		if !strings.Contains(first,
			"</summary>\n\n[From AGENTS.md, which still holds:]\n\n## Red Lines\nNever touch the piano.") ||
			strings.Contains(first, "Else.") {
			t.Errorf("%s", first)
		}
		c.Ask("main", "again")
		all = model.Requests()
		if again := all[len(all)-1].Messages[0].PlainText(); again != first {
			t.Errorf("the next request begins with other bytes: %s", again)
		}
	})
	t.Run("COMPACT-06 ids and links that the summary dropped are put back, and stay the same after a restart",
		func(t *testing.T) {
			t.Parallel()
			k := &talker{}
			model := k.script()
			g := Start(t, Options{Model: model, Config: windowed(100_000, noFlush)})
			c := g.Client()
			for i := range 4 {
				c.Ask("main", filler(i, 500)+" See a1b2-XYZ and https://ci.example.com/jobs/7?x=1.")
			}
			var out wire.SessionCompacted
			c.must(wire.MethodSessionsCompact, wire.SessionsCompact{Key: "main"}, &out)
			if out.Result == nil || !strings.Contains(out.Result.Summary, "a1b2-XYZ") ||
				!strings.Contains(out.Result.Summary, "https://ci.example.com/jobs/7?x=1") {
				t.Errorf("%+v", out.Result)
			}
			if !strings.Contains(k.summaries()[0].Messages[0].PlainText(), "Copy ids, hashes, links") {
				t.Error("the request does not ask for literal ids")
			}
			made := len(model.Requests())
			c.Ask("main", "one")
			g.Stop()
			c = Start(t, Options{Dir: g.Dir, Model: model, Config: windowed(100_000, noFlush)}).Client()
			c.Ask("main", "two")
			all := model.Requests()
			one, two := all[made].Messages, all[made+1].Messages
			for i, m := range one {
				if two[i].PlainText() != m.PlainText() {
					t.Errorf("after a restart message %d is %q", i, two[i].PlainText())
				}
			}
		})
	t.Run("between the calls of a turn, a conversation that has become too long is compacted", func(t *testing.T) {
		t.Parallel()
		k := &talker{window: 32_000, summary: func(int, *llm.Request) llmtest.Step {
			return llmtest.Say(goodSummary + " The person wants big.txt read.")
		}}
		reads := 0
		k.answer = func(*llm.Request) llmtest.Step {
			if reads < 6 {
				reads++
				return llmtest.Call(fmt.Sprint("r", reads), "read", fmt.Sprintf(`{"path": "big.txt", "limit": %d}`, 1000+reads))
			}
			return llmtest.Say("done")
		}
		c := Start(t, Options{Dir: withFile(t, "big.txt", strings.Repeat("lorem ipsum dolor sit amet\n", 500)),
			Model:  k.script(),
			Config: windowed(32_000, `{"memoryFlush": {"enabled": false}, "midTurnPrecheck": {"enabled": true}}`)}).Client()
		end := c.Ask("main", "read big.txt six times")
		if end.Text != "done" || len(k.summaries()) == 0 {
			t.Errorf("%s %q %s, %d summaries", end.State, end.Text, end.Error, len(k.summaries()))
		}
	})
	t.Run("a model of its own writes the summaries, and the person is told if they want it", func(t *testing.T) {
		t.Parallel()
		k := &talker{}
		fake := &channeltest.Fake{}
		conf := windowed(30_000,
			`{"model": "mock/small", "thinkingLevel": "off", "notifyUser": true, "memoryFlush": {"enabled": false}}`)
		conf["models"] = json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 30000}, {"id": "small", "contextWindow": 30000}]}}}`)
		conf["channels"] = json.RawMessage(`{"talk": {"allowFrom": ["ann"]}}`)
		Start(t, Options{Model: k.script(), Config: conf, Channels: map[string]channel.Channel{"talk": fake}})
		a := chela.Address{Channel: "talk", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
		say := func(id, text string) {
			if err := fake.Say(t.Context(),
				chela.Inbound{ID: id, Address: a, Sender: chela.Sender{ID: "ann"}, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 9 {
			say(fmt.Sprint(i), filler(i, 2500))
			settles(t, "answers", true, func() bool { return len(fake.Texts(a)) > i })
		}
		settles(t, "the notice", true, func() bool { return slices.Contains(fake.Texts(a), "🧹 Auto-compaction complete") })
		if len(k.summaries()) == 0 || k.summaries()[0].Model != "small" {
			t.Errorf("%d summaries", len(k.summaries()))
		}
		say("explain", "/compact explain")
		settles(t, "the explanation", true, func() bool {
			return strings.Contains(strings.Join(fake.Texts(a), "\n"), "tokens; ")
		})
	})
	t.Run("the built-in assistant compacts without a key", func(t *testing.T) {
		t.Parallel()
		c := Start(t, Options{Config: Config{"agents.defaults": json.RawMessage(`{"compaction": ` + noFlush + `}`)}}).Client()
		for i := range 5 {
			c.Ask("main", "say "+filler(i, 300))
		}
		if end := c.Ask("main", "/compact"); !strings.Contains(end.Text, "🧹 Compacted") {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if got := c.Ask("main", "/compact explain").Text; !strings.Contains(got, "Summary by offline/") {
			t.Error(got)
		}
	})
}

func TestMemoryFlush(t *testing.T) {
	t.Parallel()
	t.Run("COMPACT-07 notes are saved once before a compaction, and the person sees nothing", func(t *testing.T) {
		t.Parallel()
		isFlush := func(r *llm.Request) bool {
			for _, m := range r.Messages {
				if strings.Contains(m.PlainText(), "The conversation will be summarized soon") {
					return true
				}
			}
			return false
		}
		var flushes atomic.Int32 // counted by a compaction, which runs besides the test
		asked := 0
		k := &talker{}
		k.answer = func(r *llm.Request) llmtest.Step {
			switch last := r.Messages[len(r.Messages)-1]; {
			case !isFlush(r):
				return llmtest.Say("ok")
			case last.Role == llm.RoleTool && strings.Contains(last.PlainText(), "available in this turn"):
				return llmtest.Call("w2", "write", `{"path": "memory/2026-11-26.md", "content": "the code is QX7R2M"}`)
			case last.Role == llm.RoleTool:
				return llmtest.Say("NO_REPLY")
			default:
				flushes.Add(1)
				return llmtest.Call("w1", "exec", `{"command": "touch harm"}`)
			}
		}
		model := k.script()
		dir := t.TempDir()
		c := Start(t, Options{Dir: dir, Model: model, Config: windowed(40_000, `{}`)}).Client()
		for i := range 11 {
			c.Ask("main", filler(i, 2500))
			if asked++; i > 3 && flushes.Load() > 0 {
				break
			}
		}
		settles(t, "the notes", "the code is QX7R2M", func() string {
			b, _ := os.ReadFile(filepath.Join(dir, "workspace", "memory", "2026-11-26.md"))
			return string(b)
		})
		if _, err := os.Stat(filepath.Join(dir, "workspace", "harm")); err == nil {
			t.Error("a command ran")
		}
		end := c.Ask("main", "short question")
		all := model.Requests()
		if last := all[len(all)-1]; isFlush(last) || len(last.Messages) != 2*asked+
			1 && !strings.Contains(last.Messages[0].PlainText(), "<summary>") {
			t.Errorf("after %d messages the next request has %d", asked, len(last.Messages))
		}
		for i := range 6 {
			c.Ask("main", filler(20+i, 2500))
		}
		c.until("main", 1)
		if n := flushes.Load(); n > 2 {
			t.Errorf("%d turns for notes", n)
		}
		for _, l := range c.lines("main") {
			if strings.Contains(l, "NO_REPLY") || strings.Contains(l, "summarized soon") || strings.Contains(l, "<write>") {
				t.Errorf("the history has %q", l)
			}
		}
		for _, ev := range end.Seen {
			if strings.Contains(string(ev.Payload), "NO_REPLY") || strings.Contains(string(ev.Payload), "summarized soon") {
				t.Errorf("an event has %s", ev.Payload)
			}
		}
	})
}
