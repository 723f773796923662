package folder

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of names in archives.
const (
	maxElement = 255 // bytes of the name of a file or folder
	maxPath    = 800 // bytes of a path
)

// overhead is the number of bytes that the description of a file may take in an archive.
const overhead = 4096

// Extract unpacks an archive to a new folder, and writes all files to the disk. The
// archive is a tar, a tar compressed by gzip, or a zip, whatever its name. If everything
// in it is in one folder, that folder becomes the new one, unless its name begins with a
// point.
//
// Links, devices, absolute paths, "..", and names that are invalid on some system or
// that differ only in case are an error. On an error the new folder may exist, with a
// part of the files.
func Extract(archive, to string, l Limits) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	top, err := unpack(f, info.Size(), to, l)
	if err != nil {
		return err
	}
	if top != "" && top[0] != '.' {
		if err := raise(to, top); err != nil {
			return err
		}
	}
	return syncDirs(to)
}

// unpack returns the name of the folder that everything is in, if there is one.
func unpack(f *os.File, size int64, to string, l Limits) (top string, err error) {
	t, err := newTarget(to, l)
	if err != nil {
		return "", err
	}
	defer t.root.Close()
	u := &unpacking{target: t, names: map[string]string{}}
	if err := u.archive(f, size); err != nil {
		return "", err
	}
	if u.files == 0 {
		return "", errors.New("it has no files")
	}
	return u.top(), nil
}

// raise replaces a folder by the only folder in it.
func raise(dir, name string) error {
	temp := dir + ".top"
	if err := os.Rename(filepath.Join(dir, name), temp); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

// unpacking is the state of Extract.
type unpacking struct {
	*target
	files, folders int
	names          map[string]string // by name in lower case; folders end in a slash
}

// top returns the name of the folder that everything is in, if there is one.
func (u *unpacking) top() string {
	top := ""
	for _, name := range u.names {
		first, _, inFolder := strings.Cut(name, "/")
		if !inFolder || top != "" && first != top {
			return ""
		}
		top = first
	}
	return top
}

func (u *unpacking) archive(f *os.File, size int64) error {
	head := make([]byte, 4)
	n, err := f.ReadAt(head, 0)
	if head = head[:n]; err != nil && err != io.EOF {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return u.zip(f, size)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		in, err := gzip.NewReader(bufio.NewReader(f))
		if err != nil {
			return err
		}
		return u.tar(in)
	}
	return u.tar(f)
}

// tar unpacks a tar.
func (u *unpacking) tar(in io.Reader) error {
	stream := &io.LimitedReader{R: in, N: u.limits.Bytes + overhead*int64(2*u.limits.Files+16)}
	r := tar.NewReader(stream)
	for {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			if _, err := io.Copy(io.Discard, stream); err != nil { // a wrong checksum is at the end
				return err
			}
			if stream.N <= 0 {
				return u.limits.exceeded()
			}
			return nil
		case err != nil && stream.N <= 0:
			return u.limits.exceeded()
		case errors.Is(err, tar.ErrHeader) && u.files+u.folders == 0:
			return errors.New("it is not an archive: want .tar, .tar.gz or .zip")
		case err != nil:
			return err
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // a comment
		case tar.TypeDir:
			err = u.folder(h.Name)
		case tar.TypeReg:
			err = u.add(h.Name, r, fs.FileMode(h.Mode&0o777))
		default:
			err = fmt.Errorf("%q is neither a regular file nor a folder", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// zip unpacks a zip.
func (u *unpacking) zip(f *os.File, size int64) error {
	list := overhead*int64(2*u.limits.Files) + 1<<20
	in := &limitedReaderAt{r: f, left: list}
	r, err := zip.NewReader(in, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		if in.left <= 0 {
			return u.limits.exceeded()
		}
		return err
	}
	in.left = size + list // entries that overlap are read more than once
	for _, e := range r.File {
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = u.folder(e.Name)
		case mode.IsRegular():
			err = u.entry(e)
		default:
			err = fmt.Errorf("%q is neither a regular file nor a folder", e.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) entry(e *zip.File) error {
	in, err := e.Open()
	if err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	defer in.Close()
	return u.add(e.Name, in, e.Mode())
}

// limitedReaderAt is a reader that fails after a number of bytes.
type limitedReaderAt struct {
	r    io.ReaderAt
	left int64
}

// ReadAt implements io.ReaderAt.
func (m *limitedReaderAt) ReadAt(b []byte, at int64) (int, error) {
	if m.left -= int64(len(b)); m.left <= 0 {
		return 0, errors.New("it is larger than it seems")
	}
	return m.r.ReadAt(b, at)
}

// folder makes a folder and those that it is in.
func (u *unpacking) folder(name string) error {
	elements, err := split(name)
	if err != nil || len(elements) == 0 {
		return err
	}
	return u.folderOf(append(elements, ""))
}

// folderOf makes the folder of a file.
func (u *unpacking) folderOf(elements []string) error {
	for i := 1; i < len(elements); i++ {
		dir := strings.Join(elements[:i], "/")
		known, err := u.claim(dir + "/")
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if u.folders++; u.folders > u.limits.Files {
			return u.limits.exceeded()
		}
		if err := u.root.Mkdir(filepath.FromSlash(dir), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// add writes a file.
func (u *unpacking) add(name string, content io.Reader, mode fs.FileMode) error {
	elements, err := split(name)
	if err != nil {
		return err
	}
	if len(elements) == 0 {
		return fmt.Errorf("%q is not the name of a file", name)
	}
	if u.files++; u.files > u.limits.Files {
		return u.limits.exceeded()
	}
	if err := u.folderOf(elements); err != nil {
		return err
	}
	path := strings.Join(elements, "/")
	known, err := u.claim(path)
	if err == nil && known {
		err = fmt.Errorf("it has two files %q", path)
	}
	if err != nil {
		return err
	}
	return u.file(path, content, mode)
}

// claim reports whether there is a file or folder with this name already. One with
// another spelling is an error.
func (u *unpacking) claim(name string) (known bool, err error) {
	key := strings.ToLower(strings.ToUpper(strings.TrimSuffix(name, "/")))
	other, known := u.names[key]
	if known && other != name {
		return true, fmt.Errorf("it has both %q and %q", other, name)
	}
	u.names[key] = name
	return known, nil
}

// split returns the elements of a name in an archive.
func split(name string) ([]string, error) {
	if strings.HasPrefix(name, "/") {
		return nil, fmt.Errorf("the name %q is an absolute path", name)
	}
	if len(name) > maxPath || !utf8.ValidString(name) {
		return nil, fmt.Errorf("the name %.100q is too long or not UTF-8", name)
	}
	var out []string
	for e := range strings.SplitSeq(name, "/") {
		if e == "" || e == "." {
			continue
		}
		if !ValidName(e) {
			return nil, fmt.Errorf("the name %q is invalid or not allowed on some systems", name)
		}
		out = append(out, e)
	}
	return out, nil
}

// ValidName reports whether a file or folder can have a name on all systems.
func ValidName(name string) bool {
	if name == "" || len(name) > maxElement || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`<>:"|?*\`, r) }) {
		return false // the first includes ".."
	}
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem = strings.TrimRight(stem, " ")
	if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}, stem) {
		return false
	}
	if rest, ok := strings.CutPrefix(stem, "COM"); ok && port(rest) {
		return false
	}
	rest, ok := strings.CutPrefix(stem, "LPT")
	return !ok || !port(rest)
}

// port reports whether the rest of a name is the number of a port of DOS.
func port(s string) bool {
	return len([]rune(s)) == 1 && strings.Contains("0123456789¹²³", s)
}
