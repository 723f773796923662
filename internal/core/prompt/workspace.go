package prompt

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
)

// templates are the files of a new workspace.
//
//go:embed files/*.md
var templates embed.FS

// seeded are the files that Seed writes, in the order of the prompt.
var seeded = [...]string{"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md"}

// memoryFile contains the long-term memory. It is used in private sessions only.
const memoryFile = "MEMORY.md"

// maxRead is the number of bytes that are read from one file. The middle of a
// longer file is skipped.
const maxRead = 1 << 20

// Seed creates dir with the files of a new workspace and returns the names of the
// files that it wrote. It never modifies an existing file. If dir already contains
// one of the files, Seed writes nothing.
func Seed(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	for _, name := range seeded {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, nil
		}
	}
	var wrote []string
	for _, name := range seeded {
		text, err := templates.ReadFile("files/" + name)
		if err != nil {
			return wrote, fmt.Errorf("workspace: %w", err)
		}
		err = create(filepath.Join(dir, name), text)
		switch {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return wrote, fmt.Errorf("workspace: %w", err)
		default:
			wrote = append(wrote, name)
		}
	}
	return wrote, nil
}

// create writes a file that must not exist yet.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// File is a bootstrap file.
type File struct {
	Name    string
	Text    string // valid UTF-8 with LF line endings; empty: blank
	Missing bool
	Problem string // why it could not be read; empty: no problem
}

// Workspace is an agent's directory. It is safe for concurrent use.
type Workspace struct {
	dir  string
	rule pathpolicy.Rule

	mu    sync.Mutex
	cache map[string]cached
}

// cached is the content of a file when it was last read.
type cached struct {
	info fs.FileInfo
	text string
}

// is reports whether fi describes the same, unchanged file.
func (k cached) is(fi fs.FileInfo) bool {
	return k.info != nil && fi.Mode().IsRegular() && k.info.Size() == fi.Size() && k.info.ModTime().Equal(fi.ModTime())
}

// Open returns the workspace in dir, which need not exist. A file that is a link to a
// private one is never read: to a file with a private name or below one of the paths
// that private returns; nil: there are none. The same holds for hard links, because
// the other name may be anywhere.
func Open(dir string, private func() []string) *Workspace {
	return &Workspace{dir: dir, rule: pathpolicy.Rule{NoSecrets: true, Private: private}, cache: map[string]cached{}}
}

// Dir returns the directory.
func (w *Workspace) Dir() string { return w.dir }

// Files returns the current bootstrap files, in the order of the prompt. It
// includes MEMORY.md only if the file exists and private is set.
func (w *Workspace) Files(private bool) []File {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := make([]File, 0, len(seeded)+1)
	for _, name := range seeded {
		files = append(files, w.fileLocked(name))
	}
	if private {
		if f := w.fileLocked(memoryFile); !f.Missing {
			files = append(files, f)
		}
	}
	return files
}

// TypesDir is the folder of the agent types in a workspace.
const TypesDir = "agents"

// maxTypes is the maximum number of agent types in a workspace.
const maxTypes = 64

// Types returns the agent types of the workspace and the built-in ones, sorted by name,
// and what is wrong with files that contain none.
func (w *Workspace) Types() (types []subagent.Type, problems []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(w.dir, TypesDir))
	if err != nil {
		return subagent.MergeTypes(nil), nil
	}
	if len(entries) > maxTypes {
		entries = entries[:maxTypes]
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok {
			continue
		}
		f := w.fileLocked(path.Join(TypesDir, e.Name()))
		if f.Problem != "" || f.Missing {
			problems = append(problems, fmt.Sprintf("%s/%s: %s", TypesDir, e.Name(), cmp.Or(f.Problem, "it is missing")))
			continue
		}
		t, err := subagent.ParseType(base, []byte(f.Text))
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s/%s: %v", TypesDir, e.Name(), err))
			continue
		}
		types = append(types, t)
	}
	return subagent.MergeTypes(types), problems
}

// fileLocked returns a file, from the cache if it has not changed.
func (w *Workspace) fileLocked(name string) File {
	fi, err := os.Lstat(filepath.Join(w.dir, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		delete(w.cache, name)
		return File{Name: name, Missing: true}
	case err == nil && w.cache[name].is(fi):
		return File{Name: name, Text: w.cache[name].text}
	}
	d, err := w.open()
	if err != nil {
		return File{Name: name, Missing: true}
	}
	defer d.Close()
	return w.readLocked(d, name)
}

// open opens the directory under the rule about private files.
func (w *Workspace) open() (*pathpolicy.Dir, error) { return w.rule.Open(tool.Call{Dir: w.dir}) }

// readLocked returns a file that may be new or a link within the workspace.
func (w *Workspace) readLocked(d *pathpolicy.Dir, name string) File {
	fi, err := d.Root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		delete(w.cache, name)
		return File{Name: name, Missing: true}
	case err != nil:
		return File{Name: name, Problem: "it cannot be read, or it is a link that leaves the workspace"}
	case !fi.Mode().IsRegular():
		return File{Name: name, Problem: "it is not a regular file"}
	case pathpolicy.Links(fi) > 1:
		return File{Name: name, Problem: "it has more than one name (hard links), and another may be that of a private file"}
	}
	_, target, err := d.Resolve(name)
	switch {
	case err != nil:
		return File{Name: name, Problem: "it is a private file or a link to one"}
	case w.cache[name].is(fi):
		return File{Name: name, Text: w.cache[name].text}
	}
	text, err := readText(d, target)
	if err != nil {
		return File{Name: name, Problem: "it cannot be read"}
	}
	w.cache[name] = cached{fi, text}
	return File{Name: name, Text: text}
}

// readText returns the content of a file without a byte order mark and carriage
// returns, and with invalid UTF-8 replaced.
func readText(d *pathpolicy.Dir, name string) (string, error) {
	f, info, err := d.OpenFile(name, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return "", err
	}
	if size := info.Size(); size > maxRead {
		tail := make([]byte, maxRead/2)
		n, err := f.ReadAt(tail, size-int64(len(tail)))
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		b = append(b[:maxRead/2], tail[:n]...)
	}
	s := strings.ToValidUTF8(string(b), "\ufffd")
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n")
	return strings.TrimSpace(s), nil
}
