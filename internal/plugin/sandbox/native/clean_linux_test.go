package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestUsedAgain runs commands one after another in one cage, and checks that the
// second one finds nothing of the first.
func TestUsedAgain(t *testing.T) {
	const same, other = true, false
	for _, c := range []struct {
		name          string
		first, second string
		again         bool
	}{
		{"nothing", "true", "true", same},
		{"workspace", "echo x > file", "grep -q x file && rm file", same},
		{"toolchain", "echo x > ~/go/file", "grep -q x ~/go/file", same},
		{"tmp", "echo x > /tmp/x", "test ! -e /tmp/x && echo y > /tmp/y", other}, // the workspace is in it
		{"other folders in memory", "echo x > /var/tmp/x; echo x > /run/x; echo x > /dev/shm/x",
			"test -z \"$(ls -A /var/tmp /run /dev/shm | grep x)\"", same},
		{"times", "touch -d 2001-01-01 /tmp /var/tmp /dev/shm /run", "stat -c '%X %Y' /tmp /var/tmp /dev/shm /run | tr ' ' '\n' | while read t; do [ $t -gt 1000000000 ] || exit 1; done", same},
		{"times of home", "touch -d 2001-01-01 ~ ~/.gitconfig; true", "[ $(stat -c %Y ~) -gt 1000000000 ]", same},
		{"time of what was made and removed", "echo x > /var/tmp/x; rm /var/tmp/x; touch -d 2001-01-01 /var/tmp",
			"[ $(stat -c %Y /var/tmp) -gt 1000000000 ]", same},
		// where the kernel has them
		{"attributes", "chattr +d /dev/shm; true", "! lsattr -d /dev/shm | grep -q -- -d-", same},
		{"extended attributes",
			`[ $(uname -m) != x86_64 ] || perl -e 'exit(syscall(188, "/dev/shm", "user.x", "1", 1, 0) != 0)' || true`,
			`[ $(uname -m) != x86_64 ] || ! perl -e '$b = "  "; exit(syscall(191, "/dev/shm", "user.x", $b, 1) != 1)'`, same},
		{"terminals", "chmod 0 /dev/ptmx", "test -r /dev/ptmx", same},
		{"process", "sleep 100 & sleep 100 & exit 0", "! grep -q sleep /proc/[0-9]*/comm", same},
		{"limits", "ulimit -n 3; ulimit -f 0", "echo x > /tmp/x && cat /tmp/x", same},
		{"home", "echo x > ~/.profile", "test ! -e ~/.profile", other},
		{"mode of home", "chmod 0 ~", "ls ~", other},
		{"settings of Git", "printf '[core]\n\tpager = x\n' > ~/.gitconfig", "! grep -q pager ~/.gitconfig", other},
		{"settings of Git of the same size", "sed -i s/Anna/Emma/ ~/.gitconfig", "grep -q Anna ~/.gitconfig", other},
		{"removed", "rm ~/.gitconfig", "test -e ~/.gitconfig", other},
		{"devices", "echo x > /dev/x", "test ! -e /dev/x", other},
		{"link", "ln -sfn /tmp /dev/fd", "test \"$(readlink /dev/fd)\" = /proc/self/fd", other},
	} {
		t.Run("E1 "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t, native.Options{})
			w.write(w.home, "go/bin/tool", "tool\n")
			w.write(w.home, ".gitconfig", "[user]\n\tname = Anna\n")
			var pids [2]int
			for i, script := range [...]string{c.first, c.second} {
				w.broker.Settle()
				var out bytes.Buffer
				p, err := w.broker.Start(t.Context(), sandbox.Plan{
					Path:   "/bin/bash",
					Argv:   []string{"bash", "-c", script},
					Dir:    w.rights.Workspace,
					Rights: &w.rights,
					Grace:  time.Millisecond,
					Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + w.home},
				}, &out)
				if err != nil {
					t.Fatal(err)
				}
				pids[i] = p.PID()
				if e, err := p.Wait(); err != nil || e.Code != 0 {
					t.Errorf("%s: %+v, %v: %s", script, e, err, &out)
				}
			}
			if again := pids[0] == pids[1]; again != c.again {
				t.Errorf("the same cage: %t, want %t", again, c.again)
			}
		})
	}
	t.Run("E1 as nobody", func(t *testing.T) { asNobody(t, "^TestUsedAgain$/^E1_[^a]") })
}

// TestTmp empties /tmp if the workspace is elsewhere.
func TestTmp(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	dir, err := os.MkdirTemp("/opt", "chela-test-")
	if err != nil {
		t.Skip("needs a folder in /opt: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.home, w.rights.Workspace = filepath.Join(dir, "home"), filepath.Join(dir, "ws")
	w.write(w.home, "x", "")
	w.write(w.rights.Workspace, "x", "")
	w.broker = native.New(native.Options{Home: w.home, Layers: t.TempDir()})
	t.Cleanup(w.broker.Close)
	w.expect("echo x > /tmp/x; chmod 0 /tmp", "")
	w.broker.Settle()
	w.expect("ls -A /tmp; echo y > /tmp/y; cat /tmp/y; stat -c %a /tmp", "y\n1777\n")
}

// TestIPC keeps what commands share in the kernel from the next one.
func TestIPC(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.expect("ipcmk -Q -M 100 -S 1 >/dev/null && test $(ipcs | grep -c ^0x) = 3", "")
	w.broker.Settle()
	w.expect("ipcs | grep ^0x | wc -l", "0\n")
}

// TestCageAge builds a cage again after some commands.
func TestCageAge(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	pids := map[int]bool{}
	for range native.MaxUses + 1 {
		w.broker.Settle()
		var out bytes.Buffer
		p, err := w.broker.Start(t.Context(), sandbox.Plan{Path: "/bin/true", Argv: []string{"true"}, Dir: w.rights.Workspace,
			Rights: &w.rights}, &out)
		if err != nil {
			t.Fatal(err)
		}
		pids[p.PID()] = true
		if e, err := p.Wait(); err != nil || e.Code != 0 {
			t.Fatalf("%+v, %v", e, err)
		}
	}
	if len(pids) != 2 {
		t.Errorf("%d cages, want 2", len(pids))
	}
}

// TestLayersAfterKill mounts the layers of a process that was killed.
func TestLayersAfterKill(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.home, "go/bin/tool", "tool\n")
	layers := t.TempDir()
	for _, want := range []string{"", "x\n"} {
		w.broker = native.New(native.Options{Home: w.home, Layers: layers})
		t.Cleanup(w.broker.Close)
		w.expect("cat ~/go/file 2>/dev/null; echo x > ~/go/file", want)
		w.broker.Settle()
		w.broker.KillReady()
	}
	if files, err := filepath.Glob(filepath.Join(layers, "*", "*", "0", "work", "work", "incompat")); err != nil ||
		len(files) == 0 {
		t.Errorf("the kernel left no mark: %v", err)
	}
}

// TestClosedLayers opens the folders of the layers that a command closed, but not those that
// the person did.
func TestClosedLayers(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		t.Run(fmt.Sprintf("E7 in a new cage %t", fresh), func(t *testing.T) {
			t.Parallel()
			w := newWork(t, native.Options{})
			w.write(w.home, ".cargo/bin/tool", "tool\n")
			w.write(w.home, ".npm/x", "x\n")
			if err := os.Chmod(filepath.Join(w.home, ".npm"), 0o100); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.home, ".npm"), 0o700) }) // for its removal
			w.expect("mkdir ~/go/x; chmod 000 ~/go ~/.cargo ~/.cache/go-build", "")
			w.broker.Settle()
			if fresh {
				w.broker.Forget()
			}
			w.expect("cat ~/.cargo/bin/tool; ls ~/go; echo x > ~/.cache/go-build/x", "tool\nx\n")
			w.fails("ls ~/.npm")
			if info, err := os.Stat(filepath.Join(w.home, ".cargo")); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("outside: %v, %v", info, err)
			}
		})
	}
	t.Run("E7 as nobody", func(t *testing.T) { asNobody(t, "^TestClosedLayers$/^E7_in") })
}

// TestRecreate removes what commands wrote to the layers, also what they closed, but not
// while one runs.
func TestRecreate(t *testing.T) {
	t.Run("E8 layers", func(t *testing.T) {
		w := newWork(t, native.Options{})
		w.write(w.home, ".cargo/bin/tool", "tool\n")
		w.broker.Level(t.Context())
		w.expect("mkdir -p ~/go/a/b; rm -r ~/.cargo/bin; chmod 000 ~/go/a/b ~/go/a; git init -q r", "")
		w.broker.Settle()
		var out bytes.Buffer
		p, err := w.broker.Start(t.Context(), sandbox.Plan{
			Path:   "/bin/cat",
			Argv:   []string{"cat"},
			Dir:    w.rights.Workspace,
			Rights: &w.rights,
			Stdin:  blockedInput(t),
		}, &out)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.broker.Recreate(t.Context(), nil)
		// of the trial
		if want := "what commands wrote to caches and toolchains, for " + w.rights.Workspace; err != nil ||
			!slices.Equal(r.Busy, []string{want}) || !slices.Equal(r.Removed, []string{"the sandbox that was kept ready"}) {
			t.Errorf("while one runs: %+v, %v", r, err)
		}
		p.Kill()
		_, _ = p.Wait() // it was killed
		w.broker.Settle()
		r, err = w.broker.Recreate(t.Context(), nil)
		if err != nil || r.Busy != nil || len(r.Removed) == 0 ||
			r.Removed[len(r.Removed)-1] != "what commands wrote to caches and toolchains, for one workspace" {
			t.Errorf("%+v, %v", r, err)
		}
		w.expect("cat ~/.cargo/bin/tool; ls ~/go", "tool\n")
		w.broker.Settle()
		if left, err := filepath.Glob(filepath.Join(w.layers, "*")); err != nil || len(left) != 1 {
			t.Errorf("left: %q, %v", left, err) // that of the trial is gone
		}
		w.expect("git -C r config user.name x", "") // what commands made is still known
	})
	t.Run("E8 after a kill", func(t *testing.T) {
		dir := t.TempDir()
		outside(t, dir, "mkdir -p removed-1/x/y; chmod 000 removed-1/x/y removed-1/x")
		native.New(native.Options{Layers: dir}).Close()
		outside(t, dir, "[ ! -e removed-1 ]")
	})
	t.Run("E8 as nobody", func(t *testing.T) { asNobody(t, "^TestRecreate$/^E8_([^a]|a.*kill)") })
}

// blockedInput returns an input without data that ends with the test.
func blockedInput(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) }) // nothing was written
	return r
}

// TestProtectedLater protects names that came while a cage is ready.
func TestProtectedLater(t *testing.T) {
	for _, name := range []string{".vscode/settings.json", ".github/workflows/ci.yml", ".pre-commit-config.yaml"} {
		t.Run("E1 "+name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t, native.Options{})
			w.write(w.rights.Workspace, ".github/README", "")
			w.expect("true", "")
			w.broker.Settle()
			w.write(w.rights.Workspace, name, "mine\n")
			w.fails("echo evil > " + name)
			w.fails("rm -f " + name)
			w.fails("mv " + name + " x")
			if dir := filepath.Dir(name); dir != "." {
				w.fails("mv " + dir + " x")
			}
		})
	}
}

// TestSameTick hides a private file that comes without another time of its
// folder, because the clock of the file system has not advanced.
func TestSameTick(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	sub := filepath.Join(w.rights.Workspace, "sub")
	at := time.Now().Add(time.Hour)
	w.write(sub, "file", "")
	touch := func() {
		if err := os.Chtimes(sub, at, at); err != nil {
			t.Fatal(err)
		}
	}
	touch()
	w.expect("true", "")
	w.broker.Settle()
	w.write(sub, ".env", "canary")
	touch()
	w.fails("cat sub/.env")
}

// TestFirstProcess keeps a command from looking into the first process of its
// cage, which has capabilities and serves the next command too.
func TestFirstProcess(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	scripts := []string{"readlink /proc/1/fd/*", "cat /proc/1/environ", "ls /proc/1/root/", "head -c1 /proc/1/mem",
		"cat /proc/1/maps", "readlink /proc/1/task/*/fd/*", "readlink /proc/1/exe"}
	if os.Getuid() != 0 {
		scripts = append(scripts, "ls /proc/1/fd/", "ls /proc/1/task/*/fd/") // root of the cage would see the numbers
	}
	for _, script := range scripts {
		w.fails(script + " | grep -a .")
	}
	w.expect("{ kill -TERM 1; kill -KILL 1; kill -INT 1; } 2>/dev/null; echo ok", "ok\n")
	if os.Getuid() == 0 {
		asNobody(t, "^TestFirstProcess$")
	}
}

// TestLateConnection does not take a connection of a command that has ended for
// one of the next command.
func TestLateConnection(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	w := newWork(t, native.Options{})
	const many = `PATH=/usr/bin:/usr/local/bin python3 -c 'import socket, os
for i in range(100):
  s = socket.create_connection(("127.0.0.1", 3128))
  s.sendall(b"CONNECT late.test:443 HTTP/1.1\r\nHost: late.test\r\n\r\n")
  if os.fork() == 0:
    os._exit(0)
os.kill(os.getpid(), 9)'`
	w.run(many)
	w.broker.Settle()
	if out, e := w.run("true"); e.Refused != nil {
		t.Errorf("%q, %+v", out, e)
	}
}
