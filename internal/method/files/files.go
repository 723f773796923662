// Package files is the methods about the files of a conversation: those that
// its tools read and changed, and the workspace around them. Nothing outside of
// the workspace is shown or written, whatever a tool was told.
package files

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All fields are required.
type Options struct {
	Store     store.Store
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool   // reports whether the agent exists
	Workspace func(chela.AgentID) string // returns its folder, absolute
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

// place is a conversation's workspace, out of which no path and no link leads,
// and what the conversation did there.
type place struct {
	dir  string
	root *os.Root
	uses []use // nil too when nothing was touched
}

func (p *place) close() { _ = p.root.Close() }

// open returns the place of a session; nil when there is no such session.
func (o Options) open(ctx context.Context, method, name, agent string) (*place, error) {
	id := o.Default
	if agent != "" {
		id = chela.AgentID(agent)
	}
	key, err := chela.ParseSessionKey(name, id)
	switch {
	case err != nil:
		return nil, rpc.Invalid(method, "%v", err)
	case agent != "" && key.Agent() != id:
		return nil, rpc.Invalid(method, "agent id %q does not match session key agent %q", agent, key.Agent())
	case !o.Agent(key.Agent()):
		return nil, shape.UnknownAgent(key.Agent())
	}
	p := &place{dir: o.Workspace(key.Agent())}
	found := false
	err = o.Store.View(ctx, func(r store.Reader) error {
		meta, err := r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
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

// below returns the path within the workspace that a path means; false: it
// means none.
func (p *place) below(name string) (string, bool) {
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
	const method = wire.MethodFilesList
	out := wire.Files{SessionKey: in.SessionKey, Files: []wire.File{}}
	p, err := o.open(ctx, method, in.SessionKey, in.AgentID)
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
	out.Browser, err = p.browse(method, in.Path, in.Search)
	return out, err
}

// file returns a file without its content.
func (p *place) file(u use, rel string) wire.File {
	f := wire.File{Path: u.path, Workspace: rel, Name: path.Base(rel), Kind: u.kind, Missing: true}
	if fi, err := p.root.Stat(rel); err == nil && fi.Mode().IsRegular() {
		f.Missing, f.Size, f.UpdatedAt = false, fi.Size(), wire.At(fi.ModTime())
	}
	return f
}

// use is what a conversation did with a file.
type use struct {
	path string // as the tool was told
	kind string
}

// touched returns the files that tools were told to read or to change, those to
// be changed first.
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
