// Package config implements the methods that read, describe and change the
// configuration. Clients receive it without secrets; redacted values they send
// back are left unchanged.
package config

import (
	"context"
	"regexp"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	// Snapshot returns the configuration, as in its files and as in effect,
	// without secrets.
	Snapshot func() (wire.ConfigSnapshot, error)
	// Schema returns the description of all keys.
	Schema func() wire.ConfigSchema
	// Lookup returns the description of a key; false if it is unknown.
	Lookup func(path string) (wire.ConfigKey, bool)
	// Change writes and applies the configuration. It fails with
	// chela.CodeConflict if base is not the hash of the existing
	// configuration.
	Change func(ctx context.Context, c Change) (wire.ConfigWritten, error)
}

// Change is a change of the configuration.
type Change struct {
	Text    string   // the complete configuration, or a merge patch
	Base    string   // hash of the configuration it is based on; "": none
	Merge   bool     // Text is a merge patch
	Replace []string // paths of arrays that a merge patch may shorten
	Note    string   // reason, for the log
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodConfigGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodConfigSchema, op, chela.ScopeRead, o.schema),
		rpc.New(wire.MethodConfigLookup, op, chela.ScopeRead, o.lookup),
		rpc.New(wire.MethodConfigSet, op, chela.ScopeAdmin, o.set),
		rpc.New(wire.MethodConfigPatch, op, chela.ScopeAdmin, o.patch).Ignoring("deliveryContext",
			"restartDelayMs", "sessionKey"),
		rpc.New(wire.MethodConfigApply, op, chela.ScopeAdmin, o.apply).Ignoring("deliveryContext",
			"restartDelayMs", "sessionKey"),
	}
}

func (o Options) get(context.Context, rpc.Peer, wire.None) (wire.ConfigSnapshot, error) {
	return o.Snapshot()
}

func (o Options) schema(context.Context, rpc.Peer, wire.None) (wire.ConfigSchema, error) {
	return o.Schema(), nil
}

func (o Options) set(ctx context.Context, _ rpc.Peer, in wire.ConfigSet) (wire.ConfigWritten, error) {
	return o.change(ctx, Change{Text: in.Raw, Base: in.BaseHash})
}

func (o Options) patch(ctx context.Context, _ rpc.Peer, in wire.ConfigPatch) (wire.ConfigWritten, error) {
	return o.change(ctx, Change{Text: in.Raw, Base: in.BaseHash, Merge: true, Replace: in.ReplacePaths, Note: in.Note})
}

func (o Options) apply(ctx context.Context, _ rpc.Peer, in wire.ConfigApply) (wire.ConfigWritten, error) {
	return o.change(ctx, Change{Text: in.Raw, Base: in.BaseHash, Note: in.Note})
}

// maxPaths is the maximum number of paths in a patch.
const maxPaths = 256

func (o Options) change(ctx context.Context, c Change) (wire.ConfigWritten, error) {
	switch {
	case c.Text == "":
		return wire.ConfigWritten{}, rpc.Invalid("at /raw: must NOT have fewer than 1 characters")
	case len(c.Replace) > maxPaths:
		return wire.ConfigWritten{}, rpc.Invalid("at /replacePaths: must NOT have more than %d items", maxPaths)
	}
	return o.Change(ctx, c)
}

// maxPath is the maximum length of a path.
const maxPath = 1024

// validPath matches valid paths.
var validPath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./\[\]\-*]+$`) })

func (o Options) lookup(_ context.Context, _ rpc.Peer, in wire.ConfigPath) (wire.ConfigKey, error) {
	switch {
	case in.Path == "":
		return wire.ConfigKey{}, rpc.Invalid("at /path: must NOT have fewer than 1 characters")
	case len(in.Path) > maxPath:
		return wire.ConfigKey{}, rpc.Invalid("at /path: must NOT have more than %d characters", maxPath)
	case !validPath().MatchString(in.Path):
		return wire.ConfigKey{}, rpc.Invalid("at /path: must match pattern %q", validPath())
	}
	p, ok := o.Lookup(in.Path)
	if !ok {
		return p, wire.Errorf(wire.InvalidRequest, "config schema path not found")
	}
	return p, nil
}
