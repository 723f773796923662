// Package installdir keeps folders that a person installed in one folder, under their
// names. A folder is replaced or removed as a whole: if that is interrupted at any point,
// the old one or the new one is there, and the next change removes what was left.
package installdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Beginnings of the names of what is not, or not any more, installed.
const (
	newPrefix     = ".install-" // is filled
	oldPrefix     = ".old-"     // then the name: is replaced, and comes back if the new one is missing
	removedPrefix = ".removed-" // is deleted
)

// LockName is the name of a file in the folder, which is locked.
const LockName = ".lock"

// lockTime is the maximum time to wait for another installation.
const lockTime = 30 * time.Second

// Record calls change, which puts the folder next in the place of dir, or removes dir if
// next is empty, and keeps a record of it.
type Record func(dir, next string, change func() error) error

// Locked is a folder of installed folders that nobody else changes, also no other process.
type Locked struct {
	// Record is called with the changes of installed folders; nil: nobody records them.
	Record Record

	dir  string
	lock *flock.Flock
	temp []string // folders of Temp
}

// Lock locks a folder, which need not exist, and completes or undoes what was interrupted.
func Lock(dir string) (*Locked, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, LockName), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if _, err := l.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("another installation is in progress: %w", err)
	}
	d := &Locked{dir: dir, lock: l}
	if err := d.recover(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return d, nil
}

// Unlock removes the temporary folders and unlocks the folder.
func (d *Locked) Unlock() {
	for _, t := range d.temp {
		_ = os.RemoveAll(t) // otherwise the next Lock does
	}
	_ = d.lock.Close() // nobody else needs the file
}

// Recover completes or undoes what was interrupted. It changes nothing if there is nothing
// to do.
func Recover(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n := e.Name(); strings.HasPrefix(n, newPrefix) || strings.HasPrefix(n, oldPrefix) ||
			strings.HasPrefix(n, removedPrefix) {
			d, err := Lock(dir)
			if err == nil {
				d.Unlock()
			}
			return err
		}
	}
	return nil
}

// recover is Recover with the lock.
func (d *Locked) recover() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		at := filepath.Join(d.dir, e.Name())
		name, isOld := strings.CutPrefix(e.Name(), oldPrefix)
		switch {
		case isOld && !there(d.Path(name)):
			err = os.Rename(at, d.Path(name))
		case isOld:
			err = d.delete(at, name)
		case strings.HasPrefix(e.Name(), newPrefix), strings.HasPrefix(e.Name(), removedPrefix):
			err = os.RemoveAll(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Path returns the path of an installed folder.
func (d *Locked) Path(name string) string { return filepath.Join(d.dir, name) }

// Has reports whether there is an installed folder.
func (d *Locked) Has(name string) bool { return there(d.Path(name)) }

// Temp returns the path of a folder that does not exist yet, to be filled for Put. Unlock
// removes it.
func (d *Locked) Temp() (string, error) {
	temp, err := os.MkdirTemp(d.dir, newPrefix)
	if err != nil {
		return "", err
	}
	d.temp = append(d.temp, temp)
	return filepath.Join(temp, "new"), nil
}

// Put moves a folder of Temp to its name. It replaces the folder that has the name. before
// is called with the name of each step.
func (d *Locked) Put(fresh, name string, before func(step string)) error {
	return d.record(name, fresh, func() error { return d.put(fresh, name, before) })
}

func (d *Locked) record(name, next string, change func() error) error {
	if d.Record == nil {
		return change()
	}
	return d.Record(d.Path(name), next, change)
}

func (d *Locked) put(fresh, name string, before func(step string)) error {
	to, old := d.Path(name), filepath.Join(d.dir, oldPrefix+name)
	replaced := there(to)
	if replaced {
		before("move the old one")
		if err := os.Rename(to, old); err != nil {
			return err
		}
	}
	before("move the new one")
	if err := os.Rename(fresh, to); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, to))
		}
		return err
	}
	before("sync")
	if err := atomicfile.SyncDir(d.dir); err != nil {
		return err
	}
	if replaced {
		before("remove the old one")
		return d.delete(old, name)
	}
	return nil
}

// Remove removes an installed folder.
func (d *Locked) Remove(name string) error {
	return d.record(name, "", func() error { return d.delete(d.Path(name), name) })
}

// delete deletes a folder, which nothing takes for an installed one in the meantime.
func (d *Locked) delete(path, name string) error {
	to := filepath.Join(d.dir, removedPrefix+name)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Rename(path, to); err != nil {
		return err
	}
	if err := atomicfile.SyncDir(d.dir); err != nil {
		return err
	}
	return os.RemoveAll(to)
}
