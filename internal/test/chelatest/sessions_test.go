package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSessionTools checks which sessions a model may read.
func TestSessionTools(t *testing.T) {
	const key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz"
	start := func(t *testing.T, tools string) (*family, *Client) {
		t.Helper()
		f := newFamily()
		conf := Config{"agents.entries": json.RawMessage(`{"guest": {}, "third": {}}`)}
		if tools != "" {
			conf["tools"] = json.RawMessage(tools)
		}
		c := Start(t, Options{Model: f, Config: conf}).Client()
		for _, session := range []string{"agent:main:work", "agent:guest:main", "agent:third:main"} {
			c.Ask(session, "say the plan of "+session)
		}
		return f, c
	}
	read := func(c *Client, from, target string) string {
		return c.Ask(from, fmt.Sprintf(`sessions_history {"sessionKey": %q}`, target)).Text
	}
	const refused = "or this session may not see it"
	t.Run("XSESS-01 by default a session sees what was started from it, and a subagent no unrelated session",
		func(t *testing.T) {
			t.Parallel()
			f, c := start(t, `{"subagents": {"tools": {"allow": ["sessions_history", "sessions_list"]}}}`)
			for _, target := range []string{"agent:main:work", "agent:guest:main", "agent:main:missing"} {
				if got := read(c, "main", target); !strings.Contains(got, refused) || strings.Contains(got, "the plan") {
					t.Errorf("main reads %s: %q", target, got)
				}
			}
			c.Ask("main", task(`sessions_history {"sessionKey": "agent:main:work"}`, "label", "spy"))
			c.answer("told spy ok")
			list := c.Ask("main", `sessions_list {"kinds": ["subagent"], "messageLimit": 2}`).Text
			if !strings.Contains(list, `"count":1`) || !strings.Contains(list, `"label":"spy"`) ||
				strings.Contains(list, "agent:main:work\",\"kind") {
				t.Errorf("main lists %q", list)
			}
			_, child, _ := strings.Cut(list, `"key":"`)
			child, _, _ = strings.Cut(child, `"`)
			if got := read(c, "main", child); !strings.Contains(got, `"role":"assistant"`) {
				t.Errorf("main reads its subagent %s: %q", child, got)
			}
			if got := read(c, "agent:guest:main", child); !strings.Contains(got, refused) {
				t.Errorf("another agent reads the subagent: %q", got)
			}
			for _, r := range f.Requests() {
				for _, m := range r.Messages {
					if strings.Contains(systemOf(r), "# Subagent Context") && strings.Contains(m.PlainText(), "the plan") {
						t.Errorf("the subagent has read %q", m.PlainText())
					}
				}
			}
		})
	t.Run("LG-01 calls, results and texts of another session are read without keys", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, sharing)
		c.Ask("agent:guest:main", `web_fetch {"url":"http://127.0.0.1:1/?q=`+key+`"}`)
		c.Ask("agent:guest:main", "say "+key)
		for _, args := range []string{`"includeTools":true,"limit":50`, `"includeTools":true,"limit":2,"offset":2`,
			`"limit":50`} {
			got := c.Ask("main", `sessions_history {"sessionKey":"agent:guest:main",`+args+`}`).Text
			if strings.Contains(got, key) || strings.Contains(args, "50") && !strings.Contains(got, "redacted") {
				t.Errorf("%s: %s", args, got)
			}
			if tools := strings.Contains(got, "web_fetch"); strings.Contains(args, "includeTools") && strings.Contains(args,
				"50") && !tools || !strings.Contains(args, "includeTools") && strings.Contains(got, `"role":"tool"`) {
				t.Errorf("%s: %s", args, got)
			}
		}
	})
	t.Run("XSESS-05 sessions of other agents need visibility all and agentToAgent", func(t *testing.T) {
		t.Parallel()
		for tools, want := range map[string][3]bool{ // whether main reads its work, guest and third
			`{"sessions": {"visibility": "self"}}`: {false,
				false, false},
			`{"sessions": {"visibility": "agent"}, "agentToAgent": {"enabled": true}}`: {true, false,
				false},
			`{"sessions": {"visibility": "all"}}`: {true, false,
				false},
			`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true, "allow": ["main", "guest"]}}`: {true, true,
				false},
			`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true}}`: {true, true,
				true},
			`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true, "allow": ["guest"]}}`: {true, false,
				false},
			`{"sessions": {"visibility": "all"}, "deny": ["sessions_history"], "agentToAgent": {"enabled": true}}`: {false,
				false, false},
		} {
			_, c := start(t, tools)
			for i, target := range []string{"agent:main:work", "agent:guest:main", "agent:third:main"} {
				if got := read(c, "main", target); strings.Contains(got, "the plan of "+target) != want[i] {
					t.Errorf("%s: main reads %s: %q", tools, target, got)
				}
			}
		}
	})
	t.Run("XSESS-04 the history has no API key, and its size is limited", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, `{"sessions": {"visibility": "agent"}}`)
		c.Ask("agent:main:work", "say my key is "+key)
		c.Ask("agent:main:work", "say "+strings.Repeat("x", 5000))
		got := read(c, "main", "agent:main:work")
		if strings.Contains(got, key) || !strings.Contains(got, "my key is") {
			t.Errorf("the history has the key: %.300q", got)
		}
		if strings.Contains(got, strings.Repeat("x", 4001)) || !strings.Contains(got, "[truncated: the message has 4.9 KB]") {
			t.Errorf("a long message: %.300q", got)
		}
		for range 12 {
			c.Ask("agent:main:work", "say "+strings.Repeat("y", 5000))
		}
		got = read(c, "main", "agent:main:work")
		if len(got) > 90<<10 || !strings.Contains(got, `"truncated":true`) {
			t.Errorf("a long history has %d bytes", len(got))
		}
		if list := c.Ask("main", `sessions_list {"messageLimit": 20}`).Text; strings.Contains(list, key) ||
			!strings.Contains(list, "agent:main:work") {
			t.Errorf("the list: %.500q", list)
		}
	})
	t.Run("sessions_list knows the kinds of sessions", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, `{"sessions": {"visibility": "agent"}}`)
		for _, key := range []string{"agent:main:cron:daily", "agent:main:hook:mail", "agent:main:phone:group:g"} {
			c.Ask(key, "say hello")
		}
		for kind, want := range map[string]string{
			"cron":  "agent:main:cron:daily",
			"hook":  "agent:main:hook:mail",
			"group": "agent:main:phone:group:g",
			"main":  "agent:main:main",
			"other": "agent:main:work",
		} {
			got := c.Ask("main", fmt.Sprintf(`sessions_list {"kinds": [%q]}`, kind)).Text
			if !strings.Contains(got, `"count":1`) || !strings.Contains(got, want) ||
				!strings.Contains(got, `"kind":"`+kind+`"`) {
				t.Errorf("sessions of the kind %s: %q, want %s", kind, got, want)
			}
		}
	})
	t.Run("agents_list lists the agents whose subagents may be started", func(t *testing.T) {
		t.Parallel()
		_, c := start(t, "")
		if got := c.Ask("main", "agents_list {}").Text; !strings.Contains(got,
			`"requester":"main","agents":[{"id":"main","model":"mock/m"}]`) {
			t.Errorf("agents: %q", got)
		}
	})
}
