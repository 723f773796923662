package profile

import (
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Protect keeps the files of a configuration, and the copies of their earlier
// versions, from tools until the end of this process: also when the configuration
// does not use them any more, and when it cannot be used.
func (f *Factory) Protect(files ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		if !slices.Contains(f.own, file) {
			f.own = append(f.own, file)
		}
	}
}

// private returns the files and folders that tools do not use: the state
// directory, and the files of the configuration that are not directly in it. The
// links that lead to them are among them. It looks at the links at each call.
func (f *Factory) private() []string {
	f.mu.Lock()
	own := f.own // is only appended to
	f.mu.Unlock()
	out := pathpolicy.Trail(f.o.State)
	state := out[len(out)-1] // without links
	for _, file := range own {
		for _, name := range pathpolicy.Trail(file) {
			if filepath.Dir(name) != state && !slices.Contains(out, name) {
				out = append(append(out, name), config.Backups(name)...)
			}
		}
	}
	return out
}

// Private returns the files and folders that tools and hooks do not read.
func (f *Factory) Private() []string { return f.private() }

// claimConfig creates the file of the configuration if it is missing and would be
// in a workspace, so that no command can create it there. A command in the workspace could
// otherwise write the configuration of the next start.
func (g *Generation) claimConfig(workspace string) error {
	t, ok := g.Config.(*config.Tree)
	if !ok || t.Exists() {
		return nil
	}
	if !pathpolicy.Inside(pathpolicy.Real(t.Path()), pathpolicy.Real(workspace)) {
		return nil
	}
	var text []byte // which is as invalid as no file
	if t.Broken() == nil {
		text = []byte("{}\n")
	}
	return atomicfile.Write(t.Path(), text, 0o600)
}
