package media

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxInput bounds a file of the person's that is taken in.
const maxInput = 20 << 20

var errOutside = errors.New("it is outside of the workspace")

// InDir reads a file of the folder dir, a workspace, which it cannot leave. The
// error is in words for a model.
func InDir(dir, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	defer root.Close()
	name := path
	if filepath.IsAbs(path) {
		if name, err = filepath.Rel(dir, filepath.Clean(path)); err != nil {
			return nil, errOutside
		}
	}
	if !filepath.IsLocal(name) {
		return nil, errOutside
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, fault(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("not a file")
	case info.Size() == 0:
		return nil, errors.New("the file is empty")
	case info.Size() > maxInput:
		return nil, fmt.Errorf("%d MB; at most %d MB", info.Size()>>20, maxInput>>20)
	}
	return io.ReadAll(io.LimitReader(f, maxInput))
}

// fault says what is wrong with a file, in words for the model.
func fault(err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file")
	case errors.As(err, &pe) && pe.Err.Error() == "path escapes from parent":
		return errOutside
	case errors.As(err, &pe):
		return pe.Err
	}
	return err
}
