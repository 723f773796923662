//go:build linux

package native

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks limits the files with names outside of the workspace that are protected each. If
// there are more, the folders at the top of the workspace that they are in are protected.
const maxLinks = 512

// probeSize limits the files of a folder of dependencies that are looked at.
const probeSize = 400

// file is what a file is, whatever its name.
type file struct{ device, inode uint64 }

// names are the names of a file that has several.
type names struct {
	here []string // in the folders that were searched
	all  uint64   // how many there are
}

// noteLink keeps in mind a file that has more than one name.
func (p *privateFiles) noteLink(name string) {
	var st unix.Stat_t
	if unix.Lstat(name, &st) != nil || st.Nlink < 2 {
		return
	}
	f := file{uint64(st.Dev), st.Ino}
	n := p.links[f]
	p.links[f] = names{append(n.here, name), uint64(st.Nlink)}
}

// findShared finds the files in the workspace that have a name outside of it, such as in
// the store of a package manager, which a command would change with them.
func (p *privateFiles) findShared() {
	var all []string
	for _, n := range p.links {
		if uint64(len(n.here)) < n.all {
			all = append(all, n.here...)
		}
	}
	p.links = nil
	if len(all) > maxLinks {
		for i, name := range all {
			if top, _, below := strings.Cut(strings.TrimPrefix(name, p.root+"/"), "/"); below {
				all[i] = filepath.Join(p.root, top)
			}
		}
	}
	p.shared = append(p.shared, all...)
	slices.Sort(p.shared)
	p.shared = slices.Compact(p.shared)
}

// probe protects a folder of dependencies, which is not searched, if files in it have more
// than one name: package managers link them to their stores.
func (p *privateFiles) probe(dir string) {
	if p.links == nil || filepath.Base(dir) != "node_modules" {
		return
	}
	store := filepath.Join(dir, ".pnpm")
	if hasLinks(store, "") {
		p.shared = append(p.shared, store)
	}
	if hasLinks(dir, store) {
		p.shared = append(p.shared, dir)
	}
}

// hasLinks reports whether one of the first files in a folder has more than one name.
func hasLinks(dir, but string) (found bool) {
	n := 0
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch n++; {
		case err != nil || name == but:
			return skip(d)
		case n > probeSize:
			return fs.SkipAll
		}
		if d.Type().IsRegular() {
			if _, found = inode(name); found {
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}
