//go:build unix

package pathpolicy_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
)

func TestRead(t *testing.T) {
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "ws")
	for _, name := range []string{"ws/a", "ws/.env", "ws/.env.local", "ws/.env.example", "ws/two",
		"ws/sub/a", "out", ".env"} {
		path := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "none"), nil, 0o600) },
		func() error { return os.Symlink(".env", filepath.Join(dir, "harmless")) },
		func() error { return os.Symlink("../out", filepath.Join(dir, "leaves")) },
		func() error { return os.Link(filepath.Join(dir, "two"), filepath.Join(dir, "hard")) },
		func() error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) },
	} {
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	const outside, secrets = "is outside the workspace", "holds secrets"
	for _, c := range []struct {
		path    string
		in, out string // part of the error of a confined rule and of one that allows files outside; "": no error
	}{
		{"a", "", ""},
		{"sub/../a", "", ""},
		{filepath.Join(dir, "sub", "a"), "", ""},
		{".env.example", "", ""},
		{".env", secrets, secrets},
		{".env.local", secrets, secrets},
		{"harmless", secrets, secrets},
		{"hard", "more than one name", "more than one name"},
		{"pipe", "is a named pipe", "is a named pipe"},
		{"sub", "is a folder", "is a folder"},
		{"none", "none is empty", "none is empty"},
		{"missing", "missing does not exist", "missing does not exist"},
		{"a\x00", "NUL", "NUL"},
		{"../out", outside, ""},
		{"leaves", outside, ""},
		{filepath.Join(parent, "out"), outside, ""},
		{"../.env", outside, secrets},
		{"/dev/zero", outside, "is a system path"},
	} {
		for rule, want := range map[*pathpolicy.Rule]string{{}: c.in, {Outside: true}: c.out} {
			got, err := rule.Read(tool.Call{Dir: dir}, c.path, 7)
			switch {
			case want == "" && (err != nil || string(got) != "content"):
				t.Errorf("%+v, %q: %q, %v", *rule, c.path, got, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%+v, %q: %q, %v; want %q", *rule, c.path, got, err, want)
			}
			if _, err := rule.Read(tool.Call{Dir: dir}, c.path, 6); err == nil {
				t.Errorf("%q: no error although it exceeds the limit", c.path)
			}
		}
	}
}
