package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	"github.com/chela-ai/chela/wire"
)

// settings is a gateway that reports a result.
type settings struct{ written wire.ConfigWritten }

func (settings) Get(string) (string, string, error)        { return "{}", "h", nil }
func (settings) Lookup(path string) (wire.ConfigKey, bool) { return config.Lookup(path) }
func (settings) Closed(path string) string                 { return config.Closed(path) }

func (s settings) Write(context.Context, tool.Call, gateway.Change) (wire.ConfigWritten, error) {
	return s.written, nil
}

func (settings) Restart(_ context.Context, _ tool.Call, _ string, d time.Duration) (time.Duration, error) {
	return d, nil
}

func TestConformance(t *testing.T) {
	tooltest.Run(t, gateway.New(settings{}),
		tooltest.Options{Args: []string{`{"action":"config.get"}`, `{"action":"config.schema.lookup","path":"messages"}`,
			`{"action":"config.patch","raw":"{}"}`}})
}

// TestTexts checks what the model is told.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		written    wire.ConfigWritten
		args, want string
	}{
		{wire.ConfigWritten{Noop: true}, `{"action":"config.apply","raw":"{}"}`,
			"Nothing changed: the settings were so already."},
		{wire.ConfigWritten{Changed: []string{"a"}}, `{"action":"config.patch","raw":{"a":1}}`, "Written: a. In force now."},
		{wire.ConfigWritten{Changed: []string{"a"}, Cold: []string{"a"}}, `{"action":"config.patch","raw":{"a":1}}`,
			"Written: a. It takes effect after a restart (action restart)."},
		{wire.ConfigWritten{Changed: []string{"a", "b"}, Cold: []string{"b"}}, `{"action":"config.patch","raw":{"a":1}}`,
			"except for b"},
		{wire.ConfigWritten{Changed: []string{"a"}, Cold: []string{"a"}, Starts: true},
			`{"action":"config.patch","raw":{"a":1}}`, "restarts now. End your turn"},
		{wire.ConfigWritten{}, `{"action":"restart","reason":"x","delayMs":60000}`, "restarts in 1m. End your turn"},
		{wire.ConfigWritten{}, `{"action":"restart"}`, "reason is missing"},
		{wire.ConfigWritten{}, `{"action":"config.patch"}`, "raw is missing"},
		{wire.ConfigWritten{}, `{"action":"config.patch","raw":"` + strings.Repeat("x", 300<<10) + `"}`, "at most"},
		{wire.ConfigWritten{}, `{"action":"update.run"}`, "want config.get"},
	} {
		r, err := gateway.New(settings{tt.written}).Run(t.Context(), tool.Call{Args: json.RawMessage(tt.args)})
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = r.Content[0].Text
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%.80s: %q, want %q", tt.args, got, tt.want)
		}
	}
}
