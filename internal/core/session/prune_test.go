package session_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// pruned returns a history with a result of each text, and a prune at its end.
func pruned(p session.Prune, results ...*llm.Message) []session.Entry {
	es := history("u:go")
	for i, r := range results {
		call := &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{callPart(string(rune('a' + i)))}}
		r.Role, r.CallID, r.ToolName = llm.RoleTool, string(rune('a'+i)), "t"
		n := int64(len(es))
		es = append(es,
			session.Entry{ID: "c" + string(rune('a'+i)), Seq: n + 1, Kind: session.KindMessage, Message: call},
			session.Entry{ID: "r" + string(rune('a'+i)), Seq: n + 2, Kind: session.KindMessage, Message: r})
	}
	return append(es, session.Entry{ID: "p", Seq: int64(len(es)) + 1, Kind: session.KindPrune, Prune: &p})
}

func TestPrune(t *testing.T) {
	t.Parallel()
	text := func(s string) *llm.Message { return &llm.Message{Parts: []llm.Part{llm.Text(s)}} }
	t.Run("PRUNE-02 a trimmed result has its first and last characters and its size", func(t *testing.T) {
		ms := session.Compile(pruned(session.Prune{Trim: []int64{3}, Head: 3, Tail: 2}, text("äbcdefghij"),
			text("untouched")))
		want := "äbc\n...\nij\n\n[Tool result trimmed: kept first 3 chars and last 2 chars of 10 chars.]"
		if got := ms[2].PlainText(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := ms[4].PlainText(); got != "untouched" {
			t.Errorf("the other result: %q", got)
		}
	})
	t.Run("PRUNE-03 a cleared result is the placeholder; an error keeps its first line", func(t *testing.T) {
		failed := text("no such host\nstack …")
		failed.IsError = true
		ms := session.Compile(pruned(session.Prune{Clear: []int64{3, 5}, Placeholder: "[Old tool result content cleared]"},
			text("long"), failed))
		if got := ms[2].PlainText(); got != "[Old tool result content cleared]" {
			t.Errorf("got %q", got)
		}
		if got := ms[4]; got.PlainText() != "no such host\n[Old tool result content cleared]" ||
			!got.IsError || got.CallID != "b" {
			t.Errorf("the error: %q, %+v", got.PlainText(), got)
		}
	})
	t.Run("the handle of a complete output is retained", func(t *testing.T) {
		ref := strings.Repeat("0a", 16)
		long, gone := text("0123456789"), text("0123456789")
		long.Parts[0].Ref, gone.Parts[0].Ref = ref, ref
		ms := session.Compile(pruned(session.Prune{
			Trim:        []int64{3},
			Clear:       []int64{5},
			Head:        1,
			Tail:        1,
			Placeholder: "[x]",
		}, long, gone))
		for _, m := range [...]*llm.Message{ms[2], ms[4]} {
			if !strings.Contains(m.PlainText(), "media:"+ref) || m.Parts[0].Ref != ref {
				t.Errorf("got %q", m.PlainText())
			}
		}
	})
	t.Run("PRUNE-05 images of messages and results are replaced only if they are named", func(t *testing.T) {
		shot := &llm.Message{Parts: []llm.Part{llm.Text("seen"), llm.Image("image/png", []byte{1})}}
		es := append(history("i:look"), pruned(session.Prune{}, shot)[1:3]...)
		es[1].Seq, es[2].Seq = 2, 3
		es = append(es, session.Entry{Seq: 4, Kind: session.KindPrune, Prune: &session.Prune{Images: []int64{1}}})
		ms := session.Compile(es)
		if got := ms[0].PlainText(); got != "look"+session.ImageMarker {
			t.Errorf("the message: %q", got)
		}
		if n := len(ms[2].Parts); n != 2 || ms[2].Parts[1].Kind != llm.PartImage {
			t.Errorf("the result: %+v", ms[2].Parts)
		}
		es = append(es, session.Entry{Seq: 5, Kind: session.KindPrune, Prune: &session.Prune{Images: []int64{3}}})
		if got := session.Compile(es)[2].PlainText(); got != "seen"+session.ImageMarker {
			t.Errorf("the result: %q", got)
		}
	})
	t.Run("PRUNE-04 the same entries give the same bytes, in one piece, in pieces, and after an export",
		func(t *testing.T) {
			es := history("u:1", "c:a", "r:a", "u:2", "u:3", "i:look", "c:b", "r:b", "pr:5", "c:a", "r:a",
				"u:4", "pr:9", "v:9", "u:5")
			var tr session.Transcript
			for _, e := range es {
				tr.Append(e)
			}
			want := lines(session.Compile(es))
			if d := cmp.Diff(want, lines(tr.Messages())); d != "" {
				t.Errorf("in pieces (-want +got)\n%s", d)
			}
			var b bytes.Buffer
			if err := session.Export(&b, session.Meta{ID: "x"}, es); err != nil {
				t.Fatal(err)
			}
			back, err := session.Import(&b)
			if err != nil || back.Skipped > 0 {
				t.Fatal(err, back.Skipped)
			}
			if d := cmp.Diff(want, lines(session.Compile(back.Entries))); d != "" {
				t.Errorf("after an export (-want +got)\n%s", d)
			}
			if !strings.Contains(strings.Join(want, "\n"), "[cleared]") {
				t.Errorf("nothing was pruned: %q", want)
			}
		})
	t.Run("messages and their entries", func(t *testing.T) {
		var tr session.Transcript
		tr.Append(history("a:first", "u@r:1", "c@r:a,b", "r@r:b")...)
		var seqs []int64
		for i, s := range tr.Sent() {
			if s.Message != tr.Messages()[i] {
				t.Errorf("message %d differs", i)
			}
			seqs = append(seqs, s.Seq)
		}
		if d := cmp.Diff([]int64{0, 1, 2, 3, 0, 4}, seqs); d != "" {
			t.Error(d)
		}
	})
}

// TestHYG02 sends histories that were made with one service to the others.
func TestHYG02(t *testing.T) {
	t.Parallel()
	broken := []struct {
		name  string
		words []string
	}{
		{"complete", []string{"u:1", "c:a", "r:a", "a:ok", "u:2"}},
		{"a call without result, at the end", []string{"u:1", "c:a"}},
		{"a call without result, in the middle", []string{"u:1", "c:a,b", "r:b", "u:2", "a:ok"}},
		{"a result without call", []string{"u:1", "r:a", "a:ok"}},
		{"a displaced result", []string{"u:1", "c:a", "u:2", "r:a", "a:ok"}},
		{"results in another order", []string{"u:1", "c:a,b,c", "r:c", "r:a", "r:b"}},
		{"two results of a call", []string{"u:1", "c:a", "r:a", "r:a", "a:ok"}},
		{"the same id twice in a message", []string{"u:1", "c:a,a", "r:a", "r:a"}},
		{"the same id in two turns", []string{"u:1", "c:a", "r:a", "u:2", "c:a", "r:a"}},
		{"a result between two turns with its id", []string{"u:1", "c:a", "u:2", "c:a", "r:a"}},
		{"a partial answer with a call", []string{"u:1", "p:half", "r:lost", "u:2"}},
		{"a voided call", []string{"u:1", "c:a", "r:a", "v:2", "u:2"}},
		{"a voided result", []string{"u:1", "c:a", "r:a", "v:3", "u:2"}},
		{"a cut between a call and its result", []string{"u:1", "c:a", "r:a", "cut:3", "u:2"}},
		{"it begins with a result", []string{"r:a", "u:1", "a:ok"}},
		{"it begins with a call", []string{"c:a", "r:a", "u:1"}},
		{"pruned", []string{"u:1", "i:look", "c:a,b", "r:a", "r:b", "pr:9", "u:2", "c:a", "pr:9", "r:a"}},
		{"thinking with a call", []string{"u:1", "tc:a", "r:a", "t:done", "u:2"}},
		{"thinking before a cut", []string{"u:1", "tc:a", "r:a", "t:done", "u:2", "cut:2", "tc:b", "r:b"}},
	}
	for _, by := range []string{"anthropic", "openai", "google", "mistral", "ollama"} {
		t.Run("HYG-02 a history made with "+by+" is accepted by every service", func(t *testing.T) {
			t.Parallel()
			for _, tt := range broken {
				es := history(tt.words...)
				for i := range es {
					if m := es[i].Message; m != nil && m.Role == llm.RoleAssistant {
						m.Provider = by
						if by != "anthropic" { // reasoning without a signature, and hidden reasoning
							m.Parts = append([]llm.Part{{Kind: llm.PartThinking, Text: "hm"}, {Kind: llm.PartThinking, Redacted: "xyz"}},
								m.Parts...)
						}
					}
				}
				ms := session.Compile(es)
				accept(t, ms)
				overWires(t, ms)
				if t.Failed() {
					t.Fatal(tt.name)
				}
			}
		})
	}
}
