package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// Lane is the lane of the runs, so that a flood of requests does not keep persons waiting.
const Lane = "webhook"

// Width is the number of runs of webhooks at the same time.
const Width = 8

// Options are the dependencies of an Acceptor. All are required unless stated otherwise.
type Options struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Config Settings
	// Channels returns the accounts of the configured channels, by channel.
	Channels func() map[string]map[string]error
	Redact   func(string) string // removes known secrets from texts
	// Run runs the program of a transform.
	Run  func(context.Context, Program) ([]byte, error)
	Step func(string) // called at named points; see runner.Options
}

// Settings is what an Acceptor needs of the configuration in force. Its methods do no I/O.
type Settings interface {
	// HasAgent reports whether an agent exists.
	HasAgent(chela.AgentID) bool
	// CheckModel returns why an agent cannot use a model.
	CheckModel(id chela.AgentID, ref string) error
}

// Acceptor accepts requests. It is safe for concurrent use.
type Acceptor struct {
	o     Options
	hooks atomic.Pointer[Hooks]
	label untrusted.Labeler
	room  room
}

// New returns an Acceptor that accepts nothing until SetHooks.
func New(o Options) *Acceptor {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	a := &Acceptor{o: o, label: untrusted.New(), room: room{lock: make(chan struct{}, 1)}}
	a.hooks.Store(new(Hooks))
	return a
}

// SetHooks puts the webhooks of a configuration in force, for the next requests.
func (a *Acceptor) SetHooks(h *Hooks) { a.hooks.Store(h) }

// Hooks returns the webhooks in force.
func (a *Acceptor) Hooks() *Hooks { return a.hooks.Load() }

// Receipt is the answer to an accepted request.
type Receipt struct {
	Action  Action
	Run     chela.RunID      // of a run; "": there is none
	Session chela.SessionKey // that the run or the event belongs to
	Now     bool             // of wake: not at the next heartbeat
	New     bool             // false: the request was accepted before
	Skipped bool             // a transform decided that nothing is done
}

// Accept commits what a request to h orders. An error has a [chela.Code], or is
// ErrUnauthorized or ErrBusy; other errors are not for strangers.
func (a *Acceptor) Accept(ctx context.Context, h *Hooks, r Request) (Receipt, error) {
	o, m, payload, err := a.readOrder(r, h)
	if err != nil {
		return Receipt{}, err
	}
	if m != nil && m.Transform != nil {
		skip, err := a.transform(ctx, h, m, r, payload, &o)
		if err != nil || skip {
			return Receipt{Action: o.Action, Skipped: skip}, err
		}
	}
	if err := o.check(); err != nil {
		return Receipt{}, err
	}
	it, last, err := a.item(ctx, h, &o)
	if err != nil {
		return Receipt{}, err
	}
	return a.commit(ctx, it, last, o)
}

// item returns the queue item of an order. last: its answer goes to the last chat of the
// main session.
func (a *Acceptor) item(ctx context.Context, h *Hooks, o *order) (it queue.Item, last bool, err error) {
	agent := cmp.Or(chela.AgentID(o.AgentID), chela.DefaultAgent)
	switch {
	case o.AgentID != "" && !chela.ValidAgentID(o.AgentID), !a.o.Config.HasAgent(agent):
		return it, false, badRequest("there is no agent %q", clip(string(agent), 64))
	case h.c.Agents != nil && !slices.Contains(h.c.Agents, "*") && !slices.Contains(h.c.Agents, string(agent)):
		return it, false, chela.Errorf(chela.CodeForbidden, "the agent %q is not in hooks.allowedAgentIds", agent)
	}
	key, err := h.session(o, agent)
	if err != nil {
		return it, false, err
	}
	now := time.Now()
	it = queue.Item{
		ID: uuid.NewString(), Session: key, State: queue.Waiting, Created: now,
		Origin: chela.Origin{Kind: chela.OriginWebhook, ID: o.source},
		Principal: chela.Principal{
			ID: "webhook:" + o.source, Credential: chela.WebhookCredential,
			Scopes: []chela.Scope{chela.ScopeRead, chela.ScopeWrite},
		},
		Inbound: chela.Inbound{ID: o.digest(), Text: a.text(o), Time: now},
	}
	it.Key = it.ID
	if o.key != "" {
		it.Key = strings.Join([]string{"webhook", o.source, o.key}, "\x1f")
	}
	urgent, _ := mode(o.WakeMode) // checked
	if o.Action == Wake {
		it.Kind, it.Next = queue.Event, !urgent
		return it, false, nil
	}
	it.Kind, it.Inbound.Address = queue.Message, chela.Address{Channel: chela.LocalChannel}
	it.Overrides = run.Overrides{Model: o.Model, Think: o.Thinking, Lane: Lane}
	it.Overrides.Timeout, _ = timeout(o.Timeout) // checked
	// otherwise the session is new
	if lasting, _ := persistent(o.Lasting); !lasting && cmp.Or(o.Session, h.c.Session) != "" {
		it.Overrides.Context = run.ContextFresh
	}
	if o.Model != "" {
		if err := a.o.Config.CheckModel(agent, o.Model); err != nil {
			return it, false, badRequest("model: %w", err)
		}
	}
	it.Overrides.Deliver, last, err = a.delivery(ctx, o, agent)
	it.Overrides.Deliver.Next = it.Overrides.Deliver.Mode == run.DeliverMain && !urgent
	return it, last, err
}

// text returns what the model reads.
func (a *Acceptor) text(o *order) string {
	if o.plain {
		return a.o.Redact(o.said.String())
	}
	s := ""
	if before := strings.TrimSpace(a.o.Redact(o.said.before)); before != "" {
		s = before + "\n\n"
	}
	if o.said.foreign != "" {
		from := "webhook " + o.source
		if o.Name != "" && o.Name != o.source {
			from += " (" + o.Name + ")"
		}
		s += a.label.Wrap(from, o.note, a.o.Redact(o.said.foreign))
	}
	if after := strings.TrimSpace(a.o.Redact(o.said.after)); after != "" {
		s += "\n\n" + after
	}
	return s
}

// session returns the session of an order.
func (h *Hooks) session(o *order, agent chela.AgentID) (chela.SessionKey, error) {
	if o.Session != "" && o.source == string(o.Action) && !h.c.RequestSession {
		return "", badRequest("sessionKey is not accepted in requests (hooks.allowRequestSessionKey is false)")
	}
	if o.Action == Wake && o.Session == "" {
		return chela.MainSession(agent), nil
	}
	if now, _ := mode(o.WakeMode); o.Action == Wake && !now {
		return "", badRequest("sessionKey is accepted with mode now only")
	}
	name := o.Session
	if name == "" {
		name, o.own = h.c.Session, true
	}
	if name == "" {
		name = "hook:" + uuid.NewString()
		if lasting, _ := persistent(o.Lasting); lasting {
			name = "hook:" + o.source
		}
	}
	short := strings.TrimPrefix(name, "agent:"+string(agent)+":")
	if strings.HasPrefix(short, "agent:") {
		return "", badRequest("sessionKey %q belongs to another agent than %s", clip(name, 80), agent)
	}
	prefixes := h.c.SessionPrefixes
	if len(prefixes) == 0 {
		prefixes = []string{"hook:"}
	}
	permitted := func(p string) bool { return strings.HasPrefix(short, p) || strings.HasPrefix(name, p) }
	if !o.own && !slices.ContainsFunc(prefixes, permitted) {
		return "", badRequest("sessionKey %q does not begin with one of %s (hooks.allowedSessionKeyPrefixes)", clip(name, 80),
			strings.Join(prefixes, ", "))
	}
	key, err := chela.ParseSessionKey("agent:"+string(agent)+":"+short, agent)
	if err != nil {
		return "", badRequest("%w", err)
	}
	if o.Action == Agent && (key.IsChild() || key == chela.MainSession(agent)) {
		return "", chela.Errorf(chela.CodeConflict, "the session %s is not one for webhooks", key)
	}
	return key, nil
}

// delivery returns where the answer of an order goes.
func (a *Acceptor) delivery(ctx context.Context, o *order, agent chela.AgentID) (d run.Delivery, last bool, err error) {
	d.Mode = run.DeliverMain
	if o.Channel == "" || o.Deliver != nil && !*o.Deliver {
		return d, false, nil
	}
	if o.Channel == "last" {
		return d, true, nil
	}
	accounts, ok := a.o.Channels()[o.Channel]
	if !ok {
		return d, false, badRequest("there is no channel %q", o.Channel)
	}
	if _, ok := accounts[string(o.Account)]; !ok && o.Account != "" {
		return d, false, badRequest("the channel %s has no account %q", o.Channel, o.Account)
	}
	t := channel.ParseTarget(string(o.To))
	if t.Channel != "" && t.Channel != o.Channel {
		t = channel.Target{ID: string(o.To)} // an id with a colon
	}
	if t.ID == "" {
		return d, false, badRequest("to %q has no id", o.To)
	}
	d.Mode, d.Address = run.DeliverTo, chela.Address{
		Channel: o.Channel, Account: chela.AccountID(o.Account),
		Peer: chela.Peer{Kind: cmp.Or(t.Kind, chela.Direct), ID: t.ID}, Thread: t.Thread,
	}
	if t.Kind == "" {
		d.Address, err = a.known(ctx, agent, d.Address)
	}
	return d, false, err
}

// maxSessions is the number of sessions in which a chat is looked up.
const maxSessions = 200

// known returns an address with the kind and the account of a chat that has written
// before.
func (a *Acceptor) known(ctx context.Context, agent chela.AgentID, to chela.Address) (chela.Address, error) {
	list, err := store.Get(ctx, a.o.Store, func(r store.Reader) ([]session.Meta, error) {
		list, _, err := r.Sessions().List(session.Query{Agent: agent, Archived: session.ArchivedToo, Limit: maxSessions})
		return list, err
	})
	for _, m := range list {
		at := m.Address
		if at.Channel == to.Channel && at.Peer.ID == to.Peer.ID && (to.Account == "" || to.Account == at.Account) {
			to.Account, to.Peer = at.Account, at.Peer
			break
		}
	}
	return to, err
}

// Limits of what waits.
const (
	maxWaiting   = 1000 // requests, in all sessions
	maxInSession = 100  // requests for one session
	maxEvents    = 20   // events in a main session
)

// commit stores an item, with its session.
func (a *Acceptor) commit(ctx context.Context, it queue.Item, last bool, o order) (Receipt, error) {
	if err := a.room.enter(ctx, a.o.Store); err != nil {
		return Receipt{}, err
	}
	a.o.Step("webhook.accept")
	var out queue.Receipt
	var created bool
	err := a.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		it := it
		var err error
		out, created = queue.Receipt{}, false
		have, err := tx.Queue().ByKey(it.Key)
		if !errors.Is(err, chela.ErrNotFound) {
			out.Item = have
			return err
		}
		if err := checkRoom(tx.Queue(), it); err != nil {
			return err
		}
		if last {
			m, err := session.Lookup(tx.Sessions(), chela.MainSession(it.Session.Agent()))
			if err != nil {
				return err
			}
			if !m.Address.Local() {
				it.Overrides.Deliver = run.Delivery{Mode: run.DeliverTo, Address: m.Address}
			}
		}
		if it.Kind == queue.Event {
			out, err = putWake(tx, it)
			return err
		}
		if created, err = open(tx.Sessions(), it, o); err != nil {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
		out, err = tx.Queue().Put(it)
		return err
	})
	a.room.leave(err == nil && out.New)
	if err != nil {
		return Receipt{}, err
	}
	a.o.Step("webhook.accepted")
	if created {
		a.o.Bus.Publish(chela.Event{Session: it.Session, Stream: chela.StreamSession, Phase: chela.PhaseCreated})
	}
	r := Receipt{Action: o.Action, Session: out.Item.Session, New: out.New}
	r.Now, _ = mode(o.WakeMode)
	if out.Item.Kind == queue.Message {
		r.Run = chela.RunID(out.Item.ID)
	}
	if !out.New && out.Item.Inbound.ID != it.Inbound.ID {
		return Receipt{}, chela.Errorf(chela.CodeConflict, "the idempotency key was used for another request")
	}
	a.o.Log.Info("webhook accepted", "name", o.source, "action", string(o.Action), "session", string(r.Session),
		"run", string(r.Run), "bytes", len(o.said.String()), "new", r.New)
	return r, nil
}

// putWake puts an event into the queue of its session, and requests a heartbeat of the
// session: now, or for an event with Next together with the next tick.
func putWake(tx store.Tx, it queue.Item) (queue.Receipt, error) {
	mode := heartbeat.Now
	if it.Next {
		mode = heartbeat.NextTick
	}
	it.Next = true
	out, err := tx.Queue().Put(it)
	if err != nil || !out.New {
		return out, err
	}
	tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
	tx.Wake(store.Topic{Kind: store.TopicHeartbeat})
	return out, heartbeat.Request(tx.Heartbeats(), heartbeat.Wake{
		Session:   it.Session,
		Reason:    "hook:" + cmp.Or(it.Origin.ID, "webhook"),
		Mode:      mode,
		Principal: it.Principal,
		At:        it.Created,
	})
}

// open creates the session of an item if there is none, and reports whether it did.
func open(t session.Table, it queue.Item, o order) (bool, error) {
	lasting, _ := persistent(o.Lasting) // checked
	m, err := t.Get(it.Session)
	if err == nil {
		m.Updated, m.Isolated = it.Created, !lasting
		return false, t.Put(m)
	}
	if !errors.Is(err, chela.ErrNotFound) {
		return false, err
	}
	m = session.New(it.Session, it.Created)
	m.Label, m.Isolated = "Webhook: "+cmp.Or(o.Name, o.source), !lasting
	m.Title = m.Label
	return true, t.Put(m)
}

// checkRoom returns ErrBusy if too much waits for the session of an item.
func checkRoom(t queue.Reader, it queue.Item) error {
	waiting, err := t.Waiting(it.Session)
	if err != nil {
		return err
	}
	n, limit := count(waiting, it.Kind), maxInSession
	if it.Kind == queue.Event {
		limit = maxEvents
	}
	if n >= limit {
		return fmt.Errorf("the session %s: %w", it.Session, ErrBusy)
	}
	return nil
}

// count returns the number of items of webhooks of a kind.
func count(items []queue.Item, kind queue.Kind) int {
	n := 0
	for _, it := range items {
		if it.Kind == kind && it.Origin.Kind == chela.OriginWebhook {
			n++
		}
	}
	return n
}
