package devices_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// requestUpgrade requests scopes and returns the id of the request.
func requestUpgrade(t *testing.T, c *client.Client, scopes ...string) string {
	t.Helper()
	var q wire.DeviceRequestID
	if err := c.Call(t.Context(), wire.MethodDeviceUpgrade, wire.DeviceUpgrade{Scopes: scopes}, &q); err != nil {
		t.Fatal(err)
	}
	return q.ID
}

// answer is the result of a wait.
type answer struct {
	wire.DeviceUpgraded
	err error
}

// await waits for a request in the background.
func await(t *testing.T, c *client.Client, id string) <-chan answer {
	t.Helper()
	out := make(chan answer, 1)
	go func() {
		var a answer
		a.err = c.Call(context.WithoutCancel(t.Context()), wire.MethodDeviceUpgradeWait,
			wire.DeviceRequestID{ID: id}, &a.DeviceUpgraded)
		out <- a
	}()
	synctest.Wait()
	return out
}

// none checks that nobody was answered yet.
func none(t *testing.T, waits ...<-chan answer) {
	t.Helper()
	synctest.Wait()
	for _, w := range waits {
		select {
		case a := <-w:
			t.Fatalf("answered before the decision: %+v", a)
		default:
		}
	}
}

func approve(t *testing.T, h *methodtest.Fixture, id string) {
	t.Helper()
	methodtest.Do[wire.DeviceApproved](t, h, wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id})
}

// redeemed reports whether a token gives the device the scopes.
func redeemed(t *testing.T, h *methodtest.Fixture, device, token string, scopes ...chela.Scope) bool {
	t.Helper()
	var a pairing.Admission
	h.Put(func(tx store.Tx) (err error) {
		a, err = pairing.Redeem(tx.Devices(), pairing.Identity{ID: device, Role: wire.RoleOperator, Scopes: scopes},
			token, time.Now())
		return err
	})
	return a.Refusal == nil
}

// refusedAs checks the text and the code of an error.
func refusedAs(t *testing.T, what string, err error, code, text string) {
	t.Helper()
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != code || !strings.Contains(e.Message, text) {
		t.Errorf("%s: %v, want %s %q", what, err, code, text)
	}
}

func sends(t *testing.T, c *client.Client, key string) error {
	t.Helper()
	return c.Call(t.Context(), wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "hi", IdempotencyKey: key},
		nil)
}

func TestUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		pass := approved(t, h, "d1", chela.ScopeRead)
		dev := connect(t, h, pass)
		put(t, h, "queued", pass.Principal())

		id := requestUpgrade(t, dev, "operator.write", "operator.read")
		e := event[wire.PairRequest](t, h, wire.EventPairRequested)
		want := wire.PairRequest{
			ID:         id,
			Device:     "d1",
			PublicKey:  "key-d1",
			Platform:   "linux",
			ClientID:   "openclaw-tui",
			ClientMode: wire.ModeUI,
			Role:       wire.RoleOperator,
			Roles:      []string{wire.RoleOperator},
			Scopes:     []string{"operator.read", "operator.write"},
			Repair:     true,
			Time:       e.Time,
		}
		if d := cmp.Diff(want, e); d != "" {
			t.Errorf("announced (-want +got):\n%s", d)
		}
		if again := requestUpgrade(t, dev, "operator.read", "operator.write"); again != id {
			t.Errorf("the repeated request is %s, want %s", again, id)
		}
		one, two := await(t, dev, id), await(t, connect(t, h, pass), id)
		none(t, one, two)
		refusedAs(t, "before the decision", sends(t, dev, "m1"), wire.Forbidden, "missing scope: operator.write")
		if got := list(t, h); len(got.Pending) != 1 || !slices.Equal(got.Paired[0].Scopes, []string{"operator.read"}) {
			t.Errorf("before the decision: %+v", got)
		}

		approve(t, h, id)
		a, b := <-one, <-two
		if a.err != nil || a.Status != wire.PairApproved || a.ID != id || a.Token == "" ||
			!slices.Equal(a.Scopes, []string{"operator.read", "operator.write"}) {
			t.Fatalf("approved: %+v", a)
		}
		if d := cmp.Diff(a.DeviceUpgraded, b.DeviceUpgraded); d != "" {
			t.Errorf("the other waiting client:\n%s", d)
		}
		if a.Token == pass.Token || !redeemed(t, h, "d1", a.Token, chela.ScopeWrite) ||
			redeemed(t, h, "d1", a.Token, chela.ScopeApprovals) {
			t.Error("the token grants other scopes than approved")
		}
		refusedAs(t, "the connection of the request", sends(t, dev, "m2"), wire.Forbidden, "missing scope: operator.write")
		refusedAs(t, "a second time", (<-await(t, dev, id)).err, wire.InvalidRequest, "expired or not found")
		err := h.Store.View(t.Context(), func(r store.Reader) error {
			it, err := r.Queue().Get("queued")
			if err != nil {
				return err
			}
			who, err := pairing.Current(r.Devices(), it.Principal)
			if !slices.Equal(who.Scopes, []chela.Scope{chela.ScopeRead}) {
				t.Errorf("the earlier connection has %v", who.Scopes)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		pass.Scopes = []chela.Scope{chela.ScopeRead, chela.ScopeWrite}
		if err := sends(t, connect(t, h, pass), "m3"); err != nil {
			t.Errorf("reconnected: %v", err)
		}
	})
}

// TestUpgradeWithoutToken ends requests without a token.
func TestUpgradeWithoutToken(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, h *methodtest.Fixture, dev *client.Client, id string)
		want string
		in   time.Duration
	}{
		{"rejected", func(t *testing.T, h *methodtest.Fixture, _ *client.Client, id string) {
			methodtest.Do[wire.DeviceRejected](t, h, wire.MethodDevicePairReject, wire.DeviceRequestID{ID: id})
		}, wire.PairRejected, 0},
		{"nobody decides", func(*testing.T, *methodtest.Fixture, *client.Client, string) {},
			wire.PairExpired, pairing.Lifetime},
		{"it requests something else", func(t *testing.T, h *methodtest.Fixture, dev *client.Client, id string) {
			if other := requestUpgrade(t, dev, "operator.read", "operator.approvals"); other == id {
				t.Error("the same id for two requests")
			}
			for _, want := range []string{wire.PairApproved, wire.PairRejected} { // the first one is its pairing
				if e := event[wire.PairResolved](t, h, wire.EventPairResolved); e.Decision != want {
					t.Errorf("announced: %+v, want %s", e, want)
				}
			}
		}, wire.PairRejected, 0},
		{"it connects and requests something else", func(t *testing.T, h *methodtest.Fixture, _ *client.Client, _ string) {
			ask(t, h, "d1", chela.ScopeAdmin)
		}, wire.PairRejected, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := methodtest.New(t, llmtest.NewScript())
				dev := connect(t, h, approved(t, h, "d1", chela.ScopeRead))
				id := requestUpgrade(t, dev, "operator.admin")
				w := await(t, dev, id)
				none(t, w)
				at := time.Now()
				tt.end(t, h, dev, id)
				if a := <-w; a.err != nil || a.Status != tt.want || a.ID != id || a.Token != "" || a.Scopes != nil {
					t.Errorf("answered %+v, want %s", a, tt.want)
				}
				if d := time.Since(at); d != tt.in {
					t.Errorf("after %v, want %v", d, tt.in)
				}
				if got := list(t, h).Paired[0].Scopes; !slices.Equal(got, []string{"operator.read"}) {
					t.Errorf("it has %v", got)
				}
				if err := h.Call(t.Context(), wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id}, nil); err == nil {
					t.Error("it was approved after its end")
				}
			})
		})
	}
}

// TestRevokedUpgrade revokes the device's credential before and after its
// request is approved.
func TestRevokedUpgrade(t *testing.T) {
	for method, params := range map[string]any{
		wire.MethodDevicePairRemove:  wire.DeviceID{ID: "d1"},
		wire.MethodDeviceTokenRevoke: wire.DeviceRole{ID: "d1", Role: wire.RoleOperator},
		wire.MethodDeviceTokenRotate: wire.DeviceRotate{ID: "d1", Role: wire.RoleOperator},
	} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, approved before: %v", method, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := methodtest.New(t, llmtest.NewScript())
					pass := approved(t, h, "d1", chela.ScopeRead)
					dev := connect(t, h, pass)
					id := requestUpgrade(t, dev, "operator.write")
					var w <-chan answer
					if late {
						approve(t, h, id)
					} else {
						w = await(t, dev, id)
					}
					if err := h.Call(t.Context(), method, params, nil); err != nil {
						t.Fatal(err)
					}
					if w != nil {
						if a := <-w; a.Token != "" || a.Status == wire.PairApproved {
							t.Errorf("the waiting client got %+v", a)
						}
					}
					dev = connect(t, h, pass) // a connection made before the revocation
					if a := <-await(t, dev, id); a.Token != "" || a.Status == wire.PairApproved {
						t.Errorf("its token: %+v", a)
					}
					if method == wire.MethodDeviceTokenRotate {
						return // still paired
					}
					err := dev.Call(t.Context(), wire.MethodDeviceUpgrade, wire.DeviceUpgrade{Scopes: []string{"operator.read"}}, nil)
					refusedAs(t, "it requests again", err, wire.InvalidRequest, "only a paired device")
				})
			})
		}
	}
}

func TestUpgradeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		dev := connect(t, h, approved(t, h, "d1", chela.ScopeRead, chela.ScopePairing))
		other := connect(t, h, approved(t, h, "d2", chela.ScopeRead))
		r := []string{"operator.read", "operator.pairing"}
		for _, tt := range []struct {
			name   string
			by     *client.Client
			scopes []string
			text   string
		}{
			{"no scopes", dev, []string{}, "at /scopes: must be 1 to 8"},
			{"nine", dev, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, "at /scopes: must be 1 to 8"},
			{"twice", dev, append(slices.Clone(r), r...), "each scope once"},
			{"unknown", dev, append(slices.Clone(r), "operator.root"), "unknown operator scope"},
			{"without its current scopes", dev, []string{"operator.write"}, "must include the connection's current scopes"},
			{"no device", h.Client, []string{"operator.admin"}, "only a paired device"},
		} {
			err := tt.by.Call(t.Context(), wire.MethodDeviceUpgrade, wire.DeviceUpgrade{Scopes: tt.scopes}, nil)
			refusedAs(t, tt.name, err, wire.InvalidRequest, tt.text)
		}
		refusedAs(t, "without a device", (<-await(t, h.Client, "x")).err, wire.InvalidRequest, "only a paired device")
		if got := list(t, h).Pending; len(got) != 0 {
			t.Errorf("a refused request is pending: %+v", got)
		}

		id := requestUpgrade(t, dev, r...) // scopes it already has
		approveIt := func() error {
			return dev.Call(t.Context(), wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id}, nil)
		}
		refusedAs(t, "it approves its own request for scopes it has", approveIt(), wire.Forbidden,
			"a device cannot approve its own request")
		id = requestUpgrade(t, dev, append(r, "operator.write")...)
		refusedAs(t, "it approves its own request", approveIt(), wire.Forbidden, "missing scope: operator.write")
		refusedAs(t, "another device's request", (<-await(t, other, id)).err, wire.InvalidRequest, "expired or not found")
		approve(t, h, id)
		refusedAs(t, "another device's token", (<-await(t, other, id)).err, wire.InvalidRequest, "expired or not found")

		id = requestUpgrade(t, dev, r...)
		approve(t, h, id)
		time.Sleep(pairing.Lifetime)
		refusedAs(t, "an unknown request", (<-await(t, dev, id)).err, wire.InvalidRequest, "expired or not found")
	})
}

// TestUpgradeLimits reaches the limits.
func TestUpgradeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		dev := connect(t, h, approved(t, h, "d1", chela.ScopeRead))
		id := requestUpgrade(t, dev, "operator.write")
		var all []<-chan answer
		for range 8 {
			all = append(all, await(t, dev, id))
		}
		none(t, all...)
		refusedAs(t, "a ninth", (<-await(t, dev, id)).err, wire.Unavailable, "8 clients already wait")
		approve(t, h, id)
		for _, w := range all {
			if a := <-w; a.Status != wire.PairApproved {
				t.Errorf("answered %+v", a)
			}
		}
		for n := range pairing.MaxRequests {
			ask(t, h, fmt.Sprint("new", n), chela.ScopeRead)
		}
		err := dev.Call(t.Context(), wire.MethodDeviceUpgrade, wire.DeviceUpgrade{Scopes: []string{"operator.admin"}}, nil)
		refusedAs(t, "too many requests", err, wire.Unavailable, "too many pending pairing requests")
		if e, ok := errors.AsType[*wire.Error](err); !ok || !e.Retryable {
			t.Errorf("too many requests: %+v, want a retryable error", e)
		}
	})
}

// TestUpgradeOfAnotherDevice waits for the request of another device.
func TestUpgradeOfAnotherDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		dev := connect(t, h, approved(t, h, "d1", chela.ScopeRead))
		other := connect(t, h, approved(t, h, "d2", chela.ScopeRead))
		id := requestUpgrade(t, dev, "operator.write")
		w := await(t, dev, id)
		for range 8 { // as many as may wait for one request
			refusedAs(t, "the other device", (<-await(t, other, id)).err, wire.InvalidRequest, "expired or not found")
		}
		none(t, w)
		approve(t, h, id)
		refusedAs(t, "the other device after the decision", (<-await(t, other, id)).err, wire.InvalidRequest,
			"expired or not found")
		if a := <-w; a.Status != wire.PairApproved || a.Token == "" || !redeemed(t, h, "d1", a.Token, chela.ScopeWrite) ||
			redeemed(t, h, "d2", a.Token) {
			t.Errorf("answered %+v", a)
		}
	})
}

// TestUpgradeNarrowConnection requests an upgrade on a connection with fewer
// scopes than its device. The token must grant what a person approved.
func TestUpgradeNarrowConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := methodtest.New(t, llmtest.NewScript())
		all := []chela.Scope{
			chela.ScopeApprovals, chela.ScopePairing, chela.ScopeQuestions, chela.ScopeRead, chela.ScopeSessionsRead,
			chela.ScopeSessionsWrite,
			chela.ScopeTalk, chela.ScopeTalkSecrets,
		}
		pass := approved(t, h, "d1", all...)
		pass.Scopes = []chela.Scope{chela.ScopeRead}
		dev := connect(t, h, pass)
		id := requestUpgrade(t, dev, "operator.write")
		if got := list(t, h).Pending[0].Scopes; len(got) != len(all)+1 {
			t.Errorf("the request is for %v, want it to include the current scopes", got)
		}
		small := h.Dial(client.Options{Scopes: []string{"operator.pairing", "operator.write"}})
		defer small.Close()
		err := small.Call(t.Context(), wire.MethodDevicePairApprove, wire.DeviceRequestID{ID: id}, nil)
		refusedAs(t, "with fewer scopes than the device", err, wire.Forbidden, "missing scope")
		w := await(t, dev, id)
		approve(t, h, id)
		want := []string{"operator.approvals", "operator.pairing", "operator.questions",
			"operator.talk.secrets", "operator.write"}
		if a := <-w; !slices.Equal(a.Scopes, want) || !redeemed(t, h, "d1", a.Token, all...) {
			t.Errorf("answered %+v, want the scopes %v", a, want)
		}
	})
}
