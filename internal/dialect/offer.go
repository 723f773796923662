package dialect

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/schema"
)

// Offers makes of the tools of a request what its service takes. That is done
// once for a set of tools and a model's rules, and kept: a conversation has the
// same ones with each request. It is safe for concurrent use.
type Offers struct {
	Ways func(model string) Ways // set before the first call; nil: the zero Ways for each
	Log  *slog.Logger            // of the tools that are left out; nil: nothing is logged

	mu   sync.Mutex
	kept []offer         // newest last
	said map[string]bool // warnings
}

// Ways are what a service takes of tools with one model. The zero Ways are all.
type Ways struct {
	Schema schema.Rules
	None   bool // it takes no tools
	Strict bool // it takes the field strict of a tool
}

// offer is what was made of a set of tools.
type offer struct {
	ways  Ways
	specs []llm.ToolSpec
	out   []llm.ToolSpec
}

const (
	maxOffers   = 8   // kept
	maxWarnings = 256 // kept, so as not to be given again
)

var errName = errors.New("its name is not at most 64 letters, digits, _ and -")

// Fit returns the request as its service takes it. A tool whose schema cannot
// be made acceptable is left out, and so is one with another kind of name; the
// others go.
func (o *Offers) Fit(r *llm.Request) *llm.Request {
	if len(r.Tools) == 0 {
		return r
	}
	var w Ways
	if o.Ways != nil {
		w = o.Ways(r.Model)
	}
	fit := *r
	fit.Tools = o.of(r.Tools, w)
	return &fit
}

func (o *Offers) of(specs []llm.ToolSpec, w Ways) []llm.ToolSpec {
	if w.None {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.kept {
		if k.ways.equal(w) && SameTools(k.specs, specs) {
			return k.out
		}
	}
	k := offer{ways: w, specs: slices.Clone(specs)}
	for _, s := range specs {
		fit, err := w.Schema.Apply(s.Schema)
		if err == nil && ToolName(s.Name) != s.Name {
			err = errName
		}
		if err != nil {
			o.warnLocked(s.Name, w.Schema.Profile, err)
			continue
		}
		s.Schema = fit
		if w.Strict {
			strict := schema.Strict(fit)
			s.Strict = &strict
		}
		k.out = append(k.out, s)
	}
	if len(o.kept) >= maxOffers {
		o.kept = slices.Delete(o.kept, 0, 1)
	}
	o.kept = append(o.kept, k)
	return k.out
}

// warnLocked says once that a tool is left out.
func (o *Offers) warnLocked(tool, profile string, err error) {
	key := tool + " " + profile + " " + err.Error()
	if o.Log == nil || o.said[key] {
		return
	}
	if o.said == nil || len(o.said) >= maxWarnings {
		o.said = map[string]bool{}
	}
	o.said[key] = true
	o.Log.Warn("the model is not told of a tool that its service would refuse", "tool", tool, "profile", profile, "err", err)
}

func (w Ways) equal(v Ways) bool {
	return w.Schema.Equal(v.Schema) && w.None == v.None && w.Strict == v.Strict
}
