package statedir

import (
	"encoding/binary"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

// TestLeaveOrder watches the lock file while its owner leaves. The file must be empty
// before the lock is released, which closes it: later, it may hold the mark of the
// next owner.
func TestLeaveOrder(t *testing.T) {
	l, err := Own(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	for i := 0; err == syscall.EMFILE && i < 600; i++ { // other tests of this person use all that there are
		time.Sleep(100 * time.Millisecond)
		fd, err = syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	}
	if err != nil {
		needtest.Missing(t, "inotify")
	}
	defer syscall.Close(fd)
	if _, err := syscall.InotifyAddWatch(fd, l.Path(), syscall.IN_MODIFY|syscall.IN_CLOSE); err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := syscall.Read(fd, b)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for at := 0; at+syscall.SizeofInotifyEvent <= n; {
		mask, name := binary.NativeEndian.Uint32(b[at+4:]), binary.NativeEndian.Uint32(b[at+12:])
		if mask&syscall.IN_MODIFY != 0 {
			events = append(events, "emptied")
		} else {
			events = append(events, "closed")
		}
		at += syscall.SizeofInotifyEvent + int(name)
	}
	if !slices.Equal(events, []string{"emptied", "closed"}) {
		t.Errorf("the file was %q", events)
	}
}
