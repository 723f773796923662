package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
)

func TestAgentContext(t *testing.T) {
	t.Parallel()
	t.Run("agents have a contextPruning of their own, field by field", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleUser && strings.HasPrefix(last.PlainText(), "spew") {
					return llmtest.Call(fmt.Sprint("c", n), "spew", `{}`)
				}
				return llmtest.Say("ok")
			})
			conf := modelWindow(36_000, `{"contextPruning": {"mode": "cache-ttl", "ttl": "5m"}}`)
			conf["agents.entries"] = json.RawMessage(
				`{"all": {"contextPruning": {"mode": "off"}}, "late": {"contextPruning": {"ttl": "1h"}}}`)
			c := Start(t, Options{Model: model, Config: conf, Tools: []tool.Tool{spewing(15_000)}}).Client()
			// pruned returns the number of results that are trimmed after a pause.
			pruned := func(agent string, pause time.Duration) (n int) {
				session := "agent:" + agent + ":main"
				time.Sleep(pause)
				before := len(model.Requests())
				c.Ask(session, "and")
				for _, m := range model.Requests()[before].Messages {
					if m.Role == llm.RoleTool && strings.Contains(m.PlainText(), "[Tool result trimmed:") {
						n++
					}
				}
				return n
			}
			for _, agent := range []string{"main", "all", "late"} {
				for _, text := range []string{"spew", "spew", "spew", "and", "and", "and"} {
					c.Ask("agent:"+agent+":main", text)
				}
			}
			got := map[string]int{}
			for _, agent := range []string{"main", "all", "late"} {
				got[agent] = pruned(agent, 6*time.Minute)
			}
			if diff := cmp.Diff(map[string]int{"main": 3, "all": 0, "late": 0}, got); diff != "" {
				t.Errorf("trimmed results after 6 minutes (-want +got):\n%s", diff)
			}
			if got := pruned("late", 61*time.Minute); got != 3 {
				t.Errorf("late: %d results are trimmed after its own time, want 3", got)
			}
			if got := pruned("all", 0); got != 0 {
				t.Errorf("all: %d results are trimmed", got)
			}
		})
	})
	t.Run("agents have a compaction of their own, field by field", func(t *testing.T) {
		t.Parallel()
		k := &talker{}
		conf := windowed(30_000, noFlush) // nobody saves notes before a compaction
		conf["models"] = json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 30000}, {"id": "small", "contextWindow": 30000}]}}}`)
		conf["agents.list"] = json.RawMessage(`[{"id": "main"}, {"id": "never", "compaction": {"enabled": false}}, {"id": "other", "compaction": {"model": "mock/small"}}]`)
		model := k.script()
		c := Start(t, Options{Model: model, Config: conf}).Client()
		wrote := map[string][]string{}
		for _, agent := range []string{"main", "never", "other"} {
			session := "agent:" + agent + ":main"
			before := len(k.summaries())
			for i := range 9 {
				c.Ask(session, filler(i, 2500))
			}
			if agent != "never" {
				c.until(session, 1)
			}
			for _, r := range k.summaries()[before:] {
				wrote[agent] = append(wrote[agent], r.Model)
			}
		}
		if len(wrote["main"]) == 0 || len(wrote["never"]) != 0 || len(wrote["other"]) == 0 || wrote["main"][0] != "m" ||
			wrote["other"][0] != "small" {
			t.Errorf("models that wrote summaries: %v", wrote)
		}
		for _, r := range model.Requests() {
			if strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "memory/") {
				t.Error("an agent with a compaction of its own saves notes, although agents.defaults says that none does")
			}
		}
	})
}
