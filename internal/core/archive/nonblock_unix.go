//go:build unix

package archive

import "syscall"

// nonblock opens a pipe that took the place of a file without waiting for a writer.
const nonblock = syscall.O_NONBLOCK
