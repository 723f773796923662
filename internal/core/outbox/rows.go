package outbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Rows splits text into parts and returns a pending copy of base for each part, with
// the key "<base.Key>:<part>". Blank parts are omitted, so an empty text has no rows.
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

// ExtraKey returns the key of a message that a run sends in addition to its answer.
// name is unique within the run.
func ExtraKey(id chela.RunID, name string) string { return string(id) + extraInfix + name }

// extraInfix separates the run from the name in the key of an additional message.
const extraInfix = ":aside:"

// AlreadySent reports whether rows contain an additional message with the text to
// the address that has not failed. Differences in white space are ignored.
func AlreadySent(rows []Row, a chela.Address, text string) bool {
	sent := map[string]string{}
	for _, r := range rows {
		if i := strings.LastIndexByte(r.Key, ':'); r.Address == a && r.State != Failed && strings.Contains(r.Key, extraInfix) {
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
