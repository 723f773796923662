package index

import (
	"context"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/chela-ai/chela/internal/core/memory"
)

// Notes implements [memory.Index].
func (x *Index) Notes(ctx context.Context) ([]memory.Note, error) {
	var notes []memory.Note
	err := x.with(ctx, func(c *sqlite.Conn) error {
		notes = nil
		if err := x.sync(ctx, c); err != nil {
			return err
		}
		return sqlitex.Execute(c,
			"SELECT path, size, time, problem, (SELECT count(*) FROM chunk WHERE chunk.note = note.id) FROM note ORDER BY path",
			&sqlitex.ExecOptions{
				ResultFunc: func(s *sqlite.Stmt) error {
					notes = append(notes, memory.Note{
						Path:    s.ColumnText(0),
						Size:    s.ColumnInt64(1),
						Changed: time.Unix(s.ColumnInt64(2), 0),
						Problem: s.ColumnText(3),
						Chunks:  s.ColumnInt(4),
					})
					return nil
				},
			})
	})
	if err != nil {
		return nil, fmt.Errorf("memory index: %w", err)
	}
	return notes, nil
}

// Probe implements [memory.Index].
func (x *Index) Probe(ctx context.Context) (bool, error) {
	e := x.embedder()
	if e == nil {
		return false, nil
	}
	_, err := e.Embed(ctx, memory.Question, []string{"hello"})
	return true, err
}
