package inbound

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// approve is /approve. The decision is a commit of its own and final. If the
// command is delivered again, the approval is already decided.
func approve(ctx context.Context, k *call) (string, error) {
	if k.g.o.Decide == nil {
		return "Approvals are not enabled.", nil
	}
	id, decision, ok := parseApprove(k.args)
	if !ok {
		return "", refuse{"Usage: /approve [id] allow-once, allow-always or deny"}
	}
	id, err := k.resolveApproval(ctx, id)
	if err != nil {
		return "", err
	}
	req, err := k.g.o.Decide(chela.WithPrincipal(ctx, k.who), id, string(decision))
	if err != nil {
		return "", err
	}
	if req.Decision.Allows() {
		return fmt.Sprintf("Allowed (%s):\n%s", req.Decision, chunk.Fenced(req.Text)), nil
	}
	return "Denied:\n" + chunk.Fenced(req.Text), nil
}

// parseApprove parses the arguments of /approve: an optional id and a decision.
func parseApprove(args string) (id string, d approval.Decision, ok bool) {
	words := strings.Fields(args)
	switch len(words) {
	case 1:
		d, ok = approval.ParseDecision(words[0])
	case 2:
		id = words[0]
		d, ok = approval.ParseDecision(words[1])
	}
	return id, d, ok
}

// resolveApproval returns the id of the pending approval whose id starts with id.
// The empty id stands for the only one pending in this session. If no pending
// approval matches, it returns id unchanged.
func (k *call) resolveApproval(ctx context.Context, id string) (string, error) {
	list, err := store.Get(ctx, k.g.o.Store, func(r store.Reader) ([]approval.Request, error) {
		if _, err := r.Approvals().Get(id); !errors.Is(err, chela.ErrNotFound) {
			return nil, err // also one that is decided, so that nothing else is decided in its place
		}
		return r.Approvals().Pending("")
	})
	var found []string
	for _, q := range list {
		switch {
		case id != "" && strings.HasPrefix(q.ID, id), id == "" && (q.Session == k.key || q.Asked == k.key):
			found = append(found, q.ID)
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", refuse{"Several approvals are pending: " + strings.Join(found, ", ") + ". Use /approve <id> <decision>."}
	case id == "":
		return "", refuse{"No approval is pending here."}
	}
	return id, nil
}
