package atomicfile

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

// TestDiskFails checks that the failure is reported in a process whose disk
// fails at a step.
func TestDiskFails(t *testing.T) {
	if step := os.Getenv("TEST_DISK_FAILS"); step != "" {
		failAt(t, step)
		return
	}
	t.Parallel()
	for _, step := range []string{"write", "sync", "sync directory", "rename", "directory"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestDiskFails$")
			cmd.Env = append(os.Environ(), "TEST_DISK_FAILS="+step)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// failAt writes, and the disk fails at the step.
func failAt(t *testing.T, step string) {
	dir := t.TempDir()
	path, temp := filepath.Join(dir, "f"), filepath.Join(dir, "temp")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.WriteFile(temp, []byte("new"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	want := "old"
	switch step {
	case "rename":
		breakDisk(t)
		err = Rename(temp, path)
	case "directory":
		breakDisk(t)
		err = SyncDir(dir)
	case "sync directory":
		want = "new"
		fallthrough
	default:
		err = writeIn(root, "f", []byte("new"), 0, func(at string) error {
			switch {
			case at == "write" && step == at: // the file is too large after one byte
				return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: 1})
			case at == step:
				breakDisk(t)
			}
			return nil
		})
	}
	if got, _ := os.ReadFile(path); !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EFBIG) || string(got) != want {
		t.Errorf("%v, the file contains %q, want an error of the disk and %q", err, got, want)
	}
}

// breakDisk makes every further fsync of the process fail.
func breakDisk(t *testing.T) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_FSYNC, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EIO)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		needtest.Missing(t, "filters of system calls: "+errno.Error())
	}
}

func TestFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	path, temp := filepath.Join(dir, "f"), filepath.Join(dir, "temp")
	err := errors.Join(Write(path, []byte("x"), 0), Create(temp), Rename(temp, path), SyncDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		needtest.Missing(t, "/proc")
	}
	for _, fd := range open {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, dir) {
			t.Errorf("%s is still open", name)
		}
	}
}
