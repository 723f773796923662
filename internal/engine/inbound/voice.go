package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

const (
	// messages of a session whose recordings wait for transcription; further ones are transcribed when
	// they are handled
	maxUnread  = 20
	maxHearing = 16          // messages whose recordings are transcribed at once, at most
	hearPause  = time.Second // after an error of the store
)

// Run transcribes the recordings of messages, until ctx ends. A message with a recording
// is accepted like any other, and then waits in the queue, in its place, until Run has
// stored the transcript: only then is it known whether it is a command, and whether it
// addresses the agent. After a crash the message still waits, and only the transcription
// is repeated. Questions beside a conversation are answered in the same way. Run must be
// called if Options.Transcribe or Options.Aside is set.
func (g *Gate) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	var mu sync.Mutex
	hearing := map[string]bool{} // items that are transcribed now, by id
	begin := func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		if hearing[id] {
			return false
		}
		hearing[id] = true
		return true
	}
	for ctx.Err() == nil {
		items, err := store.Get(ctx, g.o.Store,
			func(r store.Reader) ([]queue.Item, error) { return r.Queue().Unfinished(maxHearing) })
		if err != nil && ctx.Err() == nil {
			g.o.Log.Error("find unfinished messages; retrying", "err", err)
			g.hearAgain(ctx)
		}
		for _, it := range items {
			if !begin(it.ID) {
				continue
			}
			running.Go(func() {
				finish := g.hear
				if it.Kind == queue.Command {
					finish = g.answerLater
				}
				err := finish(ctx, it)
				if err != nil && ctx.Err() == nil {
					g.o.Log.Error("finish a message; retrying", "session", it.Session, "err", err)
					g.hearAgain(ctx)
				}
				mu.Lock()
				delete(hearing, it.ID)
				mu.Unlock()
				g.wakeHearing()
			})
		}
		select {
		case <-g.unread:
		case <-ctx.Done():
		}
	}
	return nil
}

// hearAgain waits after an error and has Run look again.
func (g *Gate) hearAgain(ctx context.Context) {
	t := time.NewTimer(hearPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	g.wakeHearing()
}

// wakeHearing makes Run look for messages with recordings.
func (g *Gate) wakeHearing() {
	select {
	case g.unread <- struct{}{}:
	default:
	}
}

// transcribes reports whether the recordings of a message are transcribed before it is
// handled.
func (g *Gate) transcribes(it queue.Item) bool {
	return g.o.Transcribe != nil && !it.Inbound.Edited && slices.ContainsFunc(it.Inbound.Media, isAudio) &&
		g.o.Transcribes(it)
}

func isAudio(m chela.Media) bool { return media.KindOf(m) == media.Audio }

// mayWait reports whether one more message with recordings of the session may wait for
// their transcription.
func mayWait(t queue.Reader, key chela.SessionKey) (bool, error) {
	waiting, err := t.Waiting(key)
	n := 0
	for _, it := range waiting {
		if it.Inbound.Unread {
			n++
		}
	}
	return n < maxUnread, err
}

// hear transcribes the recordings of a message and lets it go on: as a command, as a
// message for the agent, or, if it does not address the agent, not at all.
func (g *Gate) hear(ctx context.Context, it queue.Item) error {
	list, err := g.o.Transcribe(ctx, it)
	if err != nil {
		return err
	}
	it.Inbound.Media, it.Inbound.Unread = list, false
	k := call{g: g, who: it.Principal, home: it.Session, key: it.Session, in: it.Inbound, heard: &it}
	if home, err := g.session(k.who, k.in); err == nil && home != "" {
		k.home = home
	}
	spoken := transcript(list)
	if strings.TrimSpace(k.in.Text) == "" {
		said := k
		said.in.Text, said.in.Media = spokenCommand(spoken), nil
		if c, w, is := g.command(k.key, said.in); is != text {
			if said.args = w.args; c.home {
				said.key = said.home
			}
			said.writer, said.who = k.who, g.rights(k.who, k.in)
			if is == foreign || !c.allowed(said.who) {
				return g.ignore(ctx, it)
			}
			_, err := g.execute(ctx, c, said)
			return err
		}
	}
	activation, err := g.activation(ctx, k.home)
	if err != nil {
		return err
	}
	addressed := k.in
	addressed.Text += "\n" + spoken
	if !g.addressed(k.home.Agent(), addressed, activation) {
		return g.ignore(ctx, it)
	}
	return g.accept(ctx, k, spoken)
}

// activation returns whether the messages of a group session are answered without a
// mention, as its members set it.
func (g *Gate) activation(ctx context.Context, home chela.SessionKey) (string, error) {
	return store.Get(ctx, g.o.Store, func(r store.Reader) (string, error) {
		m, err := session.Lookup(r.Sessions(), home)
		return m.Activation, err
	})
}

// errUnheard reports that a message does not wait for its transcript any more.
var errUnheard = errors.New("the message does not wait any more")

// ignore removes a message that is neither a command nor addressed to the agent. Only
// its key is kept.
func (g *Gate) ignore(ctx context.Context, it queue.Item) error {
	it.State, it.Note = queue.Dropped, "not addressed to the agent"
	it.Inbound = chela.Inbound{ID: it.Inbound.ID, Address: it.Inbound.Address, Time: it.Inbound.Time}
	return g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session}) // later messages waited for it
		_, err := tx.Queue().Replace(it)
		return err
	})
}

// accept lets a message with its transcript go on to the dispatcher.
func (g *Gate) accept(ctx context.Context, k call, spoken string) error {
	var done call
	var created bool
	err := g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		done = k
		done.tx, done.now = tx, time.Now()
		var err error
		if _, created, err = done.put(*k.heard); err != nil {
			return err
		}
		if err := done.echo(spoken); err != nil {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicQueue, Session: k.key})
		return nil
	})
	switch {
	case errors.Is(err, errUnheard): // it was stopped meanwhile
		return nil
	case err != nil:
		return fmt.Errorf("accept transcript: %w", err)
	}
	if created {
		g.o.Bus.Publish(chela.Event{Session: k.key, Stream: chela.StreamSession, Phase: chela.PhaseCreated})
	}
	for _, e := range done.events {
		g.o.Bus.Publish(e)
	}
	done.notifyResets(ctx)
	done.notifyTranscript(ctx, spoken)
	return nil
}

// echo shows the transcript in the chat, if it is configured.
func (k *call) echo(spoken string) error {
	if k.g.o.Echo == nil || spoken == "" {
		return nil
	}
	format := k.g.o.Echo()
	if format == "" {
		return nil
	}
	text := strings.ReplaceAll(format, "{transcript}", spoken)
	id := chela.RunID("transcript:" + k.heard.ID)
	if err := k.tx.Sessions().Append(k.meta.ID, &session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: k.now,
		Text: text}); err != nil {
		return err
	}
	if k.in.Address.Local() {
		k.publish(chela.Event{Run: id, Stream: chela.StreamCommand, Phase: chela.PhaseEnd, Text: text})
		return nil
	}
	if !k.g.o.Sends(k.meta, k.in.Address) {
		return nil
	}
	k.tx.Wake(store.Topic{Kind: store.TopicOutbox})
	return k.tx.Outbox().Put(outbox.Rows(outbox.Row{
		Key: string(id), Run: id, Session: k.key, Address: k.in.Address, ReplyTo: k.in.ID, Created: k.now,
	}, text, k.g.o.Chunks(k.in.Address))...)
}

// replaceHeard stores what the message with recordings became. If it does not wait any
// more, the transaction fails with errUnheard.
func (k *call) replaceHeard(it queue.Item) (queue.Receipt, error) {
	it.ID, it.Key, it.Seq, it.Created = k.heard.ID, k.heard.Key, k.heard.Seq, k.heard.Created
	who, err := pairing.Current(k.tx.Devices(), k.who) // the grant may have changed since
	if err == nil && who.ID != k.who.ID {
		err = errUnheard
	}
	if err != nil {
		return queue.Receipt{}, err
	}
	ok, err := k.tx.Queue().Replace(it)
	if err == nil && !ok {
		err = errUnheard
	}
	return queue.Receipt{Item: it, New: true}, err
}

// transcript returns the transcripts of recordings.
func transcript(list []chela.Media) string {
	var out []string
	for _, m := range list {
		if isAudio(m) && m.Text != "" {
			out = append(out, m.Text)
		}
	}
	return strings.Join(out, "\n")
}

// spokenCommand returns a transcript as a person would have typed it, if it may be a
// command: "Slash status." is "/status", and "Stop!" is "stop".
func spokenCommand(s string) string {
	s = strings.TrimSpace(s)
	word, rest := cut(s)
	if strings.EqualFold(strings.TrimRight(word, ",.:"), "slash") && rest != "" {
		s = "/" + rest
	}
	if strings.HasPrefix(s, "/") {
		s = strings.TrimRight(s, ".!?。！？ ")
		if name, args := cut(s); args != "" { // "/status. please"
			s = strings.TrimRight(name, ".,") + " " + args
		}
		return s
	}
	return cmp.Or(strings.TrimRight(s, ".!。！ "), s)
}
