package message_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/tool/message"
)

var here = at("fake", "1")

// does calls the tool, which must succeed, and returns its text.
func (h *fixture) does(args m) string {
	h.t.Helper()
	r, err := h.call(here, args)
	if err != nil || r.IsError {
		h.t.Fatalf("%v: %+v %v", args, r, err)
	}
	return r.Content[0].Text
}

// refuses calls the tool, which must fail with an error that contains text.
func (h *fixture) refuses(from chela.Address, args m, text string) {
	h.t.Helper()
	r, err := h.call(from, args)
	if err == nil || !strings.Contains(err.Error(), text) {
		h.t.Errorf("%v: %+v, error %v, want %q", args, r, err, text)
	}
}

// calls returns the calls of a channel that do more than to read.
func calls(f *channeltest.Fake) (out []string) {
	for _, c := range f.Calls("") {
		out = append(out, strings.TrimSpace(c.Op+" "+c.ID+" "+c.Text))
	}
	return out
}

func TestActions(t *testing.T) {
	one := []string{"fake"}
	on(t, "CH-22 every action reaches the platform", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		f := h.channels["fake"]
		f.Entries = []channel.Entry{{Peer: chela.Peer{Kind: chela.Direct, ID: "u1"}, Name: "Ann Lee", Handle: "ann"}}
		h.does(m{"message": "hello"})
		for _, c := range []struct {
			args m
			call string
			text string
		}{
			{m{"action": "react", "messageId": "m1", "emoji": "👍"}, "react m1 👍", "Reacted with 👍 to message m1 in fake:1."},
			{m{"action": "REACT", "messageId": "m1", "emoji": ""}, "react m1",
				"Removed the reaction from message m1 in fake:1."},
			{m{"action": "react", "messageId": "m1", "emoji": "👍", "remove": true}, "react m1", "Removed the reaction"},
			{m{"action": "edit", "messageId": "m1", "message": "hello!"}, "edit m1 hello!", "Changed message m1 in fake:1."},
			{m{"action": "pin", "messageId": "m1"}, "pin m1", "Pinned message m1 in fake:1."},
			{m{"action": "unpin", "messageId": "m1"}, "unpin m1", "Unpinned message m1 in fake:1."},
			{m{"action": "read", "limit": 5}, "read", "1 message in fake:1.\n<untrusted-content"},
			{m{"action": "thread-create", "name": "plans"}, "thread  plans",
				`Created the thread "plans": fake:1:topic:t-plans.`},
			{m{"action": "search", "query": "ann"}, "search  ann", "user:u1 Ann Lee (@ann)"},
			{m{"action": "unsend", "messageId": "m1"}, "delete m1", "Deleted message m1 in fake:1."},
			{m{"action": "poll", "question": "Tea?", "options": []string{"yes", "no"}, "multiple": true,
				"pollDurationHours": 1.5}, "poll m2 Tea?", "Sent to fake:1. Message id m2."},
		} {
			before := len(calls(f))
			text := h.does(c.args)
			if got := calls(f)[before:]; !slices.Equal(got, []string{c.call}) || !strings.Contains(text, c.text) {
				t.Errorf("%v: calls %q, result %q; want %q and %q", c.args, got, text, c.call, c.text)
			}
		}
		got := f.Messages(here)
		if len(got) != 1 || got[0].Poll == nil {
			t.Fatalf("the chat shows %+v", got)
		}
		want := channel.Poll{
			Key:      got[0].Key,
			Address:  here,
			Question: "Tea?",
			Options:  []string{"yes", "no"},
			Multiple: true,
			Open:     90 * time.Minute,
		}
		if diff := cmp.Diff(want, *got[0].Poll); diff != "" {
			t.Error(diff)
		}
	})
	on(t, "MS-07 react with an empty emoji removes the reaction", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			h.does(m{"message": "hello"})
			h.does(m{"action": "react", "messageId": "m1", "emoji": "👍"})
			if got := h.channels["fake"].Messages(here)[0].Emoji; got != "👍" {
				t.Errorf("reaction %q", got)
			}
			h.does(m{"action": "react", "messageId": "m1", "emoji": ""})
			if got := h.channels["fake"].Messages(here)[0].Emoji; got != "" {
				t.Errorf("reaction %q after its removal", got)
			}
		})
	on(t, "a reaction is to the message that is answered", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		h.refuses(here, m{"action": "react", "emoji": "👍"}, "messageId is missing: no message of fake:1 is being answered")
		put := func(id string, taken chela.RunID, in chela.Inbound) {
			h.update(func(tx store.Tx) error {
				it := queue.Item{
					ID:      id,
					Key:     id,
					Session: home,
					Kind:    queue.Message,
					State:   queue.Waiting,
					Inbound: in,
					Created: time.Now(),
				}
				if _, err := tx.Queue().Put(it); err != nil {
					return err
				}
				it.Run = taken
				return tx.Queue().Set(queue.Taken, it)
			})
		}
		put("r", "r", chela.Inbound{ID: "77", Address: here, Text: "hi"})
		h.does(m{"action": "react", "emoji": "👍"})
		put("later", "r", chela.Inbound{ID: "78", Address: here, Text: "and"})
		put("other", "r", chela.Inbound{ID: "79", Address: at("fake", "2"), Text: "elsewhere"})
		h.does(m{"action": "react", "emoji": "👀"})
		if got := calls(h.channels["fake"]); !slices.Equal(got, []string{"react 77 👍", "react 78 👀"}) {
			t.Errorf("calls %q", got)
		}
	})
	on(t, "MS-06 a poll has 2 to 12 options", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		for n, want := range map[int]string{
			0:  "not 0",
			1:  "a poll has 2 to 12 options, not 1",
			13: "a poll has 2 to 12 options, not 13",
		} {
			h.refuses(here, m{"action": "poll", "question": "Tea?", "options": slices.Repeat([]string{"x"}, n)}, want)
		}
		h.refuses(here, m{"action": "poll", "options": []string{"a", "b"}}, "the question of the poll is missing")
		h.refuses(here, m{"action": "poll", "question": "Tea?", "options": []string{"a", " "}}, "option 2 is empty")
		if n := h.rows(); n != 0 {
			t.Errorf("%d rows", n)
		}
		for _, n := range []int{2, 12} {
			h.does(m{"action": "poll", "question": "Tea?", "options": slices.Repeat([]string{"x"}, n)})
		}
	})
	on(t, "MS-08 an action that the channel does not support", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		h.view = plain
		h.refuses(here, m{"action": "poll", "question": "Tea?", "options": []string{"yes", "no"}},
			"poll is not supported on fake; it supports send, broadcast")
		h.refuses(here, m{"action": "edit", "messageId": "m1", "message": "x"},
			"edit is not supported on fake; it supports send, broadcast")
		h.view = func(f *channeltest.Fake) channel.Channel { return f.Editing() }
		h.refuses(here, m{"action": "react", "messageId": "m1"},
			"react is not supported on fake; it supports send, broadcast, edit, delete")
		if n := h.rows(); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
	on(t, "an action that the configuration switches off", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		h.section = `{"actions": {"reactions": false, "delete": false, "pins": true}}`
		h.refuses(here, m{"action": "react", "messageId": "m1"},
			"react is switched off (channels.fake.actions); fake allows send, broadcast, poll, edit, pin")
		h.refuses(here, m{"action": "unsend", "messageId": "m1"}, "delete is switched off")
		h.section = `{"actions": {"send": false}}`
		h.refuses(here, m{"message": "x"}, "send is switched off")
		h.refuses(local, m{"action": "search", "query": "x", "channel": "tele"},
			`there is no channel "tele"; available: fake, local`)
		if got := calls(h.channels["fake"]); len(got) != 0 {
			t.Errorf("calls %q", got)
		}
	})
	on(t, "MS-09 a dry run of each action calls nothing", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		for _, c := range []struct {
			args m
			text string
		}{
			{m{"action": "react", "messageId": "m1", "emoji": "👍"}, "It would react: message m1 in fake:1"},
			{m{"action": "pin"}, "It would pin: the message that is answered in fake:1"},
			{m{"action": "edit", "messageId": "m1", "message": "x"}, `It would change message m1 in fake:1 to: "x"`},
			{m{"action": "read"}, "It would read the last messages of fake:1"},
			{m{"action": "thread-create", "name": "plans"}, "It would create the thread plans in fake:1"},
			{m{"action": "search", "query": "ann"}, `It would search the directory of fake/bot for "ann".`},
			{m{"action": "poll", "question": "Tea?", "options": []string{"yes", "no"}},
				"It would send a poll to fake:1: Tea? - yes - no"},
			{m{"message": "x", "buttons": [][]m{{{"label": "Yes", "data": "y"}}}, "media": []string{"a.txt"}},
				`It would send to fake:1: "x" with a.txt, [Yes]`},
			{m{"action": "broadcast", "message": "x", "targets": []string{"2", "channel:33"}},
				"Nothing was sent. It would send \"x\" to:\nfake:2\nfake:33"},
		} {
			c.args["dryRun"] = true
			if text := h.does(c.args); !strings.Contains(text, c.text) {
				t.Errorf("%v: %q, want %q", c.args, text, c.text)
			}
		}
		if got := calls(h.channels["fake"]); len(got) != 0 || h.rows() != 0 {
			t.Errorf("calls %q, %d rows", got, h.rows())
		}
	})
	on(t, "an outcome is unknown, a message is gone, the platform refuses", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			f := h.channels["fake"]
			h.refuses(here, m{"action": "edit", "messageId": "m7", "message": "x"},
				"message m7 of fake:1 does not exist, or was deleted")
			h.refuses(here, m{"action": "delete", "messageId": "m7"}, "message m7 of fake:1 does not exist, or was deleted")
			h.does(m{"message": "hello"})
			f.FailOthers(channeltest.Cut(), channeltest.Permanent(), channeltest.Limited(30*time.Second),
				channeltest.Temporary())
			r, err := h.call(here, m{"action": "pin", "messageId": "m1"})
			if err != nil || !r.IsError || detailsOf(t, r).Status != "unknown" ||
				!strings.Contains(r.Content[0].Text, "Do not repeat it") {
				t.Errorf("%+v %v", r, err)
			}
			h.refuses(here, m{"action": "pin", "messageId": "m1"}, "pin in fake:1: chat not found")
			h.refuses(here, m{"action": "pin", "messageId": "m1"}, "asks to wait 30s")
			h.refuses(here, m{"action": "pin", "messageId": "m1"}, "try again")
		})
	on(t, "a channel that hangs", action.CrossContext{}, one, func(t *testing.T, h *fixture) {
		h.channels["fake"].Latency = time.Hour
		start := time.Now()
		r, err := h.call(here, m{"action": "react", "messageId": "m1", "emoji": "👍"})
		if err != nil || detailsOf(t, r).Status != "unknown" || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %+v %v", time.Since(start), r, err)
		}
	})
	on(t, "a repeated broadcast sends only what was not sent", action.CrossContext{}, []string{"fake", "irc"},
		func(t *testing.T, h *fixture) {
			h.down["fake"] = "logged out"
			want := []string{"failed sent", "sent sent", "sent sent"}
			for i, want := range want {
				r, err := h.actor.Do(t.Context(), action.Request{Action: action.Broadcast, Targets: []string{"fake:1", "irc:2"},
					Text: "hello", Key: "k"})
				if err != nil || len(r.Targets) != 2 {
					t.Fatalf("%+v %v", r, err)
				}
				if got := fmt.Sprint(r.Targets[0].Status, " ", r.Targets[1].Status); got != want {
					t.Errorf("call %d: %s, want %s: %s", i+1, got, want, r.Text)
				}
				delete(h.down, "fake")
			}
			for _, to := range []chela.Address{at("fake", "1"), at("irc", "2")} {
				if got := h.channels[to.Channel].Messages(to); len(got) != 1 {
					t.Errorf("%s shows %+v", to.Channel, got)
				}
			}
		})
	on(t, "an account that is not running fails at once with its state", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			h.down["fake"] = "logged out"
			start := time.Now()
			for _, args := range []m{{"message": "x"}, {"action": "react", "messageId": "m1"}, {"action": "search"},
				{"action": "poll", "question": "Tea?", "options": []string{"yes", "no"}}} {
				h.refuses(here, args, "channel fake/bot is not running: logged out")
			}
			if time.Since(start) != 0 || h.rows() != 0 {
				t.Errorf("after %s, %d rows", time.Since(start), h.rows())
			}
		})
	on(t, "only the owner reads and changes what is in other chats", action.CrossContext{}, one,
		func(t *testing.T, h *fixture) {
			for _, args := range []m{{"action": "read", "to": "22"}, {"action": "delete", "messageId": "m1", "to": "22"},
				{"action": "pin", "messageId": "m1", "to": "22"}} {
				h.refuses(here, args, "only the owner may use "+args["action"].(string)+" in another chat")
			}
			h.does(m{"action": "read", "to": "1"})
			h.does(m{"to": "22", "message": "x"})
			h.update(func(tx store.Tx) error {
				return tx.Runs().Put(run.Run{
					ID:        "owned",
					Session:   home,
					Agent:     "main",
					Address:   here,
					State:     run.Running,
					Started:   time.Now(),
					Principal: chela.Owner("x"),
				})
			})
			b, _ := json.Marshal(m{"action": "read", "to": "22"})
			if r, err := h.Run(context.Background(), tool.Call{
				ID:      "c2",
				Args:    b,
				Run:     "owned",
				Session: home,
				Agent:   "main",
				Dir:     h.dir,
				Update:  func(string) {},
			}); err != nil || r.IsError {
				t.Errorf("the owner: %+v %v", r, err)
			}
		})
}

func TestButtons(t *testing.T) {
	buttons := [][]m{{{"label": "Yes", "data": "y", "style": "success"},
		{"label": "No", "data": "n", "style": "secondary"}}, {{"label": "Help", "url": "https://a.example"}}}
	on(t, "MS-04 labels are text on a channel without buttons", action.CrossContext{}, []string{"fake"},
		func(t *testing.T, h *fixture) {
			h.does(m{"message": "Sure?", "buttons": buttons})
			if got := h.channels["fake"].Messages(here); len(got) != 1 ||
				got[0].Text != "Sure?\n\n- Yes\n- No\n- Help: https://a.example" || got[0].Buttons != nil {
				t.Errorf("delivered %+v", got)
			}
		})
	on(t, "MS-04 buttons are buttons on a channel that has them", action.CrossContext{}, []string{"fake"},
		func(t *testing.T, h *fixture) {
			h.buttons = true
			h.does(m{"message": strings.Repeat("word ", 30), "buttons": buttons})
			got := h.channels["fake"].Messages(here)
			want := [][]chela.Button{{{Label: "Yes", Data: "y", Style: chela.Success}, {Label: "No", Data: "n"}},
				{{Label: "Help", URL: "https://a.example"}}}
			if len(got) != 2 || got[0].Buttons != nil || !cmp.Equal(got[1].Buttons, want) {
				t.Errorf("delivered %+v", got)
			}
		})
	on(t, "buttons that cannot be shown", action.CrossContext{}, []string{"fake"}, func(t *testing.T, h *fixture) {
		for want, b := range map[string]m{
			"want a label":             {"label": " ", "data": "x"},
			"want either data or url":  {"label": "x"},
			`"y": want either data or`: {"label": "y", "data": "x", "url": "https://a.example"},
			"has 65 bytes":             {"label": "x", "data": strings.Repeat("x", 65)},
			"begins with https://":     {"label": "x", "url": "javascript:1"},
			"unknown style":            {"label": "x", "data": "x", "style": "blue"},
		} {
			h.refuses(here, m{"message": "x", "buttons": [][]m{{b}}}, want)
		}
		h.refuses(here, m{"message": "x", "buttons": [][]m{slices.Repeat([]m{{"label": "x", "data": "x"}}, 26)}},
			"26 buttons are too many")
		if h.rows() != 0 {
			t.Errorf("%d rows", h.rows())
		}
	})
}

func TestBroadcast(t *testing.T) {
	type target struct{ To, Status string }
	type result struct {
		Status     string
		MessageIDs []string
		Targets    []target
	}
	on(t, "a result for each target", action.CrossContext{}, []string{"fake", "irc"}, func(t *testing.T, h *fixture) {
		h.channels["irc"].Fail(channeltest.Permanent())
		r, err := h.call(local, m{"action": "broadcast", "message": "hello", "targets": []string{"fake:11", "irc:12",
			"nowhere:13", "fake:channel:14", "agent:main:other"}})
		var got result
		if err == nil {
			err = json.Unmarshal(r.Details, &got)
		}
		want := result{"partial", []string{"m1", "m2"},
			[]target{{"11", "sent"}, {"12", "failed"}, {"nowhere:13", "failed"}, {"14", "sent"}, {"agent:main:other", "sent"}}}
		if len(got.MessageIDs) == 3 { // that of the entry in the session is random
			got.MessageIDs = slices.Sorted(slices.Values(got.MessageIDs[:2])) // chats are sent to in parallel
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || r.IsError {
			t.Errorf("%v, error result %v: %s", err, r.IsError, diff)
		}
		if text := r.Content[0].Text; !strings.Contains(text, "Not sent to irc:12: chat not found") ||
			!strings.Contains(text, `Not sent to nowhere:13: there is no channel "nowhere"`) {
			t.Errorf("text %q", text)
		}
		if n := len(h.channels["fake"].Messages(chela.Address{})); n != 2 {
			t.Errorf("%d messages", n)
		}
	})
	on(t, "limits", action.CrossContext{}, []string{"fake"}, func(t *testing.T, h *fixture) {
		for _, n := range []int{0, 51} {
			h.refuses(here, m{"action": "broadcast", "message": "x", "targets": slices.Repeat([]string{"2"}, n)},
				"want 1 to 50 chats")
		}
	})
}

func TestNames(t *testing.T) {
	on(t, "MS-11 a name that fits one entry, two, or none", action.CrossContext{}, []string{"fake"},
		func(t *testing.T, h *fixture) {
			f := h.channels["fake"]
			person := func(id, name, handle string) channel.Entry {
				return channel.Entry{Peer: chela.Peer{Kind: chela.Direct, ID: id}, Name: name, Handle: handle}
			}
			room := channel.Entry{Peer: chela.Peer{Kind: chela.Room, ID: "C1"}, Name: "general"}
			f.Entries = []channel.Entry{
				person("U1", "Ann Lee", "ann"), person("U2", "Bob Stone", "bob"), person("U3", "Bob Berg", "bobby"),
				person("U4", "Annette", "nette"), person("U5", "general", "general"), room,
				{Peer: chela.Peer{Kind: chela.Group, ID: "gAb/9+c="}, Name: "Ops"},
			}
			to := func(kind chela.PeerKind, id string) chela.Address {
				return chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: kind, ID: id}}
			}
			for name, want := range map[string]chela.Address{
				"Ann Lee":         to(chela.Direct, "U1"),
				"ann lee":         to(chela.Direct, "U1"),
				"@ann":            to(chela.Direct, "U1"),
				"stone":           to(chela.Direct, "U2"),
				"channel:general": to(chela.Room, "C1"),
				"user:general":    to(chela.Direct, "U5"),

				"fake:channel:#general:topic:5": {Channel: "fake", Account: "bot", Peer: room.Peer, Thread: "5"},
				"group:gAb/9+c=":                to(chela.Group, "gAb/9+c="),
				"gAb/9+c=":                      to(chela.Group, "gAb/9+c="),

				"12345":     to(chela.Direct, "12345"),
				"U0123ABCD": to(chela.Direct, "U0123ABCD"),
				"-100200":   to(chela.Direct, "-100200"),
			} {
				before := len(f.Messages(chela.Address{}))
				h.does(m{"to": name, "message": "hi " + name})
				if got := f.Messages(chela.Address{}); len(got) != before+1 || got[before].Address != want {
					t.Errorf("%q: sent to %+v, want %+v", name, got[before:], want)
				}
			}
			before := h.rows()
			for name, want := range map[string]string{
				"bob berg jr": `nobody and no chat on fake is named "bob berg jr"; the nearest are user:U3 (Bob Berg, @bobby)`,
				"b":           `"b" fits 2 entries on fake; nothing was done. Use one of: user:U2 (Bob Stone, @bob), user:U3 (Bob Berg, @bobby)`,
				"general":     `"general" fits 2 entries on fake; nothing was done. Use one of: user:U5 (general, @general), channel:C1 (general)`,
				"gneral":      `the nearest are user:U5 (general, @general), channel:C1 (general)`,
			} {
				h.refuses(here, m{"to": name, "message": "x"}, want)
			}
			f.Entries = nil
			h.refuses(here, m{"to": "Carla", "message": "x"}, `nobody and no chat on fake is named "Carla"`)
			f.FailOthers(channeltest.Temporary())
			h.refuses(here, m{"to": "Carla", "message": "x"}, `look up "Carla" on fake/bot: try again`)
			if n := h.rows(); n != before {
				t.Errorf("%d rows were added", n-before)
			}
		})
	on(t, "the names of strangers are cut", action.CrossContext{}, []string{"fake"}, func(t *testing.T, h *fixture) {
		h.channels["fake"].Entries = []channel.Entry{{Peer: chela.Peer{Kind: chela.Direct, ID: "U1"}, Name: "Eve\n\nIgnore " +
			strings.Repeat("x", 100)}}
		_, err := h.call(here, m{"to": "Carla", "message": "x"})
		if err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 200 {
			t.Errorf("%v", err)
		}
	})
}

// TestAbilities adds one ability after the other to a channel that can only send.
func TestAbilities(t *testing.T) {
	type base = channeltest.Plain
	abilities := []struct {
		action action.Action
		view   func(base, *channeltest.Fake) channel.Channel
		args   m
	}{
		{action.Poll, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Poller
			}{p, f}
		}, m{"question": "Tea?", "options": []string{"yes", "no"}}},
		{action.React, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Reactor
			}{p, f}
		}, m{"messageId": "m1", "emoji": "👍"}},
		{action.Edit, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Editor
			}{p, f}
		}, m{"messageId": "m1", "message": "new"}},
		{action.Delete, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Deleter
			}{p, f}
		}, m{"messageId": "m1"}},
		{action.Pin, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Pinner
			}{p, f}
		}, m{"messageId": "m1"}},
		{action.Read, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Reader
			}{p, f}
		}, m{}},
		{action.Thread, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Threader
			}{p, f}
		}, m{"name": "plans"}},
		{action.Search, func(p base, f *channeltest.Fake) channel.Channel {
			return struct {
				base
				channel.Directory
			}{p, f}
		}, m{"query": "x"}},
	}
	for _, has := range abilities {
		on(t, fmt.Sprintf("CH-22 %s is listed and can be used exactly when the channel has it", has.action),
			action.CrossContext{}, []string{"fake"}, func(t *testing.T, h *fixture) {
				h.view = func(f *channeltest.Fake) channel.Channel { return has.view(f.Plain(), f) }
				want := []action.Action{action.Send, action.Broadcast, has.action}
				if has.action == action.Pin {
					want = append(want, action.Unpin)
				}
				if got := action.Of(h.view(h.channels["fake"])); !slices.Equal(got, want) {
					t.Errorf("listed %v, want %v", got, want)
				}
				h.does(m{"message": "hello"})
				for _, other := range abilities {
					args := m{"action": string(other.action)}
					for k, v := range other.args {
						args[k] = v
					}
					if other.action == has.action {
						h.does(args)
						continue
					}
					h.refuses(here, args, fmt.Sprintf("%s is not supported on fake; it supports ", other.action))
				}
			})
	}
	if got := action.Of((*channeltest.Fake)(nil)); !slices.Equal(got, action.All()) {
		t.Errorf("a nil pointer lists %v", got)
	}
}

// TestSpec checks that a model reads only what it can use.
func TestSpec(t *testing.T) {
	t.Parallel()
	size := func(actions ...action.Action) (int, tool.Spec) {
		s := message.New(message.Options{Actions: actions}).Spec()
		return len(s.Description) + len(s.Schema), s
	}
	if n, s := size(); n > 1650 || strings.Contains(string(s.Schema), "emoji") ||
		strings.Contains(s.Description, "poll") || !strings.Contains(s.Description, "send (the only one)") {
		t.Errorf("without channels: %d bytes\n%s\n%s", n, s.Description, s.Schema)
	}
	if n, s := size(action.Send, action.Broadcast, action.React); n > 2750 ||
		!strings.Contains(string(s.Schema), `"emoji"`) || strings.Contains(string(s.Schema), `"question"`) ||
		strings.Contains(s.Description, "search") {
		t.Errorf("with reactions: %d bytes\n%s\n%s", n, s.Description, s.Schema)
	}
	for want, actions := range map[string][]action.Action{
		"`action`: send (the only one).":            {action.Send},
		"`action`: poll, react.":                    {action.Poll, action.React},
		"`action`: send (default), broadcast, pin.": {action.Send, action.Broadcast, action.Pin},
	} {
		if _, s := size(actions...); !strings.Contains(s.Description, want) {
			t.Errorf("%v: %s", actions, s.Description)
		}
	}
	n, s := size(action.All()...)
	if n > 3500 || !json.Valid(s.Schema) {
		t.Errorf("all: %d bytes\n%s\n%s", n, s.Description, s.Schema)
	}
	var sc struct{ Properties map[string]any }
	if err := json.Unmarshal(s.Schema, &sc); err != nil {
		t.Fatal(err)
	}
	for alias, name := range s.Aliases {
		if sc.Properties[name] == nil {
			t.Errorf("alias %s: there is no %s", alias, name)
		}
	}
}
