package session

import (
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ErrChanged reports that a conversation has changed since the sender of a message saw
// it.
var ErrChanged = errors.New("the conversation has changed")

// CheckSeen returns ErrChanged if the conversation is no longer in the state seen. A
// conversation that does not exist yet counts as empty.
func CheckSeen(r Reader, key chela.SessionKey, seen chela.Seen) error {
	if seen == (chela.Seen{}) {
		return nil
	}
	m, err := Lookup(r, key)
	if err != nil {
		return err
	}
	if seen.Transcript != "" && m.ID != "" && seen.Transcript != m.ID {
		return ErrChanged
	}
	if seen.Last == nil {
		return nil
	}
	last, err := LastID(r, m.ID)
	if err != nil || last == *seen.Last {
		return err
	}
	if !seen.Earlier || *seen.Last == "" {
		return ErrChanged
	}
	_, err = Locate(r, m.ID, *seen.Last)
	if errors.Is(err, chela.ErrNotFound) {
		return ErrChanged
	}
	return err
}

// LastID returns the id of the last entry of a transcript, or "" if it is empty.
func LastID(r Reader, id string) (string, error) {
	entries, err := r.Last(id, 1)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	return entries[0].ID, nil
}

// Locate returns the Seq of an entry, or chela.ErrNotFound. It searches from the end,
// because most callers look for a recent entry.
func Locate(r Reader, id, entry string) (int64, error) {
	const step = 500
	n, err := r.Count(id)
	if err != nil {
		return 0, err
	}
	for end := int64(n); end > 0; end -= step {
		after := max(0, end-step)
		entries, err := r.Entries(id, after, int(end-after))
		if err != nil {
			return 0, err
		}
		for i := range entries {
			if entries[i].ID == entry {
				return entries[i].Seq, nil
			}
		}
	}
	return 0, chela.ErrNotFound
}
