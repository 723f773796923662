//go:build linux

package native

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// Limits of the masks of a cage. What has no mask is hidden all the same, but Git takes it
// for changed.
const (
	maxMasks    = 2000 // files, with the folders in hidden ones
	maxMaskPath = 256  // bytes of a path in a hidden folder
)

// masks are those of what a cage hides, by its path. nil takes none.
type masks map[string]map[string]launch.Mask

// add returns the masks of a file or folder and keeps them in mind. nil: it has none.
func (s masks) add(name string) map[string]launch.Mask {
	delete(s, name)
	if s == nil || len(s) >= maxMasks {
		return nil
	}
	left := maxMasks
	for _, had := range s {
		left -= len(had)
	}
	now := masksOf(name, left)
	if len(now) > 0 {
		s[name] = now
	}
	return now
}

// changed reports whether one of them is not what it was.
func (s masks) changed() bool {
	for name, had := range s {
		if !maps.Equal(had, masksOf(name, maxMasks)) {
			return true
		}
	}
	return false
}

var errMasks = errors.New("too much for masks")

// masksOf returns the masks of a file, or of the files of a folder: of all, because Git takes
// one that is missing for one that was removed. nil: there are more than most, or they cannot
// be looked at.
func masksOf(name string, most int) map[string]launch.Mask {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil
	}
	out := map[string]launch.Mask{}
	seen := 0
	err = filepath.WalkDir(name, func(file string, d fs.DirEntry, err error) error {
		if seen++; seen > most {
			return errMasks
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(name, file)
		if err != nil {
			return err
		}
		if len(rel) > maxMaskPath {
			return errMasks
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var m launch.Mask // of a link: Git takes it for changed
		if info.Mode().IsRegular() {
			m = launch.Mask{Size: info.Size(), Changed: info.ModTime().UnixNano(), Runs: info.Mode()&0o100 != 0}
		}
		out[rel] = m
		return nil
	})
	if err != nil {
		return nil
	}
	return out
}
