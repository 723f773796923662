package index

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/core/memory"
)

// Options configure an index.
type Options struct {
	Workspace string   // of the agent
	Extra     []string // further files and folders; relative ones are in the workspace
	File      string   // of the index
	Vectors   Vectors  // the zero value: notes are found by their words alone
	Ranking   *Ranking // nil: that of [DefaultRanking]
	Log       *slog.Logger
}

// Index implements [memory.Index] for an agent. It opens its file when it is needed, and
// closes it when it is not used any more.
type Index struct {
	o Options

	using  chan struct{} // has a value while the fields below are used
	c      *sqlite.Conn  // nil: closed
	spell  *speller
	synced time.Time
	timer  *time.Timer
	closed bool

	reading atomic.Pointer[memory.Progress] // set while many notes are read
	e       embedding
}

var _ memory.Index = (*Index)(nil)

// New returns an index. It opens no file.
func New(o Options) *Index {
	if o.Ranking == nil {
		r := DefaultRanking()
		o.Ranking = &r
	}
	x := &Index{o: o, using: make(chan struct{}, 1), spell: newSpeller()}
	x.e.ctx, x.e.cancel = context.WithCancel(context.Background())
	return x
}

const (
	many     = 500                   // notes that are read at once, from which progress is reported
	report   = 10 * time.Second      // between two reports in the log
	format   = 4                     // of the file; another one is replaced
	idle     = 10 * time.Second      // after which the file is closed
	pause    = time.Second           // in which the files are not compared again
	busyStep = 50 * time.Millisecond // after which a caller may give up
	batch    = 1 << 20               // bytes of the notes that are written at once
)

//go:embed schema.sql
var schema string

// Close closes the file. The index cannot be used any more.
func (x *Index) Close() error {
	x.e.mu.Lock() // so that no worker begins afterwards
	x.e.cancel()
	x.e.mu.Unlock()
	x.e.workers.Wait()
	_ = x.lock(context.Background())
	defer x.unlock()
	x.closed = true
	return x.close()
}

// lock waits until nobody else uses the file. The error is that of ctx.
func (x *Index) lock(ctx context.Context) error {
	select {
	case x.using <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *Index) unlock() { <-x.using }

func (x *Index) close() error {
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.c == nil {
		return nil
	}
	err := x.c.Close()
	x.c = nil
	return err
}

// with calls f with the open file. A file that cannot be used is made anew once: all that
// it contains is in the notes.
func (x *Index) with(ctx context.Context, f func(*sqlite.Conn) error) error {
	if err := x.lock(ctx); err != nil {
		return err
	}
	defer x.unlock()
	if x.closed {
		return errors.New("the memory index is closed")
	}
	begun, again := time.Now(), true
	for {
		err := x.open()
		if err == nil {
			x.c.SetInterrupt(ctx.Done())
			err = f(x.c)
			x.c.SetInterrupt(nil)
		}
		x.rest()
		if busy(err) && ctx.Err() == nil && time.Since(begun) < busyFor {
			continue
		}
		if err == nil || !again || !damaged(err) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if busy(err) {
				err = fmt.Errorf("another process uses it: %w", err)
			}
			return err
		}
		again = false
		x.o.Log.Warn("the memory index is damaged and is made again", "file", x.o.File, "err", err)
		if err := x.remove(); err != nil {
			return err
		}
	}
}

// rest closes the file after a while.
func (x *Index) rest() {
	if x.timer == nil {
		x.timer = time.AfterFunc(idle, func() {
			_ = x.lock(context.Background())
			defer x.unlock()
			_ = x.close() // nothing is lost
		})
	}
	x.timer.Reset(idle)
}

// busyFor is waited for another process. Tests wait longer.
var busyFor = 5 * time.Second

// busy reports whether another process writes to the file.
func busy(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy }

// damaged reports whether the file of an index cannot be used.
func damaged(err error) bool {
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}

// open opens the file, and creates it if it is missing or has another format.
func (x *Index) open() error {
	if x.c != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(x.o.File), 0o700); err != nil {
		return err
	}
	c, err := sqlite.OpenConn(x.o.File, sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		return err
	}
	c.SetBusyTimeout(busyStep)
	x.c = c
	var version int
	for _, pragma := range []string{"journal_mode = WAL", "synchronous = OFF", "cache_size = -1024",
		"temp_store = MEMORY", "user_version"} {
		if err == nil {
			err = sqlitex.ExecuteTransient(c, "PRAGMA "+pragma, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
				version = s.ColumnInt(0)
				return nil
			}})
		}
	}
	if err == nil && version != format && version != 0 {
		if err = x.remove(); err == nil {
			return x.open()
		}
	}
	if err == nil && version == 0 {
		err = x.change(c, func() error {
			if n, err := number(c, "PRAGMA user_version"); n != 0 || err != nil { // another process was faster
				return err
			}
			return sqlitex.ExecuteScript(c, fmt.Sprintf("%s; PRAGMA user_version = %d", schema, format), nil)
		})
	}
	if err != nil {
		_ = x.close()
	}
	return err
}

// remove deletes the file of the index.
func (x *Index) remove() error {
	_ = x.close()
	x.synced = time.Time{}
	x.e.mu.Lock()
	x.e.counted = false
	x.e.mu.Unlock()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(x.o.File + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Rebuild implements [memory.Index].
func (x *Index) Rebuild(ctx context.Context) error {
	err := x.lock(ctx)
	if err == nil {
		err = x.remove()
		x.unlock()
	}
	if err != nil {
		return fmt.Errorf("memory index: %w", err)
	}
	return x.with(ctx, func(c *sqlite.Conn) error { return x.sync(ctx, c) })
}

// Status implements [memory.Index].
func (x *Index) Status(ctx context.Context) (memory.Status, error) {
	var st memory.Status
	if p := x.reading.Load(); p != nil {
		return memory.Status{Reading: p}, nil
	}
	err := x.with(ctx, func(c *sqlite.Conn) error {
		st = memory.Status{}
		if err := x.sync(ctx, c); err != nil {
			return err
		}
		st.Synced = x.synced
		var err error
		if st.Vectors, err = x.vectorStatus(c); err != nil {
			return err
		}
		err = sqlitex.Execute(c,
			"SELECT count(*), coalesce(sum(size), 0), (SELECT count(*) FROM chunk) FROM note WHERE problem = ''",
			&sqlitex.ExecOptions{
				ResultFunc: func(s *sqlite.Stmt) error {
					st.Files, st.Bytes, st.Chunks = s.ColumnInt(0), s.ColumnInt64(1), s.ColumnInt(2)
					return nil
				},
			})
		if err != nil {
			return err
		}
		return sqlitex.Execute(c, "SELECT path, problem FROM note WHERE problem <> '' ORDER BY path LIMIT 100",
			&sqlitex.ExecOptions{
				ResultFunc: func(s *sqlite.Stmt) error {
					st.Skipped = append(st.Skipped, memory.Skipped{Path: s.ColumnText(0), Reason: s.ColumnText(1)})
					return nil
				},
			})
	})
	if fi, serr := os.Stat(x.o.File); serr == nil {
		st.Size = fi.Size()
	}
	if err != nil {
		return st, fmt.Errorf("memory index: %w", err)
	}
	return st, nil
}

// sync compares the index with the files and reads what has changed, a note a
// transaction.
func (x *Index) sync(ctx context.Context, c *sqlite.Conn) error {
	all, end, err := x.notes(ctx)
	defer end()
	if err != nil {
		return err
	}
	now := time.Now()
	var gone []int64
	known := map[string]bool{}
	again := map[string]string{} // the identities of notes that are read again
	err = sqlitex.Execute(c, "SELECT id, path, version, hash, problem FROM note",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			path := s.ColumnText(1)
			switch n := all[path]; {
			case n == nil:
				gone = append(gone, s.ColumnInt64(0))
			case n.version() == s.ColumnText(2):
				known[path] = true
			case s.ColumnText(2) == "":
				again[path] = string(columnBytes(s, 3)) + s.ColumnText(4)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		err := x.change(c, func() error {
			for _, id := range gone {
				if err := forget(c, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var paths []string // of the notes that are read
	for path := range all {
		if !known[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	reported, begun := now, now
	if all := len(paths); all >= many {
		x.o.Log.Info("the notes are read for the memory index", "notes", all)
		x.reading.Store(&memory.Progress{All: all})
		defer x.reading.Store(nil)
	}
	var changed []*content
	size, added, touched := 0, 0, len(gone) > 0
	defer func() { x.wait(added) }()
	write := func() error {
		if len(changed) == 0 {
			return nil
		}
		err := x.change(c, func() error {
			for _, n := range changed {
				without, err := x.put(c, n)
				if err != nil {
					return err
				}
				added += without
			}
			return nil
		})
		if p := x.reading.Load(); p != nil {
			p = &memory.Progress{Done: p.Done + len(changed), All: p.All}
			x.reading.Store(p)
			if time.Since(reported) > report {
				x.o.Log.Info("the notes are read for the memory index", "done", p.Done, "notes", p.All)
				reported = time.Now()
			}
		}
		changed, size, touched = nil, 0, true
		return err
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if read := load(all[path]); read != nil && (read.version != "" || read.identity() != again[path]) {
			changed = append(changed, read)
			size += int(read.info.Size())
		}
		if size >= batch || len(changed) >= 500 {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := write(); err != nil {
		return err
	}
	if p := x.reading.Load(); p != nil {
		x.o.Log.Info("the memory index is made", "notes", p.All, "took", time.Since(begun).Round(time.Millisecond))
	}
	if touched {
		if err := pruneVectors(c, x.o.Vectors.Unused); err != nil {
			return err
		}
	}
	x.synced = now
	return nil
}

// change runs a transaction.
func (x *Index) change(c *sqlite.Conn, f func() error) (err error) {
	end, err := sqlitex.ImmediateTransaction(c)
	if err != nil {
		return err
	}
	defer end(&err)
	return f()
}

// content is a note that was read.
type content struct {
	*note
	version string // "": it is read again at the next comparison
	chunks  []chunk
	hash    [sha256.Size]byte
	problem string // why it is not searched
}

// identity differs for different contents.
func (n *content) identity() string { return string(n.hash[:]) + n.problem }

// load reads a note; nil: it was deleted now, which the next comparison finds out.
func load(n *note) *content {
	out := &content{note: n, version: n.version()}
	if n.err != nil {
		out.problem = n.err.Error()
		return out
	}
	if n.recent() {
		out.version = ""
	}
	b, err := n.read()
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case errors.Is(err, errLarge):
		out.problem = err.Error()
		return out
	case err != nil:
		out.problem, out.version = err.Error(), ""
		return out
	case bytes.IndexByte(b, 0) >= 0:
		out.problem = "it is not text"
		return out
	}
	b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	out.hash, out.chunks = sha256.Sum256(b), chunks(b)
	if len(out.chunks) > maxChunks {
		out.chunks, out.problem = nil, fmt.Sprintf("it has more than %d sections", maxChunks)
	}
	return out
}

// put replaces a note. It returns the number of new chunks without a vector.
func (x *Index) put(c *sqlite.Conn, n *content) (without int, err error) {
	id, same := int64(0), false
	err = sqlitex.Execute(c, "SELECT id, hash, problem FROM note WHERE path = ?", &sqlitex.ExecOptions{
		Args: []any{n.path}, ResultFunc: func(s *sqlite.Stmt) error {
			id, same = s.ColumnInt64(0), string(columnBytes(s, 1))+s.ColumnText(2) == n.identity()
			return nil
		},
	})
	if err != nil {
		return 0, err
	}
	time := n.info.ModTime().Unix()
	if same {
		return 0, sqlitex.Execute(c, "UPDATE note SET version = ?, time = ? WHERE id = ?",
			&sqlitex.ExecOptions{Args: []any{n.version, time, id}})
	}
	if id != 0 {
		if err := forget(c, id); err != nil {
			return 0, err
		}
	}
	err = sqlitex.Execute(c, "INSERT INTO note(path, version, hash, size, time, problem) VALUES (?, ?, ?, ?, ?, ?)",
		&sqlitex.ExecOptions{
			Args: []any{n.path, n.version, n.hash[:], n.info.Size(), time, n.problem},
		})
	if err != nil {
		return 0, err
	}
	id = c.LastInsertRowID()
	name := strings.NewReplacer("-", " ", "_", " ", "/", " ", ".md", "").Replace(n.path)
	for _, k := range n.chunks {
		terms, hash := strings.Join(x.spell.terms(name+"\n"+k.head+"\n"+k.text), " "), hashOf(k)
		err := sqlitex.Execute(c,
			"INSERT INTO chunk(note, first, last, head, text, terms, hash) VALUES (?, ?, ?, ?, ?, ?, ?)", &sqlitex.ExecOptions{
				Args: []any{id, k.first, k.last, k.head, k.text, terms, hash},
			})
		if err != nil {
			return without, err
		}
		err = sqlitex.Execute(c, "INSERT INTO words(rowid, terms) VALUES (?, ?)",
			&sqlitex.ExecOptions{Args: []any{c.LastInsertRowID(), terms}})
		if err != nil {
			return without, err
		}
		has, err := useVector(c, hash)
		if err != nil {
			return without, err
		}
		if !has {
			without++
		}
	}
	return without, nil
}

// forget removes a note from the index.
func forget(c *sqlite.Conn, id int64) error {
	if err := unuseVectors(c, id); err != nil {
		return err
	}
	for _, q := range []string{
		"DELETE FROM words WHERE rowid IN (SELECT id FROM chunk WHERE note = ?)",
		"DELETE FROM chunk WHERE note = ?",
		"DELETE FROM note WHERE id = ?",
	} {
		if err := sqlitex.Execute(c, q, &sqlitex.ExecOptions{Args: []any{id}}); err != nil {
			return err
		}
	}
	return nil
}
