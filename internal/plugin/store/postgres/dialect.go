package postgres

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// rewrites are the conditions whose form SQLite needs to find its indexes, and in which a
// number is true: PostgreSQL wants a comparison.
var rewrites = strings.NewReplacer(
	"flags & 32 ", "flags & 32 <> 0 ",
	"detached AND ", "detached <> 0 AND ",
	`instr(inbound, '"task":true'))`, `instr(inbound, '"task":true') > 0)`,
)

// sqliteOnly are the parts of statements that PostgreSQL does not have: the name of an
// index, and the check of a row's checksum.
var (
	indexedBy = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`INDEXED BY \w+ ?`) })
	intact    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bintact\([^()]*\)`) })
)

// translate returns a statement of package table for PostgreSQL: the conditions above, and
// parameters as $1. A parameter without a number has the one after the largest before it.
func translate(sql string) string {
	sql = rewrites.Replace(sql)
	sql = indexedBy().ReplaceAllString(sql, "")
	sql = intact().ReplaceAllString(sql, "TRUE")
	var b strings.Builder
	last := 0
	for i := 0; i < len(sql); i++ {
		switch c := sql[i]; c {
		case '\'':
			end := i + 1 + strings.IndexByte(sql[i+1:], '\'') // a quote in a text is two texts
			b.WriteString(sql[i : end+1])
			i = end
		case '?':
			end := i + 1
			for end < len(sql) && sql[end] >= '0' && sql[end] <= '9' {
				end++
			}
			n := last + 1
			if end > i+1 {
				n, _ = strconv.Atoi(sql[i+1 : end])
			}
			last = max(last, n)
			b.WriteString("$" + strconv.Itoa(n))
			i = end - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
