package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestContexts checks that the settings of an agent replace those of agents.defaults one
// by one, and that nothing of an agent gets into those of another.
func TestContexts(t *testing.T) {
	t.Parallel()
	const defaults = `{"compaction": {"enabled": true, "notifyUser": true, "recentTurnsPreserve": 5, "postCompactionSections": ["One", "Two"], "memoryFlush": {"enabled": false, "model": "a/b"}},
		"contextPruning": {"mode": "cache-ttl", "keepLastAssistants": 2, "tools": {"deny": ["x", "y"]}}}`
	o := read(t, conf{"agents.defaults": defaults, "agents": `{"entries": {"work": {
		"compaction": {"enabled": false, "notifyUser": false, "recentTurnsPreserve": 1, "postCompactionSections": ["Three"], "memoryFlush": {"enabled": true}},
		"contextPruning": {"mode": "off", "tools": {"deny": ["z"]}}}}}`})
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	plain := read(t, conf{"agents.defaults": defaults})
	if diff := cmp.Diff(text(plain.Compaction("main"))+text(plain.Pruning("main")), text(o.Compaction("main"))+
		text(o.Pruning("main"))); diff != "" {
		t.Errorf("an agent without settings of its own (-want +got):\n%s", diff)
	}
	if got, want := text(o.Compaction("work")), `{"enabled":false,"recentTurnsPreserve":1,"postCompactionSections":["Three"],"memoryFlush":{"enabled":true,"model":"a/b"}}`; got != want {
		t.Errorf("compaction %s, want %s", got, want)
	}
	p := o.Pruning("work")
	if p.Mode != "off" || p.Keep == nil || *p.Keep != 2 || len(p.Tools.Deny) != 1 || p.Tools.Deny[0] != "z" {
		t.Errorf("pruning %+v", p)
	}
}

func TestBadContexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ defaults, agents, want string }{
		{`{"compaction": {"mode": "fast"}}`, `{}`, `agents.defaults.compaction.mode "fast": want auto, default or safeguard`},
		{`{"contextPruning": {"softTrimRatio": 2}}`, `{"entries": {"work": {"contextPruning": {}}}}`,
			`agents.defaults.contextPruning.softTrimRatio 2: want a number from 0 to 1`},
		{`{}`, `{"entries": {"work": {"compaction": {"mode": "fast"}}}}`,
			`agents.entries.work.compaction.mode "fast": want auto, default or safeguard`},
		{`{}`, `{"list": [{"id": "work", "contextPruning": {"mode": "on"}}]}`,
			`agents.list[0].contextPruning.mode "on": want off or cache-ttl`},
	} {
		o := read(t, conf{"agents.defaults": c.defaults, "agents": c.agents})
		if err := o.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%s %s: %v, want %s", c.defaults, c.agents, err, c.want)
		}
	}
	if _, err := Read(conf{"agents": `{"list": [{"id": "work", "compaction": {"mode": 1}}]}`}); err == nil ||
		!strings.HasPrefix(err.Error(), "configuration, agents.list[0].compaction: ") {
		t.Errorf("a setting of the wrong type: %v", err)
	}
}
