package inbound

import (
	"context"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/store"
)

// approve decides an approval. The decision is a commit of its own, and is
// taken once; offered again, the command finds it decided.
func approve(ctx context.Context, k *call) (string, error) {
	if k.g.o.Decide == nil {
		return "Nothing here asks for approval.", nil
	}
	id, decision, ok := parseApprove(k.args)
	if !ok {
		return "", refuse{"What is decided? /approve [id] allow-once, allow-always or deny"}
	}
	id, err := k.meant(ctx, id)
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

// parseApprove reads what /approve is told: a decision, and before it the id of
// what is decided about; "": of what waits here.
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

// meant returns the id of the approval that is meant: the one that waits here,
// or that begins so; what nothing that waits begins with is taken as it is.
func (k *call) meant(ctx context.Context, id string) (string, error) {
	var here, found []string
	err := k.g.o.Store.View(ctx, func(r store.Reader) error {
		list, err := r.Approvals().Pending("")
		here, found = nil, nil
		for _, q := range list {
			if q.Session == k.key {
				here = append(here, q.ID)
			}
			if strings.HasPrefix(q.ID, id) {
				found = append(found, q.ID)
			}
			if q.ID == id {
				found = []string{id}
				break
			}
		}
		return err
	})
	if id == "" {
		found = here
	}
	switch {
	case err != nil:
		return "", err
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", refuse{"Several wait: " + strings.Join(found, ", ") + ". /approve <id> decides one."}
	case id == "":
		return "", refuse{"Nothing waits for approval here."}
	}
	return id, nil
}
