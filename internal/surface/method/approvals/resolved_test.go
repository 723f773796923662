package approvals_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// TestResolvedBefore calls methods about approvals that are no longer pending.
func TestResolvedBefore(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	now := time.Now()
	h.Put(func(tx store.Tx) error {
		for _, r := range []approval.Request{
			{ID: "denied", Decision: approval.Deny, By: "owner", Via: "device:0123456789abcdef", Decided: now},
			{ID: "gone", Decision: approval.Withdrawn, Decided: now},
			{ID: "late", Expires: now.Add(-time.Second)},
			{ID: "open", Expires: now.Add(time.Hour)},
		} {
			r.Session, r.Tool, r.Text, r.Created = "agent:main:main", "exec", "ls", now
			if err := tx.Approvals().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	if got := methodtest.Do[[]wire.Approval](t, h, wire.MethodApprovalList, nil); len(got) != 2 {
		t.Errorf("pending: %+v", got)
	}
	resolve := func(id, decision string) any { return wire.ApprovalResolve{ID: id, Decision: decision} }
	resolveAny := func(id string) any {
		return wire.AnyApprovalResolve{ID: id, Kind: wire.ApprovalExec, Decision: wire.AllowOnce}
	}
	for _, tt := range []struct {
		method        string
		in            any
		code, message string
		details       []string
	}{
		{wire.MethodApprovalGet, wire.ApprovalID{ID: "denied"}, wire.ApprovalNotFound, "no pending approval denied", nil},
		{wire.MethodApprovalGet, wire.ApprovalID{ID: "late"}, wire.ApprovalNotFound, "no pending approval late", nil},
		{wire.MethodApprovalGet, wire.ApprovalID{ID: "none"}, wire.ApprovalNotFound, "no pending approval none", nil},
		{wire.MethodAnyApprovalGet, wire.ApprovalID{ID: "none"}, wire.ApprovalNotFound, "approval not found: none", nil},
		{wire.MethodAnyApprovalResolve, resolveAny("none"), wire.ApprovalNotFound, "approval not found: none", nil},
		{wire.MethodApprovalResolve, resolve("none", wire.Deny), wire.ApprovalNotFound, "no pending approval none", nil},
		{wire.MethodApprovalResolve, resolve("denied", wire.AllowOnce), wire.InvalidRequest,
			"owner (device 0123456789ab) decided deny",
			[]string{`"APPROVAL_ALREADY_RESOLVED"`, `"decision":"deny"`, `"resolvedBy":"owner (device 0123456789ab)"`}},
		{wire.MethodApprovalResolve, resolve("gone", wire.AllowOnce), wire.InvalidRequest, "withdrawn",
			[]string{`"APPROVAL_NOT_FOUND"`}},
		{wire.MethodApprovalResolve, resolve("open", "yes"), wire.InvalidRequest,
			"at /decision: must be one of allow-once, allow-always, deny", nil},
		{wire.MethodApprovalResolve, resolve("open", "expired"), wire.InvalidRequest, "at /decision", nil},
	} {
		err := h.Call(t.Context(), tt.method, tt.in, nil)
		we, ok := errors.AsType[*wire.Error](err)
		if !ok || we.Code != tt.code || !strings.Contains(we.Message, tt.message) {
			t.Errorf("%s %+v: %v, want %s, %s", tt.method, tt.in, err, tt.code, tt.message)
			continue
		}
		for _, d := range tt.details {
			if !strings.Contains(string(we.Details), d) {
				t.Errorf("%s %+v: details %s, want %s", tt.method, tt.in, we.Details, d)
			}
		}
	}
	if got := methodtest.Do[wire.ApprovalResolution](t, h, wire.MethodAnyApprovalResolve,
		resolveAny("late")); got.Applied || got.Approval.Decision == wire.AllowOnce {
		t.Errorf("too late: %+v", got)
	}
	if got := methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, resolve("open", wire.AllowSession)); !got.OK {
		t.Errorf("resolved: %+v", got)
	}
	if got := methodtest.Do[[]wire.Approval](t, h, wire.MethodApprovalList, nil); got == nil || len(got) != 0 {
		t.Errorf("pending afterwards: %+v, want an empty list", got)
	}
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	h.Put(func(tx store.Tx) error {
		for i := range 60 {
			r := approval.Request{
				ID:       fmt.Sprintf("a%02d", i),
				Session:  "agent:main:main",
				Tool:     "exec",
				Text:     "ls",
				Created:  time.Now(),
				Decision: approval.Deny,
				Decided:  time.Now(),
			}
			if err := tx.Approvals().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]struct {
		items int
		next  string
	}{0: {50, "a10"}, 1: {1, "a59"}, 59: {59, "a01"}, 60: {60, ""}, 100: {60, ""}} {
		got := methodtest.Do[wire.ApprovalHistory](t, h, wire.MethodApprovalHistory, wire.ApprovalHistoryGet{Limit: limit})
		if len(got.Items) != want.items || got.Next != want.next {
			t.Errorf("limit %d: %d items, next %q; want %d, %q", limit, len(got.Items), got.Next, want.items, want.next)
		}
	}
}

func TestAskIDs(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	most := strings.Repeat("x", 128)
	for id, want := range map[string]string{
		" mine ":   "mine",
		most:       most,
		most + "x": "",
		"a\x7f":    "",
		"a\tb":     "",
		"a\u00e9":  "a\u00e9",
	} {
		var got wire.ApprovalDecided
		err := h.Call(t.Context(), wire.MethodApprovalAsk, wire.ApprovalAsk{ID: id, Command: "ls", TimeoutMs: 1}, &got)
		if (err == nil) != (want != "") || got.ID != want ||
			err != nil && !strings.Contains(err.Error(), "at /id: must be 1 to 128 bytes") {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
	go h.Call(t.Context(), wire.MethodApprovalAsk,
		wire.ApprovalAsk{ID: "where", Argv: []string{"ls", "", "-l"}, Host: "box"}, nil)
	for e := range h.Events() {
		if e.Name != wire.EventApprovalRequested {
			continue
		}
		var asked wire.Approval
		if err := e.Decode(&asked); err != nil {
			t.Fatal(err)
		}
		if asked.ID != "where" {
			continue
		}
		if asked.Request.SessionKey != "agent:main:main" || asked.Request.AgentID != "main" ||
			asked.Request.Command != "ls '' -l\non box" || asked.Request.Reason != "requested by a client" {
			t.Errorf("requested %+v", asked)
		}
		break
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: "where", Decision: wire.Deny})
}
