package archive

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// Name is the name of the manifest in an archive.
const Name = "manifest.json"

// Format is what a manifest says it describes.
const Format = "chela-backup"

// version is the version of the layout.
const version = 1

// Limits of an archive.
const (
	maxFiles    = 2_000_000
	maxManifest = 1 << 30 // bytes
	maxBytes    = 1 << 42 // of all files
	maxName     = 4096    // bytes
)

// Manifest describes an archive.
type Manifest struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Program string    `json:"program"` // version of the program that wrote it
	Created time.Time `json:"created"`
	Sources []Source  `json:"sources"`
	Files   []File    `json:"files"`
	Left    []Left    `json:"left,omitempty"` // what is not in it, although it is in a source
}

// Source is a folder or a file that was archived.
type Source struct {
	Kind string `json:"kind"`
	Path string `json:"path"`          // where it was
	At   string `json:"at"`            // name in the archive
	Key  string `json:"key,omitempty"` // of the setting that names it, where it is named by one
	// From is where it is read, if not at Path.
	From string `json:"-"`
	// Skip reports whether a path in the folder is left out, with everything below it.
	Skip func(path string, info fs.FileInfo) bool `json:"-"`
}

// File is a file, a folder or a symbolic link.
type File struct {
	Path   string      `json:"path"` // in the archive
	Dir    bool        `json:"dir,omitempty"`
	Link   string      `json:"link,omitempty"` // target
	Mode   fs.FileMode `json:"mode,omitempty"` // permissions
	Size   int64       `json:"size,omitempty"`
	SHA256 string      `json:"sha256,omitempty"` // in hexadecimal
}

// Left is something that is not in an archive, or not as it should be.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Count returns the number of files, without folders and links.
func (m *Manifest) Count() (n int) {
	for _, f := range m.Files {
		if f.SHA256 != "" {
			n++
		}
	}
	return n
}

// validName reports whether a name can be that of an entry on every system: a path below
// the archive.
func validName(name string) bool {
	return fs.ValidPath(name) && name != "." && len(name) <= maxName && !strings.ContainsAny(name, "\\\x00")
}

// stays reports whether a link leads to a place in its source, whatever other links there
// are: ".." is at the beginning of its target only.
func stays(name, target string) bool {
	if target == "" || path.IsAbs(target) || path.Clean(target) != target || strings.ContainsAny(target, "\\\x00:") {
		return false
	}
	source, _, _ := strings.Cut(name, "/")
	to := path.Join(path.Dir(name), target)
	return to == source || strings.HasPrefix(to, source+"/")
}
