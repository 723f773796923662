package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

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
	for _, large := range []string{"github.com/yuin/goldmark/extension", "github.com/yuin/goldmark/parser",
		"codeberg.org/readeck/go-readability", "modernc.org/libc", "modernc.org/sqlite/lib"} {
		if !slices.Contains(all, large) {
			t.Errorf("%s is not initialized in the gateway either: name another package here", large)
		}
		if slices.Contains(launcher, large) {
			t.Errorf("%s is initialized in a launcher", large)
		}
	}
}

// TestInherited starts the gateway with a descriptor that the programs that it
// starts would inherit.
func TestInherited(t *testing.T) {
	t.Parallel()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	dir := home(t, "http://127.0.0.1:9")
	cmd, err := startWith(t, dir, "0", file)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, cmd)
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/3", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`flags:\s+([0-7]+)`).FindSubmatch(info)
	if m == nil {
		t.Fatalf("%s", info)
	}
	if flags, err := strconv.ParseInt(string(m[1]), 8, 64); err != nil || flags&unix.O_CLOEXEC == 0 {
		t.Errorf("the descriptor is inherited: %s", info)
	}
}
