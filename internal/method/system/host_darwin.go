package system

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/wire"
)

// host fills in what the system tells of this machine, and of the disk that
// holds dir. It returns false where nothing can be told.
func host(i *wire.SystemInfo, dir string) bool {
	i.Release, _ = unix.Sysctl("kern.osrelease") // what it does not tell stays empty
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
	return true
}
