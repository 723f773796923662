package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// conn is a connection. It must be used by one goroutine at a time.
type conn struct {
	*table.Tables
	pg     *pgconn.PgConn
	sync   string               // the server's synchronous_commit for synced commits
	stmts  map[string]*prepared // by the statement of package table
	values values               // of the row that is being read

	ctx context.Context // of the transaction in progress
	// txErr is the first error of the transaction in progress, after which PostgreSQL
	// refuses other statements.
	txErr error
}

// prepared is a statement that the server has prepared.
type prepared struct {
	*pgconn.StatementDescription
	kinds []table.Kind // of the columns of the result
}

// maxPrepared is the maximum number of prepared statements of a connection. The tables
// have fewer; it is a limit for statements with optional conditions.
const maxPrepared = 1000

// The types of arguments, and of columns of results.
const (
	oidBool  = 16
	oidInt8  = 20
	oidInt4  = 23
	oidText  = 25
	oidNamed = 19
)

// dial opens a connection.
func (d *DB) dial(ctx context.Context) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.dialLimit())
	defer cancel()
	pg, err := pgconn.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return nil, err
	}
	c := &conn{pg: pg, stmts: map[string]*prepared{}}
	c.Tables = &table.Tables{Conn: c, Memo: new(session.Memo)}
	if c.sync, err = c.prepareSession(ctx, d.opts.TTL); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// prepareSession makes the server end a transaction whose client is silent, and notice soon
// that a client is gone. Not every server and system has all of these settings.
func (c *conn) prepareSession(ctx context.Context, ttl time.Duration) (synced string, err error) {
	if err := c.script(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d", ttl.Milliseconds()*3/4)); err !=
		nil {
		return "", err
	}
	for _, s := range []string{"client_connection_check_interval = 1000", "tcp_keepalives_idle = 2",
		"tcp_keepalives_interval = 1", "tcp_keepalives_count = 3"} {
		if err := c.script(ctx, "SET "+s); err != nil && c.pg.IsClosed() {
			return "", err
		}
	}
	results, err := c.pg.Exec(ctx, "SHOW synchronous_commit").ReadAll()
	if err != nil {
		return "", err
	}
	if synced = string(results[0].Rows[0][0]); synced == "off" {
		synced = "on"
	}
	return synced, nil
}

// close closes the connection. It does not wait long for the server.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.pg.Close(ctx)
}

// script runs statements without parameters, and no rows are read.
func (c *conn) script(ctx context.Context, sql string) error {
	_, err := c.pg.Exec(ctx, sql).ReadAll()
	return err
}

// Run implements [table.Conn].
func (c *conn) Run(f func(*table.Row) error, sql string, args []any) (changed int, err error) {
	if c.txErr != nil {
		return 0, c.txErr
	}
	oids, texts, formats := make([]uint32, len(args)), make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		oids[i], texts[i] = argument(a)
		if oids[i] == oidInt8 {
			formats[i] = binaryFormat
		}
	}
	s, err := c.prepare(sql, oids)
	if err != nil {
		c.txErr = err
		return 0, err
	}
	r := c.pg.ExecStatement(c.ctx, s.StatementDescription, texts, formats, []int16{binaryFormat})
	defer r.Close() // f may panic
	c.values.kinds = s.kinds
	var row table.Row
	for r.NextRow() {
		if f == nil || err != nil {
			continue
		}
		c.values.list = r.Values()
		err = row.Read(&c.values, f)
	}
	tag, closed := r.Close()
	if closed != nil {
		c.txErr = closed
		return 0, closed
	}
	return int(tag.RowsAffected()), err
}

const binaryFormat = 1

// prepare returns the prepared statement of a text.
func (c *conn) prepare(sql string, oids []uint32) (*prepared, error) {
	if s := c.stmts[sql]; s != nil {
		return s, nil
	}
	if len(c.stmts) >= maxPrepared {
		if err := c.script(c.ctx, "DEALLOCATE ALL"); err != nil {
			return nil, err
		}
		clear(c.stmts)
	}
	d, err := c.pg.Prepare(c.ctx, "s"+strconv.Itoa(len(c.stmts)), translate(sql), oids)
	if err != nil {
		return nil, fmt.Errorf("%w in: %s", err, sql)
	}
	s := &prepared{StatementDescription: d}
	for _, f := range d.Fields {
		s.kinds = append(s.kinds, kindOf(f.DataTypeOID))
	}
	c.stmts[sql] = s
	return s, nil
}

func kindOf(oid uint32) table.Kind {
	switch oid {
	case oidInt8, oidInt4, oidBool:
		return table.Integer
	case oidText, oidNamed:
		return table.String
	}
	return table.Other
}

// argument returns the type of an argument of a statement, 0 if the statement determines it,
// and its value in that form: integers binary, texts as they are.
func argument(a any) (oid uint32, value []byte) {
	number := func(n int64) (uint32, []byte) {
		return oidInt8, binary.BigEndian.AppendUint64(nil, uint64(n))
	}
	switch a := a.(type) {
	case nil:
		return 0, nil
	case string:
		return oidText, []byte(clean(a))
	case table.Optional:
		if a == "" {
			return oidText, nil
		}
		return oidText, []byte(clean(string(a)))
	case int64:
		return number(a)
	case int:
		return number(int64(a))
	case bool:
		if a {
			return number(1)
		}
		return number(0)
	case time.Time:
		return number(table.UnixNano(a))
	}
	panic(fmt.Sprintf("postgres: argument of type %T", a))
}

// clean returns a text that PostgreSQL accepts.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	return s
}

// values are the values of a row of a result.
type values struct {
	kinds []table.Kind
	list  [][]byte
}

// Kind implements [table.Values].
func (v *values) Kind(i int) table.Kind {
	if v.list[i] == nil {
		return table.Null
	}
	return v.kinds[i]
}

// Integer implements [table.Values]. The number of bytes tells int8, int4 and bool apart.
func (v *values) Integer(i int) int64 {
	switch b := v.list[i]; len(b) {
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 1:
		return int64(b[0])
	}
	return 0
}

// String implements [table.Values].
func (v *values) String(i int) string { return string(v.list[i]) }

// begin begins a transaction, whose statements end with ctx.
func (c *conn) begin(ctx context.Context, sql string) ([]*pgconn.Result, error) {
	c.ctx, c.txErr = ctx, nil
	return c.pg.Exec(ctx, sql).ReadAll()
}

// end ends the transaction, after an error by a rollback. It reports whether the connection
// can be used again.
func (c *conn) end(sql string) error {
	err := c.script(c.ctx, sql)
	c.ctx = nil
	return cmp.Or(err, c.txErr)
}
