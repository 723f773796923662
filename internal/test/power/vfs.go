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

// The functions of SQLite's VFS that are replaced. The structs are in C memory and
// contain pointers to functions (https://www.sqlite.org/vfs.html).
type (
	openFunc     = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, path uintptr, sync int32) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	writeFunc    = func(tls *libc.TLS, file, p uintptr, n int32, off int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// layer is SQLite's default VFS with some functions replaced by those of a disk.
type layer struct {
	d    *Disk
	name string
	own  uintptr // *lib.Tsqlite3_vfs

	mu      sync.Mutex
	files   map[uintptr]open    // open files by their address
	methods map[uintptr]uintptr // our methods by those of the default VFS, which has several sets
	refs    []any               // Go values that C memory refers to
}

// open is an open file.
type open struct {
	name   string
	system lib.Tsqlite3_io_methods
}

func register(d *Disk) *layer {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := lib.Xsqlite3_initialize(tls); rc != lib.SQLITE_OK {
		d.t.Fatalf("sqlite: code %d", rc)
	}
	v := &layer{d: d, files: make(map[uintptr]open), methods: make(map[uintptr]uintptr)}
	v.name = fmt.Sprintf("power-%p", v)
	name, err := libc.CString(v.name)
	if err != nil {
		d.t.Fatal(err)
	}
	v.own = calloc(tls, unsafe.Sizeof(lib.Tsqlite3_vfs{}))
	own := at[lib.Tsqlite3_vfs](v.own)
	system := lib.Xsqlite3_vfs_find(tls, 0)
	list := lib.Xsqlite3_mutex_alloc(tls, lib.SQLITE_MUTEX_STATIC_MAIN) // registering a VFS changes the list
	lib.Xsqlite3_mutex_enter(tls, list)
	*own = *at[lib.Tsqlite3_vfs](system)
	lib.Xsqlite3_mutex_leave(tls, list)
	own.FpNext, own.FzName = 0, name
	own.FxOpen = pointer(v, v.opener(function[openFunc](own.FxOpen)))
	own.FxDelete = pointer(v, v.deleter(function[deleteFunc](own.FxDelete)))
	if rc := lib.Xsqlite3_vfs_register(tls, v.own, 0); rc != lib.SQLITE_OK {
		d.t.Fatalf("sqlite: register %s: code %d", v.name, rc)
	}
	return v
}

// unregister unregisters the layer. Its structs stay allocated: a file may still be
// open.
func (v *layer) unregister() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_vfs_unregister(tls, v.own)
}

// methodsLocked returns a copy of the methods of files with ours in it. Each set of
// methods is copied once.
func (v *layer) methodsLocked(tls *libc.TLS, system uintptr) uintptr {
	if have := v.methods[system]; have != 0 {
		return have
	}
	p := calloc(tls, unsafe.Sizeof(lib.Tsqlite3_io_methods{}))
	own := at[lib.Tsqlite3_io_methods](p)
	*own = *at[lib.Tsqlite3_io_methods](system)
	own.FxClose = pointer[closeFunc](v, v.close)
	own.FxWrite = pointer[writeFunc](v, v.write)
	own.FxTruncate = pointer[truncateFunc](v, v.truncate)
	own.FxSync = pointer[syncFunc](v, v.sync)
	v.methods[system] = p
	return p
}

// function converts a C function pointer to a function.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// pointer converts a function to a C function pointer.
func pointer[F any](v *layer, f F) uintptr {
	s := &struct{ f F }{f}
	v.refs = append(v.refs, s)
	return *(*uintptr)(unsafe.Pointer(s))
}

// at converts an address of C memory to a pointer.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// calloc allocates C memory of zeros.
func calloc(tls *libc.TLS, size uintptr) uintptr {
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(size))
	if p == 0 {
		panic("power: out of memory")
	}
	return p
}

func (v *layer) opener(system openFunc) openFunc {
	return func(tls *libc.TLS, fs, path, f uintptr, flags int32, out uintptr) int32 {
		rc := system(tls, fs, path, f, flags, out)
		file := at[lib.Tsqlite3_file](f)
		if rc != lib.SQLITE_OK || path == 0 || file.FpMethods == 0 {
			return rc
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.files[f] = open{filepath.Base(libc.GoString(path)), *at[lib.Tsqlite3_io_methods](file.FpMethods)}
		file.FpMethods = v.methodsLocked(tls, file.FpMethods)
		return rc
	}
}

func (v *layer) file(f uintptr) open {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.files[f]
}

func (v *layer) close(tls *libc.TLS, f uintptr) int32 {
	file := v.file(f)
	v.mu.Lock()
	delete(v.files, f)
	v.mu.Unlock()
	return function[closeFunc](file.system.FxClose)(tls, f)
}

func (v *layer) write(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	file := v.file(f)
	if rc := v.d.recordWrite(file.name, write{off, bytes.Clone(libc.GoBytes(p, int(n)))}); rc != None {
		return code(rc, lib.SQLITE_IOERR_WRITE)
	}
	return function[writeFunc](file.system.FxWrite)(tls, f, p, n, off)
}

func (v *layer) truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	file := v.file(f)
	if rc := v.d.recordWrite(file.name, write{size, nil}); rc != None {
		return code(rc, lib.SQLITE_IOERR_TRUNCATE)
	}
	return function[truncateFunc](file.system.FxTruncate)(tls, f, size)
}

// sync only updates the model. It does not wait for the disk below.
func (v *layer) sync(_ *libc.TLS, f uintptr, _ int32) int32 {
	return code(v.d.recordSync(v.file(f).name), lib.SQLITE_IOERR_FSYNC)
}

func (v *layer) deleter(system deleteFunc) deleteFunc {
	return func(tls *libc.TLS, fs, path uintptr, sync int32) int32 {
		if rc := v.d.recordDelete(filepath.Base(libc.GoString(path))); rc != None {
			return code(rc, lib.SQLITE_IOERR_DELETE)
		}
		return system(tls, fs, path, 0)
	}
}

// code returns SQLite's code of a fault. broken is the code of a broken operation.
func code(f Fault, broken int32) int32 {
	if f == Broken {
		return broken
	}
	return int32(f)
}
