package history

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
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
	path := h.path(q.Agent, q.Path)
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

// path returns the absolute path of a file without links. A relative one is in the
// workspace of the agent.
func (h *History) path(agent chela.AgentID, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.o.Workspaces()[agent], path)
	}
	return pathpolicy.Real(filepath.Clean(path))
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
	return &chela.Error{Code: chela.CodeNotFound, Message: fmt.Sprintf("there is no change %q", id), Hint: "chela workspace log"}
}

// Diff returns the difference that a change made.
func (h *History) Diff(c journal.Change) (journal.Diff, error) {
	before, err := h.content(c.Before)
	if err != nil {
		return journal.Diff{}, err
	}
	after, err := h.content(c.After)
	if err != nil {
		return journal.Diff{}, err
	}
	name := h.Name(c.Agent, c.Target)
	return journal.DiffOf(name+" before", name+" after", before, after), nil
}

// Newest returns the newest change that was made of a file.
func (h *History) Newest(ctx context.Context, agent chela.AgentID, path string) (journal.Change, error) {
	list, err := h.Log(ctx, LogQuery{Agent: agent, Path: path, Limit: maxUnits})
	if err != nil {
		return journal.Change{}, err
	}
	target := h.path(agent, path)
	i := slices.IndexFunc(list, func(c journal.Change) bool { return c.Target == target && c.State == journal.Done && !c.Seen() })
	if i < 0 {
		return journal.Change{}, noHistory(path)
	}
	return list[i], nil
}

func noHistory(path string) error {
	return &chela.Error{Code: chela.CodeNotFound, Message: fmt.Sprintf("no change of %s is recorded", pathpolicy.Show(path)), Hint: "chela workspace log"}
}

// Version returns the version that a file had at a time.
func (h *History) Version(ctx context.Context, agent chela.AgentID, path string, at time.Time) (journal.Change, journal.Version, error) {
	list, err := h.list(ctx, journal.Query{Target: h.path(agent, path), Limit: maxChanges})
	list = slices.DeleteFunc(list, func(c journal.Change) bool { return c.State != journal.Done })
	if err != nil || len(list) == 0 {
		if err == nil {
			err = noHistory(path)
		}
		return journal.Change{}, journal.Version{}, err
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
	src := journal.SourceFrom(ctx)
	src.Agent, src.Tool = c.Agent, "restore"
	done, err := h.Plan(journal.WithSource(ctx, src), journal.Edit{
		Kind: journal.File, Target: c.Target, Folder: c.Folder, Before: now, After: journal.Content{Exists: to.Exists, Data: data, Mode: to.Mode},
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
