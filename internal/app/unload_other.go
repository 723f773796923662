//go:build !linux

package app

// unload does nothing: the kernel keeps what it likes.
func unload() {}
