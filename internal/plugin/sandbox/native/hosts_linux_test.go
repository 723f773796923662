package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// onHost runs a test again as nobody, without capabilities, on a host that a
// shell script of root has changed in mounts of its own. It reports whether
// this is that run. The script can use $DIR, the folder for the test's files.
func onHost(t *testing.T, script string) bool {
	t.Helper()
	const marked = "CHELA_TEST_HOST"
	if os.Getenv(marked) != "" {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("not run: only root can change the mounts of a host")
	}
	dir, err := os.MkdirTemp("", "host-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	files := filepath.Join(dir, "files")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "test"), program, 0o755), os.Mkdir(files, 0o755),
		os.Chmod(dir, 0o755), os.Chown(files, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	run := fmt.Sprintf(`set -e; DIR=%s; %s
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all %s/test -test.run='^%s$' -test.v`, files, script, dir, strings.ReplaceAll(t.Name(), "/", "$/^"))
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "/bin/sh", "-c", run)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + files, "TMPDIR=" + files,
		marked + "=1", noNamespaces + "=1"}
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Errorf("on that host: %v", err)
	}
	return false
}

// refuses checks that commands are refused, with a reason and a hint.
func (w *work) refuses(reason, hint string) {
	w.t.Helper()
	if l := w.broker.Level(w.t.Context()); l.Complete || l.Name != "none" || !strings.Contains(l.Reason, reason) ||
		!strings.Contains(l.Hint, hint) {
		w.t.Errorf("level %+v", l)
	}
	p := sandbox.Plan{
		Path:   "/bin/sh",
		Argv:   []string{"sh", "-c", "echo > ran"},
		Dir:    w.rights.Workspace,
		Env:    []string{"PATH=/bin"},
		Rights: &w.rights,
	}
	if _, err := w.broker.Start(w.t.Context(), p, new(bytes.Buffer)); err == nil ||
		!strings.Contains(err.Error(), reason) {
		w.t.Errorf("start: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.rights.Workspace, "ran")); err == nil {
		w.t.Error("the command ran")
	}
}

// works checks that commands are confined.
func (w *work) works() {
	w.t.Helper()
	if l := w.broker.Level(w.t.Context()); !l.Complete {
		w.t.Errorf("level %+v", l)
	}
	w.expect("echo one > a; cat a; set -- /proc/[0-9]*; echo $#", "one\n2\n") // the launcher and the shell
}

// TestOtherHosts confines commands, or refuses them with a reason, on hosts that
// lack something.
func TestOtherHosts(t *testing.T) {
	for _, h := range []struct{ name, script, refused, hint string }{
		{"E2 in a container",
			"mount --bind /dev/null /proc/kallsyms; mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys",
			"proc /proc: proc: operation not permitted", "systempaths=unconfined"},
		{"E2 proc is hidden", "mount -t tmpfs none /proc", "/proc/self/exe", ""},
		{"E2 proc shows own processes only", "mount -t proc -o hidepid=2 none /proc", "", ""},
		{"E2 no cgroups", "mount -t tmpfs none /sys/fs/cgroup", "", ""},
		{"E2 no sys", "mount -t tmpfs none /sys", "", ""},
		{"E2 tmp without programs", "mount -t tmpfs -o noexec,mode=1777 none $DIR", "", ""},
		{"E2 read-only root", "mount -t tmpfs -o mode=1777 none $DIR; mount -o remount,bind,ro /", "", ""},
	} {
		t.Run(h.name, func(t *testing.T) {
			if !onHost(t, h.script) {
				return
			}
			w := newWork(t, native.Options{})
			if h.refused != "" {
				w.refuses(h.refused, h.hint)
				return
			}
			w.works()
		})
	}
}
