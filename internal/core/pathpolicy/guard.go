package pathpolicy

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

	"github.com/chela-ai/chela/internal/core/tool"
)

// Use is what a tool does with the files that a call names.
type Use string

// The uses.
const (
	Reads   Use = "reads"
	Changes Use = "changes"
	Sends   Use = "sends"
)

// outsideNotice is added to the description of a tool that may leave the
// workspace.
const outsideNotice = "Use absolute or ~ paths for other files on this machine. The person is asked before those files are changed and before private files are read."

// Guard returns the tool as it is offered under the rule. If the tool may
// leave the workspace, it plans its calls: a person is asked before a call
// changes files outside the workspace or uses private ones.
func (r Rule) Guard(t tool.Tool, u Use, paths func(args json.RawMessage) ([]string, error)) tool.Tool {
	if !r.Outside {
		return t
	}
	s := t.Spec()
	s.Description += "\n" + outsideNotice
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
		return tool.Plan{}, err
	}
	res, err := g.rule.resolver(c.Dir)
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
		loc, err := res.resolve(path)
		if err != nil {
			return tool.Plan{}, err
		}
		where = append(where, loc.path)
		if loc.inside {
			continue
		}
		if g.use == Changes {
			p.Effect = tool.Acts
			because("it changes files outside the workspace")
		}
		if loc.private {
			because("it " + string(g.use) + " private files")
		}
	}
	p.Ask, p.Reason = len(reasons) > 0, strings.Join(reasons, "; ")
	p.Text = strings.TrimSpace(g.spec.Name+" "+strings.Join(where, ", ")) + argumentText(c.Args)
	h := sha256.New()
	for _, s := range append([]string{g.spec.Name, string(c.Args)}, where...) {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	p.Hash = hex.EncodeToString(h.Sum(nil))
	return p, nil
}

// argumentText returns the arguments other than the path, complete, for the
// approval text.
func argumentText(raw json.RawMessage) string {
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

// Run plans the call again and carries it out only if the plan is the
// approved one.
func (g guarded) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	p, err := g.Plan(ctx, c)
	switch {
	case err != nil:
		return tool.Result{}, err
	case p.Ask && (c.Plan == nil || c.Plan.Hash != p.Hash):
		return tool.Result{}, errors.New("not allowed: the path now leads to a different file than the one that was approved")
	}
	return g.tool.Run(ctx, c)
}
