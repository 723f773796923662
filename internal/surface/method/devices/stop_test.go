package devices_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// TestRunsStop revokes a device's credential during one of its runs and one of
// another client.
func TestRunsStop(t *testing.T) {
	for _, how := range []string{wire.MethodDevicePairRemove, wire.MethodDeviceTokenRevoke} {
		t.Run("GW-19 "+how+" ends its runs and no others", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := llmtest.Step{Delay: time.Minute, Parts: []llm.Part{llm.Text("done")}}
				h := methodtest.New(t, llmtest.NewScript(slow, slow))
				theirs, err := connect(t, h, approved(t, h, "d1", chela.ScopeWrite)).Send(t.Context(), "one", "hi")
				if err != nil {
					t.Fatal(err)
				}
				ours := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
					wire.ChatSend{SessionKey: "two", Message: "hi", IdempotencyKey: "m2"}).RunID
				synctest.Wait()
				if how == wire.MethodDevicePairRemove {
					methodtest.Do[wire.DeviceID](t, h, how, wire.DeviceID{ID: "d1"})
				} else {
					methodtest.Do[wire.DeviceRevoked](t, h, how, wire.DeviceRole{ID: "d1", Role: wire.RoleOperator})
				}
				for run, want := range map[string]string{theirs: "rpc", ours: "stop"} {
					w := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 120_000})
					if w.Stop != want {
						t.Errorf("run %s ended %s %q %s, want %q", run, w.Status, w.Stop, w.Error, want)
					}
				}
			})
		})
	}
}
