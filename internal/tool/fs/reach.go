package fs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tool"
)

// reach leads to the person's files outside of a workspace. What is there is
// opened through the folder that holds it: that folder is found without
// following links, and nothing leads out of it.
type reach struct {
	home  string // the agent's workspace
	real  string // the same without links
	judge shell.Judge
	own   []string   // Chela's own, without links
	roots []*os.Root // that were opened
}

// place is where a path leads.
type place struct {
	path    string // without links; what does not exist yet at its end
	rel     string // from the workspace, when it is inside
	inside  bool
	private bool // keys, credentials, Chela's own files
}

func newReach(dir string, own []string) (*reach, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	home, _ := os.UserHomeDir() // without one nothing is in it
	r := &reach{home: dir, real: real, judge: shell.Judge{Dir: dir, Workspace: real, Home: home}}
	for _, path := range own {
		if path, err := follow(path); err == nil {
			r.own = append(r.own, path)
		}
	}
	return r, nil
}

// resolve says where a path leads now.
func (r *reach) resolve(path string) (place, error) {
	if strings.ContainsRune(path, 0) {
		return place{}, fmt.Errorf("path %s holds a NUL byte", show(path))
	}
	real, err := follow(r.abs(path))
	if err != nil {
		return place{}, fmt.Errorf("%s: %w", show(path), cause(err))
	}
	if rel, err := filepath.Rel(r.real, real); err == nil && filepath.IsLocal(rel) {
		return place{path: real, rel: rel, inside: true}, nil
	}
	if machinery(real) {
		return place{}, fmt.Errorf("%s is no place for files; use exec", show(path))
	}
	return place{path: real, private: r.private(real)}, nil
}

// abs is the path as it is written, from the root on.
func (r *reach) abs(path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(r.judge.Home, path[1:])
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(r.home, path)
}

// private reports whether a path is not for everyone's eyes.
func (r *reach) private(path string) bool {
	for _, own := range r.own {
		if rel, err := filepath.Rel(own, path); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return r.judge.Private(filepath.ToSlash(path))
}

// machinery reports whether a path is where a system shows itself, and not
// files.
func machinery(path string) bool {
	for _, dir := range [...]string{"/proc", "/sys", "/dev"} {
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// follow returns a path without links. What is missing at its end stays.
func follow(path string) (string, error) {
	rest := ""
	for p := path; ; {
		real, err := filepath.EvalSymlinks(p)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		above := filepath.Dir(p)
		if !errors.Is(err, fs.ErrNotExist) || above == p {
			return "", err
		}
		rest, p = filepath.Join(filepath.Base(p), rest), above
	}
}

// open opens the folder that holds a place outside, and returns the place's
// name in it.
func (r *reach) open(p place) (*workspace, string, error) {
	dir := p.path
	for above := filepath.Dir(dir); ; above = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() || above == dir {
			break
		}
		dir = above
	}
	root, err := folder(dir)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", show(p.path), cause(err))
	}
	r.roots = append(r.roots, root)
	name, err := filepath.Rel(dir, p.path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", show(p.path), err)
	}
	w := &workspace{root: root, dir: dir, outside: true}
	if !p.private { // who may see the whole may see its parts
		w.hide = func(name string) bool {
			path := filepath.Join(dir, name)
			return machinery(path) || r.private(path)
		}
	}
	return w, name, nil
}

// folder opens a folder whose path has no links, part for part, so that a link
// that is put there meanwhile is not followed.
func folder(path string) (*os.Root, error) {
	top := filepath.VolumeName(path) + string(filepath.Separator)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, top), string(filepath.Separator)) {
		if part == "" {
			continue
		}
		next, err := step(root, part)
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		root = next
	}
	return root, nil
}

// step opens a folder of a folder.
func step(root *os.Root, part string) (*os.Root, error) {
	before, err := root.Lstat(part)
	if err != nil {
		return nil, err
	}
	next, err := root.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err == nil && !os.SameFile(before, after) {
		err = fmt.Errorf("%s was changed by something else meanwhile", show(part))
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// cause is an error without the path that it is about.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// farTool is a file tool that leaves the workspace. It says before where it
// goes, and a person is asked about what changes something there or is private.
type farTool[A paths] struct{ *fileTool[A] }

// Plan resolves the paths of a call.
func (t farTool[A]) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	var a A
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Plan{}, fmt.Errorf("arguments: %w", err)
	}
	r, err := newReach(c.Dir, t.own)
	if err != nil {
		return tool.Plan{}, err
	}
	p := tool.Plan{Effect: t.spec.Effect}
	var reasons, where []string
	because := func(reason string) {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	for _, path := range a.paths() {
		at, err := r.resolve(path)
		if err != nil {
			return tool.Plan{}, err
		}
		where = append(where, at.path)
		if at.inside {
			continue
		}
		verb := "reads"
		if t.spec.Effect != tool.Reads {
			p.Effect, verb = tool.Acts, "changes"
			because("it changes files outside of the workspace")
		}
		if at.private {
			because("it " + verb + " private files")
		}
	}
	p.Ask, p.Reason = len(reasons) > 0, strings.Join(reasons, "; ")
	p.Text = t.spec.Name + " " + strings.Join(where, ", ") + told(c.Args)
	h := sha256.New()
	for _, s := range append([]string{t.spec.Name, string(c.Args)}, where...) {
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
func (t farTool[A]) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	p, err := t.Plan(ctx, c)
	switch {
	case err != nil:
		return tool.Result{}, err
	case p.Ask && (c.Plan == nil || c.Plan.Hash != p.Hash):
		return tool.Result{}, errors.New("this was not allowed: what the path leads to was changed meanwhile")
	}
	return t.fileTool.Run(ctx, c)
}
