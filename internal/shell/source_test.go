package shell_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/shell"
)

func TestSources(t *testing.T) {
	t.Parallel()
	for command, want := range map[string][]string{
		"./s.sh a":                      {"s.sh"},
		"sh s.sh":                       {"s.sh"},
		"bash -x ./s.sh in.txt":         {"s.sh", "in.txt"},
		". ./env.sh && ls":              {"env.sh"},
		"source env.sh":                 {"env.sh"},
		"python3.12 -u a.py":            {"a.py"},
		"sudo -u x node a.js":           {"a.js"},
		"env A=1 timeout 5 ./run":       {"run"},
		"cd sub && ./s.sh; sh t.sh":     {"sub/s.sh", "sub/t.sh"},
		"cd /opt && ./s.sh":             {"/opt/s.sh"},
		"/usr/bin/git status":           {"/usr/bin/git"},
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
		if diff := cmp.Diff(want, shell.Parse(command).Sources()); diff != "" {
			t.Errorf("%s: %s", command, diff)
		}
	}
}
