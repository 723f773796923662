package chelatest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// offered returns the tools that the model gets in a session, and those that
// clients are told, sorted.
func (c *Client) offered(model *llmtest.Script, session string) (got, told []string) {
	c.t.Helper()
	c.Ask(session, "hi")
	rs := model.Requests()
	for _, s := range rs[len(rs)-1].Tools {
		got = append(got, s.Name)
	}
	var can wire.ToolsEffective
	c.must(wire.MethodToolsEffective, wire.ToolsEffectiveGet{SessionKey: session}, &can)
	for _, g := range can.Groups {
		for _, x := range g.Tools {
			told = append(told, x.ID)
		}
	}
	slices.Sort(got)
	slices.Sort(told)
	return got, told
}

func TestOfferedTools(t *testing.T) {
	// The tools of this build that need no credential.
	const free = "agents_list apply_patch browser canvas cron edit exec find gateway grep image ls memory_get memory_search message nodes plan process read session_status " +
		"sessions_history sessions_list sessions_search sessions_send sessions_spawn sessions_yield skill_workshop subagents web_fetch web_search write"
	for _, tt := range []struct {
		name, tools, agents string
		want                map[string]string // by agent
	}{
		{"TC-01 without a section tools every tool that needs no credential is offered", "", "",
			map[string]string{"main": free, "ops": free}},
		{"TC-02 the profile minimal is exactly session_status", `{"profile": "minimal"}`, "",
			map[string]string{"main": "session_status", "ops": "session_status"}},
		{
			"TC-02 minimal for one agent", "", `{"profile": "minimal"}`,
			map[string]string{"main": free, "ops": "session_status"},
		},
		{
			"TC-02 minimal for all, another profile for one agent", `{"profile": "minimal"}`, `{"profile": "full"}`,
			map[string]string{"main": "session_status", "ops": free},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conf := Config{"agents.entries": json.RawMessage(`{"ops": {}}`)}
			if tt.agents != "" {
				conf["agents.entries"] = json.RawMessage(`{"ops": {"tools": ` + tt.agents + `}}`)
			}
			if tt.tools != "" {
				conf["tools"] = json.RawMessage(tt.tools)
			}
			model := echoing()
			c := Start(t, Options{Model: model, Config: conf}).Client()
			for agent, want := range tt.want {
				got, told := c.offered(model, "agent:"+agent+":main")
				if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
					t.Errorf("%s: the model gets other tools: %s", agent, diff)
				}
				if diff := cmp.Diff(got, told); diff != "" {
					t.Errorf("%s: clients are told other tools: %s", agent, diff)
				}
			}
		})
	}
}

// TestCallLimit has a model call tools as long as it gets any.
func TestCallLimit(t *testing.T) {
	for name, each := range map[string]int{
		"TH-10 the 21st call of 20, one per answer":   1,
		"TH-10 the 21st call of 20, seven per answer": 7,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				if len(r.Tools) == 0 || n > 100 {
					return llmtest.Say("the end")
				}
				s := llmtest.Step{}
				for range each {
					n++
					s.Parts = append(s.Parts,
						llmtest.Call(fmt.Sprint("c", n), "grep", fmt.Sprintf(`{"pattern":"word %d"}`, n)).Parts...)
				}
				return s
			})
			g := Start(t, Options{Model: model, Config: section("agents.defaults", `{"maxToolCallsPerTurn": 20}`)})
			c := g.Client()
			if end := c.Ask("main", "look around"); end.Text != "the end" {
				t.Errorf("the run ended %s %q %s", end.State, end.Text, end.Error)
			}
			carriedOut := func() (n int) {
				for _, x := range c.audited() {
					if x.Outcome == "ok" {
						n++
					}
				}
				return n
			}
			if got := carriedOut(); got != 20 {
				t.Errorf("%d calls were carried out, want 20", got)
			}
			rs := model.Requests()
			last := rs[len(rs)-1]
			if note := last.Messages[len(last.Messages)-1].PlainText(); len(last.Tools) != 0 ||
				!strings.Contains(note, "limit") {
				t.Errorf("the last request has %d tools and ends with %q", len(last.Tools), note)
			}
			for _, r := range rs[:len(rs)-1] {
				if len(r.Tools) == 0 || strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), llm.LimitText) {
					t.Errorf("the limit was reported after %d messages", len(r.Messages))
				}
			}
			if c.Ask("main", "again"); carriedOut() != 40 { // the limit is of a run
				t.Errorf("%d calls were carried out by two runs, want 40", carriedOut())
			}
		})
	}
}
