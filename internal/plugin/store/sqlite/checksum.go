package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	lib "zombiezen.com/go/sqlite"

	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// SQLite has checksums for its log only. It does not notice a changed bit in a text of
// the database. Therefore the last column of each table, crc, is a checksum of all other
// columns including the key. It is a generated column: SQLite computes it for each row
// that a statement inserts or updates, so that no statement can omit it.
//
// A statement that returns the content of rows also selects
//
//	intact(first column, …, last column, crc)
//
// and fails with the error of a damaged page if a row does not match its checksum. A
// statement that updates only some columns has the same condition, because it would
// compute a valid checksum for the damaged columns. Two kinds of statements omit the
// condition: those that only count rows or find their keys, and the sum of the holds,
// which is read before each model call. [DB.Check] checks every row.
//
// A checksum does not detect that a page is missing or that the disk returned an old
// version of it. SQLite's integrity check detects pages that do not fit together.

// summer computes the checksums of a connection.
type summer struct {
	buf     []byte
	changed bool // a call of intact found a changed row
}

// newSummer defines the functions crc32c and intact for a connection.
func newSummer(c *lib.Conn) (*summer, error) {
	s := new(summer)
	return s, errors.Join(
		c.CreateFunction("crc32c", &lib.FunctionImpl{NArgs: -1, Scalar: s.crc32c, Deterministic: true, AllowIndirect: true}),
		c.CreateFunction("intact", &lib.FunctionImpl{NArgs: -1, Scalar: s.intact}),
	)
}

// sum returns the CRC-32C of values. Each value is preceded by its type, and a text also
// by its length, so that the encoding is unambiguous.
func (s *summer) sum(values []lib.Value) int64 {
	table := crc32.MakeTable(crc32.Castagnoli) // is made once
	crc, b := uint32(0), s.buf[:0]
	for _, v := range values {
		t := v.Type()
		b = append(b, byte(t))
		switch t {
		case lib.TypeNull:
		case lib.TypeInteger:
			b = binary.LittleEndian.AppendUint64(b, uint64(v.Int64()))
		default:
			text := v.Blob()
			b = binary.LittleEndian.AppendUint64(b, uint64(len(text)))
			crc = crc32.Update(crc32.Update(crc, table, b), table, text)
			b = b[:0]
		}
	}
	s.buf = b
	return int64(int32(crc32.Update(crc, table, b))) // signed, to need at most 4 bytes
}

func (s *summer) crc32c(_ lib.Context, values []lib.Value) (lib.Value, error) {
	return lib.IntegerValue(s.sum(values)), nil
}

// intact returns 1 if the last value is the checksum of the others, and else 0, which
// [conn.each] turns into an error. The library drops errors of functions:
// https://github.com/zombiezen/go-sqlite/pull/133.
func (s *summer) intact(_ lib.Context, values []lib.Value) (lib.Value, error) {
	last := len(values) - 1
	if values[last].Type() != lib.TypeInteger || s.sum(values[:last]) != values[last].Int64() {
		s.changed = true
		return lib.IntegerValue(0), nil
	}
	return lib.IntegerValue(1), nil
}

// failed returns an error if intact has returned 0 since the last call.
func (s *summer) failed() error {
	if !s.changed {
		return nil
	}
	s.changed = false
	return fmt.Errorf("a row does not match its checksum: %w", lib.ResultCorrupt.ToError())
}

// checkRows checks the checksums of all rows. A database of an older version has none.
func checkRows(c *conn) error {
	type columns struct{ table, names string }
	all, err := table.Collect(c.Tables, func(r *table.Row) (columns, error) { return columns{r.Text(), r.Text()}, nil },
		`SELECT m.name, group_concat(x.name ORDER BY x.cid) FROM sqlite_schema m, pragma_table_xinfo(m.name) x
WHERE m.type = 'table' GROUP BY m.name HAVING max(x.name = 'crc') ORDER BY m.name`)
	if err != nil {
		return err
	}
	for _, t := range all {
		if _, err := c.Number("SELECT count(intact(" + t.names + ")) FROM " + t.table); err != nil {
			return fmt.Errorf("table %s: %w", t.table, err)
		}
	}
	return nil
}
