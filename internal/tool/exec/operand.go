package exec

import (
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/shell"
)

// maxOperands bounds how many files of a command are named.
const maxOperands = 32

// operands returns the files whose content says what the command does: programs
// that are named by a path, and what a shell or an interpreter is given to run.
// The paths stand as if they were written in the folder in which the command
// starts, each once; some of those given to interpreters may be no files.
func operands(p shell.Plan) []string {
	var out []string
	dir := ""
	for _, s := range p.Segments {
		if len(s.Argv) == 0 || !s.Argv[0].Literal {
			continue
		}
		if to, ok := enters(s); ok {
			dir = joined(dir, to)
			continue
		}
		for _, f := range runs(s) {
			if f = joined(dir, f); len(out) < maxOperands && !slices.Contains(out, f) {
				out = append(out, f)
			}
		}
	}
	return out
}

// joined is a path as it is seen from where the command starts.
func joined(dir, to string) string {
	if path.IsAbs(to) || strings.HasPrefix(to, "~") {
		return to
	}
	return path.Join(dir, to)
}

// enters returns the folder to which the segment changes.
func enters(s shell.Segment) (string, bool) {
	if s.Argv[0].Text != "cd" || len(s.Argv) != 2 || !s.Argv[1].Literal || strings.HasPrefix(s.Argv[1].Text, "-") {
		return "", false
	}
	return s.Argv[1].Text, true
}

// runs returns the segment's program, when it is named by a path, and what
// it may be given to run.
func runs(s shell.Segment) []string {
	var out []string
	name := s.Argv[0].Text
	if strings.Contains(name, "/") {
		out = append(out, name)
	}
	if !interprets(path.Base(name)) {
		return out
	}
	for _, a := range s.Argv[1:] {
		if a.Literal && a.Text != "" && !strings.HasPrefix(a.Text, "-") && !a.Glob {
			out = append(out, a.Text)
		}
	}
	return out
}

// interprets reports whether a program runs the file that it is given.
func interprets(base string) bool {
	switch strings.TrimRight(base, "0123456789.") {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash", "source", "",
		"python", "pypy", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ruby", "perl", "php", "lua", "luajit",
		"Rscript", "java", "osascript", "pwsh", "tclsh", "expect", "awk", "gawk", "mawk", "sed", "make", "gmake":
		return true
	}
	return false
}
