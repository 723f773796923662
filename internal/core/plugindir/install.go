package plugindir

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/kit/folder"
)

// Recover completes or undoes an installation that was interrupted. dir is the folder of
// the plug-ins that the person installed; see [Dir]. Install and Uninstall do the same.
func Recover(dir string) error { return installdir.Recover(dir) }

// Install copies a plug-in from a folder, or unpacks it from an archive, into the folder
// dir, and returns it with its hash; see [Dir]. Nothing of it is run. It replaces a
// plug-in with the same id only if replace is set. An installation is complete or has no
// effect, also when it is interrupted.
func Install(from, dir string, replace bool) (Plugin, error) {
	d, err := installdir.Lock(dir)
	if err != nil {
		return Plugin{}, err
	}
	defer d.Unlock()
	return install(d, from, replace, func(string) {})
}

// install is Install with the lock. It calls before with the name of each step.
func install(d *installdir.Locked, from string, replace bool, before func(step string)) (p Plugin, err error) {
	before("make a temporary folder")
	fresh, err := d.Temp()
	if err != nil {
		return p, err
	}
	before("copy")
	if err := fetch(from, fresh); err != nil {
		return p, chela.Errorf(chela.CodeInvalid, "%s: %w", from, err)
	}
	before("check")
	if p, err = check(fresh); err != nil {
		return p, chela.Errorf(chela.CodeInvalid, "%s: %w", from, err)
	}
	to := d.Path(p.ID)
	if d.Has(p.ID) && !replace {
		return p, chela.Errorf(chela.CodeConflict, "the plug-in %s is installed already in %s", p.ID, to)
	}
	if err := d.Put(fresh, p.ID, before); err != nil {
		return p, err
	}
	hash, seen := p.Hash, new(atomic.Pointer[string])
	p, err = Read(to)
	p.Source, p.Hash, p.seen = Installed, hash, seen
	return p, err
}

// fetch copies a folder or unpacks an archive.
func fetch(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return folder.Copy(from, to, limits)
	}
	return folder.Extract(from, to, limits)
}

// check returns the plug-in in a temporary folder, with its hash.
func check(dir string) (Plugin, error) {
	p, err := Read(dir)
	if err != nil {
		if p.File == "" { // the error has the name of the temporary folder
			err = errors.New("it has no manifest (chela.plugin.json, openclaw.plugin.json, or plugin.json of another program)")
		}
		return p, err
	}
	return p, p.sum()
}

// Uninstall removes an installed plug-in from the folder dir.
func Uninstall(dir, id string) error {
	if !validID(id) {
		return chela.Errorf(chela.CodeInvalid, "%.100q is not the id of a plug-in", id)
	}
	d, err := installdir.Lock(dir)
	if err != nil {
		return err
	}
	defer d.Unlock()
	name := id
	for _, p := range folders(dir, Installed) { // a person may have copied it to another name
		if p.ID == id && !d.Has(id) {
			name = filepath.Base(p.Dir)
		}
	}
	if !d.Has(name) {
		return chela.Errorf(chela.CodeNotFound, "the plug-in %s is not installed in %s", id, dir)
	}
	return d.Remove(name)
}
