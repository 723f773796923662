package message_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/engine/deliver"
	enginemessage "github.com/chela-ai/chela/internal/engine/message"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/plugin/tool/message"
)

const home = chela.SessionKey("agent:main:main")

// at returns a chat on a channel.
func at(name, id string) chela.Address {
	return chela.Address{Channel: name, Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

var local = chela.Address{Channel: chela.LocalChannel}

// fixture is the tool with a database, a delivery worker and fake channels.
type fixture struct {
	t      *testing.T
	db     *sqlite.DB
	st     syncs // of the tool
	files  *media.Files
	worker *deliver.Worker
	actor  *enginemessage.Actor
	events []chela.Event
	dir    string
	stop   func()
	tool.Tool

	mu       sync.Mutex
	channels map[string]*channeltest.Fake
	down     map[string]string
	held     lease.Lease
	view     func(*channeltest.Fake) channel.Channel // the abilities of the channels
	section  string                                  // configuration of each account
	buttons  bool                                    // the platforms have buttons
}

// syncs records how updates were requested.
type syncs struct {
	store.Store
	all []store.Sync
}

func (s *syncs) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	s.all = append(s.all, sync)
	return s.Store.Update(ctx, sync, f)
}

// listened closes ready once its wakes are received.
type listened struct {
	store.Store
	ready chan struct{}
}

func (l listened) Wakes(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	defer close(l.ready)
	return l.Store.Wakes(ctx, kind)
}

// durable checks that the only commit of the tool was on disk when it returned: the
// message was shown, or the call ended and will not be repeated.
func (h *fixture) durable() {
	h.t.Helper()
	if !slices.Equal(h.st.all, []store.Sync{store.Synced}) {
		h.t.Errorf("commits %v, want a synced one", h.st.all)
	}
}

// change sets the channels and rules of the tool.
func (h *fixture) change(cross action.CrossContext, names ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.channels, h.down = map[string]*channeltest.Fake{}, map[string]string{}
	for _, name := range names {
		h.channels[name] = &channeltest.Fake{}
	}
	h.actor = enginemessage.New(enginemessage.Options{
		Store:    &h.st,
		Publish:  func(e chela.Event) { h.events = append(h.events, e) },
		Chunks:   h.worker.Chunks,
		Await:    h.worker.Await,
		Accounts: h.accounts,
		Acquire:  h.acquire,
		Track:    func() func() bool { return func() bool { return true } },
	})
	o := message.Options{Do: h.actor.Do, Files: h.files, CrossContext: cross}
	if len(names) > 0 {
		o.Actions = action.All()
	}
	h.Tool = message.New(o)
}

// accounts returns three accounts of each channel.
func (h *fixture) accounts() []channel.Account {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []channel.Account
	for _, name := range slices.Sorted(maps.Keys(h.channels)) {
		for _, id := range []chela.AccountID{"bot", "second", "third"} {
			a := channel.Account{
				Channel: name,
				ID:      id,
				Usual:   id == "bot",
				Section: json.RawMessage(h.section),
				Limits:  h.limits(name),
				Can:     h.view(h.channels[name]),
			}
			if why := h.down[name]; why != "" {
				a.Err = errors.New(why)
			}
			out = append(out, a)
		}
	}
	return out
}

func (h *fixture) acquire(_ context.Context, name string, _ chela.AccountID) (channel.Instance, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.channels[name]
	if !ok {
		return channel.Instance{}, chela.ErrNotFound
	}
	return channel.Instance{Channel: h.view(f), Lease: h.held, Release: func() {}}, nil
}

func plain(f *channeltest.Fake) channel.Channel { return f.Plain() }

func (h *fixture) limits(string) channel.Limits { return channel.Limits{Text: 100, Buttons: h.buttons} }

func build(t *testing.T, dir string, cross action.CrossContext, names ...string) *fixture {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	files, err := media.Open(filepath.Join(dir, media.Dir), 0)
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{
		t:     t,
		db:    db,
		st:    syncs{Store: db},
		files: files,
		dir:   dir,
		view:  func(f *channeltest.Fake) channel.Channel { return f },
	}
	log := slog.New(slog.DiscardHandler)
	h.update(func(tx store.Tx) (err error) {
		h.held, _, err = tx.Leases().Acquire(lease.Channel("fake", "bot"), "boot")
		return err
	})
	rows := listened{db, make(chan struct{})}
	h.worker = deliver.New(deliver.Options{
		Log: log, Store: rows, Bus: bus.New(log), Load: files.Load,
		Track:   func() func() bool { return func() bool { return true } },
		Channel: h.acquire,
		Limits:  h.limits,
	})
	h.change(cross, names...)
	now := time.Now()
	h.update(func(tx store.Tx) error {
		for key, a := range map[chela.SessionKey]chela.Address{
			home: {}, "agent:main:other": {}, "agent:ops:main": {}, "agent:main:fake:group:g1": {
				Channel: "fake", Account: "second", Peer: chela.Peer{Kind: chela.Group, ID: "g1"},
			},
		} {
			if err := tx.Sessions().Put(session.Meta{
				Key:     key,
				ID:      "t " + string(key),
				Agent:   key.Agent(),
				Address: a,
				Created: now,
				Updated: now,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = h.worker.Run(ctx) }()
	<-rows.ready
	h.stop = func() {
		cancel()
		<-done
		files.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	return h
}

func (h *fixture) update(f func(store.Tx) error) {
	h.t.Helper()
	if err := h.db.Update(context.Background(), store.Synced, f); err != nil {
		h.t.Fatal(err)
	}
}

// call calls the tool in a run whose answer goes to an address.
func (h *fixture) call(here chela.Address, args map[string]any) (tool.Result, error) {
	h.t.Helper()
	h.update(func(tx store.Tx) error {
		return tx.Runs().Put(run.Run{
			ID:      "r",
			Session: home,
			Agent:   "main",
			Address: here,
			State:   run.Running,
			Started: time.Now(),
		})
	})
	b, err := json.Marshal(args)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.Run(context.Background(), tool.Call{
		ID: "c1", Args: b, Run: "r", Session: home, Agent: "main", Dir: h.dir, Update: func(string) {},
	})
}

// on runs a subtest with fake time.
func on(t *testing.T, name string, cross action.CrossContext, names []string, f func(*testing.T, *fixture)) {
	t.Run(name, func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := build(t, dir, cross, names...)
			defer h.stop()
			f(t, h)
		})
	})
}

// details are the details of a result.
type details struct {
	Status, Channel, To string
	DryRun              bool
	MessageIDs          []string
}

func detailsOf(t *testing.T, r tool.Result) details {
	t.Helper()
	var d details
	if err := json.Unmarshal(r.Details, &d); err != nil {
		t.Fatalf("%s: %v", r.Details, err)
	}
	return d
}

type m = map[string]any

func TestSuite(t *testing.T) {
	h := build(t, t.TempDir(), action.CrossContext{}, "fake")
	defer h.stop()
	h.update(func(tx store.Tx) error {
		return tx.Sessions().Put(session.Meta{Key: "agent:main:test", ID: "x", Agent: "main"})
	})
	tooltest.Run(t, h.Tool, tooltest.Options{Args: []string{
		`{"message":"hi","to":"fake:1","dryRun":true}`,
		`{"action":"send","message":"hi","to":"user:1","channel":"fake","dryRun":true,"media":["a.png"]}`,
	}})
}

func TestSend(t *testing.T) {
	one := []string{"fake"}
	on(t, "MS-01 to the current chat, returns the platform's id", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			r, err := h.call(at("fake", "1"), m{"action": "send", "message": "hello"})
			if err != nil || r.IsError {
				t.Fatalf("%+v %v", r, err)
			}
			h.durable()
			if diff := cmp.Diff(details{Status: "sent", Channel: "fake", To: "1", MessageIDs: []string{"m1"}},
				detailsOf(t, r)); diff != "" {
				t.Error(diff)
			}
			if got := h.channels["fake"].Texts(at("fake", "1")); !slices.Equal(got, []string{"hello"}) {
				t.Errorf("delivered %q", got)
			}
		})
	on(t, "LOOP-13 the same text is not sent again", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		if _, err := h.call(at("fake", "1"), m{"message": "hello"}); err != nil {
			t.Fatal(err)
		}
		rows := h.rows()
		h.update(func(tx store.Tx) error {
			return h.worker.Ended(run.Run{
				ID:      "r",
				Session: home,
				Address: at("fake", "1"),
				State:   run.OK,
				Text:    " hello\n",
				Ended:   time.Now(),
			})(tx)
		})
		synctest.Wait()
		if n := h.rows(); n != rows {
			t.Errorf("the same text added %d rows", n-rows)
		}
		h.update(func(tx store.Tx) error {
			return h.worker.Ended(run.Run{
				ID:      "r",
				Session: home,
				Address: at("fake", "1"),
				State:   run.OK,
				Text:    "hello again",
				Ended:   time.Now(),
			})(tx)
		})
		synctest.Wait()
		if got := h.channels["fake"].Texts(at("fake", "1")); !slices.Equal(got, []string{"hello", "hello again"}) {
			t.Errorf("another text: delivered %q", got)
		}
	})
	on(t, "LOOP-13 a text sent to another chat is still sent to this one", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			if _, err := h.call(at("fake", "1"), m{"message": "done", "to": "2"}); err != nil {
				t.Fatal(err)
			}
			h.update(func(tx store.Tx) error {
				return h.worker.Ended(run.Run{
					ID:      "r",
					Session: home,
					Address: at("fake", "1"),
					State:   run.OK,
					Text:    "done",
					Ended:   time.Now(),
				})(tx)
			})
			synctest.Wait()
			if got := h.channels["fake"].Texts(at("fake", "1")); !slices.Equal(got, []string{"done"}) {
				t.Errorf("delivered %q", got)
			}
		})
	on(t, "a long message in parts, with files on the first", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 3))); err != nil {
			t.Fatal(err)
		}
		ref, err := h.files.Put(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h.dir, "note.txt"), []byte("a note"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := h.call(at("fake", "1"),
			m{"message": strings.Repeat("word ", 30), "media": []string{"media:" + ref, "note.txt"}, "replyTo": "m9"})
		if err != nil || len(detailsOf(t, r).MessageIDs) != 2 {
			t.Fatalf("%s %v", r.Details, err)
		}
		got := h.channels["fake"].Messages(at("fake", "1"))
		if len(got) != 2 || got[0].ReplyTo != "m9" || len(got[0].Media) != 2 || len(got[1].Media) != 0 {
			t.Fatalf("delivered %+v", got)
		}
		if f := got[0].Media[0]; f.Type != media.PNG || !bytes.Equal(f.Data, b.Bytes()) || f.Ref != "" {
			t.Errorf("the picture: %s, %d bytes", f.Type, len(f.Data))
		}
		if f := got[0].Media[1]; f.Name != "note.txt" || string(f.Data) != "a note" {
			t.Errorf("the file: %+v", f)
		}
	})
	on(t, "only a file", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		if err := os.WriteFile(filepath.Join(h.dir, "note.txt"), []byte("a note"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.call(at("fake", "1"), m{"media": []string{"note.txt"}}); err != nil {
			t.Fatal(err)
		}
		if got := h.channels["fake"].Messages(at("fake", "1")); len(got) != 1 || len(got[0].Media) != 1 {
			t.Errorf("delivered %+v", got)
		}
	})
	on(t, "a text over the limit is refused", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		const limit = 100_000
		_, err := h.call(at("fake", "1"), m{"message": strings.Repeat("w", limit+1)})
		if err == nil || !strings.Contains(err.Error(), "100001 bytes is too long; the limit is 100000") || h.rows() != 0 {
			t.Errorf("%v, %d rows", err, h.rows())
		}
		if _, err := h.call(at("fake", "1"), m{"message": strings.Repeat("w", limit)}); err != nil {
			t.Errorf("as long as allowed: %v", err)
		}
	})
	on(t, "MS-09 dry run", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		r, err := h.call(local, m{"message": "hi", "to": "fake:group:g1", "dryRun": true})
		if err != nil || !detailsOf(t, r).DryRun || !strings.Contains(r.Content[0].Text, `fake:g1: "hi"`) || h.rows() != 0 {
			t.Errorf("%+v %v, %d rows", r, err, h.rows())
		}
	})
}

// rows returns the number of outbox rows of the run.
func (h *fixture) rows() (n int) {
	h.t.Helper()
	err := h.db.View(context.Background(), func(r store.Reader) error {
		rows, err := r.Outbox().OfRun("r")
		n = len(rows)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  channeltest.Fault
		plain  bool
		status string
		isErr  bool
		words  string
	}{
		{"permanent failure", channeltest.Permanent(), false, "failed", true, "Not sent"},
		{"rate limited", channeltest.Limited(time.Hour), false, "queued", false, "do not send it again"},
		{"temporary failure", channeltest.Temporary(), false, "sent", false, "Sent"},
	} {
		on(t, c.name, action.CrossContext{}, []string{"fake"}, func(t *testing.T, h *fixture) {
			h.channels["fake"].Fail(c.fault)
			r, err := h.call(at("fake", "1"), m{"message": "hello"})
			if err != nil || detailsOf(t, r).Status != c.status || r.IsError != c.isErr ||
				!strings.Contains(r.Content[0].Text, c.words) {
				t.Errorf("%+v, %v", r, err)
			}
			if c.status != "queued" {
				return
			}
			time.Sleep(2 * time.Hour)
			if got := h.channels["fake"].Texts(at("fake", "1")); len(got) != 1 {
				t.Errorf("delivered later: %q", got)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	h := build(t, t.TempDir(), action.CrossContext{})
	defer func() { h.t = t; h.stop() }()
	h.view = plain // its ids are not looked up
	yes, no := true, false
	group := chela.Address{Channel: "fake", Account: "second", Peer: chela.Peer{Kind: chela.Group, ID: "g1"}}
	err := h.db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		a := group
		a.Peer.ID = "g9"
		return tx.Sessions().Put(session.Meta{Key: "agent:ops:fake:group:g9", ID: "t ops", Agent: "ops", Address: a})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		channels []string
		here     chela.Address
		cross    action.CrossContext
		args     m
		to       chela.Address
		err      string
	}{
		{"this chat", []string{"fake"}, at("fake", "1"), action.CrossContext{}, m{}, at("fake", "1"), ""},
		{"channel name before the id", []string{"fake", "irc"}, local, action.CrossContext{}, m{"to": "fake:7"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}, ""},
		{"the only channel", []string{"fake"}, local, action.CrossContext{}, m{"to": "user:7"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}, ""},
		{"known chat", []string{"fake"}, local, action.CrossContext{}, m{"to": "g1"}, group, ""},
		{"a room", []string{"fake"}, local, action.CrossContext{}, m{"to": "channel:c9", "channel": "FAKE"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Room, ID: "c9"}}, ""},
		{"a topic", []string{"fake"}, local, action.CrossContext{}, m{"to": "-100:topic:5"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "-100"}, Thread: "5"}, ""},
		{"an id with a colon", []string{"fake"}, local, action.CrossContext{}, m{"to": "!room:server"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "!room:server"}}, ""},
		{"an id with a dot and a colon", []string{"fake"}, local, action.CrossContext{}, m{"to": "a.b:c"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "a.b:c"}}, ""},
		{"a channel with digits", []string{"fake", "b2-b"}, local, action.CrossContext{}, m{"to": "b2-b:7"},
			chela.Address{Channel: "b2-b", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}, ""},
		{"a topic of this chat", []string{"fake"}, at("fake", "1"), action.CrossContext{}, m{"threadId": "8"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "1"}, Thread: "8"}, ""},
		{"another chat of this channel", []string{"fake"}, at("fake", "1"), action.CrossContext{Within: &yes},
			m{"to": "2"}, at("fake", "2"), ""},
		{"another channel, allowed", []string{"fake", "irc"}, at("irc", "x"), action.CrossContext{Across: true},
			m{"to": "fake:2"}, chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "2"}},
			""},
		{"a topic instead of that in the target", []string{"fake"}, at("fake", "1"), action.CrossContext{},
			m{"to": "1:topic:5", "threadId": "8"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "1"}, Thread: "8"}, ""},
		{"the topic of this chat", []string{"fake"}, chela.Address{Channel: "fake", Account: "bot",
			Peer: chela.Peer{Kind: chela.Group, ID: "1"}, Thread: "3"}, action.CrossContext{}, m{},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Group, ID: "1"}, Thread: "3"}, ""},
		{"the last of two topics", []string{"fake"}, local, action.CrossContext{}, m{"to": "-100:topic:5:topic:6"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "-100:topic:5"},
				Thread: "6"}, ""},
		{"an account", []string{"fake"}, local, action.CrossContext{}, m{"to": "g1", "accountId": "third"},
			chela.Address{Channel: "fake", Account: "third", Peer: group.Peer}, ""},
		{"a group with the id of this chat", []string{"fake"}, at("fake", "1"), action.CrossContext{}, m{"to": "group:1"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Group, ID: "1"}}, ""},
		{"a person with the id of a known group", []string{"fake"}, local, action.CrossContext{}, m{"to": "user:g1"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "g1"}}, ""},
		{"a chat that is known to another agent", []string{"fake"}, local, action.CrossContext{}, m{"to": "g9"},
			chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: "g9"}}, ""},
		{"the channel of this chat", []string{"fake", "irc"}, at("irc", "x"), action.CrossContext{},
			m{"to": "y"}, at("irc", "y"), ""},
		{"this chat, although others are not allowed", []string{"fake"}, at("fake", "1"), action.CrossContext{Within: &no},
			m{}, at("fake", "1"), ""},

		{"MS-02 no channel is configured", nil, local, action.CrossContext{}, m{"to": "7"}, chela.Address{},
			"no channel is configured"},
		{"MS-02 two channels, none named", []string{"fake", "irc"}, local, action.CrossContext{}, m{"to": "7"},
			chela.Address{}, "choose one of fake, irc"},
		{"MS-02 unknown channel", []string{"fake", "irc"}, local, action.CrossContext{}, m{"to": "7", "channel": "telegram"},
			chela.Address{}, "available: fake, irc, local"},
		{"MS-03 the target contradicts the channel", []string{"whatsapp", "telegram"}, local, action.CrossContext{},
			m{"to": "telegram:1", "channel": "whatsapp"}, chela.Address{}, "is on telegram, but the channel is whatsapp"},
		{"MS-03 contradiction between unconfigured channels", nil, local, action.CrossContext{},
			m{"to": "telegram:1", "channel": "whatsapp"}, chela.Address{}, "is on telegram"},
		{"MS-08 another action", []string{"fake"}, local, action.CrossContext{}, m{"to": "7", "action": "kick"},
			chela.Address{}, `action "kick" is not supported; use send, broadcast, poll, react`},
		{"no chat", []string{"fake"}, local, action.CrossContext{}, m{"channel": "fake"}, chela.Address{},
			"give a chat on fake"},
		{"another channel, not allowed", []string{"fake", "irc"}, at("irc", "x"), action.CrossContext{}, m{"to": "fake:2"},
			chela.Address{}, "allowAcrossProviders"},
		{"from a channel to a local session", []string{"fake"}, at("fake", "1"), action.CrossContext{},
			m{"to": "agent:main:other"}, chela.Address{}, "allowAcrossProviders"},
		{"another chat on the channel, not allowed", []string{"fake"}, at("fake", "1"), action.CrossContext{Within: &no},
			m{"to": "2"}, chela.Address{}, "allowWithinProvider"},
		{"another agent's session", nil, local, action.CrossContext{}, m{"to": "agent:ops:main"}, chela.Address{},
			"belongs to another agent"},
		{"unknown session", nil, local, action.CrossContext{}, m{"to": "agent:main:none"}, chela.Address{},
			"there is no session"},
		{"nothing to send", []string{"fake"}, local, action.CrossContext{}, m{"to": "7", "message": " "}, chela.Address{},
			"neither text nor a file"},
		{"MS-05 a file outside the workspace", []string{"fake"}, local, action.CrossContext{},
			m{"to": "7", "media": []string{"/etc/hosts"}}, chela.Address{}, "outside the workspace"},
		{"MS-05 a file above the workspace", []string{"fake"}, local, action.CrossContext{},
			m{"to": "7", "media": []string{"../x"}}, chela.Address{}, "outside the workspace"},
		{"no such file", []string{"fake"}, local, action.CrossContext{}, m{"to": "7", "media": []string{"none.png"}},
			chela.Address{}, "none.png does not exist"},
		{"no such reference", []string{"fake"}, local, action.CrossContext{},
			m{"to": "7", "media": []string{"media:" + strings.Repeat("0", 32)}}, chela.Address{}, "it was removed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			h.change(c.cross, c.channels...)
			if c.args["message"] == nil {
				c.args["message"] = "hello"
			}
			before := h.rows()
			r, err := h.call(c.here, c.args)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || h.rows() != before {
					t.Errorf("%+v, %v, %d more rows; want %q", r, err, h.rows()-before, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := h.channels[c.to.Channel].Messages(chela.Address{}); len(got) != 1 || got[0].Address != c.to {
				t.Errorf("sent %+v, want to %+v", got, c.to)
			}
		})
	}
	t.Run("a channel that is not running", func(t *testing.T) {
		h.t = t
		h.change(action.CrossContext{}, "fake")
		h.down["fake"] = "connection lost"
		if _, err := h.call(local, m{"message": "x", "to": "7"}); err == nil ||
			!strings.Contains(err.Error(), "not running: connection lost") {
			t.Errorf("%v", err)
		}
	})
}

func TestLocal(t *testing.T) {
	for name, args := range map[string]m{
		"MS-10 without a channel": {"message": "hi"},
		"MS-10 OpenClaw's names":  {"message": "hi", "channel": "repl", "to": "default"},
		"MS-10 another session":   {"message": "hi", "to": "agent:main:other"},
		"MS-10 by its short name": {"message": "hi", "channel": "local", "to": "other"},
	} {
		on(t, name, action.CrossContext{}, nil, func(t *testing.T, h *fixture) {
			key := home
			if s, _ := args["to"].(string); strings.HasSuffix(s, "other") {
				key = "agent:main:other"
			}
			r, err := h.call(local, args)
			if err != nil || detailsOf(t, r).Status != "sent" {
				t.Fatalf("%+v %v", r, err)
			}
			var last []session.Entry
			err = h.db.View(context.Background(), func(rd store.Reader) error {
				var err error
				last, err = rd.Sessions().Last("t "+string(key), 1)
				return err
			})
			h.durable()
			want := "local:" + string(key) + ": hi"
			if err != nil || len(last) != 1 || last[0].Kind != session.KindNotice || last[0].Text != want {
				t.Errorf("the transcript ends with %+v, %v; want %q", last, err, want)
			}
			if len(h.events) != 1 || h.events[0].Session != key {
				t.Errorf("published %+v", h.events)
			}
		})
	}
}
