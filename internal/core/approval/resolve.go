package approval

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ParseDecision parses a decision: a value of the protocol, or a short form that a
// person types.
func ParseDecision(s string) (Decision, bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "allow-once", "allow", "once", "yes", "y", "ok", "approve":
		return AllowOnce, true
	case "allow-session", "session":
		return AllowSession, true
	case "allow-always", "always":
		return AllowAlways, true
	case "deny", "no", "n", "reject", Unasked:
		return Deny, true
	}
	return "", false
}

// Unasked is the decision of a client that denies a request because it has nobody to ask.
const Unasked = "deny-unasked"

// Nobody is the value of [Request.By] after [Unasked].
const Nobody = "nobody"

// Resolve decides a request on behalf of a principal with the approvals scope. If
// Once is set, AllowSession and AllowAlways become AllowOnce. A request is decided
// only once: for a decided request Resolve returns a [chela.CodeConflict] error that
// names the principal and the time of the decision. If the request has expired,
// Resolve stores it as [Expired] and returns it with an error of the same code.
func Resolve(t Table, who chela.Principal, id, decision string, now time.Time) (Request, error) {
	if who.ID == "" || !who.May(chela.ScopeApprovals) {
		return Request{}, chela.Errorf(chela.CodeForbidden, "approval %s: deciding needs the scope %s", id,
			chela.ScopeApprovals)
	}
	d, ok := ParseDecision(decision)
	if !ok {
		return Request{}, chela.Errorf(chela.CodeInvalid, "approval %s: decision %q: want %s, %s or %s", id, decision,
			AllowOnce, AllowAlways, Deny)
	}
	r, err := t.Get(id)
	switch {
	case errors.Is(err, chela.ErrNotFound):
		return Request{}, chela.Errorf(chela.CodeNotFound, "approval %s: %w", id, chela.ErrNotFound)
	case err != nil:
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	if r.Decision != Pending {
		return r, conflict(r)
	}
	if r.Once && d.Standing() {
		d = AllowOnce
	}
	r.Decision, r.By, r.Via, r.Decided = d, who.ID, who.Credential, now
	if decision == Unasked {
		r.By, r.Via = Nobody, ""
	}
	if !r.Expires.IsZero() && !now.Before(r.Expires) {
		r.Decision, r.By, r.Via = Expired, "expiry", ""
	}
	if err := t.Put(r); err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	if r.Decision == Expired {
		return r, conflict(r)
	}
	return r, nil
}

// Decider returns the principal that decided the request, with its device if it has
// one, because the owner may use several devices.
func (r Request) Decider() string {
	if device, ok := chela.DeviceOf(r.Via); ok {
		return fmt.Sprintf("%s (device %.12s)", r.By, device)
	}
	return r.By
}

// conflict returns the error for a request that is already decided.
func conflict(r Request) error {
	switch r.Decision {
	case Expired:
		return chela.Errorf(chela.CodeConflict, "approval %s: expired at %s", r.ID, r.Expires.UTC().Format(time.RFC3339))
	case Revoked:
		return chela.Errorf(chela.CodeConflict, "approval %s: %s allowed it at %s, and the permission was revoked later",
			r.ID, r.Decider(), r.Decided.UTC().Format(time.RFC3339))
	case Withdrawn:
		return chela.Errorf(chela.CodeConflict, "approval %s: withdrawn at %s, its run was stopped", r.ID,
			r.Decided.UTC().Format(time.RFC3339))
	}
	return chela.Errorf(chela.CodeConflict, "approval %s: %s decided %s at %s", r.ID, r.Decider(), r.Decision,
		r.Decided.UTC().Format(time.RFC3339))
}
