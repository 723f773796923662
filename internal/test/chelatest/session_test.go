package chelatest

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/wire"
)

// echoing returns a model that answers with the last message.
func echoing() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		return llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText())
	})
}

// said returns the texts of the messages of a request.
func said(r *llm.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, string(m.Role)+": "+m.PlainText())
	}
	return out
}

func TestSessions(t *testing.T) {
	t.Run("SESS-04 the next turn's request contains the earlier turns after a restart", func(t *testing.T) {
		g := Start(t, Options{Model: echoing()})
		c := g.Client()
		c.Ask("main", "one")
		c.Close()
		g.Stop()
		model := echoing()
		c = Start(t, Options{Model: model, Dir: g.Dir}).Client()
		c.Ask("main", "two")
		want := []string{"user: one", "assistant: re: one", "user: two"}
		if diff := cmp.Diff(want, said(model.Requests()[0])); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("SESS-05 /new starts another transcript, keeps the old one and the pins, and resets the counters; undo restores",
		sess05)
	t.Run("SESS-11 every exported line is valid and can be imported unchanged", sess11)
	t.Run("LANE-07 the same message twice is one turn, also after a restart", func(t *testing.T) {
		model := echoing()
		g := Start(t, Options{Model: model})
		send := func(c *Client, text string) (sent wire.ChatSent) {
			c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: text, IdempotencyKey: "key-1"}, &sent)
			return sent
		}
		c := g.Client()
		first := send(c, "hi")
		again := send(c, "hi")
		if end := c.Await(first.RunID); end.Text != "re: hi" || again.RunID != first.RunID {
			t.Errorf("%q, runs %s and %s", end.Text, first.RunID, again.RunID)
		}
		if s := send(c, "hi"); s.RunID != first.RunID || s.Status != wire.StatusOK {
			t.Errorf("after its end: %+v", s)
		}
		c.Close()
		g.Stop()
		c = Start(t, Options{Model: model, Dir: g.Dir}).Client()
		if s := send(c, "hi"); s.RunID != first.RunID || s.Status != wire.StatusOK {
			t.Errorf("after a restart: %+v", s)
		}
		if end := c.Ask("main", "next"); end.Text != "re: next" || len(model.Requests()) != 2 {
			t.Errorf("%q, %d model calls", end.Text, len(model.Requests()))
		}
		want := []string{"user: hi", "assistant: re: hi", "user: next", "assistant: re: next"}
		if diff := cmp.Diff(want, c.lines("main")); diff != "" {
			t.Error(diff)
		}
	})
}

func sess05(t *testing.T) {
	model := echoing()
	c := Start(t, Options{Model: model, Config: section("messages", `{"queue": {"mode": "followup"}}`)}).Client()
	for _, text := range []string{"one", "/model mock/m", "/name trip", "/think off"} {
		c.Ask("main", text)
	}
	old := c.describe("main")
	if old.InputTokens == 0 || old.OutputTokens == 0 || old.TotalTokens == 0 {
		t.Fatalf("no counters: %+v", old)
	}
	end := c.Ask("main", "/new")
	if chat := final(t, end); !isCommand(chat) || !strings.Contains(end.Text, "mock/m") {
		t.Errorf("answer %q", end.Text)
	}
	fresh := c.describe("main")
	if fresh.SessionID == old.SessionID || fresh.InputTokens != 0 || fresh.OutputTokens != 0 || fresh.TotalTokens != 0 {
		t.Errorf("the new session: %+v", fresh)
	}
	if fresh.Thinking != "off" || fresh.Model != "m" {
		t.Errorf("pins: %+v", fresh)
	}
	c.Ask("main", "two")
	rs := model.Requests()
	if diff := cmp.Diff([]string{"user: two"}, said(rs[len(rs)-1])); diff != "" {
		t.Errorf("the new conversation contains the old one: %s", diff)
	}
	c.Ask("main", "/new undo")
	if back := c.describe("main"); back.SessionID != old.SessionID {
		t.Errorf("undo restored %s, want %s", back.SessionID, old.SessionID)
	}
	c.Ask("main", "three")
	rs = model.Requests()
	if diff := cmp.Diff([]string{"user: one", "assistant: re: one", "user: three"}, said(rs[len(rs)-1])); diff != "" {
		t.Errorf("after undo: %s", diff)
	}
}

func sess11(t *testing.T) {
	usage := llm.Usage{Input: 100, Output: 7, CacheRead: 50}
	say := llmtest.Think("let me see", "sig", llmtest.Say("it says \"alpha\"\nand no more 🦀"))
	say.Usage = &usage
	model := llmtest.NewScript(llmtest.Calls(
		llmtest.ToolCall("c1", "write", `{"path":"a.txt","content":"alpha\n"}`),
		llmtest.ToolCall("c2", "read", `{"path":"a.txt"}`),
	), say, llmtest.Say("bye"))
	g := Start(t, Options{Model: model})
	c := g.Client()
	c.Ask("main", "write and read")
	c.Ask("main", "/think off")
	c.Ask("main", "thanks\u2028!")
	var out wire.SessionExported
	c.must(wire.MethodSessionsExport, wire.SessionKey{Key: "main"}, &out)
	c.Close()
	g.Stop()
	for i, line := range strings.Split(strings.TrimSuffix(out.JSONL, "\n"), "\n") {
		var row struct{ Type, ID, Timestamp string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Errorf("line %d: %v", i, err)
		}
		if row.ID == "" || row.Timestamp == "" || (row.Type == "session") != (i == 0) {
			t.Errorf("line %d: %s", i, line)
		}
	}
	imp, err := session.Import(strings.NewReader(out.JSONL))
	if err != nil || imp.Skipped != 0 || imp.ID != out.SessionID {
		t.Fatalf("import: %v, %d lines skipped, id %s", err, imp.Skipped, imp.ID)
	}
	var got, want []*llm.Message
	for _, e := range imp.Entries {
		if e.Message != nil {
			got = append(got, e.Message)
		}
	}
	for _, e := range stored(t, g.Dir, "main") {
		if e.Message != nil {
			want = append(want, e.Message)
		}
	}
	short := func(ms []*llm.Message) string { // messages contain cached encodings
		b, err := json.Marshal(ms)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if diff := cmp.Diff(short(want), short(got)); diff != "" || len(got) != 7 {
		t.Errorf("%d messages: %s", len(got), diff)
	}
	if got, want := session.Compile(imp.Entries), len(got); len(got) != want {
		t.Errorf("%d messages for a model, want %d", len(got), want)
	}
}

// stored reads the transcript of a session from the database of a stopped
// engine.
func stored(t *testing.T, dir, name string) (entries []session.Entry) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	key, keyErr := chela.ParseSessionKey(name, chela.DefaultAgent)
	err = db.View(t.Context(), func(r store.Reader) error {
		m, err := r.Sessions().Get(key)
		if err != nil {
			return err
		}
		entries, err = r.Sessions().Entries(m.ID, 0, 0)
		return err
	})
	if err := errors.Join(keyErr, err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return entries
}
