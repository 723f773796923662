package hookdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Install copies the folder of a hook into the folder managed, and returns the hook
// there. Nothing of it is run. It replaces an installed hook with the same name only
// if replace is set. Links are refused.
func Install(from, managed string, replace bool) (Hook, error) {
	h, err := Read(from, func(name string) string { return name }) // the program may be installed later
	if err != nil {
		return h, chela.Errorf(chela.CodeInvalid, "%s: %w", from, err)
	}
	if err := os.MkdirAll(managed, 0o700); err != nil {
		return h, err
	}
	temp, err := os.MkdirTemp(managed, ".install-")
	if err != nil {
		return h, err
	}
	defer os.RemoveAll(temp)
	fresh := filepath.Join(temp, "new")
	if err := folder.Copy(from, fresh, limits); err != nil {
		return h, chela.Errorf(chela.CodeInvalid, "%s: %w", from, err)
	}
	to := filepath.Join(managed, h.Name)
	if _, err := os.Lstat(to); err == nil {
		if !replace {
			return h, chela.Errorf(chela.CodeConflict, "the hook %s is installed already in %s", h.Name, to)
		}
		if err := os.Rename(to, filepath.Join(temp, "old")); err != nil {
			return h, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return h, err
	}
	if err := os.Rename(fresh, to); err != nil {
		return h, err
	}
	h.Source, h.Dir, h.File, h.Handler = Managed, to, filepath.Join(to, FileName),
		filepath.Join(to, filepath.Base(h.Handler))
	return h, atomicfile.SyncDir(managed)
}
