// Package naughty provides strings that break programs: the 461 strings of
// version 1.0.0 of the npm package big-list-of-naughty-strings by Max Woolf,
// under the license in this directory.
package naughty

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

//go:embed blns.json
var data []byte

// Strings returns all strings.
func Strings(t testing.TB) []string {
	t.Helper()
	var out []string
	if err := json.Unmarshal(data, &out); err != nil || len(out) != 461 {
		t.Fatalf("%d strings: %v", len(out), err)
	}
	return out
}

// Hides reports whether s contains control sequences, or characters that change
// the order of the text around them.
func Hides(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r))
	})
}
