package power

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// Op is an operation that can fail.
type Op string

// The operations that can fail.
const (
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Delete   Op = "delete"
)

// Fault is a way in which an operation fails.
type Fault int32

// The faults.
const (
	None   Fault = lib.SQLITE_OK
	NoRoom Fault = lib.SQLITE_FULL  // a write finds no free space
	Broken Fault = lib.SQLITE_IOERR // any operation fails; a failed sync loses the unsynced writes
)

// file is the content of a file on the simulated disk.
type file struct {
	exists  bool    // the file is on the disk
	disk    []byte  // the synced content
	pending []write // the unsynced writes
}

// write is a change of a file: data written at off, or a truncation to size off if
// data is nil.
type write struct {
	off  int64
	data []byte
}

// Disk is a directory of files with its own VFS.
type Disk struct {
	t   testing.TB
	dir string
	vfs *layer

	faultMu sync.Mutex // held while fault is called

	mu    sync.Mutex
	files map[string]*file // by name in dir
	ops   int
	fault func(n int, op Op, name string) Fault
}

// New returns an empty disk, which is removed when the test ends.
func New(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{t: t, dir: tempDir(t), files: make(map[string]*file)}
	d.vfs = register(d)
	t.Cleanup(d.vfs.unregister)
	return d
}

// tempDir is t.TempDir on a RAM disk if the system has one: sweeps create and
// remove many files.
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

// Options returns the options to open the database on the disk.
func (d *Disk) Options() sqlite.Options { return sqlite.Options{Path: d.Path(), VFS: d.vfs.name} }

// Fail calls f before each following operation, numbered from 0, to decide whether
// it fails. If f is nil, none fails. f may inspect the disk; calls of f do not
// overlap.
func (d *Disk) Fail(f func(n int, op Op, name string) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops, d.fault = 0, f
}

// Image is the content of a disk.
type Image map[string][]byte

// Cut returns the content after a power cut now: only synced writes.
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

// AfterKill returns the content after a kill of the process now: all writes.
func (d *Disk) AfterKill() Image {
	image := make(Image)
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.files {
		b, err := os.ReadFile(filepath.Join(d.dir, name))
		if err != nil {
			continue // deleted, or not yet written
		}
		image[name] = b
	}
	return image
}

// Torn returns a possible content after a power cut: the synced writes, and a part
// of the unsynced ones chosen by seed. Sectors of 512 bytes are written or not, in
// any order.
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

// Disk returns a disk with this content, all of it synced.
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

// Rewrite writes the content of a file again and syncs it, as the store does after
// a fault without using SQLite.
func (d *Disk) Rewrite(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // there is no such file
	}
	name := filepath.Base(path)
	if rc := d.recordWrite(name, write{0, b}); rc != None {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrInvalid}
	}
	if rc := d.recordSync(name); rc != None {
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

// nextFault returns the fault of an operation.
func (d *Disk) nextFault(op Op, name string) Fault {
	d.faultMu.Lock()
	defer d.faultMu.Unlock()
	d.mu.Lock()
	n, fault := d.ops, d.fault
	d.ops++
	d.mu.Unlock()
	if fault == nil {
		return None
	}
	return fault(n, op, name)
}

// recordWrite records a change unless the write is made to fail.
func (d *Disk) recordWrite(name string, w write) Fault {
	op := Write
	if w.data == nil {
		op = Truncate
	}
	if rc := d.nextFault(op, name); rc != None {
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fileLocked(name)
	f.pending = append(f.pending, w)
	return None
}

// recordSync makes the changes of a file durable. If the sync is made to fail, the
// changes are lost on the disk although the system still returns them.
func (d *Disk) recordSync(name string) Fault {
	rc := d.nextFault(Sync, name)
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

func (d *Disk) recordDelete(name string) Fault {
	if rc := d.nextFault(Delete, name); rc != None {
		return rc
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
	return None
}
