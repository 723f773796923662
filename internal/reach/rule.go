package reach

import (
	"fmt"
	"io"
	"os"

	"github.com/chela-ai/chela/internal/figure"
)

// Rule is what the tools of an agent may reach. The zero Rule keeps them in the
// workspace.
type Rule struct {
	Outside bool     // the person's files outside of the workspace
	Own     []string // Chela's own files and folders, which are private there
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
	if d.way, err = r.way(dir); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Read returns the content of a file of at most so many bytes, to be handed on as
// it is: one of secrets, whose values no tool shows, is refused.
// Errors name the file, in words for the model.
func (r Rule) Read(dir, path string, most int64) ([]byte, error) {
	w, err := r.Open(dir)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	at, name, err := w.At(path)
	if err != nil {
		return nil, err
	}
	f, info, err := at.OpenFile(path, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch n := info.Size(); {
	case Secret(at.Real(name)):
		return nil, fmt.Errorf("%s holds secrets and is not handed on; read shows it without their values", Show(path))
	case n == 0:
		return nil, fmt.Errorf("%s is empty", Show(path))
	case n > most:
		return nil, fmt.Errorf("%s has %s; at most %s", Show(path), figure.Bytes(n), figure.Bytes(most))
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, at.Fault(path, err)
	}
	return data, nil
}
