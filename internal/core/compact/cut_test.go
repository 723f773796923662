package compact_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
)

// history builds entries: "u1:500" is a user message of about 500 tokens in run 1, "a"
// an answer, "c" a message with a call, "r" its result, "n" a notice, "cut:4" a cut,
// "v:3" the voiding of the third entry.
func history(words ...string) []session.Entry {
	var es []session.Entry
	call := 0
	for i, w := range words {
		name, arg, _ := strings.Cut(w, ":")
		n := 100
		fmt.Sscan(arg, &n)
		e := session.Entry{ID: fmt.Sprint("e", i+1), Seq: int64(i + 1), Kind: session.KindMessage, Run: chela.RunID(name[1:])}
		text := llm.Text(strings.Repeat("word", n))
		e.Message = &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{text}}
		switch name[0] {
		case 'u':
			e.Message.Role = llm.RoleUser
		case 'c':
			if name == "cut" {
				e.Kind, e.Message, e.First, e.Run, e.Text = session.KindCut, nil, int64(n), "", "the summary so far"
				break
			}
			call++
			e.Message.Parts = append(e.Message.Parts, llm.Part{Kind: llm.PartCall, Call: &llm.ToolCall{ID: fmt.Sprint("c", call),
				Name: "t", Args: json.RawMessage(`{}`)}})
		case 'r':
			e.Message.Role, e.Message.CallID, e.Message.ToolName, e.Message.Parts = llm.RoleTool, fmt.Sprint("c", call), "t",
				[]llm.Part{llm.Text(strings.Repeat("wo", n))}
		case 'n':
			e.Kind, e.Message = session.KindNotice, nil
		case 'v':
			e.Kind, e.Message, e.Run, e.Voids = session.KindVoid, nil, "", session.Ref{Entry: fmt.Sprint("e", n)}
		}
		es = append(es, e)
	}
	return es
}

func TestNewPlan(t *testing.T) {
	t.Parallel()
	l := compact.Limits{Keep: 250, Most: 500, Turns: 1}
	for _, c := range []struct {
		name        string
		entries     []session.Entry
		limits      compact.Limits
		first       int64 // 0: nothing to cut
		old, prefix int
		previous    string
	}{
		{name: "nothing", limits: l},
		{name: "one message", entries: history("u1:900"), limits: l},
		{name: "a short conversation", entries: history("u1", "a1"), limits: l},
		{name: "whole turns", entries: history("u1", "a1", "u2", "a2", "u3", "a3"), limits: l, first: 3, old: 2},
		{name: "three turns stay", entries: history("u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"),
			limits: compact.Limits{Keep: 100, Most: 900, Turns: 3}, first: 3, old: 2},
		{name: "but not if they are too large", entries: history("u1", "a1", "u2", "a2", "u3", "a3", "u4", "a4"),
			limits: compact.Limits{Keep: 100, Most: 300, Turns: 3}, first: 7, old: 6},
		{name: "COMPACT-02 a call and its result stay together", entries: history("u1", "c1", "r1", "c1", "r1", "a1"),
			limits: compact.Limits{Keep: 150, Most: 350}, first: 4, prefix: 3},
		{name: "a turn that is too large is split", entries: history("u1", "a1", "u2", "c2:300", "r2:300", "c2", "r2", "a2"),
			limits: l, first: 6, old: 2, prefix: 3},
		{name: "the message without an answer stays", entries: history("u1", "a1", "u2:9000"), limits: l, first: 3, old: 2},
		{name: "so do two of them", entries: history("u1", "a1", "u2:900", "u2:900"), limits: l, first: 3, old: 2},
		{name: "an open call stays", entries: history("u1:600", "a1", "u2:600", "c2:900"), limits: l,
			first: 4, old: 2, prefix: 1},
		{name: "a message that steered begins no turn", entries: history("u1", "a1", "u1", "a1", "u2", "a2"),
			limits: l, first: 4, prefix: 3},
		{name: "after a cut", entries: history("u1:900", "a1:900", "u2", "a2", "cut:3", "u3", "a3", "u4", "a4"), limits: l,
			first: 6, old: 2, previous: "the summary so far"},
		{name: "after a cut that was undone", entries: history("u1", "a1", "u2", "a2", "cut:3", "v:5"),
			limits: compact.Limits{Keep: 150, Most: 300}, first: 3, old: 2},
		{name: "notices do not count", entries: history("u1", "a1", "n", "n", "u2", "a2"),
			limits: compact.Limits{Keep: 150, Most: 300}, first: 5, old: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, ok := compact.NewPlan(c.entries, c.limits)
			if ok != (c.first > 0) || ok && (p.First != c.first || len(p.Old) != c.old || len(p.Prefix) != c.prefix ||
				p.Previous != c.previous) {
				t.Errorf("%v, from %d, %d old, %d of a turn, previous %q; want from %d, %d, %d, %q", ok, p.First, len(p.Old),
					len(p.Prefix), p.Previous, c.first, c.old, c.prefix, c.previous)
			}
		})
	}
}

// TestPlanRandom cuts random conversations again and again: what is sent is valid, it
// becomes shorter each time, and this ends.
func TestPlanRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var words []string
		for run := range 1 + rnd.IntN(12) {
			words = append(words, fmt.Sprintf("u%d:%d", run, 1+rnd.IntN(300)))
			for range rnd.IntN(5) {
				words = append(words, fmt.Sprintf("c%d:%d", run, rnd.IntN(200)), fmt.Sprintf("r%d:%d", run, rnd.IntN(900)))
			}
			if rnd.IntN(4) > 0 {
				words = append(words, fmt.Sprintf("a%d:%d", run, 1+rnd.IntN(300)))
			}
		}
		es := history(words...)
		limits := compact.Limits{Keep: rnd.IntN(800), Most: 800 + rnd.IntN(800), Turns: rnd.IntN(4)}
		for n := 0; ; n++ {
			before := estimate.Messages(session.Compile(es)...)
			p, ok := compact.NewPlan(es, limits.Below(before, n))
			if !ok {
				break
			}
			if n > 40 {
				t.Fatalf("seed %d: no end", seed)
			}
			e := session.NewCompaction(p.First, "s", "", session.Compaction{}, es[0].Time)
			e.Seq = int64(len(es) + 1)
			es = append(es, *e)
			msgs := session.Compile(es)
			if err := llmtest.Validate(&llm.Request{Model: "m", Messages: append(msgs, llm.User("go on"))}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !strings.Contains(msgs[0].PlainText(), "<summary>") || p.Stays >= p.Before || p.Replaced() == 0 {
				t.Fatalf("seed %d: %+v", seed, p)
			}
			results := 0
			for _, k := range p.Kept[:1] {
				if k.Message.Role == llm.RoleTool {
					results++
				}
			}
			if results > 0 {
				t.Fatalf("seed %d: a result without its call stays", seed)
			}
		}
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	t.Run("COMPACT-09 the ratio is smaller for large messages", func(t *testing.T) {
		for _, c := range []struct {
			entries []session.Entry
			lo, hi  float64
		}{
			{history("u1:10", "a1:10"), 0.4, 0.4},
			{nil, 0.4, 0.4},
			{history("u1:120", "a1:120"), 0.15, 0.399},
			{history("u1:900", "a1:900"), 0.15, 0.15},
		} {
			if got := compact.ChunkRatio(c.entries, 1000); got < c.lo-1e-9 || got > c.hi+1e-9 {
				t.Errorf("%d entries: %v, want %v to %v", len(c.entries), got, c.lo, c.hi)
			}
		}
	})
	t.Run("COMPACT-11 the size of a chunk, times 1.2, is within the limit", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 200 {
			var texts []string
			total := 0
			for range rnd.IntN(40) {
				texts = append(texts, strings.Repeat("wörd ", rnd.IntN(400)))
				total++
			}
			limit := 20 + rnd.IntN(1000)
			for _, chunk := range compact.Chunks(texts, limit) {
				n := 0
				for _, s := range chunk {
					n += estimate.Text(s)
				}
				total -= len(chunk)
				if float64(n)*1.2 > float64(limit) {
					t.Fatalf("a chunk of %d tokens with the limit %d", n, limit)
				}
			}
			if total != 0 {
				t.Fatalf("%d texts are in no chunk", total)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	t.Run("COMPACT-12 mode auto and a target are accepted, and the rest is below the target", func(t *testing.T) {
		var c compact.Config
		if err := json.Unmarshal([]byte(`{"mode": "auto", "targetTokens": 0.7, "maxActiveTranscriptBytes": "2mb"}`),
			&c); err != nil || c.Validate() != nil || c.MaxBytes != 2<<20 {
			t.Fatalf("%v %v %+v", err, c.Validate(), c)
		}
		var words []string
		for i := range 60 {
			words = append(words, fmt.Sprintf("u%d:900", i), fmt.Sprintf("a%d:900", i))
		}
		for _, window := range []int{16_000, 32_000, 100_000, 200_000, 1_000_000} {
			const fixed = 4000
			p, ok := compact.NewPlan(history(words...), c.Limits(window, fixed))
			if !ok && window < 300_000 {
				t.Errorf("window %d: nothing to cut", window)
			}
			if n := fixed + p.Stays + compact.SummaryTokens(window) + c.ExamBytes(window)/4; ok && n > window*7/10 {
				t.Errorf("window %d: %d tokens are left", window, n)
			}
		}
	})
	for _, bad := range []string{
		`{"mode": "fast"}`, `{"identifierPolicy": "x"}`, `{"targetTokens": 2}`, `{"thinkingLevel": "much"}`,
		`{"keepRecentTokens": -1}`,
		`{"maxActiveTranscriptBytes": "much"}`, `{"maxActiveTranscriptBytes": -1}`,
		`{"memoryFlush": {"softThresholdTokens": -1}}`,
	} {
		t.Run("refused: "+bad, func(t *testing.T) {
			var c compact.Config
			if err := json.Unmarshal([]byte(bad), &c); err == nil && c.Validate() == nil {
				t.Errorf("%+v", c)
			}
		})
	}
	t.Run("thresholds", func(t *testing.T) {
		var c compact.Config
		for _, want := range [][3]int{{200_000, 180_000, 176_000}, {16_000, 12_000, 10_000}, {1_000_000, 980_000, 976_000}} {
			if got := [3]int{want[0], c.Threshold(want[0]), c.FlushThreshold(want[0])}; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	})
}

func TestExam(t *testing.T) {
	t.Parallel()
	fact := func(s string) []session.Entry {
		return []session.Entry{{Seq: 1, Kind: session.KindMessage, Message: llm.User(s)}, {Seq: 2, Kind: session.KindMessage,
			Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("ok")}}}}
	}
	t.Run("a number within a longer one is not found", func(t *testing.T) {
		if ex := compact.Take(compact.Facts(fact("use port 4711"), "", false, true), "the port is 47110",
			1000); len(ex.Restored) != 1 {
			t.Errorf("%+v", ex)
		}
	})
	t.Run("the policy off puts no ids back", func(t *testing.T) {
		if ex := compact.Take(compact.Facts(fact("see https://a.example/x"), "", false, false), "they talked",
			1000); len(ex.Restored) != 0 {
			t.Errorf("%+v", ex)
		}
	})
	t.Run("what the exam put back is examined again after the next compaction", func(t *testing.T) {
		summary := compact.Assemble("They talked.",
			compact.Take(compact.Facts(fact("never call QX7R2M"), "", false, true), "They talked.", 1000))
		for range 20 {
			summary = compact.Assemble("They talked about that.",
				compact.Take(compact.Facts(fact("hi"), summary, false, true), "They talked about that.", 1000))
		}
		if strings.Count(summary, "never call QX7R2M") != 1 {
			t.Error(summary)
		}
	})
	t.Run("the room is limited, and the most important comes first", func(t *testing.T) {
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, "The number of order %d is ORD-%d-X.\n", i, 1000+i)
		}
		es := append(fact(b.String()), fact("From now on never write to Bob")...)
		ex := compact.Take(compact.Facts(es, "", false, true), "they talked", 400)
		if n := len(strings.Join(ex.Restored, "\n- ")); n > 400 ||
			!strings.Contains(ex.Restored[0], "never write to Bob") || ex.Left == 0 {
			t.Errorf("%d bytes: %q", n, ex.Restored)
		}
	})
}

func FuzzFacts(f *testing.F) {
	for _, p := range corpus(f) {
		for _, e := range p.entries {
			f.Add(e.Message.PlainText())
		}
	}
	f.Add("《 “ +49 /a/ C:\\ 12 \xff 2026年 ... !!!")
	f.Fuzz(func(t *testing.T, s string) {
		es := []session.Entry{{Seq: 1, Kind: session.KindMessage, Message: llm.User(s)}}
		facts := compact.Facts(es, s, true, true)
		ex := compact.Take(facts, "", 2000)
		if n := len(strings.Join(ex.Restored, "")); n > 2000 {
			t.Errorf("%d bytes", n)
		}
		if again := compact.Take(facts, compact.Assemble(s, ex), 1<<20); s != "" &&
			len(again.Restored) > len(ex.Restored)+ex.Left {
			t.Errorf("%+v", again)
		}
		compact.Render(es)
		compact.Extract(s, s, 100)
	})
}

// BenchmarkCompaction is the work of a compaction besides the calls of a model, for a
// conversation of 1,000 messages.
func BenchmarkCompaction(b *testing.B) {
	var es []session.Entry
	for i := range 1000 {
		m := llm.User(fmt.Sprintf("Please look at /srv/data/file-%d.csv and tell me how many of the %d rows have the status X-%d. I prefer short answers.", i, i*7, i))
		if i%2 == 1 {
			m = &llm.Message{Role: llm.RoleAssistant,
				Parts: []llm.Part{
					llm.Text(fmt.Sprintf(
						"The file /srv/data/file-%d.csv has %d rows with that status; I will check the others tomorrow at 08:%02d.",
						i, i*3, i%60))}}
		}
		es = append(es, session.Entry{Seq: int64(i + 1), Kind: session.KindMessage, Run: chela.RunID(fmt.Sprint(i / 2)),
			Message: m})
	}
	b.ResetTimer()
	for b.Loop() {
		p, ok := compact.NewPlan(es, compact.Limits{Keep: 2000, Most: 4000, Turns: 3})
		if !ok {
			b.Fatal("nothing to cut")
		}
		facts := compact.Facts(p.Old, "", false, true)
		texts := compact.RenderWithin(p.Old, 200_000)
		compact.Chunks(texts, 60_000)
		ex := compact.Take(facts, "The user asked about files.", 8000)
		compact.Assemble("The user asked about files.", ex)
	}
}
