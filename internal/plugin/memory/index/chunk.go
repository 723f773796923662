package index

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/estimate"
)

// Sizes of chunks, in tokens.
const (
	chunkTokens   = 400
	overlapTokens = 80
)

// Limits of chunks.
const (
	maxChunks  = 50_000 // of a note
	maxHeading = 200    // bytes of a heading that its section is found by
)

// A chunk is a part of a note that is found as a whole.
type chunk struct {
	first, last int    // lines, from 1
	head        string // the headings that it stands under
	text        string
}

// chunks splits a note at its headings, and long sections into parts that overlap.
func chunks(note []byte) []chunk {
	var out []chunk
	var heads [6]string
	var head string
	var lines []string // of the section
	first := 1
	flush := func() {
		out = append(out, parts(head, first, lines)...)
		first += len(lines)
		lines = nil
	}
	fence := false
	for line := range bytes.Lines(note) {
		text := strings.TrimRight(string(line), "\r\n")
		if t := strings.TrimSpace(text); strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fence = !fence
		}
		if level := headingLevel(text); level > 0 && !fence {
			flush()
			heads[level-1] = strings.ToValidUTF8(text[:min(len(text), maxHeading)], "")
			heads[level-1] = strings.TrimSpace(strings.Trim(heads[level-1], "# "))
			clear(heads[level:])
			head = strings.Join(strings.Fields(strings.Join(heads[:], " ")), " ")
		}
		lines = append(lines, text)
	}
	flush()
	return out
}

// headingLevel returns the level of a Markdown heading; 0: the line is none.
func headingLevel(line string) int {
	n := 0
	for n < len(line) && line[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || n == len(line) || line[n] != ' ' {
		return 0
	}
	return n
}

// parts returns the chunks of a section.
func parts(head string, first int, lines []string) []chunk {
	if strings.TrimSpace(strings.Join(lines, "")) == "" {
		return nil
	}
	var out []chunk
	begin, size := 0, 0
	for i, line := range lines {
		n := estimate.Text(line) + 1
		if size+n > chunkTokens && i > begin {
			out = append(out, chunk{first + begin, first + i - 1, head, strings.Join(lines[begin:i], "\n")})
			for begin, size = i, 0; begin > 0 && size+estimate.Text(lines[begin-1]) < overlapTokens; begin-- {
				size += estimate.Text(lines[begin-1]) + 1
			}
		}
		size += n
	}
	out = append(out, chunk{first + begin, first + len(lines) - 1, head, strings.Join(lines[begin:], "\n")})
	var all []chunk
	for _, c := range out {
		all = append(all, splitLine(c)...)
	}
	return all
}

// splitLine splits a chunk that is one long line.
func splitLine(c chunk) []chunk {
	const most = 2 * chunkTokens * estimate.BytesPerToken
	if len(c.text) <= most {
		return []chunk{c}
	}
	var out []chunk
	for text := c.text; text != ""; {
		n := min(len(text), chunkTokens*estimate.BytesPerToken)
		for n < len(text) && n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		out = append(out, chunk{c.first, c.last, c.head, text[:n]})
		text = text[n:]
	}
	return out
}
