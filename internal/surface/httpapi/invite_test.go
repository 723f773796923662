package httpapi_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/wire"
)

// syncs records how updates were requested.
type syncs struct {
	store.Store
	last store.Sync
}

func (s *syncs) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	s.last = sync
	return s.Store.Update(ctx, sync, f)
}

// TestInvited checks that an invited remote device is accepted once without
// approval and gets the tokens of all roles.
func TestInvited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := new(syncs)
		var asked []pairing.Admission
		s := newTestServer(t, func(o *access.Options) {
			st.Store, o.Store = o.Store, st
			o.PairingRequested = func(a pairing.Admission) { asked = append(asked, a) }
		})
		invite := func() string {
			var token string
			err := st.Update(context.Background(), store.Synced, func(tx store.Tx) (err error) {
				_, token, err = pairing.NewInvite(tx.Devices(), chela.Owner("test"), []string{wire.RoleNode, wire.RoleOperator},
					[]chela.Scope{chela.ScopeRead, chela.ScopeWrite}, time.Now())
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return token
		}
		const away = "192.168.1.5:18789"
		dev, other := newDevice('a'), newDevice('b')
		as := func(token string, d *device, more string) attempt {
			return attempt{addr: remote, host: away, device: d,
				merge: fmt.Sprintf(`{%s,"commands":["camera.snap"],"auth":{"bootstrapToken":%q}}`, more, token)}
		}
		const invalid = "1008 INVALID_REQUEST AUTH_BOOTSTRAP_TOKEN_INVALID unauthorized: setup code invalid, expired, revoked, or already used (make a new one: chela devices invite)"
		token := invite()
		said, in := s.connect(as(token, &dev, node))
		if said != "ok 4 bootstrap-token" || in.hello.Auth.DeviceToken == "" || len(in.hello.Auth.DeviceTokens) != 1 {
			t.Fatalf("%s, %+v", said, in)
		}
		if st.last != store.Synced {
			t.Error("after a power loss the invitation would be valid again")
		}
		if len(asked) != 1 || asked[0].NodeRequested == nil || asked[0].Requested != nil {
			t.Errorf("published %+v, want the node's request", asked)
		}
		handed := in.hello.Auth.DeviceTokens[0]
		if got, _ := s.connect(attempt{addr: remote, host: away, device: &dev,
			merge: fmt.Sprintf(`{%s,"auth":{"deviceToken":%q}}`, tui, handed.Token)}); got != "ok 4 device-token "+readWrite {
			t.Errorf("with the token from the invitation: %s", got)
		}
		for _, tt := range []struct {
			name string
			try  attempt
			want string
		}{
			{"a second time", as(token, &dev, node), invalid},
			{"a second time, with its own token", attempt{addr: remote, host: away, device: &dev,
				merge: fmt.Sprintf(`{%s,"auth":{"bootstrapToken":%q,"deviceToken":%q}}`, tui, token, handed.Token)},
				"ok 4 bootstrap-token " + readWrite},
			{"a second time, with the token of another device", attempt{addr: remote, host: away, device: &other, merge: fmt.Sprintf(`{%s,"auth":{"bootstrapToken":%q,"deviceToken":%q}}`, tui, token, handed.Token)}, "1008 INVALID_REQUEST AUTH_DEVICE_TOKEN_MISMATCH unauthorized: device token mismatch (rotate/reissue device token)"},
			{"by another device", as(token, &other, node), invalid},
			{"without a device", attempt{addr: remote, host: away, merge: fmt.Sprintf(`{"auth":{"bootstrapToken":%q}}`,
				invite())}, "1008 " + noDevice},
			{"for more than it grants", as(invite(), &other, tui+`,"scopes":["operator.admin"]`),
				"1008 NOT_PAIRED PAIRING_REQUIRED pairing required: device is not approved yet"},
		} {
			if got, _ := s.connect(tt.try); got != tt.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
			}
		}
		late := invite()
		time.Sleep(pairing.InviteLifetime)
		if got, _ := s.connect(as(late, &other, node)); got != invalid {
			t.Errorf("after ten minutes: %s", got)
		}
	})
}

// TestChangedDevice checks that a device that returns as another kind of
// machine must be approved again, also with its own token.
func TestChangedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dev := newTestServer(t, nil), newDevice('a')
		_, in := s.connect(attempt{merge: `{` + tui + `}`, device: &dev})
		if in == nil {
			t.Fatal("a new device on this machine is refused")
		}
		again := func(platform string, with string) attempt {
			return attempt{addr: remote, host: "192.168.1.5", device: &dev, merge: fmt.Sprintf(
				`{"client":{"id":"openclaw-tui","version":"1","platform":%q,"mode":"ui"},"auth":{%s}}`, platform, with)}
		}
		token := fmt.Sprintf(`"token":"","deviceToken":%q`, in.hello.Auth.DeviceToken)
		const changed = "1008 NOT_PAIRED PAIRING_REQUIRED pairing required: device identity changed and must be re-approved"
		for _, tt := range []struct{ name, platform, auth, want string }{
			{"the same machine", "Linux", token, "ok 4 device-token " + readWrite},
			{"another kind, with its token", "ios 17", token, changed},
			{"another kind, with the secret", "ios 17", `"token":"test-token-abc"`, changed},
		} {
			if got, _ := s.connect(again(tt.platform, tt.auth)); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
		}
	})
}
