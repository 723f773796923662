//go:build !linux && !darwin

package history

import "io/fs"

// inode is not known on this system.
type inode struct{}

func inodeOf(fs.FileInfo) inode { return inode{} }
