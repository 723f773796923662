// Package memory implements the tools memory_search and memory_get, with which a model
// finds and reads the notes of the person.
package memory

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// Options configure the tools.
type Options struct {
	// Index returns the memory of an agent; nil: it has none.
	Index func(chela.AgentID) memory.Index
}

var (
	//go:embed search.md
	searchText string
	//go:embed get.md
	getText string
)

// New returns the tools.
func New(o Options) []tool.Tool {
	label := untrusted.New()
	return []tool.Tool{search{o, label}, get{o, label}}
}

// imported is the note about notes that come from elsewhere.
const imported = "A note that was imported from elsewhere. Its content is " + untrusted.Data

// index returns the memory that a call may use.
func (o Options) index(c tool.Call) (memory.Index, error) {
	if !c.Private {
		return nil, errors.New("the notes are private: they are available only in direct conversations with the person")
	}
	if x := o.Index(c.Agent); x != nil {
		return x, nil
	}
	return nil, errors.New("the memory is switched off")
}

type search struct {
	Options
	label untrusted.Labeler
}

func (search) Spec() tool.Spec {
	return tool.Spec{
		Name: "memory_search", Label: "Search memory", Description: searchText, Effect: tool.Reads, Parallel: true,
		Groups: []string{"group:memory", tool.Reading}, Roles: []tool.Role{tool.SearchesMemory},
		Schema: json.RawMessage(`{"type":"object","required":["query"],"properties":{
			"query":{"type":"string"},
			"maxResults":{"type":"integer","minimum":1,"description":"default 6"},
			"minScore":{"type":"number","minimum":0,"maximum":1,"description":"default 0.35"}},
			"additionalProperties":false}`),
	}
}

func (t search) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	x, err := t.index(c)
	if err != nil {
		return tool.Result{}, err
	}
	args, err := tool.Decode[struct {
		Query string  `json:"query"`
		Max   int     `json:"maxResults"`
		Min   float64 `json:"minScore"`
	}](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	hits, err := x.Search(ctx, memory.Query{Text: args.Query, Max: args.Max, MinScore: args.Min})
	if err != nil {
		return tool.Result{}, err
	}
	if len(hits) == 0 {
		return tool.Detailed("No note answers that.", map[string]any{"results": []memory.Hit{}}), nil
	}
	var b strings.Builder
	for _, h := range hits {
		text := h.Snippet
		if h.Untrusted {
			text = t.label.Wrap(h.Path, imported, text)
		}
		fmt.Fprintf(&b, "%s:%d-%d (score %.2f, changed %s)\n%s\n\n", h.Path, h.First, h.Last, h.Score,
			h.Changed.Format(time.DateOnly), text)
	}
	return tool.Detailed(strings.TrimSpace(b.String()), map[string]any{"results": hits}), nil
}

type get struct {
	Options
	label untrusted.Labeler
}

func (get) Spec() tool.Spec {
	return tool.Spec{
		Name: "memory_get", Label: "Read memory", Description: getText, Effect: tool.Reads, Parallel: true,
		Groups: []string{"group:memory", tool.Reading}, Roles: []tool.Role{tool.ReadsMemory},
		Aliases: map[string]string{"startLine": "from", "limit": "lines"},
		Schema: json.RawMessage(`{"type":"object","required":["path"],"properties":{
			"path":{"type":"string"},
			"from":{"type":"integer","minimum":1,"description":"first line"},
			"lines":{"type":"integer","minimum":1,"description":"default 120"}},
			"additionalProperties":false}`),
	}
}

func (t get) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	x, err := t.index(c)
	if err != nil {
		return tool.Result{}, err
	}
	args, err := tool.Decode[struct {
		Path  string `json:"path"`
		From  int    `json:"from"`
		Lines int    `json:"lines"`
	}](c.Args)
	if err != nil {
		return tool.Result{}, err
	}
	note, err := x.Read(ctx, args.Path)
	switch {
	case errors.Is(err, memory.ErrOutside):
		return tool.Result{}, fmt.Errorf("%s is not a note: notes are MEMORY.md and the .md files in memory/", args.Path)
	case errors.Is(err, fs.ErrNotExist):
		return tool.Result{}, fmt.Errorf("there is no note %s", args.Path)
	case err != nil:
		return tool.Result{}, err
	}
	w := memory.Lines(note, args.From, args.Lines)
	text := w.Text
	if memory.Untrusted(path.Clean(args.Path)) {
		text = t.label.Wrap(args.Path, imported, text)
	}
	if w.First > w.Total {
		text = fmt.Sprintf("[the note has %d lines]", w.Total)
	}
	if w.Cut {
		text += "\n[the line is cut]"
	}
	if w.Last < w.Total {
		text += fmt.Sprintf("\n[lines %d to %d of %d; continue with from %d]", w.First, w.Last, w.Total, w.Last+1)
	}
	return tool.Text(text), nil
}
