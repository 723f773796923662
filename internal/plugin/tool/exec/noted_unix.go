//go:build linux || darwin

package exec

import (
	"fmt"
	"io/fs"
	"syscall"
)

// noted returns where a file is, and when the system noted its last change.
func noted(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Dev, st.Ino, changeTime(st))
}
