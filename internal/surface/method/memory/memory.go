// Package memory implements the methods about the notes of agents.
package memory

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool // reports whether the agent exists
	Workspace func(chela.AgentID) string
	Index     func(chela.AgentID) memory.Index // nil: the agent's memory is off
	Forget    Forgetter
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodMemoryStatus, op, chela.ScopeRead, o.status),
		rpc.New(wire.MethodMemorySearch, op, chela.ScopeRead, o.search),
		rpc.New(wire.MethodMemoryList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodMemoryGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodMemoryIndex, op, chela.ScopeWrite, o.index),
		rpc.New(wire.MethodMemoryForget, op, chela.ScopeAdmin, o.forget),
	}
}

// Limits of parameters.
const (
	maxQuery   = 4000 // bytes
	maxResults = 50
	maxLines   = 2000
)

// of returns an agent and its memory.
func (o Options) of(name string) (chela.AgentID, memory.Index, error) {
	id := chela.AgentID(name)
	if id == "" {
		id = o.Default
	}
	if !o.Agent(id) {
		return id, nil, rpc.UnknownAgent(id)
	}
	x := o.Index(id)
	if x == nil {
		err := chela.Errorf(chela.CodeUnavailable, "the memory of the agent %s is switched off", id)
		err.Hint = "chela config get agents.defaults.memorySearch"
		return id, nil, err
	}
	return id, x, nil
}

func (o Options) status(ctx context.Context, p rpc.Peer, in wire.MemoryProbe) (wire.MemoryStatus, error) {
	id, x, err := o.of(in.AgentID)
	if err != nil {
		return wire.MemoryStatus{}, err
	}
	p.Yield()
	out, err := o.view(ctx, id, x)
	if err != nil || !in.Deep && !in.Probe {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if used, err := x.Probe(ctx); used {
		out.Embedding.Checked, out.Embedding.OK = true, err == nil
		if err != nil {
			out.Embedding.Error = err.Error()
		}
	}
	return out, nil
}

// probeTime limits a request to the provider of embeddings.
const probeTime = 20 * time.Second

// view returns the state of an index. It does not wait while the index is compared with
// the files.
func (o Options) view(ctx context.Context, id chela.AgentID, x memory.Index) (wire.MemoryStatus, error) {
	out := wire.MemoryStatus{AgentID: string(id), Provider: "none", Workspace: o.Workspace(id)}
	st, err := x.Status(ctx)
	if err != nil {
		return out, err
	}
	if st.Reading != nil {
		out.Indexing = &wire.MemoryProgress{Done: st.Reading.Done, Total: st.Reading.All}
		return out, nil
	}
	if v := st.Vectors; v != nil {
		out.Provider, _, _ = strings.Cut(v.Model, "/")
		out.Embedding = wire.MemoryEmbedding{
			OK:         v.Problem == "",
			Error:      v.Problem,
			Model:      v.Model,
			Dimensions: v.Dimension,
			Ready:      v.Ready,
			Waiting:    v.Waiting,
		}
	}
	out.Index = &wire.MemoryIndexed{
		Files:  st.Files,
		Chunks: st.Chunks,
		Bytes:  st.Bytes,
		Size:   st.Size,
		Synced: wire.At(st.Synced),
	}
	for _, s := range st.Skipped {
		out.Index.Skipped = append(out.Index.Skipped, wire.MemorySkipped(s))
	}
	return out, nil
}

func (o Options) search(ctx context.Context, p rpc.Peer, in wire.MemorySearch) (wire.MemoryHits, error) {
	out := wire.MemoryHits{Results: []wire.MemoryHit{}}
	switch {
	case strings.TrimSpace(in.Query) == "":
		return out, rpc.Invalid("at /query: must not be empty")
	case len(in.Query) > maxQuery:
		return out, rpc.Invalid("at /query: must have at most %d bytes", maxQuery)
	case in.MaxResults < 0 || in.MaxResults > maxResults:
		return out, rpc.Invalid("at /maxResults: must be >= 1 and <= %d", maxResults)
	case in.MinScore < 0 || in.MinScore > 1:
		return out, rpc.Invalid("at /minScore: must be >= 0 and <= 1")
	}
	id, x, err := o.of(in.AgentID)
	if err != nil {
		return out, err
	}
	p.Yield()
	hits, err := x.Search(ctx, memory.Query{Text: in.Query, Max: in.MaxResults, MinScore: in.MinScore})
	if errors.Is(err, memory.ErrUnavailable) {
		unavailable := chela.Errorf(chela.CodeUnavailable, "%w", err)
		unavailable.Hint = "chela memory status --deep"
		return out, unavailable
	}
	out.AgentID = string(id)
	for _, h := range hits {
		out.Results = append(out.Results, wire.MemoryHit{
			Path:      h.Path,
			First:     h.First,
			Last:      h.Last,
			Score:     h.Score,
			Snippet:   h.Snippet,
			Source:    h.Source,
			Changed:   wire.At(h.Changed),
			Untrusted: h.Untrusted,
		})
	}
	return out, err
}

func (o Options) list(ctx context.Context, p rpc.Peer, in wire.MemoryAgent) (wire.MemoryFiles, error) {
	out := wire.MemoryFiles{Files: []wire.MemoryFile{}}
	id, x, err := o.of(in.AgentID)
	if err != nil {
		return out, err
	}
	p.Yield()
	notes, err := x.Notes(ctx)
	out.AgentID, out.Workspace = string(id), o.Workspace(id)
	for _, n := range notes {
		out.Files = append(out.Files, wire.MemoryFile{
			Path:      n.Path,
			Size:      n.Size,
			Changed:   wire.At(n.Changed),
			Chunks:    n.Chunks,
			Source:    memory.SourceOf(n.Path),
			Untrusted: memory.Untrusted(n.Path),
			Skipped:   n.Problem,
		})
	}
	return out, err
}

func (o Options) get(ctx context.Context, _ rpc.Peer, in wire.MemoryGet) (wire.MemoryText, error) {
	out := wire.MemoryText{Path: in.Path}
	switch {
	case in.Path == "":
		return out, rpc.Invalid("at /path: must not be empty")
	case in.From < 0:
		return out, rpc.Invalid("at /from: must be >= 1")
	case in.Lines < 0 || in.Lines > maxLines:
		return out, rpc.Invalid("at /lines: must be >= 1 and <= %d", maxLines)
	}
	_, x, err := o.of(in.AgentID)
	if err != nil {
		return out, err
	}
	note, err := x.Read(ctx, in.Path)
	switch {
	case errors.Is(err, memory.ErrOutside), errors.Is(err, fs.ErrNotExist):
		return out, chela.Errorf(chela.CodeNotFound, "there is no note %s", in.Path)
	case err != nil:
		return out, err
	}
	w := memory.Lines(note, in.From, in.Lines)
	out.Text, out.First, out.Last, out.Total = w.Text, w.First, w.Last, w.Total
	return out, nil
}

// index updates the index of the files, or rebuilds it.
func (o Options) index(ctx context.Context, p rpc.Peer, in wire.MemoryIndex) (wire.MemoryStatus, error) {
	id, x, err := o.of(in.AgentID)
	if err != nil {
		return wire.MemoryStatus{}, err
	}
	p.Yield()
	if in.Force {
		err = x.Rebuild(ctx)
	} else {
		_, err = x.Status(ctx)
	}
	if err != nil {
		return wire.MemoryStatus{}, err
	}
	return o.view(ctx, id, x)
}
