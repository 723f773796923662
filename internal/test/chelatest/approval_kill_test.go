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

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// TestApprovalKilled kills the engine at each step of a call that needs
// approval and starts the next engine: the approval is requested once, a
// decision is kept, and the command ran exactly once or is reported as unknown.
func TestApprovalKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	t.Parallel()
	for _, tt := range []struct {
		step    string // step before which the engine dies; "": while the approval is pending
		decided bool   // the decision was made before the engine died
		begun   bool   // the command may have run
	}{
		{step: ""}, {step: "model.end:1"}, {step: "approval.ask:1"}, {step: "run.suspend:1"}, {step: "approval.decide:1"},
		{step: "run.resume:1", decided: true}, {step: "run.execute:2", decided: true}, {step: "tool.start:1", decided: true},
		{step: "tool.run:1", decided: true, begun: true}, {step: "tool.end:1", decided: true, begun: true},
		{step: "run.end:1", decided: true, begun: true},
	} {
		t.Run("killed before "+tt.step, func(t *testing.T) {
			t.Parallel()
			s := newKillTarget(t)
			cmd, c := startSubprocess(t, s.dir, s.conf, tt.step)
			// Events that are lost with the process are repeated below.
			_ = c.Call(t.Context(), wire.MethodChatSend,
				wire.ChatSend{SessionKey: "main", Message: "count", IdempotencyKey: "count"}, nil)
			if q, ok := questioned(c); ok {
				if tt.step == "" {
					cmd.Process.Kill()
				} else {
					_ = c.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: q.ID, Decision: wire.AllowOnce}, nil)
				}
			}
			done := make(chan struct{})
			go func() { cmd.Wait(); close(done) }()
			waittest.For(t, "the step", done)
			s.finish(t, tt.decided, tt.begun)
		})
	}
}

// killTarget is a state directory whose engines are killed, with a model that runs
// one command.
type killTarget struct {
	dir  string
	srv  *llmtest.Server
	conf Config
}

func newKillTarget(t *testing.T) *killTarget {
	t.Helper()
	srv := llmtest.ServerFunc(t, llmtest.OpenAI, func(_ int, r llmtest.ReceivedRequest) llmtest.Step {
		if i := bytes.LastIndex(r.Body, []byte(`"role":"tool"`)); i >= 0 {
			return llmtest.Say("became: " + string(r.Body[i:]))
		}
		return llmtest.Call("call_1", "exec", `{"command":"echo 1 >> count.txt"}`)
	})
	url, _ := srv.Listen()
	s := &killTarget{dir: t.TempDir(), srv: srv, conf: modelConfig(llmtest.OpenAI, url)}
	s.conf["tools"] = json.RawMessage(`{"exec": {"mode": "ask", "backgroundMs": 600000}}`)
	return s
}

// questioned waits until the client gets an approval request; false if the
// engine died before.
func questioned(c *Client) (wire.Approval, bool) {
	limit := time.After(waittest.Limit)
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

// finish lets the next engine finish the run and checks what happened.
func (s *killTarget) finish(t *testing.T, decided, begun bool) {
	t.Helper()
	_, c := startSubprocess(t, s.dir, nil, "")
	c.must(wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "count", IdempotencyKey: "count"}, nil)
	var waited wire.AgentWaited
	questions := 0
	waittest.Until(t, "the end of the run", func() bool {
		var list []wire.Approval
		c.must(wire.MethodApprovalList, nil, &list)
		for _, q := range list {
			questions++
			c.decide(q.ID, wire.AllowOnce)
		}
		c.must(wire.MethodAgentWait, wire.AgentWait{RunID: "count", TimeoutMs: 100}, &waited)
		return waited.Status != wire.StatusTimeout
	})
	if waited.Status != wire.StatusOK {
		t.Errorf("the run ended %s: %s", waited.Status, waited.Error)
	}
	if decided && questions > 0 {
		t.Errorf("a decided approval was requested again, %d times", questions)
	}
	if questions > 1 {
		t.Errorf("the approval was requested %d times", questions)
	}
	var past wire.ApprovalHistory
	c.must(wire.MethodApprovalHistory, wire.ApprovalHistoryGet{}, &past)
	if len(past.Items) != 1 || past.Items[0].Decision != wire.AllowOnce {
		t.Errorf("decided: %+v, want one approval that is allowed once", past.Items)
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
		t.Errorf("the command ran %d times\n%s", n, said)
	case begun && !strings.Contains(said, "unknown") && n != 1:
		t.Errorf("the command ran %d times, but the result does not say so\n%s", n, said)
	}
}
