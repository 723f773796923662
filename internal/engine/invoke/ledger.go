package invoke

import (
	"context"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// directLedger is the Ledger of a single call outside of any run. The call's
// record is on disk before the tool has an effect.
type directLedger struct {
	store    store.Store
	call     session.Call
	outcome  session.Outcome
	missing  bool // the caller has no such tool
	repeated bool // the call had started before
}

var _ Ledger = (*directLedger)(nil)

// Call implements Ledger.
func (l *directLedger) Call(llm.ToolCall) (session.Call, error) { return l.call, nil }

// Start implements Ledger. If a call with the same id has started before, it
// returns a conflict.
func (l *directLedger) Start(ctx context.Context, _ llm.ToolCall, e tool.Effect) error {
	l.call.State, l.call.Effect, l.call.Updated = session.Started, e.String(), time.Now()
	err := l.store.Update(ctx, store.Synced, func(tx store.Tx) error { return tx.Calls().Plan(l.call) })
	l.repeated = chela.CodeOf(err) == chela.CodeConflict
	return err
}

// Decision implements Ledger. There is never a request.
func (l *directLedger) Decision(context.Context, llm.ToolCall) (approval.Request, error) {
	return approval.Request{}, nil
}

// Always implements Ledger.
func (l *directLedger) Always(ctx context.Context, toolName, hash string) (bool, error) {
	return store.Get(ctx, l.store, func(r store.Reader) (bool, error) {
		return approval.HasStanding(r.Approvals(), l.call.Session, toolName, hash)
	})
}

// Suspend implements Ledger. It is not called, because the scope is unattended.
func (l *directLedger) Suspend(context.Context, llm.ToolCall, tool.Plan) error {
	return tool.ErrSuspended
}

// Ended implements Ledger.
func (l *directLedger) Ended(_ llm.ToolCall, o session.Outcome) { l.outcome = o }

// close stores the outcome of the call. If the call was refused because it had
// started before, the record of the earlier call remains unchanged.
func (l *directLedger) close(ctx context.Context) error {
	if l.repeated {
		return nil
	}
	err := l.store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		if l.call.State == session.Planned {
			if err := tx.Calls().Put(l.call); err != nil {
				return err
			}
		}
		return tx.Calls().Close(l.call.ID, l.outcome)
	})
	if err != nil {
		return fmt.Errorf("record of the call %s: %w", l.call.ID, err)
	}
	return nil
}
