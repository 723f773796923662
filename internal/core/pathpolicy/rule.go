package pathpolicy

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Rule is which files the tools of an agent may use. The zero Rule confines
// them to the workspace.
type Rule struct {
	Outside bool     // files outside the workspace are allowed
	Private []string // further files and folders that are private, such as Chela's state directory
}

// Open opens a workspace.
func (r Rule) Open(dir string) (*Dir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	d := &Dir{Root: root, Path: dir}
	if !r.Outside {
		return d, nil
	}
	if d.resolver, err = r.resolver(dir); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// resolver returns a resolver for a workspace.
func (r Rule) resolver(dir string) (*resolver, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	home, _ := os.UserHomeDir() // "": no path is in it
	res := &resolver{workspace: dir, real: real, judge: shell.Judge{Dir: dir, Workspace: real, Home: home}}
	for _, path := range r.Private {
		if path, err := resolveLinks(path); err == nil {
			res.extra = append(res.extra, path)
		}
	}
	return res, nil
}

// Read returns the content of a file, unchanged. It refuses files that hold
// secrets, empty files and files larger than maxBytes. Errors name the file and
// are phrased for the model.
func (r Rule) Read(dir, path string, maxBytes int64) ([]byte, error) {
	w, err := r.Open(dir)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	at, name, err := w.Resolve(path)
	if err != nil {
		return nil, err
	}
	f, info, err := at.OpenFile(path, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch n := info.Size(); {
	case Secret(at.ResolveLinks(name)):
		return nil, fmt.Errorf("%s holds secrets and cannot be passed on; the read tool shows it with the values masked", Show(path))
	case n == 0:
		return nil, fmt.Errorf("%s is empty", Show(path))
	case n > maxBytes:
		return nil, fmt.Errorf("%s is too large (%s; the limit is %s)", Show(path), humanize.Bytes(n), humanize.Bytes(maxBytes))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, at.PathError(path, err)
	}
	return data, nil
}
