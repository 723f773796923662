package shell

import (
	"slices"
	"strings"
)

// gitReads allows uses of git that only read. It refuses options that make
// git run a program or write a file.
func gitReads(args []Word) string {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].Text, "-") {
		switch args[i].Text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
			i++
		case "-C":
			i += 2
		case "--version", "--help", "-h", "-v":
			return ""
		default:
			return unknownUse
		}
	}
	if i >= len(args) {
		return unknownUse
	}
	rest := texts(args[i+1:])
	for _, a := range rest {
		if gitActs(a) {
			return unknownUse
		}
	}
	return gitSub(args[i].Text, rest)
}

// gitActs reports whether an option makes a reading git command run a program
// or write a file.
func gitActs(arg string) bool {
	name, ok := strings.CutPrefix(arg, "--")
	if !ok {
		return strings.HasPrefix(arg, "-") && strings.Contains(arg, "O") // grep -nO PAGER
	}
	name, _, _ = strings.Cut(name, "=")
	for _, l := range []string{"output", "ext-diff", "textconv", "open-files-in-pager", "show-signature", "filters", "exec", "upload-pack", "edit", "run"} {
		if len(name) > 1 && strings.HasPrefix(l, name) || name == l {
			return true
		}
	}
	return false
}

func gitSub(name string, args []string) string {
	var operands []string
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			operands = append(operands, a)
		}
	}
	one := func(words ...string) bool { return len(args) > 0 && slices.Contains(words, args[0]) }
	ok := false
	switch name {
	case "status", "log", "diff", "show", "shortlog", "rev-parse", "rev-list", "ls-files", "ls-tree", "blame", "describe", "grep",
		"merge-base", "name-rev", "count-objects", "for-each-ref", "show-ref", "whatchanged", "diff-tree", "cat-file", "version", "show-branch",
		"check-ignore", "check-attr", "cherry", "range-diff", "var":
		ok = true
	case "branch", "tag":
		lists := one("-l", "--list", "-a", "-r", "-v", "-vv", "--all", "--remotes", "--show-current", "--contains", "--merged", "--no-merged", "--sort", "-n")
		ok = len(args) == 0 || lists && !slices.ContainsFunc(args, gitBranchActs) && (len(operands) == 0 || one("-l", "--list", "--contains", "--merged", "--no-merged"))
	case "remote":
		ok = len(args) == 0 || len(args) == 1 && one("-v", "--verbose") || len(args) == 2 && one("get-url")
	case "config":
		ok = one("--get", "--get-all", "--get-regexp", "--list", "-l") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-e") || a == "--unset" || a == "--add" })
	case "stash", "worktree":
		ok = one("list")
	case "reflog":
		ok = len(args) == 0 || one("show")
	}
	if ok {
		return ""
	}
	return unknownUse
}

// gitBranchActs reports whether an option changes branches or tags.
func gitBranchActs(a string) bool {
	name, ok := strings.CutPrefix(a, "--")
	if !ok {
		return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "dDmMcCfusFeut")
	}
	for _, safe := range []string{"list", "all", "remotes", "show-current", "contains", "merged", "no-merged", "sort", "format", "verbose", "column", "no-column", "color", "no-color", "points-at"} {
		if n, _, _ := strings.Cut(name, "="); n == safe {
			return false
		}
	}
	return true
}

func texts(words []Word) []string {
	out := make([]string, len(words))
	for i, x := range words {
		out[i] = x.Text
	}
	return out
}
