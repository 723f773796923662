package email_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
	"github.com/chela-ai/chela/internal/plugin/channel/email/emailtest"
)

// part returns a message to Ann.
func part(key, text string) channel.Part {
	return channel.Part{Key: key, Address: address(ann), Text: text}
}

// sending runs a test with an account that only sends.
func sending(t *testing.T, set func(*emailtest.Server), keys string, f func(t *testing.T, r *rig, c channel.Channel)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := emailtest.New()
		if set != nil {
			set(s)
		}
		r := newRig(t, s)
		f(t, r, r.open(keys))
	})
}

func TestSend(t *testing.T) {
	t.Parallel()
	t.Run("a new thread", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			text := "**Grüße** & <b>\n\n* one\n\n" + strings.Repeat("a long line ", 200) + "\n.\n"
			got, err := c.Send(t.Context(), part("k", text))
			if err != nil {
				t.Fatal(err)
			}
			sent := r.server.Sent(ann)
			if len(sent) != 1 {
				t.Fatalf("%d mails", len(sent))
			}
			m := sent[0]
			if m.ID != got.ID || m.Header.Get("From") != `"Chela" <chela@example.org>` ||
				m.Header.Get("Auto-Submitted") != "auto-generated" || m.Header.Get("In-Reply-To") != "" {
				t.Errorf("the header is %v", m.Header)
			}
			if m.Header.Get("Subject") != "=?utf-8?q?Gr=C3=BC=C3=9Fe_&_<b>?=" {
				t.Errorf("the subject is %q", m.Header.Get("Subject"))
			}
			if !strings.HasPrefix(m.Text, "Grüße & <b>\n") || !strings.HasSuffix(m.Text, "\n.") ||
				!strings.Contains(m.HTML, "<strong>Grüße</strong> &amp; &lt;b&gt;") {
				t.Errorf("got %q, %q", m.Text[:40], m.HTML[:200])
			}
		})
	})
	t.Run("in the thread", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, c channel.Channel, b *channeltest.Inbox) {
			refs := ""
			for i := range 30 {
				refs += fmt.Sprintf("\n <r%d@x.example>", i)
			}
			r.server.Say(ann, "1@friends.example", "Subject: Lunch\nReferences:"+refs+"\n <bad>\n\nhello")
			r.server.Say(ann, "2@friends.example", "Subject: AW: Dinner\n\nhello")
			synctest.Wait()
			one := part("a", "one")
			one.ReplyTo = "1@friends.example"
			foreign := part("c", "three")
			foreign.ReplyTo = "3@x.example"
			for _, p := range []channel.Part{one, part("b", "two"), foreign} {
				if _, err := c.Send(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			m := r.server.Sent(ann)
			if h := m[0].Header; h.Get("Subject") != "Re: Lunch" || h.Get("In-Reply-To") != "<1@friends.example>" ||
				!strings.HasPrefix(h.Get("References"), "<r0@x.example> <r21@") ||
				!strings.HasSuffix(h.Get("References"), "<r29@x.example> <1@friends.example>") ||
				h.Get("Auto-Submitted") != "auto-replied" {
				t.Errorf("the first one: %v", h)
			}
			if h := m[1].Header; h.Get("Subject") != "AW: Dinner" || h.Get("In-Reply-To") != "<2@friends.example>" {
				t.Errorf("the second one: %v", h)
			}
			if h := m[2].Header; h.Get("In-Reply-To") != "<3@x.example>" {
				t.Errorf("the third one: %v", h)
			}
			// After a restart.
			if _, err := r.open("").Send(t.Context(), part("d", "four")); err != nil {
				t.Fatal(err)
			}
			if h := r.server.Sent(ann)[3].Header; h.Get("In-Reply-To") != "<2@friends.example>" ||
				h.Get("Subject") != "AW: Dinner" {
				t.Errorf("after a restart: %v", h)
			}
		})
	})
	t.Run("attachments", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			p := part("k", "see")
			p.Media = []chela.Media{
				{Name: "../b\r\nill €.pdf", Type: "application/pdf", Data: []byte("pdf\x00\r\n\xff")},
				{Type: "message/rfc822", Data: []byte("mail")},
				{Name: "x.png", Type: "image/png; bad", Data: []byte(strings.Repeat("x", 10_000))},
			}
			if _, err := c.Send(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			p.Key, p.Text = "l", ""
			if _, err := c.Send(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			m := r.server.Sent(ann)
			if m[0].Text != "see" || len(m[0].Files) != 3 || len(m[1].Files) != 3 || m[1].Text != "" {
				t.Fatalf("got %+v", m)
			}
			f := m[0].Files
			if f[0].Name != "b ill €.pdf" || f[0].Type != "application/pdf" || string(f[0].Data) != string(p.Media[0].Data) ||
				f[1].Type != "application/octet-stream" || f[1].Name == "" || len(f[2].Data) != 10_000 {
				t.Errorf("got %q, %q, %q", f[0].Name, f[1].Name, f[2].Name)
			}
		})
	})
	t.Run("a copy is stored", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			name, keys string
			set        func(*emailtest.Server)
			want       int
		}{
			{"as usual", "", nil, 1},
			{"by its name", `"sentMailbox": "` + emailtest.SentBox + `"`, nil, 1},
			{"off", `"sent": "off"`, nil, 0},
			{"by the server", `"sent": "server"`, func(s *emailtest.Server) { s.Saves = true }, 1},
			{"no mailbox", "", func(s *emailtest.Server) { s.NoSent = true }, 0},
			{"an unknown mailbox", `"sentMailbox": "Other"`, nil, 0},
		} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				sending(t, tt.set, tt.keys, func(t *testing.T, r *rig, c channel.Channel) {
					if _, err := c.Send(t.Context(), part("k", "hello")); err != nil {
						t.Fatal(err)
					}
					if n := r.server.Stored(); n != tt.want {
						t.Errorf("%d copies, want %d\n%s", n, tt.want, r.logged())
					}
				})
			})
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		sending(t, func(s *emailtest.Server) { s.Size = 10_000 }, "", func(t *testing.T, r *rig, c channel.Channel) {
			nobody := part("a", "x")
			nobody.Address = address("nobody@friends.example")
			if _, err := c.Send(t.Context(), nobody); !permanent(err) || !errors.Is(err, channel.ErrGone) {
				t.Errorf("nobody: %v", err)
			}
			if _, err := c.Send(t.Context(), part("b", strings.Repeat("x", 10_000))); !permanent(err) ||
				!strings.Contains(err.Error(), "accepts") {
				t.Errorf("too long: %v", err)
			}
			for _, id := range []string{"ann", "ann@", "a b@x.example", "ann@x.example>\r\nRCPT TO:<ben@x.example", ""} {
				p := part("c", "x")
				p.Address.Peer.ID = id
				if _, err := c.Send(t.Context(), p); !permanent(err) {
					t.Errorf("%q: %v", id, err)
				}
			}
			group := part("d", "x")
			group.Address.Peer.Kind = chela.Group
			if _, err := c.Send(t.Context(), group); !permanent(err) {
				t.Errorf("a group: %v", err)
			}
			if _, err := c.Send(t.Context(), part("e", " \n")); !permanent(err) {
				t.Errorf("empty: %v", err)
			}
			r.server.Fail(emailtest.Fault{Code: 554})
			if _, err := c.Send(t.Context(), part("f", "x")); !permanent(err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("554: %v", err)
			}
			if n := len(r.server.Sent(ann)); n != 0 {
				t.Errorf("%d mails", n)
			}
		})
	})
	t.Run("not now", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			r.server.Fail(emailtest.Fault{Code: 451, Rcpt: true}, emailtest.Fault{Code: 452})
			for range 2 {
				_, err := c.Send(t.Context(), part("k", "x"))
				e, ok := errors.AsType[*channel.Error](err)
				if !ok || e.Permanent || e.RetryAfter <= 0 || errors.Is(err, channel.ErrAmbiguous) {
					t.Errorf("got %v", err)
				}
			}
			if _, err := c.Send(t.Context(), part("k", "x")); err != nil || len(r.server.Sent(ann)) != 1 {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, `"smtp": {"host": "smtp.example.org", "tls": false, "password": "secret-wrong"}`,
			func(t *testing.T, r *rig, c channel.Channel) {
				if _, err := c.Send(t.Context(), part("k", "x")); !permanent(err) ||
					!strings.Contains(err.Error(), "channels.email.smtp.username") || strings.Contains(err.Error(), "secret-") {
					t.Errorf("got %v", err)
				}
			})
	})
	t.Run("one key", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			other := part("k", "x")
			other.Address = address(ben)
			for _, p := range []channel.Part{part("k", "x"), part("k", "x"), other, part("", "x"), part("", "x")} {
				if _, err := c.Send(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := r.server.Sent(ann), r.server.Sent(ben); len(a) != 3 || len(b) != 1 ||
				a[0].ID == b[0].ID || a[1].ID == a[2].ID {
				t.Errorf("%d and %d mails", len(a), len(b))
			}
			// The id says after a restart, too, that it is the same mail.
			if _, err := r.open("").Send(t.Context(), part("k", "x")); err != nil {
				t.Fatal(err)
			}
			if a := r.server.Sent(ann); len(a) != 4 || a[3].ID != a[0].ID {
				t.Error("the id is another one after a restart")
			}
		})
	})
	t.Run("another spelling of the address", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			p := part("k", "x")
			p.Address.Peer.ID = "mailto:Ann@Friends.Example"
			if _, err := c.Send(t.Context(), p); err != nil || len(r.server.Sent(ann)) != 1 {
				t.Errorf("got %v", err)
			}
		})
	})
}

// TestAmbiguous checks what is done when it is not known whether a mail was sent.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	find := func(t *testing.T, c channel.Channel) (channel.Receipt, bool, error) {
		return c.(channel.Finder).Find(t.Context(), address(ann), "k")
	}
	t.Run("accepted, and the server stores it", func(t *testing.T) {
		t.Parallel()
		sending(t, func(s *emailtest.Server) { s.Saves = true }, `"sent": "server"`,
			func(t *testing.T, r *rig, c channel.Channel) {
				r.server.Fail(emailtest.Fault{Accept: true, Cut: true})
				if _, err := c.Send(t.Context(), part("k", "x")); !errors.Is(err, channel.ErrAmbiguous) {
					t.Errorf("got %v", err)
				}
				got, ok, err := find(t, c)
				if err != nil || !ok || got.ID != r.server.Sent(ann)[0].ID {
					t.Errorf("got %+v, %v, %v", got, ok, err)
				}
				if got, err := c.Send(t.Context(), part("k", "x")); err != nil || got.ID == "" || len(r.server.Sent(ann)) != 1 {
					t.Errorf("sent again: %v", err)
				}
				if _, ok, err := find(t, r.open(`"sent": "server"`)); !ok || err != nil {
					t.Errorf("after a restart: %v, %v", ok, err)
				}
			})
	})
	t.Run("not accepted, and the server stores what it sends", func(t *testing.T) {
		t.Parallel()
		sending(t, func(s *emailtest.Server) { s.Saves = true }, `"sent": "server"`,
			func(t *testing.T, r *rig, c channel.Channel) {
				r.server.Fail(emailtest.Fault{Cut: true})
				if _, err := c.Send(t.Context(), part("k", "x")); !errors.Is(err, channel.ErrAmbiguous) {
					t.Errorf("got %v", err)
				}
				if _, ok, err := find(t, c); ok || err == nil {
					t.Errorf("at once: %v, %v, want an error", ok, err)
				}
				time.Sleep(2 * time.Minute)
				if _, ok, err := find(t, c); ok || err != nil {
					t.Errorf("later: %v, %v", ok, err)
				}
				if _, err := c.Send(t.Context(), part("k", "x")); err != nil || len(r.server.Sent(ann)) != 1 {
					t.Errorf("sent again: %v", err)
				}
			})
	})
	t.Run("the server stores nothing", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			r.server.Fail(emailtest.Fault{Accept: true, Cut: true})
			if _, err := c.Send(t.Context(), part("k", "x")); !errors.Is(err, channel.ErrAmbiguous) {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Hour)
			if _, ok, err := find(t, c); ok || err == nil {
				t.Errorf("got %v, %v, want an error", ok, err)
			}
			// The process ended after the copy was stored.
			if _, err := c.Send(t.Context(), part("l", "x")); err != nil {
				t.Fatal(err)
			}
			if _, ok, err := r.open("").(channel.Finder).Find(t.Context(), address(ann), "l"); !ok || err != nil {
				t.Errorf("after a restart: %v, %v", ok, err)
			}
		})
	})
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
			r.server.Fail(emailtest.Fault{Stall: true})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := c.Send(ctx, part("k", "x")); !errors.Is(err, channel.ErrAmbiguous) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, emailtest.New())
			dial := r.dial
			r.dial = silent
			c := r.open("")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.Send(ctx, part("k", "x"))
			if err == nil || errors.Is(err, channel.ErrAmbiguous) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Send(short, part("k", "x")); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			// The connection is not even made.
			r.dial = func(ctx context.Context, _ string, _ ...string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			c = r.open("")
			short, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Send(short, part("k", "x")); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			r.dial = dial
		})
	})
}

func TestProbe(t *testing.T) {
	t.Parallel()
	sending(t, nil, "", func(t *testing.T, r *rig, c channel.Channel) {
		if err := c.(channel.Prober).Probe(t.Context()); err != nil {
			t.Error(err)
		}
		r.server.Refuse(errors.New("x"))
		if err := c.(channel.Prober).Probe(t.Context()); err == nil {
			t.Error("no error")
		}
		if n := len(r.server.Sent(ann)); n != 0 {
			t.Errorf("%d mails", n)
		}
	})
	f := email.Factory()
	if _, ok := f.Can.(channel.Fetcher); !ok || f.Aliases[0] != "mail" {
		t.Error("the factory says too little")
	}
}
