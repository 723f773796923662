package prompt

import (
	"bytes"
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
	"unicode"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/frontmatter"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// templates are the files of a new workspace.
//
//go:embed files/*.md
var templates embed.FS

// The bootstrap files.
const (
	agentsFile    = "AGENTS.md"
	soulFile      = "SOUL.md"
	identityFile  = "IDENTITY.md" // the agent's name and emoji
	userFile      = "USER.md"
	toolsFile     = "TOOLS.md"
	heartbeatFile = "HEARTBEAT.md"
	ritualFile    = "BOOTSTRAP.md" // what to do first; the agent deletes it
	memoryFile    = "MEMORY.md"    // the long-term memory
	oldMemoryFile = "memory.md"    // used if there is no MEMORY.md
)

// seeded are the files that each new workspace gets, in the order of the prompt.
// HEARTBEAT.md is empty.
var seeded = [...]string{agentsFile, soulFile, identityFile, userFile, toolsFile, heartbeatFile}

// maxRead is the number of bytes that are read from one file. The middle of a
// longer file is skipped.
const maxRead = 1 << 20

// IsNew reports whether dir contains none of the files that Seed creates.
func IsNew(dir string) bool {
	for _, name := range append(seeded[:], ritualFile) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return false
		}
	}
	return true
}

// Seed creates dir and those of the first files of a workspace that are missing, and
// returns their names. It never changes a file. BOOTSTRAP.md, with which the agent
// introduces itself, is created only if first is set and there are no memories.
func Seed(dir string, first bool) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	names := seeded[:]
	if first && !hasMemories(dir) {
		names = append(names, ritualFile)
	}
	var wrote []string
	for _, name := range names {
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

// IsTemplate reports whether a file has the text with which [Seed] creates it.
func IsTemplate(name string, text []byte) bool {
	own, err := templates.ReadFile("files/" + name)
	return err == nil && bytes.Equal(own, text)
}

// hasMemories reports whether a workspace contains memories of an earlier one.
func hasMemories(dir string) bool {
	for _, name := range [...]string{memoryFile, oldMemoryFile, memoryDir} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
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

	edit sync.Mutex // held while a file is compared and written

	mu    sync.Mutex
	cache map[string]cached
	beat  [2]string // HEARTBEAT.md as it was last read, and without its tasks
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

// Files returns the current bootstrap files, in the order of the prompt. BOOTSTRAP.md
// and MEMORY.md are only for private conversations. HEARTBEAT.md comes without its list of
// tasks: a heartbeat names those that are due. They and HEARTBEAT.md are left out
// if they are missing.
func (w *Workspace) Files(private bool) []File {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := make([]File, 0, len(seeded)+2)
	add := func(name string) bool {
		f := w.fileLocked(name)
		switch {
		case f.Missing:
			return false
		case name == heartbeatFile:
			if w.beat[0] != f.Text {
				w.beat = [2]string{f.Text, heartbeat.ParseFile(f.Text).Text}
			}
			f.Text = w.beat[1]
		}
		files = append(files, f)
		return true
	}
	for _, name := range seeded {
		if !add(name) && name != heartbeatFile {
			files = append(files, File{Name: name, Missing: true})
		}
	}
	if private {
		add(ritualFile)
		if !add(memoryFile) {
			add(oldMemoryFile)
		}
	}
	return files
}

// File returns a file of the workspace that is not in every prompt.
func (w *Workspace) File(name string) File {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fileLocked(name)
}

// TypesDir is the folder of the agent types in a workspace.
const TypesDir = "agents"

// maxTypes is the maximum number of agent types in a workspace.
const maxTypes = 64

// Types returns the agent types of the workspace, and the problems of files that define
// none.
func (w *Workspace) Types() (types []subagent.Type) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, err := os.ReadDir(filepath.Join(w.dir, TypesDir))
	if err != nil {
		return nil
	}
	taken := map[string]string{}
	for _, e := range entries {
		base, ok := cutMarkdown(e.Name())
		name := TypesDir + "/" + e.Name()
		if stem, _, _ := strings.Cut(base, "."); !ok {
			if frontmatter.Misnamed(e.Name(), stem+".md") {
				types = append(types, subagent.Type{Name: strings.ToLower(stem), Problem: name + ": it is not used: is it " + stem +
					".md with the wrong ending?"})
			}
			continue
		}
		if len(types) == maxTypes {
			return append(types, subagent.Type{Name: strings.ToLower(base),
				Problem: fmt.Sprintf("%s: it is not read, because only %d files are", name, maxTypes)})
		}
		f := w.fileLocked(path.Join(TypesDir, e.Name()))
		if f.Problem != "" || f.Missing {
			types = append(types,
				subagent.Type{Name: strings.ToLower(base), Problem: name + ": " + cmp.Or(f.Problem, "it is missing")})
			continue
		}
		types = subagent.AddType(types, taken, name, base, []byte(f.Text))
	}
	return types
}

// cutMarkdown returns the name of a Markdown file without its ending.
func cutMarkdown(name string) (base string, ok bool) {
	ext := path.Ext(name)
	return strings.TrimSuffix(name, ext), strings.EqualFold(ext, ".md")
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
	fi, target, f := check(d, name)
	switch {
	case f.Missing:
		delete(w.cache, name)
		return f
	case f.Problem != "":
		return f
	case w.cache[name].is(fi):
		return File{Name: name, Text: w.cache[name].text}
	}
	if f = read(d, name, target, maxRead); f.Problem == "" {
		w.cache[name] = cached{fi, f.Text}
	}
	return f
}

// check returns the description of a file that may be read, and its name without links;
// or why it may not.
func check(d *pathpolicy.Dir, name string) (fi fs.FileInfo, target string, f File) {
	f.Name = name
	fi, err := d.Root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Missing = true
		return nil, "", f
	case err != nil:
		f.Problem = "it cannot be read, or it is a link that leaves the workspace"
		return nil, "", f
	case !fi.Mode().IsRegular():
		f.Problem = "it is not a regular file"
		return nil, "", f
	case pathpolicy.Links(fi) > 1:
		f.Problem = "it has more than one name (hard links), and another may be that of a private file"
		return nil, "", f
	}
	if _, target, err = d.Resolve(name); err != nil {
		f.Problem = "it is a private file or a link to one"
	}
	return fi, target, f
}

// read returns the content of a file that check allowed, at most n bytes of it.
func read(d *pathpolicy.Dir, name, target string, n int) File {
	text, err := readText(d, target, n)
	if err != nil {
		return File{Name: name, Problem: "it cannot be read"}
	}
	return File{Name: name, Text: text}
}

// readText returns the content of a file as [cleanText]. The middle of a file with more
// than n bytes is left out.
func readText(d *pathpolicy.Dir, name string, n int) (string, error) {
	f, info, err := d.OpenFile(name, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, int64(n)))
	if err != nil {
		return "", err
	}
	if size := info.Size(); size > int64(n) {
		tail := make([]byte, n/2)
		m, err := f.ReadAt(tail, size-int64(len(tail)))
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		b = append(b[:n/2], tail[:m]...)
	}
	text, _, _ := charset.Text(b)
	return cleanText(text), nil
}

// cleanText returns a text without a byte order mark, control
// characters and characters that change the direction of text, with which a file could
// look different to a person. Invalid UTF-8 is replaced.
func cleanText(s string) string {
	s = humanize.Breaks(strings.TrimPrefix(strings.ToValidUTF8(s, "\ufffd"), "\ufeff"))
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
			return -1
		}
		return r
	}, s))
}
