//go:build unix

package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

const canary = "canary-7f3a"

// attackFixture is a workspace and a neighbouring folder that no tool may
// read or change.
type attackFixture struct {
	*fixture
	outside string
}

func newAttackFixture(t *testing.T) *attackFixture {
	t.Helper()
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &attackFixture{&fixture{t, filepath.Join(parent, "workspace"), tool.NewSet(fs.New(fs.Options{})...)},
		filepath.Join(parent, "outside")}
	for _, dir := range []string{s.dir, s.outside, s.dir + "/sub/deep", s.dir + "/.git/hooks",
		parent + "/workspace-evil"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{s.outside + "/secret", s.outside + "/.env", s.outside + "/single",
		parent + "/workspace-evil/secret"} {
		if err := os.WriteFile(name, []byte(canary+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.write("plain", "inside\n")
	s.write("sub/file", "inside\n")
	for name, target := range map[string]string{
		"abs":     s.outside,
		"rel":     "../outside",
		"file":    s.outside + "/secret",
		"relfile": "../outside/secret",
		"up":      "..",
		"root":    "/",
		"self":    ".",
		"loop":    "loop",
		"loopa":   "loopb",
		"loopb":   "loopa",
		"sub/up":  "../..",
		"chain1":  "chain2",

		"chain2":   "chain3",
		"chain3":   "../outside",
		"slow":     "sub/../../outside",
		"back":     s.dir + "/../outside",
		"dangling": s.outside + "/new",

		"reldangling": "../outside/new",
		"proc":        "/proc/self/root",
		"cwd":         "/proc/self/cwd",
		"dev":         "/dev",
		"home":        "/root",
		"dotgit":      ".git",
		"sub/deep/x":  "../../rel",
		"etc":         "/etc",
	} {
		s.symlink(target, name)
	}
	if err := os.Link(s.outside+"/secret", s.dir+"/hard"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.dir+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// paths returns paths to the neighbour, to devices and to protected files.
func (s *attackFixture) paths() []string {
	var out []string
	ends := []string{"secret", "single", ".env", "new"}
	for _, dir := range []string{
		"..", "../outside", "../workspace-evil", "./../outside", "sub/../../outside", "sub/./.././../outside",
		"sub//..//../outside", "sub/deep/../../../outside", "/../outside",
		s.outside, s.outside + "/../outside", s.dir + "/../outside", s.dir + "-evil", s.dir + "/./../workspace-evil",
		"//" + s.outside, s.dir + "//../outside", "/proc/self/root" + s.outside, "/proc/self/cwd/../../outside",
		"abs", "rel", "up/outside", "root" + s.outside, "self/up/outside", "self/self/rel", "sub/up/outside", "chain1",
		"slow", "back", "proc" + s.outside, "sub/deep/x", "self/../../outside",
		"rel/../outside", "abs/.", "./rel/", "sub/../rel", "up/workspace/rel", "up/workspace-evil", "nothing/../../outside",
		"sub/file/../../../outside", "root/proc/self/root" + s.outside,
		"~/../" + s.outside, "~root/" + s.outside, "file://" + s.outside, "%2e%2e/outside", "..%2foutside", "..\\outside",
		"‥/outside", "．．/outside", ".. /outside", "..\u200b/outside", " ../outside", "../outside\x00",
	} {
		for _, end := range ends {
			out = append(out, dir+"/"+end)
		}
	}
	return append(out,
		"file", "relfile", "./file", "file/", "sub/../file", "self/file", "dangling", "reldangling", "self/dangling", "hard",
		"self/hard", "loop", "loopa", "loop/x", "pipe",
		"/etc/passwd", "etc/passwd", "/dev/zero", "/dev/stdin", "/dev/tty", "/dev/mem", "dev/zero", "dev/null",
		"/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/1/environ", "proc/etc/passwd",
		"cwd/../x", "/sys/kernel/notes",
		"~", "~/.ssh/id_rsa", "~root", "home/.bashrc", "/", "//", "..", "../", "../..", ".", "", "\x00", "plain\x00.txt",
		"sub/\x00", strings.Repeat("a", 300), strings.Repeat("a/", 3000)+"x", strings.Repeat("../", 3000)+"etc/passwd",
		strings.Repeat("self/", 200)+"rel/secret",
		".git/config", ".git/hooks/pre-commit", ".GIT/hooks/x", ".Git/config", "sub/../.git/x", "self/.git/x", "dotgit/x",
		"dotgit/hooks/pre-commit", ".git\u200b/x", ".g\u200cit/hooks/x", "git~1/x", "./.git/x",
		s.dir+"/.git/x", "sub/.git/config",
	)
}

// calls returns calls of all tools with a path.
func calls(path string) map[string][]m {
	section := func(op string, lines ...string) m {
		return m{"input": "*** Begin Patch\n*** " + op + " File: " + path + "\n" +
			strings.Join(lines, "\n") + "\n*** End Patch"}
	}
	return map[string][]m{
		"read":  {{"path": path}},
		"write": {{"path": path, "content": "evil\n"}},
		"edit": {{"path": path, "oldText": canary, "newText": "evil"},
			{"path": path, "oldText": "root:", "newText": "evil"}},
		"ls":   {{"path": path}},
		"find": {{"pattern": "*secret*", "path": path}},
		"grep": {{"pattern": canary[:6], "path": path}},
		"apply_patch": {
			section("Add", "+evil"), section("Delete"), section("Update", "@@", "-"+canary, "+evil"),
			{"input": "*** Begin Patch\n*** Update File: plain\n*** Move to: " + path + "\n@@\n-inside\n+evil\n*** End Patch"},
			{"input": "*** Begin Patch\n*** Update File: " + path + "\n*** Move to: stolen\n@@\n+x\n*** End Patch"},
		},
	}
}

func TestAttack(t *testing.T) {
	t.Parallel()
	t.Run("E7 no path leads file tools out of the workspace: .., absolute, symlink, hard link, case, Unicode", attackAll)
	t.Run("E7 a name that is switched while tools use it does not lead out", attackSwapped)
}

func attackAll(t *testing.T) {
	t.Parallel()
	s := newAttackFixture(t)
	paths := s.paths()
	if len(paths) < 200 {
		t.Errorf("%d paths, want 200", len(paths))
	}
	outside := tooltest.Tree(t, filepath.Dir(s.dir)+"/outside")
	evil := tooltest.Tree(t, filepath.Dir(s.dir)+"/workspace-evil")
	git := tooltest.Tree(t, s.dir+"/.git")
	n := 0
	for _, path := range paths {
		for name, list := range calls(path) {
			for _, args := range list {
				n++
				began := time.Now()
				r, err := s.call(name, args)
				if d := time.Since(began); d > waittest.Limit {
					t.Errorf("%s %q took %v", name, path, d)
				}
				for _, p := range r.Content {
					if strings.Contains(p.Text, canary) || strings.Contains(p.Text, "root:x:0") {
						t.Errorf("%s %q returned %q", name, path, p.Text)
					}
				}
				if err != nil && strings.Contains(err.Error(), canary) && name != "edit" && name != "apply_patch" {
					t.Errorf("%s %q: the error reveals %v", name, path, err)
				}
				if _, err := os.Lstat(s.dir + "/plain"); err != nil { // moved to an odd name inside the workspace
					s.write("plain", "inside\n")
				}
			}
		}
	}
	t.Logf("%d paths, %d calls", len(paths), n)
	for dir, before := range map[string]map[string]string{
		"outside":        outside,
		"workspace-evil": evil,
		"workspace/.git": git,
	} {
		if diff := cmp.Diff(before, tooltest.Tree(t, filepath.Dir(s.dir)+"/"+dir)); diff != "" {
			t.Errorf("%s was changed: %s", dir, diff)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"outside", "workspace", "workspace-evil"}) {
		t.Errorf("beside the workspace: %v", names)
	}
}

func TestFS07(t *testing.T) {
	t.Parallel()
	s := newAttackFixture(t)
	for _, path := range []string{"../x", "rel/x", "file", s.outside + "/x", "dangling", "hard"} {
		t.Run("FS-07 a patch of "+filepath.Base(path)+" is refused", func(t *testing.T) {
			b := *s.fixture
			b.t = t
			for _, args := range calls(path)["apply_patch"] {
				b.unchanged(args, "")
			}
		})
	}
}

// attackSwapped switches a name continuously between a folder, a link to the
// outside and a file while the tools use it.
func attackSwapped(t *testing.T) {
	t.Parallel()
	s := newAttackFixture(t)
	s.write("real/single", "inside\n")
	before := tooltest.Tree(t, s.outside)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			link := fmt.Sprintf("%s/link%d", s.dir, i%2)
			if os.Symlink([]string{"real", "../outside", s.outside}[i%3], link) == nil {
				_ = os.Rename(link, s.dir+"/swap") // replace the link atomically
			}
			_ = os.Symlink(s.outside+"/single", s.dir+"/one.new")
			_ = os.Rename(s.dir+"/one.new", s.dir+"/one")
			_ = os.WriteFile(s.dir+"/one.new", []byte("inside\n"), 0o644)
			_ = os.Rename(s.dir+"/one.new", s.dir+"/one")
			if i%16 == 0 {
				runtime.Gosched()
			}
		}
	})
	succeeded := 0 // without one, nothing would be tested
	for round := 0; round < 200 || succeeded == 0; round++ {
		for _, path := range []string{"swap/single", "one", "swap/made"} {
			for name, list := range calls(path) {
				r, err := s.call(name, list[0])
				if err == nil {
					succeeded++
				}
				for _, p := range r.Content {
					if strings.Contains(p.Text, canary) {
						t.Errorf("%s %s returned %q", name, path, p.Text)
					}
				}
			}
		}
	}
	close(stop)
	wg.Wait()
	if diff := cmp.Diff(before, tooltest.Tree(t, s.outside)); diff != "" {
		t.Errorf("files outside were changed: %s", diff)
	}
}
