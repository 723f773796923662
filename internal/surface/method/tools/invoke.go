package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// invoke executes one tool call. A failed call is also a result.
func (o Options) invoke(ctx context.Context, p rpc.Peer, in wire.ToolsInvoke) (wire.ToolsInvoked, error) {
	if err := rpc.ReadOrigin(in.Origin); err != nil {
		return wire.ToolsInvoked{}, err
	}
	p.Yield()
	a, err := o.Invoke(ctx, chela.PrincipalFrom(ctx), invoke.DirectCall{
		Tool: in.Name, Args: json.RawMessage(in.Args), Session: in.SessionKey, Agent: in.AgentID, Key: in.Key,
	})
	if err != nil {
		return wire.ToolsInvoked{}, err
	}
	out := wire.ToolsInvoked{OK: a.Refusal == "", Name: a.Tool}
	if out.OK {
		out.Output, out.Source = wireview.Output(a.Result), "core"
		return out, nil
	}
	out.NeedsApproval, out.Error = a.Approval, &wire.ToolError{Code: code(a), Message: a.Text}
	return out, nil
}

// code returns the protocol's code of a refused call.
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

// Limits of tools.calls.
const (
	defaultCalls = 50
	maxCalls     = 500
)

// calls returns recorded calls.
func (o Options) calls(ctx context.Context, _ rpc.Peer, in wire.ToolsCallsGet) (wire.ToolsCalls, error) {
	if in.Limit < 0 || in.Limit > maxCalls {
		return wire.ToolsCalls{}, rpc.Invalid("limit must be between 1 and %d", maxCalls)
	}
	if in.Limit == 0 {
		in.Limit = defaultCalls
	}
	q := session.CallQuery{
		Run:      chela.RunID(in.RunID),
		Tool:     in.Tool,
		Decision: session.Decision(in.Decision),
		Result:   session.Result(in.Outcome),
		Before:   in.Before,
		Limit:    in.Limit + 1,
	}
	if in.Since > 0 {
		q.Since = time.UnixMilli(in.Since)
	}
	if in.SessionKey != "" {
		key, err := o.session(in.SessionKey, "")
		if err != nil {
			return wire.ToolsCalls{}, err
		}
		q.Session = key
	}
	list, err := store.Get(ctx, o.Store, func(r store.Reader) ([]session.Call, error) { return r.Calls().Recent(q) })
	if err != nil {
		return wire.ToolsCalls{}, err
	}
	out := wire.ToolsCalls{Calls: []wire.ToolCalled{}}
	if len(list) > in.Limit {
		list, out.More = list[:in.Limit], true
	}
	for _, c := range list {
		out.Calls = append(out.Calls, wireview.Called(c))
	}
	return out, nil
}
