package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// TestPrivateNotes is about files that only private conversations use, in each kind of
// conversation.
func TestPrivateNotes(t *testing.T) {
	t.Parallel()
	const code = "4071"
	group := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Group, ID: "g1"}}
	direct := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
	groupKey := chela.SessionKey("agent:main:chat:group:g1")
	reads := []string{
		`read {"path": "MEMORY.md"}`, `read {"path": "./memory/../memory/house.md"}`, `read {"path": "USER.md"}`,
		`read {"path": "DREAMS.md"}`, `read {"path": "link.md"}`,
		`grep {"pattern": "code"}`, `grep {"pattern": "code", "path": "memory"}`, `find {"pattern": "house*"}`,
		`ls {"path": "memory"}`,
		`edit {"path": "MEMORY.md", "oldText": "The", "newText": "Our"}`, `memory_get {"path": "MEMORY.md"}`,
		`memory_search {"query": "door code"}`,
	}
	// known is what a result contains that shows a note.
	known := []string{code, "house.md", "[file]", "Replaced", "replaced", "Edited", "edited"}
	conf := Config{
		"channels": json.RawMessage(`{"chat": {"allowFrom": ["ann"]}}`),
		"tools":    json.RawMessage(`{"sessions": {"visibility": "all"}}`),
	}
	// results returns the results of the tools, and the system prompts, of requests.
	results := func(reqs []*llm.Request) (results []string, prompts string) {
		for _, r := range reqs {
			prompts += systemOf(r)
			if m := r.Messages[len(r.Messages)-1]; m.Role == llm.RoleTool {
				results = append(results, m.PlainText())
			}
		}
		return results, prompts
	}
	for _, place := range []struct {
		name    string
		private bool
		begin   func(k *talkers, id, line string)
	}{
		{"a direct chat", true, func(k *talkers, id, line string) { k.say(id, direct, line) }},
		{"a subagent of a direct chat", true, func(k *talkers, id, line string) { k.say(id, direct, task(line)) }},
		{"the terminal", true, func(k *talkers, id, line string) { k.Ask("main", line) }},
		{"a job whose answer goes to a direct chat", true, func(k *talkers, id, line string) { k.job(line, "ann") }},
		{"a group", false, func(k *talkers, id, line string) {
			if err := k.chat.Say(k.t.Context(), chela.Inbound{
				ID:        id,
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Mentioned: true,
				Text:      line,
			}); err != nil {
				k.t.Fatal(err)
			}
		}},
		{"a subagent of a group", false, func(k *talkers, id, line string) {
			if err := k.chat.Say(k.t.Context(), chela.Inbound{
				ID:        id,
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Mentioned: true,
				Text:      task(line),
			}); err != nil {
				k.t.Fatal(err)
			}
		}},
		{"a message of the owner to the session of a group", false,
			func(k *talkers, id, line string) { k.Ask(string(groupKey), line) }},
		{"a job whose answer goes to a group", false, func(k *talkers, id, line string) { k.job(line, "group:g1") }},
		{"a subagent of such a job", false, func(k *talkers, id, line string) { k.job(task(line), "group:g1") }},
		{"another session that a group asks", false, func(k *talkers, id, line string) {
			if err := k.chat.Say(k.t.Context(), chela.Inbound{
				ID:        id,
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Mentioned: true,
				Text:      send("agent:main:main", line, 30),
			}); err != nil {
				k.t.Fatal(err)
			}
		}},
		{"another session in a later turn of its exchange with a group", false, func(k *talkers, id, line string) {
			if err := k.chat.Say(k.t.Context(), chela.Inbound{
				ID:        id,
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Mentioned: true,
				Text:      send("agent:main:main", "say say "+line, 30),
			}); err != nil {
				k.t.Fatal(err)
			}
		}},
	} {
		talk(t, "MEM-04 "+place.name, conf, func(t *testing.T, k *talkers) {
			k.g.writeIn("workspace/MEMORY.md", "The door code is "+code+".")
			k.g.writeIn("workspace/USER.md", "The alarm code is "+code+".")
			k.g.writeIn("workspace/DREAMS.md", "The dream code is "+code+".")
			k.g.writeIn("workspace/memory/house.md", "The garage code is "+code+".")
			k.g.writeIn("workspace/open.md", "The code of the public library has no digits.")
			if err := os.Symlink("MEMORY.md", filepath.Join(k.g.Dir, "workspace", "link.md")); err != nil {
				needtest.Missing(t, "symbolic links")
			}
			if err := k.chat.Say(t.Context(), chela.Inbound{
				ID:        "hello",
				Address:   group,
				Sender:    chela.Sender{ID: "ann"},
				Mentioned: true,
				Text:      "say hello",
			}); err != nil {
				t.Fatal(err)
			}
			k.settle()
			for i, line := range reads {
				before := len(k.Requests())
				place.begin(k, fmt.Sprint(i), line)
				k.settle()
				got, prompts := results(k.Requests()[before:])
				if len(got) == 0 {
					t.Fatalf("%s: no tool was called", line)
				}
				all := strings.Join(got, "\n")
				shown := false
				for _, s := range known {
					shown = shown || strings.Contains(all, s) && !strings.Contains(all, "only in a private chat")
				}
				if shown != place.private {
					t.Errorf("%s: a note is shown: %t\n%s", line, shown, all)
				}
				if !place.private && strings.Contains(prompts, "door code is") {
					t.Errorf("%s: MEMORY.md is in the prompt", line)
				}
				if !place.private && (strings.HasPrefix(line, "read") || strings.HasPrefix(line, "edit") ||
					strings.HasPrefix(line, "ls")) && !strings.Contains(all, "only in a private chat") {
					t.Errorf("%s: the reason is missing:\n%s", line, all)
				}
			}
			if strings.HasPrefix(place.name, "a group") {
				before := len(k.Requests())
				place.begin(k, "last", `grep {"pattern": "library"}`)
				k.settle()
				if got, _ := results(k.Requests()[before:]); !strings.Contains(strings.Join(got, "\n"), "open.md") {
					t.Errorf("other files of the workspace are not searched: %q", got)
				}
			}
		})
	}
}

// job runs a job at once, which begins a turn of its own and sends the answer to a chat.
func (k *talkers) job(line, to string) {
	k.t.Helper()
	message, err := json.Marshal("go\n" + line)
	if err != nil {
		k.t.Fatal(err)
	}
	k.must(wire.MethodCronAdd,
		json.RawMessage(fmt.Sprintf(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":%s},
		"sessionTarget":"isolated","wakeMode":"now","deleteAfterRun":true,"delivery":{"mode":"announce","channel":"chat","to":%q}}`,
			time.Now().Add(time.Second).UTC().Format(time.RFC3339), message, to)), nil)
}
