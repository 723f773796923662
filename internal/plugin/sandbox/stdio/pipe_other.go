//go:build !linux

package stdio

import "os"

func openPipe() (ours, theirs *os.File, err error) { return os.Pipe() }

// Abandoned always returns false: it cannot be determined on this system.
func Abandoned(*os.File) bool { return false }
