//go:build !linux && !darwin

package system

import "github.com/chela-ai/chela/wire"

// host sets the properties of this machine. It returns false if they are not
// available.
func host(*wire.SystemInfo, string) bool { return false }
