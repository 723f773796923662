package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// MaxWrite is the maximum size of a bootstrap file that Write accepts, in bytes. A
// prompt would omit the middle of a longer one.
const MaxWrite = maxRead

// Names returns the names of the bootstrap files, in the order of the prompt.
func Names() []string { return append(slices.Clone(seeded[:]), ritualFile, memoryFile) }

// Info describes a bootstrap file.
type Info struct {
	Name     string
	Size     int64
	Changed  time.Time
	Missing  bool
	Optional bool   // it may be missing
	Hash     string // hex SHA-256 of the content, after Read and Write; "": missing, or longer than MaxWrite
}

// ChangedError reports that a file was not written because it is not as it was read.
type ChangedError struct{ Name, Hash string } // Hash is that of the present content; "": there is none

// Error returns a message that says what to do.
func (e *ChangedError) Error() string { return e.Name + " changed since it was read; read it again" }

// Stat returns the description of a bootstrap file.
func (w *Workspace) Stat(name string) (Info, error) {
	info := Info{Name: name, Optional: name == heartbeatFile || name == ritualFile || name == memoryFile}
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
		return info, chela.Errorf(chela.CodeInvalid, "%s is not a regular file", name)
	}
	info.Size, info.Changed = fi.Size(), fi.ModTime()
	return info, nil
}

// Read returns the content of a bootstrap file in UTF-8, at most as much as a prompt reads.
func (w *Workspace) Read(name string) (Info, string, error) {
	info, err := w.Stat(name)
	if err != nil || info.Missing {
		return info, "", err
	}
	d, err := w.open()
	if err != nil {
		return info, "", fmt.Errorf("workspace: %w", err)
	}
	defer d.Close()
	_, target, err := d.Resolve(name)
	if err != nil {
		return info, "", chela.Errorf(chela.CodeInvalid, "%s is a private file or a link to one", name)
	}
	f, _, err := d.OpenFile(name, target)
	if err != nil {
		return info, "", fmt.Errorf("workspace: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	if err != nil {
		return info, "", fmt.Errorf("workspace: %w", err)
	}
	if len(b) <= MaxWrite {
		info.Hash = hash(b)
	}
	text, _, _ := charset.Text(b[:min(len(b), maxRead)])
	return info, strings.ToValidUTF8(text, "\ufffd"), nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Write creates or replaces a bootstrap file. If expected is not empty, it must be the hash
// of the present content, or the error is a [ChangedError].
func (w *Workspace) Write(name, text, expected string) (Info, error) {
	w.edit.Lock()
	defer w.edit.Unlock()
	if len(text) > MaxWrite {
		return Info{}, chela.Errorf(chela.CodeInvalid, "%s: %d bytes exceed the limit of %d bytes", name, len(text), MaxWrite)
	}
	if _, err := w.Stat(name); err != nil {
		return Info{}, err
	}
	if expected != "" {
		have, _, err := w.Read(name)
		if err != nil {
			return Info{}, err
		}
		if have.Hash != expected {
			return Info{}, &ChangedError{name, have.Hash}
		}
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
	info, err := w.Stat(name)
	info.Hash = hash([]byte(text))
	return info, err
}

// Identity returns the agent's name and emoji from the workspace's IDENTITY.md. A
// value that has not been filled in is empty.
func (w *Workspace) Identity() (name, emoji string) { return identity(w.File(identityFile).Text) }

// SetIdentity writes a name and an emoji into IDENTITY.md. An empty value leaves
// the present one unchanged.
func (w *Workspace) SetIdentity(name, emoji string) error {
	info, text, err := w.Read(identityFile)
	if err != nil {
		return err
	}
	for _, f := range [...]struct{ key, value string }{{"Name", name}, {"Emoji", emoji}} {
		if f.value != "" {
			text = withValue(text, f.key, f.value)
		}
	}
	_, err = w.Write(identityFile, text, info.Hash)
	return err
}

// withValue returns the text of an IDENTITY.md with the value of key replaced.
func withValue(text, key, value string) string {
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

// identity parses lines such as "- **Name:** Anna". A value in parentheses is a
// placeholder.
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
