package host

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopts reports whether processes whose parent has ended become children of
// this one: it is the first of a container, or was made a reaper.
func adopts() bool {
	if os.Getpid() == 1 {
		return true
	}
	var on int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0)
	return err == nil && on != 0
}

// bury waits for the dead of the tree that have become our children, so that
// they do not stay as zombies. A program itself is not among them: whoever
// started it has waited for it. One that left the session and died before
// anybody looked for it is not known, and stays.
func (t *tree) bury() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for end := time.Now().Add(killTime); ; time.Sleep(time.Millisecond) {
		dying := 0
		for _, pid := range processes() {
			f := fields(pid)
			_, seen := t.seen[pid]
			if len(f) < 20 || f[1] != strconv.Itoa(os.Getpid()) || pid == t.session || !seen && f[3] != strconv.Itoa(t.session) {
				continue
			}
			if began, _ := strconv.ParseUint(f[19], 10, 64); began < t.began {
				continue
			}
			if f[0] == "Z" {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it is dead
			} else {
				dying++ // it was killed, and shows no sign of the tree any more
			}
		}
		if dying == 0 || time.Now().After(end) {
			return
		}
	}
}

// fields returns what /proc tells of a process after its name: state, parent,
// group, session, …
func fields(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}
