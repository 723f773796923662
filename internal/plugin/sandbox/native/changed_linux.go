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
	st, ok := stat(path)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Dev_major, " ", st.Dev_minor, " ", st.Ino, " ", st.Btime.Sec, " ", st.Btime.Nsec)
}

// fileStamp names a file or folder, and when its content, its names or its mode changed;
// "": there is none.
func fileStamp(path string) string {
	st, ok := stat(path)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Dev_major, " ", st.Dev_minor, " ", st.Ino, " ", st.Btime.Sec, " ", st.Btime.Nsec, " ",
		st.Ctime.Sec, " ", st.Ctime.Nsec)
}

// stat returns what is known of a file or folder, if there is one.
func stat(path string) (st unix.Statx_t, ok bool) {
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT,
		unix.STATX_INO|unix.STATX_BTIME|unix.STATX_CTIME, &st)
	return st, err == nil
}
