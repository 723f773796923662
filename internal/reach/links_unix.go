//go:build unix

package reach

import (
	"io/fs"
	"syscall"
)

// Links returns how many names a file has.
func Links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
