//go:build unix

package docker

import (
	"fmt"
	"os"
	"syscall"
)

// owner returns the user and group that a folder belongs to. Root is replaced:
// nothing in a container runs as root.
func owner(dir string) string {
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return fmt.Sprintf("%d:%d", st.Uid, st.Gid)
		}
	}
	return "1000:1000"
}
