package files

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of one answer.
const (
	maxEntries = 250
	maxFound   = 500
	maxVisited = 5000
)

// browse lists a folder of the workspace, or searches the paths of all folders.
func (p *workspace) browse(dir, search string) (*wire.FileBrowser, error) {
	dir, ok := p.below(dir)
	if !ok {
		return nil, rpc.Invalid("at /path: must be a path below the workspace")
	}
	b := &wire.FileBrowser{Search: strings.TrimSpace(search), Entries: []wire.BrowserFile{}}
	if b.Search != "" {
		p.search(b)
		return b, nil
	}
	list, err := fs.ReadDir(p.root.FS(), dir)
	if err != nil {
		return nil, wire.Errorf(wire.InvalidRequest, "workspace path not found")
	}
	if dir != "." {
		up := strings.TrimPrefix(path.Dir("/"+dir), "/")
		b.Path, b.Parent = dir, &up
	}
	for _, e := range list {
		p.add(b, path.Join(dir, e.Name()))
	}
	// "directory" < "file"
	slices.SortStableFunc(b.Entries, func(x, y wire.BrowserFile) int { return strings.Compare(x.Kind, y.Kind) })
	cut(b, maxEntries)
	return b, nil
}

// search adds the paths that contain the text. It skips the folders of Git and
// npm.
func (p *workspace) search(b *wire.FileBrowser) {
	want, visited := strings.ToLower(b.Search), 0
	_ = fs.WalkDir(p.root.FS(), ".", func(name string, e fs.DirEntry, err error) error { // unreadable folders are skipped
		if visited++; visited > maxVisited || len(b.Entries) > maxFound {
			b.Truncated = true
			return fs.SkipAll
		}
		if err != nil || name == "." {
			return nil
		}
		if e.IsDir() && slices.Contains([]string{".git", "node_modules"}, e.Name()) {
			return fs.SkipDir
		}
		if strings.Contains(strings.ToLower(name), want) {
			p.add(b, name)
		}
		return nil
	})
	cut(b, maxFound)
}

// add adds the entry at a path, unless it is neither a file nor a folder, or a
// link that leaves the workspace.
func (p *workspace) add(b *wire.FileBrowser, name string) {
	fi, err := p.root.Stat(name)
	if err != nil || !fi.Mode().IsRegular() && !fi.IsDir() {
		return
	}
	e := wire.BrowserFile{
		Path:      name,
		Name:      path.Base(name),
		Kind:      "file",
		Size:      fi.Size(),
		UpdatedAt: wire.At(fi.ModTime()),
	}
	if fi.IsDir() {
		e.Kind, e.Size = "directory", 0
	}
	e.SessionKind = p.kindOf(name, fi.IsDir())
	b.Entries = append(b.Entries, e)
}

// kindOf returns how the session used a file, or the files of a folder.
func (p *workspace) kindOf(name string, folder bool) string {
	kind := ""
	for _, u := range p.uses {
		rel, ok := p.below(u.path)
		if !ok || rel != name && !(folder && strings.HasPrefix(rel, name+"/")) {
			continue
		}
		if kind != "" && kind != u.kind {
			return wire.FileMixed
		}
		kind = u.kind
	}
	return kind
}

// cut limits the entries to n.
func cut(b *wire.FileBrowser, n int) {
	if len(b.Entries) > n {
		b.Entries, b.Truncated = b.Entries[:n], true
	}
}
