package native

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// maxKnown limits the folders of which secrets knows what is in them.
const maxKnown = 20_000

// secrets finds the private files in the toolchains of a home folder. Before each command it
// looks into the folders that changed, which their times tell. The zero secrets is ready to
// use.
type secrets struct {
	mu    sync.Mutex
	known map[string]secretFolder
}

// secretFolder is what is in a folder.
type secretFolder struct {
	info    os.FileInfo
	private []string // what has a private name
	below   []string // folders to look into
}

// of returns the private files in the toolchains: those that are known, whether they exist
// or not, and others by the rule for names.
func (s *secrets) of(home string) []string {
	var out []string
	for _, name := range toolchainSecrets {
		out = append(out, filepath.Join(home, name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > maxKnown {
		s.known = nil
	}
	for _, name := range toolchains {
		out = s.add(out, filepath.Join(home, name), secretDepth)
	}
	return out
}

// add adds what has a private name in a folder and in those below it.
func (s *secrets) add(out []string, dir string, depth int) []string {
	f := s.look(dir)
	out = append(out, f.private...)
	if depth > 0 {
		for _, name := range f.below {
			out = s.add(out, name, depth-1)
		}
	}
	return out
}

// look returns what is in a folder.
func (s *secrets) look(dir string) (f secretFolder) {
	info, err := os.Stat(dir)
	if err != nil { // there may be none
		delete(s.known, dir)
		return f
	}
	if known, ok := s.known[dir]; ok && os.SameFile(known.info, info) && changedAt(known.info).Equal(changedAt(info)) {
		return known
	}
	settled := time.Since(changedAt(info)) >= tick // a later change may have the same time
	f.info = info
	entries, _ := os.ReadDir(dir) // it may have gone
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case !pathpolicy.Private(e.Name()):
			if e.IsDir() && len(entries) < maxSecretFolders {
				f.below = append(f.below, name)
			}
		case pathpolicy.PublicCertificates(name):
			settled = false // it depends on what is in the file
		default:
			f.private = append(f.private, name)
		}
	}
	delete(s.known, dir)
	if settled {
		if s.known == nil {
			s.known = map[string]secretFolder{}
		}
		s.known[dir] = f
	}
	return f
}
