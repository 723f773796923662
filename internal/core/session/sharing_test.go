package session_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
)

func TestSharing(t *testing.T) {
	t.Parallel()
	const me = chela.SessionKey("agent:a:main")
	self := session.Meta{Key: me, Agent: "a"}
	below := session.Meta{Key: "agent:a:subagent:1:subagent:2", Agent: "a"}
	foreign := session.Meta{Key: "agent:b:subagent:3", Agent: "b"} // started from me
	sibling := session.Meta{Key: "agent:a:work", Agent: "a"}
	other := session.Meta{Key: "agent:b:main", Agent: "b"}
	above := map[chela.SessionKey][]chela.SessionKey{below.Key: {"agent:a:subagent:1", me}, foreign.Key: {me}}
	for _, c := range []struct {
		name string
		s    session.Sharing
		want [5]bool // self, below, foreign, sibling, other
	}{
		{"self", session.Sharing{Visibility: "self"}, [5]bool{true}},
		{"the default", session.Sharing{}, [5]bool{true, true, true}},
		{"an unknown value", session.Sharing{Visibility: "every", Agents: []string{"*"}}, [5]bool{true, true, true}},
		{"agent", session.Sharing{Visibility: "agent", Agents: []string{"*"}}, [5]bool{true, true, true, true}},
		{"all without other agents", session.Sharing{Visibility: "all"}, [5]bool{true, true, true, true}},
		{"all with every agent", session.Sharing{Visibility: "all", Agents: []string{"*"}},
			[5]bool{true, true, true, true, true}},
		{"all with both agents", session.Sharing{Visibility: "all", Agents: []string{"a", "b"}},
			[5]bool{true, true, true, true, true}},
		{"all with one of them", session.Sharing{Visibility: "all", Agents: []string{"b"}}, [5]bool{true, true, true, true}},
		{"all in a sandbox", session.Sharing{Visibility: "all", Agents: []string{"*"}, Sandboxed: true},
			[5]bool{true, true, true}},
		{"self in a sandbox", session.Sharing{Visibility: "self", Sandboxed: true}, [5]bool{true}},
	} {
		c.s.Viewer = "a"
		var got [5]bool
		for i, m := range []session.Meta{self, below, foreign, sibling, other} {
			got[i] = c.s.May(me, m, above[m.Key])
		}
		if got != c.want {
			t.Errorf("%s: self, below, foreign, sibling, other: %v, want %v", c.name, got, c.want)
		}
	}
}
