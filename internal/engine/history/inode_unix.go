//go:build linux || darwin

package history

import (
	"io/fs"
	"syscall"
)

// inode identifies the state of a file: where it is stored, and when that was changed, which
// programs cannot set.
type inode struct {
	number  uint64
	changed int64 // nanoseconds
}

func inodeOf(info fs.FileInfo) inode {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{st.Ino, changedAt(st)}
}
