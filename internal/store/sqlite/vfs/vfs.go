// Package vfs is what it takes to stand between SQLite and the file system: a
// copy of a VFS (https://www.sqlite.org/vfs.html) of which some functions are
// Go's. The structs are in memory of C and hold pointers to functions.
package vfs

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// The functions that may be replaced.
type (
	Open     = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	Delete   = func(tls *libc.TLS, vfs, path uintptr, sync int32) int32
	Close    = func(tls *libc.TLS, file uintptr) int32
	Read     = func(tls *libc.TLS, file, p uintptr, n int32, off int64) int32
	Write    = func(tls *libc.TLS, file, p uintptr, n int32, off int64) int32
	Truncate = func(tls *libc.TLS, file uintptr, size int64) int32
	Sync     = func(tls *libc.TLS, file uintptr, flags int32) int32
	FileSize = func(tls *libc.TLS, file, size uintptr) int32
)

// Layer is a VFS above another. It is safe for concurrent use.
type Layer struct {
	name string
	own  uintptr // *lib.Tsqlite3_vfs

	mu      sync.Mutex
	methods map[uintptr]uintptr // ours, by those below: there may be several kinds
	keep    []any               // what memory of C refers to
}

var errMemory = errors.New("sqlite: out of memory")

// New registers a layer above the VFS of that name; "" is the system's. replace
// is given the copy, to put functions into it with [Pointer]. Its name begins
// with kind.
func New(kind, below string, replace func(*Layer, *lib.Tsqlite3_vfs)) (*Layer, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := lib.Xsqlite3_initialize(tls); rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("sqlite: code %d", rc)
	}
	l := &Layer{methods: make(map[uintptr]uintptr)}
	l.name = fmt.Sprintf("%s-%p", kind, l)
	name, err := libc.CString(l.name)
	if err != nil {
		return nil, err
	}
	if l.own = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{}))); l.own == 0 {
		return nil, errMemory
	}
	own := At[lib.Tsqlite3_vfs](l.own)
	if err := clone(tls, below, own); err != nil {
		return nil, err
	}
	own.FpNext, own.FzName = 0, name
	replace(l, own)
	if rc := lib.Xsqlite3_vfs_register(tls, l.own, 0); rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("sqlite: register %s: code %d", l.name, rc)
	}
	return l, nil
}

// clone copies the VFS of that name. They are links of a list that SQLite
// changes when one is registered: its lock is held meanwhile.
func clone(tls *libc.TLS, name string, own *lib.Tsqlite3_vfs) error {
	var c uintptr
	if name != "" {
		var err error
		if c, err = libc.CString(name); err != nil {
			return err
		}
		defer libc.Xfree(tls, c)
	}
	p := lib.Xsqlite3_vfs_find(tls, c)
	if p == 0 {
		return fmt.Errorf("sqlite: no VFS is named %q", name)
	}
	list := lib.Xsqlite3_mutex_alloc(tls, lib.SQLITE_MUTEX_STATIC_MAIN)
	lib.Xsqlite3_mutex_enter(tls, list)
	*own = *At[lib.Tsqlite3_vfs](p)
	lib.Xsqlite3_mutex_leave(tls, list)
	return nil
}

// Name is what connections are to be opened with.
func (l *Layer) Name() string { return l.name }

// Close takes the layer away. Its structs stay: a file may still be open.
func (l *Layer) Close() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_vfs_unregister(tls, l.own)
}

// Methods returns a copy of the methods of files, made once of each; replace is
// given it. 0: there is no memory.
func (l *Layer) Methods(tls *libc.TLS, below uintptr, replace func(*lib.Tsqlite3_io_methods)) uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := l.methods[below]; have != 0 {
		return have
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	if p == 0 {
		return 0
	}
	own := At[lib.Tsqlite3_io_methods](p)
	*own = *At[lib.Tsqlite3_io_methods](below)
	replace(own)
	l.methods[below] = p
	return p
}

// Function returns the function behind a pointer of C.
func Function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// Pointer returns a function as a pointer of C. It is for the functions that New
// and Methods call.
func Pointer[F any](l *Layer, f F) uintptr {
	s := &struct{ f F }{f}
	l.keep = append(l.keep, s)
	return *(*uintptr)(unsafe.Pointer(s))
}

// At returns what lies at an address in memory of C.
func At[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }
