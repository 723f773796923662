package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// Options are the options of [Open]. Path is required.
type Options struct {
	Path string       // of the file, which is created if it is missing; its directory must exist
	Log  *slog.Logger // nil: no log
	Used bool         // the database must have content: its directory was used before
	VFS  string       // name of the SQLite VFS, "" for the default; tests inject faults with it
}

// DB is an open database.
type DB struct {
	opts    Options
	log     *slog.Logger
	writer  *writer
	readers *table.Pool[*conn]
	wakes   table.Hub
	memo    session.Memo
	close   func() error
	rewrite func(path string) error // rewriteFile; tests replace it
	damage  atomic.Pointer[DamagedError]
}

var _ store.Store = (*DB)(nil)

// Open opens the database, creates it if it is missing, and migrates it to the
// version of this program. If the file is damaged, the error is a *[DamagedError].
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &DB{opts: o, log: o.Log, rewrite: rewriteFile}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	copied, err := checkLog(o.Path)
	if err != nil {
		return nil, d.opening(err)
	}
	if err := d.checkSize(); err != nil {
		return nil, d.opening(err)
	}
	err = atomicfile.Create(o.Path)
	if err == nil {
		err = atomicfile.SyncDir(d.dir())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open database: %w", err)
	}
	c, err := d.openWriter()
	if err != nil {
		return nil, d.opening(err)
	}
	if copied != "" {
		d.log.Error("the end of the database's log cannot be read: a power failure, or damage",
			"missing since", d.newest(c), "kept", copied)
	}
	d.readers = newReaders(d)
	d.writer = newWriter(d, c)
	d.close = sync.OnceValue(func() error {
		d.wakes.Close()
		// The writer is closed last, so that its checkpoint removes the log.
		return errors.Join(d.readers.Close(), d.writer.close())
	})
	return d, nil
}

// opening returns an error of [Open] for callers.
func (d *DB) opening(err error) error {
	err = d.explain(err)
	if _, ok := errors.AsType[*DamagedError](err); ok {
		return err // which names the database
	}
	return fmt.Errorf("open database %s: %w", d.opts.Path, err)
}

// minSize is the least size of a database with content.
const minSize = 512

// checkSize returns the error about a file that cannot contain a database. SQLite takes a
// file of one byte for an empty one.
func (d *DB) checkSize() error {
	info, err := os.Stat(d.opts.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d.lost("missing")
	case err != nil:
		return nil // opening it tells more
	case info.Size() == 0:
		return d.lost("empty")
	case info.Size() < minSize:
		return &DamagedError{Path: d.opts.Path, Err: fmt.Errorf("it has only %s", humanize.Many(info.Size(), "byte"))}
	}
	return nil
}

// lost returns the error about a database whose content is gone; nil: it is new.
func (d *DB) lost(what string) error {
	if !d.opts.Used {
		return nil
	}
	return &chela.Error{
		Code: chela.CodeUnavailable, Message: fmt.Sprintf("it is %s, but %s was used before", what, d.dir()),
		Hint: "chela backup restore FILE, or, to begin with what is left: chela backup salvage",
	}
}

// checkTables returns the error about a database of which only an empty shell is left, and
// about that of another program, neither of which gets tables.
func (d *DB) checkTables(c *conn) error {
	version, err := c.Number("PRAGMA user_version")
	if err != nil || version != 0 {
		return err
	}
	tables, err := c.Number("SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case tables > 0:
		return &DamagedError{Path: d.opts.Path, Err: errors.New("it has tables of another program only")}
	}
	return d.lost("without content")
}

// Close waits for the commits and readers in progress and closes the file. Later
// calls return the same error.
func (d *DB) Close() error { return d.close() }

func (d *DB) dir() string { return filepath.Dir(d.opts.Path) }

// openWriter opens the connection for writing on a migrated database.
func (d *DB) openWriter() (*conn, error) {
	c, err := dial(d.opts.Path, d.opts.VFS)
	if err != nil {
		return nil, err
	}
	if err := d.prepareWriter(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Memo = &d.memo
	return c, nil
}

func (d *DB) prepareWriter(c *conn) error {
	if err := c.script(context.Background(), common+writing); err != nil {
		return err
	}
	if err := d.checkTables(c); err != nil {
		return err
	}
	mode, err := c.Text("PRAGMA journal_mode = WAL")
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal mode is %q: the file system does not support a write-ahead log", mode)
	}
	steps, err := schema()
	if err != nil {
		return err
	}
	return create(c, d.opts.Path, steps)
}

// The settings of every connection, and those of the writer and of readers. Freed pages
// are overwritten with zeros, so that deleted text is gone and salvage does not find
// it. The schema may call functions where rows are written: crc32c.
const (
	common  = `PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;`
	writing = `PRAGMA cache_size = -1024; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 8388608; PRAGMA secure_delete = ON;`
	reading = `PRAGMA cache_size = -512; PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;`
)

// View runs f on a consistent snapshot.
func (d *DB) View(ctx context.Context, f func(store.Reader) error) error {
	c, err := d.readers.Get(ctx)
	if err != nil {
		return err
	}
	defer func() { d.readers.Put(c, c.txErr == nil) }()
	c.check = ctx.Err
	if _, err := c.Exec("BEGIN"); err != nil {
		return d.explain(err)
	}
	defer c.end("COMMIT")
	return d.explain(f(table.Reader{C: c.Tables}))
}

// Wakes returns a channel with the wakes of a kind, until ctx ends or the database
// is closed.
func (d *DB) Wakes(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	return d.wakes.Listen(ctx, kind)
}

// end ends the transaction of a reader, also after an error.
func (c *conn) end(sql string) {
	txErr := c.txErr
	c.txErr, c.check = nil, nil
	_, err := c.Exec(sql)
	if txErr != nil || err != nil {
		c.txErr = errors.Join(txErr, err) // the pool closes this connection
	}
}
