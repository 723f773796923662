package policy

import (
	"slices"
	"testing"
)

func TestDirect(t *testing.T) {
	t.Parallel()
	tools := named("exec", "gateway", "process", "read", "web_fetch", "write")
	if s := catalog.Direct(nil, nil, false); s.Label != "direct" || s.Key != "gateway.tools.deny" {
		t.Errorf("%+v", s)
	}
	for _, tt := range []struct {
		name        string
		deny, allow []string
		owner       bool
		want        []string
	}{
		{"the built-in list", nil, nil, true, []string{"read", "web_fetch", "write"}},
		{"more of it", []string{"group:web"}, nil, true, []string{"read", "write"}},
		{"less of it, for the owner", nil, []string{"Gateway"}, true, []string{"gateway", "read", "web_fetch", "write"}},
		{"less of it, for another", nil, []string{"gateway"}, false, []string{"read", "web_fetch", "write"}},
		{"the other name of exec", nil, []string{"bash"}, true, []string{"exec", "read", "web_fetch", "write"}},
		{"deny goes before allow", []string{"exec"}, []string{"exec"}, true, []string{"read", "web_fetch", "write"}},
	} {
		got := Pipeline{catalog.Direct(tt.deny, tt.allow, tt.owner)}.Apply(tools).Allowed
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
