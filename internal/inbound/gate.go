package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// Bounds of a message.
const (
	MaxText  = 1 << 20  // bytes
	MaxMedia = 16       // attachments
	MaxBytes = 20 << 20 // bytes of all attachments
	maxID    = 256      // bytes of an id or a part of an address
)

// Receipt says what became of a message.
type Receipt struct {
	Run     chela.RunID // of the run that the message starts, if it starts one
	Session chela.SessionKey
	New     bool        // false: it was taken before
	State   queue.State // empty: it was heard and asks for nothing
	Command bool
	Reply   string // of a command
}

// Receive is Admit for channels: the sender of the message acts. A message
// that is refused is dropped without a word, so that the channel goes on; an
// error means that it is to be offered again.
func (g *Gate) Receive(ctx context.Context, in chela.Inbound) error {
	a := in.Address
	if a.Local() || in.Sender.ID == "" {
		g.o.Log.Warn("message without a sender was dropped", "channel", a.Channel, "account", a.Account)
		return nil
	}
	in.Session = ""
	ctx = chela.WithPrincipal(ctx, chela.Principal{
		ID:         a.Channel + ":" + string(a.Account) + ":" + in.Sender.ID,
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

// Admit takes a message that the principal of ctx sent. When it returned
// without an error, the message is on disk and will be answered.
func (g *Gate) Admit(ctx context.Context, in chela.Inbound) (Receipt, error) {
	who := chela.PrincipalFrom(ctx)
	if who.ID == "" {
		return Receipt{}, chela.Errorf(chela.CodeForbidden, "message from nobody: no principal")
	}
	if err := check(in); err != nil {
		return Receipt{}, err
	}
	who, err := g.o.Access(who, in)
	if err != nil {
		return Receipt{}, err
	}
	key, err := g.session(who, in)
	if err != nil {
		return Receipt{}, err
	}
	if in.Time.IsZero() {
		in.Time = time.Now()
	}
	if in.ID == "" {
		in.ID = uuid.NewString()
	}
	k := call{g: g, who: who, key: key, in: in}
	if c, w, is := g.command(key, in); is != text {
		k.args = w.args
		return g.order(ctx, c, k, is)
	}
	if !g.addressed(in) {
		return Receipt{Session: key}, nil
	}
	return g.enqueue(ctx, k)
}

// order has a command carried out, unless it is not for us, not new, or not
// for the person who wrote it.
func (g *Gate) order(ctx context.Context, c Command, k call, is kind) (Receipt, error) {
	switch {
	case is == foreign || k.in.Edited:
		return Receipt{Session: k.key}, nil
	case c.allowed(k.who):
		return g.carry(ctx, c, k)
	case k.in.Address.Local():
		return Receipt{}, chela.Errorf(chela.CodeForbidden, "/%s needs the scope %s", c.Name, c.Scope)
	}
	return Receipt{Session: k.key}, nil // strangers are not told what there is
}

// check refuses what is too large or malformed.
func check(in chela.Inbound) error {
	if len(in.Text) > MaxText {
		return chela.Errorf(chela.CodeInvalid, "message: %d bytes of text, at most %d", len(in.Text), MaxText)
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
	if strings.TrimSpace(in.Text) == "" && len(in.Media) == 0 {
		return chela.Errorf(chela.CodeInvalid, "message: neither text nor attachment")
	}
	a := in.Address
	for _, s := range [...]string{in.ID, a.Channel, string(a.Account), a.Peer.ID, a.Thread, in.Sender.ID, in.ReplyTo} {
		if len(s) > maxID || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return chela.Errorf(chela.CodeInvalid, "message: id of more than %d bytes or with control characters", maxID)
		}
	}
	return nil
}

// session returns the conversation that the message belongs to.
func (g *Gate) session(who chela.Principal, in chela.Inbound) (chela.SessionKey, error) {
	r := g.o.Route(in.Address)
	if in.Session == "" {
		return r.Session, nil
	}
	if !who.May(chela.ScopeWrite) {
		return "", chela.Errorf(chela.CodeForbidden, "%s may not name a session", who.ID)
	}
	key, err := chela.ParseSessionKey(string(in.Session), r.Agent)
	if err != nil {
		return "", chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	return key, nil
}

// addressed reports whether the message is meant for the agent.
func (g *Gate) addressed(in chela.Inbound) bool {
	a := in.Address
	group := !a.Local() && (a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room)
	return !group || in.Mentioned || g.o.Always(a)
}

// dedupe returns the key under which the message is taken once. No part holds
// a control character (see check), so that different parts never make the same
// key.
func dedupe(key chela.SessionKey, in chela.Inbound) string {
	a := in.Address
	if a.Local() {
		return "local\x1f" + string(key) + "\x1f" + in.ID
	}
	return strings.Join([]string{
		string(key.Agent()), a.Channel, string(a.Account), string(a.Peer.Kind), a.Peer.ID, a.Thread, in.ID,
	}, "\x1f")
}

// item is the message as it is stored.
func (g *Gate) item(who chela.Principal, key chela.SessionKey, in chela.Inbound, now time.Time) queue.Item {
	it := queue.Item{
		ID: in.ID, Key: dedupe(key, in), Session: key, Kind: queue.Message,
		Principal: who, Inbound: in, State: queue.Waiting, Created: now,
	}
	if !in.Address.Local() { // ids of platforms are unique to a chat only
		it.ID = uuid.NewString()
	}
	return it
}

// keep keeps the attachments, which are on disk before the row that refers to
// them. A client is told of one that is not taken; on a channel the message goes
// on without it, and says so.
func (g *Gate) keep(in *chela.Inbound) error {
	if g.o.Keep == nil || len(in.Media) == 0 {
		return nil
	}
	in.Media = slices.Clone(in.Media)
	for i, m := range in.Media {
		kept, err := g.o.Keep(m)
		switch {
		case err == nil:
			in.Media[i] = kept
		case chela.CodeOf(err) != chela.CodeInvalid || in.Address.Local():
			return err
		default:
			in.Media[i] = chela.Media{Name: m.Name, Type: m.Type, Bytes: len(m.Data), Lost: err.Error()}
		}
	}
	return nil
}

// enqueue commits the message as work, with the commands inside its text.
func (g *Gate) enqueue(ctx context.Context, k call) (Receipt, error) {
	if err := g.keep(&k.in); err != nil {
		return Receipt{}, err
	}
	var inside []string
	if !k.in.Edited {
		inside = g.strip(&k)
	}
	it := g.item(k.who, k.key, k.in, time.Now())
	place := g.o.Reserve(k.key)
	if place != nil {
		it.State, it.Run = queue.Taken, chela.RunID(it.ID)
	}
	var rec Receipt
	var done call
	var born bool
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		done = k
		done.tx, done.now = tx, it.Created
		var err error
		rec, born, err = done.put(it)
		if err != nil || !rec.New {
			return err
		}
		if err := done.shortcuts(it.ID, inside); err != nil {
			return err
		}
		return done.begin(place, it)
	})
	if place != nil {
		defer place.Leave(err == nil && done.begun) // once its events are told
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("take message: %w", err)
	}
	if born {
		g.o.Bus.Publish(chela.Event{Session: k.key, Stream: chela.StreamSession, Phase: "created"})
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	if rec.New && g.o.Live(k.key) {
		g.o.Bus.Publish(chela.Event{Run: rec.Run, Session: k.key, Stream: chela.StreamSession, Phase: "queued"})
	}
	return rec, nil
}

// begin has a run for the message begin now, or when the session is looked at.
func (k *call) begin(place Place, it queue.Item) error {
	if place != nil {
		var err error
		if k.begun, err = place.Begin(k.tx, k.meta, it); k.begun || err != nil {
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

// strip takes directives out of the message and returns the commands that are
// to be carried out beside it.
func (g *Gate) strip(k *call) []string {
	d := direct(k.in.Text, func(name string) bool {
		c, ok := g.names[name]
		return ok && c.inline && c.allowed(k.who)
	})
	if d.text == "" {
		return nil
	}
	k.in.Text = d.text
	k.in.Think = cmp.Or(k.in.Think, string(d.think))
	k.in.Mode = cmp.Or(k.in.Mode, string(d.mode))
	return d.names
}

// put stores the item with its session. born says that the session is new.
func (k *call) put(it queue.Item) (rec Receipt, born bool, err error) {
	r, err := k.tx.Queue().Put(it)
	if chela.CodeOf(err) == chela.CodeConflict { // a run has one id, wherever it is
		err = chela.Errorf(chela.CodeInvalid, "message id %s: used in another session", it.ID)
	}
	if err != nil {
		return rec, false, err
	}
	rec = receipt(r)
	if !r.New {
		return rec, false, nil
	}
	if err := session.StillAs(k.tx.Sessions(), it.Session, it.Inbound.Seen); err != nil {
		return rec, false, err
	}
	k.meta, born, err = k.g.open(k.tx, it.Session, k.now)
	if err != nil {
		return rec, born, err
	}
	k.meta.Updated, k.meta.Active = k.now, k.now
	if !it.Inbound.Address.Local() {
		k.meta.Address = it.Inbound.Address
	}
	if k.meta.Title == "" {
		k.meta.Title = title(it.Inbound.Text)
	}
	return rec, born, k.tx.Sessions().Put(k.meta)
}

// unused refuses an item whose id was given to another message: a run has one
// id, wherever it is.
func unused(tx store.Tx, it queue.Item) error {
	if old, err := tx.Queue().Get(it.ID); err == nil && old.Key != it.Key {
		return chela.Errorf(chela.CodeInvalid, "message id %s: used in another session", it.ID)
	}
	return nil
}

func receipt(r queue.Receipt) Receipt {
	rec := Receipt{Run: chela.RunID(r.Item.ID), Session: r.Item.Session, New: r.New, State: r.Item.State}
	if r.Item.Kind == queue.Command {
		rec.Command, rec.Reply = true, r.Item.Note
	}
	return rec
}

// open returns the session as the message finds it: made now if there is none,
// begun anew if it has expired and nothing of it is in progress.
func (g *Gate) open(tx store.Tx, key chela.SessionKey, now time.Time) (m session.Meta, born bool, err error) {
	m, err = tx.Sessions().Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return session.Meta{
			Key: key, ID: uuid.NewString(), Agent: key.Agent(), Created: now, Started: now,
		}, true, nil
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
	m, err = session.Reset(tx.Sessions(), key, reason, now)
	return m, false, err
}

// title is the first words of a message.
func title(text string) string {
	const most = 60
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(line)
	var b strings.Builder
	n := 0
	for _, w := range words {
		size := len([]rune(w))
		if n > 0 && n+1+size > most {
			return b.String() + "…"
		}
		if n > 0 {
			b.WriteByte(' ')
			n++
		}
		b.WriteString(w)
		n += size
	}
	if rs := []rune(b.String()); len(rs) > most {
		return string(rs[:most]) + "…"
	}
	return b.String()
}
