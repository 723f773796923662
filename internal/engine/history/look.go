package history

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/store"
)

// Limits of the files that are looked at.
const (
	maxFiles = 5000
	maxFile  = 1 << 20  // bytes
	maxWork  = 2000     // other files of the workspace
	maxBytes = 64 << 20 // in all; beyond them no other files
	maxSeen  = 50_000   // names that are looked at for other files
	maxRuns  = 1000     // with commands at once
	// maxCompares is how many files are compared at once. A first look writes copies of
	// thousands of files; file systems write those together that wait at the same time.
	maxCompares = 32
)

// looks is what is known about the files that make the assistants.
type looks struct {
	mu    sync.Mutex // held during a look
	known map[chela.AgentID]map[string]stamp

	runsMu sync.Mutex
	runs   map[chela.RunID]journal.Source // in progress, with commands
	ended  []journal.Source
	wake   chan struct{} // capacity 1
}

// stamp is the state of a file when its last record was compared with it.
type stamp struct {
	size     int64
	modified time.Time
}

// Started is called before a command of a run starts.
func (h *History) Started(ctx context.Context, s journal.Source) {
	if !h.o.Config().On() || s.Run == "" {
		return
	}
	h.look.runsMu.Lock()
	_, later := h.look.runs[s.Run]
	h.look.runsMu.Unlock()
	if later {
		return
	}
	if err := h.Look(ctx, s.Agent); err != nil && ctx.Err() == nil {
		h.o.Log.Warn("look for changes of the workspace", "agent", s.Agent, "err", err)
	}
	s.Call, s.Tool = "", ""
	h.look.runsMu.Lock()
	room := len(h.look.runs) < maxRuns
	if room {
		h.look.runs[s.Run] = s
	}
	h.look.runsMu.Unlock()
	if !room {
		return
	}
	err := h.changeOpen(ctx, func(list []journal.Source) []journal.Source {
		if len(list) >= maxRuns || slices.ContainsFunc(list, func(o journal.Source) bool { return o.Run == s.Run }) {
			return list
		}
		return append(list, s)
	})
	if err != nil && ctx.Err() == nil {
		h.o.Log.Warn("store that a run has commands", "run", s.Run, "err", err)
	}
}

// openSetting is the setting that holds the runs whose changes by commands were not looked
// for yet, so that they are found after a crash too.
const openSetting = "history.commands"

// changeOpen changes the list of these runs.
func (h *History) changeOpen(ctx context.Context, change func([]journal.Source) []journal.Source) error {
	return h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		var list []journal.Source
		if err := readSetting(tx, openSetting, &list); err != nil {
			return err
		}
		list = change(list)
		return writeSetting(tx, openSetting, list, len(list) == 0)
	})
}

// recoverOpen takes over the runs of the process before, which ended before it looked for
// what their commands changed.
func (h *History) recoverOpen(ctx context.Context) error {
	var list []journal.Source
	err := h.o.Store.View(ctx, func(r store.Reader) error { return readSetting(r, openSetting, &list) })
	if err != nil || len(list) == 0 {
		return err
	}
	h.look.runsMu.Lock()
	defer h.look.runsMu.Unlock()
	h.look.ended = append(h.look.ended, list...)
	h.look.wake <- struct{}{} // nothing has used the room for one yet
	return nil
}

// Ended is called after a run has ended. It returns immediately.
func (h *History) Ended(id chela.RunID) {
	h.look.runsMu.Lock()
	defer h.look.runsMu.Unlock()
	s, ok := h.look.runs[id]
	if !ok {
		return
	}
	delete(h.look.runs, id)
	h.look.ended = append(h.look.ended, s)
	select {
	case h.look.wake <- struct{}{}:
	default:
	}
}

// When all workspaces are compared.
const (
	startDelay = time.Minute // avoids slowing down the start
	lookEvery  = 6 * time.Hour
	lastLook   = 5 * time.Second // for the runs that ended before the process does
)

// Run compares workspaces with their last records: some time after the start, at intervals,
// and after each run with commands. It returns when ctx ends.
func (h *History) Run(ctx context.Context) error {
	t := time.NewTimer(startDelay)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			if err := h.lookEnded(last); err != nil {
				h.o.Log.Warn("look for changes of the workspace; the next start goes on with it", "err", err)
			}
			return nil
		case <-t.C:
			h.lookAll(ctx)
			t.Reset(lookEvery)
		case <-h.look.wake:
			if err := h.lookEnded(ctx); err != nil && ctx.Err() == nil {
				h.o.Log.Warn("look for changes of the workspace", "err", err)
			}
		}
	}
}

// lookEnded looks for what the commands of ended runs changed.
func (h *History) lookEnded(ctx context.Context) error {
	h.look.mu.Lock()
	defer h.look.mu.Unlock()
	return h.lookEndedLocked(ctx)
}

func (h *History) lookEndedLocked(ctx context.Context) error {
	h.look.runsMu.Lock()
	ended := h.look.ended
	h.look.ended = nil
	h.look.runsMu.Unlock()
	if len(ended) == 0 {
		return nil
	}
	var errs []error
	var later []journal.Source
	for _, s := range ended {
		if err := h.lookLocked(ctx, s); err != nil {
			errs, later = append(errs, err), append(later, s)
		}
	}
	h.look.runsMu.Lock()
	h.look.ended = append(later, h.look.ended...)
	h.look.ended = h.look.ended[max(len(h.look.ended)-maxRuns, 0):]
	h.look.runsMu.Unlock()
	errs = append(errs, h.changeOpen(ctx, func(list []journal.Source) []journal.Source {
		return slices.DeleteFunc(list, func(s journal.Source) bool {
			return slices.Contains(ended, s) && !slices.Contains(later, s)
		})
	}))
	return errors.Join(errs...)
}

func (h *History) lookAll(ctx context.Context) {
	for agent := range h.o.Workspaces() {
		if err := h.Look(ctx, agent); err != nil && ctx.Err() == nil {
			h.o.Log.Warn("look for changes of the workspace", "agent", agent, "err", err)
		}
	}
}

// Look compares the files that make an agent with their last records, and records the
// differences: the Markdown files of its workspace, the folders memory and skills, and the
// other files there that are not hidden. If a
// single run with commands is in progress, or has just ended, it is named as the one during
// which they were made.
func (h *History) Look(ctx context.Context, agent chela.AgentID) error {
	h.look.mu.Lock()
	defer h.look.mu.Unlock()
	if err := h.lookEndedLocked(ctx); err != nil {
		return err
	}
	s := journal.Source{Agent: agent}
	h.look.runsMu.Lock()
	n := 0
	for _, r := range h.look.runs {
		if r.Agent == agent {
			s, n = r, n+1
		}
	}
	h.look.runsMu.Unlock()
	if n > 1 {
		s = journal.Source{Agent: agent}
	}
	return h.lookLocked(ctx, s)
}

// lookLocked looks at the files of the agent of a source.
func (h *History) lookLocked(ctx context.Context, s journal.Source) error {
	dir := h.o.Workspaces()[s.Agent]
	if dir == "" || !h.o.Config().On() {
		return nil
	}
	dir = pathpolicy.Real(dir)
	files := list(dir)
	known, first := h.look.known[s.Agent], false
	if known == nil {
		first = true // that the agent is looked at, unless a look has left a record
		known = map[string]stamp{}
		latest, err := store.Get(ctx, h.o.Store, func(r store.Reader) ([]journal.Change, error) { return r.Changes().Latest(dir) })
		if err != nil {
			return err
		}
		for _, c := range latest {
			first = first && !c.Found()
			if !c.After.Exists || !part(dir, c.Target) && !work(dir, c.Target) {
				continue
			}
			known[c.Target] = stamp{c.After.Size, c.After.Modified}
		}
		h.look.known[s.Agent] = known
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCompares)
	for path := range known {
		if _, ok := files[path]; !ok {
			g.Go(func() error { return h.compare(gctx, path, s, stamp{}, false) })
		}
	}
	there := maps.Clone(files)
	maps.DeleteFunc(files, func(path string, now stamp) bool {
		old, ok := known[path]
		return ok && old.size == now.size && old.modified.Equal(now.modified)
	})
	for path, now := range files {
		g.Go(func() error { return h.compare(gctx, path, s, now, first) })
	}
	if err := g.Wait(); err != nil {
		delete(h.look.known, s.Agent)
		return err
	}
	h.look.known[s.Agent] = there
	return ctx.Err()
}

// compare compares a file with its last record, and records the difference. first says that
// a file without a record may have been there before.
func (h *History) compare(ctx context.Context, path string, s journal.Source, now stamp, first bool) error {
	unlock, err := h.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := h.present(path)
	if err != nil || c.Large > 0 || len(c.Data) > maxFile {
		return nil //nolint:nilerr // a file that is not kept
	}
	v := versionOf(c)
	last, err := store.Get(ctx, h.o.Store, func(r store.Reader) (journal.Change, error) {
		list, err := r.Changes().List(journal.Query{Target: path, Limit: 20})
		for _, c := range list {
			if c.State == journal.Done {
				return c, err
			}
		}
		return journal.Change{Target: path}, err
	})
	if err != nil || last.ID != "" && last.After.Same(v) || last.ID == "" && (!v.Exists || v.Mode == fs.ModeIrregular) {
		return err
	}
	if v, err = h.keep(journal.File, c); err != nil {
		return err
	}
	v.Modified = now.modified
	return h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		at := time.Now()
		if first && last.ID == "" {
			id := uuid.NewString()
			return tx.Changes().Add(journal.Change{
				ID: id, Time: at, Unit: id, Source: journal.Source{Agent: s.Agent}, Kind: journal.File, Target: path, Before: v, After: v, State: journal.Done,
			})
		}
		next := found(last, s.Agent, v, at)
		if s.Run != "" {
			base, err := Stamp(tx, s, at)
			if err != nil {
				return err
			}
			next = stamped(next, base)
		}
		return tx.Changes().Add(next)
	})
}

// parts are the folders of a workspace that make the assistant.
var parts = [...]string{"memory", "skills", filepath.Join(".agents", "skills")}

// part reports whether a path is that of a file that makes the assistant.
func part(dir, path string) bool {
	if filepath.Dir(path) == dir {
		return strings.EqualFold(filepath.Ext(path), ".md")
	}
	for _, name := range parts {
		if pathpolicy.Inside(path, filepath.Join(dir, name)) {
			return true
		}
	}
	return false
}

// work reports whether a path is that of another file of the workspace, whose changes by
// commands can be undone: one that is not hidden, and not installed by a package manager.
func work(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel) && !slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), skipped)
}

// skipped reports whether files and folders of that name are left out.
func skipped(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"node_modules", "__pycache__", "venv"}, name)
}

// listed reports whether the history has the content of a file: of regular files and links.
func listed(e fs.DirEntry) bool { return e.Type().IsRegular() || e.Type() == fs.ModeSymlink }

// list returns the files that make an assistant, and then, as far as the limits allow, the
// others of its workspace. Links are among them, and not followed.
func list(dir string) map[string]stamp {
	out := map[string]stamp{}
	bytes := int64(0)
	add := func(path string, e fs.DirEntry) {
		if !listed(e) || len(out) >= maxFiles || strings.HasPrefix(e.Name(), ".tmp-") || !utf8.ValidString(path) {
			return
		}
		info, err := e.Info()
		if err == nil && info.Size() <= maxFile {
			out[path] = stamp{info.Size(), info.ModTime()}
			bytes += info.Size()
		}
	}
	top, _ := os.ReadDir(dir) // a workspace that does not exist yet has no files
	for _, e := range top {
		if path := filepath.Join(dir, e.Name()); part(dir, path) {
			add(path, e)
		}
	}
	for _, name := range parts {
		root := filepath.Join(dir, name)
		if pathpolicy.Real(root) != root {
			if info, err := os.Lstat(root); err == nil {
				add(root, fs.FileInfoToDirEntry(info))
			}
			continue
		}
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist), len(out) >= maxFiles:
				return fs.SkipAll
			case err != nil:
				return fs.SkipDir
			case e.IsDir() && path != root && strings.HasPrefix(e.Name(), "."): // what is being installed or was replaced, or a repository
				return fs.SkipDir
			}
			add(path, e)
			return nil
		})
	}
	count, seen := len(out), 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		seen++
		switch {
		case errors.Is(err, fs.ErrNotExist), len(out) >= count+maxWork, bytes >= maxBytes, seen > maxSeen:
			return fs.SkipAll
		case err != nil:
			return fs.SkipDir
		case path == dir:
			return nil
		case e.IsDir() && (skipped(e.Name()) || slices.Contains(parts[:], path[len(dir)+1:])): // parts have been listed
			return fs.SkipDir
		case skipped(e.Name()) || part(dir, path) || pathpolicy.HasPrivate(path[len(dir):]):
			return nil
		}
		add(path, e)
		return nil
	})
	return out
}
