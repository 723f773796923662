package system

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// facts returns the method system.info, if the machine's properties are
// available.
func (m methods) facts() []rpc.Method {
	if !hasHost {
		return nil
	}
	return []rpc.Method{rpc.New(wire.MethodSystemInfo, wire.RoleOperator, chela.ScopeRead, m.info)}
}

func (m methods) info(context.Context, rpc.Peer, wire.None) (wire.SystemInfo, error) {
	name, _ := os.Hostname() // may be empty
	i := wire.SystemInfo{
		Machine:  name,
		Hostname: name,
		Platform: platform(runtime.GOOS),
		Arch:     arch(runtime.GOARCH),
		Runtime:  runtime.Version(),
		PID:      os.Getpid(),
		Instance: m.o.Instance,
		UptimeMs: time.Since(m.o.Started).Milliseconds(),
		CPUs:     runtime.NumCPU(),
	}
	if m.o.Port != nil {
		i.Port = m.o.Port()
	}
	host(&i, m.o.Folder())
	i.Label = label(runtime.GOOS)
	if i.Release != "" {
		i.Label += " " + i.Release
	}
	return i, nil
}

// platform returns the protocol's name of an operating system.
func platform(goos string) string {
	if goos == "windows" {
		return "win32"
	}
	return goos
}

// arch returns the protocol's name of an architecture.
func arch(goarch string) string {
	switch goarch {
	case "amd64":
		return "x64"
	case "386":
		return "ia32"
	}
	return goarch
}

// label returns the display name of an operating system.
func label(goos string) string {
	switch goos {
	case "linux":
		return "Linux"
	case "darwin":
		return "macOS"
	}
	return goos
}
