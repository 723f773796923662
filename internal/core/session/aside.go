package session

import (
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
)

// SetAside returns entries after which the messages of a run are not sent to a model any
// more. People still see them.
func SetAside(entries []Entry, id chela.RunID, now time.Time) []*Entry {
	var out []*Entry
	_, sent := SentEntries(entries)
	for _, e := range sent {
		if e.Run == id {
			out = append(out, &Entry{
				ID:      uuid.NewString(),
				Kind:    KindVoid,
				Time:    now,
				Run:     id,
				Voids:   Ref{Entry: e.ID},
				NanoUSD: -1,
			})
		}
	}
	return out
}

// BringBack returns entries after which the messages of a run that were set aside are sent
// again, at the end of the conversation.
func BringBack(entries []Entry, id chela.RunID, now time.Time) []*Entry {
	aside := make(map[string]bool) // since they were last brought back
	for i := range entries {
		switch e := &entries[i]; {
		case e.Run != id:
		case e.Kind == KindAgain:
			clear(aside)
		case e.Kind == KindVoid:
			aside[e.Voids.Entry] = true
		}
	}
	var again []*Entry
	for i := range entries {
		if e := &entries[i]; aside[e.ID] && e.sent() {
			again = append(again, &Entry{
				ID:      uuid.NewString(),
				Kind:    KindAgain,
				Time:    now,
				Run:     id,
				Message: e.Message,
				Origin:  e.Origin,
				Partial: e.Partial,
				NanoUSD: -1,
			})
		}
	}
	return again
}
