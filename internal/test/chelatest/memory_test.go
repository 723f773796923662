package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

// TestMemory is about the tools memory_search and memory_get in a gateway.
func TestMemory(t *testing.T) {
	t.Parallel()
	t.Run("MEM-01 MEM-02 a note is found and read, and an edit is found at once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			g := Start(t, Options{Model: uses()})
			g.writeIn("workspace/memory/house.md", "# House\n\nThe router runs on the NAS.\n")
			c := g.Client()
			if end := c.Ask("main", `memory_search {"query":"where is the router?"}`); !strings.Contains(end.Text,
				"memory/house.md:1-3") || !strings.Contains(end.Text, "runs on the NAS") {
				t.Errorf("found %q", end.Text)
			}
			g.writeIn("workspace/memory/house.md", "# House\n\nThe router runs on the Raspberry now.\n")
			time.Sleep(2 * time.Second)
			if end := c.Ask("main", `memory_search {"query":"where is the router?"}`); !strings.Contains(end.Text, "Raspberry") {
				t.Errorf("after an edit %q", end.Text)
			}
			if end := c.Ask("main", `memory_get {"path":"memory/house.md","from":3,"lines":1}`); !strings.Contains(end.Text,
				"The router runs on the Raspberry now.") || strings.Contains(end.Text, "# House") {
				t.Errorf("read %q", end.Text)
			}
			if end := c.Ask("main", `memory_get {"path":"memory/house.md","from":40}`); !strings.Contains(end.Text,
				"the note has 3 lines") {
				t.Errorf("after its end %q", end.Text)
			}
			if end := c.Ask("main", `memory_search {"query":"the serial number of the piano"}`); !strings.Contains(end.Text,
				"No note answers that") {
				t.Errorf("nothing answers: %q", end.Text)
			}
			c.Close()
			g.Stop()
		})
	})
	t.Run("E2E-10 what was taught is found after a new conversation and a restart, in other words, with its place",
		func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
					last := r.Messages[len(r.Messages)-1]
					switch text := last.PlainText(); {
					case last.Role == llm.RoleTool && strings.Contains(text, "garden.md:"):
						return llmtest.Say(text)
					case last.Role == llm.RoleTool:
						return llmtest.Say("noted")
					case strings.HasPrefix(text, "remember"):
						return llmtest.Call("w", "write",
							`{"path": "memory/garden.md", "content": "# Garden\n\nThe tomatoes were planted behind the shed in May.\n"}`)
					default:
						return llmtest.Call("s", "memory_search", `{"query": "where did I plant my tomato?"}`)
					}
				})
				g := Start(t, Options{Dir: dir, Model: model})
				c := g.Client()
				if end := c.Ask("main", "remember that I planted the tomatoes behind the shed in May"); end.Text != "noted" {
					t.Errorf("taught: %q %s", end.Text, end.Error)
				}
				c.Ask("main", "/new")
				c.Close()
				g.Stop()
				g = Start(t, Options{Dir: dir, Model: model})
				c = g.Client()
				if end := c.Ask("main", "where is that plant for my salad again?"); !strings.Contains(end.Text,
					"behind the shed") ||
					!strings.Contains(end.Text, "memory/garden.md:1-3") {
					t.Errorf("found %q %s", end.Text, end.Error)
				}
				if m := model.Requests()[len(model.Requests())-2].Messages; len(m) != 1 {
					t.Errorf("the new conversation has %d messages", len(m))
				}
				c.Close()
				g.Stop()
			})
		})
	t.Run("MEM-03 only notes are read", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: uses()})
		g.writeIn("workspace/secret.txt", "the secret")
		g.writeIn("workspace/memory/a.md", "a note")
		for name, to := range map[string]string{"link.md": "../secret.txt", "folder": ".."} {
			if err := os.Symlink(to, filepath.Join(g.Dir, "workspace", "memory", name)); err != nil {
				needtest.Missing(t, "symbolic links")
			}
		}
		c := g.Client()
		for _, path := range []string{
			"../../etc/passwd", "/etc/passwd", "secret.txt", "memory/../secret.txt", "memory/../../x.md", "memory/link.md",
			"memory/folder/AGENTS.md", "AGENTS.md", "memory", "", "memory/.hidden.md",
		} {
			b, err := json.Marshal(path)
			if err != nil {
				t.Fatal(err)
			}
			if end := c.Ask("main", `memory_get {"path":`+string(b)+`}`); !strings.Contains(end.Text, "is not a note") &&
				!strings.Contains(end.Text, "there is no note") {
				t.Errorf("%s: %q", path, end.Text)
			}
		}
		if end := c.Ask("main", `memory_search {"query":"the secret"}`); !strings.Contains(end.Text, "No note answers") {
			t.Errorf("a link is searched: %q", end.Text)
		}
	})
	talk(t, "MEM-04 a group and its subagents get no notes, a direct chat and its subagents do", nil,
		func(t *testing.T, k *talkers) {
			k.g.writeIn("workspace/MEMORY.md", "The door code is 4071.")
			const search, get = `memory_search {"query": "door code"}`, `memory_get {"path": "MEMORY.md"}`
			for n, text := range []string{search, get, task(search), task(get)} {
				for kind, want := range map[chela.PeerKind]bool{chela.Direct: true, chela.Group: false, chela.Room: false} {
					id := fmt.Sprint(n, kind)
					at := chela.Address{Channel: "chat", Account: "bot", Peer: chela.Peer{Kind: kind, ID: id}}
					if kind == chela.Direct {
						at.Peer.ID = "ann"
					}
					before := len(k.Requests())
					if err := k.chat.Say(t.Context(), chela.Inbound{
						ID:        id,
						Address:   at,
						Sender:    chela.Sender{ID: "ann"},
						Text:      text,
						Mentioned: true,
					}); err != nil {
						t.Fatal(err)
					}
					k.settle()
					known, refused := false, false
					for _, r := range k.Requests()[before:] {
						if m := r.Messages[len(r.Messages)-1]; m.Role == llm.RoleTool {
							known = known || strings.Contains(m.PlainText(), "The door code is 4071.")
							refused = refused || strings.Contains(m.PlainText(), "the notes are private")
						}
						known = known || !want && strings.Contains(systemOf(r), "4071")
					}
					if known != want || refused == want {
						t.Errorf("%s in a %s chat: known %t, refused %t", text, kind, known, refused)
					}
				}
			}
		})
	t.Run("PL-08 MEM-10 without the slot there are neither tools nor a section of the prompt", func(t *testing.T) {
		t.Parallel()
		for name, conf := range map[string]Config{
			"slot":     {"plugins.slots": json.RawMessage(`{"memory": "none"}`)},
			"disabled": section("agents.defaults", `{"memorySearch": {"enabled": false}}`),
			"on":       {},
		} {
			model := uses()
			c := Start(t, Options{Model: model, Config: conf}).Client()
			c.Ask("main", "hello")
			reqs := model.Requests()
			tools := strings.Join(toolNames(reqs[len(reqs)-1]), " ")
			section := strings.Contains(lastSystem(model), "memory_search")
			if on := name == "on"; strings.Contains(tools, "memory_search") != on ||
				strings.Contains(tools, "memory_get") != on || section != on {
				t.Errorf("%s: tools %s, section %t", name, tools, section)
			}
		}
	})
}
