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
	return time.Unix(st.Ctim.Unix())
}

// fileID names a file or folder, also after it was renamed; "": there is none. One that
// is made later has another name, also if it gets the number of the inode.
func fileID(path string) string {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_INO|unix.STATX_BTIME, &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Dev_major, " ", st.Dev_minor, " ", st.Ino, " ", st.Btime.Sec, " ", st.Btime.Nsec)
}
