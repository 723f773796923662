//go:build unix

package host

import (
	"fmt"
	"os"
	"syscall"
)

// Mark returns the mark of a directory, for [Broker] and [Sweep]. It is the
// directory's and not its path's: in a container the same path is another
// directory.
func Mark(dir string) (string, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("mark: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("mark: %s has no number", dir)
	}
	return fmt.Sprintf("%x-%x", st.Dev, st.Ino), nil
}
