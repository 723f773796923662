package exec

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/shell"
)

// direct returns the file and the arguments of a command that is one program
// with arguments that are known: it is run without a shell, whose start takes
// longer than many a program. The last result is false where that could make a
// difference; then the shell runs it.
func direct(j shell.Judge, command, path string) (file string, argv []string, ok bool) {
	s, err := j.Script(command)
	if err != nil || len(s.Steps) != 1 || s.Redirects || len(s.Steps[0].Assigns) > 0 {
		return "", nil, false
	}
	for _, w := range s.Steps[0].Words {
		if !w.Literal || strings.ContainsRune(w.Text, 0) {
			return "", nil, false
		}
		argv = append(argv, w.Text)
	}
	name := argv[0]
	switch {
	case filepath.IsAbs(name):
		file = name
	case name == "" || strings.ContainsAny(name, `/\`) || builtin(name):
		return "", nil, false
	default:
		file = allowlist.Place{Path: filepath.SplitList(path)}.Search(name)
	}
	return file, argv, loadable(file)
}

// loadable reports whether the system starts a file by itself. A text without a
// first line that names its interpreter is run by the shell.
func loadable(file string) bool {
	if !allowlist.Executable(file) {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	n, _ := io.ReadFull(f, head[:])
	return bytes.HasPrefix(head[:n], []byte("#!")) || bytes.HasPrefix(head[:n], []byte("\x7fELF"))
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
