package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Programs runs programs that the configuration names, and that take a file and leave one.
// They run with the person's rights, like programs of hooks.
type Programs struct {
	Broker  Broker
	Environ []string // variables of this process
	Dir     string   // for the files of programs; it is made if necessary
}

// Find returns the path of a program in PATH; "": there is none.
func (p Programs) Find(name string) string { return Look(p.Environ)(name) }

// In calls f with a new folder, which is removed afterwards.
func (p Programs) In(f func(dir string) error) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.Dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return f(dir)
}

// Run runs a program in a folder to its end and returns what it printed, at most limit bytes.
// name is its absolute path, or a name that is looked up in PATH. env are further variables.
// A program that fails is an error with the last line of what it said.
func (p Programs) Run(ctx context.Context, dir, name string, args []string, env map[string]string,
	limit int) ([]byte, error) {
	program := name
	if !filepath.IsAbs(program) {
		if program = p.Find(name); program == "" {
			return nil, fmt.Errorf("the program %s was not found", name)
		}
	}
	res, err := Output(ctx, p.Broker,
		Plan{Path: program, Argv: append([]string{program}, args...), Dir: dir, Env: Environment(p.Environ, env)}, limit)
	switch exit := res.Exit; {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case exit.Signal != "":
		return nil, fmt.Errorf("%s was ended by %s", name, exit.Signal)
	case exit.Code != 0:
		return nil, fmt.Errorf("%s: exit status %d: %s", name, exit.Code, lastLine(res.Stderr))
	}
	return []byte(res.Output), nil
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// Clean removes what earlier processes left in the directory.
func (p Programs) Clean() error { return os.RemoveAll(p.Dir) }
