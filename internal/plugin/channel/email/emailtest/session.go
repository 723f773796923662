package emailtest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// session is a connection of IMAP.
type session struct {
	*imapmemserver.UserSession
	s        *Server
	conn     *imapserver.Conn
	readOnly bool
}

var errBroken = errors.New("the connection breaks")

// note counts a command. It blocks while the server is mute.
func (x *session) note(command string) {
	_ = x.s.until(context.Background(), func() bool { return !x.s.mute })
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.commands[command]++
	x.s.changeLocked()
}

// Login implements imapserver.Session.
func (x *session) Login(user, password string) error {
	x.note("LOGIN")
	x.s.mu.Lock()
	err := x.s.refusal
	x.s.mu.Unlock()
	if err != nil {
		return err
	}
	if user != Address || password != Password {
		return imapserver.ErrAuthFailed
	}
	return nil
}

// Select implements imapserver.Session.
func (x *session) Select(name string, o *imap.SelectOptions) (*imap.SelectData, error) {
	x.note("SELECT")
	x.readOnly = o.ReadOnly
	return x.UserSession.Select(name, o)
}

// Search implements imapserver.Session.
func (x *session) Search(kind imapserver.NumKind, c *imap.SearchCriteria,
	o *imap.SearchOptions) (*imap.SearchData, error) {
	d, err := x.UserSession.Search(kind, c, o)
	x.note("SEARCH")
	return d, err
}

// Fetch implements imapserver.Session.
func (x *session) Fetch(w *imapserver.FetchWriter, set imap.NumSet, o *imap.FetchOptions) error {
	x.note("FETCH")
	for _, b := range o.BodySection {
		if !b.Peek {
			x.s.problem("a mail is read without PEEK")
		}
	}
	uids, _ := set.(imap.UIDSet)
	x.s.mu.Lock()
	broken := false
	for uid, left := range x.s.breaks {
		if uids.Contains(imap.UID(uid)) && left > 0 {
			x.s.breaks[uid]--
			broken = true
		}
	}
	x.s.mu.Unlock()
	if broken {
		_ = x.conn.NetConn().Close()
		return errBroken
	}
	return x.UserSession.Fetch(w, set, o)
}

// Store implements imapserver.Session.
func (x *session) Store(w *imapserver.FetchWriter, set imap.NumSet, f *imap.StoreFlags, o *imap.StoreOptions) error {
	x.note("STORE")
	if x.readOnly {
		x.s.problem("STORE in a mailbox that was opened for reading")
		return &imap.Error{Type: imap.StatusResponseTypeNo, Text: "Read-only mailbox"}
	}
	err := x.UserSession.Store(w, set, f, o)
	uids, _ := set.(imap.UIDSet)
	for _, m := range x.s.mailbox("INBOX") {
		if slices.Contains(f.Flags, imap.FlagSeen) && uids.Contains(imap.UID(m.uid)) {
			x.s.mu.Lock()
			x.s.seen[m.id] = true
			x.s.changeLocked()
			x.s.mu.Unlock()
		}
	}
	return err
}

// Append implements imapserver.Session.
func (x *session) Append(mailbox string, r imap.LiteralReader, o *imap.AppendOptions) (*imap.AppendData, error) {
	x.note("APPEND")
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return x.s.add(mailbox, raw, o)
}

// Idle implements imapserver.Session.
func (x *session) Idle(w *imapserver.UpdateWriter, stop <-chan struct{}) error {
	x.note("IDLE")
	x.s.mu.Lock()
	deaf := x.s.deaf
	x.s.mu.Unlock()
	if deaf {
		<-stop
		return nil
	}
	// What has arrived between the last command and IDLE.
	if err := x.UserSession.Poll(w, true); err != nil {
		return err
	}
	return x.UserSession.Idle(w, stop)
}

// Poll implements imapserver.Session.
func (x *session) Poll(w *imapserver.UpdateWriter, expunge bool) error {
	x.s.mu.Lock()
	deaf := x.s.deaf
	x.s.mu.Unlock()
	if deaf {
		return nil
	}
	return x.UserSession.Poll(w, expunge)
}

// List implements imapserver.Session.
func (x *session) List(w *imapserver.ListWriter, _ string, _ []string, o *imap.ListOptions) error {
	x.note("LIST")
	list := []*imap.ListData{{Mailbox: "INBOX", Delim: '/'}, {Mailbox: "INBOX/Sent", Delim: '/'}}
	if !x.s.NoSent {
		sent := &imap.ListData{Mailbox: SentBox, Delim: '/'}
		if o.ReturnSpecialUse {
			sent.Attrs = []imap.MailboxAttr{imap.MailboxAttrSent}
		}
		list = append(list, sent)
	}
	for _, d := range list {
		if err := w.WriteList(d); err != nil {
			return err
		}
	}
	return nil
}

// submission is a connection of SMTP.
type submission struct {
	s      *Server
	conn   *smtp.Conn
	logged bool
	from   string
	to     []string
	fault  Fault
}

// AuthMechanisms implements smtp.AuthSession.
func (x *submission) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (x *submission) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		x.s.commands["AUTH"]++
		if user != Address || password != Password || x.s.refusal != nil {
			return smtp.ErrAuthFailed
		}
		x.logged = true
		return nil
	}), nil
}

// Reset implements smtp.Session.
func (x *submission) Reset() { x.from, x.to = "", nil }

// Logout implements smtp.Session.
func (x *submission) Logout() error { return nil }

// Mail implements smtp.Session.
func (x *submission) Mail(from string, _ *smtp.MailOptions) error {
	if !x.logged {
		return smtp.ErrAuthRequired
	}
	x.s.mu.Lock()
	x.fault = Fault{}
	if len(x.s.faults) > 0 {
		x.fault, x.s.faults = x.s.faults[0], x.s.faults[1:]
	}
	x.s.mu.Unlock()
	if from != Address {
		x.s.problem("a mail of %s", from)
		return &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "Sender address rejected"}
	}
	x.from = from
	return nil
}

// Rcpt implements smtp.Session.
func (x *submission) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such user"}
	}
	if x.fault.Rcpt {
		return refusal(x.fault.Code)
	}
	x.to = append(x.to, to)
	return nil
}

func refusal(code int) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 3, 0},
		Message: "Refused for the test\nin two lines"}
}

// Data implements smtp.Session.
func (x *submission) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if x.fault.Code == 0 && !x.fault.Cut && !x.fault.Stall || x.fault.Accept {
		m, err := parseMail(raw, x.to)
		if err != nil {
			x.s.problem("%v", err)
			return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: err.Error()}
		}
		x.s.mu.Lock()
		x.s.sent = append(x.s.sent, m)
		saves := x.s.Saves
		x.s.mu.Unlock()
		if saves {
			_, err := x.s.add(SentBox, raw, &imap.AppendOptions{})
			x.s.must(err)
		}
	}
	switch {
	case x.fault.Stall:
		<-x.s.done
		return nil
	case x.fault.Cut:
		_ = x.conn.Conn().Close()
		return nil
	case x.fault.Code != 0:
		return refusal(x.fault.Code)
	}
	return nil
}

// File is an attachment of a mail.
type File struct {
	Name, Type string
	Data       []byte
}

// Mail is a mail that was sent, as its recipient sees it.
type Mail struct {
	To     string
	ID     string
	Header mail.Header
	Text   string
	HTML   string
	Files  []File
	Raw    []byte
}

// Sent returns the mails to an address, oldest first.
func (s *Server) Sent(to string) []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Mail
	for _, m := range s.sent {
		if m.To == to {
			out = append(out, m)
		}
	}
	return out
}

// Shown returns the texts of the mails to an address, oldest first.
func (s *Server) Shown(to string) []string {
	var out []string
	for _, m := range s.Sent(to) {
		out = append(out, m.Text)
	}
	return out
}

var validID = regexp.MustCompile(`^<[!-;=?-~]+@[!-;=?-~]+>$`)

// parseMail checks a mail as a strict server does.
func parseMail(raw []byte, to []string) (m Mail, err error) {
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	count := map[string]int{}
	for line := range bytes.SplitSeq(raw, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsAny(line, "\r\n\x00") {
			return m, errors.New("a line is too long or has a bare line break")
		}
		if bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x80 }) {
			return m, errors.New("8-bit characters")
		}
	}
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if key, _, ok := bytes.Cut(line, []byte(":")); ok && line[0] != ' ' && line[0] != '\t' {
			count[textproto.CanonicalMIMEHeaderKey(string(key))]++
		}
	}
	for _, key := range []string{"From", "To", "Date", "Message-Id", "Mime-Version", "Subject",
		"Content-Type", "Auto-Submitted"} {
		if count[key] != 1 {
			return m, fmt.Errorf("%d fields %s", count[key], key)
		}
	}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return m, err
	}
	m.Raw, m.Header = raw, msg.Header
	if !validID.MatchString(msg.Header.Get("Message-Id")) {
		return m, fmt.Errorf("Message-ID is %q", msg.Header.Get("Message-Id"))
	}
	m.ID = strings.Trim(msg.Header.Get("Message-Id"), "<>")
	from, err := msg.Header.AddressList("From")
	if err != nil || len(from) != 1 || from[0].Address != Address {
		return m, fmt.Errorf("the field From is %q", msg.Header.Get("From"))
	}
	list, err := msg.Header.AddressList("To")
	if err != nil || len(list) != 1 || len(to) != 1 || list[0].Address != to[0] {
		return m, fmt.Errorf("the field To is %q, but the recipients are %q", msg.Header.Get("To"), to)
	}
	m.To = to[0]
	for _, key := range []string{"In-Reply-To", "References"} {
		for id := range strings.FieldsSeq(msg.Header.Get(key)) {
			if !validID.MatchString(id) {
				return m, fmt.Errorf("%s has %q", key, id)
			}
		}
	}
	return m, m.parts(textproto.MIMEHeader(msg.Header), msg.Body)
}

// parts reads a part of a mail.
func (m *Mail) parts(h textproto.MIMEHeader, body io.Reader) error {
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("Content-Type: %w", err)
	}
	if strings.HasPrefix(kind, "multipart/") {
		r := multipart.NewReader(body, params["boundary"])
		for n := 0; ; n++ {
			p, err := r.NextRawPart()
			if err == io.EOF {
				if n == 0 {
					return errors.New("a container without parts")
				}
				return nil
			}
			if err != nil {
				return err
			}
			if err := m.parts(p.Header, p); err != nil {
				return err
			}
		}
	}
	switch h.Get("Content-Transfer-Encoding") {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	default:
		return fmt.Errorf("Content-Transfer-Encoding is %q", h.Get("Content-Transfer-Encoding"))
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	text := strings.TrimRight(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	disposition, fields, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	switch {
	case disposition == "attachment":
		m.Files = append(m.Files, File{fields["filename"], kind, data})
	case kind == "text/plain":
		m.Text += text
	case kind == "text/html":
		m.HTML += text
	default:
		return fmt.Errorf("a part of type %s", kind)
	}
	return nil
}
