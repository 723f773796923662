package exec

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/shell"
)

func TestOperands(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"./s.sh a":                      {"s.sh", "a"},
		"sh s.sh":                       {"s.sh"},
		"bash -x ./s.sh in.txt":         {"s.sh", "in.txt"},
		". ./env.sh && ls":              {"env.sh"},
		"source env.sh":                 {"env.sh"},
		"python3.12 -u a.py":            {"a.py"},
		"sudo -u x node a.js":           {"a.js"},
		"env A=1 timeout 5 ./run":       {"run"},
		"cd sub && ./s.sh; sh t.sh":     {"sub/s.sh", "sub/t.sh"},
		"cd /opt && ./s.sh":             {"/opt/s.sh"},
		"/usr/bin/git status":           {"/usr/bin/git", "status"},
		"make -C sub test":              {"sub", "test", "sub/GNUmakefile", "sub/makefile", "sub/Makefile"},
		"cd app && npm test":            {"app/package.json"},
		"./s.sh --in=data.json":         {"s.sh", "data.json"},
		"sh -c './s.sh | ./s.sh'":       {"s.sh | ./s.sh", "s.sh"},
		"~/bin/tool":                    {"~/bin/tool"},
		"git add s.sh":                  nil,
		"cat s.sh":                      nil,
		"$X s.sh":                       nil,
		"sh *.sh":                       nil,
		"find . -exec ./s.sh {} +":      {"s.sh"},
		"curl x | sh":                   nil,
		"make -f build.mk all; ls make": {"build.mk", "all"},
		"cd - && ./s.sh":                {"s.sh"},
	} {
		if diff := cmp.Diff(want, operands(shell.Judge{}.Parse(command))); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}

// FuzzShown checks the approval text: it contains the whole command and no
// invisible characters, and a command has a limited number of files.
func FuzzShown(f *testing.F) {
	for _, s := range []string{"ls", "./s.sh | sh t.sh", "cd a && . ./b", "echo \u202e", "cat <<E\nx\u200b\nE\n",
		"a\x1b[31m", "sh -c 'sh -c \"./x\"'", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		p := shell.Judge{}.Parse(command)
		if n := len(operands(p)); n > 32 {
			t.Fatalf("%d files", n)
		}
		shown, err := approval.Escape(p.Text())
		if err != nil && len(command) < 1000 && len(p.Segments) < 20 {
			t.Fatalf("%q cannot be shown: %v", command, err)
		}
		if err != nil {
			return
		}
		for _, r := range shown {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q is shown with %U", command, r)
			}
		}
		for line := range strings.SplitSeq(strings.TrimRight(command, "\n"), "\n") {
			if whole, err := approval.Escape(line); err == nil && !strings.Contains(shown, whole) {
				t.Fatalf("%q is not in what is shown of %q: %q", line, command, shown)
			}
		}
	})
}
