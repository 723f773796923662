package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/plugin/llm/anthropic"
	"github.com/chela-ai/chela/internal/plugin/llm/openai"
)

// history builds entries from short specifications:
//
//	u:text  a user message                  a:text   an answer
//	c:id,id an answer with calls           t:text   an answer with thinking
//	r:id    a result                        tc:id    thinking and a call
//	n:text  a notice                        p:text   a partial answer
//	cut:n   a cut with entry n as the first entry kept
//	v:n     a void of entry n            vr:id    a void of a run
//	i:text  a user message with an image
//	pr:n    a prune of the entries up to n: odd ones are trimmed, even ones cleared
//
// A kind followed by "@" and a run id makes an entry of that run.
func history(words ...string) []session.Entry {
	var es []session.Entry
	for i, w := range words {
		kind, text, _ := strings.Cut(w, ":")
		kind, of, _ := strings.Cut(kind, "@")
		e := session.Entry{Run: chela.RunID(of), ID: fmt.Sprintf("%08x", i+1), Seq: int64(i + 1), Kind: session.KindMessage}
		m := &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(text)}}
		switch kind {
		case "u":
			m.Role = llm.RoleUser
		case "c":
			m.Parts = nil
			for id := range strings.SplitSeq(text, ",") {
				m.Parts = append(m.Parts, callPart(id))
			}
		case "r":
			m = &llm.Message{Role: llm.RoleTool, CallID: text, ToolName: "t",
				Parts: []llm.Part{llm.Text(fmt.Sprintf("result %d", i+1))}}
		case "t":
			m.Provider = "anthropic"
			m.Parts = []llm.Part{{Kind: llm.PartThinking, Text: "hm", Signature: "sig"}, llm.Text(text)}
		case "tc":
			m.Provider = "anthropic"
			m.Parts = []llm.Part{{Kind: llm.PartThinking, Text: "hm", Signature: "sig"}, callPart(text)}
		case "p":
			e.Partial = true
			m.Parts = append(m.Parts, callPart("lost"))
		case "cut":
			m, e.Kind = nil, session.KindCut
			fmt.Sscan(text, &e.First)
		case "v":
			var n int
			fmt.Sscan(text, &n)
			m, e.Kind, e.Voids = nil, session.KindVoid, session.Ref{Entry: fmt.Sprintf("%08x", n)}
		case "vr":
			m, e.Kind, e.Voids = nil, session.KindVoid, session.Ref{Run: chela.RunID(text)}
		case "i":
			m.Role = llm.RoleUser
			m.Parts = append(m.Parts, llm.Image("image/png", []byte{1, 2, 3}))
		case "pr":
			p := &session.Prune{Cause: session.PruneTTL, Head: 2, Tail: 3, Placeholder: "[cleared]"}
			var n int64
			fmt.Sscan(text, &n)
			for seq := range int64(i) {
				switch {
				case seq+1 > n:
				case seq%2 == 0:
					p.Trim, p.Images = append(p.Trim, seq+1), append(p.Images, seq+1)
				default:
					p.Clear, p.Images = append(p.Clear, seq+1), append(p.Images, seq+1)
				}
			}
			m, e.Kind, e.Prune = nil, session.KindPrune, p
		case "n":
			m, e.Kind, e.Text = nil, session.KindNotice, text
		}
		e.Message = m
		es = append(es, e)
	}
	return es
}

func callPart(id string) llm.Part {
	return llm.Part{Kind: llm.PartCall, Call: &llm.ToolCall{ID: id, Name: "t", Args: json.RawMessage(`{"x":1}`)}}
}

// lines formats each message of a list as a short line.
func lines(ms []*llm.Message) []string {
	var out []string
	for _, m := range ms {
		s := string(m.Role) + " " + m.PlainText()
		for _, c := range m.Calls() {
			s += "+" + c.ID
		}
		if m.CallID != "" {
			s = "result " + m.CallID + ": " + m.PlainText()
		}
		out = append(out, s)
	}
	return out
}

const unknown = "interrupted: the outcome is unknown"

func TestCompile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		entries []session.Entry
		want    []string
	}{
		{"no entries", nil, nil},
		{
			"HYG-07 an earlier turn keeps its calls, arguments and results",
			history("u:hi", "c:1,2", "r:1", "r:2", "a:done", "u:again"),
			[]string{"user hi", "assistant +1+2", "result 1: result 3", "result 2: result 4", "assistant done", "user again"},
		},
		{
			"HYG-01 a call without result, at the end",
			history("u:hi", "c:1"),
			[]string{"user hi", "assistant +1", "result 1: " + unknown},
		},
		{
			"a call without result, in the middle",
			history("u:hi", "c:1,2", "r:2", "u:still there?", "a:yes"),
			[]string{"user hi", "assistant +1+2", "result 1: " + unknown, "result 2: result 3",
				"user still there?", "assistant yes"},
		},
		{
			"results in another order, and after a steering message",
			history("u:hi", "c:1,2", "r:2", "u:faster", "r:1", "a:ok"),
			[]string{"user hi", "assistant +1+2", "result 1: result 5", "result 2: result 3", "user faster", "assistant ok"},
		},
		{
			"a duplicate result, and a result without a call",
			history("u:hi", "c:1", "r:1", "r:1", "r:9", "a:ok"),
			[]string{"user hi", "assistant +1", "result 1: result 3", "assistant ok"},
		},
		{
			"the same id in two turns is matched within its turn",
			history("u:hi", "c:1", "r:1", "u:more", "c:1", "r:1", "r:1"),
			[]string{"user hi", "assistant +1", "result 1: result 3", "user more", "assistant +1-2", "result 1-2: result 6"},
		},
		{
			"an id twice in one message",
			history("u:hi", "c:1,1", "r:1"),
			[]string{"user hi", "assistant +1", "result 1: result 3"},
		},
		{
			"a partial answer keeps its text",
			history("u:hi", "p:half of", "u:go on", "p: ", "u:hello?"),
			[]string{"user hi", "assistant half of", "user go on", "user hello?"},
		},
		{
			"HYG-06 only messages are in the list",
			history("u:hi", "n:a notice", "a:ok"),
			[]string{"user hi", "assistant ok"},
		},
		{
			"a list that would begin with the assistant",
			history("a:reminder: tea", "u:thanks"),
			[]string{"user [The conversation begins here.]", "assistant reminder: tea", "user thanks"},
		},
		{
			"a cut between turns",
			history("u:old", "a:old", "u:new", "a:new", "cut:3"),
			[]string{"user new", "assistant new"},
		},
		{
			"a cut between a call and its result",
			history("u:old", "c:1", "r:1", "a:ok", "cut:3", "u:new"),
			[]string{"user [The conversation begins here.]", "assistant ok", "user new"},
		},
		{
			"the last cut applies",
			history("u:1", "a:1", "u:2", "a:2", "cut:3", "cut:1"),
			[]string{"user 1", "assistant 1", "user 2", "assistant 2"},
		},
		{"everything is cut", history("u:1", "a:1", "cut:9"), nil},
		{
			"a voided message is omitted",
			history("u:hi", "a:ok", "u:wrong", "v:3", "u:again"),
			[]string{"user hi", "assistant ok", "user again"},
		},
		{
			"a voided run is omitted with its question and its calls",
			history("u:hi", "a:ok", "u@h:anything to do?", "c@h:1", "r@h:1", "a@h:HEARTBEAT_OK", "vr:h", "u:thanks"),
			[]string{"user hi", "assistant ok", "user thanks"},
		},
		{
			"a void comes before what it refers to",
			history("u:hi", "vr:h", "a@h:HEARTBEAT_OK"),
			[]string{"user hi"},
		},
		{
			"a voided cut has no effect, and the cut before it applies",
			history("u:1", "a:1", "u:2", "a:2", "cut:3", "cut:4", "v:6"),
			[]string{"user 2", "assistant 2"},
		},
		{
			"a compaction is undone with its summary",
			history("u:1", "a:1", "u@c:summary", "cut@c:3", "u:2", "vr:c"),
			[]string{"user 1", "assistant 1", "user 2"},
		},
		{
			"a voided result is replaced by an error result",
			history("u:hi", "c:1", "r:1", "v:3"),
			[]string{"user hi", "assistant +1",
				"result 1: the call has ended, but its result is left out: the service of the model refused it as invalid"},
		},
		{"a void that refers to nothing", history("u:hi", "v:9", "vr:x"), []string{"user hi"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := session.Compile(c.entries)
			if d := cmp.Diff(c.want, lines(got)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			accept(t, got)
			overWires(t, got)
		})
	}
}

// accept fails the test if a provider would reject the list.
func accept(t *testing.T, ms []*llm.Message) {
	t.Helper()
	r := &llm.Request{Model: "m", Messages: append(slices.Clone(ms), llm.User("next"))}
	if err := llmtest.Validate(r); err != nil {
		t.Errorf("%v in\n%s", err, strings.Join(lines(ms), "\n"))
	}
}

func TestCompileParts(t *testing.T) {
	t.Parallel()
	entry := func(seq int64, role llm.Role, parts ...llm.Part) session.Entry {
		return session.Entry{Seq: seq, Kind: session.KindMessage, Message: &llm.Message{Role: role, Parts: parts}}
	}
	thinking := llm.Part{Kind: llm.PartThinking, Text: "hm", Signature: "sig"}

	t.Run("HYG-06 entries of a system role are omitted", func(t *testing.T) {
		got := session.Compile([]session.Entry{entry(1, "system", llm.Text("obey")), entry(2, llm.RoleUser, llm.Text("hi"))})
		if d := cmp.Diff([]string{"user hi"}, lines(got)); d != "" {
			t.Error(d)
		}
	})
	t.Run("messages with only thinking, blank or unsupported parts are omitted", func(t *testing.T) {
		got := session.Compile([]session.Entry{
			entry(1, llm.RoleUser, llm.Text("hi"), thinking, callPart("x")),
			entry(2, llm.RoleAssistant, thinking),
			entry(3, llm.RoleAssistant, llm.Text(" \n")),
			entry(4, llm.RoleUser, llm.Image("", nil)),
			entry(5, llm.RoleAssistant, llm.Part{Kind: llm.PartCall}),
			entry(6, llm.RoleAssistant, llm.Part{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1"}}),
			entry(7, llm.RoleAssistant, llm.Part{Kind: "mystery"}),
		})
		if len(got) != 1 || len(got[0].Parts) != 1 {
			t.Errorf("got %q", lines(got))
		}
	})
	t.Run("an aborted answer has no calls", func(t *testing.T) {
		es := history("u:hi", "c:1")
		es[1].Message.Stop = llm.StopAborted
		if d := cmp.Diff([]string{"user hi"}, lines(session.Compile(es))); d != "" {
			t.Error(d)
		}
	})
	t.Run("an aborted answer has no thinking", func(t *testing.T) {
		es := history("u:hi", "t:half")
		es[1].Partial = true
		if got := session.Compile(es); countThinking(got) != 0 || len(got) != 2 {
			t.Errorf("got %q", lines(got))
		}
	})
	t.Run("missing ids, arguments and outputs of calls are filled in", func(t *testing.T) {
		got := session.Compile([]session.Entry{
			entry(1, llm.RoleUser, llm.Text("hi")),
			entry(2, llm.RoleAssistant, llm.Part{Kind: llm.PartCall, Call: &llm.ToolCall{Name: "t"}}),
			{Seq: 3, Kind: session.KindMessage, Message: &llm.Message{Role: llm.RoleTool}},
		})
		if c := got[1].Calls()[0]; c.ID != "call" || string(c.Args) != "{}" {
			t.Errorf("call %+v", c)
		}
		if r := got[2]; r.CallID != "call" || r.PlainText() != "(no output)" {
			t.Errorf("result %q: %q", r.CallID, r.PlainText())
		}
		accept(t, got)
	})
	t.Run("HYG-03 no signature from before a cut is sent", func(t *testing.T) {
		got := session.Compile(history("u:1", "t:1", "u:2", "t:2", "cut:3", "u:3", "t:3"))
		if n := countThinking(got); n != 1 {
			t.Errorf("%d thinking parts, want only the one after the cut", n)
		}
		if body := overWires(t, append(got, llm.User("next")))["anthropic"]; bytes.Count(body, []byte(`"signature"`)) != 1 {
			t.Errorf("sent %s", body)
		}
	})
	t.Run("a turn in progress keeps its thinking after a cut", func(t *testing.T) {
		es := history("u:1", "t:1", "u:2", "tc:1", "r:1", "cut:1")
		if got := session.Compile(es); countThinking(got) != 1 || got[3].Parts[0].Kind != llm.PartThinking {
			t.Errorf("%d thinking parts, want only the one of the last turn", countThinking(got))
		}
		if es[1].Message.Parts[0].Kind != llm.PartThinking {
			t.Error("the entry was changed")
		}
	})
	t.Run("a repaired message keeps its other parts and fields", func(t *testing.T) {
		blank, picture := llm.Text(" "), llm.Image("image/png", []byte{1})
		call := func(id, args string) llm.Part {
			return llm.Part{Kind: llm.PartCall,
				Call: &llm.ToolCall{ID: id, Name: "t", Args: json.RawMessage(args), Raw: "raw " + id}}
		}
		answer := entry(2, llm.RoleAssistant, blank, llm.Text("I look"), call("1", "[]"), call("2", ` {"x":1}`))
		answer.Message.Provider, answer.Message.Model, answer.Message.Stop = "anthropic", "opus", llm.StopTools
		result := entry(3, llm.RoleTool, blank, llm.Text("done"), picture, llm.Text("well"))
		result.Message.CallID, result.Message.ToolName, result.Message.IsError = "1", "another", true
		want := []*llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("a"), picture, llm.Text("b")}},
			{
				Role: llm.RoleAssistant, Provider: "anthropic", Model: "opus", Stop: llm.StopTools,
				Parts: []llm.Part{llm.Text("I look"), call("1", "{}"), call("2", ` {"x":1}`)},
			},
			{
				Role: llm.RoleTool, CallID: "1", ToolName: "t", IsError: true,
				Parts: []llm.Part{llm.Text("done"), picture, llm.Text("well")},
			},
			{Role: llm.RoleTool, CallID: "2", ToolName: "t", IsError: true, Parts: []llm.Part{llm.Text(unknown)}},
		}
		got := session.Compile([]session.Entry{entry(1, llm.RoleUser, blank, llm.Text("a"), picture, llm.Image("", []byte{1}),
			llm.Text("b")), answer, result})
		if d := cmp.Diff(want, got, sameEntries); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	t.Run("unchanged messages are not copied, and repaired messages stay the same", func(t *testing.T) {
		es := history("u:hi", "c:1,2", "r:1", "a:ok")
		var tr session.Transcript
		tr.Append(es...)
		a, b := tr.Messages(), tr.Messages()
		if a[0] != es[0].Message || a[1] != es[1].Message || a[2] != es[2].Message || a[4] != es[3].Message {
			t.Error("a message was copied")
		}
		if !slices.Equal(a, b) {
			t.Error("two lists of one transcript differ")
		}
	})
}

func countThinking(ms []*llm.Message) (n int) {
	for _, m := range ms {
		for _, p := range m.Parts {
			if p.Kind == llm.PartThinking {
				n++
			}
		}
	}
	return n
}

// fromBytes makes a history from arbitrary bytes, two for each entry.
func fromBytes(data []byte) []session.Entry {
	var words []string
	for i := 0; i+1 < len(data) && len(words) < 64; i += 2 {
		n := int(data[i+1])
		id := fmt.Sprint(n % 5)
		switch data[i] % 17 {
		case 0, 1:
			words = append(words, "u:hello "+id)
		case 2:
			words = append(words, "u: ")
		case 3:
			words = append(words, "a:answer "+id)
		case 4:
			words = append(words, "c:"+id)
		case 5:
			words = append(words, fmt.Sprintf("c:%d,%d,%d", n%5, n/5%5, n/25%5))
		case 6, 7:
			words = append(words, "r:"+id)
		case 8:
			words = append(words, "p:half "+strings.Repeat(" ", n%3))
		case 9:
			words = append(words, fmt.Sprintf("cut:%d", n%20))
		case 10:
			words = append(words, "t:thought "+id)
		case 12:
			words = append(words, "tc:"+id)
		case 11:
			words = append(words, "n:notice")
		case 13:
			words = append(words, fmt.Sprintf("v:%d", n%20))
		case 15:
			words = append(words, "i:look "+id)
		case 16:
			words = append(words, fmt.Sprintf("pr:%d", n%40))
		case 14:
			words = append(words, "a@"+id+":of a run", "vr:"+id)
		}
	}
	es := history(words...)
	for i := range es { // corrupt some entries
		if m := es[i].Message; m != nil && i < len(data) && data[i]%17 == 0 {
			m.Parts = m.Parts[:len(m.Parts)/2]
		}
	}
	return es
}

// FuzzCompile checks HYG-05: any history compiles to a valid list, and appending the
// entries in pieces gives the same list.
func FuzzCompile(f *testing.F) {
	f.Add([]byte("\x00\x01\x04\x01\x06\x01\x03\x01"))
	f.Add([]byte("\x05\x20\x06\x01\x09\x03\x04\x01\x04\x01\x06\x01"))
	f.Add([]byte("\x0a\x01\x09\x00\x08\x02\x02\x02\x0b\x00\x07\x03"))
	f.Fuzz(func(t *testing.T, data []byte) {
		es := fromBytes(data)
		whole := session.Compile(es)
		accept(t, whole)
		overWires(t, whole)
		var tr session.Transcript
		for _, e := range es {
			tr.Append(e)
			accept(t, tr.Messages())
		}
		if d := cmp.Diff(lines(whole), lines(tr.Messages())); d != "" {
			t.Errorf("appended in pieces (-whole +pieces)\n%s", d)
		}
	})
}

func TestHYG05(t *testing.T) {
	t.Parallel()
	t.Run("HYG-05 random transcripts are accepted", func(t *testing.T) {
		seed := uint32(1)
		for range 2000 {
			data := make([]byte, 60)
			for i := range data {
				seed = seed*1664525 + 1013904223
				data[i] = byte(seed >> 24)
			}
			ms := session.Compile(fromBytes(data))
			accept(t, ms)
			overWires(t, ms)
			if t.Failed() {
				t.Fatalf("history %x", data)
			}
		}
	})
	t.Run("HYG-04 two messages of a person in a row are one turn for Anthropic", func(t *testing.T) {
		ms := session.Compile(history("u:one", "u:two", "a:ok"))
		if d := cmp.Diff([]string{"user one", "user two", "assistant ok"}, lines(ms)); d != "" {
			t.Error(d)
		}
		var wire struct {
			Messages []struct {
				Role    string
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(overWires(t, ms)["anthropic"], &wire); err != nil {
			t.Fatal(err)
		}
		if m := wire.Messages[0]; m.Role != "user" || len(m.Content) != 2 || m.Content[1].Text != "two" ||
			wire.Messages[1].Role != "assistant" {
			t.Errorf("sent %+v", wire)
		}
	})
}

// overWires fails the test if a service would reject the request body that a dialect
// makes of the list, with or without thinking. It returns the bodies with thinking.
func overWires(t *testing.T, ms []*llm.Message) map[string][]byte {
	t.Helper()
	bodies := make(map[string][]byte)
	know := func(id string) llm.Model {
		return llm.Model{ID: id, Context: 200_000, MaxOutput: 64_000, Images: true, Levels: []llm.Level{llm.Low, llm.High}}
	}
	for _, w := range []struct {
		name  string
		open  func(*http.Client) llm.Provider
		valid func([]byte) error
	}{
		{"anthropic", func(c *http.Client) llm.Provider {
			return anthropic.New(anthropic.Options{HTTP: c, Model: know})
		}, wiretest.Anthropic},
		{"openai", func(c *http.Client) llm.Provider { return openai.New(openai.Options{HTTP: c, Model: know}) },
			wiretest.OpenAI},
	} {
		var body []byte
		p := w.open(&http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			body, _ = io.ReadAll(r.Body)
			return nil, errors.New("sent")
		})})
		for _, level := range []llm.Level{llm.Off, llm.High} {
			list := ms
			if n := len(ms); n == 0 || ms[n-1].Role == llm.RoleAssistant {
				list = append(slices.Clone(ms), llm.User("next"))
			}
			r := &llm.Request{Model: "m", Messages: list, Thinking: level, MaxTokens: 8000}
			body = nil
			for range p.Stream(t.Context(), r) {
			}
			if err := w.valid(body); err != nil {
				t.Errorf("%s, thinking %s: %v in\n%s\n%s", w.name, level, err, strings.Join(lines(list), "\n"), body)
			}
		}
		bodies[w.name] = body
	}
	return bodies
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// BenchmarkMessages measures the cost of compiling a conversation of 2,000 messages for
// one more turn.
func BenchmarkMessages(b *testing.B) {
	var words []string
	for i := range 500 {
		words = append(words, "u:hello", fmt.Sprintf("c:%d", i), fmt.Sprintf("r:%d", i), "a:ok")
	}
	var tr session.Transcript
	tr.Append(history(words...)...)
	for b.Loop() {
		if len(tr.Messages()) != 2000 {
			b.Fatal("short")
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	es := history("u:1", "t:1", "u:2", "a:2", "u:3", "a:3")
	add := func(e session.Entry) {
		e.Seq = int64(len(es) + 1)
		es = append(es, e)
	}
	texts := func() (out []string) {
		for _, m := range session.Compile(es) {
			out = append(out, m.PlainText())
		}
		return out
	}
	all := texts()
	first := *session.NewCompaction(3, " the first summary ", "rules",
		session.Compaction{TokensBefore: 9, TokensAfter: 5}, time.Time{})
	add(first)
	once := texts()
	if len(once) != 5 || once[1] != "2" ||
		!strings.Contains(once[0], "<summary>\nthe first summary\n</summary>\n\nrules") {
		t.Errorf("after a compaction %q", once)
	}
	if first.Text != "the first summary" || session.CompactionOf(first).TokensBefore != 9 {
		t.Errorf("%+v", first)
	}
	second := *session.NewCompaction(5, "the second", "", session.Compaction{}, time.Time{})
	add(second)
	if got := texts(); len(got) != 3 || !strings.Contains(got[0], "the second") || strings.Contains(got[0], "the first") {
		t.Errorf("after two compactions %q", got)
	}
	add(session.Entry{Kind: session.KindVoid, Voids: session.Ref{Entry: second.ID}})
	if got := texts(); !slices.Equal(got, once) {
		t.Errorf("after undo %q, want %q", got, once)
	}
	add(session.Entry{Kind: session.KindVoid, Voids: session.Ref{Entry: first.ID}})
	if got := texts(); !slices.Equal(got, all) {
		t.Errorf("after undo of both %q, want %q", got, all)
	}
	add(*session.NewCompaction(5, "", "ignored", session.Compaction{}, time.Time{}))
	if got := texts(); len(got) != 2 || got[0] != "3" {
		t.Errorf("after a compaction without a summary %q", got)
	}
	cut, sent := session.SentEntries(es)
	if cut == nil || cut.First != 5 || len(sent) != 2 {
		t.Errorf("%+v, %d entries", cut, len(sent))
	}
}
