package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// Peer is the connection that a call came over. A Peer belongs to one call.
type Peer interface {
	// Accept sends the first of two answers. The next request of the
	// connection may begin now; the function's result is the second answer.
	Accept(payload any)
	// Yield lets the next request of the connection begin: requests are
	// carried out one after the other, and this one will take long.
	Yield()
	// Owns says that the run is started by this connection, which is then
	// told what its tools do.
	Owns(chela.RunID)
	// Watch starts or ends telling the connection of a session: of its stored
	// messages and changes. The empty key stands for all sessions.
	Watch(key chela.SessionKey, on bool)
}

// Method is something that a client may ask for.
type Method struct {
	name  string
	role  string
	scope chela.Scope
	works bool
	shape shape
	call  func(context.Context, Peer, json.RawMessage) (any, error)
}

// New returns a method. An empty scope asks for none: the function checks what
// it needs with [Need], because it depends on the parameters. New panics when
// P is not a struct.
func New[P, R any](name, role string, s chela.Scope, f func(context.Context, Peer, P) (R, error)) Method {
	m := Method{name: name, role: role, scope: s, shape: shapeOf(name, reflect.TypeFor[P]())}
	m.call = func(ctx context.Context, p Peer, raw json.RawMessage) (any, error) {
		var params P
		if err := decode(name, raw, &params); err != nil {
			return nil, err
		}
		return f(ctx, p, params)
	}
	return m
}

// Accepting returns m that also takes the named properties and ignores them:
// clients of other gateways send them, and here they change nothing.
func (m Method) Accepting(names ...string) Method {
	m.shape.known = maps.Clone(m.shape.known)
	for _, n := range names {
		m.shape.known[n] = true
	}
	return m
}

// Works returns m as a method that may have a model or a tool work.
func (m Method) Works() Method {
	m.works = true
	return m
}

// Name returns the method's name.
func (m Method) Name() string { return m.name }

// Set is methods by name. The zero Set is empty.
type Set struct {
	methods map[string]Method
}

// NewSet returns a set of the methods. It panics when two have the same name.
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

// Door is what a method asks of who calls it.
type Door struct {
	Method   string
	Role     string
	Scope    chela.Scope // "": the method looks itself, by its parameters
	Works    bool        // a model or a tool may work for who calls it
	Params   []string    // properties that it knows, sorted
	Required []string    // those that must be there
}

// Doors returns what the methods ask of who calls them, sorted by name.
func (s Set) Doors() []Door {
	var out []Door
	for _, name := range s.Names() {
		m := s.methods[name]
		out = append(out, Door{name, m.role, m.scope, m.works, slices.Sorted(maps.Keys(m.shape.known)), slices.Clone(m.shape.required)})
	}
	return out
}

// Names returns the names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.methods)) }

// Call calls a method as a caller in a role; who it is, is in ctx.
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
	if err := m.shape.check(method, params); err != nil {
		return nil, err
	}
	return m.call(ctx, p, params)
}

// Need returns an error when who acts in ctx does not hold the scope.
func Need(ctx context.Context, s chela.Scope) error {
	if chela.PrincipalFrom(ctx).May(s) {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "missing scope: %s", s).With(map[string]any{
		"code": wire.DetailMissingScope, "missingScope": s, "requiredScopes": []chela.Scope{s},
	})
}

// RoleError says that the role may not call the method.
type RoleError struct{ Role string }

// Error names the role.
func (e *RoleError) Error() string { return fmt.Sprintf("unauthorized role: %s", e.Role) }
