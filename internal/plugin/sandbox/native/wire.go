//go:build linux

package native

import "github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"

// What a cage is made of is said in the words of its launcher.
type (
	mount = launch.Mount
	layer = launch.Layer
)

// Kinds of mounts.
const (
	bind   = launch.Bind
	temp   = launch.Temp
	link   = launch.Link
	text   = launch.Text
	hide   = launch.Hide
	freeze = launch.Freeze
	pin    = launch.Pin
	procfs = launch.ProcFS
	devpts = launch.DevPTS
)
