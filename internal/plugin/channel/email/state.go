package email

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

const (
	stateFile = "mail.json"
	maxState  = 16 << 20 // bytes
	maxRecent = 1000     // mails that are recognized after a change of the UIDVALIDITY
	maxPeers  = 1000     // people whose mails can be answered in their thread
	maxMails  = 8        // of one person
	maxRefs   = 10       // earlier mails of a thread
)

// state is what is remembered of an account, in a file.
//
// Validity and Last are the cursor: mails with a UID up to Last were handled. If the
// server has given new UIDs to all mails, it says so by another UIDVALIDITY. Newest and
// Recent then tell which mails were handled before: those that arrived before the newest
// handled one, and those whose keys are known. The mails that are in the mailbox at the
// change, with UIDs up to Until, are compared with them; later ones are new.
type state struct {
	Account  string           `json:"account"` // the mailbox to which the state belongs
	Validity uint32           `json:"uidValidity"`
	Last     uint32           `json:"last"`
	Newest   int64            `json:"newest"` // when the newest handled mail arrived, in seconds
	Since    int64            `json:"since,omitempty"`
	Until    uint32           `json:"until,omitempty"`
	Recent   []string         `json:"recent,omitempty"`
	Peers    map[string]*peer `json:"peers,omitempty"` // by address
}

// peer is a correspondent.
type peer struct {
	At    int64  `json:"at"`    // of the last mail, in seconds
	Mails []memo `json:"mails"` // the latest last
}

// memo is what is needed to answer a mail.
type memo struct {
	ID      string   `json:"id"` // of the message
	Refs    []string `json:"refs,omitempty"`
	Subject string   `json:"subject,omitempty"`
}

// loadLocked reads the state once.
func (b *bot) loadLocked() error {
	if b.state != nil {
		return nil
	}
	file := filepath.Join(b.env.Dir, stateFile)
	st := &state{}
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxState {
		err = fmt.Errorf("%s is too long", file)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(file)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("email: %w", err)
	case json.Unmarshal(data, st) != nil:
		b.env.Log.Warn("the file of the account is damaged and not used; only new mails are read", "file", stateFile)
		st = &state{}
	}
	if account := b.c.imap.user + " " + b.c.imap.addr + " " + b.c.Mailbox; st.Account != account {
		st = &state{Account: account, Peers: st.Peers}
	}
	if st.Peers == nil {
		st.Peers = map[string]*peer{}
	}
	b.state = st
	return nil
}

// change changes the state and stores it.
func (b *bot) change(f func(*state)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return err
	}
	f(b.state)
	data, err := json.Marshal(b.state)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.env.Dir, 0o700); err != nil {
		return fmt.Errorf("email: %w", err)
	}
	if err := atomicfile.Write(filepath.Join(b.env.Dir, stateFile), data, 0o600); err != nil {
		return fmt.Errorf("email: %w", err)
	}
	return nil
}

// cursor returns a copy of the state without the correspondents.
func (b *bot) cursor() (state, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return state{}, err
	}
	st := *b.state
	st.Peers, st.Recent = nil, slices.Clone(st.Recent)
	return st, nil
}

// handled notes that a mail was handled.
func (st *state) handled(uid uint32, key string, arrived time.Time) {
	st.Last = max(st.Last, uid)
	if st.Last >= st.Until {
		st.Until, st.Since = 0, 0
	}
	if arrived.IsZero() {
		return
	}
	st.Newest = max(st.Newest, arrived.Unix())
	st.Recent = append(st.Recent, key)
	if n := len(st.Recent) - maxRecent; n > 0 {
		st.Recent = slices.Delete(st.Recent, 0, n)
	}
}

// known reports whether a mail that was in the mailbox when its UIDs changed was handled
// before. A mail that arrives has a new date, also if it was on its way for a day. One that
// was copied into the mailbox has an old one.
func (st *state) known(uid uint32, key string, arrived, written time.Time) bool {
	const late = 48 * time.Hour
	if uid > st.Until {
		return false
	}
	return arrived.Unix() < st.Since || slices.Contains(st.Recent, key) ||
		!written.IsZero() && written.Before(time.Unix(st.Since, 0).Add(-late))
}

// keyOf returns the key by which a mail is recognized in another mailbox.
func keyOf(h header, raw []byte) string {
	sum := sha256.Sum256(raw)
	if id := h.messageID(); id != "" {
		sum = sha256.Sum256([]byte(id))
	}
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// note remembers a mail, so that it can be answered in its thread. The correspondent who
// was silent the longest is forgotten if there are too many.
func (b *bot) note(address string, m memo) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return err
	}
	peers := b.state.Peers
	p := peers[address]
	if p == nil {
		if len(peers) >= maxPeers {
			oldest := ""
			for a, q := range peers {
				if oldest == "" || q.At < peers[oldest].At {
					oldest = a
				}
			}
			delete(peers, oldest)
		}
		p = &peer{}
		peers[address] = p
	}
	p.At = time.Now().Unix()
	p.Mails = slices.DeleteFunc(p.Mails, func(o memo) bool { return o.ID == m.ID })
	p.Mails = append(p.Mails, m)
	if n := len(p.Mails) - maxMails; n > 0 {
		p.Mails = slices.Delete(p.Mails, 0, n)
	}
	return nil
}

// thread returns the mail of a person that a mail to them answers: the one with the id, or
// else the last one. ok is false if there is none.
func (b *bot) thread(address, id string) (m memo, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.loadLocked(); err != nil {
		return memo{}, false, err
	}
	p := b.state.Peers[address]
	if p == nil || len(p.Mails) == 0 {
		return memo{}, false, nil
	}
	m = p.Mails[len(p.Mails)-1]
	if i := slices.IndexFunc(p.Mails, func(o memo) bool { return o.ID == id }); i >= 0 {
		m = p.Mails[i]
	}
	m.Refs = slices.Clone(m.Refs)
	return m, true, nil
}
