package methodtest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/internal/test/power"
	"github.com/chela-ai/chela/wire"
)

// writer is a tool with a side effect.
type writer struct{ run func() }

func (writer) Spec() tool.Spec {
	return tool.Spec{Name: "edit", Description: "edit", Effect: tool.Writes, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (w writer) Run(context.Context, tool.Call) (tool.Result, error) {
	w.run()
	return tool.Text("edited"), nil
}

// TestDurable calls methods that write rows. What they answered is on disk: their last
// commit is synced, or their first one if they also start work.
func TestDurable(t *testing.T) {
	t.Parallel()
	const create, fill = `sessions.create {"key":"one"}`, `sessions.import {"key":"long","jsonl":"LOG"}`
	for _, c := range []struct {
		call   string // method and parameters
		before string // such a call
		work   bool   // the call starts or stops work
	}{
		{call: create},
		{call: `sessions.patch {"key":"one","label":"x"}`, before: create},
		{call: `sessions.patchMany {"targets":[{"key":"one"}],"patch":{"label":"x"}}`, before: create},
		{call: `sessions.reset {"key":"one"}`, before: create},
		{call: `sessions.delete {"key":"one"}`, before: create},
		{call: fill},
		{call: `sessions.compact {"key":"long"}`, before: fill},
		{call: `chat.inject {"sessionKey":"one","message":"note"}`, before: create},
		{call: `chat.send {"sessionKey":"one","message":"hi","idempotencyKey":"m1"}`, work: true},
		{call: `chat.send {"sessionKey":"one","message":"/think high","idempotencyKey":"m1"}`, before: create},
		{call: `chat.abort {"sessionKey":"one"}`,
			before: `chat.send {"sessionKey":"one","message":"hang","idempotencyKey":"m1"}`, work: true},
		{call: `system-event {"text":"rain"}`},
		// the service drops the wake, because there is no interval
		{call: `wake {"mode":"next-heartbeat","text":"rain"}`, work: true},
		{call: `set-heartbeats {"enabled":false}`},
		{call: `wake {"mode":"now","text":"rain"}`, work: true},
		{call: `tools.invoke {"name":"edit"}`, work: true},
		{call: `exec.approval.request {"id":"a","command":"ls","twoPhase":true}`},
		{call: `exec.approval.resolve {"id":"a","decision":"deny"}`,
			before: `exec.approval.request {"id":"a","command":"ls","twoPhase":true}`},
		{call: `exec.approvals.set {"file":{"version":1}}`},
		{call: `device.pair.setupCode {"publicUrl":"wss://example.org"}`},
		{call: `device.pair.reject {"requestId":"REQUEST"}`},
		{call: `device.pair.approve {"requestId":"REQUEST"}`},
		{call: `device.pair.rename {"deviceId":"phone","label":"x"}`, before: `device.pair.approve {"requestId":"REQUEST"}`},
		{call: `device.pair.remove {"deviceId":"phone"}`, before: `device.pair.approve {"requestId":"REQUEST"}`},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			disk := power.New(t)
			st := power.Record(t, disk, nil)
			synced := func(since int, first bool) { // the first or the last commit
				t.Helper()
				all := st.Commits()[since:]
				switch {
				case len(all) == 0:
					t.Error("nothing was written")
				case first && all[0].Sync != store.Synced:
					t.Errorf("began with the %s", all[0])
				case !first && all[len(all)-1].Sync != store.Synced:
					t.Errorf("the last is the %s", all[len(all)-1])
				}
			}
			hangs := make(chan struct{})
			model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				if r.Messages[len(r.Messages)-1].PlainText() != "hang" {
					return llmtest.Say("hello")
				}
				close(hangs)
				return llmtest.Step{Delay: time.Hour}
			})
			h := methodtest.On(t, st, disk.Path(), model, writer{func() { synced(0, false) }})
			request := ""
			if strings.Contains(c.call+c.before, "REQUEST") {
				h.Put(func(tx store.Tx) error {
					id := pairing.Identity{ID: "phone", Key: "key", Role: wire.RoleOperator, Scopes: []chela.Scope{chela.ScopeRead}}
					a, err := pairing.Admit(tx.Devices(), id, pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}}, time.Now())
					request = a.Requested.ID
					return err
				})
			}
			log := `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05Z","cwd":"/"}` + "\n"
			for n := range 40 {
				role := []string{"user", "assistant"}[n%2]
				log += `{"type":"message","message":{"role":"` + role + `","content":"` +
					strings.Repeat("word ", 500) + `"}}` + "\n"
			}
			quoted, _ := json.Marshal(log)
			do := func(call string) {
				t.Helper()
				method, params, _ := strings.Cut(call, " ")
				params = strings.NewReplacer("REQUEST", request, `"LOG"`, string(quoted)).Replace(params)
				if method == wire.MethodApprovalAsk { // its call returns when it is decided
					go func() { _ = h.Call(context.Background(), method, json.RawMessage(params), nil) }()
					for e := range h.Events() {
						if e.Name == wire.EventApprovalRequested {
							return
						}
					}
				}
				if err := h.Call(t.Context(), method, json.RawMessage(params), nil); err != nil {
					t.Fatalf("%s: %v", method, err)
				}
			}
			if c.before != "" {
				do(c.before)
			}
			if strings.Contains(c.before, "hang") {
				<-hangs
			}
			from := len(st.Commits())
			do(c.call)
			synced(from, c.work)
		})
	}
}
