package process

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Booted returns when the system started; zero: unknown.
func Booted() time.Time {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return time.Time{}
	}
	_, rest, _ := strings.Cut(string(b), "\nbtime ")
	line, _, _ := strings.Cut(rest, "\n")
	seconds, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
