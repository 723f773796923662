//go:build linux

package native

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
	folders "github.com/chela-ai/chela/internal/kit/folder"
)

const (
	madeFile   = "made.json" // holds made, in the folder for the layers of the workspace
	maxMade    = 2000        // repositories and working trees
	maxModules = 1000        // submodules of a repository
)

// made are the repositories that commands in the sandbox made in a workspace, by the
// absolute paths of their folders .git: with a stamp of what configures them. Further
// working trees, of whatever repository, are among them: their folders in worktrees, and
// their files .git.
//
// As long as the stamp is the same, nobody else has touched them. Then they are not
// protected from later commands, which may configure and remove them, and what these leave
// is checked as if the repository were new.
type made map[string]string

// has reports whether only commands in the sandbox have configured a repository.
func (m made) has(name string) bool {
	stamp := m[name]
	return stamp != "" && stamp == configurationStamp(name)
}

// untouched returns those that only commands in the sandbox have configured.
func (m made) untouched() made {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(name, _ string) bool { return !m.has(name) })
	return out
}

// load adds what a file holds.
func (m made) load(file string) {
	data, err := folders.ReadPath(file, 4<<20)
	if err == nil && json.Unmarshal(data, &m) != nil {
		clear(m) // repositories are protected then
	}
}

// store writes it to a file.
func (m made) store(file string) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), atomicfile.Write(file, data, 0o600))
}

// configurationStamp returns a text that changes with what configures a repository or a
// working tree; "": there is none, or it has too many submodules.
func configurationStamp(name string) string {
	id := fileStamp(name)
	if info, err := os.Lstat(name); err != nil || id == "" {
		return ""
	} else if !info.IsDir() {
		return id
	}
	h, left := sha256.New(), maxModules
	fmt.Fprintln(h, fileID(name))
	if !stampInto(h, name, &left) {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// stampInto writes the stamps of the names that configure a repository.
func stampInto(w io.Writer, git string, left *int) bool {
	for _, dir := range append(worktrees(git), git) {
		for _, name := range repository {
			if stamp := fileStamp(filepath.Join(dir, name)); stamp != "" {
				fmt.Fprintf(w, "%q %s %s\n", dir, name, stamp)
			}
		}
	}
	return stampModules(w, filepath.Join(git, "modules"), 0, left)
}

// stampModules writes the stamps of the submodules in a folder.
func stampModules(w io.Writer, dir string, depth int, left *int) bool {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if *left--; *left < 0 || depth > maxDepth {
			return false
		}
		fmt.Fprintf(w, "%q %s\n", e.Name(), fileID(name))
		inner := stampModules
		if exists(filepath.Join(name, "HEAD")) {
			inner = func(w io.Writer, name string, _ int, left *int) bool { return stampInto(w, name, left) }
		}
		if e.IsDir() && !inner(w, name, depth+1, left) {
			return false
		}
	}
	return true
}

// made returns the repositories and working trees that the command made, or that earlier
// commands made and nobody else touched.
func (b before) made(now *privateFiles) made {
	out := made{}
	add := func(name string) {
		if stamp := configurationStamp(name); stamp != "" {
			out[name] = stamp
		}
	}
	for _, git := range now.gits {
		info, err := os.Lstat(git)
		switch {
		case err != nil, git == b.Workspace:
		case !info.IsDir():
			if !b.has(git) {
				add(git)
			}
		case b.Repositories[fileID(git)] == nil:
			add(git)
		default:
			for _, tree := range worktrees(git) {
				if !b.has(filepath.Join(tree, "commondir")) {
					add(tree)
				}
			}
		}
	}
	return out
}

// madeIn returns what commands made in a workspace.
func (b *Broker) madeIn(workspace string) made {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.madeLocked(workspace)
}

// madeLocked is madeIn with b.mu held. What it returns is not changed.
func (b *Broker) madeLocked(workspace string) made {
	h := b.hiddenLocked(workspace)
	if h.made == nil {
		h.made = made{}
		if dir := b.layersFolder(workspace); dir != "" {
			h.made.load(filepath.Join(dir, madeFile))
		}
	}
	return h.made
}

// keepMade keeps in mind what a command made, or has configured.
func (b *Broker) keepMade(workspace string, now made) {
	b.mu.Lock()
	defer b.mu.Unlock()
	had := b.madeLocked(workspace)
	all := had.untouched()
	maps.Copy(all, now)
	if len(all) > maxMade || maps.Equal(all, had) {
		return
	}
	b.hidden[workspace].made = all
	if dir := b.layersFolder(workspace); dir != "" {
		_ = all.store(filepath.Join(dir, madeFile)) // after the next start they are protected
	}
}
