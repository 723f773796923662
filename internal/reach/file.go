package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens a regular file for reading. It never waits: what the name
// leads to is looked at first, and again when it is open.
func (d *Dir) OpenFile(path, name string) (*os.File, fs.FileInfo, error) {
	info, err := d.Root.Stat(name)
	if err != nil {
		return nil, nil, d.Fault(path, err)
	}
	if err := regular(path, info); err != nil {
		return nil, nil, err
	}
	f, err := d.Root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, d.Fault(path, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = Plain(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Plain says why a file is none that may be read or written: it is not a regular
// one, or it has a second name.
func Plain(path string, info fs.FileInfo) error {
	if err := regular(path, info); err != nil || Links(info) < 2 {
		return err
	}
	return fmt.Errorf("%s has more than one name (a hard link), and the other may be outside the workspace; use exec for it", Show(path))
}

// regular says why a file is no regular one.
func regular(path string, info fs.FileInfo) error {
	switch m := info.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return fmt.Errorf("%s is a folder; use ls", Show(path))
	case m&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is a named pipe, not a file", Show(path))
	case m&fs.ModeSocket != 0:
		return fmt.Errorf("%s is a socket, not a file", Show(path))
	}
	return fmt.Errorf("%s is a device, not a file", Show(path))
}
