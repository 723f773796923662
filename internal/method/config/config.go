// Package config is the methods that show the configuration and say what may
// stand in it. They get it without its secrets.
package config

import (
	"context"
	"regexp"
	"sync"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All of it is required.
type Options struct {
	// Snapshot returns the configuration as it stands in its files now, and as
	// it is in force, without secrets.
	Snapshot func() (wire.ConfigSnapshot, error)
	// Schema returns what is known of all keys.
	Schema func() wire.ConfigSchema
	// Lookup returns what is known of a key; false when nothing is.
	Lookup func(path string) (wire.ConfigPlace, bool)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodConfigGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodConfigSchema, op, chela.ScopeRead, o.schema),
		rpc.New(wire.MethodConfigLookup, op, chela.ScopeRead, o.lookup),
	}
}

func (o Options) get(context.Context, rpc.Peer, wire.None) (wire.ConfigSnapshot, error) {
	return o.Snapshot()
}

func (o Options) schema(context.Context, rpc.Peer, wire.None) (wire.ConfigSchema, error) {
	return o.Schema(), nil
}

// maxPath bounds a path.
const maxPath = 1024

// sound matches the paths that may be asked for.
var sound = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./\[\]\-*]+$`) })

func (o Options) lookup(_ context.Context, _ rpc.Peer, in wire.ConfigPath) (wire.ConfigPlace, error) {
	const method = wire.MethodConfigLookup
	switch {
	case in.Path == "":
		return wire.ConfigPlace{}, rpc.Invalid(method, "at /path: must NOT have fewer than 1 characters")
	case len(in.Path) > maxPath:
		return wire.ConfigPlace{}, rpc.Invalid(method, "at /path: must NOT have more than %d characters", maxPath)
	case !sound().MatchString(in.Path):
		return wire.ConfigPlace{}, rpc.Invalid(method, "at /path: must match pattern %q", sound())
	}
	p, ok := o.Lookup(in.Path)
	if !ok {
		return p, wire.Errorf(wire.InvalidRequest, "config schema path not found")
	}
	return p, nil
}
