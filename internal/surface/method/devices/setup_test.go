package devices_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestSetupCode(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	for _, tt := range []struct {
		place  string
		in     wire.DeviceSetup
		access string
		source string
		url    string
	}{
		{"ws://192.168.1.2:1", wire.DeviceSetup{}, wire.AccessLimited, "gateway.bind", "ws://192.168.1.2:1"},
		{"wss://192.168.1.2:1", wire.DeviceSetup{}, wire.AccessFull, "gateway.bind", "wss://192.168.1.2:1"},
		{"", wire.DeviceSetup{URL: "https://gate.example/x/"}, wire.AccessFull, "request.publicUrl", "wss://gate.example/x"},
		{"", wire.DeviceSetup{URL: "ws://127.0.0.1:1"}, wire.AccessFull, "request.publicUrl", "ws://127.0.0.1:1"},
		{"", wire.DeviceSetup{URL: "ws://gate.example", Profile: wire.AccessNode}, wire.AccessNode,
			"request.publicUrl", "ws://gate.example"},
		{"", wire.DeviceSetup{URL: "wss://gate.example", Join: true}, wire.AccessNode,
			"request.publicUrl", "wss://gate.example"},
	} {
		h.URL = tt.place
		got := methodtest.Do[wire.DeviceSetupCode](t, h, wire.MethodDeviceSetupCode, tt.in)
		if got.Access != tt.access || got.Source != tt.source || got.URL != tt.url || got.Auth != "token" ||
			got.Downgraded != (tt.in.Profile == "" && tt.access == wire.AccessLimited) {
			t.Errorf("%s, %+v: %+v", tt.place, tt.in, got)
		}
		b, err := base64.RawURLEncoding.DecodeString(got.Code)
		var p wire.SetupPayload
		if err != nil || json.Unmarshal(b, &p) != nil || p.URL != tt.url || len(p.Token) < 26 || p.Expires != got.Expires {
			t.Errorf("the code contains %s, %v", b, err)
		}
		if left := time.Until(got.Expires.Time()); left < 9*time.Minute || left > pairing.InviteLifetime {
			t.Errorf("it expires in %v", left)
		}
	}
	h.URL = ""
	for in, want := range map[wire.DeviceSetup]string{
		{}:                            "listens on this machine only",
		{URL: "gate.example"}:         "at /publicUrl",
		{URL: "ftp://gate.example"}:   "at /publicUrl",
		{URL: "wss://a:b@gate"}:       "at /publicUrl",
		{URL: "wss://gate?token=x"}:   "at /publicUrl",
		{URL: "ws://"}:                "at /publicUrl",
		{URL: "%"}:                    "at /publicUrl",
		{URL: "ws://g", Profile: "x"}: "at /bootstrapProfile",

		{URL: "wss://g", Profile: wire.AccessLimited, Join: true}: "at /joinUrl",
	} {
		if err := h.Call(t.Context(), wire.MethodDeviceSetupCode, in, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", in, err, want)
		}
	}
	writer := h.Dial(client.Options{Scopes: []string{"operator.pairing", "operator.write"}})
	defer writer.Close()
	if err := writer.Call(t.Context(), wire.MethodDeviceSetupCode, wire.DeviceSetup{URL: "wss://g"}, nil); err == nil ||
		!strings.Contains(err.Error(), "missing scope: operator.admin") {
		t.Errorf("invited with the pairing scope: %v", err)
	}
}

// TestSetupPage checks the addresses that open the web page.
func TestSetupPage(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	for _, tt := range []struct{ page, url, want, access string }{
		{"ws://127.0.0.1:1", "", "http://127.0.0.1:1/#code=", wire.AccessFull},
		{"wss://192.168.1.2:1/chela", "", "https://192.168.1.2:1/chela/#code=", wire.AccessFull},
		{"ws://192.168.1.2:1", "", "http://192.168.1.2:1/#code=", wire.AccessLimited},
		{"ws://127.0.0.1:1", "https://box.example/x/", "https://box.example/x/#code=", wire.AccessFull},
		{"ws://127.0.0.1:1", "http://box.example", "http://box.example/#code=", wire.AccessLimited},
	} {
		h.Page = tt.page
		s := methodtest.Do[wire.DeviceSetupCode](t, h, wire.MethodDeviceSetupCode,
			wire.DeviceSetup{Profile: wire.AccessPage, URL: tt.url})
		token, limited := strings.CutSuffix(strings.TrimPrefix(s.Page, tt.want), "&access=limited")
		if !strings.HasPrefix(s.Page, tt.want) || s.Access != tt.access || limited != (tt.access == wire.AccessLimited) ||
			s.Downgraded != limited {
			t.Errorf("%+v: %+v", tt, s)
		}
		id := pairing.Identity{ID: s.ID, Key: "k", Role: wire.RoleOperator, Scopes: []chela.Scope{chela.ScopeWrite}}
		h.Put(func(tx store.Tx) error {
			a, err := pairing.Accept(tx.Devices(), id, token, time.Now())
			if a.Refusal != nil {
				t.Error(a.Refusal)
			}
			if d, err := tx.Devices().Device(s.ID); err != nil || len(d.Roles()) != 1 || d.Grant(wire.RoleOperator).Scopes ==
				nil || pairing.ScopeSet(d.Grant(wire.RoleOperator).Scopes).Covers([]chela.Scope{chela.ScopeAdmin}) == limited {
				t.Errorf("%+v: the device has %v, %v", tt, d, err)
			}
			return err
		})
	}
	h.Page = ""
	err := h.Call(t.Context(), wire.MethodDeviceSetupCode, wire.DeviceSetup{Profile: wire.AccessPage}, nil)
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Detail() != wire.DetailNoPage {
		t.Errorf("without a page: %v", err)
	}
}

func TestSetupStatus(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	code := methodtest.Do[wire.DeviceSetupCode](t, h, wire.MethodDeviceSetupCode,
		wire.DeviceSetup{URL: "wss://gate.example"})
	state := func() *wire.DeviceSetupDone {
		return methodtest.Do[wire.DeviceSetupState](t, h, wire.MethodDeviceSetupState, wire.DeviceSetupID{ID: code.ID}).Done
	}
	if got := state(); got != nil {
		t.Errorf("before use: %+v", got)
	}
	b, err := base64.RawURLEncoding.DecodeString(code.Code)
	var p wire.SetupPayload
	if err != nil || json.Unmarshal(b, &p) != nil {
		t.Fatal(err)
	}
	id := pairing.Identity{
		ID:     "phone",
		Key:    "k",
		Role:   wire.RoleOperator,
		Scopes: []chela.Scope{chela.ScopeRead},
		Client: wire.ClientInfo{DisplayName: "Phone"},
	}
	h.Put(func(tx store.Tx) error {
		a, err := pairing.Accept(tx.Devices(), id, p.Token, time.Now())
		if a.Refusal != nil {
			t.Error(a.Refusal)
		}
		return err
	})
	if got := state(); got == nil || got.Device != "phone" || got.Name != "Phone" || got.Access != wire.AccessFull {
		t.Errorf("after use: %+v", got)
	}
	if d := list(t, h).Paired; len(d) != 1 || d[0].ApprovedVia != pairing.ViaInvite || len(d[0].Tokens) != 2 {
		t.Errorf("paired: %+v", d)
	}

	named := methodtest.Do[wire.DeviceRename](t, h, wire.MethodDevicePairRename,
		wire.DeviceRename{ID: "phone", Label: " Anna's "})
	if d := list(t, h).Paired[0]; named.Label != "Anna's" || d.DisplayName != "Anna's" {
		t.Errorf("renamed %+v: %+v", named, d)
	}
	for params, want := range map[wire.DeviceRename]string{
		{ID: "phone"}:              "a name is",
		{ID: "nobody", Label: "x"}: "unknown deviceId",
	} {
		if err := h.Call(t.Context(), wire.MethodDevicePairRename, params, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", params, err, want)
		}
	}
}
