//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEditor uses the assistant from an editor, which is the library of the Agent Client
// Protocol for TypeScript, as it is.
func TestEditor(t *testing.T) {
	t.Parallel()
	k := kit{name: "acp", Needs: map[string]string{"@agentclientprotocol/sdk": "2.4.0"}}
	g := newGateway(t, section{"tools": section{"exec": section{"host": "gateway", "ask": "always", "security": "full"}}})
	cmd := exec.CommandContext(t.Context(), node(t), "testdata/acp.mjs", packages(t, k), chela,
		"acp", "--state-dir", g.State, "--config", filepath.Join(g.State, "chela.json"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, errs.String(), out)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	type list = []any
	options := list{"allow_once", "reject_once"} // the configuration wants to be asked each time
	want := map[string]any{
		"initialize": list{1.0, "chela", true}, "session": "agent:main:acp-bridge:ID",
		"count": list{"end_turn", strings.TrimSpace(counted())}, "pieces": true,
		"allowed": list{"end_turn", "The tool said: hi"}, "denied": "end_turn", "asked": list{options, options},
		"plan":      list{list{"water the plants", "in_progress"}, list{"feed the fish", "pending"}},
		"cancelled": "cancelled", "failed": list{-32603.0, true},
		"loaded": list{"count", "run echo hi", "run echo hi", "plan", "wait", "fail"},
		"exit":   0.0,
	}
	calls, _ := got["calls"].(list)
	delete(got, "calls")
	if n := len(calls); n < 2 || calls[0] != "in_progress" || calls[n-1] != "completed" {
		t.Errorf("the states of a call: %v", calls)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s\n%s", d, errs.String())
	}
}
