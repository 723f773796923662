//go:build unix

package chelatest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// TestExchangeKill kills the engine at each step of an exchange. The next engine goes
// on: the message is read once, the reply comes once, and so does each further turn.
func TestExchangeKill(t *testing.T) {
	inTime := []string{"ask the session work", "what is it?", `"reply":"forty-two"`, "told", "REPLY_SKIP", "turn=1/5",
		"has ended", "announced"}
	late := []string{"ask work, but do not wait long", "what is it, after a while?", `"status":"timeout"`, "told",
		"<reply>", "passed on", "has ended", "announced"}
	for _, c := range []struct {
		step string
		want []string // in the transcripts, each once
	}{
		{"run.begin:1", inTime}, // the target has not begun
		{"run.end:1", inTime},   // it has answered, but its run has not ended
		{"run.ended:1", inTime}, // the reply is stored, and the sender does not have it
		{"tool.end:1", inTime},  // the sender has it, but has not stored it
		{"run.end:2", inTime},   // the sender has answered
		{"run.begin:2", inTime}, // it has not begun the first turn
		{"run.end:3", inTime},   // it has answered there
		{"run.ended:3", inTime},
		{"run.begin:3", inTime},
		{"run.end:4", inTime},
		{"run.ended:4", inTime},
		{"tool.end:1", late}, // the sender does not wait any more, but has not stored that
		{"run.end:1", late},
		{"run.end:2", late},   // the reply is there, but the run has not ended
		{"run.ended:2", late}, // the sender is to be told
		{"run.end:3", late},
	} {
		t.Run("the reply comes once after a kill at "+c.step+" of: "+c.want[0], func(t *testing.T) {
			t.Parallel()
			talk := &exchangeModel{told: make(chan struct{})}
			srv := llmtest.ServerFunc(t, llmtest.OpenAI,
				func(_ int, r llmtest.ReceivedRequest) llmtest.Step { return talk.answer(r.Body) })
			url, _ := srv.Listen()
			dir := t.TempDir()
			conf := modelConfig(llmtest.OpenAI, url)
			maps.Copy(conf, Config{"tools": json.RawMessage(`{"sessions": {"visibility": "agent"}}`)})
			writeConfig(t, dir, conf)
			p := spawn(t, dir, "")
			t.Cleanup(func() { p.in.Close(); p.Wait() })
			cl, err := client.Dial(t.Context(), client.Options{Dial: dial(dir), Once: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cl.Close() })
			(&Client{Client: cl, t: t}).Ask("agent:main:work", "hello")
			p.arm(t, c.step)
			_, _ = cl.Send(t.Context(), "main", c.want[0]) // the answer may get lost
			if err := p.Wait(); err == nil {
				t.Fatal("the engine exited normally")
			}
			var st store.Store
			Start(t, Options{Dir: dir, Config: conf, Wrap: func(s store.Store) store.Store { st = s; return s }})
			var told map[string]int
			waittest.Until(t, "the end of the exchange", func() bool {
				told = texts(t, st, c.want, "agent:main:main", "agent:main:work")
				return told["announced"] > 0 && told[c.want[5]] > 0
			})
			for _, what := range c.want {
				if told[what] != 1 {
					t.Errorf("%q: %d times", what, told[what])
				}
			}
		})
	}
}

// exchangeModel is the model of both sessions.
type exchangeModel struct {
	once sync.Once
	told chan struct{} // closed when the sender knows that the reply is late
}

func (m *exchangeModel) answer(body []byte) llmtest.Step {
	var r struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &r); err != nil || len(r.Messages) == 0 {
		return llmtest.Status(400, "not a request")
	}
	last := r.Messages[len(r.Messages)-1]
	text := string(last.Content)
	switch {
	case last.Role == "tool":
		if strings.Contains(text, "timeout") {
			m.once.Do(func() { close(m.told) })
		}
		return llmtest.Say("told")
	case strings.Contains(text, "ask the session work"):
		return llmtest.Call("call_1", "sessions_send",
			`{"sessionKey": "agent:main:work", "message": "what is it?", "timeoutSeconds": 600}`)
	case strings.Contains(text, "ask work, but"):
		return llmtest.Call("call_1", "sessions_send",
			`{"sessionKey": "agent:main:work", "message": "what is it, after a while?", "timeoutSeconds": 0.2}`)
	case strings.Contains(text, "has ended"):
		return llmtest.Say("announced")
	case strings.Contains(text, "turn=1/5"):
		return llmtest.Say("REPLY_SKIP")
	case strings.Contains(text, "had no reply in time"):
		return llmtest.Say("passed on")
	case strings.Contains(text, "after a while"):
		select { // else a slow sender would have the reply in time
		case <-m.told:
		case <-time.After(waittest.Limit):
		}
		return llmtest.Step{Parts: []llm.Part{llm.Text("forty-two")}, Delay: 300 * time.Millisecond}
	}
	return llmtest.Say("forty-two")
}

// texts counts the messages of transcripts by what they contain: the first of the texts
// that a message has, the last one first.
func texts(t *testing.T, st store.Store, pieces []string, keys ...chela.SessionKey) map[string]int {
	t.Helper()
	n := map[string]int{}
	err := st.View(t.Context(), func(r store.Reader) error {
		for _, key := range keys {
			m, err := r.Sessions().Get(key)
			if err != nil {
				return err
			}
			entries, err := r.Sessions().Entries(m.ID, 0, 0)
			if err != nil {
				return err
			}
			for _, e := range entries {
				for _, piece := range slices.Backward(pieces) {
					if e.Kind == session.KindMessage && strings.Contains(e.Message.PlainText(), piece) {
						n[piece]++
						break
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
