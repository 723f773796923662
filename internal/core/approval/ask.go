package approval

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ToolClient is the tool name of requests that a client makes for an action of its
// own. No tool has this name, so permissions given to clients never apply to a tool.
const ToolClient = "(client)"

// Limits for requests of clients.
const (
	maxPending    = 64       // pending requests
	maxClientText = 16 << 10 // bytes of the text and the reason of a request
)

// Ask stores the request of a client for an action that the client carries out
// itself; no tool call waits for it. Ask uses only Text, Reason, Session, Asked,
// Once, Rights, Expires and, unless it is empty, ID of r.
func Ask(t Table, who chela.Principal, r Request, now time.Time) (Request, error) {
	switch {
	case who.ID == "" || !who.May(chela.ScopeApprovals):
		return Request{}, chela.Errorf(chela.CodeForbidden, "missing scope: %s", chela.ScopeApprovals)
	case r.Text == "":
		return Request{}, chela.Errorf(chela.CodeInvalid, "command is required")
	case len(r.Text)+len(r.Reason) > maxClientText:
		return Request{}, chela.Errorf(chela.CodeInvalid, "command exceeds exec approval display limit")
	}
	sum := sha256.Sum256([]byte(r.Text))
	for _, s := range []*string{&r.Text, &r.Reason} {
		var err error
		if *s, err = Escape(*s); err != nil {
			return Request{}, err
		}
	}
	pending, err := t.Pending("")
	if err != nil {
		return Request{}, fmt.Errorf("approvals: %w", err)
	}
	pending = slices.DeleteFunc(pending, func(w Request) bool { return w.Tool != ToolClient })
	if len(pending) >= maxPending {
		return Request{}, chela.Errorf(chela.CodeFull, "too many client requests are pending")
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
	r.Run, r.Call, r.Tool, r.Hash, r.Requester, r.Created = "", "", ToolClient, hex.EncodeToString(sum[:]), who, now
	r.Decision, r.By, r.Via, r.Decided = Pending, "", "", time.Time{}
	if !r.Expires.After(now) || r.Expires.After(now.Add(Lifetime)) {
		r.Expires = now.Add(Lifetime)
	}
	if err := t.Put(r); err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", r.ID, err)
	}
	return r, nil
}
