package discord_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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
	"github.com/chela-ai/chela/internal/plugin/channel/discord"
	"github.com/chela-ai/chela/internal/plugin/channel/discord/discordtest"
)

const (
	ann   = "7"
	bob   = "8"
	guild = "100"
	room  = "101"
	forum = "102"
	topic = "103"
)

var (
	direct = chela.Address{Channel: "discord", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: ann}}
	public = chela.Address{Channel: "discord", Account: "default", Peer: chela.Peer{Kind: chela.Room, ID: room}}
)

// populate adds people and channels to a server.
func populate(s *discordtest.Server) {
	s.AddUser(discordtest.User{ID: ann, Username: "ann", GlobalName: "Ann"})
	s.AddUser(discordtest.User{ID: bob, Username: "bob"})
	s.AddGuild(guild,
		discordtest.Channel{ID: room, Name: "general"},
		discordtest.Channel{ID: forum, Name: "ideas", Type: discordtest.Forum},
		discordtest.Channel{ID: topic, Name: "a topic", Type: discordtest.Thread, Parent: room})
	s.AddMember(guild, discordtest.Member{User: &discordtest.User{ID: ann, Username: "ann", GlobalName: "Ann"},
		Nick: "Annie", Roles: []string{"55"}})
}

// fixture is an account on a server.
type fixture struct {
	*discordtest.Server
	t      *testing.T
	env    channel.Env
	client *http.Client
	ch     channel.Channel
	cancel context.CancelFunc
	done   chan error

	mu      sync.Mutex
	got     []chela.Inbound
	tries   int
	refuse  func(chela.Inbound) error // what the sink answers; nil: it accepts
	reports []error
}

// open makes an account on a server. It does not run.
func open(t *testing.T, s *discordtest.Server) *fixture {
	t.Helper()
	populate(s)
	f := &fixture{Server: s, t: t, client: s.Client()}
	f.env = channel.Env{
		Log:     slog.New(slog.DiscardHandler),
		HTTP:    f.client,
		Dir:     t.TempDir(),
		Trusted: func(...string) *http.Client { return f.client },
		Getenv:  func(string) string { return "" },
		Report:  func(err error) { f.mu.Lock(); defer f.mu.Unlock(); f.reports = append(f.reports, err) },
	}
	f.ch = f.account(discordtest.Token)
	return f
}

// account makes another instance of the account.
func (f *fixture) account(token string) channel.Channel {
	f.t.Helper()
	ch, err := discord.Factory().New(f.env, "default",
		json.RawMessage(fmt.Sprintf(`{"token": %q, "apiRoot": %q}`, token, f.Root())))
	if err != nil {
		f.t.Fatal(err)
	}
	return ch
}

// run starts Run and waits for the connection.
func (f *fixture) run() {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	f.cancel, f.done = cancel, make(chan error, 1)
	go func() { f.done <- f.ch.Run(ctx, f.sink) }()
	if err := f.Connected(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) sink(_ context.Context, in chela.Inbound) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.refuse != nil {
		if err := f.refuse(in); err != nil {
			return err
		}
	}
	f.got = append(f.got, in)
	return nil
}

// stop ends Run.
func (f *fixture) stop() {
	if f.cancel != nil {
		f.cancel()
		<-f.done
		f.cancel = nil
	}
}

// close ends everything, so that the bubble can end.
func (f *fixture) close() {
	f.stop()
	f.Server.Close()
	f.client.CloseIdleConnections()
}

// received returns the messages that the sink accepted.
func (f *fixture) received() []chela.Inbound {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// texts compares the texts that the sink accepted.
func (f *fixture) texts(want ...string) {
	f.t.Helper()
	var got []string
	for _, in := range f.received() {
		got = append(got, in.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("accepted, -want +got:\n%s", diff)
	}
}

// last returns the message that was accepted last.
func (f *fixture) last() chela.Inbound {
	f.t.Helper()
	got := f.received()
	if len(got) == 0 {
		f.t.Fatal("nothing was accepted")
	}
	return got[len(got)-1]
}

// say lets a person write and waits until the bot has processed it.
func (f *fixture) say(p discordtest.Post) {
	f.t.Helper()
	if err := f.Say(f.t.Context(), p); err != nil {
		f.t.Fatal(err)
	}
}

// send sends a part and fails the test if it was not accepted.
func (f *fixture) send(p channel.Part) channel.Receipt {
	f.t.Helper()
	r, err := f.ch.Send(f.t.Context(), p)
	if err != nil {
		f.t.Fatalf("send: %v", err)
	}
	return r
}

// with runs a test in a bubble with an account that is connected.
func with(t *testing.T, name string, test func(t *testing.T, f *fixture)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, discordtest.New())
			defer f.close()
			f.run()
			test(t, f)
		})
	})
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Bubble(t, func(t *testing.T) channeltest.Harness {
		s := discordtest.New()
		f := open(t, s)
		t.Cleanup(f.close)
		return channeltest.Harness{
			Channel: f.ch, Address: direct, Other: public, Once: true,
			Shown: func(a chela.Address) (out []string) {
				at := a.Peer.ID
				if a.Peer.Kind == chela.Direct {
					at = s.DM(at)
				}
				for _, m := range s.Shown(at) {
					out = append(out, m.Text)
				}
				return out
			},
			Say: func(ctx context.Context, in chela.Inbound) error {
				return s.Say(ctx, discordtest.Post{Channel: s.DM(in.Sender.ID), Person: in.Sender.ID, Text: in.Text})
			},
		}
	})
}

func TestReceive(t *testing.T) {
	with(t, "DC-01 a direct message is answered", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: f.DM(ann), Person: ann, Text: "hello"})
		want := chela.Inbound{Address: direct, Sender: chela.Sender{ID: ann, Name: "Ann"}, Text: "hello"}
		in := f.last()
		if in.ID == "" || in.Time.IsZero() {
			t.Errorf("the message has no id or no time: %+v", in)
		}
		id := in.ID
		in.ID, in.Time = "", time.Time{}
		if diff := cmp.Diff(want, in); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		f.send(channel.Part{Key: "1", Address: in.Address, ReplyTo: id, Text: "hi"})
		shown := f.Shown(f.DM(ann))
		if len(shown) != 2 || shown[1].Text != "hi" || shown[1].Reference["message_id"] != id {
			t.Errorf("shown: %+v", shown)
		}
		if n := len(f.Requests("POST", "/users/@me/channels")); n != 0 {
			t.Errorf("the channel of the direct messages was asked for %d times", n)
		}
		synctest.Wait()
		f.texts("hello") // and not its own message
	})
	with(t, "a reaction to a message of the account", func(t *testing.T, f *fixture) {
		react := func(user, author string) {
			seq := f.Dispatch("MESSAGE_REACTION_ADD", map[string]any{
				"user_id":           user,
				"channel_id":        room,
				"guild_id":          guild,
				"message_id":        "4444",
				"message_author_id": author,
				"member": map[string]any{
					"user":  map[string]any{"id": user, "username": "ann"},
					"nick":  "Annie",
					"roles": []string{"55"},
				},
				"emoji": map[string]any{"id": nil, "name": "👍"},
			})
			if err := f.Await(t.Context(), seq); err != nil {
				t.Fatal(err)
			}
		}
		react(ann, bob)
		react(discordtest.Self, discordtest.Self)
		react(ann, discordtest.Self)
		synctest.Wait()
		got := f.received()
		if len(got) != 1 || got[0].Reaction != "👍" || got[0].ReplyTo != "4444" ||
			got[0].Sender != (chela.Sender{ID: ann, Name: "Annie"}) || got[0].Address != public || got[0].Guild != guild {
			t.Errorf("accepted %+v", got)
		}
	})
	with(t, "DC-04 a message in a guild", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "hello all"})
		want := chela.Inbound{
			Address: public,
			Sender:  chela.Sender{ID: ann, Name: "Annie"},
			Text:    "hello all",
			Guild:   guild,
			Roles:   []string{"55"},
			Group:   "#general",
		}
		in := f.last()
		in.ID, in.Time = "", time.Time{}
		if diff := cmp.Diff(want, in); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for _, c := range []struct{ text, want string }{
			{"<@" + discordtest.Self + "> what is this?", "what is this?"},
			{" <@!" + discordtest.Self + ">, and <@" + discordtest.Self + ">?", "and <@" + discordtest.Self + ">?"},
			{"<@" + discordtest.Self + ">", "@chela"},
		} {
			f.say(discordtest.Post{Channel: room, Person: ann, Text: c.text})
			if in := f.last(); !in.Mentioned || in.Text != c.want {
				t.Errorf("%q: mentioned %v, text %q, want %q", c.text, in.Mentioned, in.Text, c.want)
			}
		}
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "<@" + bob + "> hello"})
		if in := f.last(); in.Mentioned || in.Text != "<@"+bob+"> hello" {
			t.Errorf("a mention of somebody else: %+v", in)
		}
		if n := len(f.Requests("GET", "/channels/"+room)); n != 1 {
			t.Errorf("the channel was looked up %d times", n)
		}
	})
	with(t, "DC-05 a thread", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: topic, Person: ann, Text: "hello"})
		want := public
		want.Thread = topic
		if in := f.last(); in.Address != want || in.Group != "#a topic" {
			t.Errorf("address %+v, group %q", in.Address, in.Group)
		}
		f.send(channel.Part{Key: "1", Address: want, Text: "hi"})
		if shown := f.Shown(topic); len(shown) != 2 || len(f.Shown(room)) != 0 {
			t.Errorf("shown: %+v", shown)
		}
	})
	with(t, "a reply to the bot mentions it and quotes", func(t *testing.T, f *fixture) {
		r := f.send(channel.Part{Key: "1", Address: public, Text: "an answer"})
		f.say(discordtest.Post{Channel: room, Person: bob, Text: "why?", ReplyTo: r.ID})
		in := f.last()
		if !in.Mentioned || in.ReplyTo != r.ID || in.Quote.Text != "an answer" || in.Quote.Sender.ID != discordtest.Self {
			t.Errorf("got %+v", in)
		}
	})
	with(t, "an edit is another message, a preview of a link is none", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "helo"})
		first := f.last()
		_ = f.Await(t.Context(), f.Change(first.ID, "hello"))
		in := f.last()
		if !in.Edited || in.Text != "hello" || !strings.HasPrefix(in.ID, first.ID+":edit:") {
			t.Errorf("got %+v", in)
		}
		f.send(channel.Part{Key: "1", Address: public, ReplyTo: in.ID, Text: "hi"})
		if m := f.Shown(room)[1]; m.Reference["message_id"] != first.ID {
			t.Errorf("the answer refers to %v", m.Reference)
		}
		m := f.Write(discordtest.Post{Channel: room, Person: ann, Text: "see https://example.org"})
		_ = f.Await(t.Context(), f.Dispatch("MESSAGE_UPDATE", m))
		f.texts("helo", "hello")
	})
	with(t, "an edit before its message, and a message repeated", func(t *testing.T, f *fixture) {
		m := f.Write(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		f.Change(m.ID, "two")
		f.Dispatch("MESSAGE_CREATE", m)
		f.Skip(3)
		_ = f.Await(t.Context(), f.Dispatch("MESSAGE_CREATE", m))
		f.texts("two", "one")
	})
	with(t, "kinds without text", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Sticker: "Wave"})
		f.say(discordtest.Post{Channel: room, Person: ann, Forward: "from elsewhere"})
		if in := f.last(); in.Forwarded == "" || in.ReplyTo != "" {
			t.Errorf("forwarded: %+v", in)
		}
		f.say(discordtest.Post{Channel: room, Person: ann, Type: 7}) // somebody joined
		f.say(discordtest.Post{Channel: room, Person: ann})          // without content
		_ = f.Await(t.Context(), f.Dispatch("MESSAGE_CREATE", map[string]any{
			"id":         f.ID(),
			"channel_id": room,
			"guild_id":   guild,
			"author":     map[string]any{"id": ann, "username": "ann"},
			"timestamp":  time.Now(),
			"poll": map[string]any{
				"question": map[string]any{"text": "Lunch?"},
				"answers":  []any{map[string]any{"poll_media": map[string]any{"text": "soup"}}},
			},
		}))
		for _, event := range []string{"FUTURE_EVENT", "MESSAGE_CREATE", "INTERACTION_CREATE", "CHANNEL_UPDATE"} {
			_ = f.Await(t.Context(), f.Dispatch(event, []int{1}))
		}
		f.texts("[sticker Wave]", "from elsewhere", "[poll Lunch?: soup]")
	})
	with(t, "attachments are announced and fetched from the platform only", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Files: map[string]string{"a.png": "12345"}})
		in := f.last()
		if len(in.Media) != 1 || in.Media[0].Name != "a.png" || in.Media[0].Type != "image/png" || in.Media[0].Bytes != 5 ||
			in.Media[0].Data != nil {
			t.Fatalf("media: %+v", in.Media)
		}
		fetcher := f.ch.(channel.Fetcher)
		m, err := fetcher.Fetch(t.Context(), in.Media[0], 5)
		if err != nil || string(m.Data) != "12345" || m.Source != "" {
			t.Errorf("fetched %+v, %v", m, err)
		}
		if _, err := fetcher.Fetch(t.Context(), in.Media[0], 4); err == nil {
			t.Error("more bytes than allowed were fetched")
		}
		missing := chela.Media{Source: strings.TrimSuffix(f.Root(), "/api/v10") + "/attachments/none"}
		if _, err := fetcher.Fetch(t.Context(), missing, 10); !errors.Is(err, channel.ErrGone) {
			t.Errorf("missing: %v", err)
		}
		for _, at := range []string{"http://other.invalid/x", "file:///etc/passwd",
			"https://cdn.discordapp.com@evil.invalid/x", "%"} {
			if _, err := fetcher.Fetch(t.Context(), chela.Media{Source: at}, 10); err == nil {
				t.Errorf("%s was fetched", at)
			}
		}
		if _, err := fetcher.Fetch(t.Context(),
			chela.Media{Source: strings.TrimSuffix(f.Root(), "/api/v10") + "/attachments/redirect"}, 10); err == nil {
			t.Error("a redirect was followed")
		}
		_ = f.Await(t.Context(), f.Dispatch("MESSAGE_CREATE", map[string]any{
			"id": f.ID(), "channel_id": room, "guild_id": guild, "author": map[string]any{"id": ann}, "timestamp": time.Now(),
			"attachments": []any{map[string]any{"filename": "x", "url": "http://other.invalid/x"}},
		}))
		if in := f.last(); in.Text != "[attachment x]" || len(in.Media) != 0 {
			t.Errorf("an attachment elsewhere: %+v", in)
		}
	})
	with(t, "a message of a program", func(t *testing.T, f *fixture) {
		f.AddUser(discordtest.User{ID: "9", Username: "robot", Bot: true})
		f.say(discordtest.Post{Channel: room, Person: "9", Text: "beep"})
		if in := f.last(); !in.Sender.Bot {
			t.Errorf("got %+v", in.Sender)
		}
	})
	with(t, "a channel that cannot be looked up for a while", func(t *testing.T, f *fixture) {
		f.Fail(discordtest.Fault{Path: "/channels/" + topic, Status: 500},
			discordtest.Fault{Path: "/channels/" + topic, Status: 429, RetryAfter: 3})
		f.say(discordtest.Post{Channel: topic, Person: ann, Text: "hello"})
		if in := f.last(); in.Address.Thread != topic {
			t.Errorf("got %+v", in.Address)
		}
	})
}

func TestSinkErrors(t *testing.T) {
	with(t, "later messages wait while one is not accepted", func(t *testing.T, f *fixture) {
		full := true
		f.refuse = func(in chela.Inbound) error {
			if full && in.Text == "one" {
				return chela.ErrFull
			}
			return nil
		}
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		_, seq := f.Send(discordtest.Post{Channel: room, Person: ann, Text: "two"})
		began := time.Now()
		time.Sleep(time.Minute)
		f.texts()
		f.mu.Lock()
		if f.tries < 5 || f.tries > 9 {
			t.Errorf("%d attempts in a minute", f.tries)
		}
		full = false
		f.mu.Unlock()
		_ = f.Await(t.Context(), seq)
		f.texts("one", "two")
		if d := time.Since(began); d > 3*time.Minute {
			t.Errorf("it took %v", d)
		}
	})
	with(t, "a refused message is not tried again", func(t *testing.T, f *fixture) {
		f.refuse = func(in chela.Inbound) error {
			switch in.Text {
			case "one":
				return chela.Errorf(chela.CodeForbidden, "may not write")
			case "two":
				return chela.Errorf(chela.CodeInvalid, "too long")
			}
			return nil
		}
		for _, text := range []string{"one", "two", "three"} {
			f.say(discordtest.Post{Channel: room, Person: ann, Text: text})
		}
		f.texts("three")
		if f.tries != 3 {
			t.Errorf("%d attempts", f.tries)
		}
	})
}

func TestConnection(t *testing.T) {
	with(t, "DC-02 a missed heartbeat resumes after the last accepted message", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		f.Mute(true)
		time.Sleep(3 * time.Minute)
		f.Mute(false)
		_ = f.Connected(t.Context())
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "two"})
		f.texts("one", "two")
		resumes, starts := f.Resumes()
		if len(resumes) == 0 || resumes[0].Seq != 2 || starts != 1 {
			t.Errorf("resumes %+v, %d sessions", resumes, starts)
		}
	})
	with(t, "nothing is lost when the sink fails and the connection breaks", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "zero"})
		full := true
		f.refuse = func(chela.Inbound) error {
			if full {
				return chela.ErrFull
			}
			return nil
		}
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		synctest.Wait()
		f.Drop(0)
		_, seq := f.Send(discordtest.Post{Channel: room, Person: ann, Text: "two"})
		_ = f.Connected(t.Context())
		resumes, _ := f.Resumes()
		if len(resumes) != 1 || resumes[0].Seq != 2 {
			t.Errorf("resumes %+v, want one from 2", resumes)
		}
		f.mu.Lock()
		full = false
		f.mu.Unlock()
		_ = f.Await(t.Context(), seq)
		f.texts("zero", "one", "two")
	})
	with(t, "what waits is not queued again by each resume", func(t *testing.T, f *fixture) {
		f.refuse = func(chela.Inbound) error { return chela.ErrFull }
		for range 300 {
			f.Send(discordtest.Post{Channel: room, Person: ann, Text: "x"})
		}
		for range 5 {
			synctest.Wait()
			f.Drop(0)
			_ = f.Connected(t.Context())
		}
		synctest.Wait()
		f.mu.Lock()
		n := len(f.reports)
		f.mu.Unlock()
		time.Sleep(10 * time.Minute)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.reports) != n {
			t.Errorf("the connection was lost: %v", f.reports[n:])
		}
	})
	with(t, "a restarted process resumes", func(t *testing.T, f *fixture) {
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		f.refuse = func(chela.Inbound) error { return chela.ErrFull }
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "two"})
		synctest.Wait()
		f.stop()
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "three"})
		f.refuse = nil
		f.ch = f.account(discordtest.Token)
		f.run()
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "four"})
		f.texts("one", "two", "three", "four")
		if resumes, starts := f.Resumes(); len(resumes) != 1 || starts != 1 {
			t.Errorf("resumes %+v, %d sessions", resumes, starts)
		}
	})
	with(t, "an invalid session starts another one, and keeps what waits", func(t *testing.T, f *fixture) {
		full := true
		f.refuse = func(chela.Inbound) error {
			if full {
				return chela.ErrFull
			}
			return nil
		}
		f.Send(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		synctest.Wait()
		f.Forget()
		f.Drop(0)
		time.Sleep(20 * time.Second)
		f.mu.Lock()
		full = false
		f.mu.Unlock()
		f.say(discordtest.Post{Channel: room, Person: ann, Text: "two"})
		f.texts("one", "two")
		if _, starts := f.Resumes(); starts != 2 {
			t.Errorf("%d sessions", starts)
		}
	})
	for _, c := range []struct {
		name   string
		fault  func(*discordtest.Server)
		starts int
	}{
		{"operation reconnect", func(s *discordtest.Server) { s.Ask(7, "null") }, 1},
		{"operation invalid session, which can be resumed", func(s *discordtest.Server) { s.Ask(9, "true") }, 1},
		{"operation invalid session", func(s *discordtest.Server) { s.Ask(9, "false") }, 2},
		{"close code 4000", func(s *discordtest.Server) { s.Drop(4000) }, 1},
		{"close code 4009", func(s *discordtest.Server) { s.Drop(4009) }, 2},
	} {
		with(t, c.name, func(t *testing.T, f *fixture) {
			f.say(discordtest.Post{Channel: room, Person: ann, Text: "one"})
			c.fault(f.Server)
			time.Sleep(10 * time.Second)
			f.say(discordtest.Post{Channel: room, Person: ann, Text: "two"})
			f.texts("one", "two")
			if _, starts := f.Resumes(); starts != c.starts {
				t.Errorf("%d sessions, want %d", starts, c.starts)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if n := len(f.reports); n < 3 || f.reports[0] != nil || f.reports[1] == nil || f.reports[n-1] != nil {
				t.Errorf("reports: %v", f.reports)
			}
		})
	}
	with(t, "the gateway asks for a heartbeat", func(t *testing.T, f *fixture) {
		_, seq := f.Send(discordtest.Post{Channel: room, Person: ann, Text: "one"})
		synctest.Wait()
		began := time.Now()
		f.Ask(1, "null")
		_ = f.Await(t.Context(), seq)
		if time.Since(began) > time.Second {
			t.Error("the heartbeat was not sent at once")
		}
	})
}

// TestPermanent ends Run for reasons that no retry can change.
func TestPermanent(t *testing.T) {
	for _, c := range []struct {
		name, token string
		code        int
		want        []string
	}{
		{"a wrong token", "wrong", 0, []string{"token is not valid", "chela config set channels.discord.token"}},
		{"code 4004", discordtest.Token, 4004, []string{"token is not valid"}},
		{"code 4013", discordtest.Token, 4013,
			[]string{"Message Content Intent", "https://discord.com/developers/applications"}},
		{"code 4014", discordtest.Token, 4014, []string{"Message Content Intent"}},
		{"code 4011", discordtest.Token, 4011, []string{"several connections"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := open(t, discordtest.New())
				defer f.close()
				f.ch = f.account(c.token)
				f.Refuse(c.code)
				began := time.Now()
				err := f.ch.Run(t.Context(), f.sink)
				e, ok := errors.AsType[*channel.Error](err)
				if !ok || !e.Permanent || time.Since(began) > time.Second {
					t.Fatalf("got %v", err)
				}
				for _, want := range c.want {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q lacks %q", err, want)
					}
				}
				if strings.Contains(err.Error(), c.token) && c.token != "wrong" {
					t.Errorf("%q contains the token", err)
				}
			})
		})
	}
	t.Run("an error of the first request is tried again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, discordtest.New())
			defer f.close()
			for _, status := range []int{403, 404, 502} {
				f.Fail(discordtest.Fault{Path: "/gateway/bot", Status: status})
			}
			f.run()
			f.say(discordtest.Post{Channel: room, Person: ann, Text: "hello"})
			f.texts("hello")
		})
	})
	t.Run("too many sessions today", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := open(t, discordtest.New())
			defer f.close()
			f.Exhaust(true)
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			_ = f.ch.Run(ctx, f.sink)
			if n := len(f.Requests("GET", "/gateway/bot")); n != 1 {
				t.Errorf("%d attempts in 4 minutes", n)
			}
			if _, starts := f.Resumes(); starts != 0 {
				t.Errorf("%d sessions were started", starts)
			}
		})
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	env := channel.Env{Trusted: func(...string) *http.Client { return nil }, Getenv: func(name string) string {
		return map[string]string{"DISCORD_BOT_TOKEN": "from the environment", "OTHER": "Bot abc"}[name]
	}}
	for _, c := range []struct{ account, raw, want string }{
		{"default", `{}`, "spaces"},
		{"default", `{"token": "abc"}`, ""},
		{"default", `{"token": "env:OTHER"}`, ""},
		{"work", `{}`, "chela config set channels.discord.accounts.work.token TOKEN"},
		{"work", `{"token": "env:MISSING"}`, "MISSING"},
		{"work", `{"token": 5}`, "secret"},
		{"work", `{"token": "a", "apiRoot": "ftp://x"}`, "apiRoot"},
	} {
		_, err := discord.Factory().New(env, c.account, json.RawMessage(c.raw))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.account, c.raw, err, c.want)
		}
	}
}
