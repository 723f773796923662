// Package notice tells the owner something that no message asked about: a budget that is
// used up, a channel that does not work.
package notice

import (
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Options configures a Writer.
type Options struct {
	// OwnerChat reports whether an address is a chat with the owner only; nil: none is.
	OwnerChat func(chela.Address) bool
	// Sends reports whether what a session says is sent to a chat; nil:
	// [session.SendAlways].
	Sends func(session.Meta, chela.Address) bool
	// Chunks returns how texts are split for an address; nil: the defaults of package
	// chunk.
	Chunks func(chela.Address) chunk.Options
}

// Writer writes notices.
type Writer struct{ o Options }

// New returns a Writer.
func New(o Options) Writer {
	if o.OwnerChat == nil {
		o.OwnerChat = func(chela.Address) bool { return false }
	}
	if o.Sends == nil {
		o.Sends = session.SendAlways
	}
	if o.Chunks == nil {
		o.Chunks = func(chela.Address) chunk.Options { return chunk.Options{} }
	}
	return Writer{o}
}

// Target is where a notice appears: in a transcript, and in a chat.
type Target struct {
	Run        chela.RunID
	Session    chela.SessionKey
	Transcript string        // "": in none
	Address    chela.Address // local: in no chat
}

// Owner returns where the owner of an agent is told something: the main session,
// and the last chat of the agent's sessions that is the owner's and that usable accepts
// (nil: any).
func (w Writer) Owner(tx store.Tx, agent chela.AgentID, usable func(chela.Address) bool) (Target, error) {
	p := Target{Session: chela.MainSession(agent)}
	m, err := session.Lookup(tx.Sessions(), p.Session)
	if err != nil {
		return p, err
	}
	match := func(a chela.Address) bool { return w.o.OwnerChat(a) && (usable == nil || usable(a)) }
	if to, ok := session.LastAddress(tx.Sessions(), m, match); ok && w.o.Sends(m, to) {
		p.Address = to
	}
	p.Transcript = m.ID
	return p, nil
}

// Write writes a notice. It returns the event to publish after the commit. kind is the
// beginning of the keys of its rows.
func (w Writer) Write(tx store.Tx, p Target, kind, text string, now time.Time) (chela.Event, error) {
	if p.Transcript != "" {
		entry := &session.Entry{
			ID:      uuid.NewString(),
			Kind:    session.KindNotice,
			Time:    now,
			Run:     p.Run,
			Text:    text,
			NanoUSD: -1,
		}
		if err := tx.Sessions().Append(p.Transcript, entry); err != nil {
			return chela.Event{}, err
		}
	}
	if !p.Address.Local() {
		rows := outbox.Rows(outbox.Row{
			Key: kind + ":" + uuid.NewString(), Run: p.Run, Session: p.Session, Address: p.Address, Created: now,
			Origin: chela.Origin{Kind: chela.OriginSystem},
		}, text, w.o.Chunks(p.Address))
		if err := tx.Outbox().Put(rows...); err != nil {
			return chela.Event{}, err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
	}
	return chela.Event{Run: p.Run, Session: p.Session, Stream: chela.StreamNotice, Text: text}, nil
}
