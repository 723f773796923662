package cli

import "testing"

func TestLineRange(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		path    string
		from, n int
	}{
		"MEMORY.md":       {"MEMORY.md", 0, 0},
		"MEMORY.md:3":     {"MEMORY.md", 3, 0},
		"memory/a.md:3-7": {"memory/a.md", 3, 5},
		"a.md:3-3":        {"a.md", 3, 1},
		"a.md:7-3":        {"a.md:7-3", 0, 0},
		"a.md:0":          {"a.md:0", 0, 0},
		"a.md:x":          {"a.md:x", 0, 0},

		`C:\notes\a.md`: {`C:\notes\a.md`, 0, 0},
		"":              {"", 0, 0},
	} {
		if path, from, n := lineRange(s); path != want.path || from != want.from || n != want.n {
			t.Errorf("%q: %q %d %d", s, path, from, n)
		}
	}
}
