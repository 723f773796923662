package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// beats is a gateway whose model answers heartbeats. It has the channel tg, on which 7 is
// the owner.
type beats struct {
	*Gateway
	t     *testing.T
	tg    *channeltest.Fake
	st    store.Store
	model *llmtest.Script

	mu     sync.Mutex
	answer string        // of all runs
	hold   chan struct{} // the model answers after it is closed; nil: at once
	gives  func(r *llm.Request) llmtest.Step
}

// beatsConfig is what differs between the gateways of the tests.
type beatsConfig struct {
	heartbeat string // agents.defaults.heartbeat; "": none
	file      string // HEARTBEAT.md; "": none
	config    Config
	dir       string
}

// withBeats runs f with a gateway, on a fake clock.
func withBeats(t *testing.T, c beatsConfig, f func(t *testing.T, b *beats)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := startBeats(t, c)
		f(t, b)
		b.Stop()
	})
}

func startBeats(t *testing.T, c beatsConfig) *beats {
	t.Helper()
	b := &beats{t: t, tg: new(channeltest.Fake), answer: run.HeartbeatOK}
	b.model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		b.mu.Lock()
		answer, hold, gives := b.answer, b.hold, b.gives
		b.mu.Unlock()
		if hold != nil {
			<-hold
		}
		if gives != nil {
			return gives(r)
		}
		return llmtest.Say(answer)
	})
	if c.dir == "" {
		c.dir = t.TempDir()
	}
	conf := Config{"channels.tg": json.RawMessage(`{"allowFrom": ["7"]}`)}
	if c.file != "" {
		b.write(c.dir, c.file)
	} else { // no empty HEARTBEAT.md, with which there are no ticks
		conf["agents.defaults.skipBootstrap"] = json.RawMessage("true")
	}
	for k, v := range c.config {
		conf[k] = v
	}
	if c.heartbeat != "" {
		conf["agents.defaults.heartbeat"] = json.RawMessage(c.heartbeat)
	}
	b.Gateway = Start(t, Options{
		Dir: c.dir, Model: b.model, Config: conf, Channels: map[string]channel.Channel{"tg": b.tg.Plain()},
		Wrap: func(s store.Store) store.Store { b.st = s; return s },
	})
	synctest.Wait()
	return b
}

// write writes HEARTBEAT.md.
func (b *beats) write(dir, text string) {
	b.t.Helper()
	dir = filepath.Join(dir, "workspace")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, heartbeat.FileName), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *beats) answers(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = text
}

// plays has the model answer with steps; nil: with the answer.
func (b *beats) plays(gives func(*llm.Request) llmtest.Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gives = gives
}

// holds has the model answer after hold is closed; nil: at once.
func (b *beats) holds(hold chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold = hold
}

var (
	beatOwner = chela.Address{Channel: "tg", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
	beatGroup = chela.Address{Channel: "tg", Peer: chela.Peer{Kind: chela.Group, ID: "-1"}}
)

// say has a person write in a chat, and waits for the answer.
func (b *beats) say(from chela.Address, text string) {
	b.t.Helper()
	in := chela.Inbound{
		ID:        text,
		Address:   from,
		Sender:    chela.Sender{ID: "7"},
		Text:      text,
		Mentioned: true,
		Time:      time.Now(),
	}
	if err := b.tg.Say(b.t.Context(), in); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// after lets time pass.
func (b *beats) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// prompts returns the last message of each model call.
func (b *beats) prompts() (out []string) {
	for _, r := range b.model.Requests() {
		out = append(out, r.Messages[len(r.Messages)-1].PlainText())
	}
	return out
}

func (b *beats) calls(want int) {
	b.t.Helper()
	if got := b.prompts(); len(got) != want {
		b.t.Errorf("%d model calls, want %d: %q", len(got), want, got)
	}
}

// sent compares what was sent to a chat.
func (b *beats) sent(to chela.Address, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.tg.Texts(to)); diff != "" {
		b.t.Errorf("sent to %s (-want +got):\n%s", to.Peer.ID, diff)
	}
}

// state returns what is stored of the main agent.
func (b *beats) state() heartbeat.State {
	b.t.Helper()
	st, err := store.Get(b.t.Context(), b.st,
		func(r store.Reader) (heartbeat.State, error) { return r.Heartbeats().State("main") })
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

// last compares the last outcome with "status reason".
func (b *beats) last(want string) {
	b.t.Helper()
	l := b.state().Last
	if got := fmt.Sprint(l.Status, " ", l.Reason); got != want {
		b.t.Errorf("last heartbeat %q, want %q", got, want)
	}
}

// wake requests a heartbeat as a client does.
func (b *beats) wake(text, mode string) {
	b.t.Helper()
	c := b.Client()
	defer c.Close()
	c.must(wire.MethodWake, wire.Wake{Mode: mode, Text: text}, nil)
}

func TestHeartbeat(t *testing.T) {
	t.Parallel()
	t.Run("HB-01 a run begins at the interval with the exact prompt", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m", "prompt": "look around"}`}, func(t *testing.T, b *beats) {
			b.after(30*time.Minute - time.Second)
			b.calls(0)
			b.after(time.Second)
			if diff := cmp.Diff([]string{"look around"}, b.prompts()); diff != "" {
				t.Error(diff)
			}
			b.after(30 * time.Minute)
			b.calls(2)
			b.last("ok-token interval")
		})
	})
	for _, c := range []struct {
		name, answer string
		want         []string
		last         string
	}{
		{"only the token", "HEARTBEAT_OK", nil, "ok-token interval"},
		{"the token and 200 characters", "HEARTBEAT_OK " + strings.Repeat("x", 200), nil, "ok-token interval"},
		{"the token and 400 characters", "HEARTBEAT_OK " + strings.Repeat("x", 400),
			[]string{strings.Repeat("x", 400)}, "sent interval"},
		{"400 characters and the token", strings.Repeat("x", 400) + "\nHEARTBEAT_OK",
			[]string{strings.Repeat("x", 400)}, "sent interval"},
		{"the token in the middle", "not HEARTBEAT_OK at all", []string{"not HEARTBEAT_OK at all"}, "sent interval"},
		{"an alert", "the disk is full", []string{"the disk is full"}, "sent interval"},
	} {
		t.Run("HB-02 "+c.name, func(t *testing.T) {
			withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`}, func(t *testing.T, b *beats) {
				b.answers("hello")
				b.say(beatOwner, "hi")
				b.answers(c.answer)
				b.after(10 * time.Minute)
				b.sent(beatOwner, append([]string{"hello"}, c.want...)...)
				b.last(c.last)
			})
		})
	}
	for name, c := range map[string]struct {
		file  string
		calls int
		last  string
	}{
		"an empty file":            {" \n", 0, "skipped empty-heartbeat-file"},
		"headings and comments":    {"# Heartbeat\n\n<!-- add\ntasks -->\n- [ ]\n##\n", 0, "skipped empty-heartbeat-file"},
		"instructions":             {"# Heartbeat\n- look at the mail\n", 1, "ok-token interval"},
		"a missing file":           {"", 1, "ok-token interval"},
		"tasks that are never due": {"tasks:\n- name: a\n  interval: 2d\n  prompt: do it\n", 0, "skipped no-tasks-due"},
	} {
		t.Run("HB-03 "+name, func(t *testing.T) {
			withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`, file: c.file}, func(t *testing.T, b *beats) {
				b.after(11 * time.Minute)
				b.calls(c.calls)
				b.last(c.last)
			})
		})
	}
}

// TestHeartbeatActs has heartbeats that find nothing make calls. The model sees what they
// did again, so that it does not do it twice, and not what they only read.
func TestHeartbeatActs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, args string
		seen       bool
	}{
		"a call that changes something": {"write", `{"path":"done.md","content":"x"}`, true},
		"a call that reads":             {"ls", `{}`, false},
		"a call that was not started":   {"write", `{"path":7}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`}, func(t *testing.T, b *beats) {
				n := 0
				b.plays(func(*llm.Request) llmtest.Step {
					if n++; n == 1 {
						return llmtest.Call("c1", c.tool, c.args)
					}
					return llmtest.Say(run.HeartbeatOK)
				})
				b.after(10*time.Minute + time.Second)
				b.calls(2)
				b.last("ok-token interval")
				b.plays(nil)
				client := b.Client()
				defer client.Close()
				client.Ask("main", "hi")
				all := b.model.Requests()
				seen := slices.ContainsFunc(all[len(all)-1].Messages, func(m *llm.Message) bool { return len(m.Calls()) > 0 })
				equal(t, "the model sees the call", seen, c.seen)
			})
		})
	}
}

const twoTasks = `# Every day
tasks:
- name: mail
  interval: 30m
  prompt: "read the mail"
- name: disk
  interval: 2h
  prompt: look at the disk

Be short.
`

func TestHeartbeatTasks(t *testing.T) {
	t.Parallel()
	t.Run("HB-04 only the tasks that are due are in the prompt", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m", "prompt": "look"}`, file: twoTasks},
			func(t *testing.T, b *beats) {
				mail, disk := "\n- mail: read the mail", "\n- disk: look at the disk"
				for i := 1; i <= 4; i++ {
					b.after(30 * time.Minute)
					b.calls(i)
					last := b.prompts()[i-1]
					if want := i == 4; !strings.HasPrefix(last, "look\n") || !strings.Contains(last, mail) ||
						strings.Contains(last, disk) != want {
						t.Errorf("after %d ticks: %q", i, last)
					}
				}
				system := fmt.Sprint(b.model.Requests()[3].System)
				if !strings.Contains(system, "Be short.") || strings.Contains(system, "read the mail") {
					t.Error("the system prompt has not the instructions of the file, or also its tasks")
				}
			})
	})
	t.Run("HB-04 a task is done again if its run failed", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m"}`, file: strings.Replace(twoTasks, "30m", "1h", 1)},
			func(t *testing.T, b *beats) {
				b.plays(func(*llm.Request) llmtest.Step { return llmtest.Status(400, "no") })
				b.after(time.Hour)
				b.last("failed " + b.state().Last.Reason)
				n := len(b.prompts())
				b.plays(nil)
				b.after(30 * time.Minute)
				if got := b.prompts()[n:]; len(got) != 1 || !strings.Contains(got[0], "read the mail") {
					t.Errorf("after the failure: %q", got)
				}
				b.after(30 * time.Minute)
				if got := b.prompts()[n+1:]; len(got) != 1 || strings.Contains(got[0], "read the mail") {
					t.Errorf("after the success: %q", got)
				}
			})
	})
}

func TestWakes(t *testing.T) {
	t.Parallel()
	off := beatsConfig{heartbeat: `{"every": "0m"}`}
	t.Run("HB-05 ten wakes in 100 ms are one run", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			for i := range 10 {
				b.wake(fmt.Sprint("event ", i), wire.WakeNow)
				time.Sleep(10 * time.Millisecond)
			}
			b.after(time.Second)
			b.calls(1)
			b.after(5 * time.Minute)
			b.calls(1)
			if text := fmt.Sprint(messageTexts(b.model.Requests()[0])); !strings.Contains(text, "event 0") ||
				!strings.Contains(text, "event 9") {
				t.Errorf("the model got %q", text)
			}
		})
	})
	t.Run("HB-10 a wake now brings its event with heartbeats off, exactly once", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			b.say(beatOwner, "hi")
			b.answers("Drink some water!")
			b.wake("Reminder: drink water", wire.WakeNow)
			b.after(time.Second)
			b.calls(2)
			if text := fmt.Sprint(messageTexts(b.model.Requests()[1])); !strings.Contains(text, "Reminder: drink water") {
				t.Errorf("the model got %q", text)
			}
			if p := b.prompts()[1]; !strings.Contains(p, "(wake)") || strings.Contains(p, "HEARTBEAT.md") {
				t.Errorf("prompt %q", p)
			}
			b.sent(beatOwner, "Drink some water!")
			b.after(2 * time.Hour)
			b.calls(2)
			b.last("sent wake")
		})
	})
	t.Run("HB-12 a wake for the next tick waits for it, and one run follows", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m"}`, file: "# nothing\n"}, func(t *testing.T, b *beats) {
			b.wake("look at this", wire.WakeNext)
			b.after(29 * time.Minute)
			b.calls(0)
			b.after(time.Minute)
			b.calls(1)
			if text := fmt.Sprint(messageTexts(b.model.Requests()[0])); !strings.Contains(text, "look at this") {
				t.Errorf("the model got %q", text)
			}
			b.after(time.Hour)
			b.calls(1)
		})
	})
	t.Run("a wake for the next tick has no effect without ticks, and its event waits", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			b.wake("look at this", wire.WakeNext)
			b.after(2 * time.Hour)
			b.calls(0)
			b.say(beatOwner, "hi")
			b.calls(1)
			if text := fmt.Sprint(messageTexts(b.model.Requests()[0])); !strings.Contains(text, "look at this") {
				t.Errorf("the model got %q", text)
			}
		})
	})
	t.Run("HB-06 HB-13 a wake of a busy session waits longer each time, and then runs once", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			hold := make(chan struct{})
			b.holds(hold)
			b.say(beatOwner, "hi")
			b.wake("one", wire.WakeNow)
			var dues []time.Duration
			now := time.Now()
			for range 40 {
				b.after(250 * time.Millisecond)
				wakes, err := store.Get(t.Context(), b.st,
					func(r store.Reader) ([]heartbeat.Wake, error) { return r.Heartbeats().Wakes() })
				if err != nil || len(wakes) != 1 {
					t.Fatalf("wakes: %+v, %v", wakes, err)
				}
				if at := wakes[0].Due.Sub(now); wakes[0].Tries > len(dues) {
					dues = append(dues, at)
				}
			}
			if diff := cmp.Diff([]time.Duration{1250 * time.Millisecond, 3250 * time.Millisecond, 7250 * time.Millisecond,
				15250 * time.Millisecond}, dues); diff != "" {
				t.Errorf("the wake is due after (-want +got):\n%s", diff)
			}
			b.wake("two", wire.WakeNow) // the same reason
			b.holds(nil)
			close(hold)
			synctest.Wait()
			b.calls(1)
			b.after(time.Minute)
			b.calls(2)
			if text := fmt.Sprint(messageTexts(b.model.Requests()[1])); !strings.Contains(text, "one") ||
				!strings.Contains(text, "two") {
				t.Errorf("the model got %q", text)
			}
			b.after(time.Hour)
			b.calls(2)
		})
	})
	t.Run("HB-14 a wake names the agent and the session, and its reason is in the event", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "0m"}`,
			config: Config{"agents.list": json.RawMessage(`[{"id": "main"}, {"id": "ops"}]`)}}, func(t *testing.T, b *beats) {
			c := b.Client()
			err := b.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
				tx.Wake(store.Topic{Kind: store.TopicHeartbeat})
				return heartbeat.Request(tx.Heartbeats(), heartbeat.Wake{
					Agent:     "ops",
					Session:   "agent:ops:room",
					Reason:    "cron:nightly",
					Mode:      heartbeat.Now,
					Principal: chela.Owner("cron"),
					At:        time.Now(),
				})
			})
			if err != nil {
				t.Fatal(err)
			}
			b.after(time.Second)
			var h wire.Heartbeat
			for e := range c.Events() {
				if e.Name == wire.EventHeartbeat {
					if err := e.Decode(&h); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
			if h.AgentID != "ops" || h.SessionKey != "agent:ops:room" || h.Reason != "cron:nightly" || h.Status != "ok-token" {
				t.Errorf("event %+v", h)
			}
			var last *wire.Heartbeat
			c.must(wire.MethodLastHeartbeat, nil, &last)
			if last == nil || *last != h {
				t.Errorf("last heartbeat %+v, event %+v", last, h)
			}
		})
	})
	t.Run("a wake while a heartbeat runs is remembered once", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			hold := make(chan struct{})
			b.holds(hold)
			b.wake("one", wire.WakeNow)
			b.after(time.Second)
			for i := range 5 {
				b.wake(fmt.Sprint("more ", i), wire.WakeNow)
				b.after(time.Second)
			}
			b.holds(nil)
			close(hold)
			b.after(2 * time.Minute)
			b.calls(2)
		})
	})
	t.Run("heartbeats of a session are 30 seconds apart, whatever the trigger", func(t *testing.T) {
		withBeats(t, off, func(t *testing.T, b *beats) {
			b.wake("one", wire.WakeNow)
			b.after(time.Second)
			b.wake("two", wire.WakeNow)
			b.after(28 * time.Second)
			b.calls(1)
			b.after(5 * time.Second)
			b.calls(2)
		})
	})
}

// messageTexts returns the texts of the messages of a model call.
func messageTexts(r *llm.Request) (out []string) {
	for _, m := range r.Messages {
		out = append(out, m.PlainText())
	}
	return out
}

func TestHeartbeatRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hours string
		calls int
	}{
		{`{"start": "09:00", "end": "22:00", "timezone": "UTC"}`, 0},
		{`{"start": "22:00", "end": "09:00", "timezone": "UTC"}`, 1},
		{`{"start": "09:00", "end": "09:00", "timezone": "UTC"}`, 0},
	} {
		t.Run("HB-07 at 23:00 with "+c.hours, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now().UTC()                                                              // midnight
				time.Sleep(now.Truncate(24 * time.Hour).Add(46*time.Hour + 50*time.Minute).Sub(now)) // 22:50
				b := startBeats(t, beatsConfig{heartbeat: `{"every": "10m", "activeHours": ` + c.hours + `}`})
				b.after(10 * time.Minute)
				b.calls(c.calls)
				if c.calls == 0 {
					b.last("skipped outside-hours")
				}
				b.Stop()
			})
		})
	}
	t.Run("HB-08 a heartbeat does not postpone the reset of an idle session", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "30m"}`,
			config: Config{"session.reset": json.RawMessage(`{"mode": "idle", "idleMinutes": 60}`)}},
			func(t *testing.T, b *beats) {
				b.say(beatOwner, "remember the word plum")
				b.answers("an alert")
				b.after(70 * time.Minute)
				b.calls(3)
				b.say(beatOwner, "which word?")
				last := b.model.Requests()[3]
				if text := fmt.Sprint(messageTexts(last)); strings.Contains(text, "plum") {
					t.Errorf("the model still got %q", text)
				}
			})
	})
	for _, c := range []struct {
		name, target string
		owner, group []string
		last         string
	}{
		{"owner", `"owner"`, []string{"an alert"}, nil, "sent interval"},
		{"not set", `""`, []string{"an alert"}, nil, "sent interval"},
		{"last", `"last"`, nil, []string{"an alert"}, "sent interval"},
		{"none", `"none"`, nil, nil, "skipped no-target"},
		{"a channel and a group", `"tg", "to": "group:-1"`, nil, []string{"an alert"}, "sent interval"},
		{"a channel and a person", `"tg", "to": "7"`, []string{"an alert"}, nil, "sent interval"},
		{"a channel that is not configured", `"none-such", "to": "7"`, nil, nil, "skipped channel-not-ready"},
		{"no direct chats", `"owner", "directPolicy": "block"`, nil, nil, "skipped dm-blocked"},
	} {
		t.Run("HB-09 the last chat is a group and the target is "+c.name, func(t *testing.T) {
			withBeats(t, beatsConfig{heartbeat: `{"every": "10m", "session": "agent:main:tg:group:-1", "target": ` + c.target +
				`}`}, func(t *testing.T, b *beats) {
				b.answers("hello")
				b.say(beatOwner, "hi")
				b.say(beatGroup, "hello all")
				b.answers("an alert")
				b.after(10 * time.Minute)
				b.calls(3)
				b.sent(beatOwner, append([]string{"hello"}, c.owner...)...)
				b.sent(beatGroup, append([]string{"hello"}, c.group...)...)
				b.last(c.last)
			})
		})
	}
	t.Run("HB-09 a stranger who may write is not the owner", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`,
			config: Config{"channels.tg": json.RawMessage(`{"allowFrom": ["8", "*"]}`)}}, func(t *testing.T, b *beats) {
			b.say(beatOwner, "hi") // 7 is not listed
			n := len(b.tg.Texts(beatOwner))
			b.answers("an alert")
			b.after(10 * time.Minute)
			if got := b.tg.Texts(beatOwner); len(got) != n {
				t.Errorf("sent %q", got)
			}
			b.last("skipped no-target")
		})
	})
}

func TestHeartbeatConfig(t *testing.T) {
	t.Parallel()
	t.Run("without a section and HEARTBEAT.md nothing happens, until the file has content", func(t *testing.T) {
		withBeats(t, beatsConfig{file: "# nothing yet\n"}, func(t *testing.T, b *beats) {
			b.after(2 * time.Hour)
			b.calls(0)
			if st := b.state(); !st.Ticked.IsZero() {
				t.Errorf("state %+v", st)
			}
			b.write(b.Dir, "look at the mail\n")
			b.say(beatOwner, "hi") // after an answer, the file is looked at
			b.after(30 * time.Minute)
			b.calls(2)
			b.write(b.Dir, "")
			b.after(time.Hour)
			b.calls(2)
		})
	})
	t.Run("a reload changes and ends the interval", func(t *testing.T) {
		withBeats(t, beatsConfig{}, func(t *testing.T, b *beats) {
			c := b.Client()
			c.patch(`{"agents": {"entries": {"main": {"heartbeat": {"every": "10m"}}}}}`)
			b.after(10 * time.Minute)
			b.calls(1)
			c.patch(`{"agents": {"entries": {"main": {"heartbeat": {"every": "5m"}}}}}`)
			b.after(5 * time.Minute)
			b.calls(2)
			c.patch(`{"agents": {"entries": {"main": {"heartbeat": {"every": "0m"}}}}}`)
			b.after(30 * time.Minute)
			b.calls(2)
		})
	})
	t.Run("only agents with a section have an interval if there is one", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`,
			config: Config{
				"agents.list": json.RawMessage(`[{"id": "main"}, {"id": "ops", "heartbeat": {"prompt": "ops here"}}]`)}},
			func(t *testing.T, b *beats) {
				b.after(10 * time.Minute)
				if diff := cmp.Diff([]string{"ops here"}, b.prompts()); diff != "" {
					t.Error(diff)
				}
				var h wire.Health
				b.Client().must(wire.MethodHealth, nil, &h)
				got := map[string]string{}
				for _, a := range h.Agents {
					got[a.AgentID] = a.Heartbeat.Every
				}
				if diff := cmp.Diff(map[string]string{"main": "off", "ops": "10m"}, got); diff != "" {
					t.Error(diff)
				}
			})
	})
	t.Run("disabled by a person, also after a restart, events are still handled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			conf := beatsConfig{heartbeat: `{"every": "10m"}`, dir: dir}
			b := startBeats(t, conf)
			var set wire.HeartbeatsSet
			off, on := false, true
			b.Client().must(wire.MethodSetHeartbeats, wire.SetHeartbeats{Enabled: &off}, &set)
			if !set.OK || set.Enabled {
				t.Errorf("answer %+v", set)
			}
			b.after(15 * time.Minute)
			b.calls(0)
			b.Stop()
			b = startBeats(t, conf)
			b.after(15 * time.Minute)
			b.calls(0)
			b.wake("a reminder", wire.WakeNow)
			b.after(time.Second)
			b.calls(1)
			b.Client().must(wire.MethodSetHeartbeats, wire.SetHeartbeats{Enabled: &on}, nil)
			b.after(11 * time.Minute)
			if n := len(b.prompts()); n < 2 {
				t.Errorf("%d calls after it was enabled", n)
			}
			b.Stop()
		})
	})
	t.Run("the interval goes on after a restart, and missed ticks are one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conf := beatsConfig{heartbeat: `{"every": "30m"}`, dir: t.TempDir()}
			b := startBeats(t, conf)
			b.after(20 * time.Minute)
			b.Stop()
			b = startBeats(t, conf)
			b.after(9 * time.Minute)
			b.calls(0)
			b.after(time.Minute)
			b.calls(1)
			b.Stop()
			time.Sleep(70 * time.Hour)
			b = startBeats(t, conf)
			b.after(29 * time.Minute)
			b.calls(1)
			b.Stop()
		})
	})
	t.Run("HB-11 the model of heartbeats does not become that of the session", func(t *testing.T) {
		models := json.RawMessage(`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 1000000}, {"id": "small", "contextWindow": 1000000}]}}}`)
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m", "model": "mock/small", "timeoutSeconds": 60}`,
			config: Config{"models": models}}, func(t *testing.T, b *beats) {
			b.say(beatOwner, "one")
			b.answers("an alert")
			b.after(10 * time.Minute)
			b.say(beatOwner, "two")
			var got []string
			for _, r := range b.model.Requests() {
				got = append(got, r.Model)
			}
			if diff := cmp.Diff([]string{"m", "small", "m"}, got); diff != "" {
				t.Error(diff)
			}
			if m := b.Client().describe("agent:main:main"); m.Model != "m" {
				t.Errorf("the session's model is %s", m.Model)
			}
		})
	})
	t.Run("an isolated session has no history, and without the workspace files if it is light", func(t *testing.T) {
		withBeats(t,
			beatsConfig{heartbeat: `{"every": "10m", "isolatedSession": true, "lightContext": true, "prompt": "look"}`,
				file: "be brief\n"}, func(t *testing.T, b *beats) {
				b.say(beatOwner, "a long conversation")
				b.answers("an alert")
				b.after(30 * time.Minute)
				b.calls(4)
				for _, r := range b.model.Requests()[1:] {
					if system := fmt.Sprint(r.System); len(r.Messages) != 1 || strings.Contains(system, "SOUL.md") ||
						!strings.Contains(system, "be brief") {
						t.Errorf("messages %q, system %q", messageTexts(r), system)
					}
				}
				b.sent(beatOwner, "an alert", "an alert", "an alert")
				b.after(2 * time.Hour)
				list, err := store.Get(t.Context(), b.st,
					func(r store.Reader) ([]session.Past, error) { return r.Sessions().Past("agent:main:main:heartbeat") })
				if err != nil || len(list) > 10 || len(list) == 0 {
					t.Errorf("%d past transcripts, %v", len(list), err)
				}
				b.wake("an event", wire.WakeNow)
				b.after(time.Second)
				all := b.model.Requests()
				if text := fmt.Sprint(messageTexts(all[len(all)-1])); !strings.Contains(text, "a long conversation") {
					t.Errorf("the event was handled with %q", text)
				}
			})
	})
	for name, c := range map[string]struct {
		channel, answer string
		calls           int
		sent            []string
		last, indicator string
	}{
		"nothing is shown": {`"showAlerts": false, "useIndicator": false`, "an alert", 1, nil,
			"skipped alerts-disabled", ""},
		"only the indicator":       {`"showAlerts": false`, "an alert", 2, nil, "skipped alerts-disabled", "alert"},
		"alerts without indicator": {`"useIndicator": false`, "an alert", 2, []string{"an alert"}, "sent interval", ""},
		"that nothing is the matter": {`"showOk": true`, "HEARTBEAT_OK", 2, []string{"HEARTBEAT_OK"},
			"ok-token interval", "ok"},
	} {
		t.Run("visibility: "+name, func(t *testing.T) {
			conf := Config{"channels.tg": json.RawMessage(`{"allowFrom": ["7"], "heartbeat": {` + c.channel + `}}`)}
			withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`, config: conf}, func(t *testing.T, b *beats) {
				b.answers("hello")
				b.say(beatOwner, "hi")
				b.answers(c.answer)
				b.after(10 * time.Minute)
				b.calls(c.calls)
				b.sent(beatOwner, append([]string{"hello"}, c.sent...)...)
				b.last(c.last)
				if got := b.state().Last.Indicator; got != c.indicator {
					t.Errorf("indicator %q", got)
				}
			})
		})
	}
	t.Run("an alert that the channel refuses is told with the next message", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`}, func(t *testing.T, b *beats) {
			b.answers("hello")
			b.say(beatOwner, "hi")
			b.answers("the disk is full")
			b.tg.Fail(channeltest.Permanent())
			b.after(10 * time.Minute)
			b.sent(beatOwner, "hello")
			if l := b.state().Last; l.Status != heartbeat.StatusFailed || !strings.Contains(l.Reason, "chat not found") ||
				l.Indicator != "error" {
				t.Errorf("last %+v", l)
			}
			b.answers("fine")
			b.say(beatOwner, "what is new?")
			if text := fmt.Sprint(messageTexts(b.model.Requests()[2])); !strings.Contains(text,
				"could not be delivered to tg (chat not found). Tell the person now: the disk is full") {
				t.Errorf("the model got %q", text)
			}
		})
	})
	t.Run("the reasoning precedes the alert", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m", "includeReasoning": true}`}, func(t *testing.T, b *beats) {
			b.answers("hello")
			b.say(beatOwner, "hi")
			b.plays(func(*llm.Request) llmtest.Step {
				return llmtest.Step{Parts: []llm.Part{{Kind: llm.PartThinking, Text: "df says 99 %"}, llm.Text("the disk is full")}}
			})
			b.after(10 * time.Minute)
			b.sent(beatOwner, "hello", "Reasoning:\ndf says 99 %", "the disk is full")
		})
	})
	t.Run("the history shows alerts only, and a failed tick is silent", func(t *testing.T) {
		withBeats(t, beatsConfig{heartbeat: `{"every": "10m"}`}, func(t *testing.T, b *beats) {
			b.answers("hello")
			b.say(beatOwner, "hi")
			b.answers("HEARTBEAT_OK")
			b.after(10 * time.Minute)
			b.answers("an alert")
			b.after(10 * time.Minute)
			b.plays(func(*llm.Request) llmtest.Step { return llmtest.Status(400, "no") })
			b.after(10 * time.Minute)
			if b.state().Last.Status != heartbeat.StatusFailed {
				t.Errorf("last %+v", b.state().Last)
			}
			b.plays(nil)
			b.sent(beatOwner, "hello", "an alert")
			c := b.Client()
			var got []string
			for _, m := range c.history("main") {
				if m.Role != wire.RoleSystem {
					got = append(got, m.Role+" "+m.Text())
				}
			}
			if diff := cmp.Diff([]string{"user hi", "assistant hello", "assistant an alert"}, got); diff != "" {
				t.Error(diff)
			}
			b.say(beatOwner, "and?")
			all := b.model.Requests()
			if text := fmt.Sprint(messageTexts(all[len(all)-1])); strings.Contains(text, "HEARTBEAT_OK HEARTBEAT") ||
				strings.Count(text, "periodic check") != 1 || strings.Contains(text, "left out") {
				// of the alert; a silent one and one that was refused are as if they had not been
				t.Errorf("the model got %q", text)
			}
		})
	})
	t.Run("outside of heartbeats the token is removed from an answer", func(t *testing.T) {
		withBeats(t, beatsConfig{}, func(t *testing.T, b *beats) {
			b.answers("All is well. HEARTBEAT_OK")
			b.say(beatOwner, "hi")
			b.sent(beatOwner, "All is well.")
		})
	})
	t.Run("a deleted agent leaves neither state nor wakes", func(t *testing.T) {
		withBeats(t, beatsConfig{}, func(t *testing.T, b *beats) {
			c := b.Client()
			c.patch(`{"agents": {"entries": {"ops": {"heartbeat": {"every": "10m"}}}}}`)
			b.after(10 * time.Minute)
			b.calls(1)
			c.patch(`{"agents": {"entries": {"ops": null}}}`)
			b.after(time.Hour)
			b.calls(1)
			states, err := store.Get(t.Context(), b.st,
				func(r store.Reader) ([]heartbeat.State, error) { return r.Heartbeats().States() })
			if err != nil || len(states) > 0 {
				t.Errorf("states %+v, %v", states, err)
			}
		})
	})
}
