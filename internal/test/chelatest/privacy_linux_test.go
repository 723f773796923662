package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
)

// TestPrivateNotesOfCommands is about commands that use the notes, in a group and in a
// direct chat.
func TestPrivateNotesOfCommands(t *testing.T) {
	s := &boxed{t: t, fake: &channeltest.Fake{}}
	s.Gateway = Start(t, Options{Model: caller(), Dial: site(t), Channels: map[string]channel.Channel{"open": s.fake},
		Config: Config{
			"channels": json.RawMessage(`{"open": {"allowFrom": ["ann"]}}`),
		}})
	for _, name := range []string{"MEMORY.md", "USER.md", "memory/house.md"} {
		s.writeIn("workspace/"+name, "The code is 4071.")
	}
	s.writeIn("workspace/open.md", "Anybody may read this.")
	ann := chela.Peer{Kind: chela.Direct, ID: "ann"}
	for _, tt := range []struct {
		command       string
		private, both string // what the result has in a direct chat, and in both
	}{
		{"cat MEMORY.md", "4071", ""},
		{"cat M*.md m*/*; cat open.md", "4071", "Anybody"},
		{"grep -rh code . ; cat open.md", "4071", "Anybody"},
		{"f=MEM; cat ${f}ORY.md; cat open.md", "4071", "Anybody"},
		{"sh -c 'cat MEM*'; cat open.md", "4071", "Anybody"},
		{"d=memory; cp -r $d copied; mv $d moved; cat copied/* moved/*; mv moved $d; rm -r copied; cat open.md",
			"4071", "Anybody"},
		{"cat open.md", "", "Anybody"},
	} {
		for _, p := range []chela.Peer{groupOf("g1"), ann} {
			got := s.say(p, "ann", execCall(tt.command, ""))
			if shown := strings.Contains(got, "4071"); shown != (p == ann && tt.private != "") {
				t.Errorf("%s in a %s chat: shown %t\n%s", tt.command, p.Kind, shown, got)
			}
			if !strings.Contains(got, tt.both) {
				t.Errorf("%s in a %s chat: %s", tt.command, p.Kind, got)
			}
		}
	}
	if got := s.say(groupOf("g1"), "ann", execCall("cat USER.md", "")); !strings.Contains(got, "only in a private chat") {
		t.Errorf("the reason is missing: %s", got)
	}
	if got := s.say(groupOf("g1"), "ann",
		execCall("d=memory; m=MEMORY; echo evil > $m.md; echo evil > $d/house.md; echo evil > $d/new.md; rm -rf $d",
			"")); strings.Contains(got, "4071") {
		t.Errorf("changes in a group: %s", got)
	}
	for _, name := range []string{"MEMORY.md", "memory/house.md"} {
		if b, err := os.ReadFile(filepath.Join(s.Dir, "workspace", name)); err != nil || string(b) != "The code is 4071." {
			t.Errorf("%s is %q, %v", name, b, err)
		}
	}
}
