package run_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/run"
)

func TestExec(t *testing.T) {
	t.Parallel()
	e := func(host, security, ask string) run.Exec { return run.Exec{Host: host, Security: security, Ask: ask} }
	for _, tt := range []struct{ a, b, or, within run.Exec }{
		{e("", "", ""), e("", "", ""), e("", "", ""), e("", "", "")},
		{e("gateway", "full", "off"), e("sandbox", "deny", "always"), e("gateway", "full", "off"),
			e("sandbox", "deny", "always")},
		{e("sandbox", "deny", "always"), e("gateway", "full", "off"), e("sandbox", "deny", "always"),
			e("sandbox", "deny", "always")},
		{e("", "allowlist", ""), e("gateway", "full", "on-miss"), e("gateway", "allowlist", "on-miss"),
			e("", "allowlist", "on-miss")},
		{e("gateway", "", "off"), e("", "allowlist", "on-miss"), e("gateway", "allowlist", "off"),
			e("gateway", "allowlist", "on-miss")},
	} {
		if got := tt.a.Or(tt.b); got != tt.or {
			t.Errorf("%+v or %+v = %+v", tt.a, tt.b, got)
		}
		if got := tt.a.Within(tt.b); got != tt.within {
			t.Errorf("%+v within %+v = %+v", tt.a, tt.b, got)
		}
	}
	if got := e("gateway", "deny", "always").ForChild(); got != e("", "deny", "always") {
		t.Errorf("for a child: %+v", got)
	}
}
