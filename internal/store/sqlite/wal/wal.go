// Package wal stands between SQLite and the file system for the sake of the
// write-ahead log. It changes two things and nothing else:
//
// SQLite writes each page of a commit by itself, and before it the header of
// its frame: a turn's three commits are fifty small writes. Here writes that
// follow one another are gathered, and go to the file as one, at the latest
// when the commit is synced. That is before SQLite makes the commit known to
// other connections (sqlite3WalFrames: frames, sync, index), so that no reader
// ever looks for what is not in the file, and a write that fails, fails in the
// commit.
//
// Whether a commit waits for the disk is said with [Layer.Relax]: the log is
// synced or only written. SQLite has a pragma for that, but it has to be
// parsed whenever the answer changes, which is twice in a turn. All other
// syncs are carried out: of the log's header when the log begins anew, and of
// the log before it is copied into the database.
//
// The layer is for one connection, the one that writes. It is registered as a
// VFS of SQLite (https://www.sqlite.org/vfs.html) above another.
package wal

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// room is how much is gathered before it is written: the frames of a commit of
// a turn and more.
const room = 64 << 10

// Layer is a VFS above another. It is safe for concurrent use.
type Layer struct {
	name    string
	vfs     uintptr // *lib.Tsqlite3_vfs
	keep    []any   // what memory of C refers to
	relaxed atomic.Bool

	mu      sync.Mutex
	methods map[uintptr]uintptr // ours, by those below: there may be several kinds
	logs    map[uintptr]*log    // open logs by their address
}

// log is an open log, and what is to be written to it.
type log struct {
	below lib.Tsqlite3_io_methods
	buf   uintptr // memory of C, room bytes
	n     int     // bytes in buf
	off   int64   // where in the file they belong
}

// The functions that are replaced. The structs of SQLite are in memory of C and
// hold pointers to functions.
type (
	openFunc  = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	closeFunc = func(tls *libc.TLS, file uintptr) int32
	readFunc  = func(tls *libc.TLS, file, p uintptr, n int32, off int64) int32
	writeFunc = func(tls *libc.TLS, file, p uintptr, n int32, off int64) int32
	truncFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc  = func(tls *libc.TLS, file, size uintptr) int32
)

// function returns the function behind a pointer of C.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&struct{ uintptr }{p})) }

// pointer returns a function as a pointer of C.
func pointer[F any](l *Layer, f F) uintptr {
	s := &struct{ f F }{f}
	l.keep = append(l.keep, s)
	return *(*uintptr)(unsafe.Pointer(s))
}

// at returns what lies at an address in memory of C.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// New registers a layer above the VFS of that name; "" is the system's.
func New(below string) (*Layer, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	if rc := lib.Xsqlite3_initialize(tls); rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("sqlite: code %d", rc)
	}
	found, err := find(tls, below)
	if err != nil {
		return nil, err
	}
	l := &Layer{methods: make(map[uintptr]uintptr), logs: make(map[uintptr]*log)}
	l.name = fmt.Sprintf("wal-%p", l)
	name, err := libc.CString(l.name)
	if err != nil {
		return nil, err
	}
	if l.vfs = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{}))); l.vfs == 0 {
		return nil, errMemory
	}
	own := at[lib.Tsqlite3_vfs](l.vfs)
	*own = *at[lib.Tsqlite3_vfs](found)
	own.FxOpen = pointer(l, l.opener(function[openFunc](own.FxOpen)))
	own.FpNext, own.FzName = 0, name
	if rc := lib.Xsqlite3_vfs_register(tls, l.vfs, 0); rc != lib.SQLITE_OK {
		return nil, fmt.Errorf("sqlite: register %s: code %d", l.name, rc)
	}
	return l, nil
}

var errMemory = errors.New("sqlite: out of memory")

// find returns the VFS of that name.
func find(tls *libc.TLS, name string) (uintptr, error) {
	var c uintptr
	if name != "" {
		var err error
		if c, err = libc.CString(name); err != nil {
			return 0, err
		}
		defer libc.Xfree(tls, c)
	}
	if p := lib.Xsqlite3_vfs_find(tls, c); p != 0 {
		return p, nil
	}
	return 0, fmt.Errorf("sqlite: no VFS is named %q", name)
}

// Name is what the connection is to be opened with.
func (l *Layer) Name() string { return l.name }

// Relax says whether commits from now on only reach the file: the next that
// does not is synced, and they with it.
func (l *Layer) Relax(on bool) { l.relaxed.Store(on) }

// Close takes the layer away. Its structs stay: a connection that could not be
// closed may still be using them.
func (l *Layer) Close() {
	tls := libc.NewTLS()
	defer tls.Close()
	lib.Xsqlite3_vfs_unregister(tls, l.vfs)
}

func (l *Layer) opener(below openFunc) openFunc {
	return func(tls *libc.TLS, vfs, path, f uintptr, flags int32, out uintptr) int32 {
		rc := below(tls, vfs, path, f, flags, out)
		file := at[lib.Tsqlite3_file](f)
		if rc != lib.SQLITE_OK || flags&lib.SQLITE_OPEN_WAL == 0 {
			return rc
		}
		g := &log{below: *at[lib.Tsqlite3_io_methods](file.FpMethods), buf: libc.Xmalloc(tls, room)}
		methods := l.replaced(tls, file.FpMethods)
		if g.buf == 0 || methods == 0 {
			function[closeFunc](g.below.FxClose)(tls, f)
			file.FpMethods = 0
			return lib.SQLITE_NOMEM
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.logs[f] = g
		file.FpMethods = methods
		return rc
	}
}

// replaced returns our methods for logs whose methods are those below; 0: there
// is no memory.
func (l *Layer) replaced(tls *libc.TLS, below uintptr) uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have := l.methods[below]; have != 0 {
		return have
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	if p == 0 {
		return 0
	}
	own := at[lib.Tsqlite3_io_methods](p)
	*own = *at[lib.Tsqlite3_io_methods](below)
	own.FxClose = pointer[closeFunc](l, l.close)
	own.FxRead = pointer[readFunc](l, l.read)
	own.FxWrite = pointer[writeFunc](l, l.write)
	own.FxTruncate = pointer[truncFunc](l, l.truncate)
	own.FxSync = pointer[syncFunc](l, l.sync)
	own.FxFileSize = pointer[sizeFunc](l, l.size)
	l.methods[below] = p
	return p
}

func (l *Layer) log(f uintptr) *log {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.logs[f]
}

// flush writes what was gathered. What could not be written is forgotten, as
// SQLite forgets a commit that failed.
func (g *log) flush(tls *libc.TLS, f uintptr) int32 {
	n := g.n
	if n == 0 {
		return lib.SQLITE_OK
	}
	g.n = 0
	return function[writeFunc](g.below.FxWrite)(tls, f, g.buf, int32(n), g.off)
}

func (l *Layer) write(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	g := l.log(f)
	if g.n > 0 && (off != g.off+int64(g.n) || g.n+int(n) > room) {
		if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if int(n) > room {
		return function[writeFunc](g.below.FxWrite)(tls, f, p, n, off)
	}
	if g.n == 0 {
		g.off = off
	}
	copy(unsafe.Slice(at[byte](g.buf+uintptr(g.n)), n), unsafe.Slice(at[byte](p), n))
	g.n += int(n)
	return lib.SQLITE_OK
}

// sync is the end of a commit when frames were gathered for it, and only that
// may be relaxed.
func (l *Layer) sync(tls *libc.TLS, f uintptr, flags int32) int32 {
	g := l.log(f)
	commit := g.n > 0 && g.off > 0 // at 0 is the header of a log that begins anew
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	if commit && l.relaxed.Load() {
		return lib.SQLITE_OK
	}
	return function[syncFunc](g.below.FxSync)(tls, f, flags)
}

func (l *Layer) read(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return function[readFunc](g.below.FxRead)(tls, f, p, n, off)
}

func (l *Layer) truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return function[truncFunc](g.below.FxTruncate)(tls, f, size)
}

func (l *Layer) size(tls *libc.TLS, f, size uintptr) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](g.below.FxFileSize)(tls, f, size)
}

func (l *Layer) close(tls *libc.TLS, f uintptr) int32 {
	l.mu.Lock()
	g := l.logs[f]
	delete(l.logs, f)
	l.mu.Unlock()
	failed := g.flush(tls, f)
	libc.Xfree(tls, g.buf)
	if rc := function[closeFunc](g.below.FxClose)(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return failed
}
