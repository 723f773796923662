//go:build !linux && !darwin

package system

import "github.com/chela-ai/chela/wire"

// hasHost says that host reports nothing about this machine.
const hasHost = false

func host(*wire.SystemInfo, string) {}
