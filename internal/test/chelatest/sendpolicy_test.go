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

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// muted is a gateway with the channels chatter and phone, whose configuration is a file.
type muted struct {
	*Gateway
	t     *testing.T
	o     Options
	model *llmtest.Script
	fakes map[string]*channeltest.Fake
	n     int
}

// withMuted runs f with a gateway that has a section session.sendPolicy.
func withMuted(t *testing.T, name, policy string, f func(*testing.T, *muted)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := &muted{t: t, fakes: map[string]*channeltest.Fake{}}
			m.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				text := r.Messages[len(r.Messages)-1].PlainText()
				if to, ok := strings.CutPrefix(text, "tell "); ok {
					return llmtest.Call("c", "message",
						fmt.Sprintf(`{"action":"send","channel":"chatter","to":%q,"message":"told"}`, to))
				}
				s := llmtest.Say("re: " + text)
				s.Delay = 20 * time.Second // longer than the typing indicator and the preview wait
				return s
			})
			m.o = Options{Dir: t.TempDir(), Model: m.model}
			m.write(policy)
			m.start()
			f(t, m)
			m.Stop()
		})
	})
}

// write writes the configuration's file.
func (m *muted) write(policy string) {
	m.t.Helper()
	text := fmt.Sprintf(`{"channels": {"chatter": {"allowFrom": ["boss"]}, "phone": {"allowFrom": ["boss"]}}, "session": {"dmScope": "per-channel-peer", "sendPolicy": %s},
		"agents": {"entries": {"work": {}}}, "bindings": [{"agentId": "work", "match": {"channel": "chatter", "peer": {"kind": "group", "id": "9"}}}]}`, policy)
	if err := os.WriteFile(filepath.Join(m.o.Dir, "chela.json"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *muted) start() {
	m.t.Helper()
	m.fakes["chatter"], m.fakes["phone"] = &channeltest.Fake{}, &channeltest.Fake{}
	m.o.Channels = map[string]channel.Channel{"chatter": m.fakes["chatter"], "phone": m.fakes["phone"]}
	m.Gateway = Start(m.t, m.o)
}

// at returns a chat with its kind, such as "chatter group 7".
func at(chat string) (a chela.Address) {
	fmt.Sscan(chat, &a.Channel, &a.Peer.Kind, &a.Peer.ID)
	return a
}

// say writes a message in a chat and returns what the chat gets, and whether the platform
// was called for it at all.
func (m *muted) say(chat, text string) string {
	m.t.Helper()
	m.n++
	to := at(chat)
	fake := m.fakes[to.Channel]
	before, calls := len(fake.Texts(to)), len(m.calls(to))
	if err := fake.Say(m.t.Context(), chela.Inbound{
		ID:        fmt.Sprint(m.n),
		Address:   to,
		Sender:    chela.Sender{ID: "boss"},
		Text:      text,
		Mentioned: true,
	}); err != nil {
		m.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	got := strings.Join(fake.Texts(to)[before:], "|")
	if made := m.calls(to)[calls:]; got == "" && len(made) > 0 {
		m.t.Errorf("%s: %q: nothing is sent, but the platform is called: %v", chat, text, made)
	}
	return got
}

// calls returns the calls of the platform for a chat.
func (m *muted) calls(a chela.Address) (out []channeltest.Call) {
	for _, op := range []string{"send", "edit", "delete", "typing", "react"} {
		for _, c := range m.fakes[a.Channel].Calls(op) {
			if c.Address == a {
				out = append(out, c)
			}
		}
	}
	return out
}

// check says the second of each line in the first, and compares the answer.
func (m *muted) check(lines ...[3]string) {
	m.t.Helper()
	for _, l := range lines {
		if got := m.say(l[0], l[1]); got != l[2] {
			m.t.Errorf("%s: %q is answered with %q, want %q", l[0], l[1], got, l[2])
		}
	}
}

// last returns the text of the last message of a session.
func (m *muted) last(key string) string {
	h := m.Client().history(key)
	if len(h) == 0 {
		return ""
	}
	return h[len(h)-1].Text()
}

// quietGroups denies the groups of a channel.
const quietGroups = `{"rules": [{"action": "deny", "match": {"channel": "chatter", "chatType": "group"}}]}`

func TestSendPolicy(t *testing.T) {
	t.Run("SESS-13 the alerts of heartbeats", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m", "target": "last"}`}, func(_ *testing.T, b *beats) {
			b.say(at("tg direct 7"), "/send off")
			b.answers("the disk is full")
			b.after(30 * time.Minute)
			b.calls(1)
			b.last("skipped send-off")
			b.sent(at("tg direct 7"), "Sending: off.")
		})
	})
	withMuted(t, "SESS-13 in the groups of a denied channel the run happens and nothing is sent", quietGroups,
		func(t *testing.T, m *muted) {
			m.check([3]string{"chatter group 7", "hello", ""})
			if got := m.last("agent:main:chatter:group:7"); got != "re: hello" {
				t.Errorf("the transcript ends with %q", got)
			}
			m.check([3]string{"chatter direct boss", "hello", "re: hello"}, [3]string{"chatter channel 7", "hello", "re: hello"},
				[3]string{"phone group 7", "hello", "re: hello"})
			m.check([3]string{"chatter group 9", "hello", ""}) // of another agent
			if got := m.last("agent:work:chatter:group:9"); got != "re: hello" {
				t.Errorf("the transcript of the other agent ends with %q", got)
			}
			c := m.Client()
			for key, want := range map[string]string{
				"agent:main:chatter:group:7":   "deny",
				"agent:main:chatter:channel:7": "allow",
			} {
				if got := c.describe(key).SendPolicy; got != want {
					t.Errorf("the row of %s has sendPolicy %q, want %q", key, got, want)
				}
			}
			m.Stop()
			m.start()
			m.check([3]string{"chatter group 7", "again", ""}, [3]string{"chatter direct boss", "again", "re: again"})
		})
	withMuted(t, "SESS-13 a prefix of the session's key",
		`{"rules": [{"action": "deny", "match": {"rawKeyPrefix": "agent:work:"}}]}`, func(_ *testing.T, m *muted) {
			m.check([3]string{"chatter group 9", "hello", ""}, [3]string{"chatter group 7", "hello", "re: hello"})
		})
	withMuted(t, "SESS-13 /send of a session decides before the rules", quietGroups, func(t *testing.T, m *muted) {
		m.check([3]string{"chatter group 7", "/send", "Sending: off (default). Options: on, off, default."},
			[3]string{"chatter group 7", "/send on", "Sending: on."}, [3]string{"chatter group 7", "hello", "re: hello"},
			[3]string{"chatter group 9", "hello", ""})
		m.Stop()
		m.start()
		m.check([3]string{"chatter group 7", "hello", "re: hello"},
			[3]string{"chatter group 7", "/send inherit", "Sending: off (default)."}, [3]string{"chatter group 7", "hello", ""})
		if got := m.say("chatter group 7", "/status"); !strings.Contains(got, "- Sending: off (default)") {
			t.Errorf("/status: %q", got)
		}
		m.check([3]string{"chatter direct boss", "/send off", "Sending: off."}, [3]string{"chatter direct boss", "hello", ""})
	})
	withMuted(t, "SESS-13 the configuration may change while the gateway runs", `{"default": "deny"}`,
		func(t *testing.T, m *muted) {
			m.check([3]string{"chatter group 7", "hello", ""})
			c := m.Client()
			c.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{"session": {"sendPolicy": {"default": "allow"}}}`,
				BaseHash: c.hash()}, nil)
			time.Sleep(time.Second)
			m.check([3]string{"chatter group 7", "hello", "re: hello"})
			c.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{"session": {"sendPolicy": ` + quietGroups + `}}`,
				BaseHash: c.hash()}, nil)
			time.Sleep(time.Second)
			m.check([3]string{"chatter group 7", "hello", ""}, [3]string{"chatter direct boss", "hello", "re: hello"})
		})
	withMuted(t, "SESS-13 the message tool and scheduled jobs of other sessions", quietGroups,
		func(t *testing.T, m *muted) {
			if got := m.say("chatter channel 8", "tell group:7"); !strings.Contains(got,
				"sending to chatter:7 is off (/send of the session, or session.sendPolicy)") {
				t.Errorf("the tool answers %q", got)
			}
			if made := m.calls(at("chatter group 7")); len(made) > 0 {
				t.Errorf("the tool sent: %v", made)
			}
			c := m.Client()
			for _, to := range []string{"group:7", "channel:8"} {
				var job wire.CronJob
				c.must(wire.MethodCronAdd,
					json.RawMessage(
						fmt.Sprintf(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":"report"},
				"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"chatter","to":%q}}`,
							time.Now().Add(time.Minute).UTC().Format(time.RFC3339), to)), &job)
				time.Sleep(5 * time.Minute)
				var page wire.CronRunsPage
				c.must(wire.MethodCronRuns, map[string]any{"id": job.ID}, &page)
				want := map[string]string{
					"group:7":   "ok not-delivered sending to the chat is off",
					"channel:8": "ok delivered ",
				}[to]
				if len(page.Entries) != 1 ||
					fmt.Sprint(page.Entries[0].Status, " ", page.Entries[0].Delivery, " ", page.Entries[0].DeliveryError) != want {
					t.Errorf("%s: runs %+v, want %q", to, page.Entries, want)
				}
			}
			if made := m.calls(at("chatter group 7")); len(made) > 0 {
				t.Errorf("the job sent: %v", made)
			}
		})
}
