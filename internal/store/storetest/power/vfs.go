package power

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// vfs is the system's VFS of SQLite with some of its functions replaced by
// those of a disk. The structs are copies in memory of C; the functions in
// them are closures, which keep holds on to.
type vfs struct {
	d    *Disk
	name string
	p    uintptr // *lib.Tsqlite3_vfs
	keep []any

	mu      sync.Mutex
	methods map[uintptr]uintptr // ours, by the system's: there are several kinds
	files   map[uintptr]open    // open files by their address
}

// open is an open file.
type open struct {
	name   string
	system lib.Tsqlite3_io_methods
}

type (
	openFunc     = func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32
	deleteFunc   = func(*libc.TLS, uintptr, uintptr, int32) int32
	closeFunc    = func(*libc.TLS, uintptr) int32
	writeFunc    = func(*libc.TLS, uintptr, uintptr, int32, int64) int32
	truncateFunc = func(*libc.TLS, uintptr, int64) int32
	syncFunc     = func(*libc.TLS, uintptr, int32) int32
)

// function returns the function behind a pointer of C.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// pointer returns a function as a pointer of C.
func pointer[F any](v *vfs, f F) uintptr {
	s := &struct{ f F }{f}
	v.keep = append(v.keep, s)
	return *(*uintptr)(unsafe.Pointer(s))
}

// at returns what lies at an address in memory of C.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func register(d *Disk) *vfs {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := lib.Xsqlite3_initialize(tls); rc != lib.SQLITE_OK {
		d.t.Fatalf("sqlite: code %d", rc)
	}
	v := &vfs{d: d, name: fmt.Sprintf("power-%p", d), methods: make(map[uintptr]uintptr), files: make(map[uintptr]open)}
	system := at[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	name, err := libc.CString(v.name)
	if err != nil {
		d.t.Fatal(err)
	}
	v.p = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*system)))
	own := at[lib.Tsqlite3_vfs](v.p)
	*own = *system
	own.FpNext, own.FzName = 0, name
	own.FxOpen = pointer(v, v.opener(function[openFunc](system.FxOpen)))
	own.FxDelete = pointer(v, v.deleter(function[deleteFunc](system.FxDelete)))
	if rc := lib.Xsqlite3_vfs_register(tls, v.p, 0); rc != lib.SQLITE_OK {
		d.t.Fatalf("sqlite: register the disk: code %d", rc)
	}
	return v
}

// unregister leaves the structs where they are: a file may still be open.
func (v *vfs) unregister() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_vfs_unregister(tls, v.p)
}

func (v *vfs) opener(system openFunc) openFunc {
	return func(tls *libc.TLS, vfs, path, f uintptr, flags int32, out uintptr) int32 {
		rc := system(tls, vfs, path, f, flags, out)
		file := at[lib.Tsqlite3_file](f)
		if rc != lib.SQLITE_OK || path == 0 || file.FpMethods == 0 {
			return rc
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.files[f] = open{filepath.Base(libc.GoString(path)), *at[lib.Tsqlite3_io_methods](file.FpMethods)}
		file.FpMethods = v.replaceLocked(tls, file.FpMethods)
		return rc
	}
}

// replaceLocked returns our methods for files with those of the system.
func (v *vfs) replaceLocked(tls *libc.TLS, system uintptr) uintptr {
	if have := v.methods[system]; have != 0 {
		return have
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	own := at[lib.Tsqlite3_io_methods](p)
	*own = *at[lib.Tsqlite3_io_methods](system)
	own.FxClose = pointer[closeFunc](v, v.close)
	own.FxWrite = pointer[writeFunc](v, v.write)
	own.FxTruncate = pointer[truncateFunc](v, v.truncate)
	own.FxSync = pointer[syncFunc](v, v.sync)
	v.methods[system] = p
	return p
}

func (v *vfs) file(f uintptr) open {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.files[f]
}

func (v *vfs) close(tls *libc.TLS, f uintptr) int32 {
	file := v.file(f)
	v.mu.Lock()
	delete(v.files, f)
	v.mu.Unlock()
	return function[closeFunc](file.system.FxClose)(tls, f)
}

// piece is how much a write does at once: a longer one can be cut, by the power,
// by a kill, and by a disk that is full, after each piece.
const piece = 4096

func (v *vfs) write(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	file := v.file(f)
	for n > 0 {
		some := min(n, piece)
		if rc := v.d.wrote(file.name, write{off, bytes.Clone(libc.GoBytes(p, int(some)))}); rc != None {
			return code(rc, lib.SQLITE_IOERR_WRITE)
		}
		if rc := function[writeFunc](file.system.FxWrite)(tls, f, p, some, off); rc != lib.SQLITE_OK {
			return rc
		}
		p, n, off = p+uintptr(some), n-some, off+int64(some)
	}
	return lib.SQLITE_OK
}

func (v *vfs) truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	file := v.file(f)
	if rc := v.d.wrote(file.name, write{size, nil}); rc != None {
		return code(rc, lib.SQLITE_IOERR_TRUNCATE)
	}
	return function[truncateFunc](file.system.FxTruncate)(tls, f, size)
}

// sync is one of the model only: the disk below is not waited for.
func (v *vfs) sync(_ *libc.TLS, f uintptr, _ int32) int32 {
	return code(v.d.synced(v.file(f).name), lib.SQLITE_IOERR_FSYNC)
}

func (v *vfs) deleter(system deleteFunc) deleteFunc {
	return func(tls *libc.TLS, vfs, path uintptr, sync int32) int32 {
		if rc := v.d.deleted(filepath.Base(libc.GoString(path))); rc != None {
			return code(rc, lib.SQLITE_IOERR_DELETE)
		}
		return system(tls, vfs, path, 0)
	}
}

// code returns a fault as SQLite's code: a broken operation's is its own.
func code(f Fault, broken int32) int32 {
	if f == Broken {
		return broken
	}
	return int32(f)
}
