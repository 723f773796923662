package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// conversation returns entries of every kind.
func conversation() []session.Entry {
	at := time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)
	es := []session.Entry{
		{Message: &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("look <here>"),
			llm.Image("image/png", []byte{1, 2})}},
			Sender: chela.Sender{ID: "7", Name: "Ada"}, Run: "r1"},
		{Message: &llm.Message{
			Role: llm.RoleAssistant, Provider: "anthropic", Model: "m", Stop: llm.StopTools,
			Parts: []llm.Part{
				{Kind: llm.PartThinking, Text: "hm", Signature: "s"},
				{Kind: llm.PartThinking, Redacted: "hidden"},
				llm.Text("I look"), callPart("1"),
			},
		}, Usage: &llm.Usage{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 7}, NanoUSD: 1_500_000, Run: "r1"},
		{Message: &llm.Message{
			Role:     llm.RoleTool,
			CallID:   "1",
			ToolName: "t",
			IsError:  true,
			Parts:    []llm.Part{llm.Text("no")},
		},
			Details: json.RawMessage(`{"code":1}`), Run: "r1"},
		{Message: &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopAborted, Parts: []llm.Part{llm.Text("hal")}},
			NanoUSD: -1, Partial: true},
		{Kind: session.KindNotice, Text: "interrupted"},
		{Kind: session.KindCommand, Text: "/status"},
		{Kind: session.KindModel, Text: "openai/gpt-5/x"},
		{Kind: session.KindThink, Text: "high"},
		{Kind: session.KindCut, First: 4},
		{Kind: session.KindVoid, Voids: session.Ref{Entry: "00000009"}},
		{Kind: session.KindVoid, Voids: session.Ref{Run: "r1"}},
		{Message: &llm.Message{Role: llm.RoleTool, CallID: "1", ToolName: "t", Parts: []llm.Part{llm.Text("yes")}}},
	}
	for i := range es {
		if es[i].Kind == "" {
			es[i].Kind = session.KindMessage
		}
		es[i].Seq, es[i].Time = int64(i+1), at.Add(time.Duration(i)*time.Second)
		es[i].ID = fmt.Sprintf("%08x", i+1)
	}
	return es
}

var sameEntries = cmp.Options{cmpopts.IgnoreUnexported(llm.Message{}), cmpopts.EquateEmpty()}

func export(t testing.TB, es []session.Entry) string {
	t.Helper()
	var b bytes.Buffer
	m := session.Meta{Key: "agent:main:main", ID: "tr-1", Started: time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC)}
	if err := session.Export(&b, m, es); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExport(t *testing.T) {
	t.Parallel()
	t.Run("SESS-11 every line is JSON with the fields of the format", func(t *testing.T) {
		text := export(t, conversation())
		prev := any(nil)
		for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			var m map[string]any
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			if i == 0 {
				if m["type"] != "session" || m["version"] != 3.0 || m["id"] != "tr-1" ||
					m["timestamp"] != "2026-05-01T11:00:00.000Z" {
					t.Errorf("header %v", m)
				}
				continue
			}
			id, _ := m["id"].(string)
			if len(id) != 8 || m["parentId"] != prev || m["timestamp"] == "" {
				t.Errorf("line %d: id %v after %v, parent %v", i+1, id, prev, m["parentId"])
			}
			prev = id
			checkRow(t, i, m)
		}
		if !strings.Contains(text, "look <here>") {
			t.Error("text is escaped for HTML")
		}
	})
	t.Run("Import reads what Export wrote", func(t *testing.T) {
		es := conversation()
		got, err := session.Import(strings.NewReader(export(t, es)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(es, got.Entries, sameEntries, cmpopts.IgnoreFields(session.Entry{}, "NanoUSD")); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
		if got.Entries[1].NanoUSD != 1_500_000 || got.Entries[3].NanoUSD != -1 {
			t.Errorf("costs %d, %d", got.Entries[1].NanoUSD, got.Entries[3].NanoUSD)
		}
		if got.ID != "tr-1" || got.Skipped+got.Branched+got.Duplicates != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a partial answer is exported as aborted", func(t *testing.T) {
		es := history("u:hi", "p:half")
		got, err := session.Import(strings.NewReader(export(t, es)))
		if err != nil || !got.Entries[1].Partial {
			t.Errorf("%+v %v", got.Entries, err)
		}
	})
	t.Run("other ids are replaced by unique ids of eight digits", func(t *testing.T) {
		es := history("u:1", "a:2", "u:3")
		es[0].ID, es[1].ID, es[2].ID = "6f1c1f3e-long", "6f1c1f3e-long", ""
		got, err := session.Import(strings.NewReader(export(t, es)))
		if err != nil || len(got.Entries) != 3 || got.Duplicates != 0 {
			t.Errorf("%+v %v", got, err)
		}
		es[0].ID, es[1].ID, es[2].ID = "0000000a", "0000000a", "0000000a"
		if got, err := session.Import(strings.NewReader(export(t, es))); err != nil || len(got.Entries) != 3 {
			t.Errorf("%+v %v", got, err)
		}
	})
	t.Run("a void refers to its entry by the new id", func(t *testing.T) {
		es := history("u:hi", "u:wrong", "v:2")
		es[1].ID, es[2].Voids.Entry = "6f1c1f3e-long", "6f1c1f3e-long"
		got, err := session.Import(strings.NewReader(export(t, es)))
		if d := cmp.Diff([]string{"user hi"}, lines(session.Compile(got.Entries))); err != nil || d != "" {
			t.Errorf("%v (-want +got)\n%s", err, d)
		}
	})
	t.Run("SESS-10 large details are truncated and not sent to a model", func(t *testing.T) {
		es := conversation()
		es[2].Details = json.RawMessage(`{"out":"` + strings.Repeat("x", 1<<20) + `"}`)
		text := export(t, es)
		if len(text) > 32<<10 || !strings.Contains(text, `"persistedDetailsTruncated":true`) {
			t.Errorf("%d bytes", len(text))
		}
		got, err := session.Import(strings.NewReader(text))
		if err != nil || !got.Entries[2].Cut {
			t.Errorf("cut %v %v", got.Entries[2].Cut, err)
		}
		for _, m := range session.Compile(es) {
			for _, p := range m.Parts {
				if strings.Contains(p.Text, "xxx") {
					t.Error("details are in the list")
				}
			}
		}
	})
	t.Run("details that the table truncated are marked", func(t *testing.T) {
		for details, want := range map[string]string{
			`{"code":1}`: `"code":1`,
			`"plain"`:    `"head":"plain"`,
			`null`:       `"head":null`,
		} {
			es := conversation()
			es[2].Details, es[2].Cut = json.RawMessage(details), true
			text := export(t, es)
			if !strings.Contains(text, `"persistedDetailsTruncated":true`) || !strings.Contains(text, want) {
				t.Errorf("%s: %s", details, text)
			}
			if got, err := session.Import(strings.NewReader(text)); err != nil || !got.Entries[2].Cut {
				t.Errorf("%s: imported without the mark: %v", details, err)
			}
		}
	})
	t.Run("details and arguments that are not JSON are omitted", func(t *testing.T) {
		es := conversation()
		es[1].Message.Parts[3].Call.Args, es[2].Details = json.RawMessage(`{"x`), json.RawMessage(`{"half`)
		got, err := session.Import(strings.NewReader(export(t, es)))
		if err != nil || len(got.Entries) != len(es) {
			t.Fatalf("%+v %v", got, err)
		}
		if args := got.Entries[1].Message.Calls()[0].Args; string(args) != "{}" || got.Entries[2].Details != nil {
			t.Errorf("arguments %s, details %s", args, got.Entries[2].Details)
		}
	})
	t.Run("a cost of zero is a cost, an unknown cost is omitted", func(t *testing.T) {
		es := history("u:hi", "a:free", "a:unpriced")
		es[1].Usage, es[2].Usage, es[2].NanoUSD = &llm.Usage{Input: 1}, &llm.Usage{Input: 1}, -1
		text := export(t, es)
		got, err := session.Import(strings.NewReader(text))
		if err != nil || got.Entries[1].NanoUSD != 0 || got.Entries[2].NanoUSD != -1 || strings.Count(text, `"cost"`) != 1 {
			t.Errorf("%v in\n%s", err, text)
		}
	})
	t.Run("the header names the transcript before", func(t *testing.T) {
		var b strings.Builder
		if err := session.Export(&b, session.Meta{Previous: "tr-0"}, nil); err != nil ||
			!strings.Contains(b.String(), `"parentSession":"tr-0"`) {
			t.Errorf("%s %v", b.String(), err)
		}
	})
	t.Run("an error of the writer is returned", func(t *testing.T) {
		r, w := io.Pipe()
		r.CloseWithError(errors.New("full"))
		if err := session.Export(w, session.Meta{}, conversation()); err == nil {
			t.Error("no error")
		}
	})
}

// checkRow checks one line against the format.
func checkRow(t *testing.T, i int, m map[string]any) {
	t.Helper()
	want := map[string][]string{
		"message": {"message"}, "compaction": {"summary", "firstKeptEntryId", "tokensBefore"},
		"model_change": {"provider", "modelId"}, "thinking_level_change": {"thinkingLevel"}, "custom": {"customType", "data"},
	}[m["type"].(string)]
	if want == nil {
		t.Errorf("line %d: type %v", i+1, m["type"])
	}
	for _, f := range want {
		if _, ok := m[f]; !ok {
			t.Errorf("line %d: no %s in %v", i+1, f, m)
		}
	}
	msg, ok := m["message"].(map[string]any)
	if !ok {
		return
	}
	fields := map[string][]string{
		"user": {"content", "timestamp"}, "assistant": {"content", "stopReason", "timestamp"},
		"toolResult": {"content", "toolCallId", "toolName", "isError", "timestamp"},
	}[msg["role"].(string)]
	for _, f := range fields {
		if _, ok := msg[f]; !ok {
			t.Errorf("line %d: no message.%s in %v", i+1, f, msg)
		}
	}
	if u, ok := msg["usage"].(map[string]any); ok && u["totalTokens"] != 25.0 {
		t.Errorf("line %d: usage %v", i+1, u)
	}
	for _, p := range msg["content"].([]any) {
		part := p.(map[string]any)
		for _, f := range map[string][]string{
			"text": {"text"}, "image": {"data", "mimeType"}, "thinking": {"thinking"}, "toolCall": {"id", "name", "arguments"},
		}[part["type"].(string)] {
			if _, ok := part[f]; !ok {
				t.Errorf("line %d: no %s in %v", i+1, f, part)
			}
		}
	}
}

func TestImport(t *testing.T) {
	t.Parallel()
	head := `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}` + "\n"
	user := func(id, parent, text string) string {
		return `{"type":"message","id":"` + id + `","parentId":` + parent +
			`,"timestamp":"2026-01-02T03:04:06Z","message":{"role":"user","content":"` + text + `"}}`
	}
	t.Run("SESS-11 a file of the reference format loads", func(t *testing.T) {
		text := head + strings.Join([]string{
			`{"type":"model_change","id":"a0000000","parentId":null,"timestamp":"2026-01-02T03:04:06Z","provider":"openai","modelId":"gpt"}`,
			user("a0000001", `"a0000000"`, "old"),
			`{"type":"message","id":"a0000002","parentId":"a0000001","timestamp":"x","message":{"role":"assistant","content":[{"type":"text","text":"yes"}],"api":"x","provider":"openai","model":"gpt","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0,"total":0.5}},"stopReason":"stop","timestamp":1}}`,
			user("a0000003", `"a0000002"`, "kept"),
			`{"type":"compaction","id":"a0000004","parentId":"a0000003","timestamp":"2026-01-02T03:04:06Z","summary":"they talked","firstKeptEntryId":"a0000003","tokensBefore":9}`,
			`{"type":"custom_message","id":"a0000005","parentId":"a0000004","customType":"x","content":[{"type":"text","text":"from a plug-in"}],"display":true}`,
			`{"type":"message","id":"a0000006","parentId":"a0000005","message":{"role":"bashExecution","command":"ls","output":"a b"}}`,
			`{"type":"session_info","id":"a0000007","parentId":"a0000006","name":"Trip"}`,
			`{"type":"label","id":"a0000008","parentId":"a0000007","targetId":"a0000003","label":"x"}`,
		}, "\n") + "\n"
		got, err := session.Import(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != "Trip" || got.Skipped != 1 || got.Started.Year() != 2026 {
			t.Errorf("%+v", got)
		}
		want := []string{"user " + session.NewCompaction(1, "they talked", "", session.Compaction{},
			time.Time{}).Message.PlainText(), "user kept", "user from a plug-in", "user [The person ran a command]\n$ ls\na b"}
		if d := cmp.Diff(want, lines(session.Compile(got.Entries))); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	for _, c := range []struct {
		name, text string
		want       []string
		skipped    int
	}{
		{"a compaction without its first kept entry cuts everything before it", head + user("a", "null", "1") + "\n" +
			`{"type":"compaction","id":"b","parentId":"a","summary":"","firstKeptEntryId":"z"}` + "\n" + user("c", `"b"`, "2"),
			[]string{"user 2"}, 0},
		{"a half-written last line is counted", head + user("a", "null", "hi") + "\n" + `{"type":"mess`,
			[]string{"user hi"}, 1},
		{"a damaged line in the middle is skipped", head + user("a", "null", "1") + "\n{{{\n" + user("b", `"a"`, "2") + "\n",
			[]string{"user 1", "user 2"}, 1},
		{"an unknown type is skipped", head + `{"type":"mystery","id":"q"}` + "\n" + user("b", `"q"`, "2"),
			[]string{"user 2"}, 1},
		{"Windows line endings and a byte order mark",
			"\ufeff" + strings.ReplaceAll(head+user("a", "null", "hi"), "\n", "\r\n"), []string{"user hi"}, 0},
		{"the last line with an id wins", head + user("a", "null", "1") + "\n" + user("a", "null", "2"),
			[]string{"user 2"}, 0},
		{"an abandoned branch is omitted", head + user("a", "null", "1") + "\n" + user("b", `"a"`, "left") + "\n" +
			user("c", `"a"`, "2"), []string{"user 1", "user 2"}, 0},
		{"a missing parent is replaced by the line above", head + user("a", "null", "1") + "\n" + user("b", `"a"`, "2") +
			"\n" + user("c", `"nowhere"`, "3"), []string{"user 1", "user 2", "user 3"}, 0},
		{"a line that replaces its own parent follows the parent of that", head + user("a", "null", "1") + "\n" +
			user("b", `"a"`, "left") + "\n" + user("c", `"a"`, "2") + "\n" + user("c", `"c"`, "3"),
			[]string{"user 1", "user 3"}, 0},
		{"a message without a message or of an unknown role is skipped", head + `{"type":"message","id":"a"}` + "\n" +
			`{"type":"message","id":"b","message":{"role":"x","content":"1"}}` + "\n" + user("c", `"b"`, "2"),
			[]string{"user 2"}, 2},
		{"unknown custom types and unusable voids are skipped",
			head + `{"type":"custom","id":"a","customType":"x","data":{}}` + "\n" +
				`{"type":"custom","id":"b","customType":"chela.notice","data":1}` + "\n" +
				`{"type":"custom","id":"c","customType":"chela.void","data":{}}` + "\n" +
				`{"type":"custom","id":"d","customType":"chela.void","data":{"entry":1}}` + "\n" + user("e", `"d"`, "2"),
			[]string{"user 2"}, 4},
		{"the summary of an abandoned branch", head + user("a", "null", "1") + "\n" +
			`{"type":"branch_summary","id":"b","parentId":"a","summary":"we tried"}` + "\n" +
			`{"type":"branch_summary","id":"c","parentId":"b"}`,
			[]string{"user 1", "user [Summary of an abandoned branch]\nwe tried"}, 0},
		{"a blank summary of a compaction", head + user("a", "null", "1") + "\n" + user("b", `"a"`, "2") + "\n" +
			`{"type":"compaction","id":"c","parentId":"b","summary":" ","firstKeptEntryId":"b"}`, []string{"user 2"}, 0},
		{"a message of a plug-in", head + `{"type":"message","id":"a","message":{"role":"custom","content":"news"}}`,
			[]string{"user news"}, 0},
		{"a cycle of parents", head + user("a", `"b"`, "1") + "\n" + user("b", `"a"`, "2"), []string{"user 1", "user 2"}, 0},
		{"lines without ids", head + `{"type":"message","message":{"role":"user","content":"1"}}` + "\n" +
			`{"type":"message","message":{"role":"user","content":"2"}}`, []string{"user 1", "user 2"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := session.Import(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, lines(session.Compile(got.Entries))); d != "" || got.Skipped != c.skipped {
				t.Errorf("skipped %d; (-want +got)\n%s", got.Skipped, d)
			}
		})
	}
	t.Run("the replaced and the abandoned entries are counted", func(t *testing.T) {
		got, err := session.Import(strings.NewReader(head + user("a", "null", "1") + "\n" + user("a", "null", "1") + "\n" +
			user("b", `"a"`, "left") + "\n" + user("c", `"a"`, "2")))
		if err != nil || got.Duplicates != 1 || got.Branched != 1 {
			t.Errorf("%+v %v", got, err)
		}
	})
	t.Run("costs", func(t *testing.T) {
		for cost, want := range map[string]int64{
			`"cost":{"total":0}`:            0,
			`"cost":{"total":0.0000000016}`: 2,
			`"cost":{"total":-1}`:           -1,
			`"cost":{"total":1e12}`:         -1,
			`"input":1`:                     -1,
		} {
			got, err := session.Import(strings.NewReader(head +
				`{"type":"message","id":"a","message":{"role":"assistant","content":"x","usage":{` + cost + `}}}`))
			if err != nil || got.Entries[0].NanoUSD != want || got.Entries[0].Usage == nil {
				t.Errorf("%s: %+v %v, want %d", cost, got.Entries, err, want)
			}
		}
	})
	t.Run("another format is rejected", func(t *testing.T) {
		for _, text := range []string{"", "hello\n", "{}\n"} {
			if _, err := session.Import(strings.NewReader(text)); !errors.Is(err, session.ErrFormat) {
				t.Errorf("%q: got %v, want %v", text, err, session.ErrFormat)
			}
		}
	})
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(export(f, conversation())))
	f.Add([]byte(`{"type":"session"}` + "\n" +
		`{"type":"message","id":"a","parentId":"a","message":{"role":"toolResult","details":1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := session.Import(bytes.NewReader(data))
		if err != nil {
			return
		}
		accept(t, session.Compile(got.Entries))
		again, err := session.Import(strings.NewReader(export(t, got.Entries)))
		if err != nil {
			t.Fatalf("the exported import cannot be imported: %v", err)
		}
		if d := cmp.Diff(lines(session.Compile(got.Entries)), lines(session.Compile(again.Entries))); d != "" {
			t.Errorf("(-first +second)\n%s", d)
		}
	})
}
