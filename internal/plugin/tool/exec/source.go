package exec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// maxSource is the largest file that is hashed. A larger file is identified by its size
// and the time at which the system noted its last change.
const maxSource = 64 << 20

// source is a file whose content determines what a command does.
type source struct {
	path, sum string
	script    bool // it is run, and has no reason to change meanwhile
}

// sources returns the files of a plan with their current content: approving
// the command approves their content.
func sources(sp shell.Plan, dir string) []source {
	var out []source
	for _, name := range operands(sp) {
		script := isScript(sp, name)
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(name, "~/") {
			name = filepath.Join(home, name[2:])
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if sum, err := contentHash(name); err == nil {
			out = append(out, source{name, sum, script})
		}
	}
	return out
}

// contentHash identifies the content of a file.
func contentHash(name string) (string, error) {
	f, info, err := folder.OpenPath(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if info.Size() > maxSource {
		fmt.Fprintf(h, "%d bytes of %d, %s", info.Size(), info.ModTime().UnixNano(), noted(info))
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	if n, err := io.Copy(h, io.LimitReader(f, maxSource+1)); err != nil || n > maxSource {
		return "", cmp.Or(err, os.ErrInvalid) // it grows
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkSources returns an error if the content of a file of the command is not any more the
// one that was approved.
func (j *job) checkSources() error {
	if name := j.changedSource(false); name != "" {
		return fmt.Errorf("not run: %s has changed since it was approved. Call the tool again to request a new approval",
			shell.Escape(name))
	}
	return nil
}

// changedSource returns the first file, or script, whose content is not any more the one
// that was approved, or "".
func (j *job) changedSource(scripts bool) string {
	for _, f := range j.sources {
		if scripts && !f.script {
			continue
		}
		if sum, err := contentHash(f.path); err != nil || sum != f.sum {
			return f.path
		}
	}
	return ""
}

// hashWithFiles returns the hash of a plan together with the content of its
// files.
func hashWithFiles(hash string, files []source) string {
	if len(files) == 0 {
		return hash
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %s\x00", f.sum, f.path)
	}
	return hash + "." + hex.EncodeToString(h.Sum(nil))
}

// maxOperands limits the number of files of a command.
const maxOperands = 32

// operands returns the files whose content determines what the command does: programs named by a
// path, scripts given to a shell or an interpreter, the arguments of both, and what make and
// package managers take commands from. Paths are relative to the folder in which the command
// starts, without duplicates. Some operands of interpreters may not be files.
func operands(p shell.Plan) []string {
	var out []string
	dir := ""
	for _, s := range p.Segments {
		if len(s.Argv) == 0 || !s.Argv[0].Literal {
			continue
		}
		if to, ok := changesDir(s); ok {
			dir = relativeTo(dir, to)
			continue
		}
		for _, f := range executedFiles(s) {
			if f = relativeTo(dir, f); len(out) < maxOperands && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// relativeTo returns a path as seen from the folder in which the command
// starts.
func relativeTo(dir, to string) string {
	if path.IsAbs(to) || strings.HasPrefix(to, "~") {
		return to
	}
	return path.Join(dir, to)
}

// changesDir returns the folder that the segment changes to.
func changesDir(s shell.Segment) (string, bool) {
	if s.Argv[0].Text != "cd" || len(s.Argv) != 2 || !s.Argv[1].Literal || strings.HasPrefix(s.Argv[1].Text, "-") {
		return "", false
	}
	return s.Argv[1].Text, true
}

// executedFiles returns the segment's program if it is named by a path, and
// the files that the program may execute or read.
func executedFiles(s shell.Segment) []string {
	var out []string
	name := s.Argv[0].Text
	byPath := strings.Contains(name, "/")
	if byPath {
		out = append(out, name)
	}
	recipes := recipeFiles(s.Argv)
	if !byPath && !interpreter(path.Base(name)) {
		return recipes
	}
	for _, a := range s.Argv[1:] {
		text := a.Text
		if strings.HasPrefix(text, "-") {
			_, text, _ = strings.Cut(text, "=")
		}
		if a.Literal && text != "" && !a.Glob {
			out = append(out, text)
		}
	}
	return append(out, recipes...)
}

// isScript reports whether an operand is a program named by a path, or the first one of a
// shell or another interpreter that is given a script.
func isScript(p shell.Plan, operand string) bool {
	dir := ""
	return slices.ContainsFunc(p.Segments, func(s shell.Segment) bool {
		if len(s.Argv) == 0 {
			return false
		}
		if to, ok := changesDir(s); ok {
			dir = relativeTo(dir, to)
		}
		if name := s.Argv[0].Text; strings.Contains(name, "/") && relativeTo(dir, name) == operand {
			return true
		}
		switch strings.TrimRight(path.Base(s.Argv[0].Text), "0123456789.") {
		case "sh", "bash", "dash", "zsh", "ksh", "python", "node", "ruby", "deno", "bun", "php":
			i := slices.IndexFunc(s.Argv[1:], func(a shell.Word) bool { return !strings.HasPrefix(a.Text, "-") })
			return i >= 0 && relativeTo(dir, s.Argv[1+i].Text) == operand
		}
		return false
	})
}

// recipeFiles returns the files in which make and package managers find what they run.
// They need not exist.
func recipeFiles(argv []shell.Word) []string {
	dir := ""
	for i, a := range argv[1:] {
		switch {
		case a.Text == "-f", strings.HasPrefix(a.Text, "--file="), strings.HasPrefix(a.Text, "--makefile="):
			if name := path.Base(argv[0].Text); name == "make" || name == "gmake" {
				return nil // it is an operand
			}
		case (a.Text == "-C" || a.Text == "--prefix") && i+2 < len(argv):
			dir = argv[i+2].Text
		}
	}
	switch path.Base(argv[0].Text) {
	case "make", "gmake":
		return []string{relativeTo(dir, "GNUmakefile"), relativeTo(dir, "makefile"), relativeTo(dir, "Makefile")}
	case "npm", "pnpm", "yarn", "bun":
		return []string{relativeTo(dir, "package.json")}
	}
	return nil
}

// interpreter reports whether a program executes the file that it is given.
func interpreter(base string) bool {
	switch strings.TrimRight(base, "0123456789.") {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "source", "",
		"python", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "lua", "luajit",
		"Rscript", "java", "osascript", "pwsh", "tclsh", "expect", "awk", "gawk", "mawk", "sed", "make", "gmake":
		return true
	}
	return false
}
