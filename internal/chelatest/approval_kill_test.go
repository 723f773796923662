//go:build unix

package chelatest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestApprovalKilled kills the engine at each step of a call that a person is
// asked about, and goes on with the next one: it is asked about once, a
// decision that was made stands, and the command has run exactly once or is
// reported as unknown.
func TestApprovalKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	for _, tt := range []struct {
		step    string // before which it dies; "": while it waits
		decided bool   // the decision was made when it died
		begun   bool   // the command may have run
	}{
		{step: ""}, {step: "model.end:1"}, {step: "approval.ask:1"}, {step: "run.suspend:1"}, {step: "approval.decide:1"},
		{step: "run.again:1", decided: true}, {step: "run.carry:2", decided: true}, {step: "tool.start:1", decided: true},
		{step: "tool.run:1", decided: true, begun: true}, {step: "tool.end:1", decided: true, begun: true},
		{step: "run.end:1", decided: true, begun: true},
	} {
		t.Run("killed before "+tt.step, func(t *testing.T) {
			t.Parallel()
			s := newSufferer(t)
			cmd, c := mortal(t, s.dir, s.conf, tt.step)
			// What is lost with the process is offered again below.
			_ = c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "count", IdempotencyKey: "count"}, nil)
			if q, ok := questioned(c); ok {
				if tt.step == "" {
					cmd.Process.Kill()
				} else {
					_ = c.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce}, nil)
				}
			}
			done := make(chan struct{})
			go func() { cmd.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Error("there is no such step")
				cmd.Process.Kill()
				<-done
			}
			s.finish(t, tt.decided, tt.begun)
		})
	}
}

// sufferer is a state directory whose engines are killed, and a model that has
// one command run.
type sufferer struct {
	dir  string
	srv  *llmtest.Server
	conf Config
}

func newSufferer(t *testing.T) *sufferer {
	t.Helper()
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.Received) llmtest.Step {
		if i := bytes.LastIndex(r.Body, []byte(`"role":"tool"`)); i >= 0 {
			return llmtest.Say("became: " + string(r.Body[i:]))
		}
		return llmtest.Call("call_1", "exec", `{"command":"echo 1 >> count.txt"}`)
	})
	url, _ := srv.Listen()
	s := &sufferer{dir: t.TempDir(), srv: srv, conf: speaks(llmtest.OpenAI, url)}
	s.conf["tools"] = json.RawMessage(`{"exec": {"mode": "ask"}}`)
	return s
}

// questioned waits until the client is asked; false: the engine died before.
func questioned(c *Client) (wire.Approval, bool) {
	limit := time.After(20 * time.Second)
	for {
		select {
		case ev, ok := <-c.Events():
			var a wire.Approval
			switch {
			case !ok:
				return a, false
			case ev.Name == wire.EventApprovalRequested && ev.Decode(&a) == nil:
				return a, true
			}
		case <-limit:
			return wire.Approval{}, false
		}
	}
}

// finish lets the next engine come to an end, and judges by what happened.
func (s *sufferer) finish(t *testing.T, decided, begun bool) {
	t.Helper()
	_, c := mortal(t, s.dir, nil, "")
	c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "count", IdempotencyKey: "count"}, nil)
	var waited wire.Waited
	questions := 0
	for end := time.Now().Add(20 * time.Second); ; {
		var list []wire.Approval
		c.must(wire.MethodApprovalList, nil, &list)
		for _, q := range list {
			questions++
			c.decide(q.ID, wire.AllowOnce)
		}
		c.must(wire.MethodAgentWait, wire.AgentWait{RunID: "count", TimeoutMs: 100}, &waited)
		if waited.Status != wire.StatusTimeout {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
	}
	if waited.Status != wire.StatusOK {
		t.Errorf("it ended %s: %s", waited.Status, waited.Error)
	}
	if decided && questions > 0 {
		t.Errorf("what was decided was asked again, %d times", questions)
	}
	if questions > 1 {
		t.Errorf("it was asked %d times", questions)
	}
	var past wire.ApprovalHistory
	c.must(wire.MethodApprovalHistory, wire.ApprovalHistoryGet{}, &past)
	if len(past.Items) != 1 || past.Items[0].Decision != wire.AllowOnce {
		t.Errorf("decided: %+v, want one that is allowed once", past.Items)
	}
	b, _ := os.ReadFile(filepath.Join(s.dir, "workspace", "count.txt"))
	var h wire.History
	c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}, &h)
	said := ""
	for _, m := range h.Messages {
		said += m.Text() + "\n"
	}
	switch n := strings.Count(string(b), "1"); {
	case n > 1, n == 0 && !begun:
		t.Errorf("it ran %d times\n%s", n, said)
	case begun && !strings.Contains(said, "unknown") && n != 1:
		t.Errorf("it ran %d times, and nobody is told\n%s", n, said)
	}
}
