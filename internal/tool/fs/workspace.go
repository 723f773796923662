package fs

import "github.com/chela-ai/chela/internal/reach"

// workspace is the folder that a tool works in: the agent's; or, for tools that
// may leave it, one outside.
type workspace struct {
	*reach.Dir
	hidden int // what a search passed over
}

// at returns the folder through which a path is reached, and its name there.
func (w *workspace) at(path string) (*workspace, string, error) {
	dir, name, err := w.At(path)
	switch {
	case err != nil:
		return nil, "", err
	case dir == w.Dir:
		return w, name, nil
	}
	return &workspace{Dir: dir}, name, nil
}
