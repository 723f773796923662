package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

const mainKey = chela.SessionKey("agent:main:main")

// bench is a gate with its own database.
type bench struct {
	*testing.T
	o    Options
	db   *sqlite.DB
	gate *Gate

	mu     sync.Mutex
	events []chela.Event
	ended  []chela.RunID // by Abort
	notify func()        // called for each event
	live   bool
	n      int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := &bench{T: t, db: db}
	events := bus.New(slog.New(slog.DiscardHandler))
	events.Subscribe(func(e chela.Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
		if e.Session == "" {
			t.Errorf("event without a session: %+v", e)
		}
		if b.notify != nil {
			b.notify()
		}
	})
	thinker := llm.Model{Provider: "acme", ID: "sonnet-5", Context: 200_000, Levels: []llm.Level{llm.Low, llm.High}}
	plain := llm.Model{Provider: "acme", ID: "plain"}
	cat := llm.Catalog{Models: []llm.Model{thinker, plain}, Aliases: map[string]string{"sonnet": "acme/sonnet-5"}}
	b.o = Options{
		Log: slog.New(slog.DiscardHandler), Store: db, Bus: events, Version: "1.2.3", Started: time.Now(),
		Live: func(chela.SessionKey) bool { return b.live },
		StopRuns: func(tx store.Tx, key chela.SessionKey) (int, func(), error) {
			active, err := tx.Runs().Active(key)
			return len(active), func() {
				for _, r := range active {
					b.ended = append(b.ended, r.ID)
				}
			}, err
		},
		Catalog: func() llm.Catalog { return cat },
		Model: func(m session.Meta) llm.Model {
			if m.Model == "" {
				return thinker
			}
			got, _ := cat.Resolve(m.Model)
			return got
		},
		Inherit: func(session.Meta) Settings { return Settings{Think: llm.Low, Usage: "full"} },
		Access: func(p chela.Principal, in chela.Inbound) (chela.Principal, error) {
			switch in.Sender.ID {
			case "boss":
				p.Scopes = []chela.Scope{chela.ScopeAdmin}
			case "friend": // may only write
				p.Scopes = nil
			}
			return p, nil
		},
		Rules: friends(false),
		Bot:   func(chela.Address) string { return "ChelaBot" },
	}
	b.gate = New(b.o)
	return b
}

// friends are the rules of an account on which two people may write.
func friends(unprompted bool) func(chela.Address) *admission.Rules {
	return func(chela.Address) *admission.Rules {
		return &admission.Rules{
			Allow: []string{"boss", "friend"}, DM: admission.Listed, History: 2,
			Chats: map[string]admission.Chat{admission.Everybody: {Unprompted: &unprompted}},
		}
	}
}

// everybody are the rules of an account on which all people may write.
func everybody(chela.Address) *admission.Rules {
	return &admission.Rules{DM: admission.Open, Allow: []string{admission.Everybody}}
}

// owner returns a context with the owner as principal.
func owner(t testing.TB) context.Context {
	return chela.WithPrincipal(t.Context(), chela.Owner("process"))
}

// local returns a message of a local client.
func (b *bench) local(text string) chela.Inbound {
	b.n++
	return chela.Inbound{ID: fmt.Sprint("id", b.n), Address: chela.Address{Channel: chela.LocalChannel}, Text: text}
}

// say admits a local message of the owner.
func (b *bench) say(text string) Receipt {
	b.Helper()
	r, err := b.gate.Admit(owner(b), b.local(text))
	if err != nil {
		b.Fatalf("%q: %v", text, err)
	}
	return r
}

// replied admits a command and checks that its answer contains all of want.
func (b *bench) replied(text string, want ...string) string {
	b.Helper()
	r := b.say(text)
	for _, w := range want {
		if !r.Command || !strings.Contains(r.Reply, w) {
			b.Errorf("%s: got %q, want %q in it", text, r.Reply, w)
		}
	}
	return r.Reply
}

func (b *bench) view(f func(store.Reader) error) {
	b.Helper()
	if err := b.db.View(b.Context(), f); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) update(f func(store.Tx) error) {
	b.Helper()
	if err := b.db.Update(b.Context(), store.Synced, f); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) meta() (m session.Meta) {
	b.Helper()
	b.view(func(r store.Reader) (err error) { m, err = r.Sessions().Get(mainKey); return err })
	return m
}

// waiting returns the waiting texts with their modes and thinking levels.
func (b *bench) waiting(key chela.SessionKey) []string {
	b.Helper()
	var out []string
	b.view(func(r store.Reader) error {
		items, err := r.Queue().Waiting(key)
		for _, it := range items {
			s := it.Inbound.Text
			if it.Inbound.Overheard {
				s = "(" + s + ")"
			}
			if it.Inbound.Mode != "" {
				s += " =" + it.Inbound.Mode
			}
			if it.Overrides.Think != "" {
				s += " ^" + it.Overrides.Think
			}
			out = append(out, s)
		}
		return err
	})
	return out
}

func (b *bench) waits(want ...string) {
	b.Helper()
	if got := b.waiting(mainKey); !slices.Equal(got, want) {
		b.Errorf("%q are waiting, want %q", got, want)
	}
}

// replies returns the published answers to commands.
func (b *bench) replies() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		if e.Stream == chela.StreamCommand {
			out = append(out, e.Text)
		}
	}
	return out
}

// published returns the phases of the events of a stream.
func (b *bench) published(stream chela.Stream) []chela.Phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []chela.Phase
	for _, e := range b.events {
		if e.Stream == stream {
			out = append(out, e.Phase)
		}
	}
	return out
}

// running stores a run in progress.
func (b *bench) running(id chela.RunID) {
	b.Helper()
	b.live = true
	b.update(func(tx store.Tx) error {
		return tx.Runs().Put(run.Run{ID: id, Session: mainKey, SessionID: "x", State: run.Running, Started: time.Now()})
	})
}

// dm returns a direct message of a channel.
func dm(id, sender, text string) chela.Inbound {
	return chela.Inbound{
		ID: id, Sender: chela.Sender{ID: sender}, Text: text,
		Address: chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: sender}},
	}
}

func group(id, sender, text string) chela.Inbound {
	in := dm(id, sender, text)
	in.Address.Peer = chela.Peer{Kind: chela.Group, ID: "g"}
	return in
}

// TestMention sends messages to chats with several people.
func TestMention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind            chela.PeerKind
		mention, always bool
		want            bool // whether it is answered
	}{
		{chela.Direct, false, false, true},
		{chela.Group, false, false, false}, {chela.Group, true, false, true}, {chela.Group, false, true, true},
		{chela.Room, false, false, false}, {chela.Room, true, false, true}, {chela.Room, false, true, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			b := newBench(t)
			b.o.Rules = friends(c.always)
			in := dm("1", "5", "hello")
			in.Address.Peer.Kind, in.Mentioned = c.kind, c.mention
			if r, err := New(b.o).Admit(owner(t), in); err != nil || r.New != c.want {
				t.Errorf("%+v, %v", r, err)
			}
			b.live = true
			in.ID, in.Text = "2", "Stop"
			if r, err := New(b.o).Admit(owner(t), in); err != nil || r.Command != c.want {
				t.Errorf("stop: %+v, %v", r, err)
			}
			in.ID, in.Address.Channel = "3", chela.LocalChannel // a client addresses the agent
			if r, err := New(b.o).Admit(owner(t), in); err != nil || !r.New {
				t.Errorf("a client: %+v, %v", r, err)
			}
		})
	}
}

// TestReceive sends messages that a channel reports.
func TestReceive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var seen []chela.Principal
	b.o.Access = func(p chela.Principal, _ chela.Inbound) (chela.Principal, error) {
		seen = append(seen, p)
		p.Scopes = []chela.Scope{chela.ScopeWrite}
		return p, nil
	}
	b.o.Rules = everybody
	b.gate = New(b.o)
	long := dm("1", "5", strings.Repeat("x", MaxText+1))
	nobody := dm("2", "", "hello")
	client := dm("3", "5", "hello")
	client.Address.Channel = chela.LocalChannel
	for _, in := range []chela.Inbound{long, nobody, client} { // an error would deliver them forever
		if err := b.gate.Receive(t.Context(), in); err != nil {
			t.Errorf("message %s: %v", in.ID, err)
		}
	}
	if b.waits(); len(seen) > 0 {
		t.Errorf("admitted for %v", seen)
	}
	in := dm("4", "5", "hello")
	in.Session = "agent:main:other"           // a channel does not choose the session
	begun := time.Now().Truncate(time.Second) // stored times have fewer digits
	if err := b.gate.Receive(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	b.waits("hello")
	want := []chela.Principal{{ID: chela.ChannelSender{Channel: "fake", Account: "bot", ID: "5"}.String(),
		Credential: "channel"}}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("principals (-want +got):\n%s", diff)
	}
	b.view(func(r store.Reader) error {
		items, err := r.Queue().Waiting(mainKey)
		if got := items[0].Inbound.Time; got.Before(begun) || got.After(time.Now()) {
			t.Errorf("the message is of %v", got)
		}
		return err
	})
}

// TestRedact checks that nothing of a message is stored with a secret in it.
func TestRedact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.o.Redact = func(s string) string { return strings.ReplaceAll(s, "sk-1", "***") }
	b.gate = New(b.o)
	b.replied("/name my sk-1", "Named my ***.")
	in := dm("1", "boss", "use sk-1")
	in.Sender.Name = "Ann sk-1"
	in.Media = []chela.Media{{Name: "sk-1.txt", Type: "text/sk-1", Data: []byte("x")}}
	if err := b.gate.Receive(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	b.view(func(r store.Reader) error {
		items, err := r.Queue().Waiting(mainKey)
		got := items[0].Inbound
		if got.Text != "use ***" || got.Sender.Name != "Ann ***" || got.Media[0].Name != "***.txt" ||
			got.Media[0].Type != "text/***" {
			t.Errorf("stored %+v", got)
		}
		return err
	})
}

// TestStoreMedia sends attachments that are not accepted, and ones that cannot be
// stored.
func TestStoreMedia(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		name, channel string
		err           error
		lost          bool // accepted without the attachment
	}{
		{"refused, of a client", chela.LocalChannel, chela.Errorf(chela.CodeInvalid, "a virus"), false},
		{"refused, of a channel", "fake", chela.Errorf(chela.CodeInvalid, "a virus"), true},
		{"not stored, of a client", chela.LocalChannel, errors.New("a full disk"), false},
		{"not stored, of a channel", "fake", errors.New("a full disk"), false},
	} {
		b.o.StoreMedia = func(chela.Media) (chela.Media, error) { return chela.Media{}, c.err }
		in := dm(strings.ReplaceAll(c.name, " ", "-"), "boss", "look")
		in.Address.Channel, in.Media = c.channel, []chela.Media{{Name: "a.txt", Type: "text/plain", Data: []byte("abc")}}
		r, err := New(b.o).Admit(owner(t), in)
		if !c.lost {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %+v, %v", c.name, r, err)
			}
			continue
		}
		b.view(func(rd store.Reader) error {
			it, err := rd.Queue().Get(string(r.Run))
			if diff := cmp.Diff([]chela.Media{{Name: "a.txt", Type: "text/plain", Bytes: 3, Lost: c.err.Error()}},
				it.Inbound.Media); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.name, diff)
			}
			return err
		})
	}
}

// TestBounds sends messages that are as large as is accepted, and larger.
func TestBounds(t *testing.T) {
	t.Parallel()
	files := func(n, size int) []chela.Media {
		return slices.Repeat([]chela.Media{{Type: "text/plain", Data: make([]byte, size)}}, n)
	}
	type change struct {
		name string
		most int
		set  func(in *chela.Inbound, n int)
	}
	bounds := []change{
		{"text", 1 << 20, func(in *chela.Inbound, n int) { in.Text = strings.Repeat("x", n) }},
		{"attachments", 16, func(in *chela.Inbound, n int) { in.Address, in.Media = chela.Address{}, files(n, 1) }},
		{"bytes of attachments", 20 << 20, func(in *chela.Inbound, n int) {
			in.Address, in.Media = chela.Address{}, append(files(1, n-10), files(1, 10)...)
		}},
	}
	for name, at := range map[string]func(*chela.Inbound) *string{
		"id":      func(in *chela.Inbound) *string { return &in.ID },
		"channel": func(in *chela.Inbound) *string { return &in.Address.Channel },
		"account": func(in *chela.Inbound) *string { return (*string)(&in.Address.Account) },
		"kind":    func(in *chela.Inbound) *string { return (*string)(&in.Address.Peer.Kind) },
		"peer":    func(in *chela.Inbound) *string { return &in.Address.Peer.ID },
		"thread":  func(in *chela.Inbound) *string { return &in.Address.Thread },
		"sender":  func(in *chela.Inbound) *string { return &in.Sender.ID },
		"reply":   func(in *chela.Inbound) *string { return &in.ReplyTo },
	} {
		bounds = append(bounds, change{name, 256, func(in *chela.Inbound, n int) { *at(in) = strings.Repeat("x", n) }})
		t.Run(name+" with a control character", func(t *testing.T) {
			for _, s := range []string{"a\x1fb", "a\nb", "\x7f"} {
				in := dm("1", "5", "hello")
				*at(&in) = s
				if _, err := newBench(t).gate.Admit(owner(t), in); chela.CodeOf(err) != chela.CodeInvalid {
					t.Errorf("%q: %v", s, err)
				}
			}
		})
	}
	for _, c := range bounds {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			for i, n := range []int{c.most, c.most + 1} {
				in := dm("1", "5", "hello")
				c.set(&in, n)
				r, err := b.gate.Admit(owner(t), in)
				if i == 0 && (err != nil || !r.New) || i == 1 && chela.CodeOf(err) != chela.CodeInvalid {
					t.Errorf("%d: %+v, %v", n, r, err)
				}
			}
		})
	}
	t.Run("a channel's message is accepted without the attachments above the limits", func(t *testing.T) {
		for _, c := range []struct {
			in                 []chela.Media
			stored, lost, left int
		}{
			{files(16, 1), 16, 0, 0}, {files(17, 1), 15, 1, 2}, {files(200, 1), 15, 1, 185},
			{append(files(1, 20<<20), files(2, 1)...), 1, 2, 0}, {append(files(1, 21<<20), files(2, 1)...), 2, 1, 0},
		} {
			list := bounded(c.in)
			stored, lost := 0, 0
			for _, m := range list {
				if m.Lost != "" {
					lost++
				} else {
					stored++
				}
			}
			if stored != c.stored || lost != c.lost ||
				c.left > 0 && !strings.HasPrefix(list[len(list)-1].Name, fmt.Sprint(c.left, " further")) {
				t.Errorf("%d attachments: %d stored, %d lost, the last is %q", len(c.in), stored, lost, list[len(list)-1].Name)
			}
			if check(chela.Inbound{Media: list}) != nil {
				t.Errorf("%d attachments are refused", len(c.in))
			}
		}
	})
	t.Run("names are cut", func(t *testing.T) {
		b := newBench(t)
		long := strings.Repeat("x", 1000)
		in := dm("1", "5", "hello")
		in.Sender.Name, in.Media = long, []chela.Media{{Name: long, Type: "text/" + long, Data: []byte("x")},
			{Name: "a.txt", Type: "text/plain", Data: []byte("x")}}
		r, err := b.gate.Admit(owner(t), in)
		if err != nil || in.Media[0].Name != long {
			t.Fatalf("admit: %v; the caller's attachment is named %.10q", err, in.Media[0].Name)
		}
		b.view(func(rd store.Reader) error {
			it, err := rd.Queue().Get(string(r.Run))
			short := long[:256] + "…"
			if got := it.Inbound; got.Sender.Name != short || got.Media[0].Name != short || got.Media[0].Type !=
				("text/" + long)[:256]+"…" || got.Media[1].Name != "a.txt" || got.Media[1].Type != "text/plain" {
				t.Errorf("stored %+v", got)
			}
			return err
		})
	})
}

const groupKey = chela.SessionKey("agent:main:fake:group:g")

func TestAdmit(t *testing.T) {
	t.Parallel()
	t.Run("a message is stored with its session", func(t *testing.T) {
		b := newBench(t)
		r := b.say("please fix\nthe tests")
		if !r.New || r.Run != "id1" || r.State != queue.Waiting || r.Session != mainKey || r.Command {
			t.Errorf("got %+v", r)
		}
		m := b.meta()
		if m.Title != "please fix" || m.ID == "" || m.Active.IsZero() || m.Agent != "main" {
			t.Errorf("session %+v", m)
		}
		b.view(func(r store.Reader) error {
			it, err := r.Queue().Get("id1")
			if it.Principal.ID != "owner" || it.Kind != queue.Message {
				t.Errorf("item %+v", it)
			}
			return err
		})
		if m.Created.IsZero() || m.Started != m.Created || m.Updated != m.Created || m.Active != m.Created {
			t.Errorf("times of the session: %+v", m)
		}
		b.say("next")
		if got := b.meta(); got.Title != m.Title || got.Created != m.Created || !got.Updated.After(m.Updated) ||
			!got.Active.After(m.Active) {
			t.Errorf("session after the next message: %+v", got)
		}
		if got := b.published(chela.StreamSession); !slices.Equal(got, []chela.Phase{chela.PhaseCreated}) {
			t.Errorf("events %q", got)
		}
	})
	t.Run("a message to a busy session is reported once", func(t *testing.T) {
		b := newBench(t)
		b.running("r1")
		in := b.local("hello")
		for range 2 {
			if _, err := b.gate.Admit(owner(t), in); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.published(chela.StreamSession); !slices.Equal(got, []chela.Phase{chela.PhaseCreated, chela.PhaseQueued}) {
			t.Errorf("events %q", got)
		}
	})
	t.Run("a session key without an agent is of the address's agent", func(t *testing.T) {
		b := newBench(t)
		b.o.Route = func(route.Query) route.Route {
			return route.Route{Agent: "work", Session: "agent:work:main"}
		}
		in := b.local("hello")
		in.Session = "plans"
		if r, err := New(b.o).Admit(owner(t), in); err != nil || r.Session != "agent:work:plans" {
			t.Errorf("got %+v, %v", r, err)
		}
	})
	t.Run("what a client sets for a message takes precedence over directives", func(t *testing.T) {
		b := newBench(t)
		in := b.local("hello /think low /queue collect")
		in.Think, in.Mode = "high", "steer"
		if _, err := b.gate.Admit(owner(t), in); err != nil {
			t.Fatal(err)
		}
		b.waits("hello =steer ^high")
		b.view(func(r store.Reader) error {
			it, err := r.Queue().Get(in.ID)
			if it.Inbound.Think != "" {
				t.Errorf("the level is stored twice: %+v", it)
			}
			return err
		})
	})
	t.Run("a sender who may only write uses no directives", func(t *testing.T) {
		b := newBench(t)
		if err := b.gate.Receive(t.Context(), dm("1", "friend", "hello /think high /queue steer /status")); err != nil {
			t.Fatal(err)
		}
		b.waits("hello /think high /queue steer /status")
		if got := b.replies(); len(got) > 0 {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("LANE-07 a repeated message is accepted once", func(t *testing.T) {
		b := newBench(t)
		in := b.local("hello")
		for i := range 3 {
			r, err := b.gate.Admit(owner(t), in)
			if err != nil || r.New != (i == 0) || r.Run != chela.RunID(in.ID) {
				t.Errorf("time %d: %+v, %v", i, r, err)
			}
		}
		for range 3 {
			if err := b.gate.Receive(t.Context(), dm("7", "friend", "hi")); err != nil {
				t.Error(err)
			}
		}
		b.waits("hello", "hi")
	})
	t.Run("LANE-07 the same id in another chat is another message", func(t *testing.T) {
		b := newBench(t)
		for _, in := range []chela.Inbound{dm("7", "friend", "a"), dm("7", "boss", "b"), group("7", "boss", "c")} {
			in.Mentioned = true
			if err := b.gate.Receive(t.Context(), in); err != nil {
				t.Error(err)
			}
		}
		b.waits("a", "b")
		if got := b.waiting(groupKey); len(got) != 1 {
			t.Errorf("the group has %q", got)
		}
	})
	t.Run("LANE-07 the same id under another account, thread or sender is another message", func(t *testing.T) {
		b := newBench(t)
		b.o.Rules = friends(true)
		b.gate = New(b.o)
		first := group("7", "friend", "m0")
		ins := []chela.Inbound{first, first, first, first, first, first}
		ins[1].Address.Thread = "t1"
		ins[2].Address.Thread = "t2"
		ins[3].Address.Account = "other"
		ins[4].Address.Peer.ID = "g2"
		ins[5].Sender.ID = "boss"
		for round := range 2 {
			for i, in := range ins {
				in.Text = fmt.Sprint("m", i)
				ctx := chela.WithPrincipal(t.Context(),
					chela.Principal{ID: "fake:" + string(in.Address.Account) + ":" + in.Sender.ID})
				r, err := b.gate.Admit(ctx, in)
				if err != nil || r.New != (round == 0) {
					t.Errorf("round %d, message %d: %+v, %v", round, i, r, err)
				}
				b.view(func(rd store.Reader) error {
					it, err := rd.Queue().Get(string(r.Run))
					want := chela.Origin{Kind: chela.OriginPerson, ID: in.Sender.ID, Address: in.Address}
					if it.Origin != want || it.Inbound.Text != in.Text {
						t.Errorf("message %d: item %q with origin %+v, want %+v", i, it.Inbound.Text, it.Origin, want)
					}
					return err
				})
			}
		}
	})
	t.Run("the same id of two clients is refused", func(t *testing.T) {
		b := newBench(t)
		in := b.local("a")
		_, err := b.gate.Admit(owner(t), in)
		other := chela.WithPrincipal(t.Context(), chela.Principal{ID: "other", Scopes: []chela.Scope{chela.ScopeWrite}})
		_, err2 := b.gate.Admit(other, in)
		in.Text = "/status"
		_, err3 := b.gate.Admit(other, in)
		if err != nil || chela.CodeOf(err2) != chela.CodeInvalid || chela.CodeOf(err3) != chela.CodeInvalid {
			t.Errorf("got %v, %v and %v", err, err2, err3)
		}
	})
	t.Run("an id that is used in another session is refused", func(t *testing.T) {
		b := newBench(t)
		in := b.local("a")
		_, err := b.gate.Admit(owner(t), in)
		in.Session = "agent:main:other"
		_, err2 := b.gate.Admit(owner(t), in)
		in.Text = "/status"
		_, err3 := b.gate.Admit(owner(t), in)
		if err != nil || chela.CodeOf(err2) != chela.CodeInvalid || chela.CodeOf(err3) != chela.CodeInvalid {
			t.Errorf("got %v, %v and %v", err, err2, err3)
		}
	})
	t.Run("refused messages", func(t *testing.T) {
		b := newBench(t)
		for name, c := range map[string]struct {
			who  chela.Principal
			in   chela.Inbound
			code chela.Code
		}{
			"no principal": {chela.Principal{}, b.local("x"), chela.CodeForbidden},
			"a reader": {chela.Principal{ID: "r", Scopes: []chela.Scope{chela.ScopeRead}},
				b.local("x"), chela.CodeForbidden},
			"no content":     {chela.Owner("p"), b.local(" \n"), chela.CodeInvalid},
			"too long":       {chela.Owner("p"), b.local(strings.Repeat("x", MaxText+1)), chela.CodeInvalid},
			"too many files": {chela.Owner("p"), chela.Inbound{Media: make([]chela.Media, MaxMedia+1)}, chela.CodeInvalid},
			"too large files": {chela.Owner("p"), chela.Inbound{Media: []chela.Media{{Data: make([]byte, MaxBytes+1)}}},
				chela.CodeInvalid},
			"an invalid id":  {chela.Owner("p"), chela.Inbound{ID: "a\x1fb", Text: "x"}, chela.CodeInvalid},
			"an invalid key": {chela.Owner("p"), chela.Inbound{Session: "a b", Text: "x"}, chela.CodeInvalid},
			"a named session": {chela.Principal{ID: "f"},
				chela.Inbound{Sender: chela.Sender{ID: "friend"}, Session: mainKey, Text: "x"}, chela.CodeForbidden},
			"an expired token": {chela.Principal{Scopes: []chela.Scope{chela.ScopeAdmin}}, b.local("x"), chela.CodeForbidden},
		} {
			if _, err := b.gate.Admit(chela.WithPrincipal(t.Context(), c.who), c.in); chela.CodeOf(err) != c.code || err == nil {
				t.Errorf("%s: got %v, want %s", name, err, c.code)
			}
		}
		b.waits()
	})
	t.Run("a stranger on a channel gets no answer", func(t *testing.T) {
		b := newBench(t)
		for _, text := range []string{"hello", "/status", "/new"} {
			if err := b.gate.Receive(t.Context(), dm(text, "stranger", text)); err != nil {
				t.Errorf("%s: %v: the channel would deliver it forever", text, err)
			}
		}
		b.waits()
		b.view(func(r store.Reader) error {
			rows, err := r.Outbox().Open(0)
			if len(rows) > 0 || len(b.events) > 0 {
				t.Errorf("rows %+v, events %+v", rows, b.events)
			}
			return err
		})
	})
	t.Run("groups: only addressed messages are accepted", func(t *testing.T) {
		b := newBench(t)
		in := group("1", "friend", "not for you")
		mentioned := group("2", "friend", "for you")
		mentioned.Mentioned = true
		for _, in := range []chela.Inbound{in, mentioned} {
			if err := b.gate.Receive(t.Context(), in); err != nil {
				t.Error(err)
			}
		}
		b.o.Rules = friends(true)
		if err := New(b.o).Receive(t.Context(), group("3", "friend", "always")); err != nil {
			t.Error(err)
		}
		if got := b.waiting(groupKey); !slices.Equal(got, []string{"(not for you)", "for you", "always"}) {
			t.Errorf("%q are waiting", got)
		}
	})
	t.Run("the session retains the address of the last channel message", func(t *testing.T) {
		b := newBench(t)
		in := dm("1", "boss", "hi")
		if err := b.gate.Receive(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		b.say("from the terminal")
		if m := b.meta(); m.Address != in.Address {
			t.Errorf("got %+v", m.Address)
		}
	})
	t.Run("SESS-07 an expired session is reset", func(t *testing.T) {
		b := newBench(t)
		b.o.Reset = func(session.Meta) session.ResetPolicy { return session.ResetPolicy{Mode: "idle", IdleMinutes: 60} }
		b.gate = New(b.o)
		b.say("a")
		b.update(func(tx store.Tx) error {
			m, err := tx.Sessions().Get(mainKey)
			m.Active = m.Active.Add(-2 * time.Hour)
			m.Started = m.Active
			return errors.Join(err, tx.Sessions().Put(m))
		})
		before := b.meta()
		b.running("r1")
		b.say("b")
		if b.meta().ID != before.ID {
			t.Error("the session of an active run was reset")
		}
		b.update(func(tx store.Tx) error {
			m := b0(tx)
			m.Active = before.Active
			r, err := tx.Runs().Get("r1")
			r.State = run.OK
			return errors.Join(err, tx.Runs().Put(r), tx.Sessions().Put(m))
		})
		begun := time.Now().Truncate(time.Second) // stored times have fewer digits
		b.say("c")
		if m := b.meta(); m.ID == before.ID || m.Title != "c" || m.Active.Before(begun) {
			t.Errorf("got %+v", m)
		}
	})
	t.Run("concurrent messages", func(t *testing.T) {
		b := newBench(t)
		var wg sync.WaitGroup
		for i := range 20 {
			in := b.local(fmt.Sprint("m", i))
			for range 3 {
				wg.Go(func() {
					if _, err := b.gate.Admit(owner(t), in); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if got := b.waiting(mainKey); len(got) != 20 {
			t.Errorf("%d are waiting, want 20", len(got))
		}
	})
}

func b0(tx store.Tx) session.Meta { m, _ := tx.Sessions().Get(mainKey); return m }

func BenchmarkAdmit(b *testing.B) {
	db, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "chela.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	log := slog.New(slog.DiscardHandler)
	g := New(Options{Log: log, Store: db, Bus: bus.New(log)})
	ctx := owner(b)
	for b.Loop() {
		if _, err := g.Admit(ctx, chela.Inbound{Address: chela.Address{Channel: chela.LocalChannel}, Text: "hello"}); err !=
			nil {
			b.Fatal(err)
		}
	}
}

// elsewhere is a store with an additional write before each transaction.
type elsewhere struct {
	store.Store
	first func(store.Tx) error // once
}

// Update implements store.Store.
func (e *elsewhere) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	return e.Store.Update(ctx, sync, func(tx store.Tx) error {
		if e.first != nil {
			if err := e.first(tx); err != nil {
				return err
			}
		}
		return f(tx)
	})
}

// TestSeen checks that Inbound.Seen is compared in the commit that accepts the
// message, not before.
func TestSeen(t *testing.T) {
	t.Parallel()
	none, other := "", "e2"
	for _, tt := range []struct {
		text  string
		seen  chela.Seen
		moved bool // by an entry that is added before the commit
		gone  bool // the session is reset
		want  error
	}{
		{text: "hi", seen: chela.Seen{Last: &none}},
		{text: "hi", seen: chela.Seen{Last: &none}, moved: true, want: session.ErrChanged},
		{text: "hi", seen: chela.Seen{Last: &other}, moved: true},
		{text: "hi", seen: chela.Seen{Transcript: "t1", Last: &none, Earlier: true}, moved: true, want: session.ErrChanged},
		{text: "hi", seen: chela.Seen{Transcript: "t1"}, moved: true},
		{text: "hi", seen: chela.Seen{Transcript: "t1"}, gone: true, want: session.ErrChanged},
		{text: "/status", seen: chela.Seen{Last: &none}, moved: true, want: session.ErrChanged},
		{text: "/new hello", seen: chela.Seen{Transcript: "t1", Last: &none}},
	} {
		b := newBench(t)
		err := b.db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			return tx.Sessions().Put(session.Meta{Key: mainKey, ID: "t1", Agent: "main"})
		})
		if err != nil {
			t.Fatal(err)
		}
		o := b.o
		o.Store = &elsewhere{b.db, func(tx store.Tx) error {
			if tt.gone {
				return tx.Sessions().Put(session.Meta{Key: mainKey, ID: "t2", Agent: "main"})
			}
			if !tt.moved {
				return nil
			}
			return tx.Sessions().Append("t1", &session.Entry{ID: "e2", Kind: session.KindNotice})
		}}
		in := b.local(tt.text)
		in.Seen = tt.seen
		if _, err := New(o).Admit(owner(b), in); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%q, %+v: %v, want %v", tt.text, tt, err, tt.want)
		}
		if tt.want == nil {
			continue
		}
		err = b.db.View(t.Context(), func(r store.Reader) error {
			_, err := r.Queue().Get(in.ID)
			return err
		})
		if !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("%q, %+v: the message is in the queue (%v)", tt.text, tt, err)
		}
	}
}
