package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// ToolOutside is the tool of a request that a client makes for something of its
// own. It is the name of no tool, so that what is allowed always for a client
// is allowed for no tool.
const ToolOutside = "(client)"

// Bounds of requests from outside.
const (
	maxAsked   = 64       // that wait at the same time
	maxOutside = 16 << 10 // bytes of one: it is shown whole
)

// Ask stores a request that a client makes for something that it will do
// itself: no call waits for it. Of r the texts, the session, the times and, when
// the client chose one, the id are taken.
func Ask(t Table, who chela.Principal, r Request, now time.Time) (Request, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopeApprovals):
		return Request{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopeApprovals)
	case r.Text == "":
		return Request{}, chela.Errorf(chela.CodeInvalid, "command is required")
	case len(r.Text)+len(r.Reason) > maxOutside:
		return Request{}, chela.Errorf(chela.CodeInvalid, "command exceeds exec approval display limit")
	}
	sum := sha256.Sum256([]byte(r.Text))
	for _, s := range []*string{&r.Text, &r.Reason} {
		var err error
		if *s, err = Show(*s); err != nil {
			return Request{}, err
		}
	}
	waiting, err := t.Pending("")
	if err != nil {
		return Request{}, fmt.Errorf("approvals: %w", err)
	}
	waiting = slices.DeleteFunc(waiting, func(w Request) bool { return w.Tool != ToolOutside })
	if len(waiting) >= maxAsked {
		return Request{}, chela.Errorf(chela.CodeFull, "too many requests of clients wait for a decision")
	}
	if r.ID == "" {
		r.ID = rand.Text()
	}
	_, err = t.Get(r.ID)
	if err == nil {
		return Request{}, chela.Errorf(chela.CodeConflict, "approval id already pending")
	}
	if !errors.Is(err, chela.ErrNotFound) {
		return Request{}, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	r.Run, r.Call, r.Tool, r.Hash, r.Requester, r.Created = "", "", ToolOutside, hex.EncodeToString(sum[:]), who, now
	r.Decision, r.By, r.Via, r.Decided = Pending, "", "", time.Time{}
	if !r.Expires.After(now) || r.Expires.After(now.Add(Lifetime)) {
		r.Expires = now.Add(Lifetime)
	}
	if err := t.Put(r); err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	return r, nil
}
