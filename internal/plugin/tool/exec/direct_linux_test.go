package exec_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// TestDirect checks that commands behave as in a shell although a shell is
// started only where necessary. A shell sets SHLVL.
func TestDirect(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	for name, text := range map[string]string{"named": "#!/bin/sh\necho named $1\n", "unnamed": "echo unnamed $1\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	locked := filepath.Join(bin, "locked")
	if err := os.WriteFile(locked, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(bin, "ls"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := newFixture(t, exec.Options{PathPrepend: []string{bin}})
	if err := os.WriteFile(filepath.Join(b.dir, "a b"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		want    string // part of the output
		exit    int
	}{
		{"printenv SHLVL", "", 1}, // no shell
		{"/usr/bin/printenv SHLVL", "", 1},
		{"printenv SHLVL; true", "1", 0}, // a shell
		{"printenv SHLVL > /dev/stdout", "1", 0},
		{"X=7 printenv X", "7", 0},
		{"printenv PWD", b.dir, 0},
		{"false", "", 1},
		{"true 1", "", 0},
		{"ls 'a b'", "a b", 0}, // a folder of that name precedes it in PATH
		{`ls a\ b`, "a b", 0},
		{"ls a*", "a b", 0},
		{"ls {a,'a b'}", "a b", 2},
		{"ls ~/..", "", 0},
		{"printenv HOME", os.Getenv("HOME"), 0},
		{"named 7", "named 7", 0},
		{"unnamed 7", "unnamed 7", 0}, // no interpreter line: run by the shell
		{"nosuchprogram 7", "not found", 127},
		{"/nosuch/program", "No such file", 127},
		{locked, "ermission denied", 126},
		{"type cd", "builtin", 0},
		{"echo --version", "--version", 0}, // the program echo would print its own version
		{"[ 1 = 2 ]", "", 1},
		{"! false", "", 0},
	} {
		out, d := b.text(m{"command": tt.command})
		if !strings.Contains(out, tt.want) || d.ExitCode != tt.exit {
			t.Errorf("%s: exit code %d, %q; want %d, %q", tt.command, d.ExitCode, out, tt.exit, tt.want)
		}
	}
}
