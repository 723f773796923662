package approval

import (
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Revoke withdraws a standing permission on behalf of a principal with the admin
// scope. Calls that were started under the permission continue.
func Revoke(t Table, who chela.Principal, id string) (Request, error) {
	if who.ID == "" || !who.May(chela.ScopeAdmin) {
		return Request{}, chela.Errorf(chela.CodeForbidden, "approval %s: revoking it needs the scope %s", id,
			chela.ScopeAdmin)
	}
	r, err := t.Get(id)
	if err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	if !r.Decision.Standing() {
		return r, chela.Errorf(chela.CodeConflict, "approval %s: not a standing permission", id)
	}
	r.Decision = Revoked
	if err := t.Put(r); err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	return r, nil
}

// HasStanding reports whether a standing permission of the session covers the plan
// with the hash.
func HasStanding(r Reader, key chela.SessionKey, tool, hash string) (bool, error) {
	list, err := r.Standing(key, tool)
	return slices.ContainsFunc(list, func(q Request) bool { return q.Hash == hash }), err
}
