package email

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	idleTime   = 5 * time.Minute // after which the server has to prove that it is there
	pollTime   = time.Minute     // without IDLE
	batch      = 500             // mails that are looked up at once
	maxMissed  = 500             // mails that are looked at after a change of the UIDVALIDITY
	maxTries   = 3               // until a mail that breaks the connection is read without its content
	maxCopies  = 10              // other recipients that are named
	maxMessage = 64 << 20        // bytes that the content of a mail may have on the way
)

// Run implements channel.Channel.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error { return b.watch(ctx, sink, up) })
}

// watch makes a connection and passes on the mails that arrive until it ends.
func (b *bot) watch(ctx context.Context, sink channel.Sink, up func()) error {
	l, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer l.close()
	box, err := l.choose(ctx, b.c.Mailbox, false)
	if err != nil {
		return err
	}
	if err := b.begin(ctx, l, box); err != nil {
		return err
	}
	up()
	for {
		select {
		case <-l.news: // what arrived before the search is found by it
		default:
		}
		if err := b.catchUp(ctx, l, sink); err != nil {
			return err
		}
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
}

// begin prepares the cursor for the mailbox that was opened.
func (b *bot) begin(ctx context.Context, l *link, box *imap.SelectData) error {
	st, err := b.cursor()
	if err != nil {
		return err
	}
	box.UIDValidity = max(box.UIDValidity, 1) // in case the server does not tell it
	if st.Validity == box.UIDValidity {
		return nil
	}
	last, err := l.last(ctx, box)
	if err != nil {
		return err
	}
	if st.Validity == 0 {
		return b.first(ctx, l, box, last)
	}
	since := time.Unix(st.Newest, 0)
	// the day, in any time zone
	uids, err := l.search(ctx, &imap.SearchCriteria{Since: since.Add(-24 * time.Hour)}, 0, 1<<20)
	if err != nil {
		return err
	}
	from := last
	if n := len(uids) - maxMissed; n > 0 {
		b.env.Log.Warn("too many mails after a change of the mailbox; the oldest ones are not read", "mails", n)
		uids = uids[n:]
	}
	if len(uids) > 0 {
		from = uids[0] - 1
	}
	b.env.Log.Info("the server has renumbered the mails of the mailbox",
		"uidValidity", box.UIDValidity, "compared", len(uids))
	return b.change(func(s *state) {
		s.Validity, s.Last, s.Until, s.Since = box.UIDValidity, from, last, st.Newest
	})
}

// first starts with the mails that arrive from now on.
func (b *bot) first(ctx context.Context, l *link, box *imap.SelectData, last uint32) error {
	newest, key := time.Now().Add(-24*time.Hour).Unix(), "" // the mailbox is empty
	if last > 0 && box.NumMessages > 0 {
		m, err := l.read(ctx, last)
		if err != nil {
			return err
		}
		if m != nil && !m.arrived.IsZero() {
			newest, key = m.arrived.Unix(), m.key
		}
	}
	return b.change(func(s *state) {
		s.Validity, s.Last, s.Newest, s.Until, s.Since, s.Recent = box.UIDValidity, last, newest, 0, 0, nil
		if key != "" {
			s.Recent = []string{key}
		}
	})
}

// last returns the UID of the newest mail; 0: there is none.
func (l *link) last(ctx context.Context, box *imap.SelectData) (uint32, error) {
	if box.UIDNext > 0 {
		return uint32(box.UIDNext) - 1, nil
	}
	if box.NumMessages == 0 {
		return 0, nil
	}
	uids, err := l.search(ctx, &imap.SearchCriteria{UID: []imap.UIDSet{{imap.UIDRange{}}}}, 0, 1) // "*"
	if err != nil || len(uids) == 0 {
		return 0, err
	}
	return uids[0], nil
}

// wait waits until there may be new mail.
func (l *link) wait(ctx context.Context) error {
	if !l.caps.Has(imap.CapIdle) || l.noIdle {
		if err := backoff.Sleep(ctx, pollTime); err != nil {
			return err
		}
		return l.noop(ctx)
	}
	var idle *imapclient.IdleCommand
	err := l.do(ctx, timeout, maxAnswer, func() (err error) {
		idle, err = l.c.Idle()
		return err
	})
	if _, refused := errors.AsType[*imap.Error](err); refused {
		l.noIdle = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("email: wait for mail: %w", err)
	}
	t := time.NewTimer(idleTime)
	defer t.Stop()
	select {
	case <-l.news:
	case <-t.C:
	case <-l.c.Closed():
	case <-ctx.Done():
	}
	err = l.do(ctx, timeout, maxAnswer, func() error {
		if err := idle.Close(); err != nil {
			return err
		}
		return idle.Wait()
	})
	if err != nil {
		return fmt.Errorf("email: wait for mail: %w", err)
	}
	return nil
}

// noop lets the server prove that it is there.
func (l *link) noop(ctx context.Context) error {
	if err := l.do(ctx, timeout, maxAnswer, func() error { return l.c.Noop().Wait() }); err != nil {
		return fmt.Errorf("email: look for mail: %w", err)
	}
	return nil
}

// catchUp passes on the mails after the cursor. The cursor is read again for each batch, because
// handling a mail moves it.
func (b *bot) catchUp(ctx context.Context, l *link, sink channel.Sink) error {
	for {
		st, err := b.cursor()
		if err != nil {
			return err
		}
		if st.Last == 1<<32-1 {
			return nil
		}
		newer := imap.UIDSet{imap.UIDRange{Start: imap.UID(st.Last) + 1}} // n:* has the last mail in any case
		uids, err := l.search(ctx, &imap.SearchCriteria{UID: []imap.UIDSet{newer}}, st.Last, batch)
		if err != nil || len(uids) == 0 {
			return err
		}
		for _, uid := range uids {
			if err := b.handle(ctx, l, sink, uid); err != nil {
				return err
			}
		}
	}
}

// handle passes on a mail, unless it is not one for the sink, and moves the cursor. The cursor
// moves after the sink has accepted the mail: a kill in between hands it over once more, with the
// same id.
func (b *bot) handle(ctx context.Context, l *link, sink channel.Sink, uid uint32) error {
	st, err := b.cursor()
	if err != nil {
		return err
	}
	m, in, why, err := b.inbound(ctx, l, &st, uid)
	if err != nil {
		if ctx.Err() == nil {
			b.failed(uid, err)
		}
		return err
	}
	if m == nil { // it is gone
		return b.change(func(s *state) { s.handled(uid, "", time.Time{}) })
	}
	accepted := false
	if why == "" {
		// It can be answered as soon as the sink has it.
		if err := b.note(in.Sender.ID, memo{ID: m.id, Refs: m.refs, Subject: m.subject}); err != nil {
			return err
		}
		err := channel.Accept(ctx, b.env.Log, func(ctx context.Context) error {
			err := sink(ctx, in)
			accepted = err == nil
			return err
		})
		if err != nil {
			return err
		}
	} else if why != known {
		b.dropped++
		b.env.Log.Info("mail not passed on", "why", why, "from", clip(m.header.get("from")),
			"subject", m.subject, "dropped", b.dropped)
	}
	if err := b.change(func(s *state) { s.handled(uid, m.key, m.arrived) }); err != nil {
		return err
	}
	if accepted {
		return l.seen(ctx, uid)
	}
	return nil
}

// failed counts how often a mail could not be read.
func (b *bot) failed(uid uint32, err error) {
	if b.trouble != uid {
		b.trouble, b.tries = uid, 0
	}
	b.tries++
	b.env.Log.Warn("mail could not be read", "uid", uid, "tries", b.tries, "err", err)
}

// seen marks a mail as read. A server that refuses that does no harm.
func (l *link) seen(ctx context.Context, uid uint32) error {
	err := l.do(ctx, timeout, maxAnswer, func() error {
		return l.c.Store(imap.UIDSetNum(imap.UID(uid)),
			&imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagSeen}}, nil).Close()
	})
	if _, refused := errors.AsType[*imap.Error](err); err != nil && !refused {
		return fmt.Errorf("email: mark a mail as read: %w", err)
	}
	return nil
}

// known is the reason why a mail is not passed on that was handled before the server gave
// it another UID.
const known = "known"

// message is a mail without its content.
type message struct {
	uid     uint32
	header  header
	key     string
	id      string // the Message-ID; "": none
	refs    []string
	subject string
	arrived time.Time
	content content
	broken  bool // the structure could not be read
	long    bool // the header is longer than what is read
}

// inbound reads a mail. m is nil if it is gone; why is the reason why it is not passed on.
func (b *bot) inbound(ctx context.Context, l *link, st *state, uid uint32) (m *message, in chela.Inbound,
	why string, err error) {
	broken := b.trouble == uid && b.tries >= maxTries
	if broken && b.tries >= 2*maxTries {
		b.env.Log.Error("mail skipped: it cannot be read", "uid", uid)
		return nil, in, "", nil
	}
	m, err = l.read(ctx, uid)
	if err != nil || m == nil {
		return m, in, "", err
	}
	if st.known(uid, m.key, m.arrived, m.header.date()) {
		return m, in, known, nil
	}
	sender, why := b.sender(m)
	if why != "" {
		return m, in, why, nil
	}
	if m.broken = broken; !broken {
		if m.content, err = l.structure(ctx, uid); err != nil {
			return m, in, "", err
		}
	}
	if m.content.report {
		return m, in, "it is automatic: a report", nil
	}
	in = chela.Inbound{
		ID:      cmp.Or(m.id, fmt.Sprintf("%d:%d", st.Validity, uid)),
		Address: chela.Address{Channel: Name, Account: b.account, Peer: chela.Peer{Kind: chela.Direct, ID: sender.ID}},
		Sender:  sender, Time: m.arrived,
	}
	if replied := ids(m.header.get("in-reply-to"), 1); len(replied) == 1 {
		in.ReplyTo = replied[0]
	}
	if err := b.fill(ctx, l, st.Validity, m, &in); err != nil {
		return m, in, "", err
	}
	if in.Text == "" && len(in.Media) == 0 {
		return m, in, "it is empty", nil
	}
	return m, in, "", nil
}

// sender returns who wrote a mail, or why it is not passed on.
func (b *bot) sender(m *message) (s chela.Sender, why string) {
	h := m.header
	if m.long {
		return s, "the header is too long"
	}
	address, name, err := h.from()
	switch {
	case err != nil:
		return s, err.Error()
	case address == b.c.address || slices.Contains(b.c.Aliases, address):
		return s, "it is from the account itself"
	case mechanical(address):
		return s, "nobody reads answers to the sender"
	}
	if reason := automatic(h); reason != "" {
		return s, "it is automatic: " + reason
	}
	if b.c.require {
		if err := authenticate(h, address, b.c.trusted); err != nil {
			return s, "the sender is not authenticated: " + err.Error()
		}
		// A signed mail to somebody else could be sent again, to this account.
		to, err := h.recipients()
		if err != nil {
			return s, err.Error()
		}
		if !slices.ContainsFunc(to, b.mine) {
			return s, "the account is neither in To nor in Cc"
		}
	}
	return chela.Sender{ID: address, Name: name}, ""
}

// mine reports whether an address is one of the account, maybe with a tag (ann+tag@…).
func (b *bot) mine(address string) bool {
	local, domain, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	plain := local + "@" + domain
	return address == b.c.address || plain == b.c.address || slices.Contains(b.c.Aliases, address) ||
		slices.Contains(b.c.Aliases, plain)
}

// read reads the header of a mail; nil: there is no such mail.
func (l *link) read(ctx context.Context, uid uint32) (m *message, err error) {
	o := &imap.FetchOptions{
		UID: true, InternalDate: true,
		BodySection: []*imap.FetchItemBodySection{{Specifier: imap.PartSpecifierHeader, Peek: true,
			Partial: &imap.SectionPartial{Size: maxHeader + 1}}},
	}
	err = l.do(ctx, timeout, 2*maxHeader, func() error {
		list, err := l.c.Fetch(imap.UIDSetNum(imap.UID(uid)), o).Collect()
		if err != nil {
			return err
		}
		for _, f := range list {
			if uint32(f.UID) != uid || len(f.BodySection) == 0 {
				continue
			}
			raw := f.BodySection[0].Bytes
			m = &message{uid: uid, header: parseHeader(raw), arrived: f.InternalDate}
			m.long = len(raw) > maxHeader || len(m.header) >= maxFields
			if m.arrived.IsZero() {
				m.arrived = time.Now()
			}
			m.key, m.id = keyOf(m.header, raw), m.header.messageID()
			m.subject = decode(m.header.get("subject"), maxSubject)
			m.refs = ids(m.header.get("references"), 1000)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("email: read a mail: %w", err)
	}
	if m != nil && len(m.refs) > maxRefs { // the first one and the last ones
		m.refs = slices.Delete(m.refs, 1, len(m.refs)-maxRefs+1)
	}
	return m, nil
}

// structure reads what a mail contains.
func (l *link) structure(ctx context.Context, uid uint32) (c content, err error) {
	o := &imap.FetchOptions{UID: true, BodyStructure: &imap.FetchItemBodyStructure{Extended: true}}
	l.guard.set(true)
	err = l.do(ctx, timeout, 2*maxHeader, func() error {
		list, err := l.c.Fetch(imap.UIDSetNum(imap.UID(uid)), o).Collect()
		for _, f := range list {
			if uint32(f.UID) == uid && f.BodyStructure != nil {
				c = contentOf(f.BodyStructure)
			}
		}
		return err
	})
	if l.guard.set(false) && ctx.Err() == nil {
		err = errNested
	}
	if err != nil {
		return content{}, fmt.Errorf("email: read a mail: %w", err)
	}
	return c, nil
}

// fill adds the text and the attachments of a mail.
func (b *bot) fill(ctx context.Context, l *link, validity uint32, m *message, in *chela.Inbound) error {
	var texts []string
	size := 0
	for i, t := range m.content.texts {
		if i == maxTexts || size > maxText {
			break
		}
		s, err := l.text(ctx, m.uid, t)
		if err != nil {
			return err
		}
		if s != "" {
			texts = append(texts, s)
			size += len(s)
		}
	}
	body := strings.Join(texts, "\n\n")
	said := divide(body, m.subject, m.header.has("in-reply-to") || m.header.has("references"))
	in.Quote.Text, in.Forwarded = said.quote, said.forwarded
	in.Text = shorten(said.text)
	switch {
	case m.broken:
		in.Text = "[a mail whose content could not be read]"
	case m.content.encrypted && in.Text == "":
		in.Text = "[an encrypted mail, which cannot be read]"
	}
	command := strings.HasPrefix(in.Text, "/")
	if subject := m.subject; subject != "" && !replyTitle().MatchString(subject) && !command {
		in.Text = strings.TrimSpace(subject + "\n\n" + in.Text)
	}
	if to, _ := m.header.recipients(); !command {
		others := slices.DeleteFunc(to, func(a string) bool { return b.mine(a) || a == in.Sender.ID })
		if n := len(others); n > 0 {
			list := strings.Join(others[:min(n, maxCopies)], ", ")
			if n > maxCopies {
				list += fmt.Sprintf(" and %d more", n-maxCopies)
			}
			in.Text += "\n\n[also sent to " + list + "; the answer goes to the sender only]"
		}
	}
	for _, p := range m.content.files {
		in.Media = append(in.Media, chela.Media{Name: p.name, Type: p.kind, Bytes: p.bytes(),
			Source: source{validity, m.uid, p.place(), p.encoding}.String()})
	}
	return nil
}

// shorten bounds a text.
func shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxText {
			return s[:i] + "\n[the rest of the mail is left out]"
		}
		n++
	}
	return s
}

// text reads a text, preferably the plain one.
func (l *link) text(ctx context.Context, uid uint32, t text) (string, error) {
	if t.plain != nil {
		data, err := l.body(ctx, uid, *t.plain)
		if err != nil {
			return "", err
		}
		if s := decodeText(*t.plain, data); strings.TrimSpace(s) != "" || t.html == nil {
			return strings.TrimRight(s, "\n"), nil
		}
	}
	if t.html == nil {
		return "", nil
	}
	data, err := l.body(ctx, uid, *t.html)
	if err != nil {
		return "", err
	}
	return fromHTML(decodeText(*t.html, data)), nil
}

// body reads the beginning of a part, as it is encoded.
func (l *link) body(ctx context.Context, uid uint32, p part) (data []byte, err error) {
	o := &imap.FetchOptions{UID: true,
		BodySection: []*imap.FetchItemBodySection{{Part: p.path, Peek: true, Partial: &imap.SectionPartial{Size: maxBody}}}}
	err = l.do(ctx, 2*timeout, 2*maxBody, func() error {
		list, err := l.c.Fetch(imap.UIDSetNum(imap.UID(uid)), o).Collect()
		for _, f := range list {
			if uint32(f.UID) == uid && len(f.BodySection) > 0 {
				data = f.BodySection[0].Bytes
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("email: read a mail: %w", err)
	}
	return data, nil
}

// source says where an attachment is.
type source struct {
	validity, uid uint32
	part          string
	encoding      string
}

// String returns the source for chela.Media.
func (s source) String() string {
	return fmt.Sprintf("%d/%d/%s/%s", s.validity, s.uid, s.part, s.encoding)
}

// number parses a number without a sign.
func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

// parseSource parses what String returns.
func parseSource(v string) (s source, path []int, ok bool) {
	fields := strings.Split(v, "/")
	if len(fields) != 4 {
		return s, nil, false
	}
	var err1, err2 error
	s.validity, err1 = number(fields[0])
	s.uid, err2 = number(fields[1])
	if err1 != nil || err2 != nil || s.uid == 0 {
		return s, nil, false
	}
	s.part, s.encoding = fields[2], fields[3]
	for n := range strings.SplitSeq(s.part, ".") {
		i, err := number(n)
		if err != nil || i == 0 || len(path) > maxNested {
			return s, nil, false
		}
		path = append(path, int(i))
	}
	return s, path, true
}

// Fetch implements channel.Fetcher. It makes a connection of its own, because that of Run
// waits for the sink.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	s, path, ok := parseSource(m.Source)
	if !ok {
		return m, &channel.Error{Permanent: true, Err: errors.New("email: the attachment has no valid source")}
	}
	free, err := b.slot(ctx)
	if err != nil {
		return m, err
	}
	defer free()
	l, err := b.connect(ctx)
	if err != nil {
		return m, err
	}
	defer l.quit(ctx)
	box, err := l.choose(ctx, b.c.Mailbox, true)
	if err != nil {
		return m, err
	}
	if max(box.UIDValidity, 1) != s.validity {
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("email: the mailbox has changed: %w", channel.ErrGone)}
	}
	m.Data, err = l.file(ctx, s, path, most)
	if err != nil {
		return m, fmt.Errorf("email: read an attachment: %w", err)
	}
	m.Source, m.Bytes = "", 0
	return m, nil
}

// file reads the content of a part of at most most bytes.
func (l *link) file(ctx context.Context, s source, path []int, most int) (data []byte, err error) {
	o := &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{{Part: path, Peek: true}}}
	found, long := false, false
	err = l.do(ctx, 10*timeout, maxMessage, func() error {
		cmd := l.c.Fetch(imap.UIDSetNum(imap.UID(s.uid)), o)
		for m := cmd.Next(); m != nil; m = cmd.Next() {
			for item := m.Next(); item != nil; item = m.Next() {
				section, ok := item.(imapclient.FetchItemDataBodySection)
				if !ok || section.Literal == nil || found {
					continue
				}
				found = true
				data, err = io.ReadAll(io.LimitReader(transfer(section.Literal, s.encoding), int64(most)+1))
				if len(data) > most {
					long = true
					_ = l.conn.Close() // the rest is not read
				}
			}
		}
		return errors.Join(cmd.Close(), err)
	})
	switch {
	case long:
		return nil, &channel.Error{Permanent: true, Err: fmt.Errorf("it has more than %d bytes", most)}
	case err != nil:
		return nil, err
	case !found:
		return nil, &channel.Error{Permanent: true, Err: channel.ErrGone}
	}
	return data, nil
}
