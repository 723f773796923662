package shell

import (
	"slices"
	"strings"
)

// gitReads allows uses of git that only read. It refuses options that make
// git run a program or write a file.
func gitReads(args []Word) bool {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i].Text, "-") {
		switch args[i].Text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs":
			i++
		case "-C":
			i += 2
		case "--version", "--help", "-h", "-v":
			return true
		default:
			return false
		}
	}
	if i >= len(args) {
		return false
	}
	rest := texts(args[i+1:])
	return !slices.ContainsFunc(rest, gitActs) && gitSub(args[i].Text, rest)
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

// gitSub reports whether a subcommand only reads.
func gitSub(name string, args []string) bool {
	operands := slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	one := func(words ...string) bool { return len(args) > 0 && slices.Contains(words, args[0]) }
	switch name {
	case "status", "log", "diff", "show", "shortlog", "rev-parse", "rev-list", "ls-files", "ls-tree", "blame", "describe", "grep",
		"merge-base", "name-rev", "count-objects", "for-each-ref", "show-ref", "whatchanged", "diff-tree", "cat-file", "version", "show-branch",
		"check-ignore", "check-attr", "cherry", "range-diff", "var":
		return true
	case "branch", "tag":
		lists := one("-l", "--list", "-a", "-r", "-v", "-vv", "--all", "--remotes", "--show-current", "--contains", "--merged", "--no-merged", "--sort", "-n")
		return len(args) == 0 || lists && !slices.ContainsFunc(args, gitBranchActs) && (!operands || one("-l", "--list", "--contains", "--merged", "--no-merged"))
	case "remote":
		return len(args) == 0 || len(args) == 1 && one("-v", "--verbose") || len(args) == 2 && one("get-url")
	case "config":
		return one("--get", "--get-all", "--get-regexp", "--list", "-l") && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-e") || a == "--unset" || a == "--add" })
	case "stash", "worktree":
		return one("list")
	case "reflog":
		return len(args) == 0 || one("show")
	}
	return false
}

// gitBranchActs reports whether an option changes branches or tags.
func gitBranchActs(a string) bool {
	name, ok := strings.CutPrefix(a, "--")
	if !ok {
		return strings.HasPrefix(a, "-") && strings.ContainsAny(a, "dDmMcCfusFeut")
	}
	name, _, _ = strings.Cut(name, "=")
	return !slices.Contains([]string{"list", "all", "remotes", "show-current", "contains", "merged", "no-merged", "sort", "format", "verbose", "column", "no-column", "color", "no-color", "points-at"}, name)
}

func texts(words []Word) []string {
	out := make([]string, len(words))
	for i, x := range words {
		out[i] = x.Text
	}
	return out
}
