package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/sqlite/wal"
	"github.com/chela-ai/chela/internal/store/wake"
)

// Options say which database to open. Path is needed.
type Options struct {
	Path string       // of the file; it is made when it is missing, its directory is not
	Log  *slog.Logger // nil: nothing is logged
	VFS  string       // name of the SQLite VFS to use; "": the system's. Tests put faults there
}

// DB is an open database.
type DB struct {
	opts    Options
	log     *slog.Logger
	wal     *wal.Layer // under the connection that writes
	writer  *writer
	readers *readers
	wakes   wake.Hub
	memo    session.Memo
	close   func() error
	rewrite func(path string) error // rewriteFile; tests have disks of their own
}

var _ store.Store = (*DB)(nil)

// Open opens the database, makes it when it is missing, and brings it to the
// version of this program. A file that is not whole gives a *[DamagedError].
func Open(ctx context.Context, o Options) (*DB, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d := &DB{opts: o, log: o.Log, rewrite: rewriteFile}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	err := atomicfile.Create(o.Path)
	if err == nil {
		err = atomicfile.SyncDir(d.dir())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if d.wal, err = wal.New(o.VFS); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	c, err := d.openWriter()
	if err != nil {
		d.wal.Close()
		return nil, fmt.Errorf("open database %s: %w", o.Path, d.explain(err))
	}
	d.readers = newReaders(d)
	d.writer = newWriter(d, c)
	d.close = sync.OnceValue(func() error {
		defer d.wal.Close()
		d.wakes.Close()
		// The writer is last, so that its closing tidies the files up.
		return errors.Join(d.readers.close(), d.writer.close())
	})
	return d, nil
}

// Close waits for the commits and the readers that began, and closes the
// file. Closing again gives the same answer.
func (d *DB) Close() error { return d.close() }

func (d *DB) dir() string { return filepath.Dir(d.opts.Path) }

// openWriter opens the connection that writes, on a database that is ready.
func (d *DB) openWriter() (*conn, error) {
	c, err := dial(d.opts.Path, d.wal.Name())
	if err != nil {
		return nil, err
	}
	if err := d.prepareWriter(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.memo = &d.memo
	return c, nil
}

func (d *DB) prepareWriter(c *conn) error {
	if err := c.script(context.Background(), common+writing); err != nil {
		return err
	}
	mode, err := c.text("PRAGMA journal_mode = WAL")
	if err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal mode is %q: the file system does not take a write-ahead log", mode)
	}
	steps, err := schema()
	if err != nil {
		return err
	}
	return migrate(c, d.opts.Path, steps)
}

// What every connection is set to, and what else the one that writes. Freed
// room is overwritten: what was deleted is gone, and salvage does not find it.
const (
	common = `PRAGMA busy_timeout = 5000; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;`
	writing = `PRAGMA cache_size = -1024; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = 8388608; PRAGMA secure_delete = ON;`
	reading = `PRAGMA cache_size = -512; PRAGMA query_only = ON;`
)

// View runs f on a consistent state.
func (d *DB) View(ctx context.Context, f func(store.Reader) error) error {
	c, err := d.readers.get(ctx)
	if err != nil {
		return err
	}
	defer d.readers.put(c)
	c.check = ctx.Err
	if _, err := c.exec("BEGIN"); err != nil {
		return d.explain(err)
	}
	defer c.end("COMMIT")
	return d.explain(f(reader{c}))
}

// Update runs f in a transaction and commits it.
func (d *DB) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	return d.writer.do(ctx, s, f)
}

// Wakes returns a channel of what commits woke of a kind, until ctx ends or the
// database is closed.
func (d *DB) Wakes(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	return d.wakes.Listen(ctx, kind)
}

// end ends the transaction of a reader, whatever came before.
func (c *conn) end(sql string) {
	lost := c.lost
	c.lost, c.check = nil, nil
	_, err := c.exec(sql)
	if lost != nil || err != nil {
		c.lost = errors.Join(lost, err) // the connection is not used again
	}
}

var errClosed = &chela.Error{Code: chela.CodeUnavailable, Message: "database", Err: chela.ErrClosed}
