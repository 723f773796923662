package media

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Dir is the name of the media directory in the state directory.
const Dir = "media"

// Grace is the minimum age at which a file without references is removed. A row
// refers to a new file long before that.
const Grace = time.Hour

// maxFile is the maximum number of bytes that are read from a file.
const maxFile = 64 << 20

// Files is a directory of files named by the hash of their content. It is safe for
// concurrent use.
type Files struct {
	root *os.Root
	side int // maximum length of the longer side of scaled images, in pixels
	// mu prevents Sweep from removing a file that Put has just found.
	mu      sync.RWMutex
	scaling sync.Mutex // limits the memory for scaling to that of one image
}

// MaxSide is the default maximum length, in pixels, of the longer side of images that
// are sent to models or displayed.
const MaxSide = 1200

// Open opens the files in a directory and creates the directory if necessary. side
// is the maximum length of the longer side of scaled images; 0 means [MaxSide].
func Open(dir string, side int) (*Files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	return &Files{root: root, side: cmp.Or(side, MaxSide)}, nil
}

// Close closes the directory.
func (f *Files) Close() error { return f.root.Close() }

// Put stores data and returns its reference after the data is on disk.
func (f *Files) Put(data []byte) (ref string, err error) {
	return f.put(data, atomicfile.WriteIn)
}

// PutSoon is [Files.Put] for many files that can be missed: it does not wait until they are
// on disk. They survive the process, but a power failure may damage them.
func (f *Files) PutSoon(data []byte) (ref string, err error) {
	return f.put(data, atomicfile.WriteSoonIn)
}

func (f *Files) put(data []byte, write func(*os.Root, string, []byte, fs.FileMode) error) (ref string, err error) {
	ref = refOf(data)
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.has(ref, data) {
		return ref, nil
	}
	if err := write(f.root, ref, data, 0o600); err != nil {
		return "", fmt.Errorf("media: %w", err)
	}
	return ref, nil
}

// has reports whether the file exists with exactly this content. It updates the time
// of the file, so that Sweep does not remove it during the next [Grace].
func (f *Files) has(ref string, data []byte) bool {
	info, err := f.root.Lstat(ref)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false
	}
	old, err := f.root.ReadFile(ref)
	if err != nil || !bytes.Equal(old, data) {
		return false
	}
	now := time.Now()
	return f.root.Chtimes(ref, now, now) == nil
}

// refOf returns the reference of content: the first half of its SHA-256, which is
// short enough for a model to repeat.
func refOf(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:refBytes])
}

// Read returns the content that ref refers to. If the file does not exist, the error
// wraps fs.ErrNotExist.
func (f *Files) Read(ref string) ([]byte, error) {
	file, err := f.Open(ref)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("media %s: %w", ref, err)
	}
	return data, nil
}

// Open opens the file that ref refers to for reading.
func (f *Files) Open(ref string) (*os.File, error) {
	if !isRef(ref) {
		return nil, fmt.Errorf("media %q: %w", ref, fs.ErrNotExist)
	}
	file, err := f.root.Open(ref)
	if err != nil {
		return nil, fmt.Errorf("media %s: %w", ref, fs.ErrNotExist)
	}
	return file, nil
}

// Scaled returns the image that ref refers to, scaled down if necessary, and its
// type. The scaled image is cached in a file beside the original.
func (f *Files) Scaled(ref string) (data []byte, kind string, err error) {
	name := fmt.Sprintf("%s-%d", ref, f.side)
	if !isRef(ref) {
		return nil, "", fmt.Errorf("media %q: %w", ref, fs.ErrNotExist)
	}
	if data, err := f.root.ReadFile(name); err == nil {
		if i, err := Probe(data); err == nil {
			return data, i.Type, nil
		}
	}
	original, err := f.Read(ref)
	if err != nil {
		return nil, "", err
	}
	f.scaling.Lock()
	data, kind, err = Scale(original, f.side)
	f.scaling.Unlock()
	if err != nil {
		return nil, "", err
	}
	if len(data) != len(original) {
		_ = atomicfile.WriteIn(f.root, name, data, 0o600) // only a cache: an error is not fatal
	}
	return data, kind, nil
}

// Sweep removes files older than [Grace] that no row refers to, and returns their
// number. rows returns the references in the rows of the store.
func (f *Files) Sweep(ctx context.Context, rows func(context.Context) ([]string, error)) (n int, err error) {
	before := time.Now().Add(-Grace)
	refs, err := rows(ctx)
	if err != nil {
		return 0, fmt.Errorf("media: %w", err)
	}
	outputs := int64(0)
	live := make(map[string]bool, len(refs))
	for _, ref := range refs {
		live[ref] = true
	}
	names, err := f.names()
	if err != nil {
		return 0, err
	}
	names = f.newestFirst(names)
	for _, name := range names {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		ref, kind, _ := strings.Cut(name, "-") // scaled images belong to the original
		if kind == outputKind && live[ref] {
			if outputs += f.sizeOf(name); outputs > MaxOutputs {
				live[ref] = false
			}
		}
		if live[ref] || !isRef(ref) && !strings.HasPrefix(name, ".tmp-") {
			continue
		}
		removed, err := f.remove(name, before)
		if err != nil {
			return n, err
		}
		if removed {
			n++
		}
	}
	return n, nil
}

// remove removes a file that was last stored before the given time.
func (f *Files) remove(name string, before time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := f.root.Lstat(name)
	if err != nil || !info.ModTime().Before(before) {
		return false, nil
	}
	if err := f.root.Remove(name); err != nil {
		return false, fmt.Errorf("media: %w", err)
	}
	return true, nil
}

// Each calls visit with the name and the reference of every file until it returns an
// error. A complete output and a scaled image have names of their own, and the reference
// of their original.
func (f *Files) Each(ctx context.Context, visit func(name, ref string) error) error {
	names, err := f.names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		ref, _, _ := strings.Cut(name, "-")
		if !isRef(ref) {
			continue
		}
		if err := cmp.Or(ctx.Err(), visit(name, ref)); err != nil {
			return err
		}
	}
	return nil
}

// ReadName returns the content of a file that [Files.Each] has visited.
func (f *Files) ReadName(name string) ([]byte, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile))
}

// Delete removes a file and what was made of it. Rows may still refer to it. It reports
// whether there was one.
func (f *Files) Delete(ctx context.Context, ref string) (bool, error) {
	var names []string
	err := f.Each(ctx, func(name, of string) error {
		if of == ref {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("media: %w", err)
		}
	}
	return len(names) > 0, nil
}

func (f *Files) names() ([]string, error) {
	d, err := f.root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("media: %w", err)
	}
	return names, nil
}

// Copy copies the files of one directory to another and returns their number. It does
// not replace existing files. It makes hard links where the file system supports them,
// which is safe because files never change.
func Copy(from, to string) (n int, err error) {
	list, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("media: %w", err)
	}
	for _, e := range list {
		if !isRef(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return n, fmt.Errorf("media: %w", err)
		}
		if err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return n, fmt.Errorf("media: %w", err)
		}
		n++
	}
	return n, nil
}

// copyFile links or copies a file. It does nothing if the source was removed meanwhile
// or the target exists.
func copyFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, data, 0o600)
}
