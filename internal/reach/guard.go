package reach

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/chela-ai/chela/internal/tool"
)

// Use is what a tool does with the files that a call names.
type Use string

// The uses.
const (
	Reads   Use = "reads"
	Changes Use = "changes"
	Sends   Use = "sends"
)

// further is what the description of a tool that may leave the workspace says
// beside the rest.
const further = "Other files of this machine are reached by absolute paths, or from ~. The person is asked before they are changed, and before private ones are read."

// Guard returns a tool as it is offered under the rule. One that may leave the
// workspace says before where the paths lead that a call names, and a person is
// asked about what changes something outside, or is private.
func (r Rule) Guard(t tool.Tool, u Use, paths func(args json.RawMessage) ([]string, error)) tool.Tool {
	if !r.Outside {
		return t
	}
	s := t.Spec()
	s.Description += "\n" + further
	return guarded{t, s, r, u, paths}
}

type guarded struct {
	tool  tool.Tool
	spec  tool.Spec
	rule  Rule
	use   Use
	paths func(json.RawMessage) ([]string, error)
}

// Spec implements tool.Tool.
func (g guarded) Spec() tool.Spec { return g.spec }

// Plan resolves the paths of a call.
func (g guarded) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	paths, err := g.paths(c.Args)
	if err != nil {
		return tool.Plan{}, fmt.Errorf("arguments: %w", err)
	}
	w, err := g.rule.way(c.Dir)
	if err != nil {
		return tool.Plan{}, err
	}
	p := tool.Plan{Effect: g.spec.Effect}
	var reasons, where []string
	because := func(reason string) {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, path := range paths {
		at, err := w.resolve(path)
		if err != nil {
			return tool.Plan{}, err
		}
		where = append(where, at.path)
		if at.inside {
			continue
		}
		if g.use == Changes {
			p.Effect = tool.Acts
			because("it changes files outside of the workspace")
		}
		if at.private {
			because("it " + string(g.use) + " private files")
		}
	}
	p.Ask, p.Reason = len(reasons) > 0, strings.Join(reasons, "; ")
	p.Text = strings.TrimSpace(g.spec.Name+" "+strings.Join(where, ", ")) + told(c.Args)
	h := sha256.New()
	for _, s := range append([]string{g.spec.Name, string(c.Args)}, where...) {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	p.Hash = hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// told writes the arguments other than the path for people: whole.
func told(raw json.RawMessage) string {
	var args map[string]any
	if json.Unmarshal(raw, &args) != nil {
		return ""
	}
	delete(args, "path")
	var names []string
	for name := range args {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "\n%s:\n%v", name, args[name])
	}
	return b.String()
}

// Run does what was planned, where it was planned.
func (g guarded) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	p, err := g.Plan(ctx, c)
	switch {
	case err != nil:
		return tool.Result{}, err
	case p.Ask && (c.Plan == nil || c.Plan.Hash != p.Hash):
		return tool.Result{}, errors.New("this was not allowed: what the path leads to was changed meanwhile")
	}
	return g.tool.Run(ctx, c)
}
