package host

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopts reports whether orphaned processes become children of this process:
// it is the first process of a container, or a child subreaper.
func adopts() bool {
	if os.Getpid() == 1 {
		return true
	}
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return err == nil && on != 0
}

// reapZombies waits for dead processes of the tree that have become our children, so
// that they do not remain as zombies. The program itself is waited for
// elsewhere. A process that left the session and died before it was ever seen
// is not known, and remains.
func (t *tree) reapZombies() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for end := time.Now().Add(killTime); ; time.Sleep(time.Millisecond) {
		dying := 0
		for _, pid := range processes() {
			p, state := readAny(pid)
			_, seen := t.seen[pid]
			if state == 0 || p.parent != os.Getpid() || pid == t.session ||
				!seen && p.session != t.session || p.began < t.began {
				continue
			}
			if state == 'Z' {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it is dead already
			} else {
				dying++ // it was killed, but no longer matches any criterion of the tree
			}
		}
		if dying == 0 || time.Now().After(end) {
			return
		}
	}
}
