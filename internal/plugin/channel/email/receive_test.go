package email_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
	"github.com/chela-ai/chela/internal/plugin/channel/email/emailtest"
)

// one returns what arrives of one mail.
func one(t *testing.T, keys string, say func(r *rig)) (got []chela.Inbound, r *rig) {
	bubble(t, nil, keys, func(t *testing.T, in *rig, _ channel.Channel, b *channeltest.Inbox) {
		r = in
		say(r)
		synctest.Wait()
		got = b.Take()
	})
	return got, r
}

// TestContent checks what of a mail is the message.
func TestContent(t *testing.T) {
	t.Parallel()
	const reply = "Subject: Re: Lunch\nIn-Reply-To: <old@x.example>\nReferences: <old@x.example>\n"
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, tt := range []struct {
		name, body string
		want       func(in chela.Inbound) bool
	}{
		{"plain", "Subject: Lunch\n\nToday?\n", func(in chela.Inbound) bool {
			return in.ID == "1@friends.example" && in.Address == address(ann) &&
				in.Sender == chela.Sender{ID: ann, Name: "Ann Ä"} &&
				in.Text == "Lunch\n\nToday?" && in.ReplyTo == "" && !in.Time.IsZero() && in.Quote.Text == ""
		}},
		{"a command has no subject", "Subject: x\n\n/new\n\n-- \nAnn\n",
			func(in chela.Inbound) bool { return in.Text == "/new" }},
		{"only a subject", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\n",
			func(in chela.Inbound) bool { return in.Text == "Grüße" }},
		{"an answer without its quotation",
			reply + "\nYes!\n\nOn Mon, 2 Mar 2026 at 10:00, Chela <chela@example.org>\nwrote:\n> Today?\n> \n> Or tomorrow?\n",
			func(in chela.Inbound) bool {
				return in.Text == "Yes!" && in.Quote.Text == "Today?\n\nOr tomorrow?" && in.ReplyTo == "old@x.example"
			}},
		{"quotations between the answers", reply + "\n> One?\nFirst.\n> Two?\nSecond.\n", func(in chela.Inbound) bool {
			return in.Text == "First.\n\nSecond." && in.Quote.Text == "One?\nTwo?"
		}},
		{"a quotation below the header of a mail", reply + "\nGut.\n\n________________________________\nVon: Chela <chela@example.org>\nGesendet: Montag\nAn: Ann\nBetreff: Lunch\n\nHeute?\n", func(in chela.Inbound) bool {
			return in.Text == "Gut." && strings.HasSuffix(in.Quote.Text, "Heute?")
		}},
		{"a mark of an original message", reply + "\nOk\n\n-----Original Message-----\nFrom: Chela\nOld\n",
			func(in chela.Inbound) bool { return in.Text == "Ok" && strings.Contains(in.Quote.Text, "Old") }},
		{"a quotation that is no reply stays", "Subject: x\n\n> a thought\n",
			func(in chela.Inbound) bool { return strings.HasSuffix(in.Text, "> a thought") && in.Quote.Text == "" }},
		{"nothing but a quotation stays", reply + "\n> all\n", func(in chela.Inbound) bool { return in.Text == "> all" }},
		{"forwarded", "Subject: Fwd: Bill\n\n---------- Forwarded message ---------\nFrom: Shop <shop@x.example>\nDate: today\nSubject: Bill\nTo: Ann\n\nPay 5.\n", func(in chela.Inbound) bool {
			return in.Forwarded == "Shop <shop@x.example>" && strings.HasSuffix(in.Text, "Pay 5.")
		}},
		{"forwarded with a comment",
			"Subject: Fwd: Bill\n\nIs it right?\n\n---------- Forwarded message ---------\nFrom: Shop\n\nPay 5.\n",
			func(in chela.Inbound) bool {
				return in.Forwarded == "" && strings.Contains(in.Text, "Is it right?") && strings.HasSuffix(in.Text, "Pay 5.")
			}},
		{"latin-1", "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe, lang=\ner Satz", func(in chela.Inbound) bool { return in.Text == "Grüße, langer Satz" }},
		{"Shift JIS in base64", "Content-Type: text/plain; charset=shift_jis\nContent-Transfer-Encoding: base64\n\n" +
			b64("\x93\xfa\x96{"), func(in chela.Inbound) bool { return in.Text == "日本" }},
		{"an unknown character set", "Content-Type: text/plain; charset=x-none\n\nGr\xfc\xdfe",
			func(in chela.Inbound) bool { return in.Text == "Grüße" }},
		{"flowed", "Content-Type: text/plain; format=flowed\n\nA line \nthat goes on.\nAnother.\n",
			func(in chela.Inbound) bool { return in.Text == "A line that goes on.\nAnother." }},
		{"control characters", "\na\x00b\x1bc\n", func(in chela.Inbound) bool { return in.Text == "abc" }},
		{"HTML only", "Content-Type: text/html; charset=utf-8\n\n<html><head><title>no</title><style>p{}</style></head><body><p>Hello <b>you</b>,<br>see <a href=\"https://x.example/a\">this</a>.</p><ul><li>one<li>two</ul><div style=\"display: none\">hidden <div>too</div></div><script>no()</script></body>", func(in chela.Inbound) bool {
			return in.Text == "Hello you,\nsee this (https://x.example/a).\n\n- one\n- two"
		}},
		{"a quotation in HTML", reply + "Content-Type: text/html\n\n<div>Yes</div><div class=\"gmail_quote\"><div>On Mon, 2 Mar 2026 Chela wrote:<br></div><blockquote><p>Today?</p></blockquote></div>", func(in chela.Inbound) bool {
			return in.Text == "Yes" && in.Quote.Text == "Today?"
		}},
		{"two forms", "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\nplain\n--b\nContent-Type: text/html\n\n<p>html</p>\n--b--\n", func(in chela.Inbound) bool { return in.Text == "plain" && len(in.Media) == 0 }},
		{"an empty plain form", "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n \n--b\nContent-Type: text/html\n\n<p>html</p>\n--b--\n", func(in chela.Inbound) bool { return in.Text == "html" }},
		{"attachments", "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/alternative; boundary=c\n\n--c\nContent-Type: text/plain\n\nplain\n--c\nContent-Type: multipart/related; boundary=d\n\n--d\nContent-Type: text/html\n\n<p>html</p>\n--d\nContent-Type: image/png; name=logo.png\nContent-Transfer-Encoding: base64\nContent-ID: <1>\n\nAAAA\n--d--\n--c--\n--b\nContent-Type: application/pdf\nContent-Disposition: attachment; filename*=utf-8''%e2%82%ac%2F..%2Fbill.pdf\nContent-Transfer-Encoding: base64\n\n" + b64(strings.Repeat("x", 570)) + "\n--b\nContent-Type: text/plain; name=notes.txt\n\nnotes\n--b--\n", func(in chela.Inbound) bool {
			if in.Text != "plain" || len(in.Media) != 3 {
				return false
			}
			a, b, c := in.Media[0], in.Media[1], in.Media[2]
			return a.Name == "logo.png" && a.Type == "image/png" && b.Name == "bill.pdf" && b.Type == "application/pdf" &&
				b.Bytes > 500 && b.Bytes < 600 &&
				c.Name == "notes.txt" && c.Source != "" && len(c.Data) == 0
		}},
		{"a mail as an attachment", "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nsee\n--b\nContent-Type: message/rfc822\n\nSubject: old/mail\nFrom: x@x.example\n\ntext\n--b--\n", func(in chela.Inbound) bool {
			return in.Text == "see" && len(in.Media) == 1 && in.Media[0].Name == "old-mail.eml" &&
				in.Media[0].Type == "message/rfc822"
		}},
		{"encrypted", "Content-Type: multipart/encrypted; boundary=b; protocol=\"application/pgp-encrypted\"\n\n--b\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--b\nContent-Type: application/octet-stream\n\nxxx\n--b--\n", func(in chela.Inbound) bool {
			return strings.HasPrefix(in.Text, "[an encrypted mail")
		}},
		{"other recipients", "Cc: Ben <ben@friends.example>, chela+tag@example.org\n\nhello", func(in chela.Inbound) bool {
			return in.Text == "hello\n\n[also sent to ben@friends.example; the answer goes to the sender only]"
		}},
		{"a long text", "\n" + strings.Repeat("0123456789abcde\n", 20_000), func(in chela.Inbound) bool {
			return len(in.Text) > 99_000 && len(in.Text) < 101_000 && strings.HasSuffix(in.Text, "left out]")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, r := one(t, "", func(r *rig) {
				r.server.Say("=?utf-8?q?Ann_=C3=84?= <Ann@Friends.example>", "1@friends.example", tt.body)
			})
			if len(got) != 1 || !tt.want(got[0]) {
				t.Errorf("got %+v\n%s", got, r.logged())
			}
		})
	}
}

// mailOf returns a mail with some fields in front of the usual ones.
func mailOf(fields string) string {
	return fields + "Message-ID: <1@x.example>\nDate: Mon, 2 Mar 2026 10:00:00 +0000\nSubject: Re: x\n\nhello\n"
}

// TestIdentity checks whose mails are passed on.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const (
		from = "From: Ann <ann@friends.example>\n"
		to   = "To: chela@example.org\n"
		good = "Authentication-Results: mx.example.org; dmarc=pass header.from=friends.example\n"
	)
	results := func(s string) string { return "Authentication-Results: mx.example.org; " + s + "\n" + from + to }
	for _, tt := range []struct {
		name, fields, keys string
		want               bool
	}{
		{"dmarc", good + from + to, "", true},
		{"no results", from + to, "", false},
		{"no results, but not required", from + to, `"requireAuthentication": false`, true},
		{"dmarc of another domain", results("dmarc=pass header.from=evil.example"), "", false},
		{"dmarc without a domain", results("dmarc=pass"), "", false},
		{"dmarc failed, dkim passed", results("dkim=pass header.d=friends.example; dmarc=fail header.from=friends.example"),
			"", false},
		{"dkim of the domain", results("dkim=pass header.d=friends.example"), "", true},
		{"dkim of a part of the organization", results("dmarc=none header.from=friends.example; dkim=fail header.d=x.example; dkim=pass (2048-bit key; dmarc=fail) header.d=mail.Friends.example header.b=\"A=\""), "", true},
		{"dkim of another domain", results("dkim=pass header.d=evil.example"), "", false},
		{"dkim of a public suffix", results("dkim=pass header.d=example"), "", false},
		{"dkim by its identity", results("dkim=pass header.i=@friends.example"), "", true},
		{"spf", results("spf=pass smtp.mailfrom=bounce@friends.example"), "", true},
		{"spf of another domain", results("spf=pass smtp.mailfrom=friends.example.evil.example"), "", false},
		{"spf of the greeting", results("spf=pass smtp.helo=friends.example"), "", false},
		{"spf softly failed", results("spf=softfail smtp.mailfrom=friends.example"), "", false},
		{"a name that contains the results",
			results("spf=fail smtp.mailfrom=\"; dmarc=pass header.from=friends.example \"@evil.example"), "", false},
		{"results in a comment",
			results("spf=fail (dmarc=pass header.from=friends.example; dmarc=pass header.from=friends.example)"), "", false},
		{"results twice", results("dmarc=none; dmarc=pass header.from=friends.example"), "", false},
		{"a quotation without an end", results("dmarc=pass header.from=friends.example reason=\"x"), "", false},
		{"a comment without an end", results("dmarc=pass header.from=friends.example (x"), "", false},
		{"results of the sender below those of the server",
			"Authentication-Results: mx.example.org; dmarc=fail header.from=friends.example\n" + good + from + to, "", false},
		{"results of the sender below those of the server without dmarc",
			"Authentication-Results: mx.example.org; spf=none\n" + good + from + to, "", false},
		{"results of another server above", "Authentication-Results: mx.evil.example; dmarc=fail\n" +
			good + from + to, "", true},
		{"results of another server only",
			"Authentication-Results: mx.evil.example; dmarc=pass header.from=friends.example\n" + from + to, "", false},
		{"results of a server whose name ends alike",
			"Authentication-Results: mx.badexample.org; dmarc=pass header.from=friends.example\n" + from + to, "", false},
		{"the configured server", "Authentication-Results: auth.x.example 1; dmarc=pass header.from=friends.example\n" +
			from + to, `"trustedAuthservId": "x.example"`, true},
		{"another than the configured server", good + from + to, `"trustedAuthservId": "x.example"`, false},
		{"folded", "Authentication-Results: mx.example.org;\n\tdmarc=pass\n header.from=friends.example\n" + from + to, "",
			true},
		{"two authors", good + "From: ann@friends.example, ben@friends.example\n" + to, "", false},
		{"two From headers", good + from + "From: x@evil.example\n" + to, "", false},
		{"no author", good + to, "", false},
		{"an address in the name", good + "From: \"ann@friends.example\" <x@evil.example>\n" + to, "", false},
		{"a letter that only looks like another", good + "From: ann\u212A@friends.example\n" + to, "", false},
		{"a quoted address", good + "From: \"a b\"@friends.example\n" + to, "", false},
		{"for somebody else", good + from + "To: ben@friends.example\n", "", false},
		{"for somebody else, but not required", good + from + "To: ben@friends.example\n",
			`"requireAuthentication": false`, true},
		{"for an alias", good + from + "To: me@other.example\n", `"aliases": ["Me@other.example"]`, true},
		{"two To headers", good + from + to + "To: ben@friends.example\n", "", false},
		{"in Cc", good + from + "To: ben@friends.example\nCc: CHELA+x@example.org\n", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, r := one(t, tt.keys, func(r *rig) { r.server.Deliver(mailOf(tt.fields), time.Time{}) })
			if len(got) != 0 != tt.want {
				t.Errorf("got %+v\n%s", got, r.logged())
			}
			if len(got) == 1 && got[0].Sender.ID != ann {
				t.Errorf("the sender is %s", got[0].Sender.ID)
			}
			if !tt.want && !strings.Contains(r.logged(), "mail not passed on") {
				t.Errorf("the log has\n%s", r.logged())
			}
		})
	}
}

// TestAutomatic checks that programs get no answer.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, fields string
		want         bool
	}{
		{ann, "", true},
		{ann, "Auto-Submitted: no\n", true},
		{ann, "Auto-Submitted: auto-replied\n", false},
		{ann, "Auto-Submitted: auto-generated; x=y\n", false},
		{ann, "Precedence: Bulk\n", false},
		{ann, "Precedence: first-class\n", true},
		{ann, "List-Id: <x.example>\n", false},
		{ann, "List-Unsubscribe: <mailto:x@x.example>\n", false},
		{ann, "X-Failed-Recipients: x@x.example\n", false},
		{ann, "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n", false},
		{ann, "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nx\n--b\nContent-Type: message/delivery-status\n\nx: y\n--b--\n", false},
		{"MAILER-DAEMON@friends.example", "", false},
		{"no-reply@friends.example", "", false},
		{"chela@example.org", "", false},
		{"Chela@Example.org", "", false},
	} {
		t.Run(tt.from+" "+strings.TrimSpace(tt.fields), func(t *testing.T) {
			t.Parallel()
			got, r := one(t, "", func(r *rig) { r.server.Say(tt.from, "1@friends.example", tt.fields+"\nhello") })
			if len(got) != 0 != tt.want {
				t.Errorf("got %+v\n%s", got, r.logged())
			}
			if r.server.IsSeen("1@friends.example") != tt.want {
				t.Error("a mail that was not passed on is marked as read, or the other way around")
			}
		})
	}
	t.Run("an empty Return-Path", func(t *testing.T) {
		t.Parallel()
		got, _ := one(t, `"requireAuthentication": false`, func(r *rig) {
			r.server.Deliver("Return-Path: <>\nFrom: "+ann+"\nMessage-ID: <1@x.example>\n\nhello", time.Time{})
		})
		if len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCursor(t *testing.T) {
	t.Parallel()
	say := func(r *rig, n int) { r.server.Say(ann, fmt.Sprint(n, "@friends.example"), "\n"+fmt.Sprint(n)) }
	t.Run("only new mail at first, and every mail after a restart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, b := newRig(t, emailtest.New()), channeltest.NewInbox()
			say(r, 1)
			stop := channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			say(r, 2)
			synctest.Wait()
			stop()
			say(r, 3)
			say(r, 4)
			stop = channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			stop()
			if got := textsOf(b); got != "2|3|4" {
				t.Errorf("got %s", got)
			}
			if r.server.IsSeen("1@friends.example") || !r.server.IsSeen("2@friends.example") {
				t.Error("the wrong mails are marked as read")
			}
		})
	})
	t.Run("an empty mailbox at first", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			say(r, 1)
			synctest.Wait()
			if got := textsOf(b); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("the sink is full, then refuses", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			b.Fail(chela.ErrFull, chela.ErrFull, nil, chela.Errorf(chela.CodeForbidden, "a stranger"))
			for n := range 3 {
				say(r, n+1)
			}
			synctest.Wait()
			if b.Calls() != 1 || r.server.IsSeen("1@friends.example") {
				t.Errorf("%d calls", b.Calls())
			}
			time.Sleep(time.Minute)
			if got := textsOf(b); got != "1|3" || r.server.IsSeen("2@friends.example") || !r.server.IsSeen("3@friends.example") {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("it ends before the sink has accepted", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, b := newRig(t, emailtest.New()), channeltest.NewInbox(chela.ErrFull)
			stop := channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			say(r, 1)
			synctest.Wait()
			stop()
			stop = channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			stop()
			if got := textsOf(b); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("the connection is cut", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			for n := range 5 {
				r.server.Cut()
				say(r, n+1)
				time.Sleep(time.Minute)
			}
			if got := textsOf(b); got != "1|2|3|4|5" {
				t.Errorf("got %s", got)
			}
			if ups, lost := r.state(); ups < 5 || lost != nil {
				t.Errorf("%d times connected, %v", ups, lost)
			}
		})
	})
	t.Run("the same mail twice has one id", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			say(r, 1)
			say(r, 1)
			synctest.Wait()
			if got := b.Take(); len(got) != 2 || got[0].ID != got[1].ID {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("a mail without an id", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, `"requireAuthentication": false`, func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			for range 2 {
				r.server.Deliver("From: "+ann+"\n\nhello", time.Time{})
			}
			synctest.Wait()
			if got := b.Take(); len(got) != 2 || got[0].ID != "1:1" || got[1].ID != "1:2" {
				t.Errorf("got %+v", got)
			}
		})
	})
	t.Run("nothing is pushed", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			r.server.Deaf(true)
			r.server.Cut()
			time.Sleep(time.Minute)
			say(r, 1)
			time.Sleep(6 * time.Minute)
			if got := textsOf(b); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("IDLE is renewed", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			time.Sleep(24 * time.Hour)
			if ups, _ := r.state(); ups != 1 || r.server.Count("IDLE") < 24*60/29 || r.server.Count("IDLE") > 24*60 {
				t.Errorf("%d connections, %d IDLE", ups, r.server.Count("IDLE"))
			}
		})
	})
	t.Run("no IDLE", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(s *emailtest.Server) { s.NoIdle = true }, "",
			func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
				say(r, 1)
				time.Sleep(61 * time.Second)
				if got := textsOf(b); got != "1" || r.server.Count("IDLE") != 0 {
					t.Errorf("got %s", got)
				}
			})
	})
	t.Run("a dead connection", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			r.server.Mute(true)
			say(r, 1)
			time.Sleep(10 * time.Minute)
			if _, lost := r.state(); lost == nil || !strings.Contains(lost.Error(), "did not answer") {
				t.Errorf("lost: %v", lost)
			}
			r.server.Mute(false)
			time.Sleep(time.Minute)
			if got := textsOf(b); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	})
	t.Run("a mail that breaks the connection", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			r.server.Break(1, 3)
			r.server.Break(2, 100)
			say(r, 1)
			say(r, 2)
			say(r, 3)
			time.Sleep(10 * time.Minute)
			if got := textsOf(b); got != "[a mail whose content could not be read]|3" ||
				!strings.Contains(r.logged(), "mail skipped") {
				t.Errorf("got %s\n%s", got, r.logged())
			}
		})
	})
	t.Run("a damaged file", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, b := newRig(t, emailtest.New()), channeltest.NewInbox()
			file := filepath.Join(r.dir, "account", "mail.json")
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("{"), 0o600)); err != nil {
				t.Fatal(err)
			}
			say(r, 1)
			stop := channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			say(r, 2)
			synctest.Wait()
			stop()
			if got := textsOf(b); got != "2" {
				t.Errorf("got %s", got)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("the file: %v, %v", info, err)
			}
		})
	})
	t.Run("another mailbox", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, b := newRig(t, emailtest.New()), channeltest.NewInbox()
			stop := channeltest.Run(r.t.Context(), r.open(""), b.Sink)
			synctest.Wait()
			stop()
			say(r, 1)
			stop = channeltest.Run(r.t.Context(), r.open(`"mailbox": "inbox"`), b.Sink)
			synctest.Wait()
			stop()
			if got := textsOf(b); got != "" {
				t.Errorf("got %s", got)
			}
		})
	})
}

// TestRenumbered checks that nothing is lost, and nothing is passed on twice, when the
// server gives new UIDs to all mails.
func TestRenumbered(t *testing.T) {
	t.Parallel()
	say := func(r *rig, n int) { r.server.Say(ann, fmt.Sprint(n, "@friends.example"), "\n"+fmt.Sprint(n)) }
	synctest.Test(t, func(t *testing.T) {
		s := emailtest.New()
		r, b := newRig(t, s), channeltest.NewInbox()
		for n := range 5 { // before the account was set up
			say(r, n)
			time.Sleep(time.Hour)
		}
		stop := channeltest.Run(r.t.Context(), r.open(""), b.Sink)
		synctest.Wait()
		for n := range 5 {
			say(r, 10+n)
		}
		synctest.Wait()
		if got := textsOf(b); got != "10|11|12|13|14" {
			t.Errorf("got %s", got)
		}
		s.Deliver(mailOf("Authentication-Results: mx.example.org; dmarc=pass header.from=x.example\nFrom: x@x.example\nTo: chela@example.org\nAuto-Submitted: auto-replied\n"), time.Time{})
		synctest.Wait()
		stop()
		time.Sleep(time.Second)
		say(r, 20) // while the gateway is down
		s.Renumber(nil, func() {
			say(r, 21)
			// A copy of an old mail, which the server dates as of today.
			s.Deliver("Authentication-Results: mx.example.org; dmarc=pass header.from=friends.example\nFrom: "+ann+
				"\nTo: chela@example.org\nMessage-ID: <old@x.example>\nDate: Mon, 6 Jan 1997 10:00:00 +0000\n\nold", time.Time{})
		})
		stop = channeltest.Run(r.t.Context(), r.open(""), b.Sink)
		synctest.Wait()
		say(r, 22)
		synctest.Wait()
		if got := textsOf(b); got != "20|21|22" {
			t.Errorf("got %s\n%s", got, r.logged())
		}
		// Again, while it is connected; and the sink does not accept.
		b.Fail(chela.ErrFull)
		s.Renumber(nil, func() { say(r, 30); say(r, 31) })
		time.Sleep(time.Hour)
		if got := textsOf(b); got != "30|31" {
			t.Errorf("got %s\n%s", got, r.logged())
		}
		// Mails are lost, and others come with the same UIDs.
		s.Renumber(func(string, time.Time) bool { return false }, func() { say(r, 40) })
		time.Sleep(time.Hour)
		if got := textsOf(b); got != "40" {
			t.Errorf("got %s\n%s", got, r.logged())
		}
		stop()
	})
}

func TestLogin(t *testing.T) {
	t.Parallel()
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, emailtest.New())
			err := r.open(`"imap": {"host": "imap.example.org", "tls": false, "password": "secret-wrong"}`).Run(t.Context(),
				channeltest.NewInbox().Sink)
			if !permanent(err) || !strings.Contains(err.Error(), "channels.email.imap.username") ||
				strings.Contains(err.Error(), "secret-") {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("refused for now", func(t *testing.T) {
		t.Parallel()
		bubble(t, func(s *emailtest.Server) {
			s.Refuse(&imap.Error{Type: imap.StatusResponseTypeNo, Code: imap.ResponseCodeUnavailable,
				Text: "for secret-password\x07"})
		}, "", func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			if _, lost := r.state(); lost == nil || permanent(lost) || strings.Contains(lost.Error(), "secret-") {
				t.Errorf("lost: %v", lost)
			}
			time.Sleep(time.Hour)
			if n := r.server.Count("LOGIN"); n > 13 {
				t.Errorf("%d logins in an hour", n)
			}
			r.server.Refuse(nil)
			time.Sleep(6 * time.Minute)
			if ups, lost := r.state(); ups != 1 || lost != nil {
				t.Errorf("%d, %v", ups, lost)
			}
		})
	})
	t.Run("no such mailbox", func(t *testing.T) {
		t.Parallel()
		bubble(t, nil, `"mailbox": "Other"`, func(t *testing.T, r *rig, _ channel.Channel, b *channeltest.Inbox) {
			if _, lost := r.state(); lost == nil || !strings.Contains(lost.Error(), "Other") {
				t.Errorf("lost: %v", lost)
			}
		})
	})
}

func TestFetch(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789\n", 1000)
	body := "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nsee\n--b\nContent-Type: text/csv; name=a.csv\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString([]byte(content)) +
		"\n--b\nContent-Type: text/x; name=b\nContent-Transfer-Encoding: quoted-printable\n\na=3Db\n--b--\n"
	bubble(t, nil, "", func(t *testing.T, r *rig, c channel.Channel, b *channeltest.Inbox) {
		r.server.Say(ann, "1@friends.example", body)
		synctest.Wait()
		got := b.Take()
		if len(got) != 1 || len(got[0].Media) != 2 {
			t.Fatalf("got %+v", got)
		}
		f := c.(channel.Fetcher)
		m, err := f.Fetch(t.Context(), got[0].Media[0], 20_000)
		if err != nil || string(m.Data) != content || m.Source != "" || m.Name != "a.csv" || m.Type != "text/csv" {
			t.Errorf("got %d bytes, %v", len(m.Data), err)
		}
		if m, err := f.Fetch(t.Context(), got[0].Media[1], 3); err != nil || string(m.Data) != "a=b" {
			t.Errorf("got %q, %v", m.Data, err)
		}
		if m, err := f.Fetch(t.Context(), got[0].Media[0], 10_999); !permanent(err) || len(m.Data) > 0 {
			t.Errorf("too long: %d bytes, %v", len(m.Data), err)
		}
		for _, source := range []string{"", "1/1/2", "1/1/0/base64", "1/1/2.-1/", "x/1/2/", "1/1/2/../",
			"1/99/2/base64", "2/1/2/base64"} {
			if _, err := f.Fetch(t.Context(), chela.Media{Source: source}, 100); !permanent(err) {
				t.Errorf("%q: %v", source, err)
			}
		}
		r.server.Renumber(nil, nil)
		if _, err := f.Fetch(t.Context(), got[0].Media[0], 20_000); !errors.Is(err, channel.ErrGone) {
			t.Errorf("the mailbox has changed: %v", err)
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	env := channel.Env{Getenv: func(string) string { return "" }}
	const servers = `"imap": {"host": "i.example"}, "smtp": {"host": "s.example"}`
	for section, want := range map[string]string{
		`{}`:                                    "chela config set channels.email.address",
		`{"address": "x"}`:                      "ann@example.org",
		`{"address": "a@b.c\nx"}`:               "domain",
		`{"address": "a b@b.c"}`:                "not supported",
		`{"address": "a@b.c"}`:                  "chela config set channels.email.imap.host",
		`{"address": "a@b.c", ` + servers + `}`: "chela config set channels.email.password",
		`{"address": "a@b.c", "password": "x", "imap": {"host": "i.example"}}`:                "channels.email.smtp.host",
		`{"address": "a@b.c", "password": "x", "imap": {"host": "i.example", "port": 70000}}`: "65535",
		`{"address": "a@b.c", "password": "x", "imap": {"host": "https://i"}}`:                "imap.example.org",
		`{"address": "a@b.c", "password": "x", "imap": {"host": "i", "tls": "no"}}`:           "starttls",
		`{"address": "a@b.c", "password": "x\ny", ` + servers +
			`}`: "line break",
		`{"address": "a@b.c", "password": "env:NONE", ` + servers + `}`: "NONE",
		`{"address": "a@b.c", "password": "x", "sent": "x", ` + servers +
			`}`: "append",
		`{"address": "a@b.c", "password": "x", "aliases": ["x"], ` + servers +
			`}`: "aliases",
		`{"address": "a@b.c", "password": "x", "imap": {"host": "i"}, "smtp": {"host": "s", "password": "env:NONE"}}`: "smtp.password",
	} {
		if _, err := email.Factory().New(env, "default", []byte(section)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", section, err, want)
		}
	}
	env.Getenv = func(name string) string {
		return map[string]string{"EMAIL_ADDRESS": "a@b.c", "EMAIL_PASSWORD": "x"}[name]
	}
	if _, err := email.Factory().New(env, "default", []byte("{"+servers+"}")); err != nil {
		t.Error(err)
	}
	if _, err := email.Factory().New(env, "other", []byte("{"+servers+"}")); err == nil {
		t.Error("another account uses the variables of the default one")
	}
	f := email.Factory()
	if a, b := f.Identity([]byte("{"+base+"}")),
		f.Identity([]byte(`{"address": "Chela@example.org", "imap": {"host": "IMAP.example.org"}}`)); a != b || a == "" {
		t.Errorf("identities %q, %q", a, b)
	}
}
