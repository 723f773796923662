//go:build unix

package statedir

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether a file belongs to this user and is closed to others.
func private(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
