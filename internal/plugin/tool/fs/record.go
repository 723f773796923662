package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// real returns the path of a file without links, as the journal names it.
func (w *workspace) real(name string) string {
	return filepath.Join(pathpolicy.Real(w.Path), name)
}

// content returns the content of a file for the journal; of one that does not exist if info
// is nil.
func content(data []byte, info fs.FileInfo) journal.Content {
	if info == nil {
		return journal.Content{}
	}
	c := journal.Content{Exists: true, Data: data, Mode: info.Mode().Perm()}
	if len(data) > journal.MaxContent {
		c.Data, c.Large = nil, int64(len(data))
	}
	return c
}

// before reads the content of a file that will be replaced, unless it is too large for the
// journal. had is the file's state; nil: it does not exist.
func (w *workspace) before(path, name string, had fs.FileInfo) (journal.Content, error) {
	if _, off := w.journal.(journal.Off); off || had == nil {
		return content(nil, had), nil
	}
	if had.Size() > journal.MaxContent {
		return journal.Content{Exists: true, Large: had.Size(), Mode: had.Mode().Perm()}, nil
	}
	f, info, err := w.OpenFile(path, name)
	if err != nil { // it may be replaced, but not read
		return journal.Content{Exists: true, Large: max(had.Size(), 1), Mode: had.Mode().Perm()}, nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, journal.MaxContent+1))
	if err != nil {
		return journal.Content{}, w.PathError(path, err)
	}
	return content(data, info), nil
}

// edit returns the change of a file, for the journal. perm is the mode of a new file.
func (w *workspace) edit(name string, before journal.Content, after []byte, perm fs.FileMode) journal.Edit {
	e := journal.Edit{Kind: journal.File, Target: w.real(name), Before: before,
		After: journal.Content{Exists: true, Data: after, Mode: perm}}
	if before.Exists {
		e.After.Mode = before.Mode
	}
	for dir := filepath.Dir(name); dir != "." && !before.Exists; dir = filepath.Dir(dir) {
		if _, err := w.Root.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		e.Folder = w.real(dir)
	}
	return e
}

// record makes changes one after another, and records them. The first error ends it.
func (w *workspace) record(ctx context.Context, edits []journal.Edit, change func(i int) error) error {
	done, err := w.journal.Plan(ctx, edits...)
	if err != nil {
		return fmt.Errorf("not changed: %w", err)
	}
	for i := range edits {
		if err := change(i); err != nil {
			done(i)
			return err
		}
	}
	done(len(edits))
	return nil
}
