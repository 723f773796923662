//go:build linux

package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Limits of a workspace that is searched for private files. A person is asked about one
// that exceeds them.
const (
	maxFolders = 50_000
	maxPath    = 3000             // bytes of the path of a folder that is looked into; others are hidden
	lookTime   = 20 * time.Second // for a search
	maxLook    = 500_000          // folders that are looked at for what a command left
)

// tick is more than the units in which file systems note times.
const tick = 2 * time.Second

// repository are the names in a folder .git that do.
var repository = []string{"config", "config.worktree", "commondir", "hooks", "info/attributes", "modules"}

// privateFiles are the files in a workspace that a cage must not show, and
// those that it must not change.
type privateFiles struct {
	root   string
	home   string          // of the person; "": unknown
	never  []string        // files and folders of this process that are never shown
	own    []string        // what of never is hidden, because it exists and does not hold root
	above  []string        // folders of the workspace that hold own
	hide   []string        // absolute paths
	linked map[uint64]bool // inodes of private files that have another name
	gits   []string        // absolute paths of folders and files .git, and of repositories without a working tree
	names  map[string]bool // absolute paths with names for which pathpolicy.Runs is true
	links  map[file]names  // files with several names; nil after the first search
	// absolute paths of files with names outside of the workspace, and of folders with such files
	shared []string
	shells map[string]bool      // absolute paths of scripts of the project; see pathpolicy.Script
	refs   map[string]refFile   // files with refs that were read
	made   made                 // repositories that commands made
	free   made                 // those of them that are not protected
	freeze []string             // absolute paths
	pin    []string             // absolute paths of folders that hold frozen ones
	seen   map[string]time.Time // searched folders, with their time of change, or an earlier one: search it again
	watch  *watch               // tells which folders changed; nil: nothing does
	folder os.FileInfo          // of root
	all    bool                 // folders of dependencies are searched too
	masks  masks                // of what the cage hides
	most   int                  // folders; a person is asked about a workspace with more

	uncovered []string // private files in folders that changed, which a cage that is ready does not hide yet
	changed   bool     // some folder changed since the covers of the cage were made
	failed    error    // of a search, which may have missed something
	missed    string   // why folders are not searched; "": they are

	opens  bool            // folders that are closed to their owner are opened
	closed map[string]bool // identities of folders that are hidden because nobody can look into them
	opened []string        // folders that were opened
	shut   map[string]bool // absolute paths of folders that cannot be looked into
	deep   map[string]bool // absolute paths of folders that are hidden because their paths are too long
	cut    []string        // those of them that a command made, by their names before they were renamed
}

// newPrivate returns what is known of a workspace before find searches it. Folders of
// dependencies are not searched, unless with all: the keys in them are examples. A folder of
// never that holds the workspace is not an obstacle.
func newPrivate(root, home string, never []string, all bool) privateFiles {
	return privateFiles{
		root:   root,
		home:   home,
		never:  never,
		linked: map[uint64]bool{},
		seen:   map[string]time.Time{},
		masks:  masks{},
		all:    all,
		most:   maxFolders,
		names:  map[string]bool{},
		shells: map[string]bool{},
		links:  map[file]names{},
		closed: map[string]bool{},
		shut:   map[string]bool{},
		deep:   map[string]bool{},
		refs:   map[string]refFile{},
	}
}

// find searches the workspace.
func (p *privateFiles) find(ctx context.Context) error {
	p.findOwn()
	if p.root == "" {
		return nil
	}
	root := p.root
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, errSlow)
	defer cancel()
	var err error
	if p.folder, err = os.Stat(root); err != nil {
		return err
	}
	_, err = p.search(ctx, root)
	if err == nil && len(p.linked) > 0 {
		err = p.searchNames(ctx)
	}
	p.findShared()
	if errors.Is(err, errSlow) {
		p.missed, err = errSlow.Error(), nil
	}
	p.protect()
	return err
}

// errSlow means that a search took longer than lookTime.
var errSlow = fmt.Errorf("its folders cannot be searched in %v", lookTime)

// unsearched returns the error of a workspace of which not everything could be searched,
// unless a person allowed r to read all of it.
func (p *privateFiles) unsearched(r sandbox.Rights) error {
	if p.missed == "" || r.ReadsAll() {
		return nil
	}
	return &sandbox.UnsearchedError{Reason: p.missed, Right: "read:" + p.root}
}

// findOwn finds what of never is hidden, and the folders of the workspace that hold
// it: such a folder could be renamed, and replaced by another.
func (p *privateFiles) findOwn() {
	p.own, p.above = nil, nil
	for _, name := range p.never {
		if !exists(name) || p.root != "" && pathpolicy.Inside(p.root, name) {
			continue
		}
		p.own = append(p.own, name)
		for dir := filepath.Dir(name); p.root != "" && dir != p.root &&
			pathpolicy.Inside(dir, p.root); dir = filepath.Dir(dir) {
			if !slices.Contains(p.above, dir) {
				p.above = append(p.above, dir)
			}
		}
	}
}

// search adds the private files of a folder and of those below it, and returns
// them.
func (p *privateFiles) search(ctx context.Context, dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went away
		case errors.Is(err, syscall.ENAMETOOLONG):
			p.missed = "its path is too long"
			return skip(d)
		case err != nil && (name == p.root || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
			errors.Is(err, syscall.ENOMEM)):
			return err
		// a program of the host is at its other end
		case err != nil, len(name) > maxPath && d.IsDir(), name != p.root && pathpolicy.Private(d.Name()) &&
			!pathpolicy.PublicCertificates(name), d.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0:
			// A program that owns a folder nobody can read could make it readable.
			p.note(name, d)
			if err != nil {
				p.noteClosed(name)
			} else if d.IsDir() && len(name) > maxPath {
				p.deep[name] = true
			}
			found = append(found, name)
			if !slices.Contains(p.hide, name) {
				p.hide = append(p.hide, name)
			}
			if n, linked := inode(name); linked && d.Type().IsRegular() {
				p.linked[n] = true
			}
			return skip(d)
		}
		p.note(name, d)
		if p.links != nil && d.Type().IsRegular() {
			p.noteLink(name)
		}
		if !d.IsDir() {
			return nil
		}
		if p.opens {
			p.open(name)
		}
		again := name != dir && !p.seen[name].IsZero() && (p.watch == nil || !p.watch.replaced(name))
		if again || !p.all && dependencies(name) {
			p.probe(name)
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return nil // it went away
		}
		at := changedAt(info)
		if time.Since(at) < tick { // a later change may have the same time
			at = at.Add(-1)
		}
		p.seen[name] = at
		if p.watch != nil && !p.watch.add(name) {
			p.close()
		}
		if len(p.seen) > p.most { // what a command left is looked for all the same
			p.missed = fmt.Sprintf("it has more than %d folders", p.most)
		}
		if len(p.seen) > maxLook {
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

// noteClosed keeps in mind a folder that cannot be looked into.
func (p *privateFiles) noteClosed(name string) {
	p.shut[name] = true
	if !p.opens {
		p.closed[fileID(name)] = true
	}
}

// open lets the owner of a folder look into it again, if a command may have closed it: one
// that is closed before a command is hidden from it. The workspace gets its mode back.
func (p *privateFiles) open(name string) {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() || info.Mode()&0o500 == 0o500 || os.Geteuid() == 0 || p.closed[fileID(name)] {
		return
	}
	if name == p.root { // nothing else can take its place
		mode := info.Mode() | 0o700
		if p.folder != nil && p.folder.Mode()&0o500 == 0o500 {
			mode = p.folder.Mode()
		}
		err = os.Chmod(name, mode)
	} else {
		err = chmodIn(p.root, name, info.Mode()|0o700)
	}
	if err == nil {
		p.opened = append(p.opened, name)
	}
}

// chmodIn changes the mode of a folder in another one, whatever is put in its place.
func chmodIn(dir, name string, mode fs.FileMode) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(root.Chmod(strings.TrimPrefix(name, dir+"/"), mode), root.Close())
}

// note keeps in mind a file or folder that makes other programs run something.
func (p *privateFiles) note(name string, d fs.DirEntry) {
	base, dir := d.Name(), filepath.Dir(name)
	switch {
	case name == p.root:
	case pathpolicy.Runs(base):
		p.names[name] = true
	case strings.EqualFold(base, ".git"):
		p.addGit(name)
	case base == "HEAD" && !d.IsDir() && isRepository(dir):
		if top := filepath.Dir(filepath.Dir(dir)); filepath.Base(filepath.Dir(dir)) == "worktrees" &&
			slices.Contains(p.gits, top) {
			return // of a repository, with which it is looked at
		}
		if !inGit(dir) {
			p.addGit(dir)
		}
	case (d.Type().IsRegular() || d.Type() == fs.ModeSymlink) && pathpolicy.Script(strings.TrimPrefix(name, p.root)):
		p.shells[name] = true
	}
}

// isRepository reports whether Git takes a folder for a repository without a working tree.
func isRepository(dir string) bool {
	return pathpolicy.Repository(func(n string) bool { return exists(filepath.Join(dir, n)) })
}

// inGit reports whether a path is a folder .git, or in one.
func inGit(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// addGit adds a repository.
func (p *privateFiles) addGit(name string) {
	if !slices.Contains(p.gits, name) {
		p.gits = append(p.gits, name)
	}
}

// searchNames adds the other names of private files, which can be anywhere.
func (p *privateFiles) searchNames(ctx context.Context) error {
	return filepath.WalkDir(p.root, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return nil // what cannot be read is hidden, or went away
		}
		if n, linked := inode(name); linked && p.linked[n] && d.Type().IsRegular() && !slices.Contains(p.hide, name) {
			p.hide = append(p.hide, name)
		}
		return nil
	})
}

// inode returns the inode number of a file, 0 if there is none, and whether the
// file has more than one name.
func inode(name string) (n uint64, linked bool) {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil {
		return 0, false
	}
	return st.Ino, st.Nlink > 1
}

// protect lists the protected names that exist now.
func (p *privateFiles) protect() {
	p.freeze, p.pin, p.free = nil, nil, made{}
	p.protectIn(p.root, pathpolicy.RunsAtTop())
	for _, name := range slices.Sorted(maps.Keys(p.names)) {
		if exists(name) {
			p.freeze = append(p.freeze, name)
		} else {
			delete(p.names, name)
		}
	}
	for _, name := range slices.Concat(p.loginNames(),
		slices.DeleteFunc(slices.Clone(p.shared), func(name string) bool { return !exists(name) })) {
		if !slices.Contains(p.freeze, name) {
			p.freeze = append(p.freeze, name)
		}
	}
	for _, git := range p.gits {
		info, err := os.Lstat(git)
		switch {
		case err != nil, git == p.root && !isRepository(git): // it went away
		case p.made.has(git):
			p.free[git] = p.made[git]
		case info.IsDir():
			if strings.EqualFold(filepath.Base(git), ".git") {
				p.pin = append(p.pin, git)
			}
			p.protectIn(git, repository)
			for _, name := range runByGit(git, p.root) {
				if exists(name) && !slices.Contains(p.freeze, name) {
					p.freeze = append(p.freeze, name)
				}
			}
			for _, tree := range worktrees(git) {
				if p.made.has(tree) {
					p.free[tree] = p.made[tree]
				} else {
					rel := filepath.Join("worktrees", filepath.Base(tree))
					p.protectIn(git, []string{filepath.Join(rel, "config.worktree"), filepath.Join(rel, "commondir")})
				}
			}
		default: // it names the folder
			p.freeze = append(p.freeze, git)
		}
	}
}

// loginNames returns what a login may run of a home folder that is in the workspace or is
// the workspace: all hidden names but for .cache, and the folder bin.
func (p *privateFiles) loginNames() []string {
	if p.home == "" || p.root == "" || !pathpolicy.Inside(p.home, p.root) {
		return nil
	}
	entries, _ := os.ReadDir(p.home) // it may be unreadable
	var out []string
	for _, e := range entries {
		if name := e.Name(); name == "bin" || name[0] == '.' && name != ".cache" && name != ".git" &&
			!strings.Contains(name, blockedSuffix) {
			out = append(out, filepath.Join(p.home, name))
		}
	}
	return out
}

// worktrees returns the folders of the further working trees of a repository.
func worktrees(git string) []string {
	entries, _ := os.ReadDir(filepath.Join(git, "worktrees")) // there may be none
	var out []string
	for _, e := range entries {
		out = append(out, filepath.Join(git, "worktrees", e.Name()))
	}
	return out
}

// protectIn lists the names that exist in a folder.
func (p *privateFiles) protectIn(dir string, names []string) {
	for _, name := range names {
		if name = filepath.Join(dir, name); exists(name) {
			p.freeze = append(p.freeze, name)
			if above := filepath.Dir(name); above != dir {
				p.pin = append(p.pin, above)
			}
		}
	}
}

// skip does not descend into a folder.
func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// dependencies reports whether a folder holds what a package manager or Git
// put there.
func dependencies(name string) bool {
	switch filepath.Base(name) {
	case "node_modules":
		return true
	case "objects", "refs", "logs", "lfs":
		return filepath.Base(filepath.Dir(name)) == ".git"
	}
	return false
}

// refresh looks into the folders that changed since they were searched, and
// returns mounts for what is there: also for what is not new, because a file
// that was replaced has lost its mount.
func (p *privateFiles) refresh(ctx context.Context) ([]mount, error) {
	if p.folder != nil {
		if now, err := os.Stat(p.root); err != nil || !os.SameFile(now, p.folder) {
			return nil, errors.New("the workspace is another folder now")
		}
	}
	if gone(p.hide) {
		return nil, errors.New("a private file was moved")
	}
	for _, name := range p.hide { // which changes no folder that it is in
		if n, linked := inode(name); linked && !p.linked[n] && isRegular(name) {
			return nil, errors.New("a private file has another name")
		}
	}
	if p.searchAgain(ctx); p.failed != nil {
		return nil, p.failed
	}
	if p.missed != "" {
		return nil, errors.New(p.missed) // another cage is built, or a person is asked
	}
	fresh := privateFiles{hide: p.uncovered, masks: p.masks}
	if p.changed || !maps.Equal(p.made.untouched(), p.free) {
		p.protect()
		fresh.pin, fresh.freeze = p.pin, p.freeze
	}
	p.uncovered, p.changed = nil, false
	p.findOwn()
	fresh.own, fresh.above = p.own, p.above
	covers := fresh.covers()
	if p.masks.changed() {
		return nil, errors.New("a private file was changed")
	}
	return covers, nil
}

// searchAgain searches the folders that changed since they were searched.
func (p *privateFiles) searchAgain(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, errSlow)
	defer cancel()
	links := len(p.linked)
	for _, dir := range p.changedFolders() { // a folder before those in it, which can be looked at then
		if !exists(dir) {
			continue
		}
		p.changed = true
		found, err := p.search(ctx, dir)
		p.uncovered = append(p.uncovered, found...)
		p.failed = cmp.Or(p.failed, err)
	}
	if len(p.linked) > links {
		p.failed = errors.New("a private file has another name")
	}
}

// changedFolders returns the folders that changed since they were searched, and those that
// cannot be looked at.
func (p *privateFiles) changedFolders() []string {
	if p.watch != nil {
		if dirs, ok := p.watch.changed(); ok {
			return dirs
		}
	}
	var out []string
	for dir, at := range p.seen {
		if info, err := os.Lstat(dir); errors.Is(err, fs.ErrPermission) || err == nil && !changedAt(info).Equal(at) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out
}

// close ends the watch, if there is one. The folders are compared then.
func (p *privateFiles) close() {
	if p.watch != nil {
		p.watch.Close()
		p.watch = nil
	}
}

// gone reports whether a file is not where it was.
func gone(files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool { return !exists(name) })
}

// covers returns the mounts that keep the files.
func (p *privateFiles) covers() []mount { return p.coversOf(sandbox.Rights{}) }

// coversOf is covers for rights: if they show all of the workspace, its private files are
// not hidden.
func (p *privateFiles) coversOf(r sandbox.Rights) []mount {
	var out []mount
	pins := slices.Concat(p.pin, p.above)
	// a folder is pinned before those in it
	slices.SortFunc(pins, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	for _, name := range pins {
		out = append(out, mount{Kind: pin, To: name})
	}
	for _, name := range p.freeze {
		out = append(out, mount{Kind: freeze, To: name})
	}
	unshown := p.hide
	if r.ReadsAll() {
		unshown = nil
	}
	for _, name := range p.own {
		out = append(out, mount{Kind: hide, To: name})
	}
	for _, name := range unshown {
		out = append(out, mount{Kind: hide, To: name, Masks: p.masks.add(name)})
	}
	return out
}

// private reports whether a folder outside of the workspace is not shown: it
// has a private name in its path, or is or holds a folder of this process.
func (p *privateFiles) private(dir string) bool {
	return pathpolicy.HasPrivate(dir) ||
		slices.ContainsFunc(p.never, func(n string) bool { return pathpolicy.Inside(n, dir) || pathpolicy.Inside(dir, n) })
}

func isRegular(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
