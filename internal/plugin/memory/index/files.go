package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Limits of notes.
const (
	maxFiles = 20_000
	maxDepth = 8
	maxSize  = 16 << 20 // bytes of a note
)

// A note is a file that is searched.
type note struct {
	path string // see memory.Hit
	root *os.Root
	name string // within root
	info fs.FileInfo
	err  error // why the file, or the folder, is not searched; nil: it is
}

// version identifies the content of a note.
func (n *note) version() string {
	if n.err != nil {
		return n.err.Error()
	}
	return strconv.FormatInt(n.info.Size(), 10) + " " + strconv.FormatInt(n.info.ModTime().UnixNano(), 10)
}

// recent reports whether a note was changed so recently that another change may leave its
// time as it is: some file systems count in steps of two seconds.
func (n *note) recent() bool {
	return time.Since(n.info.ModTime()).Abs() < 2*time.Second
}

// Reasons why files are not searched.
var (
	errLarge = fmt.Errorf("larger than %d MB", maxSize>>20)
	errLink  = errors.New("it is a link")
	errDeep  = fmt.Errorf("there are more than %d folders above it", maxDepth)
	errMany  = fmt.Errorf("this one and the next ones are not searched: there are more than %d notes", maxFiles)
)

// read returns the content of a note, in UTF-8 if its encoding is another one.
func (n *note) read() ([]byte, error) {
	f, _, err := folder.Open(n.root, filepath.FromSlash(n.name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(b) > maxSize {
		return nil, errLarge
	}
	if text, c, ok := charset.Text(b); ok && (c.Encoding != nil || c.Mark != nil) {
		b = []byte(text)
	}
	return b, err
}

// entries returns the content of a folder, ordered by name.
func (n *note) entries() ([]fs.FileInfo, error) {
	f, err := n.root.Open(filepath.FromSlash(n.name))
	if err != nil {
		return nil, err
	}
	entries, err := f.Readdir(-1)
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, cmp.Or(err, f.Close())
}

// notes returns all notes by their paths: MEMORY.md and the folder memory of the
// workspace, and further files and folders. Links are not followed. Among the notes are
// files and folders that cannot be searched. end releases the folders.
func (x *Index) notes(ctx context.Context) (all map[string]*note, end func(), err error) {
	all = map[string]*note{}
	var roots []*os.Root
	end = func() {
		for _, r := range roots {
			_ = r.Close()
		}
	}
	open := func(dir string) (*os.Root, error) {
		r, err := os.OpenRoot(dir)
		if err == nil {
			roots = append(roots, r)
		}
		return r, err
	}
	workspace, err := open(x.o.Workspace)
	if errors.Is(err, fs.ErrNotExist) {
		return all, end, nil
	} else if err != nil {
		return nil, end, err
	}
	add := func(r *os.Root, name, shown string) error {
		fi, err := r.Lstat(name)
		if err != nil {
			return nil
		}
		n := &note{path: shown, root: r, name: name, info: fi}
		if fi.IsDir() {
			return walk(ctx, all, n, 0)
		}
		n.add(all)
		return nil
	}
	if err := add(workspace, "MEMORY.md", "MEMORY.md"); err != nil {
		return nil, end, err
	}
	if all["MEMORY.md"] == nil { // they are one file where case is ignored
		if err := add(workspace, "memory.md", "memory.md"); err != nil {
			return nil, end, err
		}
	}
	if fi, err := workspace.Lstat("memory"); err == nil && !fi.Mode().IsRegular() {
		if err := add(workspace, "memory", "memory"); err != nil {
			return nil, end, err
		}
	}
	for _, p := range x.o.Extra {
		p = x.full(p)
		shown := filepath.ToSlash(p)
		if rel, err := filepath.Rel(x.o.Workspace, p); err == nil && filepath.IsLocal(rel) {
			shown = filepath.ToSlash(rel)
		}
		dir, name := filepath.Split(p)
		if fi, err := os.Lstat(p); err == nil && fi.IsDir() {
			dir, name = p, "."
		}
		if r, err := open(dir); err == nil {
			if err := add(r, name, shown); err != nil {
				return nil, end, err
			}
		}
	}
	return all, end, nil
}

// full returns the absolute form of a path of Options.Extra.
func (x *Index) full(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(x.o.Workspace, p)
}

// add adds a note if it is a regular file or cannot be searched.
func (n *note) add(all map[string]*note) {
	if n.info.Mode()&fs.ModeSymlink != 0 {
		n.err = errLink
	}
	switch {
	case n.err == nil && !n.info.Mode().IsRegular(), len(all) > maxFiles:
		return
	case len(all) == maxFiles:
		n.err = errMany
	}
	all[n.path] = n
}

// walk adds the Markdown files of a folder. The error is that of ctx.
func walk(ctx context.Context, all map[string]*note, dir *note, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := dir.entries()
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was deleted now
		return nil
	case err != nil:
		dir.err = err
	case depth > maxDepth:
		dir.err = errDeep
	}
	if dir.err != nil {
		dir.add(all)
		return nil
	}
	for _, e := range entries {
		n := &note{path: path.Join(dir.path, e.Name()), root: dir.root, name: path.Join(dir.name, e.Name()), info: e}
		switch ext := path.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			if err := walk(ctx, all, n, depth+1); err != nil {
				return err
			}
		case strings.EqualFold(ext, ".md"), ext == "" && e.Mode()&fs.ModeSymlink != 0: // perhaps to a folder
			n.add(all)
		}
	}
	return nil
}

// Read implements [memory.Index].
func (x *Index) Read(ctx context.Context, name string) ([]byte, error) {
	name = path.Clean(filepath.ToSlash(name))
	root, rest := x.place(name)
	if root == "" {
		return nil, fmt.Errorf("%s %w", name, memory.ErrOutside)
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for i := range rest + "/" { // no part of the path is a link
		if i < len(rest) && rest[i] != '/' {
			continue
		}
		fi, err := r.Lstat(filepath.FromSlash(rest[:i]))
		if err != nil {
			return nil, err
		}
		if last := i == len(rest); last && !fi.Mode().IsRegular() || !last && !fi.IsDir() {
			return nil, fmt.Errorf("%s %w", name, memory.ErrOutside)
		}
	}
	n := &note{root: r, name: rest}
	return n.read()
}

// place returns the folder of a note and the note's path in it; "": it is none.
func (x *Index) place(name string) (root, rest string) {
	isNote := func(p string) bool {
		return filepath.IsLocal(filepath.FromSlash(p)) && strings.EqualFold(path.Ext(p), ".md") &&
			!strings.HasPrefix(p, ".") && !strings.Contains(p, "/.")
	}
	if name == "MEMORY.md" || name == "memory.md" || strings.HasPrefix(name, "memory/") && isNote(name) {
		return x.o.Workspace, name
	}
	full := filepath.FromSlash(name)
	if !filepath.IsAbs(full) {
		full = filepath.Join(x.o.Workspace, full)
	} else if rel, err := filepath.Rel(x.o.Workspace, full); err == nil && filepath.IsLocal(rel) {
		return "", "" // notes in the workspace have one path, by which they are trusted or not
	}
	for _, p := range x.o.Extra {
		p = x.full(p)
		rel, err := filepath.Rel(p, full)
		switch {
		case err != nil:
		case rel == ".":
			return filepath.Dir(p), filepath.Base(p)
		case isNote(filepath.ToSlash(rel)):
			return p, filepath.ToSlash(rel)
		}
	}
	return "", ""
}
