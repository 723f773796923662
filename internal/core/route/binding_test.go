package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

// topic is a message in a thread of a room, with everything that a binding may ask for.
var topic = Query{
	Address: chela.Address{Channel: "discord", Account: "default",
		Peer: chela.Peer{Kind: chela.Room, ID: "c1"}, Thread: "t1"},
	Guild: "g1", Team: "w1", Roles: []string{"member", "admin"},
}

// matches has, for each tier, what a binding says to match topic in that tier.
var matches = [...]struct {
	tier  Tier
	match string
}{
	{ByPeer, `"peer": {"kind": "channel", "id": "t1"}`},
	{ByParentPeer, `"peer": {"kind": "channel", "id": "c1"}`},
	{ByAnyPeer, `"peer": {"kind": "channel", "id": "*"}`},
	{ByRoles, `"guildId": "g1", "roles": ["admin", "owner"]`},
	{ByGuild, `"guildId": "g1"`},
	{ByTeam, `"teamId": "w1"`},
	{ByAccount, `"accountId": "default"`},
	{ByChannel, `"accountId": "*"`},
}

// bindings decodes bindings of the agents a1, a2, … on discord, one per text.
func bindings(t *testing.T, matches ...string) (out []Binding) {
	t.Helper()
	for i, m := range matches {
		if m != "" {
			m = ", " + m
		}
		var b Binding
		if err := json.Unmarshal(fmt.Appendf(nil, `{"agentId": "a%d", "match": {"channel": "discord"%s}}`, i+1, m),
			&b); err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// TestTiers checks each tier against those below it.
func TestTiers(t *testing.T) {
	t.Parallel()
	ids := map[Tier]string{
		ByPeer:       "ROUTE-01 RT-01",
		ByParentPeer: "ROUTE-02 RT-02",
		ByAnyPeer:    "RT-03",
		ByRoles:      "ROUTE-03 RT-04",
		ByGuild:      "ROUTE-04 RT-05",
		ByTeam:       "ROUTE-05 RT-06",
		ByAccount:    "ROUTE-06 RT-07",
		ByChannel:    "ROUTE-07 RT-08",
	}
	for i := range matches {
		tier := matches[i].tier
		t.Run(fmt.Sprintf("%s %s precedes all lower tiers", ids[tier], tier), func(t *testing.T) {
			var texts []string
			for _, m := range slices.Backward(matches[i:]) { // the winner is the last one
				texts = append(texts, m.match)
			}
			tab := Table{Bindings: bindings(t, texts...)}
			want := Route{Agent: chela.AgentID(fmt.Sprintf("a%d", len(texts))), MatchedBy: tier}
			want.Session = "agent:" + chela.SessionKey(want.Agent) + ":discord:channel:c1:thread:t1"
			if got := tab.Resolve(topic); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	t.Run("ROUTE-08 RT-11 without a matching binding, the default agent", func(t *testing.T) {
		tab := Table{Default: "ops", Bindings: bindings(t, `"guildId": "g2"`, `"accountId": "work"`)}
		if got := tab.Resolve(topic); got.Agent != "ops" || got.MatchedBy != ByDefault {
			t.Errorf("got %+v", got)
		}
	})
}

func TestMatch(t *testing.T) {
	t.Parallel()
	with := func(f func(*Query)) Query { q := topic; f(&q); return q }
	person := with(func(q *Query) {
		*q = Query{Address: chela.Address{Channel: "discord", Account: "default",
			Peer: chela.Peer{Kind: chela.Direct, ID: "42"}}}
	})
	forum := with(func(q *Query) { q.Address.Peer.Kind, q.Address.Thread = chela.Group, "7" })
	for _, c := range []struct {
		name     string
		q        Query
		bindings []string
		agent    chela.AgentID
		by       Tier
	}{
		{"ROUTE-09 the first of two bindings in a tier", topic, []string{`"guildId": "g1"`, `"guildId": "g1"`},
			"a1", ByGuild},
		{"ROUTE-10 a peer and a guild, of which only the peer matches", topic,
			[]string{`"peer": {"kind": "channel", "id": "c1"}, "guildId": "g2"`}, "main", ByDefault},
		{"ROUTE-11 RT-10 a thread in a room with a binding", topic, []string{`"peer": {"kind": "channel", "id": "c1"}`},
			"a1", ByParentPeer},
		{"a thread of a group", forum,
			[]string{`"peer": {"kind": "group", "id": "c1"}`, `"peer": {"kind": "group", "id": "c1:topic:7"}`}, "a2", ByPeer},
		{"the number of a topic is no peer", forum, []string{`"peer": {"kind": "group", "id": "7"}`}, "main", ByDefault},
		{"a room itself", with(func(q *Query) { q.Address.Thread = "" }),
			[]string{`"peer": {"kind": "channel", "id": "c1"}`}, "a1", ByPeer},
		{"RT-05 a guild or team that is not known", person, []string{`"guildId": "g1"`, `"teamId": "w1"`, ``},
			"a3", ByAccount},
		{"RT-09 one of the roles", topic, []string{`"guildId": "g1"`, `"guildId": "g1", "roles": ["admin"]`}, "a2", ByRoles},
		{"RT-09 none of the roles", with(func(q *Query) { q.Roles = []string{"guest"} }),
			[]string{`"guildId": "g1", "roles": ["admin"]`, `"guildId": "g1"`}, "a2", ByGuild},
		{"RT-16 without an account, the default one only", with(func(q *Query) { q.Address.Account = "work" }),
			[]string{``}, "main", ByDefault},
		{"RT-16 without an account, the default one", topic, []string{``}, "a1", ByAccount},
		{"RT-16 a channel with one account", with(func(q *Query) { q.Address.Account = "" }), []string{``}, "a1", ByAccount},
		{"RT-16 any account", with(func(q *Query) { q.Address.Account = "work" }),
			[]string{``, `"accountId": "*"`}, "a2", ByChannel},
		{"any account does not precede one", topic,
			[]string{`"accountId": "*", "guildId": "g1"`, `"accountId": "default", "guildId": "g1"`}, "a2", ByGuild},
		{"another kind of peer", person,
			[]string{`"peer": {"kind": "group", "id": "42"}`, `"peer": {"kind": "channel", "id": "*"}`}, "main", ByDefault},
		{"numbers, and an old kind", person, []string{`"peer": {"kind": "dm", "id": 42}`}, "a1", ByPeer},
		{"an unknown peer", with(func(q *Query) { q.Address.Peer = chela.Peer{Kind: chela.Direct} }),
			[]string{`"peer": {"kind": "direct", "id": "*"}`}, "main", ByDefault},
		{"another channel", with(func(q *Query) { q.Address.Channel = "slack" }),
			[]string{`"accountId": "*"`}, "main", ByDefault},
		{"a local client", Query{Guild: "g1"}, []string{`"guildId": "g1"`}, "main", ByDefault},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := Table{Bindings: bindings(t, c.bindings...)}
			got := tab.Resolve(c.q)
			if got.Agent != c.agent || got.MatchedBy != c.by || got.Session.Agent() != c.agent {
				t.Errorf("got %+v, want %s by %s", got, c.agent, c.by)
			}
		})
	}
	t.Run("bindings of another type have no effect", func(t *testing.T) {
		b := bindings(t, ``)
		b[0].Type = "acp"
		if got := (&Table{Bindings: b}).Resolve(topic); got.MatchedBy != ByDefault {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the default account of the configuration", func(t *testing.T) {
		tab := Table{Bindings: bindings(t, ``), Accounts: map[string]chela.AccountID{"discord": "work"}}
		work := with(func(q *Query) { q.Address.Account = "work" })
		if a, b := tab.Resolve(work), tab.Resolve(topic); a.MatchedBy != ByAccount || b.MatchedBy != ByDefault {
			t.Errorf("got %+v, %+v", a, b)
		}
	})
	t.Run("without a default agent, messages without a binding have no route", func(t *testing.T) {
		tab := Table{Strict: true, Bindings: bindings(t, `"guildId": "g1"`)}
		if got := tab.Resolve(person); got != (Route{}) {
			t.Errorf("got %+v", got)
		}
		if got := tab.Resolve(topic); got.Agent != "a1" {
			t.Errorf("got %+v", got)
		}
		if got := tab.Resolve(Query{}); got.Session != "agent:main:main" {
			t.Errorf("a local client: got %+v", got)
		}
	})
}

// TestScopes checks how direct conversations are grouped into sessions.
func TestScopes(t *testing.T) {
	t.Parallel()
	from := func(channel, id string) Query {
		return Query{Address: chela.Address{Channel: channel, Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: id}}}
	}
	links := Links(map[string][]ID{"ann": {"telegram:1", "discord:2"}, "zoe": {"telegram:1"}})
	for _, c := range []struct {
		name  string
		table Table
		q     Query
		want  chela.SessionKey
	}{
		{"RT-13 two senders, first", Table{DMScope: PerChannelPeer}, from("discord", "1"), "agent:main:discord:direct:1"},
		{"RT-13 two senders, second", Table{DMScope: PerChannelPeer}, from("discord", "2"), "agent:main:discord:direct:2"},
		{"RT-13 one session, first", Table{DMScope: Main}, from("discord", "1"), "agent:main:main"},
		{"RT-13 one session, second", Table{DMScope: Main}, from("discord", "2"), "agent:main:main"},
		{"RT-14 a linked person on a channel", Table{DMScope: PerPeer, Links: links}, from("telegram", "1"),
			"agent:main:direct:ann"},
		{"RT-14 and on another one", Table{DMScope: PerPeer, Links: links}, from("discord", "2"), "agent:main:direct:ann"},
		{"RT-14 another person", Table{DMScope: PerPeer, Links: links}, from("discord", "1"), "agent:main:direct:1"},
		{"RT-14 a channel stays separate in its scope", Table{DMScope: PerChannelPeer, Links: links}, from("discord", "2"),
			"agent:main:discord:direct:ann"},
		{"a binding's own scope",
			Table{Bindings: []Binding{{Agent: "ops", Match: Match{Channel: "discord", Account: Any},
				Session: Session{PerPeer}}}}, from("discord", "2"), "agent:ops:direct:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.table.Resolve(c.q).Session; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	has := func(id chela.AgentID) bool { return id == "ops" }
	for _, c := range []struct{ name, text, want string }{
		{"valid", `{"agentId": "Ops", "match": {"channel": "x", "peer": {"kind": "dm", "id": 1}, "roles": [1]}}`, ""},
		{"RT-12 an unknown agent", `{"agentId": "opps", "match": {"channel": "x"}}`,
			`bindings[0].agentId: unknown agent "opps"`},
		{"no agent", `{"match": {"channel": "x"}}`, "bindings[0].agentId is missing"},
		{"no channel", `{"agentId": "ops", "match": {}}`, "bindings[0].match.channel is missing"},
		{"a peer without an id", `{"agentId": "ops", "match": {"channel": "x", "peer": {"kind": "group"}}}`,
			"bindings[0].match.peer: want"},
		{"a peer without a kind", `{"agentId": "ops", "match": {"channel": "x", "peer": {"id": "1"}}}`,
			"bindings[0].match.peer: want"},
		{"an empty role", `{"agentId": "ops", "match": {"channel": "x", "roles": [" "]}}`, "bindings[0].match.roles"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Binding
			if err := json.Unmarshal([]byte(c.text), &b); err != nil {
				t.Fatal(err)
			}
			err := b.Check("bindings[0]", has)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && chela.HintOf(err) == "" {
				t.Error("no hint")
			}
		})
	}
}

// FuzzResolve checks that every message has a valid session of its agent, and that
// a binding determines it only if no binding of a higher tier matches alone.
func FuzzResolve(f *testing.F) {
	f.Add(`[{"agentId": "ops", "match": {"channel": "c", "peer": {"kind": "channel", "id": 1}}}]`, "c",
		"a", "1", "t", "g", "r")
	f.Add(`[{"agentId": "ops", "match": {"channel": "c", "accountId": "*", "guildId": "g", "roles": ["r"]}}, {"agentId": "b", "match": {"channel": "c"}}]`, "c", "a", " ", "", "g", "r")
	f.Fuzz(func(t *testing.T, text, channel, account, peer, thread, guild, role string) {
		var all []Binding
		if json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		for _, b := range all {
			if b.Check("b", func(id chela.AgentID) bool { return id != "" }) != nil {
				return
			}
		}
		for _, kind := range []chela.PeerKind{chela.Direct, chela.Group, chela.Room} {
			q := Query{
				Address: chela.Address{Channel: channel, Account: chela.AccountID(account),
					Peer: chela.Peer{Kind: kind, ID: peer}, Thread: thread},
				Guild: guild, Roles: []string{role},
			}
			got := (&Table{Bindings: all, DMScope: PerPeer}).Resolve(q)
			if !chela.ValidAgentID(string(got.Agent)) || got.Session.Agent() != got.Agent {
				t.Fatalf("got %+v", got)
			}
			if _, err := chela.ParseSessionKey(string(got.Session), "x"); err != nil && len(got.Session) <= 512 {
				t.Fatal(err)
			}
			if q.Address.Local() {
				continue
			}
			for i := range all {
				one := (&Table{Bindings: all[i : i+1]}).Resolve(q)
				if one.MatchedBy != ByDefault &&
					(got.MatchedBy == ByDefault || slices.Index(order[:], one.MatchedBy) < slices.Index(order[:], got.MatchedBy)) {
					t.Fatalf("got %+v, but binding %d alone gives %+v", got, i, one)
				}
			}
		}
	})
}
