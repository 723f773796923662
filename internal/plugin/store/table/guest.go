package table

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
)

// guests is the table of people who are admitted on channels, or ask for it.
type guests struct{ c *Tables }

var _ admission.Table = guests{}

const guestIntact = "intact(n, channel, account, id, guest, crc)"

func (t guests) list(where string, args ...any) ([]admission.Guest, error) {
	return Collect(t.c, ScanJSON[admission.Guest], "SELECT guest, "+guestIntact+" FROM guest WHERE "+
		where+" ORDER BY n", args...)
}

// Get returns a guest.
func (t guests) Get(channel string, account chela.AccountID, id string) (admission.Guest, error) {
	list, err := t.list("channel = ? AND account = ? AND id = ?", channel, string(account), id)
	if err != nil {
		return admission.Guest{}, err
	}
	if len(list) == 0 {
		return admission.Guest{}, fmt.Errorf("guest %s of %s: %w", id, channel, chela.ErrNotFound)
	}
	return list[0], nil
}

// List returns all guests in the order in which they first asked.
func (t guests) List() ([]admission.Guest, error) { return t.list("TRUE") }

// Put stores a guest by channel, account and id.
func (t guests) Put(g admission.Guest) error {
	guest, err := encode(g)
	if err != nil {
		return fmt.Errorf("guest %s of %s: %w", g.ID, g.Channel, err)
	}
	_, err = t.c.Exec(`INSERT INTO guest (channel, account, id, guest) VALUES (?, ?, ?, ?)
ON CONFLICT (channel, account, id) DO UPDATE SET guest = excluded.guest WHERE `+guestIntact, g.Channel,
		string(g.Account), g.ID, guest)
	return err
}

// Delete removes a guest.
func (t guests) Delete(channel string, account chela.AccountID, id string) error {
	_, err := t.c.Exec("DELETE FROM guest WHERE channel = ? AND account = ? AND id = ?", channel, string(account), id)
	return err
}
