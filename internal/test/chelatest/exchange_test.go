package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// sharing is the configuration with which every session may write to every other one.
const sharing = `{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true}}`

// talkers is a gateway with the agents main and guest in a synctest bubble. Their model
// is a family.
type talkers struct {
	*family
	*Client
	g    *Gateway
	chat *channeltest.Fake
	st   store.Store
	t    *testing.T
}

// talk runs a test with a gateway that has a configuration.
func talk(t *testing.T, name string, conf Config, f func(t *testing.T, k *talkers), tools ...tool.Tool) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			k := &talkers{family: newFamily(), chat: new(channeltest.Fake), t: t}
			full := Config{
				"agents.entries": json.RawMessage(`{"guest": {}, "third": {}}`), "tools": json.RawMessage(sharing),
				"channels": json.RawMessage(`{"chat": {"allowFrom": ["ann"]}}`),
			}
			for path, v := range conf {
				full[path] = v
			}
			k.g = Start(t, Options{
				Model: k.family, Config: full, Tools: tools, Channels: map[string]channel.Channel{"chat": k.chat},
				Wrap: func(s store.Store) store.Store { k.st = s; return s },
			})
			k.Client = k.g.Client()
			f(t, k)
			k.Close()
			k.g.Stop()
		})
	})
}

// send returns a line that calls sessions_send.
func send(target, text string, timeout int) string {
	b, err := json.Marshal(map[string]any{"sessionKey": target, "message": text, "timeoutSeconds": timeout})
	if err != nil {
		panic(err)
	}
	return "sessions_send " + string(b)
}

// say lets a person write in a direct chat.
func (k *talkers) say(id string, a chela.Address, text string) {
	k.t.Helper()
	if err := k.chat.Say(k.t.Context(),
		chela.Inbound{ID: id, Address: a, Sender: chela.Sender{ID: a.Peer.ID}, Text: text}); err != nil {
		k.t.Fatal(err)
	}
}

// settle waits until nothing happens any more.
func (k *talkers) settle() { time.Sleep(time.Minute) }

func (k *talkers) view(f func(store.Reader) error) {
	k.t.Helper()
	if err := k.st.View(k.t.Context(), f); err != nil {
		k.t.Fatal(err)
	}
}

// runs returns the runs that wrote the transcripts of sessions.
func (k *talkers) runs(r store.Reader, keys ...chela.SessionKey) (rows []run.Run) {
	k.t.Helper()
	seen := map[chela.RunID]bool{}
	for _, key := range keys {
		m, err := r.Sessions().Get(key)
		if err != nil {
			k.t.Fatal(err)
		}
		entries, err := r.Sessions().Entries(m.ID, 0, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, e := range entries {
			if e.Run == "" || seen[e.Run] {
				continue
			}
			seen[e.Run] = true
			row, err := r.Runs().Get(e.Run)
			if err != nil {
				k.t.Fatal(err)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// asked returns the last messages of all requests that contain a text.
func (k *talkers) asked(piece string) (texts []string) {
	for _, r := range k.Requests() {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleUser && strings.Contains(last.PlainText(), piece) {
			texts = append(texts, last.PlainText())
		}
	}
	return texts
}

var turnOf = regexp.MustCompile(`sourceSession=(\S+) sourceTool=sessions_send turn=(\d)/(\d)`)

// turns returns the turns after the reply: who has answered, and which turn it was.
func (k *talkers) turns() (turns []string) {
	for _, text := range k.asked(" turn=") {
		head, _, _ := strings.Cut(text, "\n")
		m := turnOf.FindStringSubmatch(head)
		if m == nil {
			continue
		}
		turns = append(turns, m[1]+" "+m[2]+"/"+m[3])
	}
	return turns
}

func TestExchange(t *testing.T) {
	const guest, work = "agent:guest:main", "agent:main:work"
	talk(t, "XSESS-02 a message with a timeout returns the reply, and one without returns at once", nil,
		func(t *testing.T, k *talkers) {
			end := k.Ask("main", send(guest, "say forty-two", 20))
			if !strings.Contains(end.Text, `"status":"ok","reply":"forty-two"`) ||
				!strings.Contains(end.Text, `"sessionKey":"agent:guest:main"`) {
				t.Errorf("with a timeout: %q", end.Text)
			}
			end = k.Ask("main", send(guest, "hold it\nsay later", 0))
			if !strings.Contains(end.Text, `"status":"accepted"`) || strings.Contains(end.Text, "later\"") {
				t.Errorf("without: %q", end.Text)
			}
			k.release("it")
			k.settle()
			if got := k.asked("sourceSession=agent:guest:main"); len(got) == 0 {
				t.Error("the reply did not reach the sender")
			}
		})
	// not one of the configuration
	const secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz"
	talk(t, "LG-01 the answer, a late one and what is announced reach the other agent without a key", nil,
		func(t *testing.T, k *talkers) {
			texts := []string{k.Ask("main", send(guest, "say it is "+secret, 20)).Text}
			k.settle()
			k.Ask("main", send(guest, "hold it\nsay now "+secret, 1))
			time.Sleep(5 * time.Second)
			k.release("it")
			k.settle()
			texts = append(texts, k.asked("")...)
			found := 0
			for _, text := range texts {
				// what the sender wrote itself
				text = strings.NewReplacer("say it is "+secret, "", "say now "+secret, "").Replace(text)
				found += strings.Count(text, "[redacted]")
				if strings.Contains(text, secret) {
					t.Errorf("a model reads %q", text)
				}
			}
			if found < 2 {
				t.Errorf("%d marks in %q", found, texts)
			}
		})
	talk(t, "a message is marked as inter-session, and never as a user's", nil, func(t *testing.T, k *talkers) {
		k.Ask("main", send(guest, "/stop this and that", 20))
		got := k.asked("[Inter-session message] sourceSession=agent:main:main sourceTool=sessions_send isUser=false\n/stop this and that\n")
		if len(got) == 0 || !strings.HasPrefix(got[0], "[Inter-session message]") {
			t.Fatalf("the target reads %q", got)
		}
		for _, m := range k.history(guest) {
			if m.Role == wire.RoleUser {
				t.Errorf("a user's message: %q", m.Text())
			}
		}
		k.view(func(r store.Reader) error {
			for _, row := range k.runs(r, guest) {
				if row.Origin.Kind != chela.OriginAgent || row.Lane != "nested" || !row.Address.Local() {
					t.Errorf("run %s: %+v, lane %s, address %+v", row.ID, row.Origin, row.Lane, row.Address)
				}
			}
			m, err := r.Sessions().Get(guest)
			if !m.Address.Local() || m.Title != "" {
				t.Errorf("the session: %+v", m)
			}
			return err
		})
	})
	talk(t, "XSESS-03 two agents answer each other in at most five turns", nil, func(t *testing.T, k *talkers) {
		k.Ask("main", send(guest, "say hello", 20))
		k.settle()
		want := []string{guest + " 1/5", "agent:main:main 2/5", guest + " 3/5", "agent:main:main 4/5", guest + " 5/5"}
		if got := k.turns(); !slices.Equal(got, want) {
			t.Errorf("turns: %q, want %q", got, want)
		}
		if got := k.asked("The exchange with that session has ended"); len(got) != 1 ||
			!strings.Contains(got[0], "Your reply: hello\nThe latest answer: answer to") {
			t.Errorf("announced: %q", got)
		}
	})
	for _, n := range []int{0, 2} {
		conf := Config{"session.agentToAgent": json.RawMessage(fmt.Sprintf(`{"maxPingPongTurns": %d}`, n))}
		talk(t, fmt.Sprintf("at most %d turns if the configuration says so", n), conf, func(t *testing.T, k *talkers) {
			k.Ask("main", send(guest, "say hello", 20))
			k.settle()
			if got := k.turns(); len(got) != n {
				t.Errorf("turns: %q", got)
			}
			if got := k.asked("has ended"); len(got) != 1 {
				t.Errorf("announced: %q", got)
			}
		})
	}
	talk(t, "REPLY_SKIP ends the exchange", nil, func(t *testing.T, k *talkers) {
		k.Ask("main", send(guest, "say say REPLY_SKIP", 20))
		k.settle()
		if got := k.turns(); len(got) != 1 {
			t.Errorf("turns: %q", got)
		}
		if got := k.asked("has ended"); len(got) != 1 || strings.Contains(got[0], "REPLY_SKIP\nThe latest") {
			t.Errorf("announced: %q", got)
		}
		for _, m := range k.history("main") {
			if m.Text() == "REPLY_SKIP" {
				t.Error("the history shows REPLY_SKIP")
			}
		}
	})
	talk(t, "the target announces the outcome in its chat, and ANNOUNCE_SKIP posts nothing", nil,
		func(t *testing.T, k *talkers) {
			ann := chela.Address{Channel: "chat", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
			k.say("1", ann, "say hi")
			k.settle()
			k.Ask(work, send("agent:main:main", "say say REPLY_SKIP", 20))
			k.settle()
			got := k.chat.Texts(ann)
			if len(got) != 2 || got[0] != "hi" || !strings.Contains(got[1], "has ended") {
				t.Fatalf("posted %q", got)
			}
			k.Ask(work, send("agent:main:main", "say say REPLY_SKIP\nsay ANNOUNCE_SKIP", 20))
			k.settle()
			if got := k.chat.Texts(ann); len(got) != 2 {
				t.Errorf("ANNOUNCE_SKIP posted %q", got)
			}
			if got := k.asked("has ended"); len(got) != 2 {
				t.Errorf("announced: %q", got)
			}
		})
	talk(t, "a session cannot send to itself, to a thread, to a session that does not exist, or nowhere", nil,
		func(t *testing.T, k *talkers) {
			for call, want := range map[string]string{
				send("main", "say x", 1): "cannot send messages to itself",
				send("agent:main:chat:group:g:thread:7", "say x",
					1): "is the session of a thread; send the message to agent:main:chat:group:g",
				send("agent:main:chat:group:g:topic:7", "say x",
					1): "send the message to agent:main:chat:group:g",
				send("agent:main:nobody", "say x",
					1): "there is no session agent:main:nobody",
				send("agent:nobody:main", "say x",
					1): "there is no session agent:nobody:main",
				`sessions_send {"message": "x"}`:                                            "sessionKey, label or agentId is required",
				`sessions_send {"sessionKey": "a", "label": "b", "message":"x"}`:            "give one of them",
				`sessions_send {"label": "b", "message": "x"}`:                              `no session with the label`,
				`sessions_send {"agentId": "guest", "message": " "}`:                        "message is required",
				`sessions_send {"agentId": "guest", "message": "x", "timeoutSeconds": 601}`: "600",
			} {
				if end := k.Ask("main", call); !strings.Contains(end.Text, want) || !strings.Contains(end.Text, "error") {
					t.Errorf("%s: %q, want %q", call, end.Text, want)
				}
			}
			if got := k.asked("[Inter-session"); len(got) > 0 {
				t.Errorf("sent: %q", got)
			}
		})
	talk(t, "the target can be named by its label or its agent", nil, func(t *testing.T, k *talkers) {
		for _, s := range []string{work, "agent:guest:other", "agent:guest:main"} {
			k.Ask(s, "say plan")
			label := "desk"
			k.must(wire.MethodSessionsPatch,
				map[string]any{"key": s, "label": label + map[string]string{"agent:guest:main": "2"}[s]}, nil)
		}
		for args, want := range map[string]string{
			`"agentId": "guest"`:                        `"sessionKey":"agent:guest:main"`,
			`"agentId": "third"`:                        `"sessionKey":"agent:third:main"`,
			`"label": "desk2"`:                          `"sessionKey":"agent:guest:main"`,
			`"label": "desk", "agentId": "guest"`:       `"sessionKey":"agent:guest:other"`,
			`"sessionKey": "other", "agentId": "guest"`: `"sessionKey":"agent:guest:other"`,
			`"label": "desk"`:                           "several sessions have the label",
		} {
			if end := k.Ask("main", `sessions_send {"message": "say yes", "timeoutSeconds": 20, `+args+
				`}`); !strings.Contains(end.Text, want) {
				t.Errorf("%s: %q, want %q", args, end.Text, want)
			}
		}
	})
	talk(t, "a target that was deleted after it was listed is reported", nil, func(t *testing.T, k *talkers) {
		k.Ask(work, "say plan")
		if list := k.Ask("main", "sessions_list {}").Text; !strings.Contains(list, work) {
			t.Fatalf("list: %q", list)
		}
		k.must(wire.MethodSessionsDelete, map[string]any{"key": work}, nil)
		if end := k.Ask("main", send(work, "say x", 5)); !strings.Contains(end.Text, "there is no session "+work) {
			t.Errorf("%q", end.Text)
		}
		k.Ask(work, "say plan")
		asking := k.Send("main", send(work, "hang", 300))
		k.settle()
		k.must(wire.MethodSessionsDelete, map[string]any{"key": work}, nil)
		if end := k.Await(asking); !strings.Contains(end.Text, `"status":"error"`) {
			t.Errorf("deleted while it answers: %q", end.Text)
		}
		k.Ask(work, "say plan")
		k.Send(work, "hang")
		k.settle()
		asking = k.Send("main", send(work, "say x", 300))
		k.settle()
		k.must(wire.MethodSessionsDelete, map[string]any{"key": work}, nil)
		if end := k.Await(asking); !strings.Contains(end.Text, `"status":"error"`) {
			t.Errorf("deleted before it answers: %q", end.Text)
		}
	})
	talk(t, "a target that was deleted after its reply does not come back", nil, func(t *testing.T, k *talkers) {
		k.Ask(work, "say plan")
		k.Ask("main", send(work, "say hold it", 20))
		k.settle()
		if got := k.turns(); len(got) != 1 {
			t.Fatalf("turns: %q", got)
		}
		k.must(wire.MethodSessionsDelete, map[string]any{"key": work}, nil)
		k.release("it")
		k.settle()
		if got := append(k.turns()[1:], k.asked("has ended")...); len(got) > 0 {
			t.Errorf("then: %q", got)
		}
		k.view(func(r store.Reader) error {
			if m, err := r.Sessions().Get(work); !errors.Is(err, chela.ErrNotFound) {
				t.Errorf("the session is there: %+v, %v", m, err)
			}
			return nil
		})
	})
	talk(t, "a reply for a sender that was deleted after it stopped waiting ends the turn", nil,
		func(t *testing.T, k *talkers) {
			k.Ask(work, "say plan")
			k.Ask("agent:main:asker", send(work, "hold it\nsay forty-two", 1))
			k.must(wire.MethodSessionsDelete, map[string]any{"key": "agent:main:asker"}, nil)
			k.release("it")
			k.settle()
			k.view(func(r store.Reader) error {
				if active, err := r.Runs().Active(""); len(active) > 0 || err != nil {
					t.Errorf("still running: %+v, %v", active, err)
				}
				return nil
			})
			if end := k.Ask(work, "say next"); end.Text != "next" {
				t.Errorf("then: %+v", end)
			}
		})
	talk(t, "a run without a visible text returns no_reply, and nothing follows", nil, func(t *testing.T, k *talkers) {
		for _, text := range []string{"say NO_REPLY", "say REPLY_SKIP", "say"} {
			end := k.Ask("main", send(guest, text, 20))
			if !strings.Contains(end.Text, `"status":"no_reply"`) || strings.Contains(end.Text, "reply\":\"") {
				t.Errorf("%s: %q", text, end.Text)
			}
		}
		k.settle()
		if got := append(k.turns(), k.asked("has ended")...); len(got) > 0 {
			t.Errorf("then: %q", got)
		}
	})
	talk(t, "a reply that comes after the timeout reaches the sender once, and its answer the chat", nil,
		func(t *testing.T, k *talkers) {
			ann := chela.Address{Channel: "chat", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}}
			say := func(id, text string) {
				k.say(id, ann, text)
				k.settle()
			}
			say("1", send(guest, "hold it\nsay forty-two", 2)+"\nthen say no reply yet")
			if got := k.chat.Texts(ann); !slices.Equal(got, []string{"no reply yet"}) {
				t.Fatalf("before the reply: %q", got)
			}
			k.release("it")
			k.settle()
			got := k.chat.Texts(ann)
			if len(got) != 2 || !strings.Contains(got[1], "<reply>\nforty-two\n</reply>") {
				t.Errorf("after it: %q", got)
			}
			if got := k.turns(); len(got) != 0 {
				t.Errorf("turns: %q", got)
			}
			if got := k.asked("has ended"); len(got) != 1 {
				t.Errorf("announced: %q", got)
			}
			say("2", send(guest, "hold that\nsay NO_REPLY", 2)+"\nthen say no reply yet")
			k.release("that")
			k.settle()
			if got := k.asked("there will be no reply (no_reply)"); len(got) != 1 {
				t.Errorf("told: %q", got)
			}
		})
	for _, mode := range queue.Modes {
		conf := Config{"messages.queue": json.RawMessage(fmt.Sprintf(`{"mode": %q}`, mode))}
		talk(t, "a message to a busy session follows its queue mode "+string(mode), conf, func(t *testing.T, k *talkers) {
			busy := k.Send(work, "hold it\nsessions_list {}\nthen say listed")
			k.waitHeld(t, "it")
			asking := k.Send("main", send(work, "say joined", 300))
			k.settle()
			k.release("it")
			steers := mode == queue.Steer || mode == queue.SteerBacklog
			texts := map[string]string{}
			for len(texts) < 2 {
				ev := <-k.Events()
				var chat wire.Chat
				if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State == wire.StateFinal &&
					(chat.RunID == busy || chat.RunID == asking) {
					texts[chat.RunID] = chat.Message.Text()
				}
			}
			if want := map[bool]string{true: "joined", false: "listed"}[steers]; texts[busy] != want {
				t.Errorf("the run in progress answers %q, want %q", texts[busy], want)
			}
			if !strings.Contains(texts[asking], `"status":"ok","reply":"joined"`) {
				t.Errorf("the sender gets %q", texts[asking])
			}
			k.settle()
			if n, want := len(k.asked("say joined\n\n")),
				map[bool]int{true: 2, false: 1}[mode == queue.SteerBacklog]; n != want {
				t.Errorf("the message was answered %d times, want %d", n, want)
			}
			if got := k.turns(); len(got) != 5 {
				t.Errorf("turns: %q", got)
			}
			k.view(func(r store.Reader) error {
				for _, row := range k.runs(r, "agent:main:main") {
					if strings.HasSuffix(string(row.ID), ":1") &&
						strings.HasSuffix(string(row.Parent), ":later") != (mode == queue.SteerBacklog) {
						t.Errorf("the reply is that of the run %s", row.Parent)
					}
				}
				return nil
			})
		})
	}
	talk(t, "a sender with fewer scopes gives the target no more, and steers no run with more",
		Config{"messages.queue": json.RawMessage(`{"mode": "steer"}`)}, func(t *testing.T, k *talkers) {
			cl, err := client.Dial(t.Context(),
				client.Options{Dial: k.g.Dial, Once: true, Scopes: []string{wire.ScopeRead, wire.ScopeWrite}})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			low := &Client{Client: cl, t: t}
			busy := k.Send(work, "hold it\nsessions_list {}\nthen say listed")
			k.waitHeld(t, "it")
			asking := low.Send("main", send(work, "ownersonly {}", 300))
			k.settle()
			k.release("it")
			if end := k.Await(busy); end.Text != "listed" {
				t.Errorf("the owner's run answers %q", end.Text)
			}
			if end := low.Await(asking); !strings.Contains(end.Text, `only the owner may use this tool`) {
				t.Errorf("the sender gets %q", end.Text)
			}
			k.settle()
			k.view(func(r store.Reader) error {
				n := 0
				for _, row := range k.runs(r, work, "agent:main:main") {
					if row.Origin.Kind == chela.OriginAgent {
						n++
						if row.Principal.IsOwner() || !row.Principal.May(chela.ScopeWrite) {
							t.Errorf("run %s has the scopes %v", row.ID, row.Principal.Scopes)
						}
					}
				}
				if n < 2 {
					t.Errorf("%d runs of the exchange", n)
				}
				return nil
			})
			if end := k.Ask("main", send(work, "ownersonly {}", 300)); strings.Contains(end.Text, "only the owner") {
				t.Errorf("the owner's message: %q", end.Text)
			}
		}, ownersOnly{})
	talk(t, "a session that may not be seen is not found by its label, and does not make another one ambiguous", Config{
		"tools": json.RawMessage(`{"sessions": {"visibility": "agent"}}`),
	}, func(t *testing.T, k *talkers) {
		k.Ask(guest, "say plan")
		k.must(wire.MethodSessionsPatch, map[string]any{"key": guest, "label": "desk"}, nil)
		const call = `sessions_send {"label": "desk", "message": "say fine", "timeoutSeconds": 60}`
		if end := k.Ask("main", call); !strings.Contains(end.Text, `there is no session with the label`) ||
			strings.Contains(end.Text, guest) {
			t.Errorf("that of another agent: %q", end.Text)
		}
		k.Ask(work, "say plan")
		k.must(wire.MethodSessionsPatch, map[string]any{"key": work, "label": "desk"}, nil)
		if end := k.Ask("main", call); !strings.Contains(end.Text, `"sessionKey":"`+work+`"`) {
			t.Errorf("with one of its own: %q", end.Text)
		}
	})
	talk(t, "at most 20 messages of other sessions wait for a session",
		Config{"session.agentToAgent": json.RawMessage(`{"maxPingPongTurns": 0}`)}, func(t *testing.T, k *talkers) {
			k.Send(guest, "hold it\nsay free")
			k.waitHeld(t, "it")
			for i := range 22 {
				want := `"status":"accepted"`
				if i >= 20 {
					want = "20 messages of other sessions wait for the session " + guest
				}
				if end := k.Ask("main", send(guest, fmt.Sprint("say ", i), 0)); !strings.Contains(end.Text, want) {
					t.Errorf("message %d: %q, want %q", i+1, end.Text, want)
				}
			}
			k.release("it")
			k.settle()
			if end := k.Ask("main", send(guest, "say again", 60)); !strings.Contains(end.Text, `"reply":"again"`) {
				t.Errorf("when they are answered: %q", end.Text)
			}
		})
	for how, call := range map[string]string{
		"at once": send(guest, `say say read {"path":"AGENTS.md"}`, 30), "late": send(guest, "hold it\nsay done", 1),
	} {
		talk(t, "the steps of an exchange have no more tools than the run that began it: "+how, nil,
			func(t *testing.T, k *talkers) {
				message, err := json.Marshal("go\n" + call)
				if err != nil {
					t.Fatal(err)
				}
				k.must(wire.MethodCronAdd,
					json.RawMessage(
						fmt.Sprintf(`{"name":"x","schedule":{"kind":"at","at":%q},"payload":{"kind":"agentTurn","message":%s,
				"toolsAllow":["sessions_send"]},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`,
							time.Now().Add(time.Second).UTC().Format(time.RFC3339), message)), nil)
				k.settle()
				if how == "late" {
					k.release("it")
					k.settle()
				}
				steps := 0
				for _, r := range k.Requests() {
					if strings.Contains(requestText(r), "sourceTool=sessions_send") {
						steps++
					}
					if got := toolNames(r); !slices.Equal(got, []string{"sessions_send"}) {
						t.Errorf("%.200q has %q", r.Messages[len(r.Messages)-1].PlainText(), got)
					}
				}
				if steps < 2 {
					t.Errorf("%d requests of steps", steps)
				}
			})
	}
	talk(t, "a message of a client with the id of a step is no step", nil, func(t *testing.T, k *talkers) {
		k.must(wire.MethodChatSend,
			wire.ChatSend{SessionKey: guest, Message: "say hello", IdempotencyKey: exchange.Step{Exchange: "mine"}.ID()}, nil)
		k.settle()
		if got := append(k.turns(), k.asked("has ended")...); len(got) > 0 {
			t.Errorf("then: %q", got)
		}
	})
	talk(t, "a chain of messages between sessions is bounded", nil, func(t *testing.T, k *talkers) {
		call := "say the end"
		keys := []string{"agent:guest:a", "agent:guest:b", "agent:guest:c", "agent:guest:d", "agent:guest:e", "agent:guest:f"}
		for _, key := range keys {
			k.Ask(key, "say ready")
			call = send(key, call, 60)
		}
		end := k.Ask("main", call)
		if !strings.Contains(end.Text, "follows from 5 messages between sessions") {
			t.Errorf("%q", end.Text)
		}
		if got := k.asked("say the end\n\n"); len(got) > 0 {
			t.Errorf("the last session was asked: %q", got)
		}
	})
	talk(t, "a turn of an exchange cannot send another message", nil, func(t *testing.T, k *talkers) {
		k.Ask("main", send(guest, "say "+send("agent:third:main", "say no", 1), 20))
		k.settle()
		var refused bool
		for _, r := range k.Requests() {
			refused = refused || strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "this turn belongs to an exchange")
		}
		if got := k.asked("say no\n\n"); !refused || len(got) > 0 {
			t.Errorf("refused: %v, sent: %q", refused, got)
		}
	})
	talk(t, "stopping the sender ends the exchange after the reply", nil, func(t *testing.T, k *talkers) {
		k.Send("main", send(guest, "hold it\nsay forty-two", 300))
		k.waitHeld(t, "it")
		k.settle()
		k.Ask("main", "/stop")
		k.release("it")
		k.settle()
		if got := append(k.turns(), k.asked("has ended")...); len(got) > 0 {
			t.Errorf("then: %q", got)
		}
	})
	talk(t, "a message to a subagent is answered after its result", nil, func(t *testing.T, k *talkers) {
		k.Ask("main", task("hold it\nsay result", "label", "one"))
		k.waitHeld(t, "it")
		asking := k.Send("main", `sessions_send {"label": "one", "message": "say fine", "timeoutSeconds": 300}`)
		k.settle()
		k.release("it")
		if end := k.Await(asking); !strings.Contains(end.Text, `"reply":"fine"`) {
			t.Errorf("%q", end.Text)
		}
		k.settle()
		if got := k.asked(`The subagent "one" has finished`); len(got) != 1 ||
			!strings.Contains(got[0], "<result>\nresult\n</result>") {
			t.Errorf("announced: %q", got)
		}
	})
	talk(t, "the answer to a message of a person that interrupts the target is the reply",
		Config{"messages.queue": json.RawMessage(`{"mode": "interrupt"}`)}, func(t *testing.T, k *talkers) {
			asking := k.Send("main", send(guest, "hang", 300))
			k.settle()
			if end := k.Ask(guest, "say to both"); end.Text != "to both" {
				t.Errorf("the person gets %q", end.Text)
			}
			if end := k.Await(asking); !strings.Contains(end.Text, `"status":"ok","reply":"to both"`) {
				t.Errorf("the sender gets %q", end.Text)
			}
		})
	talk(t, "a turn of an exchange that a person interrupts ends it",
		Config{"messages.queue": json.RawMessage(`{"mode": "interrupt"}`)}, func(t *testing.T, k *talkers) {
			k.Ask("main", send(guest, "say hang", 300))
			k.settle()
			if got := k.turns(); len(got) != 1 {
				t.Fatalf("turns: %q", got)
			}
			if end := k.Ask("main", "say private"); end.Text != "private" {
				t.Errorf("the person gets %q", end.Text)
			}
			k.settle()
			if got := append(k.turns()[1:], k.asked("private")[1:]...); len(got) > 0 {
				t.Errorf("then: %q", got)
			}
		})
	talk(t, "the result of a subagent is told to the person and not to the other session", nil,
		func(t *testing.T, k *talkers) {
			k.Ask("main", task("hold it\nsay result", "label", "one")+"\n"+send(guest, "say hold that", 20))
			k.waitHeld(t, "that") // in the first turn after the reply
			k.release("it")
			k.settle()
			k.release("that")
			k.settle()
			for _, r := range k.Requests() {
				var exchange, result bool
				for _, m := range r.Messages {
					exchange = exchange || strings.HasPrefix(m.PlainText(), "[Inter-session message] sourceSession=agent:main:main")
					result = result || strings.Contains(m.PlainText(), `The subagent "one" has finished`)
				}
				if exchange && result {
					t.Error("the other session was told the result")
				}
			}
			if got := k.asked(`The subagent "one" has finished`); len(got) != 1 {
				t.Errorf("told: %q", got)
			}
		})
	talk(t, "a subagent cannot send to other sessions", Config{
		"tools": json.RawMessage(`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true}, "subagents": {"tools": {"allow": ["sessions_send", "sessions_search"]}}}`),
	}, func(t *testing.T, k *talkers) {
		for _, call := range []string{send(guest, "say no", 5), `sessions_search {"query": "plan"}`} {
			k.Ask("main", task(call))
			k.settle()
			if r := k.childRequest(call); slices.Contains(toolNames(r), "sessions_send") ||
				slices.Contains(toolNames(r), "sessions_search") {
				t.Errorf("the subagent has %q", toolNames(r))
			}
		}
		if got := k.asked("say no\n\n"); len(got) > 0 {
			t.Errorf("sent: %q", got)
		}
	})
	talk(t, "XSESS-04 a search shows no API key, finds none, and is bounded", nil, func(t *testing.T, k *talkers) {
		const secret = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz"
		k.Ask(guest, "say the key is "+secret)
		for i := range 30 {
			k.Ask(work, fmt.Sprintf("say entry %d %s", i, strings.Repeat("long ", 200)))
		}
		got := k.Ask("main", `sessions_search {"query": "the key is"}`).Text
		if !strings.Contains(got, `"sessionKey":"agent:guest:main"`) || strings.Contains(got, secret) ||
			!strings.Contains(got, "the key is") {
			t.Errorf("%q", got)
		}
		for _, query := range []string{secret, secret[:20]} {
			if got := k.Ask("third", fmt.Sprintf(`sessions_search {"query": %q, "agentId": "guest"}`,
				query)).Text; !strings.Contains(got, `"count":0`) {
				t.Errorf("%s: %q", query, got)
			}
		}
		got = k.Ask("main", `sessions_search {"query": "entry long", "limit": 25}`).Text
		if !strings.Contains(got, `"count":25`) || !strings.Contains(got, `"truncated":true`) || len(got) > 16<<10 {
			t.Errorf("%d bytes: %.300q", len(got), got)
		}
		if got := k.Ask("main", `sessions_search {"query": "entry long", "limit": 26}`).Text; !strings.Contains(got, "25") ||
			strings.Contains(got, `"count"`) {
			t.Errorf("above the limit: %.300q", got)
		}
	})
	t.Run("a number of turns out of range is an error that names the range", func(t *testing.T) {
		for _, n := range []int{-1, 6} {
			_, err := TryStart(t,
				Options{Model: newFamily(),
					Config: Config{"session.agentToAgent": json.RawMessage(fmt.Sprintf(`{"maxPingPongTurns": %d}`, n))}})
			if err == nil ||
				!strings.Contains(err.Error(),
					fmt.Sprintf("session.agentToAgent.maxPingPongTurns: %d is out of range, it must be between 0 and 5", n)) {
				t.Errorf("%d: %v", n, err)
			}
		}
	})
	for tools, want := range map[string]string{ // whether main may name its subagent, itself, work, guest and third
		`{"sessions": {"visibility": "self"}}`: "0s000",
		`{}`:                                   "1s000",
		`{"sessions": {"visibility": "tree"}, "agentToAgent": {"enabled": true}}`:                           "1s000",
		`{"sessions": {"visibility": "agent"}, "agentToAgent": {"enabled": true}}`:                          "1s100",
		`{"sessions": {"visibility": "all"}}`:                                                               "1s100",
		`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": false, "allow": ["*"]}}`:           "1s100",
		`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true, "allow": ["guest"]}}`:        "1s100",
		`{"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": true, "allow": ["main","guest"]}}`: "1s110",
		sharing: "1s111",
	} {
		talk(t, "XSESS-05 what sessions_send and sessions_search may name with "+tools,
			Config{"tools": json.RawMessage(tools)}, func(t *testing.T, k *talkers) {
				k.checkVisible("main", want)
			})
	}
	talk(t, "a sandboxed session writes to what was started from it only", Config{
		"agents.defaults": json.RawMessage(`{"sandbox": {"mode": "non-main"}}`),
	}, func(t *testing.T, k *talkers) { k.checkVisible(work, "10s00") })
}

// checkVisible checks which sessions a session may write to and search: its subagent,
// itself, and those of the agents main, guest and third.
func (k *talkers) checkVisible(from, want string) {
	k.t.Helper()
	targets := []string{"", "agent:main:main", "agent:main:work", "agent:guest:main", "agent:third:main"}
	for i, key := range targets {
		if i > 1 {
			k.Ask(key, "say the plan of "+key)
		}
	}
	k.Ask(from, "say the plan of "+from)
	var child struct {
		Session string `json:"childSessionKey"`
	}
	text := k.Ask(from, task("say the plan of the subagent")).Text
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "results: ")), &child); err != nil {
		k.t.Fatalf("%q: %v", text, err)
	}
	k.settle()
	targets[0] = child.Session
	hits := k.Ask(from, `sessions_search {"query": "plan of", "limit": 25}`).Text
	for i, key := range targets {
		sent := k.Ask(from, send(key, "say fine", 60)).Text
		searched := k.Ask(from, fmt.Sprintf(`sessions_search {"query": "the plan", "sessionKey": %q}`, key)).Text
		k.settle()
		switch want[i] {
		case 's': // itself: it may be searched
			if !strings.Contains(sent, "cannot send messages to itself") || !strings.Contains(searched, "the plan of "+from) {
				k.t.Errorf("%s itself: sent %q, searched %q", from, sent, searched)
			}
		case '1':
			if !strings.Contains(sent, `"status":"ok","reply":"fine"`) || !strings.Contains(searched, "plan of") ||
				!strings.Contains(hits, key) {
				k.t.Errorf("%s: sent %q, searched %q, all %q", key, sent, searched, hits)
			}
		default:
			const refused = "or this session may not see it"
			if !strings.Contains(sent, refused) || !strings.Contains(searched, refused) ||
				strings.Contains(hits, "the plan of "+key) {
				k.t.Errorf("%s: sent %q, searched %q, all %q", key, sent, searched, hits)
			}
		}
	}
}

// ownersOnly is a tool for the owner.
type ownersOnly struct{}

func (ownersOnly) Spec() tool.Spec {
	return tool.Spec{Name: "ownersonly", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), OwnerOnly: true}
}

func (ownersOnly) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text("owned"), nil
}
