package sandboxtest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

// NeedsNamespaces skips the test where this user cannot make namespaces and mounts
// in them, as in many containers. It does not ask the code under test.
func NeedsNamespaces(t testing.TB) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "mount -t tmpfs none /tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out)
		needtest.Missing(t, "user namespaces")
	}
}
