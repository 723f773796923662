package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Jobs reads and changes scheduled jobs.
type Jobs interface {
	// Version returns the job with the id as it is; the zero Version: it does not exist.
	Version(r job.Reader, id string) (journal.Version, error)
	// Restore changes, adds or deletes the job with the id so that it is as v says. It
	// returns what is to be done after the commit.
	Restore(tx store.Tx, id string, v journal.Version) (after func(), err error)
}

// Options configure a History. All fields are required, except those that may be nil.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Files *media.Files
	// Config returns the settings in force.
	Config func() journal.Options
	// Workspaces returns the folders of the agents.
	Workspaces func() map[chela.AgentID]string
	// Configure replaces a file of the configuration and puts the result in force. It
	// records nothing.
	Configure func(ctx context.Context, file string, text []byte) error
	Jobs      Jobs
	// Tools returns the tools of an agent.
	Tools func(chela.AgentID) tool.Set
	// Redact removes known secrets from a text. The content of a file that has one is not
	// kept; that of a file of the configuration is.
	Redact func(string) string
	// Step is called at named points of a change; nil: nobody is told.
	Step func(string)
	// Watch is the number of files of a workspace from which on the system is asked which of
	// them change; 0: 500. The system has few such watches for all programs of a person.
	Watch int
}

// History keeps the journal. Use [New]. It is safe for concurrent use.
type History struct {
	o     Options
	locks locks
	look  looks
}

var _ journal.Recorder = (*History)(nil)

// New returns a History.
func New(o Options) *History {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	o.Watch = cmp.Or(o.Watch, 500)
	return &History{o: o, locks: locks{held: map[string]chan struct{}{}},
		look: looks{trees: map[chela.AgentID]*tree{}, runs: map[chela.RunID]*commands{}, wake: make(chan struct{}, 1)}}
}

// locks are the targets that are being changed.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the target is free
}

// Lock implements [journal.Recorder].
func (h *History) Lock(ctx context.Context, targets ...string) (unlock func(), err error) {
	targets = slices.Clone(targets)
	slices.Sort(targets)
	var mine []string
	unlock = func() {
		h.locks.mu.Lock()
		defer h.locks.mu.Unlock()
		for _, t := range mine {
			close(h.locks.held[t])
			delete(h.locks.held, t)
		}
		mine = nil
	}
	for _, t := range slices.Compact(targets) {
		if err := h.locks.one(ctx, t); err != nil {
			unlock()
			return nil, err
		}
		mine = append(mine, t)
	}
	return unlock, nil
}

func (l *locks) one(ctx context.Context, target string) error {
	for {
		l.mu.Lock()
		busy := l.held[target]
		if busy == nil {
			l.held[target] = make(chan struct{})
		}
		l.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Plan implements [journal.Recorder].
func (h *History) Plan(ctx context.Context, edits ...journal.Edit) (done func(made int), err error) {
	if !h.o.Config().On() {
		return func(int) {}, nil
	}
	planned := make([]journal.Change, len(edits)) // the zero Change: nothing changes
	for i, e := range edits {
		c := journal.Change{Kind: e.Kind, Target: e.Target, From: e.From, Folder: e.Folder, State: journal.Planned}
		if c.Before, err = h.keep(e.Kind, e.Before); err == nil {
			c.After, err = h.keep(e.Kind, e.After)
		}
		if err != nil {
			return nil, fmt.Errorf("record the change of %s: %w", e.Target, err)
		}
		if !c.Before.Same(c.After) {
			planned[i] = c
		}
	}
	if !slices.ContainsFunc(planned, func(c journal.Change) bool { return c.Kind != "" }) {
		return func(int) {}, nil
	}
	return h.record(ctx, planned)
}

// record records planned changes, except those without a kind.
func (h *History) record(ctx context.Context, planned []journal.Change) (done func(made int), err error) {
	src, now := journal.SourceFrom(ctx), time.Now()
	err = h.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		base, err := Stamp(tx, src, now)
		if err != nil {
			return err
		}
		for i := range planned {
			if planned[i].Kind == "" {
				continue
			}
			planned[i] = stamped(planned[i], base)
			if err := h.recordGap(tx, planned[i], now); err != nil {
				return err
			}
			if err := tx.Changes().Add(planned[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record the change: %w", err)
	}
	h.o.Step("journal.planned")
	return func(made int) { h.close(context.WithoutCancel(ctx), planned, made) }, nil
}

// stamped returns a change with the id, the time and the source of base. The changes of a
// call get different ids.
func stamped(c, base journal.Change) journal.Change {
	c.ID, c.Time, c.Source, c.Home, c.Unit, c.Origin, c.Doubt = uuid.NewString(), base.Time, base.Source, base.Home,
		base.Unit, base.Origin, base.Doubt
	return c
}

// close records what became of planned changes.
func (h *History) close(ctx context.Context, planned []journal.Change, made int) {
	h.o.Step("journal.made")
	var list []journal.Change
	for i, c := range planned {
		if c.Kind == "" {
			continue
		}
		if c.State = journal.Done; i >= made {
			c.State = h.outcome(c)
		}
		if !c.Before.Exists && c.After.Exists { // the umask applies to new files
			c.After.Mode = modeOf(c.Target, c.After.Mode)
		}
		list = append(list, c)
	}
	err := h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		for _, c := range list {
			if err := tx.Changes().Set(c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // the next start closes them
		h.o.Log.Warn("record that a change was made", "err", err)
	}
}

// recordGap records that a target was changed since its last record, if it was.
func (h *History) recordGap(tx store.Tx, next journal.Change, now time.Time) error {
	if next.Kind != journal.File {
		return nil
	}
	last, err := lastOf(tx.Changes(), next.Target)
	if err != nil || last.ID == "" || last.After.Same(next.Before) {
		return err
	}
	return tx.Changes().Add(found(last, next.Agent, next.Before, now))
}

// lastOf returns the newest change that was made of a target; the zero Change: there is
// none.
func lastOf(r journal.Reader, target string) (journal.Change, error) {
	list, err := r.List(journal.Query{Target: target, Limit: 20})
	if i := slices.IndexFunc(list, func(c journal.Change) bool { return c.State == journal.Done }); i >= 0 {
		return list[i], err
	}
	return journal.Change{}, err
}

// found returns a change outside of tools that was found, after the last record of its
// target.
func found(last journal.Change, agent chela.AgentID, now journal.Version, at time.Time) journal.Change {
	id := uuid.NewString()
	return journal.Change{
		ID:     id,
		Time:   at,
		Unit:   id,
		Source: journal.Source{Agent: agent},
		Kind:   journal.File,
		Target: last.Target,
		Before: last.After,
		After:  now,
		State:  journal.Done,
	}
}

// outcome returns what became of a planned change, by the present content of its target.
func (h *History) outcome(c journal.Change) journal.State {
	now, err := h.present(c.Target)
	switch {
	case err != nil:
		return journal.Unclear
	case versionOf(now).Same(c.After):
		return journal.Done
	case versionOf(now).Same(c.Before), !c.Before.Kept() && now.Large > 0:
		return journal.Failed
	}
	return journal.Unclear
}

// versionOf returns the version of a content that is not kept.
func versionOf(c journal.Content) journal.Version {
	v := journal.Version{Exists: c.Exists, Mode: c.Mode, Size: int64(len(c.Data)) + c.Large}
	switch {
	case !c.Exists || c.Large > 0:
	case c.Mode.IsRegular():
		v.Hash = journal.HashOf(c.Data)
	default: // not that of a file with the same content
		v.Hash = c.Mode.String() + journal.HashOf(c.Data)
	}
	return v
}

// keep stores a content and returns its version.
func (h *History) keep(kind journal.Kind, c journal.Content) (journal.Version, error) {
	return h.keepBy(h.o.Files.Put, kind, c)
}

// keepBy is keep with the function that stores.
func (h *History) keepBy(put func([]byte) (string, error), kind journal.Kind,
	c journal.Content) (journal.Version, error) {
	v := versionOf(c)
	text := string(c.Data)
	switch {
	case !c.Exists || v.Size > journal.MaxContent, kind == journal.File && h.o.Redact(text) != text:
		return v, nil
	case !c.Mode.IsRegular():
		v.Text = text
		return v, nil
	}
	var err error
	v.Ref, err = put(c.Data)
	return v, err
}

// content returns the content of a version.
func (h *History) content(v journal.Version) ([]byte, error) {
	switch {
	case !v.Exists, v.Ref == "" && v.Text == "" && v.Size == 0 && v.Mode.IsRegular():
		return nil, nil
	case v.Text != "":
		return []byte(v.Text), nil
	case v.Ref == "":
		return nil, chela.Errorf(chela.CodeNotFound, "a content of %d bytes was not kept", v.Size)
	}
	data, err := h.o.Files.Read(v.Ref)
	if err == nil && journal.HashOf(data) != v.Hash {
		err = fmt.Errorf("the stored content %s is damaged", v.Ref)
	}
	return data, err
}

// present returns the content of a file, without following links. The file does not exist if
// a folder is in its place, or something else in the place of a folder on the way.
func (h *History) present(path string) (journal.Content, error) {
	dir, base, err := pathpolicy.OpenParent(path, 0)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) { // a folder that nobody can list tells which files it has not
			if _, statErr := os.Lstat(path); statErr != nil {
				err = statErr
			}
		}
		if at, _ := blocked(path); at != "" || errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return journal.Content{}, err
	}
	defer dir.Close()
	return readIn(dir, base, path)
}

// blocked returns the first element on the way to a file that is not a folder, and what it
// is; "": there is none.
func blocked(path string) (at, what string) {
	if above := filepath.Dir(path); above != path {
		if at, what = blocked(above); at != "" {
			return at, what
		}
		path = above
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil || info.IsDir():
		return "", ""
	case info.Mode()&fs.ModeSymlink != 0:
		return path, "a link"
	}
	return path, "a file"
}

// obstacle returns why a file cannot be put in a place; "": it can be. gone reports the
// files that are removed before.
func (h *History) obstacle(agent chela.AgentID, path string, gone func(string) bool) string {
	if at, what := blocked(path); at != "" && !gone(at) {
		return fmt.Sprintf("%s is %s now, not a folder", h.Name(agent, at), what)
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return ""
	}
	err := filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !gone(at) {
			err = fs.ErrExist
		}
		return err
	})
	if err != nil {
		return "a folder with other files is in its place now"
	}
	return ""
}

// modeOf returns the permissions of a file, or else those that it is to have.
func modeOf(path string, mode fs.FileMode) fs.FileMode {
	dir, base, err := pathpolicy.OpenParent(path, 0)
	if err != nil {
		return mode
	}
	defer dir.Close()
	if info, err := dir.Lstat(base); err == nil && info.Mode().IsRegular() {
		return info.Mode().Perm()
	}
	return mode
}

func readIn(dir *os.Root, base, path string) (journal.Content, error) {
	info, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return journal.Content{}, nil
	case err != nil || info.IsDir():
		return journal.Content{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := dir.Readlink(base)
		return journal.Content{Exists: true, Data: []byte(to), Mode: fs.ModeSymlink}, err
	case pathpolicy.CheckFile(path, info) != nil:
		return journal.Content{Exists: true, Mode: fs.ModeIrregular}, nil
	}
	c := journal.Content{Exists: true, Mode: info.Mode().Perm()}
	if info.Size() > journal.MaxContent {
		c.Large = info.Size()
		return c, nil
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return journal.Content{}, err
	}
	defer f.Close()
	if c.Data, err = io.ReadAll(io.LimitReader(f, journal.MaxContent+1)); err == nil && len(c.Data) > journal.MaxContent {
		c.Data, c.Large = nil, int64(len(c.Data))
	}
	return c, err
}

// replace gives a file a content, atomically, or deletes it. A link in its place is replaced
// itself, and so is a folder without files. Of the folders down to folder
// that a deletion leaves empty, those that were made for the file are removed. Folders that
// are missing are made, and those that are closed to their owner are opened meanwhile.
func (h *History) replace(path, folder string, to journal.Version) error {
	defer openFolders(path)()
	if !to.Exists {
		return remove(path, folder)
	}
	data, err := h.content(to)
	if err != nil {
		return err
	}
	folders := fs.FileMode(0o755)
	if mode := to.Mode.Perm(); mode != 0 && mode&0o077 == 0 { // the folder of a private file was private, too
		folders = 0o700
	}
	dir, base, err := pathpolicy.OpenParent(path, folders)
	if err != nil {
		return err
	}
	defer dir.Close()
	if old, err := dir.Lstat(base); err == nil && old.IsDir() {
		if err := removeFolder(dir, base); err != nil {
			return err
		}
	}
	if to.Link() {
		return atomicfile.SymlinkIn(dir, base, string(data))
	}
	if err := atomicfile.WriteIn(dir, base, data, to.Mode.Perm()); err != nil {
		return err
	}
	if mode := to.Mode.Perm(); mode != 0 { // a new file got it without the bits of the umask
		return dir.Chmod(base, mode)
	}
	return nil
}

// openFolders lets the owner of the folders on the way to a file use them, until the caller
// calls shut.
func openFolders(path string) (shut func()) {
	var shuts []func()
	shut = func() {
		for _, f := range slices.Backward(shuts) {
			f()
		}
	}
	if os.Geteuid() <= 0 { // root uses all folders, and other systems have other rights
		return shut
	}
	var dirs []string
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	need := fs.FileMode(0o500)
	for i, dir := range slices.Backward(dirs) { // a folder before those in it
		if i == 0 {
			need = 0o700
		}
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.Mode()&need == need {
			continue
		}
		root, name, err := pathpolicy.OpenParent(dir, 0)
		if err != nil {
			return shut
		}
		now, err := root.Lstat(name)
		if err != nil || !os.SameFile(now, info) || root.Chmod(name, info.Mode()|need) != nil { // it is somebody else's
			_ = root.Close() // nothing was written
			continue
		}
		shuts = append(shuts, func() { _ = errors.Join(root.Chmod(name, info.Mode()), root.Close()) }) // it may be gone
	}
	return shut
}

// removeFolder removes a folder that has no files, with the folders in it.
func removeFolder(root *os.Root, name string) error {
	list, err := fs.ReadDir(root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			if err := removeFolder(root, filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return root.Remove(name)
}

// remove deletes a file, and the empty folders down to folder.
func remove(path, folder string) error {
	dir, base, err := pathpolicy.OpenParent(path, 0)
	if err != nil {
		return err
	}
	err = errors.Join(dir.Remove(base), dir.Close())
	if err != nil || folder == "" {
		return err
	}
	for at := filepath.Dir(path); pathpolicy.Inside(at, folder); at = filepath.Dir(at) {
		above, name, err := pathpolicy.OpenParent(at, 0)
		if err != nil {
			return nil //nolint:nilerr // an empty folder that stays does no harm
		}
		err = above.Remove(name)
		if errors.Join(err, above.Close()) != nil { // it is not empty
			return nil
		}
	}
	return nil
}
