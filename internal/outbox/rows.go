package outbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
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

// Aside returns the key of a message that a run sends beside its answer. name
// is unique in the run.
func Aside(id chela.RunID, name string) string { return string(id) + aside + name }

const aside = ":aside:"

// Said reports whether a run has sent the text to the address beside its answer,
// in rows of its own.
func Said(rows []Row, a chela.Address, text string) bool {
	sent := map[string]string{}
	for _, r := range rows {
		if i := strings.LastIndexByte(r.Key, ':'); r.Address == a && r.State != Failed && strings.Contains(r.Key, aside) {
			sent[r.Key[:i]] += " " + r.Text
		}
	}
	for _, s := range sent {
		if slices.Equal(strings.Fields(s), strings.Fields(text)) {
			return true
		}
	}
	return false
}
