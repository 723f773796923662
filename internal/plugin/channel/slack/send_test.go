package slack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/memo"
	"github.com/chela-ai/chela/internal/plugin/channel/slack/slacktest"
)

func (w *world) send(p channel.Part) channel.Receipt {
	w.t.Helper()
	r, err := w.b.Send(w.ctx, p)
	if err != nil {
		w.t.Fatalf("send: %v", err)
	}
	return r
}

func TestSendErrors(t *testing.T) {
	inWorld(t, "", func(w *world) {
		for _, c := range []struct {
			fault                      slacktest.Fault
			permanent, ambiguous, gone bool
			after                      time.Duration
			text                       string
		}{
			{fault: slacktest.Fault{Error: "channel_not_found"}, permanent: true, gone: true},
			{fault: slacktest.Fault{Error: "msg_too_long"}, permanent: true},
			{fault: slacktest.Fault{Error: "not_in_channel"}, permanent: true, text: "/invite @chela"},
			{fault: slacktest.Fault{Error: "missing_scope"}, permanent: true, text: "some:scope"},
			{fault: slacktest.Fault{Error: "token_revoked"}, permanent: true, text: "chela config set"},
			{fault: slacktest.Fault{Error: "never_heard_of"}, permanent: true},
			{fault: slacktest.Fault{Error: "ratelimited", After: 7 * time.Second}, after: 7 * time.Second},
			{fault: slacktest.Fault{Status: 429, After: 3 * time.Second}, after: 3 * time.Second},
			{fault: slacktest.Fault{Status: 429}, after: 30 * time.Second},
			{fault: slacktest.Fault{Error: "service_unavailable"}},
			{fault: slacktest.Fault{Error: "fatal_error"}, ambiguous: true},
			{fault: slacktest.Fault{Status: 500}, ambiguous: true},
			{fault: slacktest.Fault{Status: 200}, ambiguous: true}, // no JSON
			{fault: slacktest.Fault{Cut: true}, ambiguous: true},
			{fault: slacktest.Fault{Status: 403}},
		} {
			w.Fail("chat.postMessage", c.fault)
			_, err := w.b.Send(w.ctx, channel.Part{Address: room("C1"), Text: "x"})
			e, _ := errors.AsType[*channel.Error](err)
			if e == nil {
				e = &channel.Error{}
			}
			if err == nil || e.Permanent != c.permanent || e.RetryAfter != c.after || errors.Is(err, channel.ErrAmbiguous) !=
				c.ambiguous || errors.Is(err, channel.ErrGone) != c.gone || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%+v: %v (permanent %v, after %v)", c.fault, err, e.Permanent, e.RetryAfter)
			}
		}
		w.equal(0, len(w.Texts("C1", "")))
		_, err := w.b.Send(w.ctx, channel.Part{Address: room("C9"), Text: "x"})
		if err == nil || !strings.Contains(err.Error(), "/invite @chela") {
			t.Error(err)
		}
		for method, code := range map[string]string{
			"chat.update": "cant_update_message",
			"chat.delete": "cant_delete_message",
		} {
			ts := w.Write("C1", "", "U1", "theirs")
			err := w.b.Edit(w.ctx, room("C1"), ts, "x")
			if method == "chat.delete" {
				err = w.b.Delete(w.ctx, room("C1"), ts)
			}
			if e, ok := errors.AsType[*channel.Error](err); !ok || !e.Permanent || errors.Is(err, channel.ErrGone) ||
				!strings.Contains(err.Error(), code) {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

func TestAmbiguous(t *testing.T) {
	for name, fault := range map[string]slacktest.Fault{
		"accepted, then 500":       {Status: 500, Accept: true},
		"accepted, then cut":       {Cut: true, Accept: true},
		"accepted, then an error":  {Error: "fatal_error", Accept: true},
		"cut before it was stored": {Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				root := w.Write("C1", "", "U1", "root")
				thread := room("C1")
				thread.Thread = root
				for _, a := range []chela.Address{room("C1"), thread, person("U1")} {
					w.Fail("chat.postMessage", fault)
					p := channel.Part{Key: "k" + a.Thread, Address: a, Text: "once"}
					if _, err := w.b.Send(w.ctx, p); !errors.Is(err, channel.ErrAmbiguous) {
						t.Fatalf("got %v", err)
					}
					r, found, err := w.b.Find(w.ctx, a, p.Key)
					if err != nil || found != fault.Accept {
						t.Errorf("find: %v, %v", found, err)
					}
					sent := w.send(p)
					if found && sent.ID != r.ID {
						t.Errorf("found %s, sent %s", r.ID, sent.ID)
					}
				}
				w.equal([]string{"once"}, w.Texts("C1", ""))
				w.equal([]string{"once"}, w.Texts("C1", root))
				w.equal([]string{"once"}, w.Texts("D1", ""))
			})
		})
	}
	t.Run("among many messages", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			r := w.send(channel.Part{Key: "k", Address: room("C1"), Text: "once"})
			for i := range 450 {
				w.Write("C1", "", "U1", fmt.Sprint(i))
			}
			if got, found, err := w.b.Find(w.ctx, room("C1"), "k"); err != nil || !found || got.ID != r.ID {
				t.Errorf("%+v, %v, %v", got, found, err)
			}
			for i := range 1600 {
				w.Write("C1", "", "U1", fmt.Sprint(i))
			}
			if _, found, err := w.b.Find(w.ctx, room("C1"), "k"); err == nil || found {
				t.Errorf("%v, %v, want an error: it is not known", found, err)
			}
		})
	})
}

func TestButtons(t *testing.T) {
	inWorld(t, "", func(w *world) {
		rows := [][]channel.Button{{{Label: "Yes", Data: "y", Style: channel.Success}, {Label: strings.Repeat("é", 100),
			Data: "n", Style: channel.Danger}}, {{Label: "Open", URL: "https://x.example"}}}
		w.send(channel.Part{Key: "k", Address: room("C1"), Text: "go & stop?", Buttons: rows})
		got := string(w.Messages("C1", "")[0].Blocks)
		for _, want := range []string{`"text":"go \u0026amp; stop?"`, `"style":"primary"`, `"style":"danger"`, `"value":"y"`,
			`"url":"https://x.example"`, strings.Repeat("é", 75) + `"`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is missing in %s", want, got)
			}
		}
		long := strings.Repeat("word & ", 500)
		w.send(channel.Part{Key: "l", Address: room("C1"), Text: long, Buttons: rows})
		if got := string(w.Messages("C1", "")[1].Blocks); strings.Count(got, `"section"`) != 2 {
			t.Errorf("%d sections", strings.Count(got, `"section"`))
		}
		w.send(channel.Part{Key: "m", Address: room("C1"), Text: "x", Buttons: [][]channel.Button{{}}})
		if got := w.Messages("C1", "")[2].Blocks; got != nil {
			t.Errorf("blocks without buttons: %s", got)
		}
	})
}

func TestFiles(t *testing.T) {
	png := chela.Media{Name: "a.png", Type: "image/png", Data: []byte("picture")}
	txt := chela.Media{Type: "text/plain; charset=utf-8", Data: []byte("text")}
	t.Run("files with a caption are one message", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			root := w.Write("C1", "", "U1", "root")
			a := room("C1")
			a.Thread = root
			p := channel.Part{Key: "k", Address: a, Text: "two <files>", Media: []chela.Media{png, txt}}
			r := w.send(p)
			list := w.Messages("C1", root)
			w.equal(1, len(list))
			w.equal(list[0].TS, r.ID)
			w.equal("two &lt;files&gt;", list[0].Text)
			label, data := w.File(list[0].Files[0])
			w.equal("a.png picture", label+" "+string(data))
			w.equal(2, len(list[0].Files))
			w.equal(r, w.send(p))
			w.equal(1, len(w.Messages("C1", root)))
		})
	})
	t.Run("with buttons the text follows, and nothing is repeated", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			w.Fail("chat.postMessage", slacktest.Fault{Status: 429, After: time.Second})
			p := channel.Part{
				Key:     "k",
				Address: person("U1"),
				Text:    "text",
				Media:   []chela.Media{png},
				Buttons: [][]channel.Button{{{Label: "a", Data: "b"}}},
			}
			if _, err := w.b.Send(w.ctx, p); err == nil {
				t.Fatal("no error")
			}
			if _, found, err := w.b.Find(w.ctx, p.Address, "k"); found || err != nil {
				t.Errorf("half of the part was found: %v, %v", found, err)
			}
			r := w.send(p)
			list := w.Messages("D1", "")
			w.equal(2, len(list))
			w.equal(list[0].TS, r.ID)
			w.equal("text", list[1].Text)
			if got, found, err := w.b.Find(w.ctx, p.Address, "k"); !found || err != nil || got.ID != r.ID {
				t.Errorf("%+v, %v, %v", got, found, err)
			}
		})
	})
	t.Run("an uncertain outcome is looked up", func(t *testing.T) {
		for _, accept := range []bool{true, false} {
			inWorld(t, "", func(w *world) {
				w.Fail("files.completeUploadExternal", slacktest.Fault{Cut: true, Accept: accept})
				p := channel.Part{Key: "k", Address: room("C1"), Text: "text", Media: []chela.Media{png}}
				if _, err := w.b.Send(w.ctx, p); !errors.Is(err, channel.ErrAmbiguous) {
					t.Fatalf("got %v", err)
				}
				if _, found, err := w.b.Find(w.ctx, room("C1"), "k"); err != nil || found != accept {
					t.Errorf("%v, %v", found, err)
				}
				r := w.send(p)
				list := w.Messages("C1", "")
				w.equal(1, len(list))
				w.equal(list[0].TS, r.ID)
				w.equal(1, len(w.Calls("files.getUploadURLExternal")))
			})
		}
	})
	t.Run("a failed upload is no ambiguous outcome", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			for _, f := range []slacktest.Fault{{Status: 500}, {Cut: true, Accept: true}, {Error: "invalid_arguments"}} {
				w.Fail("files.getUploadURLExternal", f)
				if _, err := w.b.Send(w.ctx, channel.Part{Key: "k", Address: room("C1"), Media: []chela.Media{png}}); err == nil ||
					errors.Is(err, channel.ErrAmbiguous) {
					t.Errorf("%+v: %v", f, err)
				}
			}
			w.HideShares()
			if r := w.send(channel.Part{Key: "k", Address: room("C1"), Media: []chela.Media{png}}); !strings.HasPrefix(r.ID,
				"F") {
				t.Errorf("receipt %+v", r)
			}
		})
	})
	t.Run("fetch", func(t *testing.T) {
		inWorld(t, "", func(w *world) {
			m := chela.Media{Name: "a", Type: "image/png", Source: w.AddFile("a", bytes.Repeat([]byte("x"), 100)), Bytes: 100}
			got, err := w.b.Fetch(w.ctx, m, 100)
			if err != nil || len(got.Data) != 100 || got.Source != "" || got.Type != "image/png" {
				t.Errorf("%+v, %v", got, err)
			}
			if _, err := w.b.Fetch(w.ctx, m, 99); err == nil || !strings.Contains(err.Error(), "99 bytes") {
				t.Errorf("too long: %v", err)
			}
			m.Source = strings.TrimSuffix(m.Source, "F1") + "F9"
			if _, err := w.b.Fetch(w.ctx, m, 99); !errors.Is(err, channel.ErrGone) {
				t.Errorf("unknown: %v", err)
			}
		})
	})
}

// TestTokenHosts checks that the token goes nowhere but to Slack.
func TestTokenHosts(t *testing.T) {
	var asked []string
	spy := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.URL.Host)
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"https://evil.example/"}},
			Body: http.NoBody, Request: r}, nil
	})}
	b := offline(t)
	b.http = spy
	for _, source := range []string{
		"https://evil.example/a", "http://files.slack.com/a", "https://slack.com.evil.example/a", "https://evilslack.com/a",
		"https://files.slack.com:8443/a",
		"https://files.slack.com@evil.example/a", "file:///etc/passwd", "", "files.slack.com/a", "https://127.0.0.1/a",
	} {
		if _, err := b.Fetch(t.Context(), chela.Media{Source: source}, 10); err == nil {
			t.Errorf("%s: no error", source)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked %q", asked)
	}
	_, err := b.Fetch(t.Context(), chela.Media{Source: "https://files.slack.com/a"}, 10)
	if err == nil || !strings.Contains(err.Error(), "files:read") || strings.Join(asked, " ") != "files.slack.com" {
		t.Errorf("%v, asked %q", err, asked)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestReactions(t *testing.T) {
	inWorld(t, "", func(w *world) {
		ts := w.Write("C1", "", "U1", "hello")
		react := func(emoji string, want ...string) {
			t.Helper()
			if err := w.b.React(w.ctx, room("C1"), ts, emoji); err != nil {
				t.Errorf("%s: %v", emoji, err)
			}
			var got []string
			for name := range w.Messages("C1", "")[0].Reactions {
				got = append(got, name)
			}
			w.equal(strings.Join(want, " "), strings.Join(got, " "))
		}
		react("👍", "+1")
		react("👍", "+1")
		react("👀", "eyes")
		react("")
		react("")
		react("👍🏽", "+1::skin-tone-4")
		react(":party_parrot:", "party_parrot")
		w.b.emojis = memo.Map[[2]string, string]{Most: 10} // as after a restart
		react("")
		react("❤️", "heart")
		for _, bad := range []string{"no emoji", "::", ": a:", ":a"} {
			if e, ok := errors.AsType[*channel.Error](w.b.React(w.ctx, room("C1"), ts, bad)); !ok || !e.Permanent {
				t.Errorf("%q: %v", bad, e)
			}
		}
		if err := w.b.React(w.ctx, room("C1"), "1.5", "👍"); !errors.Is(err, channel.ErrGone) {
			t.Error(err)
		}
	})
	fields := strings.Fields(emojiNames)
	seen := map[string]bool{}
	for i, f := range fields {
		if seen[f] || (i%2 == 0) == (f[0] < 0x80) {
			t.Errorf("%d: %s", i, f)
		}
		seen[f] = true
	}
}

func TestPins(t *testing.T) {
	inWorld(t, "", func(w *world) {
		ts := w.Write("C1", "", "U1", "hello")
		for _, pinned := range []bool{true, true, false, false} {
			if err := w.b.Pin(w.ctx, room("C1"), ts, pinned); err != nil || w.Messages("C1", "")[0].Pinned != pinned {
				t.Errorf("%v: %v", pinned, err)
			}
		}
		if err := w.b.Pin(w.ctx, room("C1"), "1.5", true); !errors.Is(err, channel.ErrGone) {
			t.Error(err)
		}
	})
}

func TestTyping(t *testing.T) {
	inWorld(t, "", func(w *world) {
		a := room("C1")
		_ = w.b.Typing(w.ctx, a)
		w.equal(0, len(w.Calls("assistant.threads.setStatus")))
		a.Thread = "1.5"
		if err := w.b.Typing(w.ctx, a); err != nil {
			t.Error(err)
		}
		w.Fail("assistant.threads.setStatus", slacktest.Fault{Error: "missing_scope"})
		for range 3 {
			if err := w.b.Typing(w.ctx, a); err != nil {
				t.Error(err)
			}
		}
		w.equal(2, len(w.Calls("assistant.threads.setStatus")))
	})
}

func TestRead(t *testing.T) {
	inWorld(t, "", func(w *world) {
		root := w.Write("C1", "", "U1", "root &amp; branch")
		w.send(channel.Part{Address: room("C1"), Text: "mine"})
		thread := room("C1")
		thread.Thread = root
		for i := range 250 {
			w.Write("C1", root, "U2", fmt.Sprint("r", i))
		}
		read := func(a chela.Address, n int) string {
			t.Helper()
			list, err := w.b.Read(w.ctx, a, n)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, m := range list {
				out = append(out, fmt.Sprint(m.Sender.Name, " ", m.Own, " ", m.Text))
			}
			return strings.Join(out, "|")
		}
		w.equal("Ann false root & branch|chela true mine", read(room("C1"), 10))
		w.equal("chela true mine", read(room("C1"), 1))
		w.equal("Bob false r248|Bob false r249", read(thread, 2))
		w.equal("", read(thread, 0))
		if err := w.b.Probe(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestSearch(t *testing.T) {
	inWorld(t, "", func(w *world) {
		find := func(kind chela.PeerKind, query string, n int) string {
			t.Helper()
			list, err := w.b.Search(w.ctx, kind, query, n)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, e := range list {
				out = append(out, fmt.Sprintf("%s:%s %s %s", e.Peer.Kind, e.Peer.ID, e.Name, e.Handle))
			}
			return strings.Join(out, "|")
		}
		w.equal("direct:U1 Ann ann", find(chela.Direct, "@AN", 10))
		w.equal("channel:C1 general ", find(chela.Room, "#gen", 10))
		w.equal("group:G1 secret |group:G2 mpdm-ann--bob ", find(chela.Group, "", 10))
		w.equal("direct:U1 Ann ann|group:G2 mpdm-ann--bob ", find("", "ann", 10))
		w.equal(2, len(strings.Split(find("", "", 2), "|")))
	})
}

// TestSecrets checks that errors do not contain tokens and tickets.
func TestSecrets(t *testing.T) {
	b := offline(t)
	b.http = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "open") {
			return &http.Response{StatusCode: 200, Body: body(`{"ok":true,"url":"wss://wss.slack.com/link?ticket=hidden"}`),
				Request: r}, nil
		}
		if strings.HasSuffix(r.URL.Path, "getUploadURLExternal") {
			return &http.Response{StatusCode: 200,
				Body: body(`{"ok":true,"file_id":"F1","upload_url":"https://files.slack.com/upload/hidden"}`), Request: r}, nil
		}
		return nil, errors.New("broken")
	})}
	_, first := b.open(t.Context())
	_, second := b.upload(t.Context(), "a", []byte("x"))
	_, third := b.Fetch(t.Context(), chela.Media{Source: "https://files.slack.com/hidden"}, 5)
	for _, err := range []error{first, second, third, b.Probe(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "broken") || strings.Contains(err.Error(), "hidden") ||
			strings.Contains(err.Error(), "xoxb") {
			t.Errorf("%v", err)
		}
	}
}

func body(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
