package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of looks.
const (
	maxRuns = 1000 // with commands at once
	// maxCompares is how many groups of files are compared at once.
	maxCompares = 4
	group       = 64               // files that are compared together
	endTime     = 30 * time.Second // for the look after a command
	// maxSynced is the number of contents for which a look waits until they are on the disk.
	// More are on the disk some seconds later. Until then a power failure may damage them,
	// which an undo notices.
	maxSynced = 100
)

// looks is what is known about the files of the workspaces.
type looks struct {
	mu    sync.Mutex // held during a look
	trees map[chela.AgentID]*tree
	over  bool // Run has returned

	runsMu sync.Mutex
	runs   map[chela.RunID]*commands // in progress, with commands
	ended  []endedRun
	wake   chan struct{} // capacity 1
}

// endedRun is a run that has ended.
type endedRun struct {
	journal.Source
	running bool // with commands that were running, so that what they changed is not recorded yet
}

// commands are the commands of a run that are running.
type commands struct {
	source journal.Source // the run
	calls  []string
}

// Started is called before a command of a run starts that may change files. What changed
// before is recorded first, so that it is not taken for what the command does. The caller
// calls ended when the command has ended, which records what changed meanwhile, and returns
// the names of the files that were changed without a way back.
func (h *History) Started(ctx context.Context, s journal.Source) (ended func() []string) {
	if !h.o.Config().On() || s.Run == "" {
		return func() []string { return nil }
	}
	if err := h.Look(ctx, s.Agent); err != nil && ctx.Err() == nil {
		h.o.Log.Warn("look for changes of the workspace", "agent", s.Agent, "err", err)
	}
	call := s.Call
	s.Call, s.Tool = "", ""
	h.look.runsMu.Lock()
	c := h.look.runs[s.Run]
	later := c != nil
	if c == nil && len(h.look.runs) < maxRuns {
		c = &commands{source: s}
		h.look.runs[s.Run] = c
	}
	if c != nil {
		c.calls = append(c.calls, call)
	}
	h.look.runsMu.Unlock()
	if c == nil {
		return func() []string { return nil }
	}
	if !later {
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
	ctx = context.WithoutCancel(ctx)
	return func() []string { return h.commandEnded(ctx, s, call) }
}

// commandEnded records what a command changed.
func (h *History) commandEnded(ctx context.Context, s journal.Source, call string) []string {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	h.look.mu.Lock()
	defer h.look.mu.Unlock()
	h.o.Step("look.before")
	lost, err := h.lookLocked(ctx, h.during(s.Agent))
	if err != nil {
		h.o.Log.Warn("look for what a command changed", "run", s.Run, "err", err)
	}
	h.look.runsMu.Lock()
	defer h.look.runsMu.Unlock()
	if c := h.look.runs[s.Run]; c != nil {
		if i := slices.Index(c.calls, call); i >= 0 {
			c.calls = slices.Delete(c.calls, i, i+1)
		}
	}
	return lost
}

// during returns the source of what changes now: the run whose commands are running, and
// the call of its only command. Without one, or with those of several runs, it is unknown.
func (h *History) during(agent chela.AgentID) journal.Source {
	h.look.runsMu.Lock()
	defer h.look.runsMu.Unlock()
	s, n := journal.Source{Agent: agent}, 0
	for _, c := range h.look.runs {
		if c.source.Agent != agent || len(c.calls) == 0 {
			continue
		}
		if s = c.source; len(c.calls) == 1 {
			s.Call = c.calls[0]
		}
		if n++; n > 1 {
			return journal.Source{Agent: agent}
		}
	}
	return s
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
	for _, s := range list {
		h.look.ended = append(h.look.ended, endedRun{s, true})
	}
	h.look.wake <- struct{}{} // nothing has used the room for one yet
	return nil
}

// Ended is called after a run has ended. It returns immediately.
func (h *History) Ended(id chela.RunID) {
	h.look.runsMu.Lock()
	defer h.look.runsMu.Unlock()
	c, ok := h.look.runs[id]
	if !ok {
		return
	}
	delete(h.look.runs, id)
	h.look.ended = append(h.look.ended, endedRun{c.source, len(c.calls) > 0})
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
			h.unwatch()
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

// unwatch ends all watches.
func (h *History) unwatch() {
	h.look.mu.Lock()
	defer h.look.mu.Unlock()
	h.look.over = true
	for _, t := range h.look.trees {
		t.close()
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
	var later []endedRun
	for _, r := range ended {
		s := r.Source
		if !r.running {
			s = journal.Source{Agent: s.Agent}
		}
		if _, err := h.lookLocked(ctx, s); err != nil {
			errs, later = append(errs, err), append(later, r)
		}
	}
	h.look.runsMu.Lock()
	h.look.ended = append(later, h.look.ended...)
	h.look.ended = h.look.ended[max(len(h.look.ended)-maxRuns, 0):]
	h.look.runsMu.Unlock()
	errs = append(errs, h.changeOpen(ctx, func(list []journal.Source) []journal.Source {
		return slices.DeleteFunc(list, func(s journal.Source) bool {
			is := func(r endedRun) bool { return r.Run == s.Run }
			return slices.ContainsFunc(ended, is) && !slices.ContainsFunc(later, is)
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

// Look compares the files of the workspace of an agent with their last records, and records
// the differences; see [tree]. If commands of a single run are running, it is named as the
// one during which they were made.
func (h *History) Look(ctx context.Context, agent chela.AgentID) error {
	h.look.mu.Lock()
	defer h.look.mu.Unlock()
	if err := h.lookEndedLocked(ctx); err != nil {
		return err
	}
	_, err := h.lookLocked(ctx, h.during(agent))
	return err
}

// lookLocked looks at the files of the agent of a source. It returns the names of those that
// were changed or deleted, and whose earlier content was not kept.
func (h *History) lookLocked(ctx context.Context, s journal.Source) (lost []string, err error) {
	dir := h.o.Workspaces()[s.Agent]
	if dir == "" || !h.o.Config().On() {
		return nil, nil
	}
	dir = pathpolicy.Real(dir)
	t := h.look.trees[s.Agent]
	if t == nil || t.dir != dir {
		t.close()
		if t, err = h.load(ctx, s.Agent, dir); err != nil {
			return nil, err
		}
		h.look.trees[s.Agent] = t
	}
	if h.look.over {
		t.many = math.MaxInt // nothing would close the watch
	}
	l := look{h: h, tree: t, source: s, changed: t.changed(h.o.Config().Size() / 4)}
	if err := l.record(ctx); err != nil {
		t.close()
		delete(h.look.trees, s.Agent)
		return nil, err
	}
	t.accept(l.changed)
	return l.lost, ctx.Err()
}

// load returns what the records say about the files in a folder.
func (h *History) load(ctx context.Context, agent chela.AgentID, dir string) (*tree, error) {
	t := &tree{dir: dir, files: map[string]stamp{}, first: true, many: h.o.Watch}
	latest, err := store.Get(ctx, h.o.Store,
		func(r store.Reader) ([]journal.Change, error) { return r.Changes().Latest(dir) })
	for _, c := range latest {
		t.first = t.first && !c.Found()
		if c.After.Exists && (part(dir, c.Target) || work(dir, c.Target)) {
			t.files[c.Target] = stamp{size: c.After.Size, modified: c.After.Modified, kept: c.After.Hash != ""}
		}
	}
	return t, err
}

// look is one look in progress.
type look struct {
	h       *History
	tree    *tree
	source  journal.Source
	changed map[string]stamp // the files that may have changed, as they are now; the zero stamp: it is gone

	mu   sync.Mutex
	lost []string
	seen []journal.Change // of a first look
}

// record compares the files that may have changed with their last records, and records the
// differences.
func (l *look) record(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCompares)
	for paths := range slices.Chunk(slices.Sorted(maps.Keys(l.changed)), group) {
		g.Go(func() error { return l.compare(gctx, paths) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.Sort(l.lost)
	if len(l.seen) == 0 {
		return nil
	}
	// In one commit: a later look takes files without a record for new ones.
	return l.h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		latest, err := tx.Changes().Latest(l.tree.dir)
		if err != nil {
			return err
		}
		have := map[string]bool{}
		for _, c := range latest {
			have[c.Target] = true
		}
		return tx.Changes().Add(slices.DeleteFunc(slices.Clone(l.seen), func(c journal.Change) bool {
			return have[c.Target]
		})...)
	})
}

// compare compares some files with their last records.
func (l *look) compare(ctx context.Context, paths []string) error {
	h := l.h
	unlock, err := h.Lock(ctx, paths...)
	if err != nil {
		return err
	}
	defer unlock()
	now := make([]journal.Content, len(paths))
	for i, path := range paths {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !l.changed[path].there() {
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { // thousands of files may be deleted at once
				continue
			}
		}
		if now[i], err = h.present(path); err != nil {
			now[i] = journal.Content{Exists: true, Mode: fs.ModeIrregular} // a file that is not kept
		}
	}
	var rows, seen []journal.Change
	at, put := time.Now(), h.o.Files.Put
	if len(l.changed) > maxSynced {
		put = h.o.Files.PutSoon
	}
	add := func(last journal.Change, path string, c journal.Content) (err error) {
		new, old, v := last.ID == "", l.tree.files[path], versionOf(c)
		kept := v.Exists && l.changed[path].kept && c.Large == 0
		switch {
		case !new && last.After.Same(v), new && v.Mode == fs.ModeIrregular:
			return nil
		case new && old.there() && !old.kept:
			new, last.After = false, journal.Version{Exists: true, Size: old.size, Mode: 0o600}
		case new && !kept:
			return nil
		}
		if last.Target = path; last.After.Exists && !last.After.Kept() && last.After.Size > 0 {
			l.lose(path, last.After.Size)
		}
		if now := l.changed[path]; now.there() && !now.kept {
			v.Hash = ""
		} else {
			v, err = h.keepBy(put, journal.File, c)
		}
		v.Modified = l.changed[path].modified
		next := found(last, l.source.Agent, v, at)
		if new && l.tree.first {
			next.Before = v
			seen = append(seen, next)
			return err
		}
		rows = append(rows, next)
		return err
	}
	latest, err := store.Get(ctx, h.o.Store,
		func(r store.Reader) ([]journal.Change, error) { return r.Changes().LatestOf(paths...) })
	last := map[string]journal.Change{}
	for _, c := range latest {
		last[c.Target] = c
	}
	for i, path := range paths {
		if err == nil {
			err = add(last[path], path, now[i])
		}
	}
	l.mu.Lock()
	l.seen = append(l.seen, seen...)
	l.mu.Unlock()
	if err != nil || len(rows) == 0 {
		return err
	}
	h.o.Step("look.kept")
	return h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		if l.source.Run != "" {
			base, err := Stamp(tx, l.source, at)
			if err != nil {
				return err
			}
			for i := range rows {
				rows[i] = stamped(rows[i], base)
			}
		}
		return tx.Changes().Add(rows...)
	})
}

// lose notes that a file was changed or deleted whose earlier content was not kept.
func (l *look) lose(path string, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = append(l.lost, fmt.Sprintf("%s (%s)", l.h.Name(l.source.Agent, path), humanize.Bytes(size)))
}
