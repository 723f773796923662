package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
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
	"time"

	"github.com/chela-ai/chela/internal/kit/folder"
)

// Plan returns the manifest of what [Create] would write now, without hashes.
func Plan(ctx context.Context, sources []Source, left []Left) (*Manifest, error) {
	w := &writer{ctx: ctx, manifest: Manifest{Sources: sources, Left: left}, dry: true}
	err := w.sources()
	return &w.manifest, err
}

// Create writes an archive of sources to out. Files are read once, one after the other; temporary
// copies of large ones are in the folder temp. left is what the sources leave out. Devices, pipes,
// sockets, and links that lead out of their source are left out and named in the manifest, as is a
// file that changes again and again while it is read.
func Create(ctx context.Context, out io.Writer, temp, program string, sources []Source,
	left []Left) (*Manifest, error) {
	z := gzip.NewWriter(out)
	w := &writer{
		ctx: ctx, temp: temp, out: tar.NewWriter(z),
		manifest: Manifest{
			Format:  Format,
			Version: version,
			Program: program,
			Created: time.Now().UTC().Truncate(time.Second),
			Sources: sources,
			Left:    left,
		},
	}
	if err := w.sources(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(&w.manifest, "", " ")
	if err != nil {
		return nil, err
	}
	if err := w.entry(&tar.Header{Typeflag: tar.TypeReg, Name: Name, Size: int64(len(b)), Mode: 0o600},
		bytes.NewReader(b)); err != nil {
		return nil, err
	}
	return &w.manifest, errors.Join(w.out.Close(), z.Close())
}

// writer writes an archive.
type writer struct {
	ctx      context.Context
	temp     string // folder for copies of large files
	out      *tar.Writer
	dry      bool // only the manifest is made
	manifest Manifest
}

func (w *writer) sources() error {
	for _, s := range w.manifest.Sources {
		if err := w.source(s); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return nil
}

// source archives a folder or a file. One that is not there has nothing in it.
func (w *writer) source(s Source) error {
	from := cmp.Or(s.From, s.Path)
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if !info.IsDir() {
		real, err := filepath.EvalSymlinks(from) // a file that is named is read where it is
		if err != nil {
			return err
		}
		root, err := os.OpenRoot(filepath.Dir(real))
		if err != nil {
			return err
		}
		defer root.Close()
		return w.file(root, filepath.Base(real), s.At, info)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		at := path.Join(s.At, name)
		if err == nil {
			err = w.ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
			return nil
		} else if errors.Is(err, fs.ErrPermission) && name != "." {
			return w.leave(filepath.Join(s.Path, name), "it cannot be read")
		} else if err != nil {
			return err
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case name != "." && s.Skip != nil && s.Skip(name, info):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !validName(at):
			return w.leave(filepath.Join(s.Path, name), "its name is not valid on every system")
		case d.IsDir():
			return w.add(File{Path: at, Dir: true, Mode: info.Mode().Perm()}, nil)
		case d.Type() == fs.ModeSymlink:
			return w.link(root, s, name, at)
		case !d.Type().IsRegular():
			return w.leave(filepath.Join(s.Path, name), "it is a device, a pipe or a socket")
		}
		return w.file(root, name, at, info)
	})
}

// leave records that something is not in the archive.
func (w *writer) leave(name, why string) error {
	w.manifest.Left = append(w.manifest.Left, Left{Path: name, Why: why})
	return nil
}

// link archives a symbolic link that leads to a place in its source.
func (w *writer) link(root *os.Root, s Source, name, at string) error {
	target, err := root.Readlink(name)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) {
		if rel, err := filepath.Rel(filepath.Join(s.Path, filepath.Dir(name)), target); err == nil {
			target = rel
		}
	}
	target = path.Clean(filepath.ToSlash(target))
	if to := path.Join(path.Dir(at), target); !stays(at, target) || to != s.At && !strings.HasPrefix(to, s.At+"/") {
		return w.leave(filepath.Join(s.Path, name), "it is a link that leads out of its folder")
	}
	return w.add(File{Path: at, Link: target}, nil)
}

// tries is how often a file that changes while it is read is read.
const tries = 3

// inMemory is the size of files that are held in memory.
const inMemory = 4 << 20

// file archives a regular file.
func (w *writer) file(root *os.Root, name, at string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return w.leave(filepath.Join(root.Name(), name), "it is no regular file")
	}
	f := File{Path: at, Mode: info.Mode().Perm(), Size: info.Size()}
	if w.dry {
		return w.add(f, nil)
	}
	for try := 1; ; try++ {
		content, sum, steady, err := w.read(root, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case errors.Is(err, folder.ErrNotRegular):
			return w.leave(filepath.Join(root.Name(), name), "it was replaced while it was read")
		case errors.Is(err, fs.ErrPermission):
			return w.leave(filepath.Join(root.Name(), name), "it cannot be read")
		case err != nil:
			return err
		case !steady && try < tries:
			if err := content.Close(); err != nil {
				return err
			}
			continue
		case !steady:
			_ = w.leave(filepath.Join(root.Name(), name),
				"it changed while it was read: what is in the archive may be old and new together")
		}
		f.Size, f.SHA256 = content.size, sum
		return errors.Join(w.add(f, content), content.Close())
	}
}

// spool is the content of a file.
type spool struct {
	io.Reader
	size int64
	file *os.File // temporary
}

// Close removes the temporary file.
func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}

// read reads a file. It reports whether the file stayed the same.
func (w *writer) read(root *os.Root, name string) (_ *spool, sum string, steady bool, err error) {
	in, before, err := folder.Open(root, filepath.FromSlash(name))
	if err != nil {
		return nil, "", false, err
	}
	defer in.Close()
	h := sha256.New()
	s := &spool{}
	from := io.TeeReader(contextReader{w.ctx, in}, h)
	var b bytes.Buffer
	if s.size, err = io.Copy(&b, io.LimitReader(from, inMemory)); err != nil {
		return nil, "", false, err
	}
	s.Reader = &b
	if s.size == inMemory {
		if s.file, err = os.CreateTemp(w.temp, "content-*"); err != nil {
			return nil, "", false, err
		}
		var n int64
		if n, err = io.Copy(s.file, from); err == nil {
			_, err = s.file.Seek(0, io.SeekStart)
		}
		if err != nil {
			return nil, "", false, errors.Join(err, s.Close())
		}
		s.size += n
		s.Reader = io.MultiReader(&b, s.file)
	}
	after, err := in.Stat()
	if err != nil {
		return nil, "", false, errors.Join(err, s.Close())
	}
	steady = s.size == after.Size() && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime())
	return s, hex.EncodeToString(h.Sum(nil)), steady, nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// add writes an entry and adds it to the manifest.
func (w *writer) add(f File, content *spool) error {
	if len(w.manifest.Files) >= maxFiles {
		return fmt.Errorf("more than %d files", maxFiles)
	}
	w.manifest.Files = append(w.manifest.Files, f)
	if w.dry {
		return nil
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Size: f.Size, Mode: int64(f.Mode), ModTime: w.manifest.Created}
	switch {
	case f.Dir:
		h.Typeflag, h.Name = tar.TypeDir, f.Path+"/"
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Link, 0o777
	default:
		return w.entry(h, content)
	}
	return w.entry(h, nil)
}

func (w *writer) entry(h *tar.Header, content io.Reader) error {
	if err := w.out.WriteHeader(h); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	_, err := io.Copy(w.out, content)
	return err
}
