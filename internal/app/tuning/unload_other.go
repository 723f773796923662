//go:build !linux

package tuning

// unload does nothing on this system.
func unload() {}
