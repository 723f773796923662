package exec

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/tool"
)

func TestConfig(t *testing.T) {
	c, err := ParseConfig(
		json.RawMessage(
			`{"mode": "full", "timeoutSeconds": 60, "maxOutputChars": 500, "cleanupMs": 2000, "notifyOnExit": false}`))
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Options(Options{Interactive: true}); o.MaxTimeout != time.Minute || o.MaxOutput != 500 || !o.Interactive {
		t.Errorf("options %+v", o)
	}
	deferred := func(context.Context, tool.Call, string) (func(context.Context, string, queue.Result) error, error) {
		return nil, nil
	}
	if o := c.CommandOptions(CommandOptions{Defer: deferred}); o.TTL != 2*time.Second || o.Defer != nil || o.NotifySilent {
		t.Errorf("command options %+v", o)
	}
	for _, text := range []string{`{"notifyOnExitEmptySuccess":true}`,
		`{"notifyOnExitEmptySuccess":true,"notifyOnExit":true}`} {
		c, err := ParseConfig(json.RawMessage(text))
		if o := c.CommandOptions(CommandOptions{Defer: deferred}); err != nil || o.Defer == nil || !o.NotifySilent {
			t.Errorf("%s: command options %+v, %v", text, o, err)
		}
	}
	if _, err := Configured(json.RawMessage(`{"dangerousPatterns": "rm"}`), Options{}); err == nil ||
		!strings.Contains(err.Error(), "dangerousPatterns") {
		t.Errorf("error %v", err)
	}
}
