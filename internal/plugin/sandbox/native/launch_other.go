//go:build !linux

package native

// Launch reports whether this process was started as a launcher. On this system
// there are none.
func Launch() bool { return false }
