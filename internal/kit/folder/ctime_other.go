//go:build !linux && !darwin

package folder

import (
	"io/fs"
	"time"
)

// changeTime returns false: the change time of a file is unknown.
func changeTime(fs.FileInfo) (time.Time, bool) { return time.Time{}, false }
