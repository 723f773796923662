package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/json5"
)

// backups is the number of copies of earlier versions of a file.
const backups = 5

// Edit is a change of one value.
type Edit struct {
	Path  string
	Value json.RawMessage // nil: unset
}

// Edited applies changes to the text of a configuration, without any check of the
// result.
func Edited(text []byte, edits ...Edit) ([]byte, error) {
	t := &Tree{known: known()}
	for _, e := range edits {
		steps, err := ParsePath(e.Path)
		if err != nil {
			return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
		}
		doc, err := json5.Parse(text)
		if err != nil {
			return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
		}
		if text, err = t.patched(doc, steps, steps, e.Value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// newUnknown fails when next has an unknown key that now does not have.
func newUnknown(now, next *Tree) error {
	for _, p := range next.issues {
		if p.Unknown && !slices.Contains(now.issues, p) {
			return chela.Errorf(chela.CodeInvalid, "refused: %s", p)
		}
	}
	return nil
}

// apply applies a change to the texts of files.
func (t *Tree) apply(changed map[string][]byte, e Edit) error {
	steps, err := ParsePath(e.Path)
	if err != nil {
		return chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	value := e.Value
	if value != nil {
		if value, err = t.restored(steps, value); err != nil {
			return err
		}
	}
	return t.write(changed, steps, value)
}

// write applies a change without redacted values.
func (t *Tree) write(changed map[string][]byte, steps []string, value []byte) error {
	file, err := filepath.Abs(t.path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return t.applyIn(changed, file, steps, steps, value)
}

// applyIn applies a change to a file; rest is the part of the path that is in it.
func (t *Tree) applyIn(changed map[string][]byte, file string, steps, rest []string, value []byte) error {
	src, ok := changed[file]
	if !ok {
		b, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("configuration: %w", err)
		}
		src = b
	}
	if blank(src) {
		src = []byte("{}\n")
	}
	doc, err := json5.Parse(src)
	if err != nil {
		return chela.Errorf(chela.CodeInvalid, "%s: %w", file, err)
	}
	for i := range rest {
		n := doc.Get(rest[:i]...)
		if n == nil {
			break
		}
		inc := doc.Get(join(rest[:i], includeKey)...)
		if inc == nil || doc.Get(rest[:i+1]...) != nil {
			continue
		}
		if inc.Kind != json5.String || len(n.Slots) != 1 {
			return chela.Errorf(chela.CodeInvalid, "%s is merged from several files: %s includes %s; edit it by hand",
				FormatPath(steps), file, src[inc.Pos:inc.End])
		}
		r := &reader{root: t.dir()}
		next, err := r.locate(inc.Text, file)
		if err != nil {
			return chela.Errorf(chela.CodeInvalid, "include %q: %w", inc.Text, err)
		}
		return t.applyIn(changed, next, steps, rest[i:], value)
	}
	out, err := t.patched(doc, steps, rest, value)
	if err == nil {
		changed[file] = out
	}
	return err
}

// patched returns the document's text with a change.
func (t *Tree) patched(doc *json5.Document, steps, rest []string, value []byte) ([]byte, error) {
	if value == nil {
		out, ok := doc.Unset(rest)
		if !ok {
			return nil, &chela.Error{Code: chela.CodeNotFound, Message: FormatPath(steps) + " is not set",
				Err: chela.ErrNotFound}
		}
		return out, nil
	}
	// the first element of a missing array creates the array
	for i := 1; i < len(rest); i++ {
		at := len(steps) - len(rest) + i
		n := t.known.at(steps[:at])
		if rest[i] != "0" || doc.Get(rest[:i]...) != nil || n == nil ||
			n.elem == nil && (n.key == nil || n.key.Kind != Texts) {
			continue
		}
		for _, step := range slices.Backward(rest[i+1:]) {
			value = encode(map[string]any{step: json.RawMessage(value)})
		}
		value, rest = encode([]json.RawMessage{value}), rest[:i]
		break
	}
	out, err := doc.Set(rest, value)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%w", err)
	}
	return out, nil
}

// replace writes a file and makes a copy of the old one first.
func replace(file string, text []byte) error {
	switch fi, err := os.Lstat(file); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	case err != nil:
		return fmt.Errorf("configuration: %w", err)
	case !fi.Mode().IsRegular():
		return chela.Errorf(chela.CodeInvalid, "%s is a symbolic link, which chela does not write to", file)
	default:
		if err := backup(file); err != nil {
			return fmt.Errorf("configuration: backup: %w", err)
		}
	}
	if err := atomicfile.Write(file, text, 0o600); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// Backups returns the names of the copies of earlier versions of a file, the latest
// first.
func Backups(file string) []string {
	names := []string{file + ".bak"}
	for i := 1; i < backups; i++ {
		names = append(names, file+".bak."+itoa(i))
	}
	return names
}

// backup copies a file to file.bak. An older copy is renamed to file.bak.1 and so
// on.
func backup(file string) error {
	names := Backups(file)
	for i := backups - 1; i > 0; i-- {
		if err := os.Rename(names[i-1], names[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(names[0], old, 0o600)
}

// SaveLastGood writes the configuration to [Options.LastGood], with its includes
// merged and its variables not replaced. It is called when the configuration is in
// use.
func (t *Tree) SaveLastGood() error {
	if t.opts.LastGood == "" || t.broken != nil {
		return nil
	}
	b, err := json.MarshalIndent(t.raw, "", "  ")
	if err != nil {
		return fmt.Errorf("last good configuration: %w", err)
	}
	b = fmt.Appendf(nil, "%s%q that was used last.\n%s\n", ofFile, t.absolute(), b)
	if old, err := os.ReadFile(t.opts.LastGood); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.opts.LastGood), 0o700); err != nil {
		return fmt.Errorf("last good configuration: %w", err)
	}
	if err := atomicfile.Write(t.opts.LastGood, b, 0o600); err != nil {
		return fmt.Errorf("last good configuration: %w", err)
	}
	return nil
}

// ofFile begins the last good file and is followed by the path of its configuration.
const ofFile = "// The configuration of "

// lastGood returns the text of the last good file of a configuration. The error is
// fs.ErrNotExist if it is that of another file.
func (o Options) lastGood(path string) ([]byte, error) {
	b, err := os.ReadFile(o.LastGood)
	if err != nil {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(b, []byte(ofFile)); ok {
		quoted, err := strconv.QuotedPrefix(string(rest))
		if of, _ := strconv.Unquote(quoted); err == nil && of != absolute(path) {
			return nil, fs.ErrNotExist
		}
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, nil
}

func (t *Tree) absolute() string { return absolute(t.path) }

// absolute returns a path as it is named in the last good file.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// MarkUntried notes that the files will hold this configuration, and that the program
// has not started with it yet; see [Tree.Untried].
func (t *Tree) MarkUntried() error {
	if t.opts.LastGood == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.opts.LastGood), 0o700); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := atomicfile.Write(t.untried(), []byte(t.hash+"\n"), 0o600); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return nil
}

// Untried reports whether the running program wrote this configuration, and the program
// has not started with it since.
func (t *Tree) Untried() bool {
	if t.opts.LastGood == "" {
		return false
	}
	b, err := os.ReadFile(t.untried())
	return err == nil && string(bytes.TrimSpace(b)) == t.hash
}

func (t *Tree) untried() string { return t.opts.LastGood + ".untried" }
