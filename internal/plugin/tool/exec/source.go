package exec

import (
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
)

// maxSource is the largest file that is hashed. A larger file is identified
// by its size and modification time.
const maxSource = 4 << 20

// source is a file whose content determines what a command does.
type source struct{ path, sum string }

// sources returns the files of a plan with their current content: approving
// the command approves their content.
func sources(sp shell.Plan, dir string) []source {
	var out []source
	for _, name := range operands(sp) {
		if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(name, "~/") {
			name = filepath.Join(home, name[2:])
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if sum, err := contentHash(name); err == nil {
			out = append(out, source{name, sum})
		}
	}
	return out
}

// contentHash identifies the content of a file.
func contentHash(name string) (string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", os.ErrInvalid // reading it may block or have side effects
	}
	h := sha256.New()
	if info.Size() > maxSource {
		fmt.Fprintf(h, "%d bytes of %d", info.Size(), info.ModTime().UnixNano())
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, io.LimitReader(f, maxSource)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
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

// operands returns the files whose content determines what the command does:
// programs named by a path, and the scripts given to a shell or an
// interpreter. Paths are relative to the folder in which the command starts,
// without duplicates. Some operands of interpreters may not be files.
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
// the files that the program may execute.
func executedFiles(s shell.Segment) []string {
	var out []string
	name := s.Argv[0].Text
	if strings.Contains(name, "/") {
		out = append(out, name)
	}
	if !interpreter(path.Base(name)) {
		return out
	}
	for _, a := range s.Argv[1:] {
		if a.Literal && a.Text != "" && !strings.HasPrefix(a.Text, "-") && !a.Glob {
			out = append(out, a.Text)
		}
	}
	return out
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
