// Package config is the methods that show the configuration, say what may stand
// in it, and change it. Clients get it without its secrets, and what comes back
// from them as they were shown it stays as it is.
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
	// Change writes the configuration and puts it in force. It fails with
	// chela.CodeConflict when there is one and base is not its hash.
	Change func(ctx context.Context, c Change) (wire.ConfigWritten, error)
}

// Change is what a client wants of the configuration.
type Change struct {
	Text    string   // all of it, or a merge patch
	Base    string   // the hash that it was made from; "": none
	Merge   bool     // Text is a merge patch
	Replace []string // paths of arrays that a merge patch may shorten
	Note    string   // why, for the log
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodConfigGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodConfigSchema, op, chela.ScopeRead, o.schema),
		rpc.New(wire.MethodConfigLookup, op, chela.ScopeRead, o.lookup),
		rpc.New(wire.MethodConfigSet, op, chela.ScopeAdmin, o.set),
		rpc.New(wire.MethodConfigPatch, op, chela.ScopeAdmin, o.patch).Accepting("deliveryContext", "restartDelayMs", "sessionKey"),
		rpc.New(wire.MethodConfigApply, op, chela.ScopeAdmin, o.apply).Accepting("deliveryContext", "restartDelayMs", "sessionKey"),
	}
}

func (o Options) get(context.Context, rpc.Peer, wire.None) (wire.ConfigSnapshot, error) {
	return o.Snapshot()
}

func (o Options) schema(context.Context, rpc.Peer, wire.None) (wire.ConfigSchema, error) {
	return o.Schema(), nil
}

func (o Options) set(ctx context.Context, _ rpc.Peer, in wire.ConfigSet) (wire.ConfigWritten, error) {
	return o.change(ctx, wire.MethodConfigSet, Change{Text: in.Raw, Base: in.BaseHash})
}

func (o Options) patch(ctx context.Context, _ rpc.Peer, in wire.ConfigPatch) (wire.ConfigWritten, error) {
	return o.change(ctx, wire.MethodConfigPatch, Change{Text: in.Raw, Base: in.BaseHash, Merge: true, Replace: in.ReplacePaths, Note: in.Note})
}

func (o Options) apply(ctx context.Context, _ rpc.Peer, in wire.ConfigApply) (wire.ConfigWritten, error) {
	return o.change(ctx, wire.MethodConfigApply, Change{Text: in.Raw, Base: in.BaseHash, Note: in.Note})
}

// maxPaths bounds the paths of a patch.
const maxPaths = 256

func (o Options) change(ctx context.Context, method string, c Change) (wire.ConfigWritten, error) {
	switch {
	case c.Text == "":
		return wire.ConfigWritten{}, rpc.Invalid(method, "at /raw: must NOT have fewer than 1 characters")
	case len(c.Replace) > maxPaths:
		return wire.ConfigWritten{}, rpc.Invalid(method, "at /replacePaths: must NOT have more than %d items", maxPaths)
	}
	return o.Change(ctx, c)
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
