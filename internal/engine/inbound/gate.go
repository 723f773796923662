package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of a message.
const (
	MaxText  = 1 << 20  // bytes
	MaxMedia = 16       // attachments
	MaxBytes = 20 << 20 // bytes of all attachments
	maxID    = 256      // bytes of an id or of a part of an address
	maxRoles = 500      // roles of a sender

	maxReaction = 64 // bytes
)

// Receipt is the outcome of admitting a message.
type Receipt struct {
	Run     chela.RunID // of the run that the message starts, if it starts one
	Session chela.SessionKey
	New     bool        // false: the message was accepted before
	State   queue.State // of the queue item; empty: the message was ignored
	Command bool        // the message is a command
	Reply   string      // answer to a command
	Refused bool        // the command did nothing, as its answer says; not known of one that was accepted before
}

// Receive admits a message of a channel on behalf of its sender. A message that is
// refused is dropped silently, so that the channel continues. An error means that
// the channel must deliver the message again.
func (g *Gate) Receive(ctx context.Context, in chela.Inbound) error {
	a := in.Address
	if a.Local() || in.Sender.ID == "" {
		g.o.Log.Warn("message without a sender dropped", "channel", a.Channel, "account", a.Account)
		return nil
	}
	in.Session = ""
	ctx = chela.WithPrincipal(ctx, chela.Principal{
		ID:         chela.ChannelSender{Channel: a.Channel, Account: a.Account, ID: in.Sender.ID}.String(),
		Credential: "channel",
	})
	_, err := g.Admit(ctx, in)
	switch chela.CodeOf(err) {
	case chela.CodeForbidden, chela.CodeInvalid:
		g.o.Log.Info("message refused", "channel", a.Channel, "account", a.Account, "sender", in.Sender.ID, "err", err)
		return nil
	}
	return err
}

// Admit accepts a message of the principal of ctx. If it returns no error, the
// message is on disk and will be answered.
func (g *Gate) Admit(ctx context.Context, in chela.Inbound) (Receipt, error) {
	who := chela.PrincipalFrom(ctx)
	if who.ID == "" {
		return Receipt{}, chela.Errorf(chela.CodeForbidden, "message without a principal")
	}
	if !in.Address.Local() {
		in.Media = bounded(in.Media)
	}
	if err := check(in); err != nil {
		return Receipt{}, err
	}
	who, verdict, err := g.enter(ctx, who, &in)
	if err != nil {
		return Receipt{}, err
	}
	home, err := g.session(who, in)
	if err != nil {
		return Receipt{}, err
	}
	if home == "" {
		return Receipt{}, g.refuseUnrouted(ctx, in)
	}
	key, activation, err := g.focused(ctx, home, in.Address)
	if err != nil {
		return Receipt{}, err
	}
	g.clean(&in)
	if in.Time.IsZero() {
		in.Time = time.Now()
	}
	if in.ID == "" {
		in.ID = uuid.NewString()
	}
	k := call{g: g, who: who, home: home, key: key, in: in}
	if in.Reaction != "" {
		return Receipt{Session: key}, g.react(ctx, k)
	}
	if rest, ok := g.literal(in.Text); ok && (g.allowed().Text || in.Address.Local()) {
		k.in.Text, k.literal = rest, true
	} else if c, w, is := g.command(key, in); is != text {
		if k.args = w.args; c.home {
			k.key = home
		}
		k.writer, k.who = who, g.rights(who, in)
		return g.handleCommand(ctx, c, k, is)
	}
	k.unaddressed = !g.addressed(home.Agent(), in, activation)
	if k.unaddressed && !(g.hasMentions(home.Agent()) && g.transcribes(k.item(in.Time))) {
		return Receipt{Session: key}, g.overhear(ctx, k, verdict.History)
	}
	if reply := k.mistyped(); reply != "" {
		k.writer, k.who = who, g.rights(who, in)
		return g.handleCommand(ctx, Command{run: func(*call) (string, error) { return "", refuse{reply} }}, k, ours)
	}
	return g.enqueue(ctx, k)
}

// rights returns the principal as which somebody uses commands and directives.
func (g *Gate) rights(who chela.Principal, in chela.Inbound) chela.Principal {
	if g.o.Rights == nil {
		return who
	}
	return g.o.Rights(who, in)
}

// handleCommand executes a command, unless it is addressed to another bot, edited,
// or not allowed for the sender.
func (g *Gate) handleCommand(ctx context.Context, c Command, k call, is kind) (Receipt, error) {
	switch {
	case is == foreign || k.in.Edited:
		return Receipt{Session: k.key}, nil
	case c.allowed(k.who):
		return g.execute(ctx, c, k)
	case k.in.Address.Local():
		return Receipt{}, chela.Errorf(chela.CodeForbidden, "/%s needs the scope %s", c.Name, c.Scope)
	}
	return Receipt{Session: k.key}, nil // do not reveal commands to strangers
}

// bounded returns the attachments of a channel's message without those above the limits.
// A person would not see that the message was refused, so that it is accepted without
// them and says so.
func bounded(list []chela.Media) []chela.Media {
	if n := len(list) - (MaxMedia - 1); n > 1 {
		list = append(slices.Clip(list[:MaxMedia-1]), chela.Media{
			Name: humanize.Many(n, "further attachment"), Lost: fmt.Sprintf("a message can have at most %d", MaxMedia-1),
		})
	}
	total := 0
	for i, m := range list {
		if total += len(m.Data); total <= MaxBytes {
			continue
		}
		total -= len(m.Data)
		list = slices.Clone(list)
		list[i] = chela.Media{
			Name: m.Name, Type: m.Type, Bytes: len(m.Data),
			Lost: fmt.Sprintf("skipped: %s, the attachments of a message can have at most %s",
				humanize.Bytes(int64(len(m.Data))), humanize.Bytes(MaxBytes)),
		}
	}
	return list
}

// check rejects a message that is too large or malformed.
func check(in chela.Inbound) error {
	if len(in.Text) > MaxText {
		return chela.Errorf(chela.CodeInvalid, "message: %d bytes of text, at most %d", len(in.Text), MaxText)
	}
	if n := max(len(in.Earlier), len(in.Prompt)); n > MaxText {
		return chela.Errorf(chela.CodeInvalid, "message: %d bytes of earlier messages or instructions, at most %d", n,
			MaxText)
	}
	if len(in.Media) > MaxMedia {
		return chela.Errorf(chela.CodeInvalid, "message: %d attachments, at most %d", len(in.Media), MaxMedia)
	}
	n := 0
	for _, m := range in.Media {
		n += len(m.Data)
	}
	if n > MaxBytes {
		return chela.Errorf(chela.CodeInvalid, "message: %d bytes of attachments, at most %d", n, MaxBytes)
	}
	if len(in.Reaction) > maxReaction || in.Reaction != "" && in.ReplyTo == "" {
		return chela.Errorf(chela.CodeInvalid, "reaction: it is too long, or to no message")
	}
	if strings.TrimSpace(in.Text) == "" && len(in.Media) == 0 && in.Reaction == "" {
		return chela.Errorf(chela.CodeInvalid, "message: neither text nor attachment")
	}
	a := in.Address
	if len(in.Roles) > maxRoles {
		return chela.Errorf(chela.CodeInvalid, "message: the sender has %d roles, at most %d", len(in.Roles), maxRoles)
	}
	ids := append([]string{in.ID, a.Channel, string(a.Account), string(a.Peer.Kind), a.Peer.ID, a.Thread, in.Sender.ID,
		in.ReplyTo, in.Guild, in.Team}, in.Roles...)
	for _, s := range ids {
		if len(s) > maxID || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return chela.Errorf(chela.CodeInvalid, "message: an id has more than %d bytes or contains control characters", maxID)
		}
	}
	return nil
}

// clean removes known secrets from all texts of a message, before it is parsed, so
// that commands and the messages that follow them have none. Names and types are
// also cut, because a message should not be refused for them.
func (g *Gate) clean(in *chela.Inbound) {
	in.Text, in.Earlier, in.Prompt = g.o.Redact(in.Text), g.o.Redact(in.Earlier), g.o.Redact(in.Prompt)
	short := func(s string) string { return humanize.TruncateBytes(g.o.Redact(s), maxID) }
	in.Sender.Name, in.Group = short(in.Sender.Name), short(in.Group)
	in.Media = slices.Clone(in.Media)
	for i := range in.Media {
		m := &in.Media[i]
		m.Name, m.Type = short(m.Name), short(m.Type)
	}
}

// noAgent is the answer to a message without a route.
const noAgent = "No agent is configured for this chat. The owner of the assistant can select one with: chela agents bind"

// refuseUnrouted answers a message without a route, and returns why it was refused. It
// does not answer messages that are not addressed to the assistant.
func (g *Gate) refuseUnrouted(ctx context.Context, in chela.Inbound) error {
	refused := chela.Errorf(chela.CodeInvalid, "no agent is bound to the chat, and none is the default")
	if in.Edited || !g.addressed("", in, "") {
		return refused
	}
	a := in.Address
	row := outbox.Row{
		Key: strings.Join([]string{"unrouted", a.Channel, string(a.Account), string(a.Peer.Kind), a.Peer.ID, a.Thread,
			in.ID}, "\x1f"),
		Address: a, ReplyTo: in.ID, Created: time.Now(), Text: noAgent, State: outbox.Pending,
	}
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		if _, err := tx.Outbox().Get(row.Key); !errors.Is(err, chela.ErrNotFound) {
			return err // the platform delivered the message again
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(row)
	})
	if err != nil {
		return fmt.Errorf("refuse message: %w", err)
	}
	return refused
}

// session returns the session that the message belongs to; "": it has no route.
func (g *Gate) session(who chela.Principal, in chela.Inbound) (chela.SessionKey, error) {
	r := g.o.Route(route.QueryOf(in))
	if in.Session == "" {
		return r.Session, nil
	}
	if !who.May(chela.ScopeWrite) {
		return "", chela.Errorf(chela.CodeForbidden, "%s may not select a session", who.ID)
	}
	key, err := chela.ParseSessionKey(string(in.Session), r.Agent)
	if err != nil {
		return "", chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	return key, nil
}

// addressed reports whether a message is addressed to the agent. activation is what the
// session of the chat says; "": nothing.
func (g *Gate) addressed(agent chela.AgentID, in chela.Inbound, activation string) bool {
	a := in.Address
	group := !a.Local() && (a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room)
	switch {
	case !group || in.Mentioned || activation == Always:
		return true
	case activation != Mention && g.unprompted(in):
		return true
	case agent == "" || g.o.Mentions == nil:
		return false
	}
	return slices.ContainsFunc(g.o.Mentions(agent), func(p *regexp.Regexp) bool { return p.MatchString(in.Text) })
}

// hasMentions reports whether a text can address the agent.
func (g *Gate) hasMentions(agent chela.AgentID) bool {
	return g.o.Mentions != nil && len(g.o.Mentions(agent)) > 0
}

// dedupeKey returns the key under which the message is accepted once. Ids of
// platforms are unique within a chat only, and clients choose their own, so the key
// contains the whole address and the principal. No part contains a control
// character (see check), so that different messages have different keys.
func dedupeKey(who chela.Principal, key chela.SessionKey, in chela.Inbound) string {
	a := in.Address
	if a.Local() {
		return strings.Join([]string{"local", string(key), who.ID, in.ID}, "\x1f")
	}
	return strings.Join([]string{
		string(key.Agent()), a.Channel, string(a.Account), string(a.Peer.Kind), a.Peer.ID, a.Thread, who.ID, in.ID,
	}, "\x1f")
}

// item returns the queue item of the message.
func (k *call) item(now time.Time) queue.Item {
	who, in := k.who, k.in
	it := queue.Item{
		ID: in.ID, Key: dedupeKey(who, k.home, in), Session: k.key, Kind: queue.Message,
		Origin:    chela.Origin{Kind: chela.OriginPerson, ID: cmp.Or(in.Sender.ID, who.ID)},
		Principal: who, Inbound: in, State: queue.Waiting, Created: now,
	}
	it.Overrides = k.overrides
	it.Overrides.Think, it.Inbound.Think = in.Think, ""
	it.Overrides.Fast, it.Inbound.Fast = in.Fast, ""
	it.Inbound.Model = "" // see enqueue
	it.Overrides.PromptMode, it.Inbound.PromptMode = in.PromptMode, ""
	it.Overrides.Prompt, it.Inbound.Prompt = cmp.Or(in.Prompt, it.Overrides.Prompt), ""
	if it.Inbound.Light = false; in.Light {
		it.Overrides.Context = run.ContextLight
	}
	if !in.Address.Local() {
		it.ID = uuid.NewString() // ids of platforms are unique within a chat only
		it.Origin.Address = in.Address
	}
	return it
}

// fetchTime is the time limit for getting one attachment.
const fetchTime = time.Minute

// fetch gets the attachments that the channel announced. One that cannot be had is
// described instead.
func (g *Gate) fetch(ctx context.Context, in *chela.Inbound) error {
	left := MaxBytes
	for i, m := range in.Media { // a copy, see clean
		if m.Source == "" {
			left -= len(m.Data)
			continue
		}
		lost := func(why string) { in.Media[i] = chela.Media{Name: m.Name, Type: m.Type, Bytes: m.Bytes, Lost: why} }
		switch {
		case g.o.Fetch == nil:
			lost("it cannot be downloaded here")
			continue
		case m.Bytes > left:
			lost(fmt.Sprintf("skipped: %s, the attachments of a message can have at most %s", humanize.Bytes(int64(m.Bytes)),
				humanize.Bytes(MaxBytes)))
			continue
		}
		within, cancel := context.WithTimeout(ctx, fetchTime)
		got, err := g.o.Fetch(within, in.Address, m, left)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			g.o.Log.Warn("attachment not downloaded", "channel", in.Address.Channel, "name", m.Name, "err", err)
			lost("it could not be downloaded")
		case len(got.Data) > left:
			lost("it has more than " + humanize.Bytes(int64(left)))
		default:
			in.Media[i] = chela.Media{Name: m.Name, Type: cmp.Or(m.Type, humanize.TruncateBytes(got.Type, maxID)),
				Data: got.Data}
			left -= len(got.Data)
		}
	}
	return nil
}

// storeMedia stores the attachments, before the row that refers to them. If an
// attachment is not accepted, a client gets an error. A message of a channel is
// accepted without it and says so.
func (g *Gate) storeMedia(in *chela.Inbound) error {
	if g.o.StoreMedia == nil || len(in.Media) == 0 {
		return nil
	}
	for i, m := range in.Media { // a copy, see clean
		stored, err := g.o.StoreMedia(m)
		switch {
		case err == nil:
			in.Media[i] = stored
		case errors.Is(err, syscall.ENOSPC): // the message is answered without it
			in.Media[i] = chela.Media{Name: m.Name, Type: m.Type, Bytes: len(m.Data),
				Lost: "it could not be stored: the disk is full"}
		case chela.CodeOf(err) != chela.CodeInvalid || in.Address.Local():
			return err
		default:
			in.Media[i] = chela.Media{Name: m.Name, Type: m.Type, Bytes: len(m.Data), Lost: err.Error()}
		}
	}
	return nil
}

// enqueue commits the message as a queue item, and executes the commands inside
// its text.
func (g *Gate) enqueue(ctx context.Context, k call) (Receipt, error) {
	if slices.ContainsFunc(k.in.Media, func(m chela.Media) bool { return m.Source != "" }) {
		if rec, err := g.known(ctx, dedupeKey(k.who, k.home, k.in)); err != nil || rec.Run != "" {
			return rec, err
		}
		if err := g.fetch(ctx, &k.in); err != nil {
			return Receipt{}, err
		}
	}
	if err := g.storeMedia(&k.in); err != nil {
		return Receipt{}, err
	}
	var inside []string
	if !k.in.Edited && !k.literal {
		inside = g.takeDirectives(&k)
	}
	if k.in.Model != "" {
		m, err := g.o.Catalog().Choose(k.in.Model)
		if err != nil {
			return Receipt{}, chela.Errorf(chela.CodeInvalid, "%w", err)
		}
		k.overrides.Model = m.Ref()
	}
	it := k.item(time.Now())
	it.Inbound.Unread = g.transcribes(it)
	var reserved *dispatch.Reservation
	if !it.Inbound.Unread {
		if k.unaddressed { // its content is no recording
			return Receipt{Session: k.key}, nil
		}
		reserved = g.o.Reserve(k.key)
	}
	if reserved != nil {
		it.State, it.Run = queue.Taken, chela.RunID(it.ID)
	}
	var rec Receipt
	var done call
	var created bool
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		done = k
		done.tx, done.now = tx, it.Created
		it := it
		var err error
		if it.Inbound.Unread {
			if it.Inbound.Unread, err = mayWait(tx.Queue(), k.key); err != nil {
				return err
			}
		}
		if k.unaddressed {
			rec = Receipt{Session: k.key}
			if it.Inbound.Unread {
				rec, err = done.putItem(it)
			}
			return err
		}
		rec, created, err = done.put(it)
		if err != nil || !rec.New {
			return err
		}
		if err := done.shortcuts(it.ID, inside); err != nil {
			return err
		}
		return done.begin(reserved, it)
	})
	if reserved != nil {
		defer reserved.Release(err == nil && done.begun) // runs after the events below are published
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("accept message: %w", err)
	}
	if created {
		g.o.Bus.Publish(chela.Event{Session: k.key, Stream: chela.StreamSession, Phase: chela.PhaseCreated})
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	if it.Inbound.Unread {
		g.wakeHearing()
	}
	if k.unaddressed {
		return Receipt{Session: k.key}, nil
	}
	if rec.New {
		done.notifyResets(ctx)
		done.notifyMessage(ctx, it.Inbound.Unread)
		for _, name := range inside {
			done.notifyCommand(ctx, g.names[name], it.ID+":"+name)
		}
	}
	if rec.New && g.o.Live(k.key) {
		g.o.Bus.Publish(chela.Event{Run: rec.Run, Session: k.key, Stream: chela.StreamSession, Phase: chela.PhaseQueued})
	}
	return rec, nil
}

// begin starts a run for the message with the reservation, or wakes the session.
func (k *call) begin(reserved *dispatch.Reservation, it queue.Item) error {
	if reserved != nil {
		var err error
		if k.begun, err = reserved.Begin(k.tx, k.meta, it); k.begun || err != nil {
			return err
		}
		it.Run = ""
		if err := k.tx.Queue().Set(queue.Waiting, it); err != nil {
			return err
		}
	}
	k.tx.Wake(store.Topic{Kind: store.TopicQueue, Session: k.key})
	return nil
}

// takeDirectives removes directives from the message and applies them to it. It
// returns the commands to be executed with the message. A sender who may not
// change the settings of the session may not change those of a message either.
func (g *Gate) takeDirectives(k *call) []string {
	who := g.rights(k.who, k.in)
	p := directiveRules{
		settings: who.May(chela.ScopeWrite), model: k.isModel,
		inline: func(name string) bool {
			c, ok := g.names[name]
			return ok && c.inline && c.allowed(who)
		},
		elevated: g.o.Elevated(k.who, session.Meta{Key: k.key, Agent: k.key.Agent()}).Reason == "",
	}
	d := parseDirectives(k.in.Text, p)
	if d.text == "" {
		return nil
	}
	k.in.Text = d.text
	k.in.Think = cmp.Or(k.in.Think, string(d.think))
	k.in.Fast = cmp.Or(k.in.Fast, d.fast)
	k.in.Mode = cmp.Or(k.in.Mode, string(d.mode))
	k.overrides.Verbose, k.overrides.Reasoning, k.overrides.Elevated = d.verbose, d.reasoning, d.elevated
	k.overrides.Exec = d.exec
	if d.model != "" {
		if m, err := k.pick(d.model); err == nil {
			k.overrides.Model = m.Ref()
		}
	}
	return d.names
}

// put stores the item with its session. created reports whether the session is
// new.
func (k *call) put(it queue.Item) (rec Receipt, created bool, err error) {
	rec, err = k.putItem(it)
	if err != nil || !rec.New {
		return rec, false, err
	}
	if err := session.CheckSeen(k.tx.Sessions(), it.Session, it.Inbound.Seen); err != nil {
		return rec, false, err
	}
	k.meta, created, err = k.open(it.Session)
	if err != nil {
		return rec, created, err
	}
	k.touch()
	if k.meta.Title == "" {
		k.meta.Title = session.TitleOf(cmp.Or(it.Inbound.Text, transcript(it.Inbound.Media)))
	}
	return rec, created, k.tx.Sessions().Put(k.meta)
}

// putItem stores the item. The id of a run is unique, so an id that belongs to
// another message is rejected.
func (k *call) putItem(it queue.Item) (Receipt, error) {
	if k.heard != nil {
		r, err := k.replaceHeard(it)
		return receipt(r), err
	}
	r, err := k.tx.Queue().Put(it)
	if chela.CodeOf(err) == chela.CodeConflict {
		err = chela.Errorf(chela.CodeInvalid, "message id %s: already used", it.ID)
	}
	return receipt(r), err
}

// touch records in the session when and from where the message came.
func (k *call) touch() {
	k.meta.Updated, k.meta.Active = k.now, k.now
	if !k.in.Address.Local() {
		k.meta.Address = k.in.Address
		k.meta.Group = cmp.Or(k.in.Group, k.meta.Group)
	}
}

func receipt(r queue.Receipt) Receipt {
	rec := Receipt{Run: chela.RunID(r.Item.ID), Session: r.Item.Session, New: r.New, State: r.Item.State}
	if r.Item.Kind == queue.Command {
		rec.Command, rec.Reply = true, r.Item.Result.Text
	}
	return rec
}

// open returns the session of a message. It creates a session that does not exist,
// and resets one that has expired unless a run of it is active.
func (k *call) open(key chela.SessionKey) (m session.Meta, created bool, err error) {
	g, tx, now := k.g, k.tx, k.now
	m, err = tx.Sessions().Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return session.New(key, now), true, nil
	}
	if err != nil || g.o.Reset == nil {
		return m, false, err
	}
	reason := session.Expired(g.o.Reset(m), m, now)
	if reason == "" {
		return m, false, nil
	}
	active, err := tx.Runs().Active(key)
	if err != nil || len(active) > 0 {
		return m, false, err
	}
	old := m
	m, err = session.Reset(tx.Sessions(), key, reason, now)
	k.ended(reason, old, m)
	return m, false, err
}
