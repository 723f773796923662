package native_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// start starts a shell script and does not wait for it.
func (w *work) start(r sandbox.Rights, script string, out *bytes.Buffer) sandbox.Process {
	w.t.Helper()
	p, err := w.broker.Start(w.t.Context(), sandbox.Plan{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: r.Workspace, Rights: &r,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home},
	}, out)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// cageOf runs a command and returns the process of its cage.
func (w *work) cageOf(r sandbox.Rights) int {
	w.t.Helper()
	p := w.start(r, "true", new(bytes.Buffer))
	if e, err := p.Wait(); err != nil || e.Code != 0 {
		w.t.Fatalf("%+v, %v", e, err)
	}
	w.broker.Settle()
	return p.PID()
}

// TestInTurn keeps a cage ready for commands that look, and one for those that
// work.
func TestInTurn(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	look := sandbox.Rights{Workspace: w.rights.Workspace}
	first, second := w.cageOf(look), w.cageOf(w.rights)
	for range 3 {
		if got := w.cageOf(look); got != first {
			t.Errorf("a command that looks has the cage %d, want %d", got, first)
		}
		if got := w.cageOf(w.rights); got != second {
			t.Errorf("a command that works has the cage %d, want %d", got, second)
		}
	}
	if first == second || w.broker.Ready() != 2 {
		t.Errorf("cages %d and %d, %d are ready", first, second, w.broker.Ready())
	}
	removed, err := w.broker.Recreate(t.Context(), nil)
	if err != nil || len(removed.Removed) != 2 || removed.Removed[0] != "2 sandboxes that were kept ready" ||
		w.broker.Ready() != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
}

// TestManyReady bounds the cages that are kept ready. The one that was not used
// for longest goes.
func TestManyReady(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	var cages []int
	rights := func(i int) sandbox.Rights {
		return sandbox.Rights{Workspace: w.rights.Workspace, Hide: []string{strings.Repeat("/x", i+1)}}
	}
	for i := range native.MaxReady {
		cages = append(cages, w.cageOf(rights(i)))
	}
	w.cageOf(rights(0))
	w.cageOf(rights(native.MaxReady))
	if n := w.broker.Ready(); n != native.MaxReady {
		t.Errorf("%d cages are ready, want %d", n, native.MaxReady)
	}
	if got := w.cageOf(rights(0)); got != cages[0] {
		t.Errorf("the cage that was used is gone: %d, want %d", got, cages[0])
	}
	if got := w.cageOf(rights(1)); got == cages[1] {
		t.Error("the cage that was not used for longest is still there")
	}
}

// TestSharedLayers shows what a command writes to a toolchain to all commands of
// the workspace, also to those that run at the same time with other rights, but
// not to another workspace.
func TestSharedLayers(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.home, "go/bin/tool", "tool\n")
	look := sandbox.Rights{Workspace: w.rights.Workspace}
	var seen bytes.Buffer
	waits := w.start(look,
		"echo a > ~/go/a1; mv ~/go/a1 ~/go/a; until [ -e ~/go/b ]; do sleep 0.02; done; cat ~/go/b ~/go/bin/tool", &seen)
	w.expect("until [ -e ~/go/a ]; do sleep 0.02; done; cat ~/go/a; echo b > ~/go/b1; mv ~/go/b1 ~/go/b", "a\n")
	if e, err := waits.Wait(); err != nil || e.Code != 0 || seen.String() != "b\ntool\n" {
		t.Errorf("%+v, %v, %q", e, err, seen.String())
	}
	other := w.rights
	other.Workspace = t.TempDir()
	var out bytes.Buffer
	if e, err := w.start(other, "ls ~/go", &out).Wait(); err != nil || e.Code != 0 || out.String() != "bin\n" {
		t.Errorf("another workspace: %+v, %v, %q", e, err, out.String())
	}
	if names, err := os.ReadDir(filepath.Join(w.home, "go")); err != nil || len(names) != 1 {
		t.Errorf("the home folder: %v, %v", names, err)
	}
}

// TestLayersAfterFailure makes layers again after a cage that had taken them was
// not built.
func TestLayersAfterFailure(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.home, "go/bin/tool", "tool\n")
	w.expect("echo a > ~/go/a", "")
	w.broker.Settle()
	file := filepath.Join(w.home, "pipe") // what cannot be in a cage
	bad := sandbox.Rights{Workspace: w.rights.Workspace, Change: []string{filepath.Join(file, "below")}}
	if err := w.broker.Build(t.Context(), bad); err == nil {
		t.Error("the cage was built")
	}
	w.expect("cat ~/go/a", "a\n") // with the cage that was ready
	w.broker.Settle()
	w.broker.Forget()
	w.expect("cat ~/go/a ~/go/bin/tool", "a\ntool\n")
	if n := w.broker.Slots(); n != 1 {
		t.Errorf("%d folders for layers are in use, want 1", n)
	}
}

// TestLinkedWorkspace runs commands in a workspace whose path is a link.
func TestLinkedWorkspace(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.rights.Workspace, "sub/a", "one\n")
	folder := t.TempDir()
	for name, link := range map[string]string{
		"home":      filepath.Join(w.home, "project"),
		"elsewhere": filepath.Join(folder, "deep/project"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(w.rights.Workspace, link)); err != nil {
				t.Fatal(err)
			}
			for dir, want := range map[string]string{
				link:                       link,
				filepath.Join(link, "sub"): filepath.Join(link, "sub"),
				w.rights.Workspace:         w.rights.Workspace,
			} {
				var out bytes.Buffer
				p, err := w.broker.Start(t.Context(), sandbox.Plan{
					Path:   "/bin/sh",
					Argv:   []string{"sh", "-c", "pwd; cat " + link + "/sub/a; echo " + name + " > " + link + "/sub/b; ls -d " + link},
					Dir:    dir,
					Rights: &w.rights,
					Env:    []string{"PATH=/usr/bin:/bin", "PWD=" + dir},
				}, &out)
				if err != nil {
					t.Fatalf("%s: %v", dir, err)
				}
				e, err := p.Wait()
				if dir == w.rights.Workspace {
					continue // the link is outside, and not there
				}
				if err != nil || e.Code != 0 || out.String() != want+"\none\n"+link+"\n" {
					t.Errorf("%s: %+v, %v, %q", dir, e, err, out.String())
				}
			}
			if b, err := os.ReadFile(filepath.Join(w.rights.Workspace, "sub/b")); err != nil || string(b) != name+"\n" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
