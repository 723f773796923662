package pathpolicy

import (
	"bytes"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxBundle is the largest file of certificates that is read.
const maxBundle = 2 << 20

// packageDirs are the names of folders in which package managers put what anybody can get.
var packageDirs = []string{"site-packages", "dist-packages", "node_modules", "vendor", "ca-certificates"}

// PublicCertificates reports whether a file, which has a name that is private and is given by its
// absolute path without links, holds public certificates only, as those that Python's certifi
// brings: it is in a folder of installed packages, and has certificates in it and nothing else of
// its kind, such as a key.
func PublicCertificates(name string) bool {
	parts := strings.Split(filepath.ToSlash(name), "/")
	dirs, base := parts[:len(parts)-1], parts[len(parts)-1]
	if path.Ext(strings.ToLower(base)) != ".pem" || slices.ContainsFunc(dirs, Private) ||
		!slices.ContainsFunc(dirs, func(dir string) bool { return slices.Contains(packageDirs, dir) }) {
		return false
	}
	root, file, err := OpenParent(name, 0)
	if err != nil {
		return false
	}
	d := &Dir{Root: root, Path: filepath.Dir(name), Outside: true}
	defer d.Close()
	f, info, err := d.OpenFile(file, file) // not a link, and with no other name
	if err != nil {
		return false
	}
	defer f.Close()
	if info.Size() > maxBundle {
		return false
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBundle+1))
	if err != nil || len(data) > maxBundle {
		return false
	}
	begin := []byte("-----BEGIN ")
	blocks := bytes.Count(data, begin)
	certificates := bytes.Count(data, []byte("-----BEGIN CERTIFICATE-----")) +
		bytes.Count(data, []byte("-----BEGIN TRUSTED CERTIFICATE-----"))
	return blocks > 0 && blocks == certificates && !bytes.Contains(data, []byte("PRIVATE KEY"))
}
