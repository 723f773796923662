package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// importTranscript creates a session from a transcript written elsewhere.
func (m methods) importTranscript(ctx context.Context, _ rpc.Peer,
	in wire.SessionsImport) (wire.SessionImported, error) {
	key, err := m.key(cmp.Or(in.Key, "import-"+strings.ToLower(rand.Text()[:12])), in.AgentID)
	if err != nil {
		return wire.SessionImported{}, err
	}
	if !m.o.Agent(key.Agent()) {
		return wire.SessionImported{}, rpc.UnknownAgent(key.Agent())
	}
	got, err := session.Import(strings.NewReader(in.JSONL))
	if err != nil {
		return wire.SessionImported{}, rpc.Invalid("at /jsonl: %v", err)
	}
	now := time.Now()
	meta := session.Meta{
		Key:     key,
		ID:      uuid.NewString(),
		Agent:   key.Agent(),
		Created: now,
		Started: now,
		Updated: now,
		Read:    now,
		Label:   label(cmp.Or(got.Name, in.Label)),
		Title:   got.Title,
	}
	entries := got.Adopt(now, m.o.StorePart)
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		switch _, err := tx.Sessions().Get(key); {
		case err == nil:
			return chela.Errorf(chela.CodeConflict, "session %s exists", key)
		case !errors.Is(err, chela.ErrNotFound):
			return err
		}
		if err := tx.Sessions().Put(meta); err != nil {
			return err
		}
		return tx.Sessions().Append(meta.ID, entries...)
	})
	if err != nil {
		return wire.SessionImported{}, err
	}
	m.notify(key, chela.PhaseCreated)
	return wire.SessionImported{
		OK:        true,
		Key:       string(key),
		SessionID: meta.ID,
		Entries:   len(entries),
		Skipped:   got.Skipped,
		Branched:  got.Branched,
		Doubled:   got.Duplicates,
	}, nil
}

// label converts a name to the label of a session.
func label(name string) string {
	name = strings.Join(strings.Fields(name), " ")
	return strings.ToValidUTF8(name[:min(len(name), maxLabel)], "")
}
