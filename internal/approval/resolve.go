package approval

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// ParseDecision returns the decision that s names: a word of the protocol, or
// a short form that a person types.
func ParseDecision(s string) (Decision, bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "allow-once", "allow", "once", "yes", "y", "ok", "approve":
		return AllowOnce, true
	case "allow-always", "always":
		return AllowAlways, true
	case "deny", "no", "n", "reject":
		return Deny, true
	}
	return "", false
}

// Resolve decides the request as who, who needs the approvals scope. One that
// holds once is allowed once, also when it is to be allowed always. A request
// is decided once: a second answer is a [chela.CodeConflict] error that says
// who decided and when. One that is answered too late is stored as [Expired],
// and returned so with an error of the same code; its Decided is then now.
func Resolve(t Table, who chela.Principal, id, decision string, now time.Time) (Request, error) {
	if who.ID == "" || !who.May(chela.ScopeApprovals) {
		return Request{}, chela.Errorf(chela.CodeForbidden, "approval %s: deciding needs the scope %s", id, chela.ScopeApprovals)
	}
	d, ok := ParseDecision(decision)
	if !ok {
		return Request{}, chela.Errorf(chela.CodeInvalid, "approval %s: decision %q: want %s, %s or %s", id, decision, AllowOnce, AllowAlways, Deny)
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
	if r.Once && d == AllowAlways {
		d = AllowOnce
	}
	r.Decision, r.By, r.Via, r.Decided = d, who.ID, who.Credential, now
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

// Decider names who decided: the owner may have many devices.
func (r Request) Decider() string {
	if device, ok := strings.CutPrefix(r.Via, "device:"); ok {
		return fmt.Sprintf("%s (device %.12s)", r.By, device)
	}
	return r.By
}

// conflict says what became of a request that cannot be decided any more.
func conflict(r Request) error {
	switch r.Decision {
	case Expired:
		return chela.Errorf(chela.CodeConflict, "approval %s: expired at %s", r.ID, r.Expires.UTC().Format(time.RFC3339))
	case Revoked:
		return chela.Errorf(chela.CodeConflict, "approval %s: %s decided %s at %s, and it was taken back since", r.ID, r.Decider(), AllowAlways, r.Decided.UTC().Format(time.RFC3339))
	case Withdrawn:
		return chela.Errorf(chela.CodeConflict, "approval %s: withdrawn at %s, its run was stopped", r.ID, r.Decided.UTC().Format(time.RFC3339))
	}
	return chela.Errorf(chela.CodeConflict, "approval %s: %s decided %s at %s", r.ID, r.Decider(), r.Decision, r.Decided.UTC().Format(time.RFC3339))
}
