package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
)

// MaxWrite bounds the text of a bootstrap file that is written: of a longer one
// a prompt would leave the middle out.
const MaxWrite = maxRead

// Names returns the names of the bootstrap files, in the order of the prompt.
func Names() []string { return append(slices.Clone(seeded[:]), memoryFile) }

// Info is what is known of a bootstrap file without reading it.
type Info struct {
	Name     string
	Size     int64
	Changed  time.Time
	Missing  bool
	Optional bool // it need not be there
}

// Stat returns what is known of a bootstrap file.
func (w *Workspace) Stat(name string) (Info, error) {
	info := Info{Name: name, Optional: name == memoryFile}
	if !slices.Contains(Names(), name) {
		return info, chela.Errorf(chela.CodeInvalid, "unsupported file %q", name)
	}
	root, err := os.OpenRoot(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		info.Missing = true
		return info, nil
	}
	if err != nil {
		return info, fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	fi, err := root.Stat(name) // a link that leaves the workspace is an error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info.Missing = true
		return info, nil
	case err != nil:
		return info, fmt.Errorf("workspace: %w", err)
	case !fi.Mode().IsRegular():
		return info, chela.Errorf(chela.CodeInvalid, "%s is no file", name)
	}
	info.Size, info.Changed = fi.Size(), fi.ModTime()
	return info, nil
}

// Read returns a bootstrap file as it is on disk, as much of it as a prompt
// would read.
func (w *Workspace) Read(name string) (Info, string, error) {
	info, err := w.Stat(name)
	if err != nil || info.Missing {
		return info, "", err
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return info, "", fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	b, err := root.ReadFile(name)
	if err != nil {
		return info, "", fmt.Errorf("workspace: %w", err)
	}
	return info, strings.ToValidUTF8(string(b[:min(len(b), maxRead)]), "\ufffd"), nil
}

// Write replaces a bootstrap file, or makes it.
func (w *Workspace) Write(name, text string) (Info, error) {
	if len(text) > MaxWrite {
		return Info{}, chela.Errorf(chela.CodeInvalid, "%s: %d bytes are more than the %d that a prompt reads", name, len(text), MaxWrite)
	}
	if _, err := w.Stat(name); err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return Info{}, fmt.Errorf("workspace: %w", err)
	}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		return Info{}, fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	if err := atomicfile.WriteIn(root, name, []byte(text), 0o600); err != nil {
		return Info{}, fmt.Errorf("workspace: %w", err)
	}
	return w.Stat(name)
}

// identityFile says who the agent is.
const identityFile = "IDENTITY.md"

// Identity returns the name and the emoji that the workspace's IDENTITY.md
// gives the agent; what nobody has filled in yet is empty.
func (w *Workspace) Identity() (name, emoji string) {
	for _, f := range w.Files(false) {
		if f.Name == identityFile {
			return identity(f.Text)
		}
	}
	return "", ""
}

// Introduce writes a name and an emoji into IDENTITY.md; what is empty stays as
// it is there.
func (w *Workspace) Introduce(name, emoji string) error {
	_, text, err := w.Read(identityFile)
	if err != nil {
		return err
	}
	for _, f := range [...]struct{ key, value string }{{"Name", name}, {"Emoji", emoji}} {
		if f.value != "" {
			text = introduced(text, f.key, f.value)
		}
	}
	_, err = w.Write(identityFile, text)
	return err
}

// introduced returns the text of an IDENTITY.md with another value.
func introduced(text, key, value string) string {
	line := "- **" + key + ":** " + value
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		name, _, ok := strings.Cut(strings.TrimLeft(strings.TrimSpace(l), "-* "), ":")
		if ok && strings.EqualFold(strings.Trim(name, "*_ "), key) {
			lines[i] = line
			return strings.Join(lines, "\n")
		}
	}
	return strings.TrimSuffix(text, "\n") + "\n" + line + "\n"
}

// identity reads lines such as "- **Name:** Anna". What stands in parentheses
// is a hint to be replaced.
func identity(text string) (name, emoji string) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "-* "), ":")
		value = Name(strings.TrimSpace(strings.Trim(strings.TrimSpace(value), "*_")))
		if !ok || value == "" || strings.HasPrefix(value, "(") {
			continue
		}
		switch strings.ToLower(strings.Trim(key, "*_ ")) {
		case "name":
			name = value
		case "emoji":
			emoji = value
		}
	}
	return name, emoji
}
