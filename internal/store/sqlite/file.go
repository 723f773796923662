package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
)

// create makes an empty file that nobody else may read. SQLite gives its log
// the same mode. One that is there is left as it is: fs.ErrExist.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// settle makes temp durable and gives it its name.
func settle(temp, dst string) error {
	if err := syncFile(temp); err != nil {
		return err
	}
	if err := os.Rename(temp, dst); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dst))
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // names are durable there
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
