package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Booted returns when the system started; zero: unknown.
func Booted() time.Time {
	at, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return time.Time{}
	}
	return time.Unix(at.Unix())
}
