package power

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/store/sqlite"
)

// Op is an operation that can fail.
type Op string

// The operations.
const (
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Delete   Op = "delete"
)

// Fault is how an operation fails.
type Fault int32

// The faults.
const (
	None   Fault = lib.SQLITE_OK
	NoRoom Fault = lib.SQLITE_FULL  // of a write
	Broken Fault = lib.SQLITE_IOERR // of any; a sync loses what it should have written
)

// file is what is known of a file's content on the disk.
type file struct {
	exists  bool    // on the disk
	disk    []byte  // certainly
	pending []write // since the last sync
}

// write is a change of a file: data at off, or the cut to size off when data
// is nil.
type write struct {
	off  int64
	data []byte
}

// Disk is a directory of files under a VFS of its own.
type Disk struct {
	t   testing.TB
	dir string
	vfs *layer

	asking sync.Mutex // held while fault is asked

	mu    sync.Mutex
	files map[string]*file // by name in dir
	ops   int
	fault func(n int, op Op, name string) Fault
}

// New returns an empty disk that goes with the test.
func New(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{t: t, dir: tempDir(t), files: make(map[string]*file)}
	d.vfs = register(d)
	t.Cleanup(d.vfs.Close)
	return d
}

// tempDir is t.TempDir in memory, where the system has such a place: sweeps
// make and remove many files.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "chela-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return dir
}

// Path returns the path of the database on the disk.
func (d *Disk) Path() string { return filepath.Join(d.dir, "chela.db") }

// Open opens the database on the disk and closes it with the test.
func (d *Disk) Open(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), d.Options())
	if err != nil {
		t.Fatalf("open after a cut: %v", err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// Options returns how the database on the disk is opened.
func (d *Disk) Options() sqlite.Options { return sqlite.Options{Path: d.Path(), VFS: d.vfs.Name()} }

// Fail asks f before each following operation, numbered from 0, how it fails.
// f nil: none does. f may look at the disk; it is asked by one operation at a
// time.
func (d *Disk) Fail(f func(n int, op Op, name string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fault = 0, f
}

// Image is the content of a disk.
type Image map[string][]byte

// Cut returns what is certainly on the disk now: what a power cut leaves.
func (d *Disk) Cut() Image {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := make(Image)
	for name, f := range d.files {
		if f.exists {
			image[name] = append([]byte{}, f.disk...)
		}
	}
	return image
}

// Kept returns what the system holds now: what the end of the process leaves.
func (d *Disk) Kept() Image {
	image := make(Image)
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		b, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			continue // deleted, or not written yet
		}
		image[name] = b
	}
	return image
}

// Torn returns what a cut may leave: what is certainly there, and a part of
// the writes that were not synced, drawn by seed. Sectors of 512 bytes are
// written or not, in any order.
func (d *Disk) Torn(seed uint64) Image {
	const sector = 512
	r := rand.New(rand.NewPCG(seed, 0))
	d.mu.Lock()
	defer d.mu.Unlock()
	image := make(Image)
	for name, f := range d.files {
		if !f.exists && (len(f.pending) == 0 || r.IntN(2) == 0) {
			continue
		}
		now := append([]byte{}, f.disk...)
		for _, w := range f.pending {
			if w.data == nil {
				if r.IntN(2) == 0 {
					now = w.apply(now)
				}
				continue
			}
			for off := 0; off < len(w.data); off += sector {
				if r.IntN(2) == 0 {
					part := write{w.off + int64(off), w.data[off:min(off+sector, len(w.data))]}
					now = part.apply(now)
				}
			}
		}
		image[name] = now
	}
	return image
}

// Disk returns a disk with this content, on which all is synced.
func (m Image) Disk(t testing.TB) *Disk {
	t.Helper()
	d := New(t)
	for name, b := range m {
		if err := os.WriteFile(filepath.Join(d.dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		d.files[name] = &file{exists: true, disk: append([]byte{}, b...)}
	}
	return d
}

// Rewrite writes a file again with what it holds, and syncs it, as the store
// does beside SQLite after a fault.
func (d *Disk) Rewrite(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // there is none
	}
	name := filepath.Base(path)
	if rc := d.wrote(name, write{0, b}); rc != None {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrInvalid}
	}
	if rc := d.synced(name); rc != None {
		return &fs.PathError{Op: "sync", Path: path, Err: fs.ErrInvalid}
	}
	return nil
}

func (w write) apply(b []byte) []byte {
	end := w.off + int64(len(w.data))
	if w.data == nil {
		return b[:min(w.off, int64(len(b)))]
	}
	if end > int64(len(b)) {
		b = append(b, make([]byte, end-int64(len(b)))...)
	}
	copy(b[w.off:], w.data)
	return b
}

func (d *Disk) fileLocked(name string) *file {
	f := d.files[name]
	if f == nil {
		f = new(file)
		d.files[name] = f
	}
	return f
}

// ask returns how an operation is to fail.
func (d *Disk) ask(op Op, name string) Fault {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.mu.Lock()
	n, fault := d.ops, d.fault
	d.ops++
	d.mu.Unlock()
	if fault == nil {
		return None
	}
	return fault(n, op, name)
}

// wrote notes a change, unless it is to fail.
func (d *Disk) wrote(name string, w write) Fault {
	op := Write
	if w.data == nil {
		op = Truncate
	}
	if rc := d.ask(op, name); rc != None {
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fileLocked(name)
	f.pending = append(f.pending, w)
	return None
}

// synced makes the changes of a file certain, unless it is to fail: then they
// are lost to the disk, although the system still shows them.
func (d *Disk) synced(name string) Fault {
	rc := d.ask(Sync, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fileLocked(name)
	pending := f.pending
	f.pending = nil
	if rc != None {
		return rc
	}
	for _, w := range pending {
		f.disk = w.apply(f.disk)
	}
	f.exists = true
	return None
}

func (d *Disk) deleted(name string) Fault {
	if rc := d.ask(Delete, name); rc != None {
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
	return None
}
