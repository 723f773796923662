package forget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/folder"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of the files that are searched in a workspace.
const (
	maxFiles = 20_000
	maxFile  = 16 << 20 // bytes
)

// outputs searches stored texts: complete outputs of tools, attachments, and earlier
// contents of files. A text is stored again without the lines.
func (p *pass) outputs(ctx context.Context) error {
	if p.o.Files == nil {
		return nil
	}
	return p.o.Files.Each(ctx, func(name, ref string) error {
		data, err := p.o.Files.ReadName(name)
		text, chars, ok := charset.Text(data)
		if err != nil || !ok || strings.ContainsRune(text, 0) || !utf8.ValidString(text) || !chars.Fits(data) {
			return nil // it was removed meanwhile, or is a picture
		}
		rest, removed, _ := p.topic.CutText(text, "")
		if len(removed) == 0 {
			return nil
		}
		p.add(Attachments, "", "", removed)
		if !p.remove {
			return nil
		}
		out, err := chars.Encode([]byte(rest))
		if err != nil {
			return err
		}
		var again string
		if name == ref {
			again, err = p.o.Files.Put(out)
		} else {
			again, err = p.o.Files.PutOutput(string(out))
		}
		if err != nil {
			return err
		}
		p.moved = append(p.moved, move{ref: ref, again: again, hash: journal.HashOf(data), hashAgain: journal.HashOf(out)})
		return nil
	})
}

// move is a text that was stored again. Rows refer to it, and some have its SHA-256.
type move struct{ ref, again, hash, hashAgain string }

// attachments removes what was attached to messages that are removed, and the texts that
// outputs stored again, to which no row refers any more.
func (p *pass) attachments(ctx context.Context) error {
	if p.o.Files == nil {
		return nil
	}
	for _, m := range p.moved {
		if _, err := p.o.Files.Delete(ctx, m.ref); err != nil {
			return err
		}
	}
	p.moved = nil
	slices.Sort(p.refs)
	for _, ref := range slices.Compact(p.refs) {
		if _, err := p.o.Files.Read(ref); err != nil {
			continue
		}
		p.add(Attachments, "", "", []string{"of a message that is removed"})
		if p.remove {
			if _, err := p.o.Files.Delete(ctx, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// notes searches the files of the workspaces.
func (p *pass) notes(ctx context.Context) error {
	for _, dir := range p.o.Workspaces() {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = p.workspace(ctx, root, dir)
		root.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// workspace searches the files of a workspace.
func (p *pass) workspace(ctx context.Context, root *os.Root, dir string) error {
	n := 0
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // what cannot be read is not changed
		case e.IsDir() && name == ".git":
			p.repository(root, dir)
			return fs.SkipDir
		case e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".git"):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		if n++; n > maxFiles {
			p.add(OwnFiles, dir, fmt.Sprintf("only %d files are searched", maxFiles), []string{""})
			return fs.SkipAll
		}
		return p.file(root, dir, name)
	})
}

// repository reports a history of versions, which cannot be searched.
func (p *pass) repository(root *os.Root, dir string) {
	if objects, err := fs.ReadDir(root.FS(), ".git/objects"); err != nil || len(objects) <= 2 { // pack and info
		return
	}
	if len(p.found) > 0 {
		p.add(Copies, filepath.Join(dir, ".git"), "the history of a repository may contain it", []string{""})
	}
}

// file searches a file of a workspace.
func (p *pass) file(root *os.Root, dir, name string) error {
	info, err := root.Lstat(name)
	if err != nil || info.Size() == 0 {
		return nil
	}
	at := filepath.Join(dir, filepath.FromSlash(name))
	unsearched := func(why string) {
		if IsNote(name) && strings.EqualFold(path.Ext(name), ".md") {
			p.add(Unsearched, at, why, []string{""})
		}
	}
	if info.Size() > maxFile {
		unsearched("it is too large")
		return nil
	}
	data, err := folder.Read(root, name, maxFile)
	if err != nil {
		unsearched("it cannot be read")
		return nil
	}
	text, chars, ok := charset.Text(data)
	if !ok || strings.ContainsRune(text, 0) {
		unsearched("it is not text, or in an unknown encoding")
		return nil
	}
	rest, removed := p.topic.Cut(text, "")
	if len(removed) == 0 {
		return nil
	}
	out, err := chars.Encode([]byte(rest))
	if IsNote(name) && (err != nil || !chars.Fits(data)) {
		p.add(Unsearched, at, "it has parts that are not valid in its encoding, "+chars.Name+"; save it as UTF-8", removed)
		return nil
	}
	if !IsNote(name) {
		p.add(OwnFiles, at, "it is your own file", removed)
		return nil
	}
	p.add(Notes, at, "", removed)
	if !p.remove {
		return nil
	}
	now, err := root.Lstat(name)
	if err != nil || now.ModTime() != info.ModTime() || now.Size() != info.Size() {
		return nil // it was changed meanwhile; the next pass reads it again
	}
	if err := atomicfile.WriteIn(root, name, out, info.Mode().Perm()); err != nil {
		return fmt.Errorf("change %s: %w", at, err)
	}
	return nil
}

// own searches files that are not changed.
func (p *pass) own(context.Context) error {
	for _, path := range p.o.Own {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // there is none
		}
		_, removed := p.topic.Cut(string(data), "")
		p.add(OwnFiles, path, "it is your own file", removed)
	}
	return nil
}

// IsNote reports whether a file of a workspace, with slashes, contains what the assistant
// knows: the Markdown files at the top, and the folders of memories and skills.
func IsNote(name string) bool {
	top, _, below := strings.Cut(name, "/")
	return !below && strings.EqualFold(filepath.Ext(name), ".md") ||
		below && (top == "memory" || top == "skills" || top == ".agents")
}

// inputs searches the input histories of terminals.
func (p *pass) inputs(context.Context) error {
	for _, path := range p.o.Inputs {
		err := p.lines(path, func(line string) (string, []string) {
			var text string
			if json.Unmarshal([]byte(line), &text) != nil || !p.topic.In(text) {
				return line, nil
			}
			p.add(Inputs, path, "", []string{humanize.Truncate(humanize.OneLine(text), 100)})
			return "", []string{text}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// logs searches the log files.
func (p *pass) logs(ctx context.Context) error {
	for _, at := range p.o.Logs {
		err := filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || !e.Type().IsRegular() {
				return ctx.Err()
			}
			return p.log(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// log searches a log file.
func (p *pass) log(path string) error {
	return p.lines(path, func(line string) (string, []string) {
		rest, removed, _ := p.topic.CutText(line, forget.Removed)
		if len(removed) == 0 && p.topic.In(line) {
			rest, removed = forget.Removed, []string{line} // in a field that is fixed elsewhere
		}
		if len(removed) > 0 {
			p.add(Logs, path, "", []string{humanize.Truncate(removed[0], 100)})
		}
		return fitting(rest, len(line)), removed
	})
}

// lines searches a file to which other parts append lines, and replaces what is removed by
// spaces, so that the file keeps its size. cut returns a line without what is to be removed,
// and the removed texts; none: the line stays as it is.
func (p *pass) lines(path string, cut func(line string) (rest string, removed []string)) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	at, changed := int64(0), false
	for line := range strings.Lines(string(data)) {
		from := at
		at += int64(len(line))
		line = strings.TrimSuffix(line, "\n")
		rest, removed := cut(line)
		if len(removed) == 0 || !p.remove {
			continue
		}
		if _, err := f.WriteAt([]byte(rest+strings.Repeat(" ", len(line)-len(rest))), from); err != nil {
			return fmt.Errorf("change: %w", err)
		}
		changed = true
	}
	if changed {
		return f.Sync()
	}
	return nil
}

// fitting returns what replaces a line of a log with n bytes.
func fitting(rest string, n int) string {
	const note = `{"level":"INFO","msg":"` + forget.Removed + `"}`
	switch {
	case len(rest) <= n:
		return rest
	case len(note) <= n:
		return note
	}
	return ""
}

// copies reports copies of the state. They are not read.
func (p *pass) copies(context.Context) error {
	if len(p.found) == 0 || p.o.Copies == nil {
		return nil
	}
	for _, path := range p.o.Copies() {
		p.add(Copies, path, "a copy is not changed; remove it, or make a new one", []string{""})
	}
	return nil
}
