package chelatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"strconv"
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

// senders is a gateway with two channels: on "open" everybody may write, on
// "closed" only boss, who is listed by id on both. It runs in a synctest bubble.
type senders struct {
	*Gateway
	*Client
	t     *testing.T
	model *llmtest.Script
	fakes map[string]*channeltest.Fake
	sent  int
}

func newSenders(t *testing.T, model llm.Provider, conf Config, more ...func(*Options)) *senders {
	t.Helper()
	script, _ := model.(*llmtest.Script)
	s := &senders{t: t, model: script, fakes: map[string]*channeltest.Fake{"open": {}, "closed": {}}}
	o := Options{
		Model: model, Channels: map[string]channel.Channel{"open": s.fakes["open"], "closed": s.fakes["closed"]},
		Config: section("channels",
			`{"open": {"allowFrom": ["boss", "*"]}, "closed": {"dmPolicy": "allowlist", "allowFrom": ["boss"]}}`),
	}
	for name, raw := range conf {
		o.Config[name] = raw
	}
	for _, f := range more {
		f(&o)
	}
	s.Gateway = Start(t, o)
	s.Client = s.Gateway.Client()
	return s
}

// stop stops the gateway, so that the bubble can end.
func (s *senders) stop() {
	s.Client.Close()
	s.Gateway.Stop()
}

// say has a sender write in a chat, and returns what the chat shows 10 s later.
// A text that begins with "@" mentions the assistant.
func (s *senders) say(ch string, p chela.Peer, sender, text string) []string {
	s.t.Helper()
	a := chela.Address{Channel: ch, Account: "bot", Peer: p}
	before := len(s.fakes[ch].Texts(a))
	s.sent++
	text, mentioned := strings.CutPrefix(text, "@")
	err := s.fakes[ch].Say(s.t.Context(), chela.Inbound{
		ID: strconv.Itoa(s.sent), Address: a, Sender: chela.Sender{ID: sender}, Text: text, Mentioned: mentioned,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	return s.fakes[ch].Texts(a)[before:]
}

// ended returns the sessions whose runs have ended so far in a state.
func (s *senders) ended(state string) (keys []string) {
	for {
		select {
		case ev := <-s.Events():
			var chat wire.Chat
			if ev.Name == wire.EventChat && ev.Decode(&chat) == nil && chat.State == state {
				keys = append(keys, chat.SessionKey)
			}
		default:
			return keys
		}
	}
}

// last returns the text that the model got last.
func (s *senders) last() string {
	rs := s.model.Requests()
	if len(rs) == 0 {
		return ""
	}
	return rs[len(rs)-1].Messages[len(rs[len(rs)-1].Messages)-1].PlainText()
}

func TestSenders(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"CMD-02 /config without its scope is ignored, an inline /status stays in the text":           unauthorized,
		"SE-17 settings in the text of a sender without rights stay text and change nothing":         noSettings,
		"CMD-07 a sender without scopes stops the run of a group, and no other run":                  stopInGroup,
		"CMD-08 /tools in a group lists what a run of the sender gets (without a sandbox)":           toolsInGroup,
		"STREAM-11 an internal error is not posted to a group, and is one sentence in a direct chat": internalError,
		"STREAM-11 people are not told the text of an error that was not written for them":           plainError,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
}

var (
	directChat = chela.Peer{Kind: chela.Direct, ID: "dm"}
	groupChat  = chela.Peer{Kind: chela.Group, ID: "g1"}
)

// unauthorized has senders with and without rights use /config and /status.
func unauthorized(t *testing.T) {
	s := newSenders(t, echoing(), section("commands", `{"config": true}`))
	for _, w := range []struct{ channel, sender string }{{"open", "friend"}, {"open", "boss"}, {"closed", "stranger"}} {
		for _, p := range []chela.Peer{directChat, groupChat} {
			for _, text := range []string{"/config show", "/CONFIG: show", "@/config get gateway"} {
				if got := s.say(w.channel, p, w.sender, text); len(got) > 0 {
					t.Errorf("%s in %s: %s: %q, want silence", w.sender, p.Kind, text, got)
				}
			}
		}
	}
	if n := len(s.model.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	var list wire.SessionList
	s.must(wire.MethodSessionsList, struct{}{}, &list)
	if len(list.Sessions) != 0 {
		t.Errorf("sessions were created: %+v", list.Sessions)
	}
	if got := s.say("closed", directChat, "stranger", "hello /status"); len(got) > 0 || len(s.model.Requests()) > 0 {
		t.Errorf("a stranger got %q, and the model %q", got, s.last())
	}
	// A sender who may talk but not use the command writes to the model.
	for _, p := range []chela.Peer{directChat, groupChat} {
		for _, text := range []string{"hello /status", "hello\n/config show"} {
			if got := s.say("open", p, "friend", "@"+text); !slices.Equal(got, []string{"re: " + text}) || s.last() != text {
				t.Errorf("%q in %s: answered %q, and the model got %q, want the whole text", text, p.Kind, got, s.last())
			}
		}
	}
	if end := s.Ask("main", "/config get commands"); !strings.Contains(end.Text, "true") {
		t.Errorf("the owner got %q", end.Text)
	}
	s.stop()
}

// noSettings has senders without rights, and one with rights, write settings.
func noSettings(t *testing.T) {
	s := newSenders(t, echoing(),
		section("models", `{"providers": {"mock": {"models": [{"id": "m", "reasoning": true}, {"id": "other"}]}}}`))
	s.say("open", groupChat, "friend", "@hello")
	key := "agent:main:open:group:g1"
	before := s.describe(key)
	settings := func(x wire.Session) string {
		return strings.Join([]string{x.SessionID, x.Model, x.Thinking, x.Verbose, x.Label, x.UsageLine, x.QueueMode,
			fmt.Sprint(x.Fast, x.SessionExec)}, "|")
	}
	for _, text := range []string{
		"/elevated on hi", "/think high hi", "hi /think high", "hi /queue interrupt", "/queue interrupt hi",
		"/exec security=full hi", "/exec security=deny hi", "hi /fast on",
	} {
		if got := s.say("open", groupChat, "friend", "@"+text); !slices.Equal(got, []string{"re: " + text}) {
			// Without a text a setting is a command, which is ignored.
			t.Errorf("%s: %q, want the model's answer to the whole text", text, got)
		}
		rs := s.model.Requests()
		if got := rs[len(rs)-1].Thinking; got == "high" {
			t.Errorf("%s: the request has the thinking level %s", text, got)
		}
	}
	n := len(s.model.Requests())
	for _, text := range []string{"/think high", "/elevated on", "/exec security=deny", "/exec default", "/fast on",
		"/model other", "/verbose full", "/queue interrupt", "/new", "/reset", "/name x", "/usage off",
		"/approve x allow-once"} {
		if got := s.say("open", groupChat, "friend", "@"+text); len(got) > 0 {
			t.Errorf("%s: %q, want silence", text, got)
		}
	}
	if got := len(s.model.Requests()); got != n {
		t.Errorf("the model got %d commands", got-n)
	}
	if got, want := settings(s.describe(key)), settings(before); got != want {
		t.Errorf("the session has %s, want %s", got, want)
	}
	s.say("open", groupChat, "boss", "@hi /think high")
	rs := s.model.Requests()
	if got := rs[len(rs)-1].Thinking; got != "high" || s.last() != "hi" {
		t.Errorf("a listed sender: thinking %q, text %q", got, s.last())
	}
	s.stop()
}

// stopInGroup has runs in two groups and senders that stop one of them.
func stopInGroup(t *testing.T) {
	slow := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		return llmtest.Step{Delay: time.Hour, Parts: []llm.Part{llm.Text("late")}}
	})
	s := newSenders(t, slow, nil)
	second := chela.Peer{Kind: chela.Group, ID: "g2"}
	s.say("open", groupChat, "friend", "@work")
	s.say("open", second, "friend", "@work")
	s.say("closed", groupChat, "boss", "@work")
	if n := len(slow.Requests()); n != 3 {
		t.Fatalf("%d runs were started, want 3", n)
	}
	for _, refused := range []struct{ channel, sender, text string }{
		{"closed", "stranger", "/stop"}, {"closed", "stranger", "@stop"}, {"open", "friend", "stop"},
		{"open", "friend", "/stop@otherbot"},
	} {
		if got := s.say(refused.channel, groupChat, refused.sender, refused.text); len(got) > 0 {
			t.Errorf("%s on %s: %q, want silence", refused.text, refused.channel, got)
		}
	}
	if got := s.ended(wire.StateAborted); len(got) > 0 {
		t.Fatalf("stopped %q", got)
	}
	if got := s.say("open", groupChat, "friend", "/stop"); !slices.Equal(got, []string{"Stopped the run in progress."}) {
		t.Errorf("/stop: %q", got)
	}
	if got := s.ended(wire.StateAborted); !slices.Equal(got, []string{"agent:main:open:group:g1"}) {
		t.Errorf("/stop stopped %q", got)
	}
	if got := s.say("open", second, "other", "@stop"); !slices.Equal(got, []string{"Stopped the run in progress."}) {
		t.Errorf("stop: %q", got)
	}
	if got := s.ended(wire.StateAborted); !slices.Equal(got, []string{"agent:main:open:group:g2"}) {
		t.Errorf("stop stopped %q", got)
	}
	s.say("closed", groupChat, "boss", "/stop")
	if got := s.ended(wire.StateAborted); !slices.Equal(got, []string{"agent:main:closed:group:g1"}) {
		t.Errorf("a listed sender stopped %q", got)
	}
	s.stop()
}

// toolsInGroup compares the answer to /tools with the tools of a run of the same
// sender in the same chat.
func toolsInGroup(t *testing.T) {
	s := newSenders(t, echoing(), section("tools", `{"deny": ["web_search"], "toolsBySender": {"channel:open:friend": {"allow": ["read", "ls", "web_search", "exec"]}, "*": {"deny": ["exec"]}}}`))
	for sender, has := range map[string]string{
		"friend": "exec ls read",
		"boss":   "write read ls",
		"other":  "write read ls",
	} {
		got := s.say("open", groupChat, sender, "/tools")
		if len(got) != 1 {
			t.Fatalf("%s got %q", sender, got)
		}
		list, _, _ := strings.Cut(strings.TrimPrefix(got[0], "Tools available here: "), "\n")
		listed := strings.Split(list, ", ")
		s.say("open", groupChat, sender, "@hello")
		rs := s.model.Requests()
		var offered []string
		for _, x := range rs[len(rs)-1].Tools {
			offered = append(offered, x.Name)
		}
		slices.Sort(listed)
		slices.Sort(offered)
		if !slices.Equal(listed, offered) {
			t.Errorf("%s: /tools lists %q, the model got %q", sender, listed, offered)
		}
		for name := range strings.FieldsSeq(has) {
			if !slices.Contains(offered, name) {
				t.Errorf("%s has no %s", sender, name)
			}
		}
		if slices.Contains(offered, "web_search") || slices.Contains(offered, "exec") != (sender == "friend") ||
			sender == "friend" && len(offered) != 3 {
			t.Errorf("%s has %q", sender, offered)
		}
	}
	s.stop()
}

// internalError has the model code panic with a text that contains a key and a
// stack.
func internalError(t *testing.T) {
	const key = "sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz"
	s := newSenders(t, llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		if r.Messages[len(r.Messages)-1].PlainText() == "hi" {
			panic("boom with " + key + "\ngoroutine 7 [running]:\nmain.f()\n\t/src/x.go:12")
		}
		return llmtest.Say("fine")
	}), nil)
	defer s.stop()
	for _, sender := range []string{"boss", "friend"} {
		if got := s.say("open", groupChat, sender, "@hi"); len(got) > 0 {
			t.Errorf("the group was shown %q", got)
		}
		got := s.say("open", directChat, sender, "hi")
		if len(got) != 1 || !strings.HasPrefix(got[0], "⚠️ ") || strings.ContainsAny(got[0], "\n\t") ||
			strings.Contains(got[0], key[:20]) || strings.Contains(got[0], "goroutine") || strings.Contains(got[0], ".go:") {
			t.Errorf("the direct chat was shown %q", got)
		}
	}
	if n := len(s.ended(wire.StateError)); n != 4 {
		t.Errorf("%d runs failed, want 4", n)
	}
	for _, p := range []chela.Peer{groupChat, directChat} {
		if got := s.say("open", p, "boss", "@again"); len(got) != 1 || got[0] != "fine" {
			t.Errorf("the next answer in %s is %q", p.Kind, got)
		}
	}
}

// broken is a model that fails with errors of its own.
type broken struct{ errs []error }

func (b *broken) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	err := b.errs[0]
	if len(b.errs) > 1 {
		b.errs = b.errs[1:]
	}
	return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, err) }
}

// plainError has runs fail with an error for the log, and then with one for people.
func plainError(t *testing.T) {
	cause := &fs.PathError{Op: "open", Path: "/home/ann/.chela/chela.db",
		Err: errors.New("prepare SELECT meta FROM sessions")}
	plain := fmt.Errorf("transcript 7: %w", cause)
	model := &broken{errs: []error{plain, plain, plain, plain, plain, chela.Errorf(chela.CodeUnavailable, "%w: x",
		chela.ErrStorage), chela.Errorf(chela.CodeInvalid, "the lamp is off: %w", errors.New("no power"))}}
	var log bytes.Buffer
	s := newSenders(t, model, nil, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	defer s.stop()
	if got := s.say("open", groupChat, "boss", "@hi"); len(got) > 0 {
		t.Errorf("the group was shown %q", got)
	}
	if got := s.say("open", directChat, "boss", "hi"); !slices.Equal(got, []string{"⚠️ " + chela.InternalText}) {
		t.Errorf("the direct chat was shown %q", got)
	}
	if got := s.say("open", directChat, "boss", "/btw why?"); !slices.Equal(got, []string{"⚠️ " + chela.InternalText}) {
		t.Errorf("the answer to /btw is %q", got)
	}
	if end := s.Ask("main", "hi"); end.Error != chela.InternalText {
		t.Errorf("the client was told %q", end.Error)
	}
	ask := func(id string) string {
		err := s.Client.Client.Await(t.Context(), wire.MethodAgent,
			wire.AgentRun{Message: "hi", SessionKey: "main", IdempotencyKey: id}, nil, nil)
		e, _ := errors.AsType[*wire.Error](err)
		if e == nil {
			t.Fatalf("%s: %v", id, err)
		}
		return e.Message
	}
	for _, id := range []string{"plain", "storage"} {
		if got := ask(id); got != chela.InternalText {
			t.Errorf("%s: the caller of agent was told %q", id, got)
		}
	}
	if got := ask("for people"); got != "the lamp is off: no power" {
		t.Errorf("an error for people became %q", got)
	}
	if n := strings.Count(log.String(), "prepare SELECT"); n != 5 {
		t.Errorf("the log has the details of %d runs, want 5:\n%s", n, log.String())
	}
}
