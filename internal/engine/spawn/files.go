package spawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// place checks the folder in which a child is to work, and writes its attachments. m is
// its session. It returns the folder with the attachments; empty: there are none.
func (s *Spawner) place(m session.Meta, r *subagent.Request) (string, error) {
	dir, err := s.o.Config.Workspace(m)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("the workspace of the subagent: %w", err)
	}
	defer root.Close()
	if r.Folder, err = folderIn(root, r.Folder); err != nil || len(r.Files) == 0 {
		return "", err
	}
	name := subagent.Child{ID: r.ID}.FilesFolder()
	if err := root.MkdirAll(name, 0o755); err != nil {
		return "", fmt.Errorf("attachments: %w", err)
	}
	to, err := root.OpenRoot(name)
	if err != nil {
		return "", fmt.Errorf("attachments: %w", err)
	}
	defer to.Close()
	path := filepath.Join(dir, name)
	for _, f := range r.Files {
		if err := atomicfile.WriteIn(to, f.Name, f.Data, 0o644); err != nil {
			return "", errors.Join(fmt.Errorf("attachment %q: %w", f.Name, err), os.RemoveAll(path))
		}
	}
	return path, nil
}

// folderIn returns a folder of the workspace, relative to it.
func folderIn(root *os.Root, folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	name := filepath.Clean(folder)
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(root.Name(), name)
		if err != nil || !filepath.IsLocal(rel) {
			return "", chela.Errorf(chela.CodeInvalid, "cwd %s is not in the workspace %s", folder, root.Name())
		}
		name = rel
	}
	info, err := root.Stat(name)
	switch {
	case err != nil:
		return "", chela.Errorf(chela.CodeInvalid, "cwd %s: there is no such folder in the workspace", folder)
	case !info.IsDir():
		return "", chela.Errorf(chela.CodeInvalid, "cwd %s is not a folder", folder)
	case name == ".":
		return "", nil
	}
	return filepath.ToSlash(name), nil
}

// discard removes the attachments of a spawn that was refused.
func (p prepared) discard() {
	if p.files != "" {
		_ = os.RemoveAll(p.files) // files that remain do no harm
	}
}

// removeFiles removes the attachments of a child whose session ends. m is its session.
func (s *Spawner) removeFiles(c subagent.Child, m session.Meta) error {
	if len(c.Files) == 0 || c.Retain && c.Cleanup == subagent.Keep {
		return nil
	}
	dir, err := s.o.Config.Workspace(m)
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, c.FilesFolder()))
}
