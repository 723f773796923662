package allowlist

import (
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
)

// Inline returns the name of the first program in the plan that runs code
// given on its command line, as python3 -c does, or code from its standard
// input. It returns "" if there is none or the rules do not restrict inline
// code. Programs that only read do not count. The script of sh -c counts as
// part of the command.
func (r *Rules) Inline(p shell.Plan) string {
	if !r.StrictInline {
		return ""
	}
	for _, s := range p.Segments {
		if len(s.Argv) == 0 || !s.Argv[0].Literal || shell.Reads(s.Argv) {
			continue
		}
		argv := s.Argv
		base := strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(argv[0].Text, `\`, "/"))), ".exe")
		if runsInlineCode(base, argv[1:]) {
			return base
		}
	}
	return ""
}

// runsInlineCode reports whether a program runs code that its arguments
// contain.
func runsInlineCode(base string, args []shell.Word) bool {
	switch strings.TrimRight(base, "0123456789.") {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "xargs", "gxargs":
		return true
	case "find":
		return hasFlag(args, "", "exec", "execdir", "ok", "okdir")
	case "python", "pypy", "guile", "ksh", "mksh", "zsh", "fish", "tclsh", "expect":
		return hasFlag(args, "c") || readsInput(args)
	case "node", "nodejs", "bun", "deno":
		return hasFlag(args, "ep", "eval", "print") || readsInput(args) || args[0].Text == "eval"
	case "ruby", "lua", "luajit", "osascript", "julia", "elixir", "groovy", "scala", "clojure", "clj", "ghc", "racket",
		"swift", "r", "rscript", "crystal":
		return hasFlag(args, "eE", "eval") || readsInput(args)
	case "perl":
		return hasFlag(args, "eE") || readsInput(args)
	case "php":
		return hasFlag(args, "rBRE", "run") || readsInput(args)
	case "erl", "octave", "emacs":
		return hasFlag(args, "", "eval", "execute")
	case "pwsh", "powershell":
		return len(args) > 0
	case "cmd":
		return len(args) > 0 && strings.HasPrefix(strings.ToLower(args[0].Text), "/c")
	case "vi", "vim", "nvim", "view", "ex", "gdb", "sqlite", "psql", "mysql":
		return hasFlag(args, "cxe", "cmd", "command", "ex", "eval-command", "execute") ||
			len(args) > 0 && strings.HasPrefix(args[0].Text, "+")
	}
	return false
}

// readsInput reports whether an interpreter is given no file, so that it runs
// its standard input.
func readsInput(args []shell.Word) bool {
	if len(args) == 1 && (args[0].Text == "--version" || args[0].Text == "--help") {
		return false
	}
	return !slices.ContainsFunc(args, func(a shell.Word) bool { return !a.Literal || !strings.HasPrefix(a.Text, "-") })
}

// hasFlag reports whether the arguments contain one of the letters as a short
// option, possibly grouped with others, or one of the words as a long option.
func hasFlag(args []shell.Word, letters string, words ...string) bool {
	for _, a := range args {
		name, dashed := strings.CutPrefix(a.Text, "-")
		if !a.Literal || !dashed {
			continue // unknown arguments need approval for that reason
		}
		long, two := strings.CutPrefix(name, "-")
		long, _, _ = strings.Cut(long, "=")
		for _, w := range words {
			if long == w || two && len(long) > 1 && strings.HasPrefix(w, long) {
				return true
			}
		}
		if !two && strings.ContainsAny(name, letters) {
			return true
		}
	}
	return false
}
