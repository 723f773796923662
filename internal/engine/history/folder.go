package history

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// Folder calls change, which puts the folder next in the place of dir, or removes dir if
// next is empty, and records what that does to the files, by the source in ctx and as one
// unit. Neither folder needs to exist. The record precedes the change, as that of
// [History.Plan]: without one, nothing is changed.
func (h *History) Folder(ctx context.Context, dir, next string, change func() error) error {
	if !h.o.Config().On() {
		return change()
	}
	dir = pathpolicy.Real(dir)
	if next != "" {
		next = pathpolicy.Real(next)
	}
	unlock, err := h.Lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	var targets []string
	for _, from := range [...]string{dir, next} {
		err := h.walk(from, func(path string) error {
			targets = append(targets, dir+strings.TrimPrefix(path, from))
			return nil
		})
		if err != nil {
			return err
		}
	}
	unlockFiles, err := h.Lock(ctx, targets...) // an undo locks these
	if err != nil {
		return err
	}
	defer unlockFiles()
	before, err := h.contents(dir, dir)
	if err != nil {
		return err
	}
	after, err := h.contents(next, dir)
	if err != nil {
		return err
	}
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var planned []journal.Change
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !before[path].Same(after[path]) {
			planned = append(planned, journal.Change{
				Kind:   journal.File,
				Target: path,
				Folder: dir,
				Before: before[path],
				After:  after[path],
				State:  journal.Planned,
			})
		}
	}
	if len(planned) == 0 {
		return change()
	}
	done, err := h.record(ctx, planned)
	if err != nil {
		return err
	}
	made := len(planned)
	if err = change(); err != nil {
		made = 0
	}
	done(made)
	return err
}

// walk calls f with the path of each regular file and link in a folder, which need not exist.
func (h *History) walk(dir string, f func(path string) error) error {
	n := 0
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !listed(e):
			return nil
		case n >= maxFiles:
			return fs.SkipAll
		}
		n++
		return f(path)
	})
}

// maxFolder is the number of bytes of a folder that are kept.
const maxFolder = 64 << 20

// contents stores the contents of the files in a folder, and returns their versions by
// their paths in the folder as.
func (h *History) contents(dir, as string) (map[string]journal.Version, error) {
	out, left := map[string]journal.Version{}, maxFolder
	return out, h.walk(dir, func(path string) error {
		c, err := h.present(path)
		if err != nil {
			return nil //nolint:nilerr // a file that cannot be read is not recorded
		}
		v := versionOf(c)
		if left -= len(c.Data); left >= 0 {
			v, err = h.keep(journal.File, c)
		}
		out[as+strings.TrimPrefix(path, dir)] = v
		return err
	})
}
