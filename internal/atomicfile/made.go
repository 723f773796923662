package atomicfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Create makes an empty file that nobody else may read. One that is there is
// left as it is: fs.ErrExist.
func Create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// Settle makes a file that another program wrote durable and gives it its name.
func Settle(temp, path string) error {
	if err := sync(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	defer root.Close()
	return syncDir(root, ".")
}

func sync(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
