package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

func (m methods) metadata(_ context.Context, _ rpc.Peer, in wire.ChatMetadataGet) (wire.ChatMetadata, error) {
	if _, err := rpc.AgentOf(in.AgentID, in.SessionKey, m.o.Default, m.o.Agent); err != nil {
		return wire.ChatMetadata{}, err
	}
	return m.o.Metadata(), nil
}

// maxMessage limits a single message, in bytes.
const maxMessage = wire.MaxPayload - 1<<20

// message returns one complete message.
func (m methods) message(ctx context.Context, _ rpc.Peer, in wire.ChatMessageGet) (wire.ChatMessage, error) {
	key, err := m.storedKey(ctx, in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ChatMessage{}, err
	}
	var entries []session.Entry
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := r.Sessions().Get(key)
		if err != nil {
			return err
		}
		seq, err := session.Locate(r.Sessions(), meta.ID, in.MessageID)
		if err != nil {
			return err
		}
		entries, err = r.Sessions().Entries(meta.ID, seq-1, 1)
		return err
	})
	if errors.Is(err, chela.ErrNotFound) {
		return wire.ChatMessage{Why: "not_found"}, nil
	}
	if err != nil {
		return wire.ChatMessage{}, err
	}
	msg, ok := wireview.Message(m.o.Rows.Show.Entry(entries[0]))
	if !ok {
		return wire.ChatMessage{Why: "not_visible"}, nil
	}
	if size(entries[0]) > maxMessage {
		return wire.ChatMessage{Why: "oversized"}, nil
	}
	shorten(&msg, in.MaxChars)
	return wire.ChatMessage{OK: true, Message: &msg}, nil
}

// maxLabel limits the label of a note, in bytes.
const maxLabel = 100

// inject adds a note to the transcript. It is shown but never sent to a model.
func (m methods) inject(ctx context.Context, _ rpc.Peer, in wire.ChatInject) (wire.ChatInjected, error) {
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ChatInjected{}, err
	}
	if strings.TrimSpace(in.Message) == "" {
		return wire.ChatInjected{}, rpc.Invalid("at /message: must NOT have fewer than 1 characters")
	}
	if len(in.Label) > maxLabel {
		return wire.ChatInjected{}, rpc.Invalid("at /label: must NOT have more than %d characters", maxLabel)
	}
	text := in.Message
	if in.Label != "" {
		text = "[" + in.Label + "]\n\n" + text
	}
	if m.o.Redact != nil {
		text = m.o.Redact(text)
	}
	transcript := ""
	e := session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: time.Now(), Text: text, NanoUSD: -1}
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		meta, err := wireview.FindSession(tx.Sessions(), key, "session not found")
		if err != nil {
			return err
		}
		if err := tx.Sessions().Append(meta.ID, &e); err != nil {
			return err
		}
		meta.Updated, transcript = e.Time, meta.ID
		return tx.Sessions().Put(meta)
	})
	if err != nil {
		return wire.ChatInjected{}, err
	}
	m.o.Bus.Publish(chela.Event{Session: key, Stream: chela.StreamMessage, Transcript: transcript, Data: e})
	return wire.ChatInjected{OK: true, MessageID: e.ID}, nil
}
