package session

import (
	"errors"

	"github.com/chela-ai/chela/internal/chela"
)

// ErrMoved says that a conversation is not any more what the writer of a message
// saw of it.
var ErrMoved = errors.New("the conversation went on, or is another one")

// StillAs reports whether the conversation under the key is still as it was
// seen: nil, or ErrMoved. One that does not exist yet has no entry.
func StillAs(r Reader, key chela.SessionKey, seen chela.Seen) error {
	if seen == (chela.Seen{}) {
		return nil
	}
	m, err := Lookup(r, key)
	if err != nil {
		return err
	}
	if seen.Transcript != "" && m.ID != "" && seen.Transcript != m.ID {
		return ErrMoved
	}
	if seen.Last == nil {
		return nil
	}
	last, err := LastID(r, m.ID)
	if err != nil || last == *seen.Last {
		return err
	}
	if !seen.Earlier || *seen.Last == "" {
		return ErrMoved
	}
	_, err = Locate(r, m.ID, *seen.Last)
	if errors.Is(err, chela.ErrNotFound) {
		return ErrMoved
	}
	return err
}

// LastID returns the id of a transcript's last entry; "" for an empty one.
func LastID(r Reader, id string) (string, error) {
	entries, err := r.Last(id, 1)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	return entries[0].ID, nil
}

// Locate returns the position of an entry, or chela.ErrNotFound. It looks from
// the end: what is asked for is mostly near it.
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
