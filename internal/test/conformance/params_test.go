//go:build conformance

package conformance

import (
	"cmp"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/test/chelatest"
)

// unvalidated are methods of OpenClaw whose parameters no schema describes, with the
// properties that its clients send.
var unvalidated = map[string][]string{
	"device.scopes.requestUpgrade": {"scopes"},
	"set-heartbeats":               {"enabled"},
	"system-event":                 {"sessionKey", "text"},
	"tasks.dismiss":                {"taskIds"},
	"tts.convert":                  {"channel", "modelId", "provider", "text", "voiceId"},
	"tts.disable":                  nil,
	"tts.enable":                   nil,
	"tts.setProvider":              {"provider"},
	"voicewake.set":                {"triggers"},
}

// ownDecoders are the methods that read their parameters themselves, and their test.
var ownDecoders = map[string]string{"cron.add": "TestAdd", "cron.import": "TestImport"}

// TestParameters compares the parameters of all methods with those of OpenClaw's gateway.
// A method that changes something must accept or refuse each of OpenClaw's properties by
// name: a client whose property is unknown cannot be told what to leave out. Methods that
// read ignore what they do not know.
func TestParameters(t *testing.T) {
	t.Parallel()
	schemas := map[string]struct {
		Properties map[string]any
		AnyOf      []struct{ Properties map[string]any }
	}{}
	dist := filepath.Join(packages(t, current()), "openclaw", "dist")
	out, err := exec.CommandContext(t.Context(), node(t), filepath.Join("testdata", "params.mjs"), dist).Output()
	if err != nil {
		t.Fatalf("read the schemas: %v", err)
	}
	if err := json.Unmarshal(out, &schemas); err != nil {
		t.Fatal(err)
	}
	published := newSchema(t)
	methods, _ := chelatest.Start(t, chelatest.Options{}).EntryPoints()
	checked := 0
	for _, m := range methods {
		if m.Reads || ownDecoders[m.Method] != "" || ours[m.Method] != "" && published.Methods[m.Method] == nil {
			continue
		}
		s, known := schemas[cmp.Or(irregular[m.Method+" params"], named(m.Method)+"Params")]
		names := slices.Collect(maps.Keys(s.Properties))
		for _, a := range s.AnyOf {
			names = slices.AppendSeq(names, maps.Keys(a.Properties))
		}
		if more, ok := unvalidated[m.Method]; ok {
			names, known = more, true
		}
		if !known {
			t.Errorf("%s: OpenClaw's gateway has no schema for its parameters", m.Method)
			continue
		}
		checked++
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if !slices.Contains(m.Params, name) && !slices.Contains(m.Refused, name) {
				t.Errorf("%s: the property %s of OpenClaw is neither accepted nor refused by name", m.Method, name)
			}
		}
		for _, name := range m.Refused {
			if slices.Contains(m.Params, name) {
				t.Errorf("%s: the property %s is both accepted and refused", m.Method, name)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d methods were compared", checked)
	}
}

// reading returns the names of the methods that change nothing.
func reading(t testing.TB) map[string]bool {
	t.Helper()
	methods, _ := chelatest.Start(t, chelatest.Options{}).EntryPoints()
	out := map[string]bool{}
	for _, m := range methods {
		out[m.Method] = m.Reads
	}
	return out
}
