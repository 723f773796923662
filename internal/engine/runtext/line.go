// Package runtext makes the texts of runs: entries for the model from queue items,
// and sentences for people from errors of models.
package runtext

import (
	"strings"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Line returns s without control characters and line breaks, cut after most
// characters, so that it can be part of a line of the prompt.
func Line(s string, most int) string {
	return humanize.Truncate(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s), most)
}
