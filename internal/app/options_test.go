package app

import (
	"strings"
	"testing"
)

func TestBadOptions(t *testing.T) {
	started := func(c conf) error {
		o := on(t, nil, nil)
		o.Config, o.NoProbe, o.NoSocket = c, true, true
		e, err := New(t.Context(), o)
		if err == nil {
			e.Close(t.Context())
		}
		return err
	}
	for _, tt := range []struct{ section, json, want string }{
		{"agents.defaults", `{"userTimezone": "Mars/Base"}`, "agents.defaults.userTimezone"},
		{"tools", `{"exec": {"mode": "maybe"}}`, "tools.exec.mode"},
		{"tools", `{"exec": {"security": "yolo"}}`, "tools.exec.security"},
		{"tools", `{"exec": {"safeBinProfiles": {"x": {"minPositional": 2}}}}`, "tools.exec.safeBinProfiles.x"},
		{"agents", `{"list": [{"id": "a", "tools": {"exec": {"ask": "never"}}}]}`, "agents.list[0].tools.exec.ask"},
		{"tools", `{"exec": {"dangerousPatterns": ["("]}}`, "dangerous pattern"},
		{"tools", `{"loopDetection": {"enabled": true, "warningThreshold": 30, "criticalThreshold": 20}}`,
			"tools.loopDetection"},
	} {
		t.Run("refused: "+tt.json, func(t *testing.T) {
			if err := started(conf{tt.section: tt.json}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %s", err, tt.want)
			}
		})
	}
}
