package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// invoke carries out one call. A call that comes to nothing is a result too.
func (o Options) invoke(ctx context.Context, p rpc.Peer, in wire.ToolsInvoke) (wire.ToolsInvoked, error) {
	p.Yield()
	a, err := o.Invoke(ctx, chela.PrincipalFrom(ctx), invoke.Errand{
		Tool: in.Name, Args: json.RawMessage(in.Args), Session: in.SessionKey, Agent: in.AgentID, Key: in.Key,
	})
	if err != nil {
		return wire.ToolsInvoked{}, err
	}
	out := wire.ToolsInvoked{OK: a.Refusal == "", Name: a.Tool}
	if out.OK {
		out.Output, out.Source = shape.Output(a.Result), "core"
		return out, nil
	}
	out.NeedsApproval, out.Error = a.Approval, &wire.ToolError{Code: code(a), Message: a.Text}
	return out, nil
}

// code names what became of a call as the protocol does.
func code(a invoke.Answer) string {
	switch {
	case a.Approval:
		return "requires_approval"
	case a.Refusal == invoke.Invalid:
		return "validation_error"
	case a.Refusal == invoke.Missing:
		return "not_found"
	case a.Refusal == invoke.Blocked:
		return "forbidden"
	}
	return "internal_error"
}

// Bounds of tools.calls.
const (
	fewCalls  = 50
	manyCalls = 500
)

// calls returns the record of calls.
func (o Options) calls(ctx context.Context, _ rpc.Peer, in wire.ToolsCallsGet) (wire.ToolsCalls, error) {
	const method = wire.MethodToolsCalls
	if in.Limit < 0 || in.Limit > manyCalls {
		return wire.ToolsCalls{}, rpc.Invalid(method, "limit must be between 1 and %d", manyCalls)
	}
	if in.Limit == 0 {
		in.Limit = fewCalls
	}
	q := session.CallQuery{
		Run: chela.RunID(in.RunID), Tool: in.Tool, Decision: in.Decision, Result: in.Outcome, Before: in.Before, Limit: in.Limit + 1,
	}
	if in.Since > 0 {
		q.Since = time.UnixMilli(in.Since)
	}
	if in.SessionKey != "" {
		key, err := o.session(method, in.SessionKey, "")
		if err != nil {
			return wire.ToolsCalls{}, err
		}
		q.Session = key
	}
	var list []session.Call
	err := o.Store.View(ctx, func(r store.Reader) error {
		var err error
		list, err = r.Calls().Recent(q)
		return err
	})
	if err != nil {
		return wire.ToolsCalls{}, err
	}
	out := wire.ToolsCalls{Calls: []wire.ToolCalled{}}
	if len(list) > in.Limit {
		list, out.More = list[:in.Limit], true
	}
	for _, c := range list {
		out.Calls = append(out.Calls, shape.Called(c))
	}
	return out, nil
}
