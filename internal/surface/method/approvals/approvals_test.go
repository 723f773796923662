package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// careful is a tool that requires approval.
type careful struct{}

func (careful) Spec() tool.Spec {
	return tool.Spec{Name: "act", Effect: tool.Acts, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (careful) Plan(context.Context, tool.Call) (tool.Plan, error) {
	return tool.Plan{Effect: tool.Acts, Ask: true, Reason: "it acts", Text: "act now", Hash: "h"}, nil
}

func (careful) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("acted"), nil }

func TestApproval(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Call("c1", "act", `{}`), llmtest.Say("Done.")), careful{})
	if got := methodtest.Do[[]wire.Approval](t, h, wire.MethodApprovalList, nil); got == nil || len(got) != 0 {
		t.Errorf("nothing waits: %+v, want an empty list", got)
	}
	run, err := h.Send(t.Context(), "main", "act")
	if err != nil {
		t.Fatal(err)
	}
	var asked wire.Approval
	for e := range h.Events() {
		if e.Name == wire.EventApprovalRequested {
			if err := e.Decode(&asked); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if asked.Request.Command != "act now" || asked.Request.RunID != run || asked.Expires <= asked.Created {
		t.Errorf("requested %+v", asked)
	}
	list := methodtest.Do[[]wire.Approval](t, h, wire.MethodApprovalList, nil)
	if len(list) != 1 || list[0] != asked {
		t.Errorf("pending: %+v, want %+v", list, asked)
	}
	if got := methodtest.Do[wire.Approval](t, h, wire.MethodApprovalGet, wire.ApprovalID{ID: asked.ID}); got != asked {
		t.Errorf("get: %+v, want %+v", got, asked)
	}

	if err := h.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: asked.ID, Decision: "perhaps"},
		nil); err == nil {
		t.Error("perhaps was accepted as a decision")
	}
	err = h.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: "nope", Decision: wire.Deny}, nil)
	if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.ApprovalNotFound {
		t.Errorf("an unknown approval: %v", err)
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: asked.ID, Decision: wire.AllowOnce})
	if end := h.End(run); end.State != wire.StateFinal || end.Message.Text() != "Done." {
		t.Errorf("ended with %+v", end)
	}
	if err := h.Call(t.Context(), wire.MethodApprovalResolve, wire.ApprovalResolve{ID: asked.ID, Decision: wire.Deny},
		nil); err == nil {
		t.Error("an approval was resolved twice")
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.ExecPolicySnapshot](t, h, wire.MethodExecPolicy, nil)
	want := wire.ExecDefaults{Security: "allowlist", Ask: "on-miss", Fallback: "deny"}
	if got.Path == "" || got.Exists || got.Hash == "" || got.File.Version != 1 || got.Resolved != want {
		t.Errorf("without a document: %+v", got)
	}
}
