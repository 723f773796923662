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
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
)

// Command is a slash command.
type Command struct {
	Name    string
	Aliases []string
	Group   string // heading in the list
	Args    string // as the help shows them; empty: it takes none
	Help    string // one line
	// Scope is what its caller needs beside being allowed to write at all.
	Scope chela.Scope

	inline  bool                                         // works inside a text too
	follows bool                                         // what stands behind it is a message, which may have attachments
	within  func(args string) bool                       // reports that args go on as a text: it is a directive in it
	before  func(context.Context, *call) (string, error) // instead of run: not part of the commit
	run     func(*call) (string, error)
}

// Commands returns the registry: all there are, in the order of the list.
func Commands() []Command {
	return slices.Concat(sessionCommands(), modelCommands(), infoCommands())
}

// usage returns how the command is written.
func (c Command) usage() string {
	if c.Args == "" {
		return "/" + c.Name
	}
	return "/" + c.Name + " " + c.Args
}

// names returns the registry by name and alias.
func names() map[string]Command {
	m := map[string]Command{}
	for _, c := range Commands() {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			if _, ok := m[n]; ok {
				panic("inbound: two commands with the name " + n)
			}
			m[n] = c
		}
	}
	return m
}

// call is one command being carried out, in one transaction. Its function may
// run again: nothing in it lives longer than the transaction.
type call struct {
	g    *Gate
	tx   store.Tx
	who  chela.Principal
	key  chela.SessionKey
	in   chela.Inbound
	args string
	now  time.Time

	meta   session.Meta
	begun  bool          // a run for the message
	stop   []chela.RunID // runs to be ended, after the commit
	events []chela.Event // to be published, after the commit
	follow bool          // the rest of the command is a message:
	then   string        // its text
	mode   queue.Mode    // its queue mode; "": the session's
	did    string        // what a command did outside of the commit
}

// refuse is what a command answers to what it cannot take. It changed nothing.
type refuse struct{ text string }

func (r refuse) Error() string { return r.text }

// refusef returns a refusal.
func refusef(format string, args ...any) error { return refuse{fmt.Sprintf(format, args...)} }

// kind says what a message is.
type kind int

const (
	text    kind = iota // words for the model
	ours                // a command
	foreign             // a command for another bot
)

// command returns the command that the whole message is, if it is one.
func (g *Gate) command(key chela.SessionKey, in chela.Inbound) (Command, words, kind) {
	if strings.EqualFold(strings.TrimSpace(in.Text), "stop") && g.addressed(in) && g.o.Live(key) {
		return g.names["stop"], words{}, ours
	}
	w, ok := parse(in.Text)
	if !ok {
		return Command{}, w, text
	}
	c, ok := g.names[w.name]
	if !ok || c.within != nil && c.within(w.args) || len(in.Media) > 0 && !c.follows {
		return Command{}, w, text
	}
	if w.bot == "" {
		return c, w, ours
	}
	if name := g.o.Bot(in.Address); name != "" && !strings.EqualFold(name, w.bot) ||
		name == "" && !in.Mentioned && in.Address.Peer.Kind != chela.Direct {
		return c, w, foreign
	}
	return c, w, ours
}

// allowed reports whether the principal may use the command.
func (c Command) allowed(who chela.Principal) bool { return c.Scope == "" || who.May(c.Scope) }

// carry carries a command out, with what belongs to it in one commit, and does
// the rest afterwards.
func (g *Gate) carry(ctx context.Context, c Command, k call) (Receipt, error) {
	did := ""
	if c.before != nil {
		known, err := g.known(ctx, dedupe(k.key, k.in))
		if err != nil || known.Session != "" {
			return known, err
		}
		if did, err = c.before(ctx, &k); err != nil {
			did = explain(err)
		}
	}
	var rec Receipt
	var done call
	err := g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		done = k
		done.tx, done.now, done.did = tx, time.Now(), did
		var err error
		rec, err = done.commit(c)
		return err
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("command /%s: %w", c.Name, err)
	}
	if !rec.New {
		return rec, nil
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	for _, id := range done.stop {
		if _, err := g.o.Abort(context.WithoutCancel(ctx), k.key, id); err != nil {
			g.o.Log.Error("stop run", "run", id, "session", k.key, "err", err)
		}
	}
	return rec, nil
}

// known returns the receipt of a message that was taken; the zero one when it
// was not.
func (g *Gate) known(ctx context.Context, key string) (rec Receipt, err error) {
	err = g.o.Store.View(ctx, func(r store.Reader) error {
		it, err := r.Queue().ByKey(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		rec = receipt(queue.Receipt{Item: it})
		return err
	})
	return rec, err
}

// commit writes the command: its key, what it changes, its answer.
func (k *call) commit(c Command) (Receipt, error) {
	it := k.g.item(k.who, k.key, k.in, k.now)
	it.Kind, it.State = queue.Command, queue.Done
	it.Inbound.Media = nil
	old, err := k.tx.Queue().ByKey(it.Key)
	if err == nil {
		return receipt(queue.Receipt{Item: old}), nil
	}
	if !errors.Is(err, chela.ErrNotFound) {
		return Receipt{}, err
	}
	if err := unused(k.tx, it); err != nil {
		return Receipt{}, err
	}
	if err := session.StillAs(k.tx.Sessions(), k.key, k.in.Seen); err != nil {
		return Receipt{}, err
	}
	k.in.Seen = chela.Seen{} // the command itself may change it
	m, born, err := k.g.open(k.tx, k.key, k.now)
	if err != nil {
		return Receipt{}, err
	}
	if born {
		k.tell(chela.Event{Stream: chela.StreamSession, Phase: "created"})
		if err := k.tx.Sessions().Put(m); err != nil {
			return Receipt{}, err
		}
	}
	k.meta = m
	reply, err := k.answer(c)
	if err != nil {
		return Receipt{}, err
	}
	k.meta.Updated, k.meta.Active = k.now, k.now
	if !k.in.Address.Local() {
		k.meta.Address = k.in.Address
	}
	if err := k.tx.Sessions().Put(k.meta); err != nil {
		return Receipt{}, err
	}
	if k.follow {
		return k.goOn()
	}
	it.Note = reply
	r, err := k.tx.Queue().Put(it)
	if err != nil {
		return Receipt{}, err
	}
	return receipt(r), k.say(chela.RunID(it.ID), it.ID, reply)
}

// answer runs the command; a refusal is its answer.
func (k *call) answer(c Command) (string, error) {
	if c.before != nil {
		return k.did, nil
	}
	reply, err := c.run(k)
	if no, ok := errors.AsType[refuse](err); ok {
		return no.text, nil
	}
	return reply, err
}

// explain is an error as people read it.
func explain(err error) string {
	if e, ok := errors.AsType[*chela.Error](err); ok && e.Hint != "" {
		return err.Error() + " (" + e.Hint + ")"
	}
	return err.Error()
}

// goOn puts the message that the rest of the command is.
func (k *call) goOn() (Receipt, error) {
	k.in.Text = k.then
	k.in.Mode = cmp.Or(string(k.mode), k.in.Mode)
	inside := k.g.strip(k)
	it := k.g.item(k.who, k.key, k.in, k.now)
	rec, _, err := k.put(it)
	if err != nil || !rec.New {
		return rec, err
	}
	if err := k.shortcuts(it.ID, inside); err != nil {
		return rec, err
	}
	return rec, k.begin(nil, it)
}

// say writes the answer into the transcript and for the channel, and has it
// published. item is the message that is the command, empty when the command
// only stands in it.
func (k *call) say(id chela.RunID, item, reply string) error {
	if reply == "" {
		return nil
	}
	e := &session.Entry{
		ID: uuid.NewString(), Kind: session.KindCommand, Time: k.now, Sender: k.in.Sender, ItemID: item,
		Text: strings.TrimSpace(k.in.Text) + "\n" + reply,
	}
	if err := k.tx.Sessions().Append(k.meta.ID, e); err != nil {
		return err
	}
	k.tell(chela.Event{Run: id, Stream: chela.StreamCommand, Phase: chela.PhaseEnd, Text: reply})
	if k.in.Address.Local() {
		return nil
	}
	rows := outbox.Rows(outbox.Row{
		Key: "command:" + string(id), Run: id, Session: k.key, Address: k.in.Address, ReplyTo: k.in.ID, Created: k.now,
	}, reply, k.g.o.Chunks(k.in.Address))
	k.tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return k.tx.Outbox().Put(rows...)
}

// tell has an event published after the commit.
func (k *call) tell(e chela.Event) {
	e.Session = k.key
	k.events = append(k.events, e)
}

// cancel takes the messages that wait out of the queue and has the runs in
// progress ended. It returns how many of each.
func (k *call) cancel(why string) (messages, runs int, err error) {
	waiting, err := k.tx.Queue().Waiting(k.key)
	if err != nil {
		return 0, 0, err
	}
	var items []queue.Item
	for _, it := range waiting {
		if it.Kind != queue.Message {
			continue
		}
		it.Note = why
		items = append(items, it)
		k.tell(chela.Event{Run: chela.RunID(it.ID), Stream: chela.StreamSession, Phase: chela.PhaseAbsorbed})
	}
	if len(items) > 0 {
		if err := k.tx.Queue().Set(queue.Cancelled, items...); err != nil {
			return 0, 0, err
		}
	}
	active, err := k.tx.Runs().Active(k.key)
	for _, r := range active {
		k.stop = append(k.stop, r.ID)
	}
	return len(items), len(active), err
}

// note adds a row about a change of settings to the transcript.
func (k *call) note(kind session.Kind, text string) error {
	return k.tx.Sessions().Append(k.meta.ID, &session.Entry{ID: uuid.NewString(), Kind: kind, Time: k.now, Text: text})
}

// shortcuts carries out the commands that stand inside a message, in the
// commit that takes it.
func (k *call) shortcuts(id string, list []string) error {
	for _, name := range list {
		c := k.g.names[name]
		reply, err := k.answer(c)
		if err != nil {
			return err
		}
		if err := k.say(chela.RunID(id+":"+c.Name), "", reply); err != nil {
			return err
		}
	}
	return nil
}
