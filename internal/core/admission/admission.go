// Package admission defines who may write to the assistant on channels.
//
// [Rules] are the configuration of an account, and [Rules.Decide] applies them to a
// message. A stranger in a direct chat gets a code, once, and becomes a [Guest] when the
// owner approves the code. Guests are rows of the store: they are admitted to direct chats
// of that account only, never to groups.
package admission

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

const (
	// TTL is how long a code is valid.
	TTL = time.Hour
	// MaxPending is the maximum number of strangers who wait for approval on an account.
	// Further ones get no code.
	MaxPending = 3
)

// Guest is a person whom the configuration does not name: somebody who asked to be
// admitted, or who was.
type Guest struct {
	Channel  string          `json:"channel"`
	Account  chela.AccountID `json:"account,omitempty"`
	ID       string          `json:"id"` // the immutable id on the platform
	Name     string          `json:"name,omitempty"`
	Address  chela.Address   `json:"address"`        // of the direct chat
	Code     string          `json:"code,omitempty"` // of the request; empty: admitted
	Asked    time.Time       `json:"asked"`
	Admitted time.Time       `json:"admitted,omitzero"` // zero: not admitted
}

// Pending reports whether g waits for approval at a time.
func (g Guest) Pending(now time.Time) bool {
	return g.Admitted.IsZero() && now.Before(g.Asked.Add(TTL))
}

// Reader reads the guests.
type Reader interface {
	// Get returns a guest, or chela.ErrNotFound.
	Get(channel string, account chela.AccountID, id string) (Guest, error)
	// List returns all guests, also those whose request has expired, in the order in which
	// they first asked.
	List() ([]Guest, error)
}

// Table reads and writes the guests in a transaction.
type Table interface {
	Reader
	// Put stores a guest by channel, account and id.
	Put(Guest) error
	// Delete removes a guest if there is one.
	Delete(channel string, account chela.AccountID, id string) error
}

// letters are those of codes: none can be mistaken for another one.
const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// codeLen is the length of a code.
const codeLen = 8

func newCode() string {
	b := make([]byte, codeLen)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)] // 32 letters: each is as likely as the others
	}
	return string(b)
}

// Ask records that a stranger wants to be admitted. It returns the new request, or false if
// the stranger gets no answer, because an earlier request is valid or too many strangers
// wait. Requests that have expired are deleted.
func Ask(t Table, in chela.Inbound, now time.Time) (Guest, bool, error) {
	a := in.Address
	g := Guest{
		Channel: a.Channel,
		Account: a.Account,
		ID:      in.Sender.ID,
		Name:    in.Sender.Name,
		Address: a,
		Code:    newCode(),
		Asked:   now,
	}
	list, err := t.List()
	if err != nil {
		return g, false, err
	}
	waiting := 0
	for _, have := range list {
		if have.Channel != g.Channel || have.Account != g.Account || !have.Admitted.IsZero() {
			continue
		}
		switch {
		case !have.Pending(now):
			if err := t.Delete(have.Channel, have.Account, have.ID); err != nil {
				return g, false, err
			}
		case have.ID == g.ID:
			return g, false, nil
		default:
			waiting++
		}
	}
	if waiting >= MaxPending {
		return g, false, nil
	}
	return g, true, t.Put(g)
}

// Find returns the request of a channel with a code, in any case of letters. account is
// the account; "": any.
func Find(r Reader, channel string, account chela.AccountID, code string, now time.Time) (Guest, error) {
	list, err := r.List()
	if err != nil {
		return Guest{}, err
	}
	code = strings.ToUpper(strings.TrimSpace(code))
	i := slices.IndexFunc(list, func(g Guest) bool {
		return g.Channel == channel && (account == "" || g.Account == account) && g.Code == code &&
			code != "" && g.Pending(now)
	})
	if i < 0 {
		return Guest{}, chela.Errorf(chela.CodeNotFound,
			"no request on %s has the code %q; codes are valid for an hour (chela pairing list)", channel, code)
	}
	return list[i], nil
}

// Approve admits the guest with a code.
func Approve(t Table, channel string, account chela.AccountID, code string, now time.Time) (Guest, error) {
	g, err := Find(t, channel, account, code, now)
	if err != nil {
		return g, err
	}
	g.Code, g.Admitted = "", now
	return g, t.Put(g)
}

// Deny deletes the request with a code.
func Deny(t Table, channel string, account chela.AccountID, code string, now time.Time) (Guest, error) {
	g, err := Find(t, channel, account, code, now)
	if err != nil {
		return g, err
	}
	return g, t.Delete(g.Channel, g.Account, g.ID)
}
