package approval

import (
	"fmt"

	"github.com/chela-ai/chela/internal/chela"
)

// Revoke takes back what was allowed always, as who, who needs the scope to
// change rules. What began under it goes on.
func Revoke(t Table, who chela.Principal, id string) (Request, error) {
	if who.ID == "" || !who.May(chela.ScopeAdmin) {
		return Request{}, chela.Errorf(chela.CodeForbidden, "approval %s: taking it back needs the scope %s", id, chela.ScopeAdmin)
	}
	r, err := t.Get(id)
	if err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	if r.Decision != AllowAlways {
		return r, chela.Errorf(chela.CodeConflict, "approval %s: it was not allowed always", id)
	}
	r.Decision = Revoked
	if err := t.Put(r); err != nil {
		return Request{}, fmt.Errorf("approval %s: %w", id, err)
	}
	return r, nil
}
