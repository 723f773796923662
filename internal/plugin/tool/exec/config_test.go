package exec

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	c, err := ParseConfig(json.RawMessage(`{"mode": "full", "timeoutSeconds": 60, "maxOutputChars": 500, "cleanupMs": 2000, "notifyOnExit": false}`))
	if err != nil {
		t.Fatal(err)
	}
	if o := c.Options(Options{Interactive: true}); o.MaxTimeout != time.Minute || o.MaxOutput != 500 || !o.Interactive {
		t.Errorf("options %+v", o)
	}
	if o := c.CommandOptions(CommandOptions{Defer: func() Defer { return nil }()}); o.TTL != 2*time.Second || o.Defer != nil {
		t.Errorf("command options %+v", o)
	}
	if _, err := Configured(json.RawMessage(`{"dangerousPatterns": "rm"}`), Options{}); err == nil || !strings.Contains(err.Error(), "dangerousPatterns") {
		t.Errorf("error %v", err)
	}
}
