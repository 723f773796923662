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
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/atomicfile"
)

// Dir is the name of the directory in the state directory.
const Dir = "media"

// Grace is how long a file stays that no row refers to: what was put is in a
// row long before that.
const Grace = time.Hour

// maxFile bounds a file that is read.
const maxFile = 64 << 20

// Files is a directory of files that are named by what is in them. It is safe
// for concurrent use.
type Files struct {
	root *os.Root
	side int
	// mu keeps Sweep from removing a file that Put has just found to be there.
	mu  sync.RWMutex
	fit sync.Mutex
}

// MaxSide is how many pixels the longer side of a picture has at most where it is
// sent to a model or shown, unless something else is configured.
const MaxSide = 1200

// Open returns the files in a directory, which is made when there is none. side
// is what stands in the place of [MaxSide]; 0: that.
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

// Close ends the use of the directory.
func (f *Files) Close() error { return f.root.Close() }

// Put keeps data and returns its reference when it is on disk.
func (f *Files) Put(data []byte) (ref string, err error) {
	ref = sum(data)
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.has(ref, data) {
		return ref, nil
	}
	if err := atomicfile.WriteIn(f.root, ref, data, 0o600); err != nil {
		return "", fmt.Errorf("media: %w", err)
	}
	return ref, nil
}

// has reports whether the file is there, whole, and keeps Sweep from it for a
// while. One that is damaged is not: it is written anew.
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

// sum names content: half of its SHA-256 is enough, and short enough for a
// model to write.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:refBytes])
}

// Read returns the content that ref refers to; fs.ErrNotExist is in the chain of
// the error when it is gone.
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

// Open returns the content that ref refers to, to be read and closed.
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

// Fitted returns the picture that ref refers to as models are sent it: not
// larger than need be, with its type. What was made smaller is kept beside it,
// to be made once.
func (f *Files) Fitted(ref string) (data []byte, kind string, err error) {
	name := fmt.Sprintf("%s-%d", ref, f.side)
	if !isRef(ref) {
		return nil, "", fmt.Errorf("media %q: %w", ref, fs.ErrNotExist)
	}
	if data, err := f.root.ReadFile(name); err == nil {
		if i, err := Probe(data); err == nil {
			return data, i.Type, nil
		}
	}
	whole, err := f.Read(ref)
	if err != nil {
		return nil, "", err
	}
	f.fit.Lock() // a picture in memory is large
	data, kind, err = Fit(whole, f.side)
	f.fit.Unlock()
	if err != nil {
		return nil, "", err
	}
	if len(data) != len(whole) {
		_ = atomicfile.WriteIn(f.root, name, data, 0o600) // it is only saved work
	}
	return data, kind, nil
}

// Sweep removes files that no row refers to and that are older than [Grace],
// and returns how many. rows returns the references that rows hold.
func (f *Files) Sweep(ctx context.Context, rows func(context.Context) ([]string, error)) (n int, err error) {
	before := time.Now().Add(-Grace)
	refs, err := rows(ctx)
	if err != nil {
		return 0, fmt.Errorf("media: %w", err)
	}
	live := make(map[string]bool, len(refs))
	for _, ref := range refs {
		live[ref] = true
	}
	names, err := f.names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		ref, _, _ := strings.Cut(name, "-") // of what was made smaller too
		if live[ref] || !isRef(ref) && !strings.HasPrefix(name, ".tmp-") {
			continue
		}
		gone, err := f.remove(name, before)
		if err != nil {
			return n, err
		}
		if gone {
			n++
		}
	}
	return n, nil
}

// remove removes a file that was last put before a time.
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

// Copy gives the files of one directory another place too, and returns how many
// there are. Files that are there stay. Where the file system can do it nothing
// is written: both places name the same file, which is never changed.
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

func copyFile(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // not there: it was swept just now
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, data, 0o600)
}
