//go:build !linux && !darwin

package system

import "github.com/chela-ai/chela/wire"

// host fills in what the system tells of this machine. It returns false where
// nothing can be told.
func host(*wire.SystemInfo, string) bool { return false }
