package native

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// changedAt returns when a folder was changed. Programs that restore files set the
// time of modification back, but nobody can set this time.
func changedAt(info os.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(st.Ctimespec.Unix())
}

// fileID names a file or folder, also after it was renamed; "": there is none. One that
// is made later has another name, also if it gets the number of the inode.
func fileID(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Dev, " ", st.Ino, " ", st.Btim.Sec, " ", st.Btim.Nsec)
}

// watch is not used on macOS.
type watch struct{ end func() }

func (*watch) add(string) bool { return false }

func (*watch) changed() ([]string, bool) { return nil, false }

func (*watch) replaced(string) bool { return false }
