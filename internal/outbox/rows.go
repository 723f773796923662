package outbox

import (
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/chunk"
)

// Rows returns base once for each part of text, pending, with the keys
// "<base.Key>:<part>". Parts that show nothing are left out: the empty text has
// no rows.
func Rows(base Row, text string, o chunk.Options) []Row {
	var out []Row
	for _, part := range chunk.Split(text, o) {
		part = strings.TrimRight(strings.TrimLeft(part, "\n"), " \t\n")
		if strings.TrimSpace(part) == "" {
			continue
		}
		r := base
		r.Part, r.Text, r.State = len(out), part, Pending
		r.Key = fmt.Sprintf("%s:%d", base.Key, len(out))
		out = append(out, r)
	}
	return out
}
