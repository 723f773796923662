package invoke

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// book is the Ledger of one call that belongs to no run. The call's row is on
// disk before the tool does something.
type book struct {
	store   store.Store
	call    session.Call
	outcome session.Outcome
}

// Start implements Ledger. A call with the same id that was begun before is a
// conflict.
func (b *book) Start(ctx context.Context, _ llm.ToolCall, e tool.Effect) error {
	b.call.State, b.call.Effect, b.call.Updated = session.Started, e.String(), time.Now()
	return b.store.Update(ctx, store.Synced, func(tx store.Tx) error { return tx.Calls().Plan(b.call) })
}

// Decision implements Ledger: nobody was asked.
func (b *book) Decision(context.Context, llm.ToolCall) (approval.Request, error) {
	return approval.Request{}, nil
}

// Always implements Ledger.
func (b *book) Always(ctx context.Context, toolName, hash string) (bool, error) {
	var ok bool
	err := b.store.View(ctx, func(r store.Reader) error {
		list, err := r.Approvals().Always(b.call.Session.Agent(), toolName)
		ok = slices.ContainsFunc(list, func(q approval.Request) bool { return q.Hash == hash })
		return err
	})
	return ok, err
}

// Suspend implements Ledger. The door does not come to it for who is alone.
func (b *book) Suspend(context.Context, llm.ToolCall, tool.Plan) error { return tool.ErrSuspended }

// Ended implements Ledger.
func (b *book) Ended(_ llm.ToolCall, o session.Outcome) { b.outcome = o }

// close stores what became of the call. One that came to nothing because the
// same was begun before leaves the row of that one as it is.
func (b *book) close(ctx context.Context) error {
	if b.outcome.Rule == "ledger" {
		return nil
	}
	err := b.store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		if b.call.State == session.Planned {
			if err := tx.Calls().Put(b.call); err != nil {
				return err
			}
		}
		return tx.Calls().Close(b.call.ID, b.outcome)
	})
	if err != nil {
		return fmt.Errorf("record of the call %s: %w", b.call.ID, err)
	}
	return nil
}
