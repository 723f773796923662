package folder

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns when a file or its attributes were changed last, which no program
// can set.
func changeTime(info fs.FileInfo) (time.Time, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(s.Ctim.Unix()), true
}
