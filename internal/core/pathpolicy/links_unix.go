//go:build unix

package pathpolicy

import (
	"io/fs"
	"syscall"
)

// Links returns the number of names (hard links) of a file.
func Links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}
