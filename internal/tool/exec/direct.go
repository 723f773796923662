package exec

import (
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/allowlist"
)

// program returns the file of a command that is one program, which is run
// without a shell, whose start takes longer than many a program; "" where that
// could make a difference: then the shell runs it.
func program(name, path string) string {
	if !filepath.IsAbs(name) && (name == "" || strings.ContainsAny(name, `/\`) || builtin(name)) {
		return ""
	}
	return allowlist.Place{Path: filepath.SplitList(path)}.Search(name)
}

// builtin reports whether a shell does itself what the name stands for, and not
// as a program of that name would.
func builtin(name string) bool {
	switch name {
	case ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt", "continue",
		"declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "help", "history",
		"jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly", "return",
		"set", "shift", "shopt", "source", "suspend", "test", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias",
		"unset", "wait":
		return true
	}
	return false
}
