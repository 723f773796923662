package power

import (
	"bytes"
	"path/filepath"
	"sync"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/vfs"
)

// layer is SQLite's default VFS with some functions replaced by those of a disk.
// The structs are copies in C memory. The functions in them are closures, which
// vfs.Layer retains.
type layer struct {
	*vfs.Layer
	d *Disk

	mu    sync.Mutex
	files map[uintptr]open // open files by their address
}

// open is an open file.
type open struct {
	name   string
	system lib.Tsqlite3_io_methods
}

func register(d *Disk) *layer {
	v := &layer{d: d, files: make(map[uintptr]open)}
	var err error
	v.Layer, err = vfs.New("power", "", func(l *vfs.Layer, own *lib.Tsqlite3_vfs) {
		own.FxOpen = vfs.Pointer(l, v.opener(vfs.Function[vfs.Open](own.FxOpen)))
		own.FxDelete = vfs.Pointer(l, v.deleter(vfs.Function[vfs.Delete](own.FxDelete)))
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

func (v *layer) opener(system vfs.Open) vfs.Open {
	return func(tls *libc.TLS, fs, path, f uintptr, flags int32, out uintptr) int32 {
		rc := system(tls, fs, path, f, flags, out)
		file := vfs.At[lib.Tsqlite3_file](f)
		if rc != lib.SQLITE_OK || path == 0 || file.FpMethods == 0 {
			return rc
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		v.files[f] = open{filepath.Base(libc.GoString(path)), *vfs.At[lib.Tsqlite3_io_methods](file.FpMethods)}
		file.FpMethods = v.Methods(tls, file.FpMethods, v.replace)
		return rc
	}
}

// replace sets our methods for files.
func (v *layer) replace(own *lib.Tsqlite3_io_methods) {
	own.FxClose = vfs.Pointer[vfs.Close](v.Layer, v.close)
	own.FxWrite = vfs.Pointer[vfs.Write](v.Layer, v.write)
	own.FxTruncate = vfs.Pointer[vfs.Truncate](v.Layer, v.truncate)
	own.FxSync = vfs.Pointer[vfs.Sync](v.Layer, v.sync)
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
	return vfs.Function[vfs.Close](file.system.FxClose)(tls, f)
}

// piece is the size of one write. A longer write is split and can be interrupted
// after each piece by a power cut, a kill or a full disk.
const piece = 4096

func (v *layer) write(tls *libc.TLS, f, p uintptr, n int32, off int64) int32 {
	file := v.file(f)
	for n > 0 {
		some := min(n, piece)
		if rc := v.d.recordWrite(file.name, write{off, bytes.Clone(libc.GoBytes(p, int(some)))}); rc != None {
			return code(rc, lib.SQLITE_IOERR_WRITE)
		}
		if rc := vfs.Function[vfs.Write](file.system.FxWrite)(tls, f, p, some, off); rc != lib.SQLITE_OK {
			return rc
		}
		p, n, off = p+uintptr(some), n-some, off+int64(some)
	}
	return lib.SQLITE_OK
}

func (v *layer) truncate(tls *libc.TLS, f uintptr, size int64) int32 {
	file := v.file(f)
	if rc := v.d.recordWrite(file.name, write{size, nil}); rc != None {
		return code(rc, lib.SQLITE_IOERR_TRUNCATE)
	}
	return vfs.Function[vfs.Truncate](file.system.FxTruncate)(tls, f, size)
}

// sync only updates the model. It does not wait for the disk below.
func (v *layer) sync(_ *libc.TLS, f uintptr, _ int32) int32 {
	return code(v.d.recordSync(v.file(f).name), lib.SQLITE_IOERR_FSYNC)
}

func (v *layer) deleter(system vfs.Delete) vfs.Delete {
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
