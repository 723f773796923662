package policy

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/core/tool"
)

// fake is a tool that only has a spec.
type fake tool.Spec

func (f fake) Spec() tool.Spec                                   { return tool.Spec(f) }
func (fake) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// catalog has a tool for each kind of fact.
var catalog = func() Catalog {
	var set tool.Set
	add := func(group, names string, facts tool.Spec) {
		for n := range strings.FieldsSeq(names) {
			facts.Name, facts.Groups = n, []string{group}
			set = set.With(fake(facts))
		}
	}
	in := func(also ...string) tool.Spec { return tool.Spec{Sandboxed: tool.Inside, Names: also} }
	messaging := func(s tool.Subagents) tool.Spec {
		return tool.Spec{Sandboxed: tool.Inside, Subagents: s, Profiles: []string{"messaging"}}
	}
	outside := tool.Spec{Sandboxed: tool.Outside, Subagents: tool.NoSubagents}
	run := in("bash", "shell")
	run.InRuns = true
	add("group:fs", "read find grep", in())
	add("group:fs", "ls", in("list_dir"))
	add("group:fs", "write edit", tool.Spec{Sandboxed: tool.Inside, Effect: tool.Writes})
	add("group:fs", "apply_patch", tool.Spec{Sandboxed: tool.Inside, Effect: tool.Writes, With: "write", InRuns: true})
	add("group:runtime", "exec", run)
	add("group:runtime", "process", tool.Spec{Sandboxed: tool.Inside, InRuns: true})
	add("group:web", "web_search web_fetch", tool.Spec{})
	set = set.With(fake(tool.Spec{Name: "canvas", Groups: []string{"group:ui", tool.Extra}, Sandboxed: tool.Outside}))
	add("group:nodes", "nodes", tool.Spec{Sandboxed: tool.Outside, InRuns: true})
	add("group:memory", "memory_search memory_get", tool.Spec{})
	add("group:sessions", "sessions_list sessions_history", messaging(tool.Parents))
	add("group:sessions", "subagents", messaging(tool.AllSubagents))
	add("group:sessions", "session_status", tool.Spec{Sandboxed: tool.Inside, Profiles: []string{"minimal", "messaging"}})
	add("group:sessions", "sessions_search", tool.Spec{Sandboxed: tool.Inside, Subagents: tool.Parents})
	add("group:sessions", "sessions_yield", in())
	send, spawn, schedule, gateway := messaging(tool.NoSubagents), messaging(tool.Parents), outside, outside
	send.InRuns, spawn.InRuns, schedule.InRuns, gateway.InRuns = true, true, true, true
	schedule.Profiles, schedule.Names = []string{"coding"}, []string{"automations"}
	add("group:sessions", "sessions_send", send)
	add("group:sessions", "sessions_spawn", spawn)
	add("group:automation", "cron", schedule)
	add("group:automation", "gateway", gateway)
	add("group:messaging", "message", outside)
	add("group:ui", "browser", tool.Spec{Sandboxed: tool.Outside})
	add("group:agents", "agents_list skills", tool.Spec{Subagents: tool.NoSubagents})
	add("group:agents", "skill_workshop", tool.Spec{})
	add("group:agents", "plan", in("update_plan", "progress_card"))
	add("group:media", "image",
		tool.Spec{Sandboxed: tool.Inside, Profiles: []string{"coding"}, Names: []string{"view_image"}})
	return NewCatalog(set)
}()

// named returns tools of the catalog, and others without facts.
func named(names ...string) []tool.Spec {
	var out []tool.Spec
	for _, n := range names {
		t := tool.Spec{Name: n}
		for _, k := range catalog.tools {
			if k.Name == n {
				t = k
				t.Plugin = ""
			}
		}
		out = append(out, t)
	}
	return out
}
