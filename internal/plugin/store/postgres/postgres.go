package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// Options are the options of [Open]. URL is required.
type Options struct {
	URL  string       // address of the database, in a form of libpq; it may contain a password
	Name string       // of this process, which others show as the owner
	Log  *slog.Logger // nil: no log

	// TTL is how long the ownership lasts without a renewal; 0: 4 s. All processes need
	// the same.
	TTL time.Duration
	// Standby is called each time when this process has to wait, because another one owns
	// the database, or because err: it cannot be reached. If Standby is nil, Open waits
	// only for an owner that has ended without releasing the database.
	Standby func(owner string, err error)
}

// defaultTTL is how long the ownership lasts without a renewal.
const defaultTTL = 4 * time.Second

// DB is a database that this process owns.
type DB struct {
	opts   Options
	log    *slog.Logger
	config *pgconn.Config
	schema string

	owner   *owner
	writer  *writer
	readers *table.Pool[*conn]
	wakes   table.Hub
	memo    session.Memo
	close   func()
}

var _ store.Store = (*DB)(nil)

// Open connects to the database, waits until this process owns it, and migrates it to the
// version of this program.
func Open(ctx context.Context, o Options) (*DB, error) {
	d := &DB{opts: o, log: o.Log}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.opts.TTL = cmp.Or(o.TTL, defaultTTL)
	if err := d.configure(); err != nil {
		return nil, err
	}
	var err error
	if d.owner, err = own(ctx, d); err != nil {
		return nil, err
	}
	if err := d.migrate(ctx); err != nil {
		d.owner.release()
		return nil, err
	}
	d.readers, d.writer = newReaders(d), newWriter(d)
	d.close = sync.OnceFunc(func() {
		d.wakes.Close()
		d.writer.close()
		_ = d.readers.Close()
		d.owner.release()
	})
	return d, nil
}

// configure reads the address.
func (d *DB) configure() error {
	c, err := pgconn.ParseConfig(d.opts.URL)
	if err != nil {
		// The library hides the password in an address, but not in everything that is none.
		return &chela.Error{Code: chela.CodeInvalid, Message: "storage.postgres is not an address of a database",
			Hint: "chela config set storage.postgres 'postgres://USER@HOST/DATABASE'"}
	}
	d.schema = c.RuntimeParams["search_path"]
	switch {
	case d.schema == "":
		d.schema = "chela"
	case !schemaName().MatchString(d.schema):
		return &chela.Error{Code: chela.CodeInvalid,
			Message: fmt.Sprintf("search_path in storage.postgres is %q, want the name of one schema", d.schema),
			Hint:    "remove search_path from storage.postgres"}
	}
	c.RuntimeParams["search_path"] = quote(d.schema)
	c.RuntimeParams["client_encoding"] = "UTF8"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "chela"
	}
	// A peer that is gone is noticed before the ownership ends.
	c.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second,
		Interval: time.Second, Count: 3}}).DialContext
	d.config = c
	return nil
}

// schemaName is what the name of a schema may be.
var schemaName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`) })

// dialLimit is how long a connection may take.
func (d *DB) dialLimit() time.Duration { return min(max(d.opts.TTL, time.Second), 10*time.Second) }

// Close waits for the commits and readers in progress, closes the connections and releases
// the database for others. It may be called again.
func (d *DB) Close() error {
	d.close()
	return nil
}

// Location returns the address of the database, without the user and the password.
func (d *DB) Location() string {
	host := net.JoinHostPort(d.config.Host, strconv.Itoa(int(d.config.Port)))
	if strings.HasPrefix(d.config.Host, "/") {
		host = url.PathEscape(d.config.Host)
	}
	return fmt.Sprintf("postgres://%s/%s, schema %s", host, d.config.Database, d.schema)
}

// Held reports whether certainly no other process owns the database.
func (d *DB) Held() bool { return d.owner.held() }

// Lost returns a channel that is closed when another process may own the database. Nothing
// is stored from then on.
func (d *DB) Lost() <-chan struct{} { return d.owner.lost }

// View runs f on a consistent snapshot.
func (d *DB) View(ctx context.Context, f func(store.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ran := false
	for b := newBackoff(viewLimit); ; {
		err := d.view(ctx, &ran, f)
		if err == nil || ran || ctx.Err() != nil || !passing(err) || !isConnection(err) || !b.wait(ctx, d.owner.lost) {
			if err != nil && ctx.Err() == nil && d.owner.isLost() {
				return fmt.Errorf("%w (%w)", d.owner.fenced(), err)
			}
			return explain(cmp.Or(ctx.Err(), err))
		}
	}
}

// viewLimit is how long a view waits for a server that restarts.
const viewLimit = 10 * time.Second

// view sets ran when f is called, which is done once only: f may have effects.
func (d *DB) view(ctx context.Context, ran *bool, f func(store.Reader) error) error {
	// A statement over a broken network could wait for many minutes.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.owner.ctx, cancel)()
	c, err := d.readers.Get(ctx)
	if err != nil {
		return err
	}
	ok := false
	defer func() { d.putReader(c, ok) }()
	// The first statement makes the snapshot.
	if _, err := c.begin(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1"); err != nil {
		return &brokenError{err}
	}
	*ran = true
	err = f(table.Reader{C: c.Tables})
	if ctx.Err() != nil || c.pg.IsClosed() {
		return err
	}
	failed := c.txErr != nil
	if c.end("COMMIT") == nil {
		ok = true
	} else if failed && !c.pg.IsClosed() && c.pg.TxStatus() == 'I' {
		ok = true // the commit of a failed transaction is a rollback
	}
	return err
}

// Wakes returns a channel with the wakes of a kind, until ctx ends or the database is
// closed.
func (d *DB) Wakes(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	return d.wakes.Listen(ctx, kind)
}

// warnPlain logs that the connection to another machine is not encrypted.
func (d *DB) warnPlain(c *conn) {
	_, encrypted := c.pg.Conn().(*tls.Conn)
	a, remote := c.pg.Conn().RemoteAddr().(*net.TCPAddr)
	if remote && !encrypted && !a.IP.IsLoopback() {
		d.log.Warn("the connection to PostgreSQL is not encrypted", "host", d.config.Host,
			"hint", "add ?sslmode=verify-full to storage.postgres")
	}
}

// backoff waits between attempts, until a time.
type backoff struct {
	end   time.Time
	delay time.Duration
}

func newBackoff(limit time.Duration) *backoff {
	return &backoff{end: time.Now().Add(limit), delay: 20 * time.Millisecond}
}

// wait reports whether there is time for another attempt. It ends early with ctx or stop.
func (b *backoff) wait(ctx context.Context, stop <-chan struct{}) bool {
	if time.Now().Add(b.delay).After(b.end) {
		return false
	}
	select {
	case <-time.After(b.delay):
	case <-ctx.Done():
		return false
	case <-stop:
		return false
	}
	b.delay = min(2*b.delay, 500*time.Millisecond)
	return true
}

// quote returns a name in double quotes, which it does not contain.
func quote(name string) string { return `"` + name + `"` }
