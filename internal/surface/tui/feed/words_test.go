package feed_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/surface/tui/feed"
)

// TestEnded checks what people are told about calls that did not succeed.
func TestEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, tool, result string
		failed, absent     bool
		reason             string
	}{
		{"a file that was only looked for", "read", `{"status":"error","tool":"read","error":"MEMORY.md does not exist"}`,
			false, true, "MEMORY.md does not exist"},
		{"a file that was to be changed", "edit", "a.txt does not exist", true, false, "a.txt does not exist"},
		{"a denied call, without advice for the model", "exec", `{"error":"not run: denied by owner. Do not try to achieve it in another way; call the tool again only if the person asks for it"}`, true, false, "not run: denied"},
		{"a call about which nobody could be asked", "exec",
			"not run: it needs an approval, and nobody could be asked. Do not try to achieve it in another way", true, false,
			"not run: it needs an approval, and nobody could be asked"},
	} {
		got := feed.Tool{Name: tc.tool}.Ended(tc.result, true, nil)
		if got.Failed != tc.failed || got.Absent != tc.absent || got.Reason() != tc.reason {
			t.Errorf("%s: failed %v, absent %v, reason %q", tc.name, got.Failed, got.Absent, got.Reason())
		}
	}
}
