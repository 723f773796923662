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
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/store/sqlite/vfs"
)

// room is how much is gathered before it is written: the frames of a commit of
// a turn and more.
const room = 64 << 10

// Layer is a VFS above another. It is safe for concurrent use.
type Layer struct {
	*vfs.Layer
	relaxed atomic.Bool

	mu   sync.Mutex
	logs map[uintptr]*log // open logs by their address
}

// log is an open log, and what is to be written to it.
type log struct {
	below lib.Tsqlite3_io_methods
	buf   uintptr // memory of C, room bytes
	n     int     // bytes in buf
	off   int64   // where in the file they belong
}

// New registers a layer above the VFS of that name; "" is the system's.
func New(below string) (*Layer, error) {
	l := &Layer{logs: make(map[uintptr]*log)}
	var err error
	l.Layer, err = vfs.New("wal", below, func(v *vfs.Layer, own *lib.Tsqlite3_vfs) {
		own.FxOpen = vfs.Pointer(v, l.opener(vfs.Function[vfs.Open](own.FxOpen)))
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Relax says whether commits from now on only reach the file: the next that
// does not is synced, and they with it.
func (l *Layer) Relax(on bool) { l.relaxed.Store(on) }

func (l *Layer) opener(below vfs.Open) vfs.Open {
	return func(tls *libc.TLS, v, path, f uintptr, flags int32, out uintptr) int32 {
		rc := below(tls, v, path, f, flags, out)
		file := vfs.At[lib.Tsqlite3_file](f)
		if rc != lib.SQLITE_OK || flags&lib.SQLITE_OPEN_WAL == 0 {
			return rc
		}
		g := &log{below: *vfs.At[lib.Tsqlite3_io_methods](file.FpMethods), buf: libc.Xmalloc(tls, room)}
		methods := l.Methods(tls, file.FpMethods, l.replace)
		if g.buf == 0 || methods == 0 {
			vfs.Function[vfs.Close](g.below.FxClose)(tls, f)
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

// replace puts our methods for logs in the place of those below.
func (l *Layer) replace(own *lib.Tsqlite3_io_methods) {
	own.FxClose = vfs.Pointer[vfs.Close](l.Layer, l.close)
	own.FxRead = vfs.Pointer[vfs.Read](l.Layer, l.read)
	own.FxWrite = vfs.Pointer[vfs.Write](l.Layer, l.write)
	own.FxTruncate = vfs.Pointer[vfs.Truncate](l.Layer, l.truncate)
	own.FxSync = vfs.Pointer[vfs.Sync](l.Layer, l.sync)
	own.FxFileSize = vfs.Pointer[vfs.FileSize](l.Layer, l.size)
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
	return vfs.Function[vfs.Write](g.below.FxWrite)(tls, f, g.buf, int32(n), g.off)
}

func (l *Layer) write(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	g := l.log(f)
	if g.n > 0 && (off != g.off+int64(g.n) || g.n+int(n) > room) {
		if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
			return rc
		}
	}
	if int(n) > room {
		return vfs.Function[vfs.Write](g.below.FxWrite)(tls, f, p, n, off)
	}
	if g.n == 0 {
		g.off = off
	}
	copy(unsafe.Slice(vfs.At[byte](g.buf+uintptr(g.n)), n), unsafe.Slice(vfs.At[byte](p), n))
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
	return vfs.Function[vfs.Sync](g.below.FxSync)(tls, f, flags)
}

func (l *Layer) read(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.Read](g.below.FxRead)(tls, f, p, n, off)
}

func (l *Layer) truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.Truncate](g.below.FxTruncate)(tls, f, size)
}

func (l *Layer) size(tls *libc.TLS, f, size uintptr) int32 {
	g := l.log(f)
	if rc := g.flush(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return vfs.Function[vfs.FileSize](g.below.FxFileSize)(tls, f, size)
}

func (l *Layer) close(tls *libc.TLS, f uintptr) int32 {
	l.mu.Lock()
	g := l.logs[f]
	delete(l.logs, f)
	l.mu.Unlock()
	failed := g.flush(tls, f)
	libc.Xfree(tls, g.buf)
	if rc := vfs.Function[vfs.Close](g.below.FxClose)(tls, f); rc != lib.SQLITE_OK {
		return rc
	}
	return failed
}
