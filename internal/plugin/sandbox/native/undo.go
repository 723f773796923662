//go:build linux

package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
	folders "github.com/chela-ai/chela/internal/kit/folder"
)

// blockedSuffix is what the name of a file gets that a command must not make.
const blockedSuffix = ".blocked"

// before is what a workspace has before a command that can change it. What
// makes other programs run something and came to be while the command ran is
// renamed. It can be stored, because the gateway may be killed meanwhile.
type before struct {
	Workspace string `json:"workspace"`
	Home      string `json:"home"` // of the person
	// Names has protected names and private files by their absolute paths, with the
	// identity of the folder that they are in.
	Names map[string]string `json:"names"`
	// Things has the identities of the same, which they keep if a folder above is renamed.
	Things map[string]bool `json:"things"`
	// Repositories has the protected names of each repository by its identity, and the
	// commands of its rebase.
	Repositories map[string][]string `json:"repositories"`
	Closed       map[string]bool     `json:"closed"` // identities of folders that nobody can look into
	began        time.Time
	tips         map[string]tips   // of each repository, by its identity
	shells       map[string]string // identities of the scripts of the project, as far as there are not too many
}

// has reports whether a file or folder was there.
func (b before) has(name string) bool {
	above, ok := b.Names[name]
	return ok && above == fileID(filepath.Dir(name)) || b.Things[fileID(name)]
}

// before returns what the workspace has now.
func (p *privateFiles) before() before {
	b := before{
		Workspace:    p.root,
		Home:         p.home,
		Names:        map[string]string{},
		Things:       map[string]bool{},
		Repositories: map[string][]string{},
		Closed:       maps.Clone(p.closed),
		began:        time.Now(),
		tips:         map[string]tips{},
		shells:       map[string]string{},
	}
	for name := range p.shells {
		if b.shells[name] = ""; len(b.shells) <= maxShells {
			b.shells[name] = fileID(name)
		}
	}
	for _, name := range slices.Concat(p.freeze, p.hide) {
		if id := fileID(name); id != "" {
			b.Names[name], b.Things[id] = fileID(filepath.Dir(name)), true
		}
	}
	for _, name := range pathpolicy.RepositoryNames() {
		if name = filepath.Join(p.root, name); exists(name) {
			b.Names[name] = fileID(p.root)
		}
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return b // the workspace is gone
	}
	defer root.Close()
	for _, git := range p.gits {
		info, err := os.Lstat(git)
		if err != nil || !info.IsDir() || git == p.root && !isRepository(git) {
			continue
		}
		b.tips[fileID(git)] = tipsOf(git, p.refs)
		if _, free := p.free[git]; free {
			continue // it is checked as a new one
		}
		had := []string{}
		for _, name := range p.freeze {
			if rel, ok := strings.CutPrefix(name, git+"/"); ok {
				had = append(had, rel)
			}
		}
		if rel, err := filepath.Rel(p.root, git); err == nil {
			commands, _ := rebaseCommands(root, rel)
			had = append(had, commands...)
		}
		b.Repositories[fileID(git)] = had
	}
	return b
}

// hold stores b in a file while the command runs. The file is locked, so that
// only another process that finds this one dead uses it.
func (b before) hold(file string) (*os.File, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.Write(data) // it has to survive this process only
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxName is the number of bytes of a name in a folder.
const maxName = 255

// beforePrefix begins the names of the files that hold a before.
const beforePrefix = "before-"

// recoverBefore undoes what commands made that ran when a gateway was killed.
// layers is the folder with the layers of all workspaces.
func recoverBefore(layers string) {
	files, _ := fs.Glob(os.DirFS(layers), "*/"+beforePrefix+"*") // the pattern is well-formed
	for _, file := range files {
		file = filepath.Join(layers, file)
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			continue // the command has ended
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			var b before
			if json.NewDecoder(f).Decode(&b) == nil && filepath.IsAbs(b.Workspace) {
				found := newPrivate(b.Workspace, b.Home, nil, false)
				if found.opens = true; b.Closed != nil {
					found.closed = b.Closed
				}
				if err := found.find(context.Background()); err == nil {
					_ = b.undo(&found) // there is nobody to tell
				}
			}
			_ = os.Remove(file) // it may be gone
		}
		_ = f.Close() // nothing was written
	}
}

// undo renames what makes other programs run something and was not there
// before, and returns it. now is what is there. Other commands may change the
// workspace at the same time, so nothing outside of it is touched.
func (b before) undo(now *privateFiles) []string {
	root, err := os.OpenRoot(b.Workspace)
	if err != nil {
		return nil // the workspace is gone
	}
	defer root.Close()
	u := undoing{before: b, root: root, gits: now.gits}
	for _, name := range pathpolicy.RunsAtTop() {
		u.blockUnknown(filepath.Join(b.Workspace, name))
	}
	for _, name := range slices.Sorted(maps.Keys(now.names)) { // a folder before what is in it
		u.blockUnknown(name)
	}
	for _, name := range now.loginNames() {
		u.blockUnknown(name)
	}
	for _, git := range now.gits {
		if git == b.Workspace && !isRepository(git) {
			continue
		}
		for _, name := range runByGit(git, b.Workspace) {
			u.blockUnknown(name)
		}
		if rel, err := filepath.Rel(b.Workspace, git); err == nil && filepath.IsLocal(rel) {
			u.repository(rel)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.deep)) {
		u.cut(name, now)
	}
	slices.Sort(u.blocked)
	return slices.Compact(u.blocked)
}

// undoing is an undo in progress. Its paths are below root.
type undoing struct {
	before
	root    *os.Root
	gits    []string
	blocked []string
}

// blockUnknown renames a file or folder that was not there before.
func (u *undoing) blockUnknown(name string) {
	if rel, err := filepath.Rel(u.Workspace, name); err == nil && filepath.IsLocal(rel) && exists(name) && !u.has(name) {
		u.block(rel)
	}
}

// cut renames a folder that was not there before and has a path that is too long to look
// into it.
func (u *undoing) cut(name string, now *privateFiles) {
	id, n := fileID(name), len(u.blocked)
	if id == "" {
		delete(now.deep, name)
		return
	}
	if u.blockUnknown(name); len(u.blocked) > n {
		now.cut = append(now.cut, u.blocked[n])
		u.blocked = u.blocked[:n]
		u.Things[id] = true // it is renamed once
	}
}

// block renames a file or folder, if it exists.
func (u *undoing) block(name string) {
	if _, err := u.root.Lstat(name); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return
	}
	u.rename(name)
}

// rename gives a file or folder a name that means nothing to other programs.
func (u *undoing) rename(name string) {
	dir, base := path.Split(name)
	base = base[:min(len(base), maxName-len(blockedSuffix)-len("-999"))]
	for n := 1; n < 1000; n++ {
		to := dir + base + blockedSuffix
		if n > 1 {
			to += fmt.Sprint("-", n)
		}
		if _, err := u.root.Lstat(to); err == nil {
			continue
		}
		err := u.root.Rename(name, to)
		if errors.Is(err, fs.ErrPermission) { // the command may have closed the folder
			if info, statErr := u.root.Lstat(path.Dir(name)); statErr == nil &&
				u.root.Chmod(path.Dir(name), info.Mode()|0o700) == nil {
				err = u.root.Rename(name, to)
			}
		}
		if err == nil {
			u.blocked = append(u.blocked, name)
		}
		return
	}
}

// repository undoes what configures a repository: its hooks, and settings that
// name programs.
func (u *undoing) repository(git string) {
	if git == "." && u.Repositories[fileID(u.Workspace)] == nil {
		u.top()
		return
	}
	info, err := u.root.Lstat(git)
	if err != nil {
		return // it went away
	}
	if !info.IsDir() {
		if !u.has(filepath.Join(u.Workspace, git)) && !u.linked(git) {
			u.rename(git)
		}
		return
	}
	had, isOld := u.Repositories[fileID(filepath.Join(u.Workspace, git))]
	if !u.configuration(git, had, repositorySettings) && !isOld {
		u.rename(git)
	}
}

// top keeps the workspace from becoming a repository without a working tree: the names in it
// that would configure it, such as config and hooks, may be the person's.
func (u *undoing) top() {
	for _, name := range pathpolicy.RepositoryNames() {
		if !isRepository(u.Workspace) {
			return
		}
		u.blockUnknown(filepath.Join(u.Workspace, name))
	}
}

// configuration undoes what configures a repository, except for the names that
// it had, and reports whether it could look at everything.
func (u *undoing) configuration(git string, had []string, settings map[string][]string) bool {
	u.blockNew(git, "commondir", had)
	u.blockNew(git, "info/attributes", had)
	ok := u.settings(git, "config", had, settings)
	ok = u.settings(git, "config.worktree", had, settings) && ok
	if !slices.Contains(had, "hooks") {
		ok = u.hooks(path.Join(git, "hooks")) && ok
	}
	if !slices.Contains(had, "modules") {
		ok = u.modules(path.Join(git, "modules"), 0) && ok
	}
	u.rebase(git, had)
	return u.worktrees(git, had) && ok
}

// rebase blocks a rebase in progress that would run commands that it did not have.
func (u *undoing) rebase(git string, had []string) {
	commands, ok := rebaseCommands(u.root, git)
	if !ok || slices.ContainsFunc(commands, func(c string) bool { return !slices.Contains(had, c) }) {
		u.block(path.Join(git, path.Dir(rebaseTodo)))
	}
}

// blockNew blocks a name in a repository that did not have it.
func (u *undoing) blockNew(git, name string, had []string) {
	if !slices.Contains(had, name) {
		u.block(path.Join(git, name))
	}
}

// list returns the names in a folder. ok is false if it cannot be read. What is
// no folder is blocked.
func (u *undoing) list(dir string) (names []string, ok bool) {
	info, err := u.root.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	if err != nil {
		return nil, false
	}
	if !info.IsDir() {
		u.rename(dir)
		return nil, true
	}
	entries, err := fs.ReadDir(u.root.FS(), dir)
	for _, e := range entries {
		names = append(names, path.Join(dir, e.Name()))
	}
	return names, err == nil
}

// hooks blocks the hooks of a repository but for the samples of Git.
func (u *undoing) hooks(dir string) bool {
	names, ok := u.list(dir)
	for _, name := range names {
		if base := path.Base(name); !isSample(base) && !wasBlocked(base) {
			u.rename(name)
		}
	}
	return ok
}

// wasBlocked reports whether a name is one that rename gives.
func wasBlocked(name string) bool {
	i := strings.LastIndex(name, blockedSuffix)
	return i > 0 && (strings.TrimLeft(name[i+len(blockedSuffix):], "-0123456789") == "")
}

// settings removes the settings that are not allowed from a file of a
// repository that did not have it. The whole file is kept under another name.
func (u *undoing) settings(git, file string, had []string, allowed map[string][]string) bool {
	name := path.Join(git, file)
	info, err := u.root.Lstat(name)
	if slices.Contains(had, file) || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	if !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		u.rename(name)
		return true
	}
	data, err := folders.Read(u.root, name, maxGitConfig)
	if err != nil {
		return false
	}
	kept, all := pickSettings(string(data), allowed)
	if all {
		return true
	}
	u.rename(name)
	if !strings.Contains(kept, "\t") { // no setting is left
		return true
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return false
	}
	_, err = f.WriteString(kept)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		err = errors.Join(err, f.Chown(int(st.Uid), int(st.Gid)))
	}
	return errors.Join(err, f.Close()) == nil
}

// worktrees checks the further working trees of a repository, which belong to
// it and have no other configuration.
func (u *undoing) worktrees(git string, had []string) bool {
	trees, ok := u.list(path.Join(git, "worktrees"))
	for _, tree := range trees {
		rel := path.Join("worktrees", path.Base(tree))
		if b, err := folders.Read(u.root, path.Join(tree, "commondir"), maxGitConfig); err != nil ||
			string(bytes.TrimSpace(b)) != "../.." {
			u.blockNew(git, path.Join(rel, "commondir"), had)
		}
		ok = u.settings(git, path.Join(rel, "config.worktree"), had, repositorySettings) && ok
		u.rebase(tree, had)
	}
	return ok
}

// maxDepth limits the folders that the name of a submodule has. Those that are deeper are
// renamed.
const maxDepth = 64

// modules undoes what configures the submodules of a repository.
func (u *undoing) modules(dir string, depth int) bool {
	names, ok := u.list(dir)
	for _, name := range names {
		info, err := u.root.Lstat(name)
		switch {
		case err != nil:
			ok = false
		case !info.IsDir():
		default:
			if _, err := u.root.Lstat(path.Join(name, "HEAD")); err == nil {
				ok = u.configuration(name, nil, moduleSettings) && ok
			} else if depth < maxDepth {
				ok = u.modules(name, depth+1) && ok
			} else {
				u.rename(name)
			}
		}
	}
	return ok
}

// linked reports whether a file .git names a working tree or a submodule of a
// repository in the workspace, as Git makes it.
func (u *undoing) linked(file string) bool {
	data, err := folders.Read(u.root, file, maxGitConfig)
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\n"), "gitdir: ")
	if err != nil || !ok || strings.ContainsAny(to, "\n\x00") {
		return false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(u.Workspace, filepath.Dir(file), to)
	}
	real, err := filepath.EvalSymlinks(to)
	if err != nil || real != filepath.Clean(to) {
		return false
	}
	return slices.ContainsFunc(u.gits, func(git string) bool {
		rel, err := filepath.Rel(git, real)
		return err == nil && (strings.HasPrefix(rel, "modules/") || path.Dir(rel) == "worktrees")
	})
}

// clockStep is more than the steps in which file systems note the time.
const clockStep = 20 * time.Millisecond

// openedNow returns the folders that were opened for the check since the last call.
func (p *privateFiles) openedNow() []string {
	var out []string
	for _, name := range p.opened {
		if rel, err := filepath.Rel(p.root, name); err == nil {
			out = append(out, rel)
		}
	}
	p.opened = nil
	slices.Sort(out)
	return slices.Compact(out)
}

// maxShells limits the scripts of a project that are known by their identities: others are
// not noticed if a folder with older ones takes the place of theirs.
const maxShells = 300

// later returns the scripts of the project that were changed or made since, or moved to where
// they are.
func (b before) later(found *privateFiles) []string {
	var out []string
	for name := range found.shells {
		info, err := os.Lstat(name)
		if err != nil {
			delete(found.shells, name)
			continue
		}
		id, had := b.shells[name]
		now := !had || id != "" && id != fileID(name) || changedAt(info).After(b.began.Add(-clockStep))
		if target, err := os.Stat(name); err == nil && !now { // of a link
			now = target.Mode().IsRegular() && changedAt(target).After(b.began.Add(-clockStep))
		}
		if rel, err := filepath.Rel(b.Workspace, name); err == nil && now {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// maxNames limits the folders that are named.
const maxNames = 10

// unchecked says why the check may have missed something, or "". With shown, the command
// had the folders too that nobody could look into.
func (p *privateFiles) unchecked(shown bool) string {
	var shut []string
	for name := range p.shut {
		if f, err := os.Open(name); err == nil {
			_ = f.Close() // nothing was written
			delete(p.shut, name)
		} else if rel, relErr := filepath.Rel(p.root, name); relErr == nil && errors.Is(err, fs.ErrPermission) &&
			(shown || !p.closed[fileID(name)]) {
			shut = append(shut, rel)
		}
	}
	var deep []string
	for name := range p.deep {
		if rel, err := filepath.Rel(p.root, name); err == nil && shown && exists(name) {
			deep = append(deep, rel)
		}
	}
	switch slices.Sort(deep); {
	case len(p.cut) > 0:
		return fmt.Sprintf(
			"renamed to NAME%s, because what is in a folder with a path of more than %d characters is not looked for: %s",
			blockedSuffix, maxPath, shell.Names(p.cut, maxNames))
	case len(deep) > 0:
		return fmt.Sprintf("these folders have a path of more than %d characters: %s", maxPath, shell.Names(deep, maxNames))
	case len(shut) > 0:
		slices.Sort(shut)
		return "these folders cannot be looked into: " + shell.Names(shut, maxNames)
	case p.failed != nil:
		return p.failed.Error()
	case len(p.seen) > maxLook:
		return fmt.Sprintf("the workspace has more than %d folders", maxLook)
	}
	return ""
}
