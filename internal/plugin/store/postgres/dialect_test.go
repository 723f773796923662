package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestTranslate(t *testing.T) {
	for _, tt := range [...]struct{ sql, want string }{
		{"SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = $1 AND c = $2"},
		{"VALUES (?1, ?, ?, coalesce(?1, ?2))", "VALUES ($1, $2, $3, coalesce($1, $2))"},
		{"b = ?12 OR c = ?", "b = $12 OR c = $13"},
		{`x = '?' AND y = 'it''s ?' AND z = ?`, `x = '?' AND y = 'it''s ?' AND z = $1`},
		{"SELECT a, intact(n, a, b, crc) FROM t WHERE n = ? AND intact(n, a, crc)",
			"SELECT a, TRUE FROM t WHERE n = $1 AND TRUE"},
		{"FROM run INDEXED BY run_active WHERE state = 'x'", "FROM run WHERE state = 'x'"},
		{"WHERE flags & 32 UNION ALL", "WHERE flags & 32 <> 0 UNION ALL"},
		{"session = ? AND detached AND state <> 'closed'", "session = $1 AND detached <> 0 AND state <> 'closed'"},
		{`(owner <> '' OR instr(inbound, '"task":true')) ORDER BY seq`,
			`(owner <> '' OR instr(inbound, '"task":true') > 0) ORDER BY seq`},
	} {
		if got := translate(tt.sql); got != tt.want {
			t.Errorf("translate(%s)\n got %s\nwant %s", tt.sql, got, tt.want)
		}
	}
}

func TestExplain(t *testing.T) {
	full := explain(fmt.Errorf("x: %w", &pgconn.PgError{Code: "53100"}))
	if !errors.Is(full, chela.ErrFull) || chela.HintOf(full) == "" {
		t.Errorf("a full disk: %v, hint %q", full, chela.HintOf(full))
	}
	if err := explain(&brokenError{errors.New("reset")}); !errors.Is(err, chela.ErrStorage) ||
		chela.CodeOf(err) != chela.CodeUnavailable {
		t.Errorf("a broken connection: %v", err)
	}
	own := errors.New("of the function")
	if err := explain(own); err != own {
		t.Errorf("an error of the function: %v", err)
	}
	for code, want := range map[string][2]bool{
		"57P01": {true, false},
		"57P03": {true, false},
		"53300": {true, false},
		"40001": {false, true},
		"0A000": {false, true},
		"28P01": {},
		"23505": {},
	} {
		err := &pgconn.PgError{Code: code}
		if got := [2]bool{passing(err), conflicting(err)}; got != want {
			t.Errorf("%s passes, conflicts: %v, want %v", code, got, want)
		}
	}
}
