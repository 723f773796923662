package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestNothingInherited gives a command three descriptors, whatever this process
// has open.
func TestNothingInherited(t *testing.T) {
	w := newWork(t, native.Options{})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(secret, syscall.O_RDWR, 0) // inherited by all programs that are started now
	if err != nil {
		t.Fatal(err)
	}
	listen, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(syscall.Close(fd), syscall.Close(listen)); err != nil {
			t.Error(err)
		}
	})
	const list = `cd /proc/self/fd && for fd in *; do [ -e "$fd" ] && echo $fd; done; true`
	for range 2 { // a new cage, and one that was ready
		w.expect(list, "0\n1\n2\n")
		w.broker.Settle()
	}
}
