// Package wal is a VFS layer that optimizes writes to the write-ahead log. It makes
// two changes:
//
// SQLite writes each page of a commit separately, and its frame header before it:
// the three commits of a turn are fifty small writes. The layer buffers consecutive
// writes and writes them at once, at the latest when the commit is synced. SQLite
// makes the commit visible to other connections only after that (sqlite3WalFrames:
// frames, sync, index). Therefore no reader looks for a frame that is not in the
// file, and a failed write fails the commit.
//
// [Layer.Relax] controls whether a commit is synced or only written. SQLite has a
// pragma for that, but the pragma must be parsed at every change, which is twice in
// a turn. All other syncs are unchanged: of the log's header when the log restarts,
// and of the log before a checkpoint.
//
// A layer serves one connection, the writer. It is registered as a VFS of SQLite
// (https://www.sqlite.org/vfs.html) over another.
package wal

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/vfs"
)

// room is the size of the buffer. It holds more than the frames of a commit of a
// turn.
const room = 64 << 10

// Layer is a VFS that wraps another. It is safe for concurrent use.
type Layer struct {
	*vfs.Layer
	relaxed atomic.Bool

	mu   sync.Mutex
	logs map[uintptr]*log // open logs by their address
}

// log is an open log and its write buffer.
type log struct {
	below lib.Tsqlite3_io_methods
	buf   uintptr // C memory of room bytes
	n     int     // bytes in buf
	off   int64   // offset of buf in the file
}

// New registers a layer over the VFS named below; "" is the default.
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

// Relax sets whether commits are only written from now on. The next synced commit
// also syncs the relaxed commits before it.
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

// replace sets our methods for logs.
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

// flush writes the buffer. Data that could not be written is discarded, as SQLite
// discards a failed commit.
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

// sync is called at the end of a commit if frames are buffered. Only such a sync
// may be relaxed.
func (l *Layer) sync(tls *libc.TLS, f uintptr, flags int32) int32 {
	g := l.log(f)
	commit := g.n > 0 && g.off > 0 // offset 0 is the header of a log that restarts
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
