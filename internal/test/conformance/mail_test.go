//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/mail"
	"net/smtp"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	core "github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/email"
)

// mailServer is Dovecot and Postfix on loopback, with the mailboxes of the account
// chela@example.org and of Ann. Postfix marks what Ann sends as authenticated.
type mailServer struct {
	t          *testing.T
	dir        string
	imap, smtp int
}

const (
	mailAccount = "chela@example.org"
	mailAnn     = "ann@friends.example"
)

const dovecotConf = `
base_dir = DIR/run
state_dir = DIR/state
log_path = DIR/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain
mail_location = maildir:DIR/mail/%u
mail_uid = UID
mail_gid = GID
first_valid_uid = 1
first_valid_gid = 1
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=UID gid=GID home=DIR/mail/%u
}
namespace inbox {
  inbox = yes
  mailbox Ausgang {
    auto = create
    special_use = \Sent
  }
}
service imap-login {
  inet_listener imap {
    port = IMAP
  }
  inet_listener imaps {
    port = 0
  }
}
service auth {
  unix_listener DIR/auth {
    mode = 0666
  }
}
`

const postfixMain = `
compatibility_level = 3.6
queue_directory = DIR/queue
data_directory = DIR/data
maillog_file = DIR/postfix.log
maillog_file_prefixes = DIR
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.example.org
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
virtual_mailbox_domains = example.org, friends.example
virtual_mailbox_base = DIR/mail
virtual_mailbox_maps = inline:{ {chela@example.org = chela@example.org/}, {ann@friends.example = ann@friends.example/} }
virtual_uid_maps = static:UID
virtual_gid_maps = static:GID
virtual_minimum_uid = 1
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = DIR/auth
mynetworks =
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_sender_restrictions = check_sender_access inline:{ {ann@friends.example = prepend Authentication-Results: mx.example.org; dmarc=pass header.from=friends.example} }
default_transport = error:no
`

const postfixMaster = `
127.0.0.1:SMTP inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
error unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`

// newMailServer starts the servers until the test ends.
func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	for _, program := range []string{"dovecot", "postfix"} {
		needtest.Program(t, program)
	}
	if os.Geteuid() != 0 {
		t.Skip("skipped: the mail servers start as root only")
	}
	owner, err := user.Lookup("mail")
	if err != nil {
		needtest.Missing(t, "a user mail")
	}
	dir, err := os.MkdirTemp("", "chela-mail-") // other users have to reach it, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &mailServer{t: t, dir: dir, imap: freePort(t), smtp: freePort(t)}
	fill := strings.NewReplacer("DIR", dir, "UID", owner.Uid, "GID", owner.Gid, "IMAP", strconv.Itoa(s.imap),
		"SMTP", strconv.Itoa(s.smtp))
	for _, d := range []string{"", "mail", "state", "queue", "data", "postfix"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.give("mail", "mail")
	s.give("data", "postfix")
	for name, text := range map[string]string{
		"dovecot.conf":      dovecotConf,
		"postfix/main.cf":   postfixMain,
		"postfix/master.cf": postfixMaster,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fill.Replace(text)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.start(exec.Command("dovecot", "-F", "-c", filepath.Join(dir, "dovecot.conf")), nil)
	s.start(exec.Command("postfix", "-c", filepath.Join(dir, "postfix"), "start-fg"),
		exec.Command("postfix", "-c", filepath.Join(dir, "postfix"), "stop"))
	for _, port := range []int{s.imap, s.smtp} {
		waittest.Until(s.t, "the server to listen", func() bool {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
	t.Cleanup(func() {
		for _, log := range []string{"dovecot.log", "postfix.log"} {
			if text, err := os.ReadFile(filepath.Join(dir, log)); err == nil && t.Failed() {
				t.Logf("%s:\n%s", log, text)
			}
		}
	})
	return s
}

// give makes a user the owner of a directory.
func (s *mailServer) give(dir, name string) {
	s.t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		s.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(filepath.Join(s.dir, dir), uid, gid); err != nil {
		s.t.Fatal(err)
	}
}

// start runs a server until the test ends.
func (s *mailServer) start(cmd, end *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if end == nil || end.Run() != nil {
			_ = stop(cmd.Process)
		}
		_ = cmd.Wait()
	})
}

// submit sends a mail of somebody to the account.
func (s *mailServer) submit(from, raw string) {
	s.t.Helper()
	raw = "From: " + from + "\r\nTo: " + mailAccount + "\r\n" + strings.ReplaceAll(raw, "\n", "\r\n")
	if err := smtp.SendMail(fmt.Sprintf("127.0.0.1:%d", s.smtp), nil, from, []string{mailAccount},
		[]byte(raw)); err != nil {
		s.t.Fatal(err)
	}
}

// mails returns the mails that Ann has got.
func (s *mailServer) mails() []*mail.Message {
	s.t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.dir, "mail", mailAnn, "new", "*"))
	slices.Sort(files)
	var out []*mail.Message
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { f.Close() })
		m, err := mail.ReadMessage(f)
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

// section returns the configuration of the account.
func (s *mailServer) section() section {
	return section{
		"address":           mailAccount,
		"name":              "Chela",
		"password":          "secret",
		"trustedAuthservId": "mx.example.org",
		"allowFrom":         []string{mailAnn},
		"imap":              section{"host": "127.0.0.1", "port": s.imap, "tls": false},

		"smtp": section{"host": "127.0.0.1", "port": s.smtp, "tls": false},
	}
}

// TestMailGateway answers a mail with the whole program.
func TestMailGateway(t *testing.T) {
	s := newMailServer(t)
	g := newGateway(t, section{"channels": section{"email": s.section()}})
	waittest.Until(s.t, "the account to begin to read", func() bool {
		_, err := os.Stat(filepath.Join(g.State, "channels", "email", "default", "mail.json"))
		return err == nil
	})
	s.submit("eve@friends.example", "Subject: Re: x\nMessage-ID: <0@friends.example>\n\necho not for eve\n")
	s.submit(mailAnn, "Subject: Re: Lunch\nMessage-ID: <1@friends.example>\n\necho at *noon*\n")
	waittest.Until(s.t, "an answer", func() bool { return len(s.mails()) == 1 })
	if h := s.mails()[0].Header; h.Get("Subject") != "Re: Lunch" || h.Get("In-Reply-To") != "<1@friends.example>" ||
		h.Get("Auto-Submitted") != "auto-replied" {
		t.Errorf("the header is %v", h)
	}
}

// TestMailChannel uses the channel without the rest of the program.
func TestMailChannel(t *testing.T) {
	s := newMailServer(t)
	dir := t.TempDir()
	raw, err := json.Marshal(s.section())
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan struct{}, 100)
	open := func() channel.Channel {
		c, err := email.Factory().New(channel.Env{
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Dir: dir, Getenv: func(string) string { return "" },
			Report: func(err error) {
				if err == nil {
					up <- struct{}{}
				}
			},
			Dial: func(ctx context.Context, addr string, _ ...string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", addr)
			},
		}, "default", raw)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	got := make(chan core.Inbound, 10)
	run := func(c channel.Channel) (end func()) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Run(ctx, func(_ context.Context, in core.Inbound) error { got <- in; return nil })
		}()
		<-up
		return func() { cancel(); <-done }
	}
	next := func() core.Inbound {
		t.Helper()
		return waittest.For(t, "a mail", got)
	}
	s.submit(mailAnn, "Subject: before\n\nbefore\n")
	waittest.Until(s.t, "the mail before", func() bool { return s.stored("") == 1 })
	c := open()
	if err := c.(channel.Prober).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	end := run(c)
	s.submit(mailAnn, "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <1@friends.example>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"+
		"--b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nHallo Wörld\n--b\nContent-Type: text/csv; charset=us-ascii\n"+
		"Content-Disposition: attachment; filename*0*=utf-8''%e2%82%ac%20; filename*1=list.csv\nContent-Transfer-Encoding: base64\n\nMSwy\nLDM=\n--b--\n")
	in := next()
	if in.ID != "1@friends.example" || in.Sender.ID != mailAnn || in.Text != "Grüße\n\nHallo Wörld" ||
		len(in.Media) != 1 || in.Media[0].Name != "€ list.csv" {
		t.Errorf("got %+v", in)
	}
	m, err := c.(channel.Fetcher).Fetch(t.Context(), in.Media[0], 6)
	if err != nil || string(m.Data) != "1,2,3" {
		t.Errorf("got %q, %v", m.Data, err)
	}
	waittest.Until(s.t, "the mail to be marked as read", func() bool { return s.read(1) })

	part := channel.Part{
		Key:     "k",
		Address: in.Address,
		ReplyTo: in.ID,
		Text:    "**Ja**\n.\n",
		Media:   []core.Media{{Name: "a.txt", Type: "text/plain", Data: []byte("text")}},
	}
	r, err := c.Send(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(s.t, "the answer to Ann", func() bool { return len(s.mails()) == 1 })
	if h := s.mails()[0].Header; h.Get("Message-Id") != "<"+r.ID+">" || h.Get("In-Reply-To") != "<1@friends.example>" {
		t.Errorf("the header is %v", h)
	}
	if n := s.stored(".Ausgang"); n != 1 {
		t.Errorf("%d copies", n)
	}
	f := open().(channel.Finder)
	if found, ok, err := f.Find(t.Context(), in.Address, "k"); !ok || err != nil || found.ID != r.ID {
		t.Errorf("find: %+v, %v, %v", found, ok, err)
	}
	if _, ok, err := f.Find(t.Context(), in.Address, "l"); ok || err == nil {
		t.Errorf("find what was not sent: %v, %v", ok, err)
	}
	nobody := channel.Part{Key: "n", Address: in.Address, Text: "x"}
	nobody.Address.Peer.ID = "nobody@friends.example"
	if _, err := c.Send(t.Context(), nobody); err == nil {
		t.Error("a mail to nobody is sent")
	} else {
		t.Logf("to nobody: %v", err)
	}

	// While it does not run, a mail arrives, and the server numbers the mails anew.
	end()
	s.submit(mailAnn, "Subject: Re: x\nMessage-ID: <2@friends.example>\n\nsecond\n")
	waittest.Until(s.t, "the second mail", func() bool { return s.stored("") == 3 })
	list := filepath.Join(s.dir, "mail", mailAccount, "dovecot-uidlist")
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	validity := regexp.MustCompile(`V\d+`).Find(text)
	for _, name := range []string{"dovecot-uidlist", "dovecot.index", "dovecot.index.log", "dovecot.index.cache",
		"dovecot-uidvalidity"} {
		_ = os.Remove(filepath.Join(s.dir, "mail", mailAccount, name))
	}
	stale, _ := filepath.Glob(filepath.Join(s.dir, "mail", mailAccount, "dovecot-uidvalidity.*"))
	for _, name := range stale {
		_ = os.Remove(name)
	}
	end = run(open())
	if in := next(); in.ID != "2@friends.example" || in.Text != "second" {
		t.Errorf("got %+v", in)
	}
	s.submit(mailAnn, "Subject: Re: x\nMessage-ID: <3@friends.example>\n\nthird\n")
	if in := next(); in.ID != "3@friends.example" {
		t.Errorf("got %+v", in)
	}
	end()
	if text, err := os.ReadFile(list); err != nil || string(regexp.MustCompile(`V\d+`).Find(text)) == string(validity) {
		t.Errorf("the server has not numbered the mails anew: %v", err)
	}
	if len(got) > 0 {
		t.Errorf("further mails: %+v", <-got)
	}
}

// stored returns how many mails are in a mailbox of the account.
func (s *mailServer) stored(box string) int {
	n := 0
	for _, d := range []string{"new", "cur"} {
		files, _ := filepath.Glob(filepath.Join(s.dir, "mail", mailAccount, box, d, "*"))
		n += len(files)
	}
	return n
}

// read reports whether n mails are marked as read.
func (s *mailServer) read(n int) bool {
	files, _ := filepath.Glob(filepath.Join(s.dir, "mail", mailAccount, "cur", "*:2,*S*"))
	return len(files) == n
}
