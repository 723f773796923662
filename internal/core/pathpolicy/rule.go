package pathpolicy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Rule is which files the tools of an agent may use. The zero Rule confines
// them to the workspace.
type Rule struct {
	Outside   bool // files outside the workspace are allowed
	NoSecrets bool // files in the workspace that have private names are refused; see [Private]
	// Private returns further files and folders that are private, such as Chela's
	// state directory, and refused inside a workspace. A link does not stand for what
	// it leads to; see [Trail]. It is called for every call of a tool. nil: there are
	// none.
	Private func() []string
	// Library returns folders whose files may be read, wherever they are and also if
	// they are private, such as those of skills. Tools that change files have none. It
	// is called for calls with absolute paths. nil: there are none.
	Library func() []string
	// Unshared returns files and folders, without links, that only calls with
	// [tool.Call].Private use, such as private notes. It is called for every other call.
	// nil: there are none.
	Unshared func() []string
}

// Open opens the workspace of a call. If the call was planned by [Rule.Guard],
// its paths lead to what the plan found. A sandboxed session uses no files outside,
// and may name those in the workspace by their paths in the container.
func (r Rule) Open(c tool.Call) (*Dir, error) {
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	d := &Dir{Root: root, Path: c.Dir, library: r.Library}
	res, err := r.resolver(c)
	if err != nil {
		d.Close()
		return nil, err
	}
	if len(res.unshared) > 0 {
		d.unshared = func(name string) bool { return res.isUnshared(filepath.Join(res.real, name)) }
	}
	if r.NoSecrets || slices.ContainsFunc(res.extra, func(path string) bool { return within(path, res.real) }) {
		d.hidden = func(name string) bool { return res.refused(filepath.Join(res.real, name)) }
	}
	if c.Sandbox != nil {
		d.hostPath = c.Sandbox.HostPath
	} else if r.Outside {
		d.resolver = res
		if c.Plan != nil {
			res.planned, _ = c.Plan.Value.(locations)
		}
	}
	return d, nil
}

// resolver returns a resolver for the workspace of a call.
func (r Rule) resolver(c tool.Call) (*resolver, error) {
	dir := c.Dir
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	home, _ := os.UserHomeDir() // "": no path is in it
	res := &resolver{workspace: dir, real: real, home: home, noSecrets: r.NoSecrets, library: r.Library}
	if r.Unshared != nil && !c.Private {
		res.unshared = r.Unshared()
	}
	if r.Private == nil {
		return res, nil
	}
	for _, path := range r.Private() {
		if dir, err := resolveLinks(filepath.Dir(path)); err == nil {
			res.extra = append(res.extra, filepath.Join(dir, filepath.Base(path)))
		}
	}
	return res, nil
}

// Read returns the content of a file, unchanged. It refuses files that hold
// secrets, empty files and files larger than maxBytes. Errors name the file and
// are phrased for the model.
func (r Rule) Read(c tool.Call, path string, maxBytes int64) ([]byte, error) {
	w, err := r.Open(c)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	at, name, err := w.Resolve(path)
	if err != nil {
		return nil, err
	}
	f, info, err := at.OpenFile(path, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch n := info.Size(); {
	case Secret(at.ResolveLinks(name)):
		return nil, fmt.Errorf("%s holds secrets and cannot be passed on; the read tool shows it with the values masked",
			Show(path))
	case n == 0:
		return nil, fmt.Errorf("%s is empty", Show(path))
	case n > maxBytes:
		return nil, fmt.Errorf("%s is too large (%s; the limit is %s)", Show(path), humanize.Bytes(n),
			humanize.Bytes(maxBytes))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, at.PathError(path, err)
	}
	return data, nil
}

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
	if c.Sandbox != nil { // nothing outside can be named
		return tool.Plan{Effect: g.spec.Effect}, nil
	}
	paths, err := g.paths(c.Args)
	if err != nil {
		return tool.Plan{}, err
	}
	res, err := g.rule.resolver(c)
	if err != nil {
		return tool.Plan{}, err
	}
	found := locations{}
	p := tool.Plan{Effect: g.spec.Effect, Value: found}
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
		found[path] = loc
		where = append(where, loc.path)
		if loc.inside {
			if part := RunsIn(loc.rel); part != "" && g.use == Changes {
				p.Effect = tool.Acts
				because("other programs run what is in " + Show(part))
			}
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
// approved one. The tool gets the new plan, so that it uses the files that
// were checked here even if a program changes a link in the meantime.
func (g guarded) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	p, err := g.Plan(ctx, c)
	switch {
	case err != nil:
		return tool.Result{}, err
	case p.Ask && (c.Plan == nil || c.Plan.Hash != p.Hash):
		return tool.Result{}, errors.New("not allowed: the path now leads to a different file than the one that was approved")
	}
	c.Plan = &p
	return g.tool.Run(ctx, c)
}
