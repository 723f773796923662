package json5_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/kit/json5"
)

func TestLiteral(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"12":     "12",
		"true":   "true",
		"'a b'":  `"a b"`,
		"a b":    `"a b"`,
		"one/m":  `"one/m"`,
		"{a: 1}": `{"a":1}`,
		"[1,]":   "[1]",
		"":       `""`,
		"{a:":    "",
		" [1":    "",
	} {
		got, err := json5.Literal(in)
		if string(got) != want || (err != nil) != (want == "") {
			t.Errorf("%q: %s, %v; want %s", in, got, err, want)
		}
	}
}
