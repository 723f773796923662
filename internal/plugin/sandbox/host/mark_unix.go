//go:build unix

package host

import (
	"fmt"
	"os"
	"syscall"
)

// Mark returns the mark of a directory, for [New] and [Sweep]. It identifies
// the directory and not its path: the same path in a container is another
// directory.
func Mark(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("mark: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("mark: %s has no inode number", dir)
	}
	return fmt.Sprintf("%x-%x", st.Dev, st.Ino), nil
}
