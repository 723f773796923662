package history

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/store"
)

// LogQuery selects changes of the files of an agent.
type LogQuery struct {
	Agent  chela.AgentID
	Path   string    // a file, or a folder with the files in it; relative to the workspace; empty: the workspace
	All    bool      // also settings, jobs and files elsewhere
	Since  time.Time // zero: any
	Before int64     // only changes with a smaller Seq; 0: no limit
	Limit  int
}

// Log returns changes, newest first, after it has looked for changes outside of tools.
func (h *History) Log(ctx context.Context, q LogQuery) ([]journal.Change, error) {
	if err := h.Look(ctx, q.Agent); err != nil {
		return nil, err
	}
	sel := journal.Query{Since: q.Since, Before: q.Before, Limit: q.Limit}
	path, err := h.target(ctx, q.Agent, q.Path)
	if err != nil {
		return nil, err
	}
	switch {
	case q.All && q.Path == "":
		sel.Agent = q.Agent
	case q.Path == "":
		sel.Below = path
	default:
		sel.Target = path
	}
	list, err := h.list(ctx, sel)
	if err == nil && len(list) == 0 && q.Path != "" {
		sel.Target, sel.Below = "", path
		list, err = h.list(ctx, sel)
	}
	return list, err
}

func (h *History) list(ctx context.Context, q journal.Query) ([]journal.Change, error) {
	return store.Get(ctx, h.o.Store, func(r store.Reader) ([]journal.Change, error) { return r.Changes().List(q) })
}

// path returns the absolute path of a file. A relative one is in the workspace of the agent,
// whose links are not followed; nor is one that is the file itself.
func (h *History) path(agent chela.AgentID, path string) string {
	dir := h.o.Workspaces()[agent]
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	real := pathpolicy.Real(dir)
	for _, at := range [...]string{dir, real} {
		if rel, err := filepath.Rel(at, path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(real, rel)
		}
	}
	return filepath.Join(pathpolicy.Real(filepath.Dir(path)), filepath.Base(path))
}

// target returns the path of the file whose history is that of a path: if the path leads
// over links and is not known to have changed itself, the file that it leads to.
func (h *History) target(ctx context.Context, agent chela.AgentID, path string) (string, error) {
	at := h.path(agent, path)
	real := pathpolicy.Real(at)
	if real == at {
		return at, nil
	}
	list, err := h.list(ctx, journal.Query{Target: at, Limit: maxChanges})
	if slices.ContainsFunc(list, func(c journal.Change) bool { return !c.Seen() }) {
		return at, err
	}
	return real, err
}

// minPrefix is the minimum length of the beginning of an id.
const minPrefix = 4

// Find returns a change by its id, or the beginning of it.
func (h *History) Find(ctx context.Context, id string) (journal.Change, error) {
	if len(id) < minPrefix {
		return journal.Change{}, unknownChange(id)
	}
	list, err := h.list(ctx, journal.Query{Limit: maxChanges})
	if err != nil {
		return journal.Change{}, err
	}
	i := slices.IndexFunc(list, func(c journal.Change) bool { return strings.HasPrefix(c.ID, strings.ToLower(id)) })
	if i < 0 {
		return journal.Change{}, unknownChange(id)
	}
	return list[i], nil
}

func unknownChange(id string) error {
	return &chela.Error{Code: chela.CodeNotFound, Message: fmt.Sprintf("there is no change %q", id),
		Hint: "chela workspace log"}
}

// Diff returns the difference that a change made.
func (h *History) Diff(c journal.Change) (journal.Diff, error) {
	before, err := h.shown(c.Before)
	if err != nil {
		return journal.Diff{}, err
	}
	after, err := h.shown(c.After)
	if err != nil {
		return journal.Diff{}, err
	}
	name := h.Name(c.Agent, c.Target)
	return journal.DiffOf(name+" before", name+" after", before, after), nil
}

// shown returns the content of a version as differences show it.
func (h *History) shown(v journal.Version) ([]byte, error) {
	data, err := h.content(v)
	return show(v.Mode, data), err
}

// show returns a content as differences show it.
func show(mode fs.FileMode, data []byte) []byte {
	if mode&fs.ModeSymlink != 0 {
		return fmt.Appendf(nil, "(a link to %s)\n", data)
	}
	return data
}

// Newest returns the newest change that was made of a file.
func (h *History) Newest(ctx context.Context, agent chela.AgentID, path string) (journal.Change, error) {
	list, err := h.Log(ctx, LogQuery{Agent: agent, Path: path, Limit: maxUnits})
	if err != nil {
		return journal.Change{}, err
	}
	target, err := h.target(ctx, agent, path)
	if err != nil {
		return journal.Change{}, err
	}
	i := slices.IndexFunc(list,
		func(c journal.Change) bool { return c.Target == target && c.State == journal.Done && !c.Seen() })
	if i < 0 {
		return journal.Change{}, noHistory(path)
	}
	return list[i], nil
}

func noHistory(path string) error {
	return &chela.Error{Code: chela.CodeNotFound,
		Message: fmt.Sprintf("no change of %s is recorded", pathpolicy.Show(path)), Hint: "chela workspace log"}
}

// Version returns the version that a file had at a time. A link to another file is not that
// file.
func (h *History) Version(ctx context.Context, agent chela.AgentID, path string,
	at time.Time) (journal.Change, journal.Version, error) {
	file := h.path(agent, path)
	list, err := h.list(ctx, journal.Query{Target: file, Limit: maxChanges})
	list = slices.DeleteFunc(list, func(c journal.Change) bool { return c.State != journal.Done })
	if err != nil {
		return journal.Change{}, journal.Version{}, err
	}
	real := pathpolicy.Real(file)
	switch changed := slices.ContainsFunc(list, func(c journal.Change) bool { return !c.Seen() }); {
	case !changed && real != file:
		return journal.Change{}, journal.Version{}, &chela.Error{
			Code: chela.CodeConflict, Message: fmt.Sprintf("%s is a link to %s, or is reached over one; restore that file",
				pathpolicy.Show(path), pathpolicy.Show(real)),
			Hint: "chela workspace restore " + shell.Quote(real) + " --at TIME",
		}
	case len(list) == 0:
		return journal.Change{}, journal.Version{}, noHistory(path)
	}
	for _, c := range list {
		if !c.Time.After(at) {
			return c, c.After, nil
		}
	}
	oldest := list[len(list)-1]
	return oldest, oldest.Before, nil
}

// Restore gives the file of a change a version, and records that. It reports whether the
// file was another one.
func (h *History) Restore(ctx context.Context, c journal.Change, to journal.Version) (bool, error) {
	if c.Kind != journal.File {
		return false, &chela.Error{Code: chela.CodeInvalid, Message: "only files can be restored", Hint: "chela undo"}
	}
	data, err := h.content(to)
	if err != nil {
		return false, err
	}
	unlock, err := h.Lock(ctx, c.Target)
	if err != nil {
		return false, err
	}
	defer unlock()
	now, err := h.present(c.Target)
	if err != nil {
		return false, err
	}
	if versionOf(now).Same(to) {
		return false, nil
	}
	if to.Exists {
		if why := h.obstacle(c.Agent, c.Target, func(string) bool { return false }); why != "" {
			return false, &chela.Error{Code: chela.CodeConflict, Message: why, Hint: "move it away first"}
		}
	}
	src := journal.SourceFrom(ctx)
	src.Agent, src.Tool = c.Agent, "restore"
	done, err := h.Plan(journal.WithSource(ctx, src), journal.Edit{
		Kind:   journal.File,
		Target: c.Target,
		Folder: c.Folder,
		Before: now,
		After:  journal.Content{Exists: to.Exists, Data: data, Mode: to.Mode},
	})
	if err != nil {
		return false, err
	}
	if err := h.replace(c.Target, c.Folder, to); err != nil {
		done(0)
		return false, err
	}
	done(1)
	return true, nil
}
