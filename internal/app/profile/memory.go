package profile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/memory/embed"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// memories are the indexes of the notes of agents. They stay open when the configuration
// changes, unless the change is about them.
type memories struct {
	mu   sync.Mutex
	open map[chela.AgentID]opened
}

type opened struct {
	index  *index.Index
	source memorySource
}

// memorySource is what an index was made from.
type memorySource struct {
	workspace string
	settings  settings.Memory
	vectors   []vectorService // without their HTTP clients
}

// vectorService is a service that makes vectors, or why it cannot be used.
type vectorService struct {
	embed.Options
	problem string
}

// get returns the index of an agent. o is called to make it.
func (m *memories) get(id chela.AgentID, source memorySource, o func() index.Options) *index.Index {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was, ok := m.open[id]; ok {
		if reflect.DeepEqual(was.source, source) {
			return was.index
		}
		_ = was.index.Close() // it contains only what is in the notes
	}
	if m.open == nil {
		m.open = map[chela.AgentID]opened{}
	}
	x := index.New(o())
	m.open[id] = opened{x, source}
	return x
}

// reset closes all indexes and removes their files.
func (m *memories) reset(dir string) error {
	m.close()
	return os.RemoveAll(dir)
}

// close closes all indexes.
func (m *memories) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.open {
		_ = o.index.Close()
	}
	m.open = nil
}

// Memory returns the memory of an agent; nil: it is switched off.
func (g *Generation) Memory(id chela.AgentID) memory.Index {
	o := g.Settings.Memory(id)
	if o.Off() {
		return nil
	}
	source := memorySource{workspace: g.Workspace(id), settings: o}
	services := g.vectorServices(id, o)
	for _, s := range services {
		// Each configuration has a client of its own, which is no reason to read the notes
		// again: the earlier one serves as well.
		s.HTTP = nil
		source.vectors = append(source.vectors, s)
	}
	x := g.memories.get(id, source, func() index.Options {
		ranking := o.Ranking()
		vectors := index.Vectors{Unused: o.Unused(), Required: o.Provider != settings.AutoVectors}
		for _, s := range services {
			vectors.Embedders = append(vectors.Embedders, s.embedder())
		}
		return index.Options{
			Workspace: source.workspace, Extra: o.Extra, Log: g.o.Log, File: filepath.Join(g.memoryDir(), string(id)+".db"),
			Ranking: &ranking, Vectors: vectors,
		}
	})
	return tuned{x, o}
}

// memoryDir is the folder of the indexes.
func (f *Factory) memoryDir() string { return filepath.Join(f.o.State, "cache", "memory") }

// DropMemory removes the indexes of notes. They are made again when they are needed.
func (f *Factory) DropMemory() error { return f.memories.reset(f.memoryDir()) }

// vectorServices returns the services that make an agent's vectors: that of the
// configuration, and the one that is used when it fails.
func (g *Generation) vectorServices(id chela.AgentID, o settings.Memory) (out []vectorService) {
	models := g.AgentModels(id)
	switch o.Provider {
	case settings.NoVectors:
		return nil
	case settings.AutoVectors:
		for _, provider := range model.Embedders {
			if e, err := models.Embedding(provider); err == nil && !e.Key.IsZero() {
				out = append(out, service(e, nil))
				break
			}
		}
		if len(out) == 0 {
			return nil
		}
	default:
		e, err := models.Embedding(o.Provider)
		if err == nil || o.Remote.BaseURL != "" { // then what is known of the provider is not needed
			e, err = remote(e, o, g.env)
		}
		out = append(out, service(e, err))
	}
	out[0].Model = o.Model
	if f := o.Fallback; f != "" && f != settings.NoVectors && f != o.Provider {
		out = append(out, service(models.Embedding(f)))
	}
	return out
}

func service(e embed.Options, err error) vectorService {
	if err != nil {
		return vectorService{e, err.Error()}
	}
	return vectorService{e, ""}
}

// remote returns a service as memorySearch.remote reaches it. A key of the provider is
// not sent to another host.
func remote(e embed.Options, o settings.Memory, env func(string) string) (embed.Options, error) {
	if o.Remote.BaseURL != "" {
		if hostOf(o.Remote.BaseURL) != hostOf(e.BaseURL) {
			e.Key = secret.Value{}
			e.Header = nil
		}
		e.BaseURL = o.Remote.BaseURL
	}
	if !o.Remote.APIKey.IsZero() {
		var err error
		if e.Key, err = o.Remote.APIKey.Resolve(env); err != nil {
			return e, fmt.Errorf("memorySearch.remote.apiKey: %w", err)
		}
	}
	e.Header = e.Header.Clone()
	for name, value := range o.Remote.Headers {
		if e.Header == nil {
			e.Header = http.Header{}
		}
		e.Header.Set(name, value)
	}
	return e, nil
}

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return u.Host
}

// embedder makes the embedder of a service. The requests of one that cannot be used fail.
func (s vectorService) embedder() memory.Embedder {
	if s.problem == "" {
		e, err := embed.New(s.Options)
		if err == nil {
			return e
		}
		s.problem = err.Error()
	}
	return unusable(s)
}

// unusable is the embedder of a service that cannot be used.
type unusable vectorService

func (u unusable) Model() string { return u.Provider }

func (u unusable) Embed(context.Context, memory.Purpose, []string) ([][]float32, error) {
	return nil, errors.New(u.problem)
}

// tuned is an index with the settings of an agent.
type tuned struct {
	*index.Index
	o settings.Memory
}

func (t tuned) Search(ctx context.Context, q memory.Query) ([]memory.Hit, error) {
	q.Max, q.MinScore = cmp.Or(q.Max, t.o.Query.Max), cmp.Or(q.MinScore, t.o.Query.MinScore)
	return t.Index.Search(ctx, q)
}

// notes returns the private notes in the workspaces of all agents, as they are without
// links. It looks at the links at each call.
func (g *Generation) notes() []string {
	var out []string
	for _, id := range g.Settings.Roster() {
		dir := pathpolicy.Real(g.Workspace(id))
		for _, name := range memory.PrivateNames() {
			for _, path := range pathpolicy.Trail(filepath.Join(dir, name)) {
				if !slices.Contains(out, path) {
					out = append(out, path)
				}
			}
		}
	}
	return out
}
