package window_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/window"
)

// talk is a transcript that grows by words.
type talk struct {
	entries []session.Entry
	run     int
}

func (h *talk) add(m *llm.Message) {
	n := int64(len(h.entries)) + 1
	h.entries = append(h.entries, session.Entry{
		ID:      fmt.Sprint(n),
		Seq:     n,
		Kind:    session.KindMessage,
		Run:     chela.RunID(fmt.Sprint(h.run)),
		Message: m,
	})
}

// user adds a message of a person, which begins a run.
func (h *talk) user(images int) {
	h.run++
	m := llm.User("go on")
	for range images {
		m.Parts = append(m.Parts, llm.Image("image/png", []byte{1}))
	}
	h.add(m)
}

// call adds a call of a tool and its result.
func (h *talk) call(tool, text string, images int) {
	id := fmt.Sprint("c", len(h.entries))
	h.add(&llm.Message{Role: llm.RoleAssistant,
		Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: id, Name: tool, Args: json.RawMessage(`{}`)}}}})
	r := &llm.Message{Role: llm.RoleTool, CallID: id, ToolName: tool, Parts: []llm.Part{llm.Text(text)}}
	for range images {
		r.Parts = append(r.Parts, llm.Image("image/png", []byte{1}))
	}
	h.add(r)
}

// says adds n answers.
func (h *talk) says(n int) {
	for range n {
		h.add(&llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("ok")}})
	}
}

// decide prunes the transcript, and returns how its entries are sent then.
func (h *talk) decide(t *testing.T, r window.Request) (prunes []session.Prune, sent []session.Sent) {
	t.Helper()
	var tr session.Transcript
	tr.Append(h.entries...)
	before := tr.Sent()
	r.Sent = before
	prunes = window.Prune(r)
	if d := cmp.Diff(prunes, window.Prune(r)); d != "" {
		t.Errorf("another decision for the same request\n%s", d)
	}
	for i := range prunes {
		n := int64(len(h.entries)) + 1
		h.entries = append(h.entries, session.Entry{ID: fmt.Sprint(n), Seq: n, Kind: session.KindPrune, Prune: &prunes[i]})
		tr.Append(h.entries[n-1])
	}
	sent = tr.Sent()
	var list []*llm.Message
	for i, s := range sent {
		list = append(list, s.Message)
		if b := before[i]; b.Seq != s.Seq || b.Message.CallID != s.Message.CallID || len(s.Message.Parts) == 0 {
			t.Errorf("message %d: %+v became %+v", i, b, s)
		}
	}
	if err := llmtest.Validate(&llm.Request{Model: "m", Messages: append(list, llm.User("next"))}); err != nil {
		t.Error(err)
	}
	return prunes, sent
}

// texts returns the texts of the results.
func texts(sent []session.Sent) (out []string) {
	for _, s := range sent {
		if s.Message.Role == llm.RoleTool {
			out = append(out, s.Message.PlainText())
		}
	}
	return out
}

// known returns a known window.
func known(tokens int) window.Size {
	return window.Size{Tokens: tokens, Source: window.SourceModel}
}

const placeholder = "[Old tool result content cleared]"

func TestPrune(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 1000)
	cold := func(tokens int) window.Request { return window.Request{Window: known(tokens), Cold: true} }
	t.Run("PRUNE-01 nothing changes at 25 %", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", big, 0) // 5,000 tokens
		h.says(4)
		if p, _ := h.decide(t, cold(20_500)); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("PRUNE-02 at 35 % an old result is trimmed, and complete in the transcript", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", big, 0)
		h.says(3)
		_, sent := h.decide(t, cold(14_600))
		got := texts(sent)[0]
		if !strings.HasPrefix(got, big[:1500]+"\n...\n"+big[:1500]) || len(got) > 3200 {
			t.Errorf("%d characters: %.60q", len(got), got)
		}
		if h.entries[2].Message.PlainText() != big {
			t.Error("the entry has changed")
		}
		if p, _ := h.decide(t, cold(14_600)); len(p) > 0 {
			t.Errorf("again: %+v", p)
		}
	})
	t.Run("PRUNE-03 at 60 % the oldest results are cleared until 50 %", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		for range 20 {
			h.call("exec", big[:3000], 0) // too short to be trimmed
		}
		h.says(3)
		p, sent := h.decide(t, cold(50_500)) // 30,000 of the tokens are in results
		got := texts(sent)
		n := slices.IndexFunc(got, func(s string) bool { return s != placeholder })
		if n < 2 || n > 6 || slices.Contains(got[n:], placeholder) || len(p) != 1 || len(p[0].Clear) != n {
			t.Errorf("%d are cleared: %+v", n, p)
		}
		tokens := 0
		for _, s := range sent {
			tokens += estimate.Messages(s.Message)
		}
		if f := known(50_500).Fill(tokens); f > 0.5 || f < 0.45 {
			t.Errorf("fill %v", f)
		}
	})
	t.Run("PRUNE-03 fewer than the minimum of characters are not cleared", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		for range 16 {
			h.call("exec", big[:3000], 0)
		}
		h.says(3)
		if p, _ := h.decide(t, cold(40_000)); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("PRUNE-04 nothing changes while the cache is warm", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		for range 10 {
			h.call("exec", big, 0)
		}
		h.says(3)
		r := cold(70_000)
		r.Cold = false
		if p, _ := h.decide(t, r); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("while the cache is warm, results are cleared if they are at least half of the request", func(t *testing.T) {
		for name, tt := range map[string]struct {
			calls, more, window, base int
			mode                      string
			clears                    int
		}{
			"most of it":               {10, 3, 100_000, 0, "", 10},
			"nearly half":              {10, 3, 200_000, 55_000, "", 0},
			"a large window":           {10, 3, 200_000, 0, "", 0},
			"few characters":           {4, 3, 50_000, 0, "", 0},
			"of the newest turns":      {10, 2, 100_000, 0, "", 0},
			"pruning is switched off":  {10, 3, 100_000, 0, window.PruningOff, 0},
			"in the time-to-live mode": {10, 3, 100_000, 0, window.PruningTTL, 10},
		} {
			h := &talk{}
			h.user(0)
			for range tt.calls {
				h.call("exec", big, 0)
			}
			h.says(1)
			for range tt.more {
				h.user(0)
				h.says(1)
			}
			h.user(0)
			r := window.Request{Window: known(tt.window), Base: tt.base, Pruning: window.Pruning{Mode: tt.mode}}
			p, sent := h.decide(t, r)
			n := 0
			for i := range p {
				n += len(p[i].Clear)
				if p[i].Cause != session.PruneSize {
					t.Errorf("%s: the cause is %s", name, p[i].Cause)
				}
			}
			if n != tt.clears {
				t.Errorf("%s: %d results are cleared, want %d of %d messages", name, n, tt.clears, len(sent))
			}
		}
	})
	t.Run("fewer than three answers protect everything", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", big, 0)
		h.says(1)
		if p, _ := h.decide(t, cold(12_000)); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("an assumed window is not pruned", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		for range 25 {
			h.call("exec", big, 0)
		}
		h.says(3)
		if p, _ := h.decide(t, window.Request{Window: window.Resolve(window.Claims{}), Cold: true}); len(p) > 0 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("PRUNE-05 a result with an image is untouched", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("browser", big, 1)
		h.call("exec", big, 0)
		h.says(3)
		_, sent := h.decide(t, cold(16_000))
		if got := texts(sent); got[0] != big || got[1] == big {
			t.Errorf("%d and %d characters", len(got[0]), len(got[1]))
		}
	})
	t.Run("PRUNE-08 a read before the first message of a person is never pruned", func(t *testing.T) {
		h := &talk{}
		h.call("read", big, 0)
		h.user(0)
		h.call("exec", big, 0)
		h.says(3)
		for _, c := range [...]window.Request{cold(16_000), {Window: known(11_000)}} {
			_, sent := h.decide(t, c)
			if got := texts(sent); got[0] != big || got[1] == big {
				t.Errorf("%d and %d characters", len(got[0]), len(got[1]))
			}
		}
	})
	t.Run("PRUNE-09 results of excluded tools are never pruned", func(t *testing.T) {
		for _, tt := range []struct{ allow, deny []string }{{nil, []string{"browser"}}, {[]string{"ex*"}, nil}} {
			h := &talk{}
			h.user(0)
			h.call("browser", big, 0)
			h.call("exec", big, 0)
			h.says(3)
			r := cold(16_000)
			r.Pruning.Tools.Allow, r.Pruning.Tools.Deny = tt.allow, tt.deny
			_, sent := h.decide(t, r)
			if got := texts(sent); got[0] != big || got[1] == big {
				t.Errorf("%+v: %d and %d characters", tt, len(got[0]), len(got[1]))
			}
		}
	})
	t.Run("the calibration is part of the fill", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", big, 0)
		h.says(3)
		r := cold(20_500) // 25 %
		r.Ratio = 1.5
		if p, _ := h.decide(t, r); len(p) == 0 {
			t.Error("nothing was pruned at 37 %")
		}
	})
}

func TestGuard(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 1000)
	const marker = "[compacted: tool output removed to free context]"
	t.Run("PRUNE-06 a result may have its share of the window, and a limit", func(t *testing.T) {
		for _, tt := range []struct{ tokens, limit, want int }{
			{200_000, 1_000_000, 200_000}, {200_000, 0, 64_000}, {150_000, 0, 32_000}, {64_000, 0, 16_000}, {8_000, 0, 8_000},
			{200_000, 5_000, 5_000},
		} {
			if got := known(tt.tokens).MaxResult(tt.limit); got != tt.want {
				t.Errorf("%d tokens, limit %d: %d, want %d", tt.tokens, tt.limit, got, tt.want)
			}
		}
	})
	t.Run("PRUNE-07 over 75 % the oldest results are cleared, and then nothing changes for a while", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		for range 10 {
			h.call("exec", big, 0)
		}
		r := window.Request{Window: known(64_000)}
		r.Pruning.Mode = window.PruningOff
		_, sent := h.decide(t, r)
		got := texts(sent)
		n := slices.IndexFunc(got, func(s string) bool { return s != marker })
		if n < 1 || n > 4 || slices.Contains(got[n:], marker) || got[9] != big {
			t.Fatalf("%d are cleared", n)
		}
		h.call("exec", big[:9000], 0)
		p, again := h.decide(t, r)
		if len(p) > 0 {
			t.Errorf("the next request changes again: %+v", p)
		}
		for i, s := range sent {
			if again[i].Message.PlainText() != s.Message.PlainText() {
				t.Errorf("message %d differs in the next request", i)
			}
		}
	})
	t.Run("the newest results are intact, however full the window is", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", big, 0)
		h.call("exec", big, 0)
		_, sent := h.decide(t, window.Request{Window: known(10_100), Base: 6_000})
		if got := texts(sent); got[0] != marker || got[1] != big {
			t.Errorf("%.60q and %d characters", got[0], len(got[1]))
		}
	})
	t.Run("after a switch to a small window each result has its share", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("exec", strings.Repeat(big, 6), 0)
		r := window.Request{Window: known(32_000)}
		_, sent := h.decide(t, r)
		got := texts(sent)[0]
		if len(got) > 32_000 || len(got) < 31_000 || !strings.HasPrefix(got, big) ||
			!strings.Contains(got, "of 60000 chars") {
			t.Errorf("%d characters", len(got))
		}
		if p, _ := h.decide(t, r); len(p) > 0 {
			t.Errorf("again: %+v", p)
		}
	})
}

// images counts the images that are sent.
func images(sent []session.Sent) (n int) {
	for _, s := range sent {
		for i := range s.Message.Parts {
			if s.Message.Parts[i].Kind == llm.PartImage {
				n++
			}
		}
	}
	return n
}

func TestImages(t *testing.T) {
	t.Parallel()
	r := window.Request{Window: known(1_000_000)}
	t.Run("images of the three latest completed turns stay when the cache has expired", func(t *testing.T) {
		h := &talk{}
		for range 6 {
			h.user(1)
			h.says(1)
		}
		cold := r
		cold.Cold = true
		if p, sent := h.decide(t, cold); images(sent) != 4 || len(p) != 1 || !slices.Equal(p[0].Images, []int64{1, 3}) {
			t.Errorf("%d images left, %+v", images(sent), p)
		}
	})
	t.Run("images stay while the cache is warm and there are few", func(t *testing.T) {
		h := &talk{}
		for range 20 {
			h.user(1)
			h.says(1)
		}
		if p, _ := h.decide(t, r); len(p) > 0 {
			t.Errorf("%+v", p)
		}
		h.user(1)
		if _, sent := h.decide(t, r); images(sent) != 4 {
			t.Errorf("%d images left", images(sent))
		}
	})
	t.Run("200 images in one turn", func(t *testing.T) {
		h := &talk{}
		h.user(2)
		changed := 0
		for i := range 200 {
			h.call("browser", fmt.Sprint("shot ", i), 1)
			p, sent := h.decide(t, r)
			if n := images(sent); n > 20 {
				t.Fatalf("%d images are sent", n)
			}
			changed += len(p)
			if images(sent[:1]) != 2 {
				t.Fatal("the images of the message were removed")
			}
		}
		if changed > 20 {
			t.Errorf("the history changed %d times in 200 requests", changed)
		}
	})
	t.Run("200 images in one result are sent once", func(t *testing.T) {
		h := &talk{}
		h.user(0)
		h.call("browser", "shots", 200)
		if _, sent := h.decide(t, r); images(sent) != 200 {
			t.Errorf("%d of the newest images are sent", images(sent))
		}
		h.call("exec", "ok", 0)
		if _, sent := h.decide(t, r); images(sent) != 0 {
			t.Errorf("%d old images are sent", images(sent))
		}
	})
}

func TestPruning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw          string
		caches, long bool
		want         time.Duration
	}{
		{`{}`, false, false, 0},
		{`{}`, true, false, 5 * time.Minute},
		{`{}`, true, true, time.Hour},
		{`{"mode":"cache-ttl"}`, false, false, 5 * time.Minute},
		{`{"mode":"off"}`, true, true, 0},
		{`{"ttl":90}`, true, true, 90 * time.Second},
	} {
		var p window.Pruning
		if err := json.Unmarshal([]byte(tt.raw), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.Expiry(tt.caches, tt.long); got != tt.want || p.Check() != nil {
			t.Errorf("%s, caches %t, long %t: %v, want %v; %v", tt.raw, tt.caches, tt.long, got, tt.want, p.Check())
		}
	}
	for raw, want := range map[string]string{
		`{"mode":"on"}`:                 "mode",
		`{"softTrimRatio":1.5}`:         "softTrimRatio",
		`{"hardClearRatio":-1}`:         "hardClearRatio",
		`{"keepLastAssistants":-1}`:     "keepLastAssistants",
		`{"softTrim":{"headChars":-1}}`: "softTrim.headChars",
		`{"ttl":-1}`:                    "ttl",
	} {
		var p window.Pruning
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// long returns a transcript of 2,000 entries with 5 MB of results.
func long() *talk {
	h := &talk{}
	for range 100 {
		h.user(1)
		for range 9 {
			h.call("exec", strings.Repeat("0123456789 äöü\n", 300), 0)
		}
		h.says(1)
	}
	return h
}

// BenchmarkPrune measures a decision about 2,000 entries. It may take 5 ms.
func BenchmarkPrune(b *testing.B) {
	h := long()
	var tr session.Transcript
	tr.Append(h.entries...)
	sent := tr.Sent()
	for name, r := range map[string]window.Request{
		"nothing": {Window: known(100_000_000)},
		"expired": {Window: known(2_000_000), Cold: true},
		"guard":   {Window: known(1_500_000)},
	} {
		r.Sent = sent
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				window.Prune(r)
			}
		})
	}
	b.Run("apply", func(b *testing.B) {
		p := window.Prune(window.Request{Sent: sent, Window: known(1_500_000), Cold: true})
		for b.Loop() {
			b.StopTimer()
			var tr session.Transcript
			tr.Append(h.entries...)
			b.StartTimer()
			for i := range p {
				tr.Append(session.Entry{Seq: int64(len(h.entries) + i + 1), Kind: session.KindPrune, Prune: &p[i]})
			}
		}
	})
	b.Run("needs", func(b *testing.B) {
		ms := tr.Messages()
		for b.Loop() {
			window.MayPrune(known(10_000_000), window.Pruning{}, estimate.Messages(ms...), ms)
		}
	})
}
