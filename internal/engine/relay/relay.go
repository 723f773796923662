package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// Lane is the lane of the runs that answer other sessions. It is not that of the sender,
// which may hold its place there while it waits.
const Lane = "nested"

const (
	maxHops    = 5  // messages that follow from each other without a person between them
	maxAbove   = 64 // runs that are looked at to count them
	maxWaiting = 20 // messages of other sessions that wait for one session
	maxNamed   = 10 // sessions that an error lists
	maxLabeled = 100
)

// Options are the dependencies of a Relay. All are required.
type Options struct {
	Store  store.Store
	Bus    *bus.Bus
	Config Config
	Redact func(string) string // removes secrets from what another session gets
}

// Config is what a Relay needs of the configuration in force. Its methods do no I/O.
type Config interface {
	// Exchange returns the limits of exchanges.
	Exchange() exchange.Config
	// HasAgent reports whether an agent exists.
	HasAgent(chela.AgentID) bool
	// Sharing returns the rule about the sessions that a session may see.
	Sharing(session.Meta) session.Sharing
}

// Relay carries messages between sessions. It is safe for concurrent use.
type Relay struct{ o Options }

// New returns a Relay.
func New(o Options) *Relay { return &Relay{o} }

// Send sends a message to another session and, if the request says so, waits for the
// reply. A repeated call sends nothing, and waits for the reply to the first message. An
// error is for the model that sends. If ctx ends, the exchange goes on.
func (r *Relay) Send(ctx context.Context, q exchange.Request) (exchange.Receipt, error) {
	if err := q.Check(); err != nil {
		return exchange.Receipt{}, err
	}
	var it queue.Item
	err := r.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		var err error
		it, err = r.put(tx, q, time.Now())
		return err
	})
	if err != nil {
		return exchange.Receipt{}, err
	}
	out := exchange.Receipt{Run: chela.RunID(it.ID), Session: it.Session,
		Result: exchange.Result{Status: exchange.Accepted}}
	if q.Wait > 0 {
		out.Result, err = r.await(ctx, it, q.Wait)
	}
	return out, err
}

// put writes the message of an exchange, and returns its item; of a repeated request,
// the item that exists.
func (r *Relay) put(tx store.Tx, q exchange.Request, now time.Time) (queue.Item, error) {
	first := exchange.Step{Exchange: q.ID}
	have, err := tx.Queue().ByKey(first.ID())
	if !errors.Is(err, chela.ErrNotFound) {
		return have, err
	}
	from, err := session.Lookup(tx.Sessions(), q.From)
	if err != nil {
		return have, err
	}
	if from.IsChild() {
		return have, chela.Errorf(chela.CodeForbidden,
			"a subagent cannot send messages to other sessions; its last message is reported to its requester")
	}
	to, err := r.target(tx.Sessions(), from, q)
	if err != nil {
		return have, err
	}
	by := run.Run{Principal: q.Principal}
	if q.Run != "" {
		if by, err = tx.Runs().Get(q.Run); err != nil {
			return have, fmt.Errorf("the run that sends: %w", err)
		}
	}
	if err := errors.Join(checkChain(tx.Runs(), by), checkRoom(tx.Queue(), to.Key)); err != nil {
		return have, err
	}
	it := queue.Item{
		ID: first.ID(), Key: first.ID(), Session: to.Key, Kind: queue.Message, State: queue.Waiting, Created: now,
		Origin: first.Origin(from.Key), Principal: by.Principal, Parent: by.ID,
		Inbound: chela.Inbound{
			Text: exchange.MessageText(from.Key, q.Text), Time: now, Address: chela.Address{Channel: chela.LocalChannel},
		},
		Overrides: run.Overrides{Lane: Lane, Tools: by.Overrides.Tools, Deliver: run.Delivery{Mode: run.DeliverSession},
			Shared: from.Shared(by)},
	}
	if by.ID != "" {
		it.Root = by.Tree()
	}
	return it, store.Enqueue(tx, it)
}

// checkChain returns why a run may not send: it answers another session already, or it
// follows from too many messages.
func checkChain(runs run.Reader, by run.Run) error {
	if s, ok := exchange.StepOf(by.Origin); ok && s != s.First() {
		return chela.Errorf(chela.CodeForbidden,
			"this turn belongs to an exchange: your answer is sent by itself, and no other message can be sent")
	}
	hops := 0
	for range maxAbove {
		if by.Origin.Exchange != "" {
			hops++
		}
		if by.Parent == "" {
			break
		}
		above, err := runs.Get(by.Parent)
		if errors.Is(err, chela.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		by = above
	}
	if hops >= maxHops {
		return chela.Errorf(chela.CodeForbidden,
			"this turn follows from %d messages between sessions; it must end before another one can be sent", hops)
	}
	return nil
}

// checkRoom returns an error if too many messages of other sessions wait for a session.
func checkRoom(items queue.Reader, key chela.SessionKey) error {
	waiting, err := items.Waiting(key)
	n := 0
	for _, it := range waiting {
		if it.Origin.Exchange != "" {
			n++
		}
	}
	if n >= maxWaiting {
		return chela.Errorf(chela.CodeUnavailable,
			"%d messages of other sessions wait for the session %s; send this one later", n, key)
	}
	return err
}

// target returns the session that a request names, if the sender may write to it.
func (r *Relay) target(sessions session.Reader, from session.Meta, q exchange.Request) (session.Meta, error) {
	key := chela.MainSession(q.Agent)
	var err error
	switch {
	case q.Label != "":
		key, err = r.labeled(sessions, from, q)
	case q.Key != "":
		agent := q.Agent
		if agent == "" {
			agent = from.Agent
		}
		key, err = chela.ParseSessionKey(q.Key, agent)
	}
	if err != nil {
		return session.Meta{}, err
	}
	if key == from.Key {
		return session.Meta{}, chela.Errorf(chela.CodeInvalid, "a session cannot send messages to itself")
	}
	if around := key.Around(); around != "" {
		return session.Meta{}, chela.Errorf(chela.CodeInvalid, "%s is the session of a thread; send the message to %s", key,
			around)
	}
	m, err := sessions.Get(key)
	if errors.Is(err, chela.ErrNotFound) && key == chela.MainSession(key.Agent()) && r.o.Config.HasAgent(key.Agent()) {
		m, err = session.Meta{Key: key, Agent: key.Agent()}, nil // the message begins it
	}
	if errors.Is(err, chela.ErrNotFound) {
		return m, session.Unseen(key)
	}
	if err != nil {
		return m, err
	}
	ok, err := r.o.Config.Sharing(from).Sees(sessions, from, m)
	if err == nil && !ok {
		err = session.Unseen(key)
	}
	return m, err
}

// labeled returns the only session with a label that the sender may see.
func (r *Relay) labeled(sessions session.Reader, from session.Meta, q exchange.Request) (chela.SessionKey, error) {
	all, _, err := sessions.List(session.Query{Label: q.Label, Agent: q.Agent, Limit: maxLabeled})
	if err != nil {
		return "", err
	}
	sharing := r.o.Config.Sharing(from)
	var found []string
	for _, m := range all {
		ok, err := sharing.Sees(sessions, from, m)
		if err != nil {
			return "", err
		}
		if ok {
			found = append(found, string(m.Key))
		}
	}
	switch len(found) {
	case 0:
		return "", chela.Errorf(chela.CodeNotFound,
			"there is no session with the label %q, or this session may not see it (tools.sessions.visibility, tools.agentToAgent)", q.Label)
	case 1:
		return chela.SessionKey(found[0]), nil
	}
	return "", chela.Errorf(chela.CodeInvalid, "several sessions have the label %q; give one of these as sessionKey: %s",
		q.Label, strings.Join(found[:min(len(found), maxNamed)], ", "))
}

// await waits for the reply to a message, for at most a time.
func (r *Relay) await(ctx context.Context, it queue.Item, limit time.Duration) (exchange.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer r.o.Bus.Subscribe(func(e chela.Event) {
		if e.End != nil || e.Stream == chela.StreamSession {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})()
	wakes := r.o.Store.Wakes(ctx, store.TopicQueue) // another process may carry out the run that answers
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		out, err := store.Get(ctx, r.o.Store,
			func(rd store.Reader) (exchange.Result, error) { return outcome(rd.Queue(), it) })
		if err != nil || out.Status != "" {
			return out, err
		}
		select {
		case <-changed:
		case <-wakes:
		case <-timer.C:
			return r.giveUp(ctx, it)
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// outcome returns the result of an exchange; the zero Result if there is none yet. it is
// the message.
func outcome(items queue.Reader, it queue.Item) (exchange.Result, error) {
	now, err := items.Get(it.ID)
	switch {
	case errors.Is(err, chela.ErrNotFound), err == nil && now.Deleted():
		return exchange.Result{Status: exchange.Failed, Error: fmt.Sprintf("the session %s was deleted", it.Session)}, nil
	case err != nil:
		return exchange.Result{}, err
	case now.Result.Outcome == "" && (now.State == queue.Cancelled || now.State == queue.Dropped):
		return exchange.Result{Status: exchange.Failed, Error: "the message was not answered: " + now.Note}, nil
	}
	return resultIn(now), nil
}

// giveUp records that the sender waits no longer. It returns the reply if that was
// faster.
func (r *Relay) giveUp(ctx context.Context, it queue.Item) (out exchange.Result, err error) {
	err = r.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		var err error
		if out, err = outcome(tx.Queue(), it); err != nil || out.Status != "" {
			return err
		}
		now, err := tx.Queue().Get(it.ID)
		out = exchange.Result{Status: exchange.Late}
		return errors.Join(err, record(tx, &now, out, time.Now()))
	})
	return out, err
}

// outcomes are the outcomes that are stored for the statuses of a result.
var outcomes = map[exchange.Status]chela.Outcome{
	exchange.OK: chela.OutcomeOK, exchange.NoReply: chela.OutcomeOK, exchange.Failed: chela.OutcomeError,
	exchange.Late: chela.OutcomeTimeout,
}

// record writes the result of an exchange into the item of its message.
func record(tx store.Tx, it *queue.Item, r exchange.Result, now time.Time) error {
	it.Result = queue.Result{Outcome: outcomes[r.Status], Ended: now, Text: r.Reply, Error: r.Error}
	return tx.Queue().Set(it.State, *it)
}

// resultIn returns the result in the item of a message; the zero Result if there is none.
func resultIn(it queue.Item) exchange.Result {
	r := exchange.Result{Reply: it.Result.Text, Error: it.Result.Error}
	switch it.Result.Outcome {
	case "":
	case chela.OutcomeError:
		r.Status = exchange.Failed
	case chela.OutcomeTimeout:
		r.Status = exchange.Late
	default:
		r.Status = exchange.NoReply
		if r.Reply != "" {
			r.Status = exchange.OK
		}
	}
	return r
}
