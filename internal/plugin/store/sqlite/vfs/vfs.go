// Package vfs copies a VFS of SQLite (https://www.sqlite.org/vfs.html) and replaces
// some of its functions by functions in Go. The structs are in C memory and contain
// pointers to functions.
package vfs

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// The functions that can be replaced.
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

// Layer is a VFS that wraps another. It is safe for concurrent use.
type Layer struct {
	name string
	own  uintptr // *lib.Tsqlite3_vfs

	mu      sync.Mutex
	methods map[uintptr]uintptr // our methods by those of the wrapped VFS, which may have several sets
	refs    []any               // Go values that C memory refers to
}

var errMemory = errors.New("sqlite: out of memory")

// New registers a layer over the VFS named below; "" is the default. replace
// receives the copy and sets functions in it with [Pointer]. The name of the layer
// begins with kind.
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

// clone copies the VFS of that name. SQLite's lock is held because registering a
// VFS changes the list.
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

// Name returns the name of the VFS for opening connections.
func (l *Layer) Name() string { return l.name }

// Close unregisters the layer. Its structs stay allocated: a file may still be
// open.
func (l *Layer) Close() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_vfs_unregister(tls, l.own)
}

// Methods returns a copy of the methods of files. Each set of methods is copied
// once; replace modifies the copy. It returns 0 if no memory is available.
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

// Function converts a C function pointer to a function.
func Function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// Pointer converts a function to a C function pointer. Only functions passed to New
// and Methods may call it.
func Pointer[F any](l *Layer, f F) uintptr {
	s := &struct{ f F }{f}
	l.refs = append(l.refs, s)
	return *(*uintptr)(unsafe.Pointer(s))
}

// At converts an address of C memory to a pointer.
func At[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }
