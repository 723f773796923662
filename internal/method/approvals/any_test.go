package approvals_test

import (
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestAnyKind(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Call("c1", "act", `{}`), llmtest.Say("Done.")), careful{})
	if _, err := h.Send(t.Context(), "main", "act"); err != nil {
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
	found := func() wire.ApprovalSnapshot {
		t.Helper()
		return methodtest.Do[wire.ApprovalFound](t, h, wire.MethodAnyApprovalGet, wire.ApprovalID{ID: asked.ID}).Approval
	}
	if a := found(); a.Status != wire.ApprovalPending || a.Shown.Command != "act now" || a.Session == "" || a.Resolver != nil {
		t.Errorf("while it waits: %+v", a)
	}
	for _, method := range []string{wire.MethodPluginApprovals, wire.MethodSystemApprovals} {
		if got := methodtest.Do[[]wire.Approval](t, h, method, nil); got == nil || len(got) != 0 {
			t.Errorf("%s: %+v, want an empty list", method, got)
		}
	}
	for _, tt := range []struct {
		name string
		in   wire.AnyApprovalResolve
		code string
	}{
		{"another kind", wire.AnyApprovalResolve{ID: asked.ID, Kind: "plugin", Decision: wire.Deny}, wire.ApprovalNotFound},
		{"another request", wire.AnyApprovalResolve{ID: "none", Kind: wire.ApprovalExec, Decision: wire.Deny}, wire.ApprovalNotFound},
		{"no decision", wire.AnyApprovalResolve{ID: asked.ID, Kind: wire.ApprovalExec, Decision: "perhaps"}, wire.InvalidRequest},
	} {
		err := h.Call(t.Context(), wire.MethodAnyApprovalResolve, tt.in, nil)
		if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != tt.code {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.code)
		}
	}
	in := wire.AnyApprovalResolve{ID: asked.ID, Kind: wire.ApprovalExec, Decision: wire.Deny}
	for _, first := range []bool{true, false} {
		got := methodtest.Do[wire.ApprovalSettled](t, h, wire.MethodAnyApprovalResolve, in)
		if got.Applied != first || got.Approval.Status != wire.ApprovalDenied || got.Approval.Decision != wire.Deny || got.Approval.Resolver == nil {
			t.Errorf("decided, for the first time %v: %+v", first, got)
		}
		in.Decision = wire.AllowOnce // too late
	}
	if a := found(); a.Status != wire.ApprovalDenied || a.Resolved == 0 || a.Source.Session != "agent:main:main" {
		t.Errorf("after it: %+v", a)
	}
}
