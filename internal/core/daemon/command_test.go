package daemon

import (
	"slices"
	"testing"
)

// TestCommand reads the command and the PATH of a service back from its file.
func TestCommand(t *testing.T) {
	s := Spec{
		Name:    "x",
		Title:   "X",
		Program: `/opt/a "b" \n/chela`,
		Args:    []string{"gateway", "run", "--state-dir", "/h/$x%y"},
		Path:    "/bin:/usr/bin",
		Logs:    "/logs",
	}
	want := append([]string{s.Program}, s.Args...)
	for name, f := range map[string]func() ([]string, string){
		"systemd": func() ([]string, string) { return parseUnit(systemd{}.text(s)) },
		"launchd": func() ([]string, string) { return parsePlist(launchd{}.text(s)) },
	} {
		if command, path := f(); !slices.Equal(command, want) || path != s.Path {
			t.Errorf("%s: %q, %q; want %q", name, command, path, want)
		}
	}
	if command, _ := parseUnit("[Service]\nExecStart=/opt/chela gateway run\n"); command != nil {
		t.Errorf("a unit of somebody else: %q", command)
	}
}
