package native

import (
	"os"
	"syscall"
	"time"
)

// changedAt returns when a folder was changed. Programs that restore files set the
// time of modification back, but nobody can set this time.
func changedAt(info os.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}
