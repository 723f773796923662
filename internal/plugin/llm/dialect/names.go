package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/chela-ai/chela/internal/core/llm"
)

// CallID returns id if services accept it: letters, digits, _ and -, and at
// most limit characters. Otherwise it returns a replacement derived from id, so
// that calls and results still match. Ids of other services occur if a
// conversation changes its model.
func CallID(id string, limit int) string {
	if id != "" && len(id) <= limit && plain(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return ("call" + hex.EncodeToString(sum[:]))[:min(limit, 36)]
}

// ShortID returns an id of exactly n letters and digits, derived from id.
func ShortID(id string, n int) string {
	if len(id) == n && plain(id) && !slices.ContainsFunc([]byte(id), func(c byte) bool { return c == '_' || c == '-' }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:min(n, 64)]
}

// ToolName returns the name of a call in the history in a form that services
// accept. Models call tools that do not exist, by names that the service would
// reject.
func ToolName(name string) string {
	if name == "" {
		return "unknown"
	}
	if len(name) <= 64 && plain(name) {
		return name
	}
	b := []byte(name[:min(len(name), 64)])
	for i, c := range b {
		if !plainByte(c) {
			b[i] = '_'
		}
	}
	return string(b)
}

func plain(s string) bool {
	for i := range len(s) {
		if !plainByte(s[i]) {
			return false
		}
	}
	return true
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// LevelsOf returns the levels of a model, or others if only that it thinks is known.
func LevelsOf(m llm.Model, others []llm.Level) []llm.Level {
	if len(m.Levels) > 0 && len(m.Levels) < len(llm.Levels) {
		return m.Levels
	}
	return others
}

// Nearest returns the level in have that is nearest to want, the lower one of
// two, or "" if have is empty.
func Nearest(want llm.Level, have []llm.Level) llm.Level {
	rank := make(map[llm.Level]int, len(llm.Levels))
	for i, l := range llm.Levels {
		rank[l] = i
	}
	var best llm.Level
	for _, l := range have {
		if best == "" || dist(rank[l], rank[want]) < dist(rank[best], rank[want]) {
			best = l
		}
	}
	return best
}

func dist(a, b int) int { return max(a-b, b-a) }
