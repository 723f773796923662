package chelatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// modelWindow returns a configuration in which the model has a window.
func modelWindow(tokens int, defaults string) Config {
	return Config{
		"models": json.RawMessage(
			fmt.Sprintf(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": %d, "input": ["text", "image"]}]}}}`,
				tokens)),
		"agents.defaults": json.RawMessage(defaults),
	}
}

// logTo returns a log that writes to a buffer.
func logTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func TestWindow(t *testing.T) {
	t.Parallel()
	t.Run("CTX-01 CTX-02 CTX-08 a small window is refused, or logged once", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			tokens           int
			refused, warned  bool
			defaults, source string
		}{
			{8_000, true, false, `{}`, "modelsConfig"},
			{15_999, true, false, `{}`, "modelsConfig"},
			{16_000, false, true, `{}`, ""},
			{31_999, false, true, `{}`, ""},
			{32_000, false, false, `{}`, ""},
			{200_000, true, false, `{"contextTokens": 9000}`, "agentContextTokens"},
		} {
			var log bytes.Buffer
			model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("hello") })
			c := Start(t, Options{Model: model, Config: modelWindow(tt.tokens, tt.defaults), Log: logTo(&log)}).Client()
			end := c.Ask("main", "hi")
			c.Ask("other", "hi")
			if refused := end.State == wire.StateError; refused != tt.refused || refused && len(model.Requests()) > 0 {
				t.Errorf("%d: %s %q, %d model calls", tt.tokens, end.State, end.Error, len(model.Requests()))
			}
			if tt.refused && (!strings.Contains(end.Error, tt.source) || !strings.Contains(end.Error, "16000")) {
				t.Errorf("%d: refused with %q", tt.tokens, end.Error)
			}
			want := 0
			if tt.warned {
				want = 1
			}
			if n := strings.Count(log.String(), "context window of the model is small"); n != want {
				t.Errorf("%d: logged %d times\n%s", tt.tokens, n, log.String())
			}
		}
	})
	t.Run("the limit that a provider names in an error is remembered for the session", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 1 {
				return llmtest.Status(400,
					"This model's maximum context length is 16384 tokens. However, you requested 20000 tokens.")
			}
			return llmtest.Say("ok")
		})
		model.Name = "mock"
		g := Start(t, Options{Model: model, Config: modelWindow(200_000, `{}`)})
		c := g.Client()
		c.Ask("main", "one")
		if end := c.Ask("main", "two"); end.Text != "ok" {
			t.Fatalf("%s %q", end.State, end.Error)
		}
		if got := c.Ask("main", "/status").Text; !strings.Contains(got, "16k tokens") && !strings.Contains(got, "of 16k") ||
			!strings.Contains(got, "provider") {
			t.Errorf("status %q", got)
		}
		if got := c.Ask("other", "/status").Text; !strings.Contains(got, "200k") || !strings.Contains(got, "modelsConfig") {
			t.Errorf("status of another session %q", got)
		}
		g.Stop()
		c = Start(t, Options{Dir: g.Dir, Model: model, Config: modelWindow(200_000, `{}`)}).Client()
		if got := c.Ask("main", "/status").Text; !strings.Contains(got, "provider") {
			t.Errorf("status after a restart %q", got)
		}
	})
	t.Run("CTX-10 only the newest messages are sent, and the system prompt is unchanged", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == llm.RoleUser && last.PlainText() == "list" {
				return llmtest.Call("c", "ls", `{}`)
			}
			return llmtest.Say("ok")
		})
		c := Start(t, Options{Model: model, Config: modelWindow(200_000, `{"maxHistoryMessages": 4}`)}).Client()
		for range 4 {
			c.Ask("main", "list")
			c.Ask("main", "and")
		}
		all := model.Requests()
		for i, r := range all {
			own := 0
			for _, m := range r.Messages {
				if m.PlainText() != "[The conversation begins here.]" {
					own++
				}
			}
			if own > 6 || len(r.System) == 0 || r.System[0].Text != all[0].System[0].Text {
				t.Errorf("request %d has %d messages", i, own)
			}
		}
		if n := len(all[len(all)-1].Messages); n > 6 {
			t.Errorf("%d messages", n)
		}
	})
}

// spewing is a tool with a long result.
func spewing(size int) tool.Tool {
	return done{"spew", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Text(strings.Repeat("0123456789abcde\n", size/16)), nil
	}}
}

// prefix reports whether the messages of a request begin with those of an earlier one,
// byte for byte.
func prefix(earlier, later *llm.Request) bool {
	a, _ := json.Marshal(earlier.Messages)
	b, _ := json.Marshal(later.Messages)
	return bytes.HasPrefix(b, a[:len(a)-1])
}

func TestPruning(t *testing.T) {
	t.Parallel()
	spew := func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleUser && strings.HasPrefix(last.PlainText(), "spew") {
			return llmtest.Call(fmt.Sprint("c", n), "spew", `{}`)
		}
		return llmtest.Say("ok")
	}
	pruned := func(r *llm.Request) (n int) {
		for _, m := range r.Messages {
			if m.Role == llm.RoleTool && strings.Contains(m.PlainText(), "[Tool result trimmed:") {
				n++
			}
		}
		return n
	}
	t.Run("PRUNE-02 PRUNE-04 CACHE-01 requests begin with the bytes of the last one until the cache has expired, and again after it, also after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conf := modelWindow(36_000, `{"contextPruning": {"mode": "cache-ttl"}}`)
			model := llmtest.ScriptFunc(spew)
			o := Options{Dir: t.TempDir(), Model: model, Config: conf, Tools: []tool.Tool{spewing(15_000)}}
			g := Start(t, o)
			c := g.Client()
			for range 3 {
				c.Ask("main", "spew")
				time.Sleep(time.Minute)
			}
			for range 3 {
				c.Ask("main", "and")
				time.Sleep(4 * time.Minute)
			}
			warm := model.Requests()
			for i := 1; i < len(warm); i++ {
				if !prefix(warm[i-1], warm[i]) || pruned(warm[i]) > 0 {
					t.Fatalf("request %d does not begin like the one before", i)
				}
			}
			time.Sleep(2 * time.Minute)
			c.Ask("main", "late")
			cold := model.Requests()[len(warm)]
			if pruned(cold) != 3 {
				t.Errorf("%d results are pruned after the cache has expired", pruned(cold))
			}
			c.Ask("main", "and")
			g.Stop()
			c = Start(t, o).Client()
			c.Ask("main", "spew")
			all := model.Requests()
			for i := len(warm) + 1; i < len(all); i++ {
				if !prefix(all[i-1], all[i]) {
					t.Errorf("request %d of %d does not begin like the one before", i, len(all))
				}
			}
			for _, m := range c.history("main") {
				if m.Role == "toolResult" && !strings.Contains(m.Text(), strings.Repeat("0123456789abcde\n", 900)) {
					t.Errorf("a result in the history has %d characters", len(m.Text()))
				}
			}
		})
	})
	t.Run("PRUNE-04 other providers are not pruned by default", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.ScriptFunc(spew)
			c := Start(t, Options{Model: model, Config: modelWindow(60_000, `{}`), Tools: []tool.Tool{spewing(15_000)}}).Client()
			for range 3 {
				c.Ask("main", "spew")
			}
			for range 3 {
				time.Sleep(time.Hour)
				c.Ask("main", "and")
			}
			all := model.Requests()
			for i := 1; i < len(all); i++ {
				if !prefix(all[i-1], all[i]) {
					t.Errorf("request %d does not begin like the one before", i)
				}
			}
		})
	})
	t.Run("PRUNE-07 the window is guarded in the middle of a run, and the requests after that are stable",
		func(t *testing.T) {
			t.Parallel()
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if n < 12 {
					return llmtest.Call(fmt.Sprint("c", n), "spew", fmt.Sprintf(`{"n":%d}`, n))
				}
				return llmtest.Say("ok")
			})
			c := Start(t, Options{Model: model, Config: modelWindow(60_000, `{}`), Tools: []tool.Tool{spewing(15_000)}}).Client()
			if end := c.Ask("main", "go"); end.Text != "ok" {
				t.Fatalf("%s %q", end.State, end.Error)
			}
			changes := 0
			all := model.Requests()
			for i := 1; i < len(all); i++ {
				if !prefix(all[i-1], all[i]) {
					changes++
				}
				last := all[i].Messages[len(all[i].Messages)-1]
				if !strings.Contains(last.PlainText(), strings.Repeat("0123456789abcde\n", 900)) {
					t.Errorf("request %d: the newest result is not intact", i)
				}
			}
			cleared := strings.Count(fmt.Sprint(textsOf(all[len(all)-1].Messages)),
				"[compacted: tool output removed to free context]")
			if changes < 1 || changes > 5 || cleared < 3 {
				t.Errorf("the history changed %d times, %d results are cleared", changes, cleared)
			}
		})
}

// textsOf returns the texts of messages.
func textsOf(ms []*llm.Message) (out []string) {
	for _, m := range ms {
		out = append(out, m.PlainText())
	}
	return out
}

func TestLongResults(t *testing.T) {
	t.Parallel()
	for name, box := range map[string]string{"": "off", " in a sandboxed session": "all"} {
		t.Run("PRUNE-06 a result of 40 MB is stored, and the model reads and searches it by its handle"+
			name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for i := 0; b.Len() < 40<<20; i++ {
				fmt.Fprintf(&b, "line %d of the output, %s\n", i, strings.Repeat("x", 80))
			}
			output := b.String()
			spew := done{"spew", func(context.Context, tool.Call) (tool.Result, error) { return tool.Text(output), nil }}
			handle := regexp.MustCompile(`media:[0-9a-f]{32}`)
			ref := ""
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				last := r.Messages[len(r.Messages)-1].PlainText()
				switch n {
				case 0:
					return llmtest.Call("c0", "spew", `{}`)
				case 1:
					ref = handle.FindString(last)
					return llmtest.Calls(llmtest.ToolCall("c1", "grep", `{"pattern":"line 200000 ","path":"`+ref+`"}`),
						llmtest.ToolCall("c2", "read", `{"path":"`+ref+`","offset":200001,"limit":1}`))
				}
				return llmtest.Say("ok")
			})
			defaults := `{"sandbox": {"mode": "` + box + `"}}`
			conf := modelWindow(200_000, defaults)
			conf["tools"] = json.RawMessage(`{"sandbox": {"tools": {"alsoAllow": ["spew"]}}}`)
			g := Start(t, Options{Model: model, Config: conf, Tools: []tool.Tool{spew}})
			c := g.Client()
			if end := c.Ask("main", "go"); end.Text != "ok" {
				t.Fatalf("%s %q", end.State, end.Error)
			}
			all := model.Requests()
			short := all[1].Messages[2].PlainText()
			if len(short) > 64_300 || len(short) < 60_000 || ref == "" || !strings.HasPrefix(short, "line 0 ") ||
				!strings.HasSuffix(short, "x\n") {
				t.Errorf("the model got %d characters, handle %q", len(short), ref)
			}
			for _, m := range all[2].Messages[4:] {
				if !strings.Contains(m.PlainText(), "line 200000 of the output") {
					t.Errorf("%s: %.200q", m.ToolName, m.PlainText())
				}
			}
			stored := filepath.Join(g.Dir, "media", strings.TrimPrefix(ref, "media:")+"-output")
			if got, err := os.ReadFile(stored); err != nil || string(got) != output {
				t.Errorf("stored %d bytes, %v", len(got), err)
			}
		})
	}
	t.Run("a small window gets a smaller share, and contextLimits sets a limit", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			tokens   int
			defaults string
			most     int
		}{{20_000, `{}`, 16_000}, {150_000, `{}`, 32_000}, {300_000, `{"contextLimits": {"toolResultMaxChars": 90000}}`,
			90_000}, {300_000, `{"contextLimits": {"toolResultMaxChars": 500}}`, 500}} {
			model := llmtest.NewScript(llmtest.Call("c0", "spew", `{}`), llmtest.Say("ok"))
			c := Start(t, Options{Model: model, Config: modelWindow(tt.tokens, tt.defaults),
				Tools: []tool.Tool{spewing(1 << 20)}, Log: slog.New(slog.DiscardHandler)}).Client()
			if end := c.Ask("main", "go"); end.Text != "ok" {
				t.Fatalf("%s %q", end.State, end.Error)
			}
			if n := len(model.Requests()[1].Messages[2].PlainText()); n < tt.most || n > tt.most+250 {
				t.Errorf("%d tokens, %s: %d characters, want %d", tt.tokens, tt.defaults, n, tt.most)
			}
		}
	})
	t.Run("a history with 200 images works", func(t *testing.T) {
		t.Parallel()
		picture := pngOf(t, 8, 8)
		shot := done{"shot", func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Content: []llm.Part{llm.Text("a picture"), llm.Image("image/png", picture)}}, nil
		}}
		most := 0
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			images := 0
			for _, m := range r.Messages {
				for i := range m.Parts {
					if m.Parts[i].Kind == llm.PartImage {
						images++
					}
				}
			}
			most = max(most, images)
			if n%101 < 100 {
				return llmtest.Call(fmt.Sprint("c", n), "shot", fmt.Sprintf(`{"n":%d}`, n))
			}
			return llmtest.Say("ok")
		})
		c := Start(t, Options{Model: model, Config: Config{"tools": json.RawMessage(`{"loopDetection": {"enabled": false}}`)},
			Tools: []tool.Tool{shot}}).Client()
		for range 2 {
			if end := c.Ask("main", "go"); end.Text != "ok" {
				t.Fatalf("%s %q", end.State, end.Error)
			}
		}
		all := model.Requests()
		changes := 0
		for i := 1; i < len(all); i++ {
			if !prefix(all[i-1], all[i]) {
				changes++
			}
		}
		if last := strings.Join(textsOf(all[len(all)-1].Messages), "\n"); most > 20 || changes > 20 ||
			strings.Count(last, "[image data removed - already processed by model]") < 180 {
			t.Errorf("at most %d images, %d changes, %d markers", most, changes, strings.Count(last, "[image data removed"))
		}
	})
}

// pngOf returns a picture.
func pngOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
