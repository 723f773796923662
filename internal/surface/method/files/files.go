// Package files implements the methods for the files of a session: the files
// its tools read and changed, and the workspace around them. Nothing outside of
// the workspace is shown or written, whatever path a tool call named.
package files

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Store     store.Store
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool   // reports whether the agent exists
	Workspace func(chela.AgentID) string // absolute path
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodFilesList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodFilesGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodFilesSet, op, chela.ScopeAdmin, o.set),
	}
}

// workspace is the workspace of a session, which neither paths nor links can
// leave, and the files the session used.
type workspace struct {
	dir  string
	root *os.Root
	uses []use // may be nil
}

func (p *workspace) close() { _ = p.root.Close() }

// open returns the workspace of a session; nil if the session does not exist.
func (o Options) open(ctx context.Context, name, agent string) (*workspace, error) {
	key, err := rpc.SessionKey(name, agent, o.Default)
	switch {
	case err != nil:
		return nil, err
	case agent != "" && string(key.Agent()) != agent:
		return nil, rpc.Invalid("agent id %q does not match session key agent %q", agent, key.Agent())
	case !o.Agent(key.Agent()):
		return nil, rpc.UnknownAgent(key.Agent())
	}
	p := &workspace{dir: o.Workspace(key.Agent())}
	found := false
	err = o.Store.View(ctx, func(r store.Reader) error {
		meta, err := session.Lookup(r.Sessions(), key)
		if err != nil || meta.ID == "" {
			return err
		}
		entries, err := r.Sessions().Entries(meta.ID, 0, 0)
		found, p.uses = true, touched(entries)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	if p.root, err = os.OpenRoot(p.dir); err != nil {
		return nil, wire.Errorf(wire.InvalidRequest, "workspace path cannot be read")
	}
	return p, nil
}

// below returns a path relative to the workspace; false if it is outside.
func (p *workspace) below(name string) (string, bool) {
	if strings.ContainsRune(name, 0) {
		return "", false
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(p.dir, name)
		if err != nil {
			return "", false
		}
		name = filepath.ToSlash(rel)
	}
	name = path.Clean(name)
	return name, filepath.IsLocal(name)
}

func (o Options) list(ctx context.Context, _ rpc.Peer, in wire.FilesList) (wire.Files, error) {
	out := wire.Files{SessionKey: in.SessionKey, Files: []wire.File{}}
	p, err := o.open(ctx, in.SessionKey, in.AgentID)
	if err != nil || p == nil {
		return out, err
	}
	defer p.close()
	out.Root = p.dir
	for _, u := range p.uses {
		if rel, ok := p.below(u.path); ok {
			out.Files = append(out.Files, p.file(u, rel))
		}
	}
	out.Browser, err = p.browse(in.Path, in.Search)
	return out, err
}

// file returns a file without its content.
func (p *workspace) file(u use, rel string) wire.File {
	f := wire.File{Path: u.path, Workspace: rel, Name: path.Base(rel), Kind: u.kind, Missing: true}
	if fi, err := p.root.Stat(rel); err == nil && fi.Mode().IsRegular() {
		f.Missing, f.Size, f.UpdatedAt = false, fi.Size(), wire.At(fi.ModTime())
	}
	return f
}

// use is how a session used a file.
type use struct {
	path string // as in the tool call
	kind string
}

// touched returns the files that tool calls read or changed, changed files
// first.
func touched(entries []session.Entry) []use {
	kinds := map[string]string{}
	for _, e := range entries {
		if e.Kind != session.KindMessage || e.Message == nil {
			continue
		}
		for _, c := range e.Message.Calls() {
			for _, u := range usesOf(c) {
				if kinds[u.path] != wire.FileModified {
					kinds[u.path] = u.kind
				}
			}
		}
	}
	var out []use
	for name, kind := range kinds {
		out = append(out, use{name, kind})
	}
	slices.SortFunc(out, func(a, b use) int {
		if a.kind != b.kind {
			return strings.Compare(a.kind, b.kind) // "modified" < "read"
		}
		return strings.Compare(a.path, b.path)
	})
	return out
}
