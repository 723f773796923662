package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// TestLauncherStart: the first process of a cage is this program, but takes over
// before the packages are initialized whose tables take time and memory.
func TestLauncherStart(t *testing.T) {
	t.Parallel()
	initialized := func(arg string) []string {
		cmd := exec.Command(os.Args[0], arg)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", program+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", arg, err, out)
		}
		var names []string
		for _, m := range regexp.MustCompile(`(?m)^init (\S+) @`).FindAllSubmatch(out, -1) {
			names = append(names, string(m[1]))
		}
		return names
	}
	all, launcher := initialized("version"), initialized(launch.Arg)
	if len(launcher) == 0 || 10*len(launcher) > 7*len(all) {
		t.Errorf("%d of %d packages are initialized in a launcher, want at most 70 %%", len(launcher), len(all))
	}
	for _, large := range []string{"github.com/yuin/goldmark/extension", "github.com/yuin/goldmark/parser", "codeberg.org/readeck/go-readability", "modernc.org/libc", "modernc.org/sqlite/lib"} {
		if !slices.Contains(all, large) {
			t.Errorf("%s is not initialized in the gateway either: name another package here", large)
		}
		if slices.Contains(launcher, large) {
			t.Errorf("%s is initialized in a launcher", large)
		}
	}
}
