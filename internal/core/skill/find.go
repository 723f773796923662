package skill

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/folder"
)

const (
	maxDepth   = 6    // levels of a folder
	maxFolders = 1000 // folders that are searched in a folder
	maxSkills  = 300  // skills of a folder
)

// Folder is a folder in which skills are searched. It need not exist.
type Folder struct {
	Dir    string // its path
	Source Source // of the skills
}

// Problem is what is wrong with a file.
type Problem struct {
	File string // its path
	Text string
}

// Finder finds skills. It caches what it read, and looks at each call which folders and
// files have changed. The zero value is ready to use; Bundled is set before. It is safe
// for concurrent use.
type Finder struct {
	Bundled fs.FS // the folder BundledPath, whose folders have the names of their skills; nil: none

	mu      sync.Mutex
	folders map[Folder]*found
	bundled *found // nil: not read
}

// found is what was found in a folder.
type found struct {
	seen     []seen // folders and files on which it depends
	skills   []*Skill
	problems []Problem
}

// seen is a file or folder as it was when it was read.
type seen struct {
	path string
	info fs.FileInfo // nil: there was none
	at   time.Time
}

// settled is how old a change must be to be told from a later one by its time.
const settled = 20 * time.Millisecond

// changed reports whether the file or folder may have changed.
func (s seen) changed() bool {
	now, err := os.Stat(s.path)
	if err != nil || s.info == nil {
		return (err == nil) != (s.info != nil)
	}
	return now.ModTime() != s.info.ModTime() || now.Size() != s.info.Size() || !os.SameFile(now, s.info) ||
		s.at.Sub(s.info.ModTime()) < settled
}

// Find returns the skills in folders, sorted by name, and what is wrong with files in
// them. Of skills with the same name it returns that of the last folder. A skill that has
// not changed is the same pointer again.
func (f *Finder) Find(folders ...Folder) ([]*Skill, []Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	byName := map[string]*Skill{}
	var problems []Problem
	for _, dir := range folders {
		if dir.Dir == BundledPath {
			if f.bundled == nil {
				f.bundled = f.readBundled()
			}
			for _, s := range f.bundled.skills {
				byName[s.Name] = s
			}
			problems = append(problems, f.bundled.problems...)
			continue
		}
		k := f.folders[dir]
		if k == nil || slices.ContainsFunc(k.seen, seen.changed) {
			k = search(dir)
			if f.folders == nil {
				f.folders = map[Folder]*found{}
			}
			f.folders[dir] = k
		}
		for _, s := range k.skills {
			byName[s.Name] = s
		}
		problems = append(problems, k.problems...)
	}
	all := make([]*Skill, 0, len(byName))
	for _, s := range byName {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Skill) int { return strings.Compare(a.Name, b.Name) })
	return all, problems
}

// readBundled reads the bundled skills.
func (f *Finder) readBundled() *found {
	if f.Bundled == nil {
		return &found{}
	}
	all, err := ParseBundled(f.Bundled)
	if err != nil {
		return &found{problems: []Problem{{BundledPath, err.Error()}}}
	}
	return &found{skills: all}
}

// searcher searches one folder.
type searcher struct {
	Folder
	root *os.Root
	found
	names   map[string]bool
	visited []fs.FileInfo
	stopped bool // by a limit
}

// search finds the skills in a folder.
func search(dir Folder) *found {
	s := searcher{Folder: dir, names: map[string]bool{}}
	root, err := os.OpenRoot(dir.Dir)
	if err != nil {
		s.look("")
		if !errors.Is(err, fs.ErrNotExist) || dir.Source == Extra { // which was configured by its name
			s.problem("", err)
		}
		return &s.found
	}
	defer root.Close()
	s.root = root
	s.folder(".", 0)
	return &s.found
}

// path returns the path of a name in the folder.
func (s *searcher) path(name string) string { return filepath.Join(s.Dir, filepath.FromSlash(name)) }

// look notes that the result depends on a file or folder. It reports whether that
// exists.
func (s *searcher) look(name string) (fs.FileInfo, bool) {
	at := s.path(name)
	info, err := os.Stat(at)
	if err != nil {
		info = nil
	}
	s.seen = append(s.seen, seen{at, info, time.Now()})
	return info, err == nil
}

func (s *searcher) problem(name string, err error) {
	if len(s.problems) < maxSkills || s.stopped {
		var pe *fs.PathError
		if errors.As(err, &pe) { // the path is named anyway
			err = pe.Err
		}
		s.problems = append(s.problems, Problem{s.path(name), err.Error()})
	}
}

// folder searches a folder in the folder.
func (s *searcher) folder(name string, depth int) {
	if depth > maxDepth || s.stopped {
		return
	}
	if len(s.visited) >= maxFolders || len(s.skills) >= maxSkills {
		s.stopped = true
		s.problem(name, fmt.Errorf("it and what follows is not searched, because %s has more than %d skills or %d folders",
			s.Dir, maxSkills, maxFolders))
		return
	}
	info, ok := s.look(name)
	if !ok || slices.ContainsFunc(s.visited, func(v fs.FileInfo) bool { return os.SameFile(v, info) }) {
		return // also if links form a circle
	}
	s.visited = append(s.visited, info)
	entries, err := fs.ReadDir(s.root.FS(), name)
	if err != nil {
		s.problem(name, err)
		return
	}
	if file := fileIn(entries); file != "" {
		s.skill(name, file)
		return
	}
	for _, e := range entries { // sorted by name
		if depth > 0 && frontmatter.Misnamed(e.Name(), FileName) {
			s.problem(path.Join(name, e.Name()), errors.New("it is not used: is it "+FileName+" with the wrong ending?"))
		}
		sub := path.Join(name, e.Name())
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			info, err := s.root.Stat(sub)
			if err != nil {
				s.look(sub)
				s.problem(sub, fmt.Errorf("it is not used, because it is a broken link or leaves %s", s.Dir))
				continue
			}
			if !info.IsDir() {
				continue
			}
		}
		s.folder(sub, depth+1)
	}
}

// fileIn returns the name of the file in a folder that describes a skill, which may be in
// lower case; "": there is none.
func fileIn(entries []fs.DirEntry) (name string) {
	for _, e := range entries {
		if e.Name() == FileName || name == "" && strings.EqualFold(e.Name(), FileName) {
			name = e.Name()
		}
	}
	return name
}

// skill reads the skill in a folder, from a file.
func (s *searcher) skill(name, file string) {
	file = path.Join(name, file)
	s.look(file)
	text, err := readText(s.root, file)
	if err != nil {
		s.problem(file, err)
		return
	}
	k, warning, err := Parse(filepath.Base(s.path(name)), text)
	switch {
	case err != nil:
		s.problem(file, err)
		return
	case s.names[k.Name]:
		s.problem(file, fmt.Errorf("it is not used, because another skill here has the name %s", k.Name))
		return
	case warning != "":
		s.problem(file, errors.New(warning))
	}
	s.names[k.Name] = true
	k.Dir, k.File, k.Source = s.path(name), s.path(file), s.Source
	s.skills = append(s.skills, k)
}

// Text reads the skill's SKILL.md again.
func (s *Skill) Text() (string, error) {
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	b, err := readText(root, filepath.Base(s.File))
	text, _, _ := charset.Text(b)
	return text, err
}

// readText returns the content of a regular file, at most one byte more than a SKILL.md
// may have.
func readText(root *os.Root, name string) ([]byte, error) {
	f, info, err := folder.Open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if pathpolicy.Links(info) > 1 {
		return nil, errors.New("it has more than one name (hard links)")
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}
