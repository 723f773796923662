//go:build conformance

package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/test/chelatest"
)

// inVain are the methods of OpenClaw that the gateway does not have.
var inVain vain

// vain collects methods, and who asked for them during the tests.
type vain struct {
	mu      sync.Mutex
	methods map[string][]string
}

func (v *vain) add(method string, by ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.methods == nil {
		v.methods = map[string][]string{}
	}
	v.methods[method] = append(v.methods[method], by...)
}

// print lists the methods below what will bring them.
func (v *vain) print(w io.Writer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	by := map[string][]string{}
	for method := range v.methods {
		name := cmp.Or(feature(method), "nothing that is planned")
		by[name] = append(by[name], method)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(w, "not there yet, comes with %s:\n", name)
		slices.Sort(by[name])
		for _, method := range by[name] {
			who := slices.Compact(slices.Sorted(slices.Values(v.methods[method])))
			fmt.Fprintf(w, "  %-44s %s\n", method, strings.Join(who, ", "))
		}
	}
}

// features are the beginnings of the names of methods, and what will bring them; the
// longest one counts.
var features = map[string]string{
	"agents.avatar":    "pictures of agents",
	"artifacts.":       "a list of produced files",
	"assistant.media.": "media in the apps",
	"attach.":          "the apps",
	"audit.":           "an audit log",
	"board.":           "boards",
	"canvas.":          "canvas",
	"channels.":        "control of channels by clients",

	"chat.":      "titles of tool calls",
	"claws.":     "monitors",
	"computer.":  "control of the computer",
	"config.":    "the apps",
	"controlUi.": "previews of links and of GitHub",

	"conversations.": "conversations between agents",
	"desktop.":       "control of the computer",
	"diagnostics.":   "profiling",
	"doctor.memory.": "dreaming",
	"environments.":  "workers",

	"exec.approval.grants.": "a list of standing approvals",
	"exec.approvals.node.":  "commands of nodes",
	"fs.":                   "the apps",
	"gateway.":              "restart and suspension by clients",
	"mcp.":                  "apps of MCP servers",

	"mentions.":   "several people",
	"migrations.": "import of memory by clients",
	"models.":     "sign-in to providers by clients",
	"nativeHook.": "other agent programs",
	"node.":       "commands of nodes",

	"openclaw.": "a setup assistant",
	"plugin.":   "plug-ins with own methods",
	"plugins.":  "a catalog of plug-ins",
	"portals.":  "portals",
	"portal.":   "portals",
	"projects.": "projects",

	"push.":     "push notifications",
	"question.": "questions to people",
	"secrets.":  "a store of secrets",
	"session.":  "several people",
	"sessions.": "branches, groups and goals of sessions",

	"skills.":          "a library of skills",
	"system.":          "the apps",
	"talk.":            "voice",
	"taskSuggestions.": "suggested tasks",
	"tasks.":           "suggested tasks",

	"terminal.":     "a terminal in the browser",
	"themes.":       "themes",
	"tools.github.": "GitHub",
	"transcripts.":  "recordings of meetings",
	"tts.":          "voice",
	"ui.":           "the apps",
	"update.":       "updates by clients",

	"users.":     "several people",
	"voicewake.": "voice",
	"web.":       "channels that are linked with a QR code",
	"webSearch.": "settings of the search by clients",

	"wizard.":    "setup by clients",
	"worker.":    "workers",
	"worktrees.": "worktrees",
}

// feature returns what will bring a method; "": unknown.
func feature(method string) string {
	best := ""
	for prefix := range features {
		if len(prefix) > len(best) && strings.HasPrefix(method, prefix) {
			best = prefix
		}
	}
	return features[best]
}

// TestMissing compares the published methods with ours. Each missing one has a reason,
// which is printed at the end of the tests.
func TestMissing(t *testing.T) {
	t.Parallel()
	methods, _ := chelatest.Start(t, chelatest.Options{}).EntryPoints()
	have := map[string]bool{"connect": true}
	for _, m := range methods {
		have[m.Method] = true
	}
	for method := range newSchema(t).Methods {
		if have[method] {
			continue
		}
		if feature(method) == "" {
			t.Errorf("%s is missing: say in features what will bring it", method)
		}
		inVain.add(method)
	}
}
