package route

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	dm := chela.Address{Channel: "telegram", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "42"}}
	with := func(f func(*chela.Address)) chela.Address { a := dm; f(&a); return a }
	for _, c := range []struct {
		name  string
		table Table
		a     chela.Address
		want  chela.SessionKey
	}{
		{"local", Table{}, chela.Address{}, "agent:main:main"},
		{"SESS-01 direct", Table{}, dm, "agent:main:main"},
		{"SESS-01 direct, another channel", Table{}, with(func(a *chela.Address) { a.Channel = "whatsapp" }),
			"agent:main:main"},
		{"default agent", Table{Default: "work"}, dm, "agent:work:main"},
		{"per peer", Table{DMScope: PerPeer}, dm, "agent:main:direct:42"},
		{"RT-13 per channel and peer", Table{DMScope: PerChannelPeer}, dm, "agent:main:telegram:direct:42"},
		{"per account, channel and peer", Table{DMScope: PerAccountChannel}, dm, "agent:main:telegram:bot:direct:42"},
		{"group", Table{}, with(func(a *chela.Address) { a.Peer = chela.Peer{Kind: chela.Group, ID: "-100"} }),
			"agent:main:telegram:group:-100"},
		{"room", Table{}, with(func(a *chela.Address) { a.Peer = chela.Peer{Kind: chela.Room, ID: "C1"} }),
			"agent:main:telegram:channel:C1"},
		{"thread", Table{}, with(func(a *chela.Address) { a.Peer, a.Thread = chela.Peer{Kind: chela.Group, ID: "g"}, "7" }),
			"agent:main:telegram:group:g:thread:7"},
		{"id that contains :thread:", Table{},
			with(func(a *chela.Address) { a.Peer = chela.Peer{Kind: chela.Group, ID: "g:thread:7"} }),
			"agent:main:telegram:group:g%3Athread%3A7"},
		{"matrix", Table{}, with(func(a *chela.Address) { a.Peer = chela.Peer{Kind: chela.Group, ID: "!r:example.org"} }),
			"agent:main:telegram:group:!r:example.org"},
		{"blanks", Table{}, with(func(a *chela.Address) { a.Peer = chela.Peer{Kind: chela.Group, ID: "a b\n"} }),
			"agent:main:telegram:group:a%20b%0A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.table.Resolve(Query{Address: c.a})
			if got.Session != c.want || got.Agent != c.want.Agent() || got.MatchedBy != ByDefault {
				t.Errorf("got %+v, want %s", got, c.want)
			}
			if _, err := chela.ParseSessionKey(string(got.Session), "main"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDifferentIDs checks that no two chats share a session because of the
// characters of their ids.
func TestDifferentIDs(t *testing.T) {
	t.Parallel()
	ids := []string{"a b", "a%20b", "a%2520b", "a%", "a%25", "a\tb", "a%09b", "g:thread:7", "g%3Athread%3A7",
		"g:thread%3A7", "%", " ", "%20"}
	seen := map[chela.SessionKey]string{}
	for _, id := range ids {
		key := new(Table).Resolve(
			Query{Address: chela.Address{Channel: "c", Peer: chela.Peer{Kind: chela.Group, ID: id}}}).Session
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have the session %s", id, other, key)
		}
		seen[key] = id
	}
}
