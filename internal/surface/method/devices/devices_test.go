package devices_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// ask requests pairing of a remote device with the shared secret.
func ask(t *testing.T, h *methodtest.Fixture, id string, scopes ...chela.Scope) pairing.Admission {
	t.Helper()
	in := pairing.Identity{
		ID: id, Key: "key-" + id, Role: wire.RoleOperator, Scopes: scopes,
		Client: wire.ClientInfo{ID: "openclaw-tui", Mode: wire.ModeUI, Platform: "linux"},
	}
	var a pairing.Admission
	err := h.Store.Update(t.Context(), store.Ordered, func(tx store.Tx) (err error) {
		a, err = pairing.Admit(tx.Devices(), in, pairing.Proof{Authority: []chela.Scope{chela.ScopeAdmin}}, time.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// approved pairs a device and returns its access.
func approved(t *testing.T, h *methodtest.Fixture, id string, scopes ...chela.Scope) pairing.Access {
	t.Helper()
	a := ask(t, h, id, scopes...)
	methodtest.Do[wire.DeviceApproved](t, h, wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: a.Requested.ID})
	a = ask(t, h, id, scopes...)
	if a.Refusal != nil {
		t.Fatalf("an approved device: %v", a.Refusal)
	}
	return a.Access
}

// connect connects as a paired device.
func connect(t *testing.T, h *methodtest.Fixture, p pairing.Access) *client.Client {
	t.Helper()
	pipe := gateway.NewPipe()
	go h.Server.Serve(pipe, h.Server.Upgrade(func(context.Context, access.Attempt) (access.Grant, error) {
		return access.Grant{Principal: p.Principal(), Method: "device-token"}, nil
	}))
	c, err := client.Dial(t.Context(), client.Options{Dial: pipe.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func list(t *testing.T, h *methodtest.Fixture) wire.DevicePairs {
	t.Helper()
	return methodtest.Do[wire.DevicePairs](t, h, wire.MethodDevicePairList, nil)
}

// event returns the next event with the name.
func event[T any](t *testing.T, h *methodtest.Fixture, name string) T {
	t.Helper()
	var v T
	for e := range h.Events() {
		if e.Name == name {
			if err := e.Decode(&v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("the events ended without %s", name)
	return v
}

func TestApprove(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	if got := list(t, h); got.Pending == nil || got.Paired == nil || len(got.Pending)+len(got.Paired) != 0 {
		t.Errorf("no requests: %+v, want empty lists", got)
	}
	a := ask(t, h, "d1", chela.ScopeRead)
	got := list(t, h)
	if len(got.Pending) != 1 || got.Pending[0].ID != a.Requested.ID ||
		!slices.Equal(got.Pending[0].Scopes, []string{"operator.read"}) {
		t.Fatalf("pending: %+v", got.Pending)
	}
	ok := methodtest.Do[wire.DeviceApproved](t, h, wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: a.Requested.ID})
	if ok.ID != a.Requested.ID || ok.Device.ID != "d1" || ok.Device.ApprovedVia != pairing.ViaOwner ||
		len(ok.Device.Tokens) != 1 {
		t.Errorf("approved: %+v", ok)
	}
	if e := event[wire.PairResolved](t, h, wire.EventPairResolved); e.ID != ok.ID || e.Device != "d1" ||
		e.Decision != wire.PairApproved {
		t.Errorf("announced: %+v", e)
	}
	err := h.Call(t.Context(), wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: ok.ID}, nil)
	if we, is := errors.AsType[*wire.Error](err); !is || we.Code != wire.InvalidRequest ||
		we.Message != "unknown requestId" || we.Detail() != wire.DetailNotFound {
		t.Errorf("approved twice: %v", err)
	}

	wider := ask(t, h, "d1", chela.ScopeAdmin)
	r := methodtest.Do[wire.DeviceRejected](t, h, wire.MethodDevicePairReject,
		wire.DeviceRequestID{ID: wider.Requested.ID})
	if r.Device != "d1" {
		t.Errorf("rejected: %+v", r)
	}
	if e := event[wire.PairResolved](t, h, wire.EventPairResolved); e.Decision != wire.PairRejected {
		t.Errorf("announced: %+v", e)
	}
	if got := list(t, h); len(got.Pending) != 0 || len(got.Paired) != 1 ||
		!slices.Equal(got.Paired[0].Scopes, []string{"operator.read"}) {
		t.Errorf("a rejected upgrade: %+v", got)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		method string
		params any
	}{
		{"removed", wire.MethodDevicePairRemove, wire.DeviceID{ID: "d1"}},
		{"revoked", wire.MethodDeviceTokenRevoke, wire.DeviceRole{ID: "d1", Role: wire.RoleOperator}},
		{"rotated", wire.MethodDeviceTokenRotate, wire.DeviceRotate{ID: "d1", Role: wire.RoleOperator}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := methodtest.New(t, llmtest.NewScript())
			pass := approved(t, h, "d1", chela.ScopeRead, chela.ScopeWrite)
			dev := connect(t, h, pass)
			if got := list(t, h).Paired[0]; !got.Connected || got.LastSeenAt == 0 {
				t.Errorf("a connected device: %+v", got)
			}
			put(t, h, "q1", pass.Principal())
			put(t, h, "q2", chela.Owner("socket"))

			var answer map[string]any
			if err := h.Call(t.Context(), c.method, c.params, &answer); err != nil {
				t.Fatal(err)
			}
			if token := answer["token"]; token != nil {
				t.Errorf("another device's token was returned: %v", token)
			}
			if err := dev.Call(t.Context(), wire.MethodSessionsList, wire.SessionsList{}, nil); err == nil {
				t.Error("its next frame was executed")
			}
			if c.name == "rotated" {
				if answer["tokenDelivery"] != wire.TokenWithheld {
					t.Errorf("answer: %v", answer)
				}
				if a := ask(t, h, "d1", chela.ScopeRead); a.Refusal != nil || a.Access.Token == pass.Token {
					t.Errorf("with the shared secret: %+v", a)
				}
				return
			}
			if s := state(t, h, "q1"); s != queue.Cancelled {
				t.Errorf("its message is %s, want %s", s, queue.Cancelled)
			}
			if s := state(t, h, "q2"); s == queue.Cancelled {
				t.Error("another device's message was removed")
			}
			err := h.Call(t.Context(), wire.MethodDevicePairRename, wire.DeviceRename{ID: "d1", Label: "old phone"}, nil)
			switch got := list(t, h).Paired; {
			case c.name == "removed":
				if len(got) != 0 || err == nil || !strings.HasSuffix(err.Error(), ": unknown deviceId") {
					t.Errorf("paired: %+v; renamed: %v", got, err)
				}
			case err != nil || len(got) != 1 || got[0].DisplayName != "old phone" || len(got[0].Roles) != 0 ||
				got[0].Tokens[0].RevokedAt == 0:
				t.Errorf("paired: %+v; renamed: %v", got, err)
			}
			if a := ask(t, h, "d1", chela.ScopeRead); a.Refusal == nil || !a.Requested.Repair {
				t.Errorf("it is paired again: %+v", a)
			}
		})
	}
}

// put queues a message of a session.
func put(t *testing.T, h *methodtest.Fixture, id string, who chela.Principal) {
	t.Helper()
	err := h.Store.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		_, err := tx.Queue().Put(queue.Item{
			ID:        id,
			Key:       id,
			Session:   "agent:main:quiet",
			Kind:      queue.Message,
			Principal: who,
			State:     queue.Waiting,
			Created:   time.Now(),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func state(t *testing.T, h *methodtest.Fixture, id string) queue.State {
	t.Helper()
	var s queue.State
	err := h.Store.View(t.Context(), func(r store.Reader) error {
		it, err := r.Queue().Get(id)
		s = it.State
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSelf(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	pass := approved(t, h, "d1", chela.ScopePairing, chela.ScopeRead)
	approved(t, h, "d2", chela.ScopeRead)
	waiting := ask(t, h, "d3", chela.ScopeWrite)
	dev := connect(t, h, pass)

	var seen wire.DevicePairs
	if err := dev.Call(t.Context(), wire.MethodDevicePairList, nil, &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Paired) != 1 || seen.Paired[0].ID != "d1" || len(seen.Pending) != 0 {
		t.Errorf("a device sees others: %+v", seen)
	}
	for method, params := range map[string]any{
		wire.MethodDevicePairApprove: wire.DeviceRequestID{ID: waiting.Requested.ID},
		wire.MethodDevicePairRemove:  wire.DeviceID{ID: "d2"},
		wire.MethodDeviceTokenRotate: wire.DeviceRotate{ID: "d2", Role: wire.RoleOperator},
		wire.MethodDeviceTokenRevoke: wire.DeviceRole{ID: "d2", Role: wire.RoleOperator},
	} {
		err := dev.Call(t.Context(), method, params, nil)
		if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.Forbidden {
			t.Errorf("%s for another device: %v", method, err)
		}
	}
	unknown := []string{"operator.read", "operator.nonsense"}
	err := dev.Call(t.Context(), wire.MethodDeviceTokenRotate,
		wire.DeviceRotate{ID: "d1", Role: wire.RoleOperator, Scopes: &unknown}, nil)
	if err == nil || !strings.Contains(err.Error(), "/scopes") {
		t.Errorf("unknown scopes: %v", err)
	}
	var r wire.DeviceRotated
	if err := dev.Call(t.Context(), wire.MethodDeviceTokenRotate, wire.DeviceRotate{ID: "d1", Role: wire.RoleOperator},
		&r); err != nil {
		t.Fatalf("its own token: %v", err)
	}
	if r.Token == "" || r.Token == pass.Token || r.Delivery != wire.TokenReturned {
		t.Errorf("rotated: %+v", r)
	}
	if err := dev.Call(t.Context(), wire.MethodDevicePairList, nil, &seen); err == nil {
		t.Error("the connection with the old token is still open")
	}
}
