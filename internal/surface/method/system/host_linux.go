package system

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/wire"
)

// hasHost says that host reports this machine.
const hasHost = true

// host sets the properties of this machine and of the disk that contains dir.
func host(i *wire.SystemInfo, dir string) {
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		i.Release = unix.ByteSliceToString(name.Release[:])
	}
	i.CPU = field("/proc/cpuinfo", "model name")
	i.MemoryTotal = kibibytes("MemTotal")
	i.MemoryFree = kibibytes("MemAvailable")
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		i.Load = load(string(b))
	}
	disk(i, dir)
}

// field returns the value of a name in a table of /proc.
func field(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// kibibytes parses a size of /proc/meminfo, in bytes.
func kibibytes(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", name), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// load returns the load average of 1, 5 and 15 minutes.
func load(s string) []float64 {
	words := strings.Fields(s)
	if len(words) < 3 {
		return nil
	}
	out := make([]float64, 3)
	for i := range out {
		f, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return nil
		}
		out[i] = f
	}
	return out
}

// disk sets the size of the disk that contains dir.
func disk(i *wire.SystemInfo, dir string) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil {
		i.DiskPath, i.DiskTotal, i.DiskFree = dir, int64(s.Blocks)*int64(s.Bsize), int64(s.Bavail)*int64(s.Bsize)
	}
}
