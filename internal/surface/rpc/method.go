package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

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

// Capable is an optional interface of a [Peer].
type Capable interface {
	// Capable reports whether the client named the capability in connect.
	Capable(name string) bool
}

// Identified is an optional interface of a [Peer].
type Identified interface {
	// ConnID returns the id of the connection.
	ConnID() string
}

// Method is a method of the gateway.
type Method struct {
	name       string
	role       string
	scope      chela.Scope
	startsWork bool
	reads      bool // see Reads
	params     paramSpec
	call       func(context.Context, Peer, json.RawMessage) (any, error)
}

// New returns a method. With an empty scope the function must check the caller
// itself with [Need], because the required scope depends on the parameters. A
// method for which reading is enough only reads (see [Method.Reads]). New panics
// if P is not a struct.
func New[P, R any](name, role string, s chela.Scope, f func(context.Context, Peer, P) (R, error)) Method {
	m := Method{name: name, role: role, scope: s, reads: s == chela.ScopeRead, params: specOf(name, reflect.TypeFor[P]())}
	m.call = func(ctx context.Context, p Peer, raw json.RawMessage) (any, error) {
		var params P
		if err := decode(raw, &params); err != nil {
			return nil, err
		}
		return f(ctx, p, params)
	}
	return m
}

// Ignoring returns a copy of m that accepts the named properties of OpenClaw's
// protocol although they have no effect. The log says so once. It panics if a name is
// that of a condition or a prohibition, which must not be ignored.
func (m Method) Ignoring(names ...string) Method {
	m.params.idle = maps.Clone(m.params.idle)
	for _, n := range names {
		if isRestricting(n) {
			panic("rpc: " + m.name + " must not ignore " + n)
		}
		m.params.idle[n] = true
	}
	return m
}

// Refusing returns a copy of m that refuses the named properties of OpenClaw's
// protocol: ignoring them would do something else than the client wants. The values
// null and false want nothing.
func (m Method) Refusing(names ...string) Method {
	m.params.refused = maps.Clone(m.params.refused)
	for _, n := range names {
		m.params.refused[n] = true
	}
	return m
}

// Reads returns a copy of m that is marked as changing nothing. It ignores unknown
// properties, except conditions and prohibitions.
func (m Method) Reads() Method {
	m.reads = true
	return m
}

// Changes returns a copy of m that is marked as changing something.
func (m Method) Changes() Method {
	m.reads = false
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
	log     *slog.Logger
	told    *sync.Map         // "method property": those without effect that were logged
	missing map[string]string // why there are no methods with a prefix; see Missing
}

// NewSet returns a set of the methods. It panics if two have the same name.
func NewSet(groups ...[]Method) Set {
	s := Set{methods: map[string]Method{}, log: slog.New(slog.DiscardHandler), told: new(sync.Map)}
	for _, m := range slices.Concat(groups...) {
		if _, dup := s.methods[m.name]; dup {
			panic("rpc: two methods named " + m.name)
		}
		s.methods[m.name] = m
	}
	return s
}

// Logging returns a copy of s that logs properties without effect.
func (s Set) Logging(log *slog.Logger) Set {
	s.log = log
	return s
}

// Missing returns a copy of s that says why it lacks the methods whose names begin with a
// prefix.
func (s Set) Missing(prefix, why string) Set {
	s.missing = maps.Clone(s.missing)
	if s.missing == nil {
		s.missing = map[string]string{}
	}
	s.missing[prefix] = why
	return s
}

// unknown returns the error for a method that is not in the set.
func (s Set) unknown(method string) error {
	for prefix, why := range s.missing {
		if strings.HasPrefix(method, prefix) {
			return wire.Errorf(wire.InvalidRequest, "unknown method: %s: %s", method, why)
		}
	}
	return wire.Errorf(wire.InvalidRequest, "unknown method: %s", method)
}

// MethodInfo describes a method's parameters and the rights it needs.
type MethodInfo struct {
	Method     string
	Role       string
	Scope      chela.Scope // "": checked by the method, depending on the parameters
	StartsWork bool        // a call may cause work of a model or a tool
	Reads      bool        // a call changes nothing
	Params     []string    // accepted properties, sorted
	Refused    []string    // properties refused by name, sorted
	Required   []string    // required properties
}

// Infos describes the methods, sorted by name.
func (s Set) Infos() []MethodInfo {
	var out []MethodInfo
	for _, name := range s.Names() {
		m := s.methods[name]
		out = append(out, MethodInfo{
			Method: name, Role: m.role, Scope: m.scope, StartsWork: m.startsWork, Reads: m.reads,
			Params:   slices.Sorted(maps.Keys(m.params.accepted())),
			Refused:  slices.Sorted(maps.Keys(m.params.refused)),
			Required: slices.Clone(m.params.required),
		})
	}
	return out
}

// Names returns the names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.methods)) }

// Call calls a method as a caller in a role. The caller's principal is in ctx.
func (s Set) Call(ctx context.Context, role string, p Peer, method string, params json.RawMessage) (any, error) {
	m, ok := s.methods[method]
	if !ok {
		return nil, s.unknown(method)
	}
	if role != m.role {
		return nil, &RoleError{role}
	}
	if m.scope != "" {
		if err := Need(ctx, m.scope); err != nil {
			return nil, err
		}
	}
	idle, err := m.params.check(params, "", m.reads)
	if err != nil {
		return nil, Named(method, err)
	}
	s.tell(ctx, m, idle)
	res, err := m.call(ctx, p, params)
	return res, Named(method, err)
}

// tell logs the properties of a call that have no effect: once, because a client may
// send them with each call.
func (s Set) tell(ctx context.Context, m Method, idle []string) {
	level := slog.LevelInfo
	if m.reads {
		level = slog.LevelDebug
	}
	if len(idle) == 0 || !s.log.Enabled(ctx, level) {
		return
	}
	idle = slices.DeleteFunc(idle, func(name string) bool {
		_, told := s.told.LoadOrStore(m.name+" "+name, true)
		return told
	})
	if len(idle) > 0 {
		s.log.Log(ctx, level, "properties without effect", "method", m.name, "properties", strings.Join(idle, ", "))
	}
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
