package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// Peer is the connection of a call. A Peer belongs to one call.
type Peer interface {
	// Accept sends the first of two answers and yields; see Yield. The
	// result of the function is the second answer.
	Accept(payload any)
	// Yield starts the next request of the connection. Requests are
	// executed one after another, so a long call should yield.
	Yield()
	// TrackRun records that this connection starts the run. The connection
	// will receive the run's tool events. It receives no event before the
	// answer of the call: clients take the run for active from the answer
	// on.
	TrackRun(chela.RunID)
	// Subscribe starts or ends the connection's subscription to the
	// messages and changes of a session. The empty key stands for all
	// sessions.
	Subscribe(key chela.SessionKey, on bool)
}

// Method is a method of the gateway.
type Method struct {
	name       string
	role       string
	scope      chela.Scope
	startsWork bool
	params     paramSpec
	call       func(context.Context, Peer, json.RawMessage) (any, error)
}

// New returns a method. With an empty scope the function must check the caller
// itself with [Need], because the required scope depends on the parameters. New
// panics if P is not a struct.
func New[P, R any](name, role string, s chela.Scope, f func(context.Context, Peer, P) (R, error)) Method {
	m := Method{name: name, role: role, scope: s, params: specOf(name, reflect.TypeFor[P]())}
	m.call = func(ctx context.Context, p Peer, raw json.RawMessage) (any, error) {
		var params P
		if err := decode(raw, &params); err != nil {
			return nil, err
		}
		return f(ctx, p, params)
	}
	return m
}

// Ignoring returns a copy of m that accepts and ignores the named properties.
// Clients send them for other gateways.
func (m Method) Ignoring(names ...string) Method {
	m.params.known = maps.Clone(m.params.known)
	for _, n := range names {
		m.params.known[n] = true
	}
	return m
}

// StartsWork returns a copy of m that is marked as possibly causing work of a
// model or a tool.
func (m Method) StartsWork() Method {
	m.startsWork = true
	return m
}

// Name returns the name of the method.
func (m Method) Name() string { return m.name }

// Set is a set of methods by name. The zero Set is empty.
type Set struct {
	methods map[string]Method
}

// NewSet returns a set of the methods. It panics if two have the same name.
func NewSet(groups ...[]Method) Set {
	s := Set{map[string]Method{}}
	for _, m := range slices.Concat(groups...) {
		if _, dup := s.methods[m.name]; dup {
			panic("rpc: two methods named " + m.name)
		}
		s.methods[m.name] = m
	}
	return s
}

// MethodInfo describes a method's parameters and the rights it needs.
type MethodInfo struct {
	Method     string
	Role       string
	Scope      chela.Scope // "": checked by the method, depending on the parameters
	StartsWork bool        // a call may cause work of a model or a tool
	Params     []string    // known properties, sorted
	Required   []string    // required properties
}

// Infos describes the methods, sorted by name.
func (s Set) Infos() []MethodInfo {
	var out []MethodInfo
	for _, name := range s.Names() {
		m := s.methods[name]
		out = append(out, MethodInfo{name, m.role, m.scope, m.startsWork, slices.Sorted(maps.Keys(m.params.known)), slices.Clone(m.params.required)})
	}
	return out
}

// Names returns the names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.methods)) }

// Call calls a method as a caller in a role. The caller's principal is in ctx.
func (s Set) Call(ctx context.Context, role string, p Peer, method string, params json.RawMessage) (any, error) {
	m, ok := s.methods[method]
	if !ok {
		return nil, wire.Errorf(wire.InvalidRequest, "unknown method: %s", method)
	}
	if role != m.role {
		return nil, &RoleError{role}
	}
	if m.scope != "" {
		if err := Need(ctx, m.scope); err != nil {
			return nil, err
		}
	}
	if err := m.params.check(params, ""); err != nil {
		return nil, Named(method, err)
	}
	res, err := m.call(ctx, p, params)
	return res, Named(method, err)
}

// Need returns an error if the principal in ctx does not have the scope.
func Need(ctx context.Context, s chela.Scope) error {
	if chela.PrincipalFrom(ctx).May(s) {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "missing scope: %s", s).With(map[string]any{
		"code": wire.DetailMissingScope, "missingScope": s, "requiredScopes": []chela.Scope{s},
	})
}

// RoleError reports a method that the role may not call.
type RoleError struct{ Role string }

// Error returns the message, which names the role.
func (e *RoleError) Error() string { return fmt.Sprintf("unauthorized role: %s", e.Role) }
