// Package canvas implements the methods with which clients show what the assistant shows, and
// tell it what the person does there.
package canvas

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/untrusted"
	enginecanvas "github.com/chela-ai/chela/internal/engine/canvas"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Host    *enginecanvas.Host
	Gate    *inbound.Gate
	Default chela.AgentID            // agent of the session "main"
	Agent   func(chela.AgentID) bool // reports whether the agent exists
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o, untrusted.New()}
	return []rpc.Method{
		rpc.New(wire.MethodSurfaceRefresh, wire.RoleOperator, chela.ScopeRead, m.refresh),
		rpc.New(wire.MethodCanvasView, wire.RoleOperator, chela.ScopeRead, m.view),
		rpc.New(wire.MethodCanvasAction, wire.RoleOperator, chela.ScopeWrite, m.action).StartsWork(),
		rpc.New(wire.MethodCanvasReport, wire.RoleOperator, chela.ScopeWrite, m.report),
	}
}

type methods struct {
	o     Options
	label untrusted.Labeler
}

// key returns the session named in a request.
func (m methods) key(key, agent string) (chela.SessionKey, error) {
	k, err := rpc.SessionKey(key, agent, m.o.Default)
	if err == nil && !m.o.Agent(k.Agent()) {
		err = rpc.Invalid("unknown agent id %q", k.Agent())
	}
	return k, err
}

// conn returns the id of the connection of a call.
func conn(p rpc.Peer) string {
	if c, ok := p.(rpc.Identified); ok {
		return c.ConnID()
	}
	return ""
}

// errOff says that there is no canvas.
var errOff = &chela.Error{Code: chela.CodeUnavailable, Message: "the canvas is off",
	Hint: "chela config set canvasHost.enabled true"}

// refresh gives a connection another address.
func (m methods) refresh(_ context.Context, p rpc.Peer, in wire.SurfaceRefresh) (wire.SurfaceRefreshed, error) {
	if in.Surface != wire.SurfaceCanvas {
		return wire.SurfaceRefreshed{}, rpc.Invalid("at /surface: there is no surface %.40q; there is %q", in.Surface,
			wire.SurfaceCanvas)
	}
	if !m.o.Host.On() {
		return wire.SurfaceRefreshed{}, errOff
	}
	url, expires, ok := m.o.Host.Renew(conn(p), chela.MainSession(m.o.Default))
	if !ok {
		return wire.SurfaceRefreshed{},
			wire.Errorf(wire.Unavailable, "this connection has no surface: it did not reach the gateway by HTTP")
	}
	return wire.SurfaceRefreshed{Surface: in.Surface, URLs: map[string]string{wire.SurfaceCanvas: url},
		Expires: wire.At(expires)}, nil
}

// view returns what a session shows, with an address for this connection.
func (m methods) view(_ context.Context, p rpc.Peer, in wire.CanvasSession) (wire.CanvasView, error) {
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.CanvasView{}, err
	}
	v := m.o.Host.View(key)
	out := wire.CanvasView{SessionKey: string(key), Kind: string(v.Kind), Page: v.Page, Version: v.Version}
	if !m.o.Host.On() {
		out.Kind, out.Page = "", ""
	}
	if out.Kind == "" {
		return out, nil
	}
	if url, expires, ok := m.o.Host.Renew(conn(p), key); ok {
		out.URL, out.Expires = url+v.Path(), wire.At(expires)
	}
	return out, nil
}

// Limits of an action.
const (
	maxContext = 16 << 10 // bytes
	maxKey     = 256      // bytes of an idempotency key
)

// used is what the assistant is told of an action.
type used struct {
	Action    string          `json:"action"`
	Surface   string          `json:"surface"`
	Component string          `json:"component"`
	Context   json.RawMessage `json:"context,omitempty"`
}

// action tells the assistant that the person used a control. Only controls that are there can
// be used, so that no page can invent an action.
func (m methods) action(ctx context.Context, _ rpc.Peer, in wire.CanvasAction) (wire.ChatSent, error) {
	key, err := m.key(in.SessionKey, "")
	switch {
	case err != nil:
		return wire.ChatSent{}, err
	case in.IdempotencyKey == "" || len(in.IdempotencyKey) > maxKey:
		return wire.ChatSent{}, rpc.Invalid("at /idempotencyKey: must have 1 to %d bytes", maxKey)
	case len(in.Context) > maxContext:
		return wire.ChatSent{}, rpc.Invalid("at /context: must have at most %d bytes", maxContext)
	case !m.o.Host.On():
		return wire.ChatSent{}, errOff
	case !m.o.Host.Offers(key, in.Surface, in.Component, in.Name):
		return wire.ChatSent{}, wire.Errorf(wire.InvalidRequest, "the canvas has no such control any more")
	}
	said, err := json.Marshal(used{in.Name, in.Surface, in.Component, in.Context})
	if err != nil {
		return wire.ChatSent{}, rpc.Invalid("at /context: %v", err)
	}
	rec, err := m.o.Gate.Admit(ctx, chela.Inbound{
		ID:      in.IdempotencyKey,
		Address: chela.Address{Channel: chela.LocalChannel},
		Session: key,
		Sender:  chela.Sender{ID: chela.PrincipalFrom(ctx).ID},
		Text: fmt.Sprintf("[I used a control of the canvas.]\n%s",
			m.label.Wrap("canvas", "What the control sent: "+untrusted.Data, string(said))),
	})
	if err != nil {
		return wire.ChatSent{}, err
	}
	status := wire.StatusStarted
	if !rec.New {
		status = wire.StatusInFlight
	}
	return wire.ChatSent{RunID: in.IdempotencyKey, Status: status}, nil
}

// report records what a screen could not draw.
func (m methods) report(_ context.Context, _ rpc.Peer, in wire.CanvasReport) (wire.CanvasReport, error) {
	key, err := m.key(in.SessionKey, "")
	if err != nil {
		return wire.CanvasReport{}, err
	}
	m.o.Host.Report(key, in.Message)
	return in, nil
}
