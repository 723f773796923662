package inbound

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	t.Run("a directive alone is stored, inside a text it applies to one turn", func(t *testing.T) {
		b := newBench(t)
		b.replied("/think high", "Thinking: high")
		if b.meta().Think != "high" {
			t.Error("the level was not stored")
		}
		b.say("hello /think low")
		b.say("/think low hello again")
		b.waits("hello ^low", "hello again ^low")
		if b.meta().Think != "high" {
			t.Error("a directive inside a text was stored")
		}
	})
	t.Run("a sender without permission gets no answer", func(t *testing.T) {
		b := newBench(t)
		for _, in := range []chela.Inbound{dm("1", "friend", "/model plain"), dm("2", "friend", "/approve x deny"),
			dm("3", "friend", "/config show")} {
			if err := b.gate.Receive(t.Context(), in); err != nil {
				t.Error(err)
			}
		}
		if got := b.replies(); len(got) > 0 {
			t.Errorf("replied %q", got)
		}
		b.waits()
		who := chela.WithPrincipal(t.Context(), chela.Principal{ID: "w", Scopes: []chela.Scope{chela.ScopeWrite}})
		if _, err := b.gate.Admit(who, b.local("/approve x deny")); chela.CodeOf(err) != chela.CodeForbidden {
			t.Errorf("a client without the scope: got %v", err)
		}
	})
	t.Run("CMD-03 a command does not wait for a run in progress", func(t *testing.T) {
		b := newBench(t)
		b.running("r1")
		b.say("waits")
		b.update(func(tx store.Tx) error { // an event is not a message
			_, err := tx.Queue().Put(queue.Item{
				ID:      "e1",
				Session: chela.MainSession(chela.DefaultAgent),
				Kind:    queue.Event,
				Next:    true,
				State:   queue.Waiting,
			})
			return err
		})
		b.replied("/status", "busy, 1 message waiting")
		b.replied("/queue", "1 message waiting")
	})
	t.Run("CMD-04 a command inside a text", func(t *testing.T) {
		b := newBench(t)
		in := b.local("hey /status how are you")
		for range 2 {
			if _, err := b.gate.Admit(owner(t), in); err != nil {
				t.Fatal(err)
			}
		}
		b.waits("hey how are you")
		if got := b.replies(); len(got) != 1 || !strings.Contains(got[0], "acme/sonnet-5") {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("CMD-06 queue settings", func(t *testing.T) {
		b := newBench(t)
		b.replied("/queue collect debounce:2s cap:25 drop:old")
		b.replied("/queue", "collect debounce:2s cap:25 drop:old (this session)")
		for _, bad := range []string{"/queue sideways", "/queue sideways please", "/queue cap:0", "/queue steer drop:all",
			"/queue debounce:x", "/queue debounce:-1s", "/queue debounce:61s", "/queue cap:1001", "/queue size:3"} {
			b.replied(bad, "")
		}
		b.replied("/queue", "collect debounce:2s cap:25 drop:old (this session)")
		b.replied("/queue debounce:1500", "debounce:1.5s cap:25")
		b.replied("/queue default", "collect debounce:0s cap:20 drop:summarize (default)")
		if b.meta().Queue != (queue.Prefs{}) {
			t.Error("the setting was not cleared")
		}
	})
	t.Run("CMD-10 every command is listed", func(t *testing.T) {
		b := newBench(t)
		got := b.replied("/commands")
		for _, c := range Commands() {
			if !strings.Contains(got, "\n- "+c.usage()+": "+c.Help) {
				t.Errorf("/%s is not in the list", c.Name)
			}
		}
	})
	t.Run("CMD-11 a path is text", func(t *testing.T) {
		b := newBench(t)
		b.say("/usr/bin is full")
		b.say("/ and // are slashes")
		b.say("// a comment")
		b.say("! is a mark")
		b.waits("/usr/bin is full", "/ and // are slashes", "// a comment", "! is a mark")
	})
	t.Run("an unknown command is answered with a suggestion and not sent", func(t *testing.T) {
		b := newBench(t)
		for text, want := range map[string]string{
			"/statsu":        "Did you mean /status?",
			"/Modle plain":   "Did you mean /model?",
			"/unknown thing": "/commands lists",
			"/tmp":           "//tmp sends the line as text",
			"/resume":        "chela chat --session KEY",
			"/clear":         "/new starts",
			"/rewind x":      "/undo takes back",

			"/cost": "/usage cost",
			"/quti": "Did you mean /quit?",
			"/quit": "/quit is a command of the terminal",

			"/stat: x": "There is no command /stat",
		} {
			b.replied(text, want, "not sent to a model")
		}
		if got := b.replied("/unknown"); strings.Contains(got, "Did you mean") {
			t.Errorf("replied %q", got)
		}
		for _, bang := range []string{"!ls -la", "！ls -la"} {
			b.replied(bang, "not sent to a model", "commands.bash", "run `ls -la`")
		}
		for text, want := range map[string]string{
			"/status?":        "no command /status?,",
			"/RETRY!":         "Did you mean /retry?",
			"/status？":        "Did you mean /status?",
			"/statsu?":        "Did you mean /status?",
			"／statsu":         "Did you mean /status?",
			"/status, please": "Did you mean /status?",

			"/ status":     "; // status sends the line",
			"/ think high": "Did you mean /think?",
			"/":            "no command /, and",
			"//":           "no command //, and",
			"／":            "no command ／, and",

			"/home?":          "//home? sends the line as text",
			"/nonsense@other": "no command /nonsense,",
		} {
			b.replied(text, want, "not sent to a model")
		}
		for _, far := range []string{"/home", "/etc", "/", "//"} {
			if got := b.replied(far); strings.Contains(got, "Did you mean") {
				t.Errorf("%s: replied %q", far, got)
			}
		}
		b.waits()
	})
	t.Run("the receipt says whether the command did nothing", func(t *testing.T) {
		b := newBench(t)
		for text, want := range map[string]bool{
			"/hlep":           true,
			"/think nonsense": true,
			"/queue sideways": true,
			"/undo banana":    true,
			"/undo yes":       true,
			"/forget yes":     true,
			"/context bogus":  true,
			"/tools bogus":    true,
			"/config show":    true,
			"/bash ls":        true,
			"/debug show":     true,
			"/image":          true,

			"/help":       false,
			"/think high": false,
		} {
			if rec, err := b.gate.Admit(owner(t), b.local(text)); err != nil || !rec.Command || rec.Refused != want {
				t.Errorf("%s: %+v, %v", text, rec, err)
			}
		}
	})
	t.Run("a command with a wide slash, or for a bot that is not there", func(t *testing.T) {
		b := newBench(t)
		for _, text := range []string{"／status", "/status@chelabot", "/STATUS@x"} {
			b.replied(text, "acme/sonnet-5")
		}
		b.replied("／think： high", "Thinking: high")
		b.waits()
	})
	t.Run("a text that begins like a mistyped command", func(t *testing.T) {
		b := newBench(t)
		texts := []string{"/usr, /etc and /var are full", "/etc/fstab?", "/ and more", "/ new\nlines", "... /status?",
			"！注意安全", "!!", "？", "///x", "/?"}
		for _, text := range texts {
			b.say(text)
		}
		b.waits(texts...)
	})
	t.Run("two slashes send the line with one as text", func(t *testing.T) {
		b := newBench(t)
		b.say("//statsu")
		b.say("//status of the disk")
		b.say("//think high about it")
		b.say("／／statsu")
		b.say("//status?")
		b.say("// status")
		b.say("// new\nlines of a comment")
		b.waits("/statsu", "/status of the disk", "/think high about it", "／statsu", "/status?", "/ status",
			"// new\nlines of a comment")
	})
	t.Run("an unknown command of a chat is answered if it addresses the assistant", func(t *testing.T) {
		b := newBench(t)
		said := func(in chela.Inbound) {
			t.Helper()
			if err := b.gate.Receive(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		said(dm("1", "boss", "/statsu"))
		if got := b.replies(); len(got) != 1 || !strings.Contains(got[0], "Did you mean /status?") {
			t.Errorf("replied %q", got)
		}
		said(group("2", "boss", "/weather"))
		said(group("3", "boss", "/weather@otherbot"))
		if got := b.replies(); len(got) != 1 {
			t.Errorf("replied %q", got)
		}
		said(dm("4", "boss", "/tmp/x is full"))
		said(dm("5", "boss", "!important"))
		said(dm("6", "boss", "/start"))
		b.waits("/tmp/x is full", "!important", "/start")
	})
	t.Run("a command that a sender may not use is not suggested", func(t *testing.T) {
		b := newBench(t)
		if err := b.gate.Receive(t.Context(), dm("1", "friend", "/confog")); err != nil {
			t.Fatal(err)
		}
		if got := b.replies(); len(got) != 1 || strings.Contains(got[0], "/config") {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("CMD-12 case and colons do not matter", func(t *testing.T) {
		b := newBench(t)
		want := b.replied("/whoami", "Identity: owner")
		for _, s := range []string{"/WHOAMI", "/whoami:", "/whoami：", "  /WhoAmI "} {
			if got := b.replied(s); got != want {
				t.Errorf("%s: got %q, want %q", s, got, want)
			}
		}
	})
	t.Run("CMD-13 a command for another bot", func(t *testing.T) {
		b := newBench(t)
		for _, text := range []string{"/model@otherbot plain", "/model@chelabot plain"} {
			if err := b.gate.Receive(t.Context(), group(text, "boss", text)); err != nil {
				t.Fatal(err)
			}
		}
		if got := b.replies(); len(got) != 1 || got[0] != "Model: acme/plain." {
			t.Errorf("replied %q", got)
		}
		if got := b.waiting(groupKey); len(got) > 0 {
			t.Errorf("%q are waiting", got)
		}
	})
	t.Run("CMD-13 a command for a bot, when the name of ours is unknown", func(t *testing.T) {
		for _, c := range []struct {
			kind      chela.PeerKind
			mentioned bool
			ours      bool
		}{{chela.Direct, false, true}, {chela.Group, false, false}, {chela.Group, true, true}, {chela.Room, false, false}} {
			b := newBench(t)
			b.o.Bot = nil
			in := dm("1", "boss", "/model@some plain")
			in.Address.Peer.Kind, in.Mentioned = c.kind, c.mentioned
			if err := New(b.o).Receive(t.Context(), in); err != nil || (len(b.replies()) == 1) != c.ours {
				t.Errorf("%+v: replied %q, %v", c, b.replies(), err)
			}
		}
	})
	t.Run("CMD-14 a model and the first message", func(t *testing.T) {
		b := newBench(t)
		b.say("old")
		before := b.meta()
		r := b.say("/new sonnet fix the tests")
		m := b.meta()
		if r.Command || !r.New || r.State != queue.Waiting || m.ID == before.ID || m.Model != "acme/sonnet-5" ||
			m.Title != "fix the tests" {
			t.Errorf("got %+v, session %+v", r, m)
		}
		b.waits("fix the tests") // the old message was cancelled
		b.say("/new src/main.go is broken")
		b.waits("src/main.go is broken")
		if b.meta().Model != "acme/sonnet-5" {
			t.Error("a path was taken for a model")
		}
		b.replied("/model default")
		b.say("/reset sonnet fix the tests") // only /new takes a model
		b.waits("sonnet fix the tests")
		if m := b.meta(); m.Model != "" {
			t.Errorf("/reset selected %s", m.Model)
		}
	})
	t.Run("a command in an edited message is not executed", func(t *testing.T) {
		b := newBench(t)
		for _, text := range []string{"/new", "hello /status"} {
			in := b.local(text)
			in.Edited = true
			if _, err := b.gate.Admit(owner(t), in); err != nil {
				t.Fatal(err)
			}
		}
		b.waits("hello /status")
		if got := b.replies(); len(got) > 0 {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("a command that is delivered again is not repeated", func(t *testing.T) {
		b := newBench(t)
		b.say("old")
		in := b.local("/new")
		first, err := b.gate.Admit(owner(t), in)
		id := b.meta().ID
		again, err2 := b.gate.Admit(owner(t), in)
		if err != nil || err2 != nil || !first.New || again.New || again.Reply != first.Reply || !again.Command {
			t.Errorf("got %+v and %+v", first, again)
		}
		if b.meta().ID != id {
			t.Error("another conversation was started")
		}
		if got := b.replies(); len(got) != 1 {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("the answer goes to the address of the command", func(t *testing.T) {
		b := newBench(t)
		in := dm("1", "boss", "/help")
		for range 3 {
			if err := b.gate.Receive(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		b.view(func(r store.Reader) error {
			rows, err := r.Outbox().Open(0)
			if len(rows) != 1 || rows[0].Address != in.Address || rows[0].ReplyTo != "1" {
				t.Errorf("rows %+v", rows)
			}
			if rows[0].Session != mainKey || rows[0].Created.IsZero() {
				t.Errorf("row %+v", rows[0])
			}
			es, err2 := r.Sessions().Entries(b.meta().ID, 0, 0)
			if len(es) != 1 || es[0].Kind != session.KindCommand || !strings.HasPrefix(es[0].Text, "/help\n") ||
				es[0].Sender.ID != "boss" {
				t.Errorf("entries %+v", es)
			}
			if it, err := r.Queue().Get(es[0].ItemID); err != nil || it.Kind != queue.Command {
				t.Errorf("entry of item %+v, %v", it, err)
			}
			if len(session.Compile(es)) != 0 {
				t.Error("a command is sent to the model")
			}
			if err == nil {
				err = err2
			}
			return err
		})
		if m := b.meta(); m.Address != in.Address || !m.Active.After(m.Created.Add(-1)) || m.Updated.IsZero() {
			t.Errorf("session %+v", m)
		}
	})
	t.Run("the answer is split for its address, and sent", func(t *testing.T) {
		b := newBench(t)
		b.o.Chunks = func(a chela.Address) chunk.Options {
			return chunk.Options{Limit: map[string]int{"fake": 200}[a.Channel]}
		}
		wakes := b.db.Wakes(t.Context(), store.TopicOutbox)
		if err := New(b.o).Receive(t.Context(), dm("1", "boss", "/commands")); err != nil {
			t.Fatal(err)
		}
		<-wakes
		b.view(func(r store.Reader) error {
			rows, err := r.Outbox().Open(0)
			if len(rows) < 5 {
				t.Errorf("%d rows", len(rows))
			}
			return err
		})
	})
	t.Run("settings are announced and noted", func(t *testing.T) {
		b := newBench(t)
		for _, text := range []string{"/name x", "/model plain", "/model default", "/think high", "/think high",
			"/verbose on", "/new", "/status", "/think"} {
			b.replied(text)
			if text == "/think high" {
				b.view(func(r store.Reader) error {
					es, err := r.Sessions().Entries(b.meta().ID, 0, 0)
					var got []string
					for _, e := range es {
						if e.Kind != session.KindCommand {
							got = append(got, string(e.Kind)+" "+e.Text)
						}
					}
					want := []string{"model_change acme/plain", "model_change acme/sonnet-5", "thinking_level_change high"} // once
					if !slices.Equal(got, want) {
						t.Errorf("noted %q, want %q", got, want)
					}
					return err
				})
			}
		}
		p := chela.PhasePatched
		want := []chela.Phase{chela.PhaseCreated, p, p, p, p, p, p, chela.PhaseReset}
		if got := b.published(chela.StreamSession); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		b.replied("/new undo")
		if got := b.published(chela.StreamSession); len(got) != len(want)+1 || got[len(want)] != chela.PhaseReset {
			t.Errorf("events %q", got)
		}
	})
}

func TestSession(t *testing.T) {
	t.Parallel()
	t.Run("SESS-05 /new starts another transcript, retains the old one and the settings, and clears the counters",
		func(t *testing.T) {
			b := newBench(t)
			b.replied("/model plain", "acme/plain")
			b.replied("/usage tokens")
			b.update(func(tx store.Tx) error {
				m := b0(tx)
				m.Tokens, m.Context, m.NanoUSD, m.Calls, m.Priced = llm.Usage{Input: 5}, 5, 7, 1, true
				e := &session.Entry{
					ID: "e1", Kind: session.KindMessage, Time: time.Now(), Usage: &m.Tokens, NanoUSD: 7,
					Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("hi")}},
				}
				if err := tx.Sessions().Append(m.ID, e); err != nil {
					return err
				}
				return tx.Sessions().Put(m)
			})
			before := b.meta()
			b.replied("/new", "acme/plain", "/new undo")
			m := b.meta()
			if m.ID == before.ID || m.Previous != before.ID || m.Tokens != (llm.Usage{}) || m.Context+m.NanoUSD+m.Calls != 0 {
				t.Errorf("got %+v", m)
			}
			if m.Model != "acme/plain" || m.Usage != "tokens" {
				t.Errorf("settings are lost: %+v", m)
			}
			b.view(func(r store.Reader) error {
				past, err := r.Sessions().Past(mainKey)
				if len(past) != 1 || past[0].ID != before.ID || past[0].Reason != "new" {
					t.Errorf("past %+v", past)
				}
				return err
			})
			b.replied("/new undo", "restored")
			if m := b.meta(); m.ID != before.ID || m.Tokens != before.Tokens || m.NanoUSD != 7 || m.Calls != 1 ||
				!m.Priced || m.Context != 5 {
				t.Errorf("undo: got %+v, want %+v", m, before)
			}
			b.replied("/new undo", "restored")
			if b.meta().ID != m.ID {
				t.Errorf("undo of undo: got %s, want %s", b.meta().ID, m.ID)
			}
		})
	t.Run("undo without a previous conversation changes nothing", func(t *testing.T) {
		b := newBench(t)
		b.running("r1")
		b.say("waits")
		b.replied("/new undo", "no previous conversation")
		b.waits("waits")
		if len(b.ended) > 0 {
			t.Errorf("stopped %v", b.ended)
		}
	})
	t.Run("/stop cancels waiting messages and stops the run", func(t *testing.T) {
		b := newBench(t)
		b.replied("/stop", "No run is in progress.")
		b.running("r1")
		b.say("a")
		b.say("b")
		b.replied("/stop", "Stopped the run in progress and 2 waiting messages.")
		b.waits()
		if len(b.ended) != 1 || b.ended[0] != "r1" {
			t.Errorf("stopped %v", b.ended)
		}
		b.replied("stop", "Stopped the run in progress.")
	})
	t.Run("/stop cancels only messages, and stops the run even if its client has gone", func(t *testing.T) {
		b := newBench(t)
		b.running("r1")
		b.update(func(tx store.Tx) error {
			_, err := tx.Queue().Put(queue.Item{ID: "e1", Session: mainKey, Kind: queue.Event, State: queue.Waiting})
			return err
		})
		waits := b.say("a").Run
		ctx, gone := context.WithCancel(owner(t))
		b.notify = gone
		in := b.local("/stop")
		for range 2 {
			if _, err := b.gate.Admit(ctx, in); err != nil {
				t.Fatal(err)
			}
			ctx = owner(t)
		}
		if len(b.ended) != 1 {
			t.Errorf("stopped %v", b.ended)
		}
		b.view(func(r store.Reader) error {
			e, err := r.Queue().Get("e1")
			m, err2 := r.Queue().Get(string(waits))
			if e.State != queue.Waiting || m.State != queue.Cancelled || m.Note != "stopped before it started" {
				t.Errorf("the event is %s, the message %s (%s)", e.State, m.State, m.Note)
			}
			return errors.Join(err, err2)
		})
		i := slices.IndexFunc(b.events, func(e chela.Event) bool { return e.Phase == chela.PhaseAbsorbed })
		if i < 0 || b.events[i].Run != waits {
			t.Errorf("events %+v", b.events)
		}
	})
	t.Run("/new undo cancels waiting messages and stops the run", func(t *testing.T) {
		b := newBench(t)
		b.update(func(tx store.Tx) error {
			return errors.Join(tx.Sessions().Put(session.Meta{Key: mainKey, ID: "t2", Agent: "main", Previous: "t1"}),
				tx.Sessions().Archive(mainKey, session.Past{ID: "t1", Reason: "new", Entries: 1}))
		})
		b.running("r1")
		b.say("a")
		b.replied("/new undo", "restored")
		b.waits()
		if len(b.ended) != 1 {
			t.Errorf("stopped %v", b.ended)
		}
	})
	t.Run("/new stops the run and enqueues its own message", func(t *testing.T) {
		b := newBench(t)
		b.running("r1")
		b.say("a")
		b.say("/new begin here")
		b.waits("begin here")
		if len(b.ended) != 1 || b.ended[0] != "r1" {
			t.Errorf("stopped %v", b.ended)
		}
	})
	t.Run("STEER-03 /steer in an idle session starts a run", func(t *testing.T) {
		b := newBench(t)
		r := b.say("/steer x")
		if r.Command || !r.New {
			t.Errorf("got %+v", r)
		}
		b.waits("x =steer")
		b.view(func(r store.Reader) error {
			items, err := r.Queue().Waiting(mainKey)
			if d := queue.Plan(queue.Policy{}, nil, items, time.Now()); len(d.Start) != 1 {
				t.Errorf("got %+v", d)
			}
			return err
		})
		in := b.local("/steer of a client")
		in.Mode = "collect"
		if _, err := b.gate.Admit(owner(t), in); err != nil {
			t.Fatal(err)
		}
		b.waits("x =steer", "of a client =steer")
		b.replied("/stop")
		b.say("/steer x")
		b.say("/tell: y z")
		b.waits("x =steer", "y z =steer")
		b.replied("/steer", "Usage: /steer")
	})
	t.Run("attachments belong to the message after a command", func(t *testing.T) {
		b := newBench(t)
		b.o.StoreMedia = func(m chela.Media) (chela.Media, error) {
			return chela.Media{Type: m.Type, Ref: "ref", Bytes: len(m.Data)}, nil
		}
		b.gate = New(b.o)
		for text, want := range map[string]string{
			"/new what is this": "what is this",
			"/new":              "",
			"/steer look":       "look =steer",
			"/status":           "/status",
		} {
			b.replied("/new")
			in := b.local(text)
			in.Media = []chela.Media{{Type: "image/png", Data: []byte("x")}}
			if r, err := b.gate.Admit(owner(t), in); err != nil || r.Command {
				t.Errorf("%s: got %+v, %v", text, r, err)
			}
			b.waits(want)
			b.view(func(r store.Reader) error {
				items, err := r.Queue().Waiting(mainKey)
				if len(items) == 1 && (len(items[0].Inbound.Media) != 1 || items[0].Inbound.Media[0].Ref != "ref") {
					t.Errorf("%s: the attachments are %+v", text, items[0].Inbound.Media)
				}
				return err
			})
		}
	})
	t.Run("directives in the message after a command", func(t *testing.T) {
		b := newBench(t)
		b.say("/new fix /think high the tests /status")
		b.waits("fix the tests ^high")
		if got := b.replies(); len(got) != 1 || !strings.HasPrefix(got[0], "Chela 1.2.3") {
			t.Errorf("replied %q", got)
		}
	})
	t.Run("the word stop is text if no run is in progress", func(t *testing.T) {
		b := newBench(t)
		b.say("stop")
		b.waits("stop")
	})
	t.Run("name", func(t *testing.T) {
		b := newBench(t)
		b.replied("/name", "has no name")
		b.replied("/name  The  tests", "Named The tests.")
		b.replied("/name", "is named The tests")
		b.replied("/name "+strings.Repeat("ü", 101), "at most 100")
		if b.meta().Label != "The tests" {
			t.Errorf("got %q", b.meta().Label)
		}
		b.replied("/name "+strings.Repeat("ü", 100), "Named üüü")
	})
}

func TestModel(t *testing.T) {
	t.Parallel()
	t.Run("model by name, number, alias; default", func(t *testing.T) {
		b := newBench(t)
		b.replied("/model", "acme/sonnet-5 (default)")
		b.replied("/model list", "1. acme/sonnet-5 ←", "2. acme/plain")
		b.replied("/model 2", "Model: acme/plain.")
		b.replied("/model SONNET", "Model: acme/sonnet-5.")
		b.replied("/model 7", "no model number 7")
		b.replied("/model 0", "no model number 0")
		b.replied("/model plainn", "is unknown", "acme/plain")
		if b.meta().Model != "acme/sonnet-5" {
			t.Errorf("got %q", b.meta().Model)
		}
		b.replied("/model default", "acme/sonnet-5")
		if b.meta().Model != "" {
			t.Error("the setting was not cleared")
		}
	})
	t.Run("THINK-02 a model without thinking", func(t *testing.T) {
		b := newBench(t)
		b.replied("/model plain")
		b.replied("/think high", "acme/plain does not support the thinking level high", "Levels: off.")
		if b.meta().Think != "" {
			t.Error("the level was stored")
		}
		b.replied("/think off", "off")
		b.replied("/model sonnet")
		b.replied("/think xhigh", "Levels: off, low, high.")
		b.replied("/think loud", "Options: off, low, high, default.")
	})
	t.Run("THINK-04 default shows the inherited level", func(t *testing.T) {
		b := newBench(t)
		b.replied("/think high", "high")
		b.replied("/think default", "Thinking: low (default).")
		b.replied("/think", "low (default)", "Options: off, low, high, default.")
	})
	t.Run("verbose and usage", func(t *testing.T) {
		b := newBench(t)
		b.replied("/verbose", "off (default)")
		b.replied("/v FULL", "Verbose: full.")
		b.replied("/verbose loud", "no value \"loud\"", "off, on, full")
		b.replied("/usage", "full (default)")
		b.replied("/usage off", "Usage line: off.") // USAGE-04: the session's setting takes precedence
		if m := b.meta(); m.Verbose != "full" || m.Usage != "off" {
			t.Errorf("got %+v", m)
		}
	})
}

func TestInfo(t *testing.T) {
	t.Parallel()
	t.Run("status", func(t *testing.T) {
		b := newBench(t)
		got := b.replied("/status", "Chela 1.2.3, up ", "Model: acme/sonnet-5", "Context: 0 of 200k (0%)",
			"Thinking: low · fast: off · verbose: off · reasoning: off · usage: full",
			"Queue: collect, idle, 0 messages waiting", "Session: agent:main:main")
		if strings.Contains(got, "$") {
			t.Errorf("USAGE-03: a dollar sign without a price: %q", got)
		}
		b.update(func(tx store.Tx) error {
			m := b0(tx)
			m.Tokens, m.Context, m.NanoUSD, m.Calls, m.Priced = llm.Usage{Input: 1000, Output: 100}, 50_000, 4_500_000, 1, true
			return tx.Sessions().Put(m)
		})
		b.replied("/status", "Context: 50k of 200k (25%)", "Tokens: in 1k · out 100 · $0.0045") // USAGE-05
		b.update(func(tx store.Tx) error {
			m := b0(tx)
			m.Fallback, m.Think, m.Verbose, m.Usage, m.Priced = "acme/plain", "high", "on", "tokens", false
			return tx.Sessions().Put(m)
		})
		b.running("r1")
		b.replied("/status", "Model: acme/sonnet-5 (acme/plain answered instead)",
			"Thinking: high · fast: off · verbose: on · reasoning: off · usage: tokens", "busy", "out 100\n")
		b.live = false
		b.replied("/status", "Queue: collect, running,") // by another process
	})
	t.Run("whoami", func(t *testing.T) {
		b := newBench(t)
		in := b.local("/whoami")
		in.Sender = chela.Sender{ID: "cli"}
		r, err := b.gate.Admit(owner(t), in)
		if want := "Identity: owner\n- Scopes: operator.admin\n- Session: agent:main:main"; err != nil || r.Reply != want {
			t.Errorf("got %q, %v, want %q", r.Reply, err, want)
		}
		in = dm("1", "friend", "/whoami")
		in.Sender.Name = "Ann"
		if err := b.gate.Receive(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		want := "Identity: fake:bot:friend\n- On fake: friend Ann\n- Session: agent:main:main"
		if got := b.replies(); got[len(got)-1] != want {
			t.Errorf("got %q, want %q", got[len(got)-1], want)
		}
	})
	t.Run("commands that the sender may not use are marked", func(t *testing.T) {
		b := newBench(t)
		if got := b.replied("/commands"); strings.Contains(got, "not permitted") {
			t.Errorf("the owner: %s", got)
		}
		if err := b.gate.Receive(t.Context(), dm("1", "friend", "/commands")); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.replies()[1]) {
			name, _, ok := strings.Cut(strings.TrimPrefix(line, "- /"), ":")
			name, _, _ = strings.Cut(name, " ")
			if c := byName()[name]; ok && strings.HasPrefix(line, "- /") &&
				strings.Contains(line, "(not permitted)") != (c.Scope != "") {
				t.Errorf("%q", line)
			}
		}
	})
	t.Run("USAGE-02 cost", func(t *testing.T) {
		b := newBench(t)
		b.replied("/usage cost", "No usage")
		now := time.Now()
		add := func(model string, at time.Time, priced bool) {
			b.update(func(tx store.Tx) error {
				row := usage.Row{
					Run: "r", Session: mainKey, Provider: "acme", Model: model, Time: at,
					Tokens: llm.Usage{Input: 1000, Output: 100}, Priced: priced,
				}
				if priced {
					row.NanoUSD = 4_500_000
				}
				return tx.Usage().Add(row)
			})
		}
		add("sonnet-5", now, true)
		add("sonnet-5", now.AddDate(0, 0, -3), true)
		add("old", now.AddDate(0, 0, -31), true)
		b.update(func(tx store.Tx) error {
			return tx.Usage().Add(usage.Row{Run: "r", Session: "agent:main:other", Provider: "acme", Model: "other", Time: now})
		})
		b.replied("/usage cost", "Today: 1 call, in 1k · out 100 · $0.0045", "7 days: 2 calls, in 2k · out 200 · $0.0090",
			"acme/sonnet-5: 2 calls")
		if got := b.replied("/usage cost"); strings.Contains(got, "acme/old") || strings.Contains(got, "acme/other") {
			t.Errorf("got %q", got)
		}
		add("week", now.AddDate(0, 0, -7), true) // the eighth day
		b.replied("/usage cost", "7 days: 2 calls", "30 days: 3 calls")
		add("free", now, false)
		got := b.replied("/usage cost", "acme/free: 1 call, in 1k · out 100",
			"7 days: 3 calls, in 3k · out 300 · $0.0090 and 1 call without a known price")
		for line := range strings.Lines(got) {
			if strings.HasPrefix(line, "acme/free") && strings.Contains(line, "$") {
				t.Errorf("USAGE-03: %q", line)
			}
		}
	})
	t.Run("approve", func(t *testing.T) {
		b := newBench(t)
		b.replied("/approve deny", "Approvals are not enabled")
		var asked []string
		b.o.Decide = func(ctx context.Context, id, d string) (approval.Request, error) {
			asked = append(asked, id+" "+d+" "+chela.PrincipalFrom(ctx).ID)
			var r approval.Request
			err := b.db.Update(ctx, store.Synced, func(tx store.Tx) (err error) {
				r, err = approval.Resolve(tx.Approvals(), chela.PrincipalFrom(ctx), id, d, time.Now())
				return err
			})
			return r, err
		}
		b.gate = New(b.o)
		b.replied("/approve", "Usage: /approve")
		b.update(func(tx store.Tx) error {
			return tx.Approvals().Put(approval.Request{ID: "c1", Session: "agent:main:third", Text: "make tea",
				Expires: time.Now().Add(time.Hour)})
		})
		b.replied("/approve deny", "No approval is pending here") // but in another session
		for _, id := range []string{"a1", "a2"} {
			b.update(func(tx store.Tx) error {
				return tx.Approvals().Put(approval.Request{
					ID: id, Session: mainKey, Text: "rm -rf build", Created: time.Now(), Expires: time.Now().Add(time.Hour),
				})
			})
		}
		b.replied("/approve yes", "Several approvals are pending: a1, a2")
		b.replied("/approve a yes", "Several approvals are pending: a1, a2")
		b.replied("/approve a1 yes please", "Usage: /approve")
		b.update(func(tx store.Tx) error {
			return tx.Approvals().Put(approval.Request{ID: "a12", Session: "agent:main:third", Text: "a1 is its prefix",
				Expires: time.Now().Add(time.Hour)})
		})
		in := b.local("/approve a1 allow-once")
		for range 2 {
			r, err := b.gate.Admit(owner(t), in)
			if err != nil || r.Reply != "Allowed (allow-once):\n```\nrm -rf build\n```" {
				t.Errorf("got %+v, %v", r, err)
			}
		}
		if len(asked) != 1 || asked[0] != "a1 allow-once owner" {
			t.Errorf("decided %q", asked)
		}
		b.replied("/approve a1 deny", "owner decided allow-once")
		b.update(func(tx store.Tx) error {
			return tx.Approvals().Put(approval.Request{ID: "b77", Session: "agent:main:other", Text: "make tea",
				Expires: time.Now().Add(time.Hour)})
		})
		b.replied("/approve b7 deny", "Denied:\n```\nmake tea\n```") // of another session, by a prefix of its id
		b.replied("/approve b1 yes", "not found")
		b.replied("/approve no", "Denied:\n```\nrm -rf build\n```")
		b.update(func(tx store.Tx) error {
			return tx.Approvals().Put(approval.Request{
				ID:      "d1",
				Session: "agent:main:child",
				Asked:   mainKey,
				Text:    "ls",
				Expires: time.Now().Add(time.Hour),
			})
		})
		b.replied("/approve no", "Denied:\n```\nls\n```") // of a child of this session
	})
}
