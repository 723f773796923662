package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// errBad begins the errors of archives that are not as [Create] writes them.
func errBad(format string, args ...any) error {
	return fmt.Errorf("not a sound archive: "+format, args...)
}

// Verify reads an archive completely and returns its manifest: every file that the manifest
// names is there once, with its size and hash, nothing else is, and no name or link leads
// out of the archive.
func Verify(ctx context.Context, in io.Reader) (*Manifest, error) {
	r := &reader{ctx: ctx, seen: map[string]File{}}
	if err := r.read(in); err != nil {
		return nil, err
	}
	if r.manifest == nil {
		return nil, errBad("it has no %s", Name)
	}
	return r.manifest, r.compare()
}

// Extract writes the files of a verified archive below a folder, which exists. at returns
// where an entry belongs in the folder; "": it is not wanted.
func Extract(ctx context.Context, in io.Reader, m *Manifest, to string, at func(name string) string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	r := &reader{ctx: ctx, seen: map[string]File{}, root: root, at: at, want: map[string]File{}}
	for _, f := range m.Files {
		r.want[f.Path] = f
	}
	if err := r.read(in); err != nil {
		return err
	}
	if len(r.seen) != len(m.Files) {
		return errBad("it changed after it was verified")
	}
	for i := len(m.Files) - 1; i >= 0; i-- { // what is in a folder comes after it
		if f := m.Files[i]; f.Dir && at(f.Path) != "" {
			if err := root.Chmod(filepath.FromSlash(at(f.Path)), f.Mode|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader reads an archive.
type reader struct {
	ctx      context.Context
	manifest *Manifest
	seen     map[string]File
	bytes    int64

	root *os.Root // nil: nothing is written
	at   func(string) string
	want map[string]File // what was verified
}

// read reads all entries.
func (r *reader) read(in io.Reader) error {
	z, err := gzip.NewReader(contextReader{r.ctx, in})
	if err != nil {
		return errBad("%w", err)
	}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errBad("%w", err)
		}
		if err := r.entry(h, t); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(z, 1<<20)); err != nil { // the sum at its end
		return errBad("%w", err)
	}
	return nil
}

// entry reads an entry.
func (r *reader) entry(h *tar.Header, content io.Reader) error {
	name := h.Name
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	switch {
	case !validName(name):
		return errBad("the name %q leads out of it or is not valid", h.Name)
	case r.manifest != nil:
		return errBad("%q follows the manifest", name)
	case len(r.seen) >= maxFiles:
		return errBad("more than %d files", maxFiles)
	}
	if name == Name {
		return r.readManifest(h, content)
	}
	if _, again := r.seen[name]; again {
		return errBad("%q is in it twice", name)
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if f, ok := r.seen[above]; ok && !f.Dir {
			return errBad("%q is below %q, which is no folder", name, above)
		}
	}
	f := File{Path: name, Mode: fs.FileMode(h.Mode) & fs.ModePerm} //nolint:gosec // only permissions
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		f.Dir = true
		err = r.folder(f)
	case tar.TypeSymlink:
		f.Link, f.Mode = h.Linkname, 0
		if !stays(name, f.Link) {
			return errBad("the link %q leads out of it", name)
		}
		err = r.link(f)
	case tar.TypeReg:
		if r.bytes += h.Size; h.Size < 0 || r.bytes > maxBytes {
			return errBad("it is too large")
		}
		f.Size = h.Size
		f.SHA256, err = r.file(f, content)
	default:
		return errBad("%q is neither a file, a folder nor a link", name)
	}
	if err != nil {
		return err
	}
	if r.want != nil && r.want[name] != f {
		return errBad("%q changed after it was verified", name)
	}
	r.seen[name] = f
	return nil
}

func (r *reader) readManifest(h *tar.Header, content io.Reader) error {
	if h.Typeflag != tar.TypeReg || h.Size > maxManifest {
		return errBad("its manifest is no file, or too large")
	}
	r.manifest = &Manifest{}
	d := json.NewDecoder(content)
	if err := d.Decode(r.manifest); err != nil {
		return errBad("%s: %w", Name, err)
	}
	if r.manifest.Format != Format {
		return errBad("it is of another program")
	}
	if r.manifest.Version != version {
		return fmt.Errorf(
			"the archive has the layout %d, and this program knows %d: use the version of chela that wrote it, %s",
			r.manifest.Version, version, r.manifest.Program)
	}
	return nil
}

// compare compares the manifest with what was read.
func (r *reader) compare() error {
	listed := map[string]bool{}
	for _, f := range r.manifest.Files {
		have, ok := r.seen[f.Path]
		switch {
		case listed[f.Path]:
			return errBad("its manifest lists %q twice", f.Path)
		case !ok:
			return errBad("%q is missing", f.Path)
		case have != f:
			return errBad("%q is not what it was when the archive was written", f.Path)
		}
		listed[f.Path] = true
	}
	for name := range r.seen {
		if !listed[name] {
			return errBad("%q is not in its manifest", name)
		}
	}
	names := map[string]bool{}
	for _, s := range r.manifest.Sources {
		if !validName(s.At) || names[s.At] {
			return errBad("the name %q of a source is not valid", s.At)
		}
		names[s.At] = true
	}
	return nil
}

// place returns where an entry is written; "": nowhere. The folders above it exist then.
func (r *reader) place(name string) (string, error) {
	if r.root == nil {
		return "", nil
	}
	to := r.at(name)
	if to == "" || to == "." {
		return "", nil
	}
	to = filepath.FromSlash(to)
	return to, r.root.MkdirAll(filepath.Dir(to), 0o700)
}

func (r *reader) folder(f File) error {
	to, err := r.place(f.Path)
	if err != nil || to == "" {
		return err
	}
	return r.root.MkdirAll(to, 0o700)
}

func (r *reader) link(f File) error {
	to, err := r.place(f.Path)
	if err != nil || to == "" {
		return err
	}
	return r.root.Symlink(filepath.FromSlash(f.Link), to)
}

// file returns the hash of a file, which it writes.
func (r *reader) file(f File, content io.Reader) (string, error) {
	h := sha256.New()
	to, err := r.place(f.Path)
	if err != nil {
		return "", err
	}
	if to == "" {
		if _, err := io.Copy(h, content); err != nil {
			return "", errBad("%q: %w", f.Path, err)
		}
		return hex.EncodeToString(h.Sum(nil)), nil
	}
	out, err := r.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if _, err = io.Copy(io.MultiWriter(out, h), content); err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), r.root.Chmod(to, f.Mode|0o400)
}
