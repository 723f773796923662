package system

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/wire"
)

// hasHost says that host reports this machine.
const hasHost = true

// host sets the properties of this machine and of the disk that contains dir.
func host(i *wire.SystemInfo, dir string) {
	i.Release, _ = unix.Sysctl("kern.osrelease") // empty if not available
	i.CPU, _ = unix.Sysctl("machdep.cpu.brand_string")
	if n, err := unix.SysctlUint64("hw.memsize"); err == nil {
		i.MemoryTotal = int64(n)
	}
	if n, err := unix.SysctlUint32("vm.page_free_count"); err == nil {
		i.MemoryFree = int64(n) * int64(os.Getpagesize())
	}
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil {
		i.DiskPath, i.DiskTotal, i.DiskFree = dir, int64(s.Blocks)*int64(s.Bsize), int64(s.Bavail)*int64(s.Bsize)
	}
}
