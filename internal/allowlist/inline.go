package allowlist

import (
	"path"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/shell"
)

// Inline names the first program of a command that runs code which is written in
// the command itself, as python3 -c does, or comes in from another program; "":
// there is none, or the rules do not mind. What is known to only read is none
// of them. A text of sh -c is a part of the command like the rest.
func (r *Rules) Inline(p shell.Plan) string {
	if !r.StrictInline {
		return ""
	}
	for _, s := range p.Segments {
		argv := s.Argv
		for len(argv) > 0 && !argv[0].Literal && strings.Contains(argv[0].Text, "=") {
			argv = argv[1:] // an assignment
		}
		if s.Verdict == shell.ReadOnly || len(argv) == 0 || !argv[0].Literal {
			continue
		}
		base := strings.TrimSuffix(strings.ToLower(path.Base(strings.ReplaceAll(argv[0].Text, `\`, "/"))), ".exe")
		if inline(base, argv[1:]) {
			return base
		}
	}
	return ""
}

// inline reports whether a program runs code that its arguments hold.
func inline(base string, args []shell.Word) bool {
	switch strings.TrimRight(base, "0123456789.") {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "xargs", "gxargs":
		return true
	case "find":
		return has(args, "", "exec", "execdir", "ok", "okdir")
	case "python", "pypy", "guile", "ksh", "mksh", "zsh", "fish", "tclsh", "expect":
		return has(args, "c") || bare(args)
	case "node", "nodejs", "bun", "deno":
		return has(args, "ep", "eval", "print") || bare(args) || args[0].Text == "eval"
	case "ruby", "lua", "luajit", "osascript", "julia", "elixir", "groovy", "scala", "clojure", "clj", "ghc", "racket", "swift", "r", "rscript", "crystal":
		return has(args, "eE", "eval") || bare(args)
	case "perl":
		return has(args, "eE") || bare(args)
	case "php":
		return has(args, "rBRE", "run") || bare(args)
	case "erl", "octave", "emacs":
		return has(args, "", "eval", "execute")
	case "pwsh", "powershell":
		return len(args) > 0
	case "cmd":
		return len(args) > 0 && strings.HasPrefix(strings.ToLower(args[0].Text), "/c")
	case "vi", "vim", "nvim", "view", "ex", "gdb", "sqlite", "psql", "mysql":
		return has(args, "cxe", "cmd", "command", "ex", "eval-command", "execute") || len(args) > 0 && strings.HasPrefix(args[0].Text, "+")
	}
	return false
}

// bare reports whether an interpreter is given no file, so that it runs what
// comes in.
func bare(args []shell.Word) bool {
	return !slices.ContainsFunc(args, func(a shell.Word) bool { return !a.Literal || !strings.HasPrefix(a.Text, "-") })
}

// has reports whether the arguments have one of the letters as a short option,
// also among others, or one of the words as a long one.
func has(args []shell.Word, letters string, words ...string) bool {
	for _, a := range args {
		name, dashed := strings.CutPrefix(a.Text, "-")
		if !a.Literal || !dashed {
			continue // what is not known is asked about for that
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
